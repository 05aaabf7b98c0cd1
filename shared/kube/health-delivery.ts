// Health of well-known custom kinds that deliver, promote, analyse or run to an end: Argo, Flux, Flagger, Tekton,
// Keptn, Numaflow, jobs. Each row names the field that it reads and where that field is documented; the rows follow the
// types of those APIs, not another tool's table.
import {
  allTrue,
  bothOf,
  byPhase,
  isTrue,
  notReported,
  readySummary,
  statusTogether,
  unlessStopped,
  unlessTrue,
  whenSeen,
} from './health-conditions.ts'
import { degraded, type Fields, fields, HEALTHY, list, progressing, type Rule, suspended, text } from './health-object.ts'
import { camelCase } from './health-words.ts'

/** Flux sets Stalled for good and Reconciling meanwhile, which come first. A False without them has failed and is tried
 *  again at the next interval; so has one that is being retried. */
const flux: Rule = (reading) => {
  const isRetry = reading.condition('Reconciling')?.reason === 'ProgressingWithRetry'
  const patient = isRetry ? [] : ['DependencyNotReady', 'ArtifactOutdated', 'Progressing']
  return isTrue('Ready', { falseIs: 'Degraded', patient })(reading)
}
/** A repository of OCI charts is not reconciled and has no status. */
const helmRepository: Rule = (reading) => (reading.spec['type'] === 'oci' ? HEALTHY : flux(reading))
/** Since v1beta3 these are configuration without a status. */
const fluxConfiguration: Rule = (reading) => (reading.conditions.length === 0 ? HEALTHY : flux(reading))

const WORKLOAD_GENERATION = 'rollout.argoproj.io/workload-generation'
/** The phase exists since 1.1; before that, conditions tell it. A Rollout of a workloadRef has to observe that
 *  workload's generation, too. */
const rollout: Rule = (reading) => {
  const wanted = text(reading.annotations[WORKLOAD_GENERATION])
  const observed = reading.status['workloadObservedGeneration']
  if (wanted !== '' && observed !== undefined && String(observed) !== wanted)
    return progressing(
      'WorkloadGenerationNotObserved',
      `its controller has seen generation ${String(observed)} of ${wanted} of its workload`,
    )
  if (reading.status['phase'] === undefined) return statusTogether(reading)
  return byPhase({ healthy: ['Healthy'], degraded: ['Degraded'], suspended: ['Paused'] })(reading)
}
const measured = byPhase({ healthy: ['Successful'], degraded: ['Failed', 'Error', 'Inconclusive'] })
const application = byPhase({
  at: ['health', 'status'],
  message: ['health', 'message'],
  healthy: ['Healthy'],
  degraded: ['Degraded', 'Missing'],
  suspended: ['Suspended'],
})

const canary = byPhase({ healthy: ['Initialized', 'Succeeded'], degraded: ['Failed'] })

/** Tekton: condition Succeeded is Unknown while it runs. */
const tektonRun: Rule = (reading) => {
  if (text(reading.spec['status']).endsWith('Pending')) return suspended(`spec.status is ${text(reading.spec['status'])}`)
  return isTrue('Succeeded', { falseIs: 'Degraded' })(reading)
}

/** A keptn state is the worst of its phases; `status` is the whole. */
const keptn = byPhase({ at: ['status'], healthy: ['Succeeded', 'Warning'], degraded: ['Failed'], suspended: ['Deprecated'] })
const keptnEvaluation = byPhase({ at: ['overallStatus'], healthy: ['Succeeded', 'Warning'], degraded: ['Failed'] })
const keptnAnalysis: Rule = (reading) => {
  const { status } = reading
  if (text(status['state']) !== 'Completed') return byPhase({ at: ['state'], healthy: [] })(reading)
  if (status['pass'] === true || status['warning'] === true) return HEALTHY
  return degraded('AnalysisFailed', 'status.pass is not true')
}
const keptnMetric: Rule = ({ status }) => {
  const error = text(status['errMsg'])
  if (error !== '') return degraded('MetricError', `status.errMsg: ${error}`)
  return status['value'] === undefined || status['value'] === '' ? notReported('status.value') : HEALTHY
}

/** A promotion is under way while a branch's dry commit is not the proposed one, and until its checks have passed. */
function promotionOf(environment: Fields): ReturnType<Rule> {
  const [active, proposed] = [fields(environment['active']), fields(environment['proposed'])]
  const branch = text(environment['branch'])
  const name = branch === '' ? 'the branch' : `branch ${branch}`
  const activeSha = text(fields(active['dry'])['sha'])
  const proposedSha = text(fields(proposed['note'])['drySha']) || text(fields(proposed['dry'])['sha'])
  if (activeSha === '' || proposedSha === '') return progressing('CommitNotReported', `${name} has no reported dry commit yet`)
  if (activeSha !== proposedSha) {
    const failed = checkOf(proposed, 'failure')
    const why = failed === '' ? '' : `; check ${failed} failed`
    return progressing('PromotionPending', `${name} is at ${activeSha.slice(0, 7)}, ${proposedSha.slice(0, 7)} is proposed${why}`)
  }
  const failed = checkOf(active, 'failure')
  if (failed !== '') return degraded('CheckFailed', `${name}: check ${failed} failed`)
  const pending = checkOf(active, 'pending')
  return pending === '' ? HEALTHY : progressing('CheckPending', `${name}: check ${pending} is pending`)
}
const checkOf = (state: Fields, phase: string): string =>
  text(list(state['commitStatuses']).find((entry) => entry['phase'] === phase)?.['key'])

/** Ready means only that it was reconciled. */
const promoter: Rule = whenSeen(['Ready'], isTrue('Ready', { falseIs: 'Degraded' }))
const promotionStrategy: Rule = bothOf(promoter, ({ status }) => {
  const environments = list(status['environments'])
  if (environments.length === 0) return notReported('an environment')
  const states = environments.map(promotionOf)
  return states.find(({ word }) => word === 'Degraded') ?? states.find(({ word }) => word === 'Progressing') ?? HEALTHY
})
const changeTransferPolicy: Rule = bothOf(promoter, ({ status }) => promotionOf(status))
const commitStatus: Rule = bothOf(promoter, (reading) =>
  reading.status['phase'] === undefined ? HEALTHY : byPhase({ healthy: ['success'], degraded: ['failure'] })(reading),
)
const selectedCommitStatus: Rule = bothOf(promoter, (reading) => {
  const phases = [...list(reading.status['applicationsSelected']), ...list(reading.status['environments'])].map((entry) =>
    text(entry['phase']),
  )
  if (phases.length === 0) return notReported('what it watches')
  if (phases.includes('failure')) return degraded('CheckFailed', 'a commit status that it watches is failure')
  return phases.includes('pending') ? progressing('CheckPending', 'a commit status that it watches is pending') : HEALTHY
})

/** Its job state decides: a streaming job runs until a person stops it. */
const flinkSessionJob: Rule = (reading) => {
  const error = text(reading.status['error'])
  if (error !== '') return degraded('Error', `status.error: ${error.slice(0, 400)}`)
  return byPhase({
    at: ['jobStatus', 'state'],
    healthy: ['RUNNING', 'FINISHED'],
    degraded: ['FAILED', 'FAILING'],
    suspended: ['SUSPENDED'],
  })(reading)
}
/** CREATED has not been processed, DEPLOYED may still be rolled back, ROLLED_BACK does not run what its spec says. */
const flinkDeployment: Rule = bothOf(statusTogether, ({ status }) => {
  const state = text(status['lifecycleState'])
  const isSettled = state === '' || state === 'STABLE'
  return isSettled ? HEALTHY : progressing(camelCase(state), `status.lifecycleState is ${state}`)
})
const kubeflowJob: Rule = unlessStopped('Suspended', unlessTrue(['Failed'], isTrue('Succeeded')))

const kueueQueue: Rule = isTrue('Active', { patient: ['Terminating'] })

/** numaplane labels the new version whose progressive upgrade failed, while that version itself still runs. */
const numaflow: Rule = (reading) =>
  reading.labels['numaplane.numaproj.io/progressive-result-state'] === 'failed'
    ? degraded('ProgressiveUpgradeFailed', 'numaplane reports that the progressive upgrade to it failed')
    : statusTogether(reading)

export const DELIVERY_RULES: Readonly<Record<string, Rule>> = {
  // status.phase, status.workloadObservedGeneration: argo-rollouts pkg/apis/rollouts/v1alpha1.
  'argoproj.io/Rollout': rollout,
  'argoproj.io/AnalysisRun': measured,
  'argoproj.io/Experiment': measured,
  // status.phase: argo-workflows WorkflowPhase; conditions SubmissionError, SpecError: CronWorkflow.
  'argoproj.io/Workflow': byPhase({ healthy: ['Succeeded'], degraded: ['Failed', 'Error'] }),
  'argoproj.io/CronWorkflow': unlessTrue(['SubmissionError', 'SpecError'], () => HEALTHY),
  'argoproj.io/WorkflowTemplate': () => HEALTHY,
  'argoproj.io/ClusterWorkflowTemplate': () => HEALTHY,
  // status.health.status: argo-cd HealthStatusCode.
  'argoproj.io/Application': application,
  'argoproj.io/AppProject': () => HEALTHY,
  // conditions ErrorOccurred, ResourcesUpToDate, RolloutProgressing: argo-cd ApplicationSetConditionType.
  'argoproj.io/ApplicationSet': unlessTrue(['ErrorOccurred'], (reading) => {
    const rolling = reading.condition('RolloutProgressing')
    if (rolling?.status === 'True') return progressing(rolling.reason || 'RolloutProgressing', rolling.message)
    return isTrue('ResourcesUpToDate')(reading)
  }),
  // conditions: argo-events common Status; each of them is to be True.
  'argoproj.io/EventBus': allTrue,
  'argoproj.io/EventSource': allTrue,
  'argoproj.io/Sensor': allTrue,
  // status.environments[].{active,proposed}.dry.sha, commitStatuses[].phase, status.phase, condition Ready:
  // gitops-promoter api/v1alpha1.
  'promoter.argoproj.io/ArgoCDCommitStatus': selectedCommitStatus,
  'promoter.argoproj.io/ChangeTransferPolicy': changeTransferPolicy,
  'promoter.argoproj.io/ClusterScmProvider': promoter,
  'promoter.argoproj.io/CommitStatus': commitStatus,
  'promoter.argoproj.io/GitCommitStatus': selectedCommitStatus,
  'promoter.argoproj.io/GitRepository': promoter,
  'promoter.argoproj.io/PromotionStrategy': promotionStrategy,
  'promoter.argoproj.io/PullRequest': promoter,
  'promoter.argoproj.io/ScmProvider': promoter,
  'promoter.argoproj.io/TimedCommitStatus': selectedCommitStatus,
  'promoter.argoproj.io/WebRequestCommitStatus': selectedCommitStatus,
  // status.phase: flagger CanaryPhase.
  'flagger.app/Canary': canary,
  // condition Ready, reason ProgressingWithRetry: fluxcd/pkg/apis/meta conditions.
  'kustomize.toolkit.fluxcd.io/Kustomization': flux,
  'helm.toolkit.fluxcd.io/HelmRelease': flux,
  'source.toolkit.fluxcd.io/Bucket': flux,
  'source.toolkit.fluxcd.io/GitRepository': flux,
  'source.toolkit.fluxcd.io/HelmChart': flux,
  'source.toolkit.fluxcd.io/HelmRepository': helmRepository,
  'source.toolkit.fluxcd.io/OCIRepository': flux,
  'image.toolkit.fluxcd.io/ImagePolicy': flux,
  'image.toolkit.fluxcd.io/ImageRepository': flux,
  'image.toolkit.fluxcd.io/ImageUpdateAutomation': flux,
  'notification.toolkit.fluxcd.io/Alert': fluxConfiguration,
  'notification.toolkit.fluxcd.io/Provider': fluxConfiguration,
  'notification.toolkit.fluxcd.io/Receiver': flux,
  // condition Succeeded: knative apis.ConditionSucceeded, as Tekton's PipelineRunStatus has it; spec.status:
  // PipelineRunPending.
  'tekton.dev/CustomRun': tektonRun,
  'tekton.dev/Pipeline': () => HEALTHY,
  'tekton.dev/PipelineRun': tektonRun,
  'tekton.dev/Task': () => HEALTHY,
  'tekton.dev/TaskRun': tektonRun,
  'operator.tekton.dev/TektonConfig': isTrue('Ready', { falseIs: 'Degraded', patient: ['Installing'] }),
  // status.status, status.overallStatus (KeptnState); status.state, status.pass; status.value, status.errMsg: keptn
  // lifecycle-operator and metrics-operator api/v1.
  'lifecycle.keptn.sh/KeptnAppVersion': keptn,
  'lifecycle.keptn.sh/KeptnEvaluation': keptnEvaluation,
  'lifecycle.keptn.sh/KeptnTask': keptn,
  'lifecycle.keptn.sh/KeptnWorkloadInstance': keptn,
  'lifecycle.keptn.sh/KeptnWorkloadVersion': keptn,
  'metrics.keptn.sh/Analysis': keptnAnalysis,
  'metrics.keptn.sh/KeptnMetric': keptnMetric,
  // status.phase and conditions, each of which is to be True: numaflow pkg/apis/numaflow/v1alpha1 Status.IsReady;
  // numaplane pkg/apis/numaplane/v1alpha1.
  'numaflow.numaproj.io/InterStepBufferService': numaflow,
  'numaflow.numaproj.io/MonoVertex': numaflow,
  'numaflow.numaproj.io/Pipeline': numaflow,
  'numaflow.numaproj.io/Vertex': numaflow,
  'numaplane.numaproj.io/ISBServiceRollout': statusTogether,
  'numaplane.numaproj.io/MonoVertexRollout': statusTogether,
  'numaplane.numaproj.io/NumaflowControllerRollout': statusTogether,
  'numaplane.numaproj.io/PipelineRollout': statusTogether,
  // condition Ready, Stalled, Reconciling: pulumi-kubernetes-operator pulumi.com/v1.
  'pulumi.com/Stack': readySummary,
  // conditions of jobs: kubeflow/training-operator JobConditionType, kubeflow/trainer; kubernetes-sigs/jobset;
  // kubernetes-sigs/lws.
  'kubeflow.org/MPIJob': kubeflowJob,
  'kubeflow.org/PyTorchJob': kubeflowJob,
  'kubeflow.org/TFJob': kubeflowJob,
  'kubeflow.org/XGBoostJob': kubeflowJob,
  'trainer.kubeflow.org/TrainJob': unlessStopped('Suspended', unlessTrue(['Failed'], isTrue('Complete'))),
  'jobset.x-k8s.io/JobSet': unlessStopped('Suspended', unlessTrue(['Failed'], isTrue('Completed'))),
  'leaderworkerset.x-k8s.io/LeaderWorkerSet': isTrue('Available'),
  // condition Active, reasons FlavorNotFound, CheckNotFoundOrInactive, Stopped: kueue apis/kueue/v1beta1; conditions
  // Available, JobCreated, Failed: k3s helm-controller helm.cattle.io/v1.
  'kueue.x-k8s.io/ClusterQueue': kueueQueue,
  'kueue.x-k8s.io/LocalQueue': kueueQueue,
  'helm.cattle.io/HelmChart': unlessTrue(['Failed'], isTrue('JobCreated')),
  // status.state: ray-operator ClusterState; conditions Ready, status.jobDeploymentStatus.
  'ray.io/RayCluster': byPhase({ at: ['state'], message: ['reason'], healthy: ['ready'], degraded: ['failed'], suspended: ['suspended'] }),
  'ray.io/RayJob': byPhase({
    at: ['jobDeploymentStatus'],
    healthy: ['Complete'],
    degraded: ['Failed', 'ValidationFailed'],
    suspended: ['Suspended'],
  }),
  'ray.io/RayService': isTrue('Ready', { failed: ['ValidationFailed', 'FailedServe'] }),
  // status.jobManagerDeploymentStatus, lifecycleState, jobStatus.state, error: flink-kubernetes-operator reference.
  'flink.apache.org/FlinkDeployment': flinkDeployment,
  'flink.apache.org/FlinkSessionJob': flinkSessionJob,
  // status.applicationState.state, status.scheduleState: spark-operator api/v1beta2.
  'sparkoperator.k8s.io/ScheduledSparkApplication': byPhase({
    at: ['scheduleState'],
    message: ['reason'],
    healthy: ['Scheduled'],
    degraded: ['FailedValidation'],
  }),
  'sparkoperator.k8s.io/SparkApplication': byPhase({
    at: ['applicationState', 'state'],
    message: ['applicationState', 'errorMessage'],
    healthy: ['COMPLETED', 'RUNNING'],
    degraded: ['FAILED', 'SUBMISSION_FAILED', 'INVALIDATING', 'UNKNOWN'],
    suspended: ['SUSPENDED'],
  }),
  // status.ansibleJobResult.status: ansible awx-resource-operator, the states of a job in AWX.
  'tower.ansible.com/AnsibleJob': byPhase({
    at: ['ansibleJobResult', 'status'],
    message: ['message'],
    healthy: ['successful'],
    degraded: ['failed', 'error', 'canceled'],
  }),
}
