// What well-known controllers say of deliveries, promotions and jobs, by the words of their own API types, and the
// health that it means.
import { DELIVERY_RULES } from '../../shared/kube/health-delivery.ts'
import {
  conditions,
  nothing,
  type Part,
  paused,
  phase,
  type Row,
  ready,
  says,
  state,
  suspended,
  testHealthTable,
} from '../support/health-table.ts'

const flux = (group: string, version: string, kinds: string[]): Row => ({
  kinds: kinds.map((kind) => `${group}.toolkit.fluxcd.io/${version}/${kind}`),
  Healthy: [says('Ready:True:Succeeded')],
  Progressing: [
    nothing,
    says('Ready:Unknown:Progressing'),
    says('Ready:False:DependencyNotReady'),
    says('Reconciling:True:Progressing', 'Ready:False:BuildFailed'),
  ],
  Degraded: [
    says('Ready:False:BuildFailed:no such file'),
    says('Stalled:True:RetriesExceeded', 'Ready:False:InstallFailed'),
    says('Reconciling:True:ProgressingWithRetry', 'Ready:False:DependencyNotReady'),
  ],
  Suspended: [suspended],
})
/** Ready says only that its controller has looked at it. */
const reconciled = (status: Part): Part => ({ status: { ...conditions('Ready:True'), ...status } })
const promoted = (active: string, proposed: string, check = 'success'): Part => ({
  active: { dry: { sha: active }, commitStatuses: [{ key: 'check', phase: check }] },
  proposed: { dry: { sha: proposed } },
})

const ROWS: Row[] = [
  {
    kinds: ['argoproj.io/v1alpha1/Rollout'],
    Healthy: [phase('Healthy'), says('Available:True', 'Progressing:True:NewReplicaSetAvailable')],
    Progressing: [
      nothing,
      phase('Progressing'),
      { metadata: { generation: 3 }, status: { observedGeneration: '2', phase: 'Healthy' } },
      {
        metadata: { annotations: { 'rollout.argoproj.io/workload-generation': '4' } },
        status: { workloadObservedGeneration: '3', phase: 'Healthy' },
      },
    ],
    Degraded: [
      { status: { phase: 'Degraded', message: 'RolloutAborted' } },
      says('Available:True', 'Progressing:False:ProgressDeadlineExceeded'),
      says('InvalidSpec:True:InvalidSpec', 'Available:True'),
    ],
    Suspended: [phase('Paused'), paused],
  },
  {
    kinds: ['argoproj.io/v1alpha1/AnalysisRun', 'argoproj.io/v1alpha1/Experiment'],
    Healthy: [phase('Successful')],
    Progressing: [nothing, phase('Pending'), phase('Running')],
    Degraded: [phase('Failed'), phase('Error'), phase('Inconclusive')],
  },
  {
    kinds: ['argoproj.io/v1alpha1/Workflow'],
    Healthy: [phase('Succeeded')],
    Progressing: [nothing, phase('Pending'), phase('Running')],
    Degraded: [phase('Failed'), phase('Error')],
    Suspended: [suspended],
  },
  { kinds: ['argoproj.io/v1alpha1/CronWorkflow'], Healthy: [nothing], Degraded: [says('SubmissionError:True')], Suspended: [suspended] },
  {
    kinds: ['argoproj.io/v1alpha1/Application'],
    Healthy: [{ status: { health: { status: 'Healthy' } } }],
    Progressing: [nothing, { status: { health: { status: 'Progressing' } } }, { status: { health: { status: 'Unknown' } } }],
    Degraded: [{ status: { health: { status: 'Degraded' } } }, { status: { health: { status: 'Missing' } } }],
    Suspended: [{ status: { health: { status: 'Suspended' } } }],
  },
  {
    kinds: ['argoproj.io/v1alpha1/ApplicationSet'],
    Healthy: [says('ErrorOccurred:False', 'ResourcesUpToDate:True')],
    Progressing: [
      nothing,
      says('ErrorOccurred:False', 'ResourcesUpToDate:False'),
      says('ErrorOccurred:False', 'ResourcesUpToDate:True', 'RolloutProgressing:True'),
    ],
    Degraded: [says('ErrorOccurred:True:ApplicationGenerationFromParamsError', 'ResourcesUpToDate:False')],
  },
  {
    kinds: ['argoproj.io/v1alpha1/EventBus', 'argoproj.io/v1alpha1/EventSource', 'argoproj.io/v1alpha1/Sensor'],
    Healthy: [says('Configured:True', 'Deployed:True')],
    Progressing: [nothing, says('Configured:True', 'Deployed:Unknown')],
    Degraded: [says('Configured:Unknown', 'Deployed:False:Failed')],
  },
  {
    kinds: ['flagger.app/v1beta1/Canary'],
    Healthy: [phase('Initialized'), phase('Succeeded')],
    Progressing: [nothing, ...['Initializing', 'Waiting', 'Progressing', 'WaitingPromotion', 'Promoting', 'Finalising'].map(phase)],
    Degraded: [phase('Failed')],
    Suspended: [suspended],
  },
  flux('kustomize', 'v1', ['Kustomization']),
  flux('helm', 'v2', ['HelmRelease']),
  flux('source', 'v1', ['Bucket', 'GitRepository', 'HelmChart', 'HelmRepository', 'OCIRepository']),
  flux('image', 'v1beta2', ['ImagePolicy', 'ImageRepository', 'ImageUpdateAutomation']),
  flux('notification', 'v1', ['Receiver']),
  { kinds: ['source.toolkit.fluxcd.io/v1/HelmRepository'], Healthy: [{ spec: { type: 'oci' } }] },
  {
    kinds: ['tekton.dev/v1/PipelineRun', 'tekton.dev/v1/TaskRun', 'tekton.dev/v1beta1/CustomRun'],
    Healthy: [says('Succeeded:True:Completed')],
    Progressing: [nothing, says('Succeeded:Unknown:Running')],
    Degraded: [says('Succeeded:False:PipelineRunTimeout')],
    Suspended: [{ spec: { status: 'PipelineRunPending' } }],
  },
  { kinds: ['operator.tekton.dev/v1alpha1/TektonConfig'], ...ready, Degraded: [says('Ready:False:Error')] },
  {
    kinds: ['MPIJob', 'PyTorchJob', 'TFJob', 'XGBoostJob'].map((kind) => `kubeflow.org/v1/${kind}`),
    Healthy: [says('Created:True', 'Running:False', 'Succeeded:True')],
    Progressing: [nothing, says('Created:True', 'Running:True', 'Succeeded:False')],
    Degraded: [says('Failed:True:PyTorchJobFailed', 'Succeeded:False')],
    Suspended: [says('Suspended:True')],
  },
  {
    kinds: ['jobset.x-k8s.io/v1alpha2/JobSet'],
    Healthy: [says('Completed:True')],
    Progressing: [nothing],
    Degraded: [says('Failed:True:FailedJobs')],
    Suspended: [says('Suspended:True')],
  },
  {
    kinds: ['leaderworkerset.x-k8s.io/v1/LeaderWorkerSet'],
    Healthy: [says('Available:True')],
    Progressing: [nothing, says('Available:False')],
  },
  {
    kinds: ['ray.io/v1/RayCluster'],
    Healthy: [state('ready')],
    Progressing: [nothing, state('')],
    Degraded: [state('failed')],
    Suspended: [state('suspended')],
  },
  {
    kinds: ['ray.io/v1/RayJob'],
    Healthy: [{ status: { jobDeploymentStatus: 'Complete' } }],
    Progressing: [nothing, { status: { jobDeploymentStatus: 'Running' } }],
    Degraded: [{ status: { jobDeploymentStatus: 'Failed' } }],
    Suspended: [{ status: { jobDeploymentStatus: 'Suspended' } }],
  },
  { kinds: ['ray.io/v1/RayService'], ...ready, Degraded: [says('Ready:False:ValidationFailed')] },
  {
    kinds: ['sparkoperator.k8s.io/v1beta2/SparkApplication'],
    Healthy: ['COMPLETED', 'RUNNING'].map((word) => ({ status: { applicationState: { state: word } } })),
    Progressing: [nothing, { status: { applicationState: { state: 'SUBMITTED' } } }],
    Degraded: [{ status: { applicationState: { state: 'SUBMISSION_FAILED', errorMessage: 'no image' } } }],
    Suspended: [{ status: { applicationState: { state: 'SUSPENDED' } } }],
  },
  {
    kinds: ['sparkoperator.k8s.io/v1beta2/ScheduledSparkApplication'],
    Healthy: [{ status: { scheduleState: 'Scheduled' } }],
    Progressing: [nothing, { status: { scheduleState: 'Validating' } }],
    Degraded: [{ status: { scheduleState: 'FailedValidation' } }],
    Suspended: [suspended],
  },
  {
    kinds: ['AppProject', 'ClusterWorkflowTemplate', 'WorkflowTemplate'].map((kind) => `argoproj.io/v1alpha1/${kind}`),
    Healthy: [nothing],
  },
  { kinds: ['tekton.dev/v1/Pipeline', 'tekton.dev/v1/Task'], Healthy: [nothing] },
  {
    kinds: ['notification.toolkit.fluxcd.io/v1beta3/Alert', 'notification.toolkit.fluxcd.io/v1beta3/Provider'],
    Healthy: [nothing, says('Ready:True')],
    Degraded: [says('Ready:False:ValidationFailed')],
    Suspended: [suspended],
  },
  {
    kinds: ['ClusterScmProvider', 'GitRepository', 'PullRequest', 'ScmProvider'].map((kind) => `promoter.argoproj.io/v1alpha1/${kind}`),
    Healthy: [says('Ready:True:ReconciliationSuccess')],
    Progressing: [nothing, says('Ready:Unknown:ValidationPending'), says('Example:True')],
    Degraded: [says('Ready:False:ReconciliationError')],
  },
  {
    kinds: ['promoter.argoproj.io/v1alpha1/PromotionStrategy'],
    Healthy: [reconciled({ environments: [{ branch: 'dev', ...promoted('a', 'a') }] })],
    Progressing: [
      nothing,
      says('Ready:True'),
      reconciled({ environments: [{ branch: 'dev', ...promoted('a', 'b') }] }),
      reconciled({ environments: [{ branch: 'dev', ...promoted('', 'b') }] }),
      reconciled({ environments: [{ branch: 'dev', ...promoted('a', 'a', 'pending') }] }),
    ],
    Degraded: [says('Ready:False:ReconciliationError'), reconciled({ environments: [promoted('a', 'a', 'failure')] })],
  },
  {
    kinds: ['promoter.argoproj.io/v1alpha1/ChangeTransferPolicy'],
    Healthy: [reconciled(promoted('a', 'a', 'success'))],
    Progressing: [nothing, reconciled(promoted('a', 'b'))],
    Degraded: [says('Ready:False:ReconciliationError'), reconciled(promoted('a', 'a', 'failure'))],
  },
  {
    kinds: ['promoter.argoproj.io/v1alpha1/CommitStatus'],
    Healthy: [reconciled({ phase: 'success' }), says('Ready:True')],
    Progressing: [nothing, reconciled({ phase: 'pending' })],
    Degraded: [reconciled({ phase: 'failure' })],
  },
  {
    kinds: ['ArgoCDCommitStatus', 'GitCommitStatus', 'TimedCommitStatus', 'WebRequestCommitStatus'].map(
      (kind) => `promoter.argoproj.io/v1alpha1/${kind}`,
    ),
    Healthy: [reconciled({ environments: [{ branch: 'dev', phase: 'success' }] })],
    Progressing: [nothing, says('Ready:True'), reconciled({ environments: [{ phase: 'success' }, { phase: 'pending' }] })],
    Degraded: [reconciled({ applicationsSelected: [{ name: 'a', phase: 'failure' }] })],
  },
  {
    kinds: ['KeptnAppVersion', 'KeptnTask', 'KeptnWorkloadInstance', 'KeptnWorkloadVersion'].map((kind) => `lifecycle.keptn.sh/v1/${kind}`),
    Healthy: [{ status: { status: 'Succeeded' } }],
    Progressing: [nothing, { status: { status: 'Progressing' } }, { status: { status: 'Pending' } }],
    Degraded: [{ status: { status: 'Failed' } }],
    Suspended: [{ status: { status: 'Deprecated' } }],
  },
  {
    kinds: ['lifecycle.keptn.sh/v1/KeptnEvaluation'],
    Healthy: [{ status: { overallStatus: 'Succeeded' } }],
    Progressing: [nothing, { status: { overallStatus: 'Progressing' } }],
    Degraded: [{ status: { overallStatus: 'Failed' } }],
  },
  {
    kinds: ['metrics.keptn.sh/v1/Analysis'],
    Healthy: [{ status: { state: 'Completed', pass: true } }, { status: { state: 'Completed', warning: true } }],
    Progressing: [nothing, state('Progressing')],
    Degraded: [{ status: { state: 'Completed', pass: false } }],
  },
  {
    kinds: ['metrics.keptn.sh/v1/KeptnMetric'],
    Healthy: [{ status: { value: '1', errMsg: '' } }],
    Progressing: [nothing, { status: { lastUpdated: '2024-01-01T00:00:00Z' } }],
    Degraded: [{ status: { errMsg: 'connection refused' } }],
  },
  {
    kinds: ['InterStepBufferService', 'MonoVertex', 'Pipeline', 'Vertex'].map((kind) => `numaflow.numaproj.io/v1alpha1/${kind}`),
    Healthy: [{ status: { phase: 'Running', ...conditions('Configured:True', 'Deployed:True') } }],
    Progressing: [nothing, phase('Pending'), { status: { phase: 'Running', ...conditions('DaemonServiceHealthy:False:Progressing') } }],
    Degraded: [
      { ...phase('Running'), metadata: { name: 'x', labels: { 'numaplane.numaproj.io/progressive-result-state': 'failed' } } },
      phase('Failed'),
      { status: { phase: 'Running', ...conditions('VerticesHealthy:False:VertexFailed') } },
    ],
    Suspended: [phase('Paused')],
  },
  {
    kinds: ['ISBServiceRollout', 'MonoVertexRollout', 'NumaflowControllerRollout', 'PipelineRollout'].map(
      (kind) => `numaplane.numaproj.io/v1alpha1/${kind}`,
    ),
    Healthy: [{ status: { phase: 'Deployed', ...conditions('ChildResourcesHealthy:True') } }],
    Progressing: [nothing, phase('Pending'), { status: { phase: 'Deployed', ...conditions('ChildResourcesHealthy:False:Progressing') } }],
    Degraded: [phase('Failed'), { status: { phase: 'Deployed', ...conditions('ProgressiveUpgradeSucceeded:False:Failed') } }],
  },
  {
    kinds: ['pulumi.com/v1/Stack'],
    Healthy: [says('Ready:True:ProcessingCompleted')],
    Progressing: [nothing, says('Reconciling:True:StackProcessing', 'Ready:False:NotReadyInProgress')],
    Degraded: [says('Stalled:True:UpdateFailed', 'Ready:False:NotReadyStalled')],
  },
  {
    kinds: ['trainer.kubeflow.org/v1alpha1/TrainJob'],
    Healthy: [says('Complete:True')],
    Progressing: [nothing],
    Degraded: [says('Failed:True:JobsFailed')],
    Suspended: [says('Suspended:True')],
  },
  {
    kinds: ['flink.apache.org/v1beta1/FlinkDeployment'],
    Healthy: [{ status: { jobManagerDeploymentStatus: 'READY', lifecycleState: 'STABLE', jobStatus: { state: 'RUNNING' } } }],
    Progressing: [
      nothing,
      { status: { jobManagerDeploymentStatus: 'DEPLOYED_NOT_READY', jobStatus: { state: 'RECONCILING' } } },
      { status: { jobManagerDeploymentStatus: 'READY', lifecycleState: 'UPGRADING' } },
      { status: { jobManagerDeploymentStatus: 'READY', lifecycleState: 'DEPLOYED', jobStatus: { state: 'RUNNING' } } },
    ],
    Degraded: [
      { status: { jobManagerDeploymentStatus: 'MISSING' } },
      { status: { jobManagerDeploymentStatus: 'READY', error: 'the jar is missing' } },
      { status: { jobManagerDeploymentStatus: 'READY', lifecycleState: 'ROLLED_BACK' } },
    ],
    Suspended: [{ status: { jobManagerDeploymentStatus: 'READY', jobStatus: { state: 'SUSPENDED' } } }],
  },
  {
    kinds: ['flink.apache.org/v1beta1/FlinkSessionJob'],
    Healthy: [{ status: { jobStatus: { state: 'RUNNING' } } }],
    Progressing: [nothing, { status: { jobStatus: { state: 'RECONCILING' } } }],
    Degraded: [{ status: { jobStatus: { state: 'FAILED' } } }, { status: { error: 'no such session cluster' } }],
    Suspended: [{ status: { jobStatus: { state: 'SUSPENDED' } } }],
  },
  {
    kinds: ['ClusterQueue', 'LocalQueue'].map((kind) => `kueue.x-k8s.io/v1beta1/${kind}`),
    Healthy: [says('Active:True:Ready')],
    Progressing: [nothing, says('Active:False:Terminating')],
    Degraded: [says('Active:False:FlavorNotFound')],
  },
  {
    kinds: ['helm.cattle.io/v1/HelmChart'],
    Healthy: [says('JobCreated:True', 'Failed:False')],
    Progressing: [nothing],
    Degraded: [says('JobCreated:True', 'Failed:True')],
  },
  {
    kinds: ['tower.ansible.com/v1alpha1/AnsibleJob'],
    Healthy: [{ status: { ansibleJobResult: { status: 'successful' } } }],
    Progressing: [nothing, ...['new', 'pending', 'waiting', 'running'].map((word) => ({ status: { ansibleJobResult: { status: word } } }))],
    Degraded: ['failed', 'error', 'canceled'].map((word) => ({ status: { ansibleJobResult: { status: word } } })),
  },
]

testHealthTable(
  ROWS,
  DELIVERY_RULES,
  [
    'argoproj.io/AppProject',
    'argoproj.io/ClusterWorkflowTemplate',
    'argoproj.io/CronWorkflow',
    'argoproj.io/WorkflowTemplate',
    'leaderworkerset.x-k8s.io/LeaderWorkerSet',
    'notification.toolkit.fluxcd.io/Alert',
    'notification.toolkit.fluxcd.io/Provider',
    'tekton.dev/Pipeline',
    'tekton.dev/Task',
  ],
  55,
)
