// Health of well-known custom kinds that deliver, schedule or provision: Argo, Flux, Flagger, Tekton, Crossplane, Cluster API, operators of clouds. Each row names the field it reads and
// where that is promised; the rows were written from what the types of those APIs say, and were not compared with another tool's table.
import {
  allTrue,
  availableProgressingDegraded,
  byPhase,
  isTrue,
  replicasReady,
  unlessFalse,
  unlessSaid,
  unlessSpec,
  unlessStopped,
  unlessTrue,
} from './health-conditions.ts'
import { at, degraded, HEALTHY, type Look, type Rule, suspended, text } from './health-look.ts'

/** Flux says Reconciling and Stalled besides, which come first: a `False` without them has failed and is tried at the next interval. */
const flux = unlessSpec(
  'suspend',
  isTrue('Ready', { falseIs: 'Degraded', patient: ['DependencyNotReady', 'ArtifactOutdated', 'Progressing'] }),
)
/** A repository of OCI charts is not reconciled and has no status. */
const helmRepository: Rule = (look) => (look.spec['type'] === 'oci' ? HEALTHY : flux(look))

const rollout: Rule = (look) => {
  if (look.spec['paused'] === true) return suspended('spec.paused is true')
  return byPhase({ healthy: ['Healthy'], degraded: ['Degraded'], suspended: ['Paused'] })(look)
}
const measured = byPhase({ healthy: ['Successful'], degraded: ['Failed', 'Error', 'Inconclusive'] })
const application = byPhase({
  at: ['health', 'status'],
  message: ['health', 'message'],
  healthy: ['Healthy'],
  degraded: ['Degraded', 'Missing'],
  suspended: ['Suspended'],
})

const canary = unlessSpec('suspend', byPhase({ healthy: ['Initialized', 'Succeeded'], degraded: ['Failed'] }))

/** Tekton: condition Succeeded is Unknown while it runs. */
const tektonRun: Rule = (look) => {
  if (/Pending$/.test(text(look.spec['status']))) return suspended(`spec.status is ${text(look.spec['status'])}`)
  return isTrue('Succeeded', { falseIs: 'Degraded' })(look)
}

const crossplanePackage = unlessFalse(['Installed'], isTrue('Healthy', { failed: ['UnhealthyPackageRevision'] }))
const crossplaneManaged = unlessFalse(['Synced', 'LastAsyncOperation'], isTrue('Ready'))

const capiBroken = (rule: Rule): Rule => unlessSaid(['failureReason'], ['failureMessage'], 'Failed', rule)
const capiPhase = (healthy: readonly string[]): Rule =>
  unlessSpec('paused', capiBroken(byPhase({ healthy, degraded: ['Failed'], message: ['failureMessage'] })))
const controlPlane: Rule = capiBroken((look) => {
  const version2 = look.condition('Available')
  return version2 === undefined ? isTrue('Ready')(look) : isTrue('Available')(look)
})

/** ACK.Terminal does not end by itself; ACK.ResourceSynced is False while it waits. */
const ack = unlessTrue(['ACK.Terminal'], isTrue('ACK.ResourceSynced'))
const configConnector = isTrue('Ready', {
  failed: ['UpdateFailed', 'CreateFailed', 'DeleteFailed', 'DependencyInvalid', 'ManagementConflict'],
})
/** Azure's operator marks a `False` that it will not retry with the severity Error. */
const azure: Rule = (look) => {
  const conditions = Array.isArray(look.status['conditions']) ? look.status['conditions'] : []
  const broken = conditions.find((entry) => at({ entry }, 'entry', 'severity') === 'Error' && at({ entry }, 'entry', 'status') === 'False')
  if (broken !== undefined) return degraded(text(at({ broken }, 'broken', 'reason')) || 'Error', text(at({ broken }, 'broken', 'message')))
  return isTrue('Ready')(look)
}

export const DELIVERY_RULES: Readonly<Record<string, Rule>> = {
  // status.phase, spec.paused: argo-rollouts pkg/apis/rollouts/v1alpha1.
  'argoproj.io/Rollout': rollout,
  'argoproj.io/AnalysisRun': measured,
  'argoproj.io/Experiment': measured,
  // status.phase: argo-workflows WorkflowPhase.
  'argoproj.io/Workflow': unlessSpec('suspend', byPhase({ healthy: ['Succeeded'], degraded: ['Failed', 'Error'] })),
  'argoproj.io/CronWorkflow': unlessSpec(
    'suspend',
    unlessTrue(['SubmissionError', 'SpecError'], () => HEALTHY),
  ),
  // status.health.status: argo-cd HealthStatusCode.
  'argoproj.io/Application': application,
  // conditions ErrorOccurred, ResourcesUpToDate: argo-cd ApplicationSetConditionType.
  'argoproj.io/ApplicationSet': unlessTrue(['ErrorOccurred'], isTrue('ResourcesUpToDate')),
  // conditions: argo-events common Status; each of them is to be True.
  'argoproj.io/EventBus': allTrue,
  'argoproj.io/EventSource': allTrue,
  'argoproj.io/Sensor': allTrue,
  // status.phase: flagger CanaryPhase.
  'flagger.app/Canary': canary,
  // condition Ready, spec.suspend: fluxcd/pkg/apis/meta conditions.
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
  'notification.toolkit.fluxcd.io/Receiver': flux,
  // condition Succeeded: knative apis.ConditionSucceeded, as Tekton's PipelineRunStatus has it; spec.status: PipelineRunPending.
  'tekton.dev/CustomRun': tektonRun,
  'tekton.dev/PipelineRun': tektonRun,
  'tekton.dev/TaskRun': tektonRun,
  'operator.tekton.dev/TektonConfig': isTrue('Ready', { falseIs: 'Degraded', patient: ['Installing'] }),
  // conditions Installed, Healthy: crossplane apis/pkg/v1 conditions; Synced, Ready: crossplane-runtime xpv1; Established: apiextensions/v1.
  'pkg.crossplane.io/Configuration': crossplanePackage,
  'pkg.crossplane.io/Function': crossplanePackage,
  'pkg.crossplane.io/Provider': crossplanePackage,
  'apiextensions.crossplane.io/CompositeResourceDefinition': isTrue('Established'),
  'apiextensions.crossplane.io/Composition': () => HEALTHY,
  // status.phase, failureReason, failureMessage, spec.paused: cluster-api api/v1beta1; conditions Ready (v1beta1), Available (v1beta2).
  'cluster.x-k8s.io/Cluster': capiPhase(['Provisioned']),
  'cluster.x-k8s.io/Machine': capiPhase(['Running']),
  'cluster.x-k8s.io/MachineDeployment': capiPhase(['Running']),
  'cluster.x-k8s.io/MachinePool': capiPhase(['Running']),
  'cluster.x-k8s.io/MachineSet': capiBroken(replicasReady),
  'controlplane.cluster.x-k8s.io/KubeadmControlPlane': controlPlane,
  'bootstrap.cluster.x-k8s.io/KubeadmConfig': capiBroken(isTrue('Ready')),
  'addons.cluster.x-k8s.io/ClusterResourceSet': isTrue('ResourcesApplied', {
    failed: ['ApplyFailed', 'RetrievingResourceFailed', 'WrongSecretType'],
  }),
  // phases and conditions: operator-framework/api operators/v1alpha1.
  'operators.coreos.com/CatalogSource': byPhase({
    at: ['connectionState', 'lastObservedState'],
    healthy: ['READY'],
    degraded: ['TRANSIENT_FAILURE', 'SHUTDOWN'],
  }),
  'operators.coreos.com/ClusterServiceVersion': byPhase({ healthy: ['Succeeded'], degraded: ['Failed'] }),
  'operators.coreos.com/InstallPlan': byPhase({ healthy: ['Complete'], degraded: ['Failed'], suspended: ['RequiresApproval'] }),
  'operators.coreos.com/Subscription': unlessTrue(
    ['CatalogSourcesUnhealthy', 'InstallPlanFailed', 'ResolutionFailed'],
    byPhase({ at: ['state'], healthy: ['AtLatestKnown', 'UpgradeAvailable'], suspended: ['UpgradePending'] }),
  ),
  // conditions Available, Progressing, Degraded: openshift/api config/v1, tigera/operator api/v1.
  'config.openshift.io/ClusterOperator': availableProgressingDegraded,
  'operator.tigera.io/APIServer': availableProgressingDegraded,
  'operator.tigera.io/Installation': availableProgressingDegraded,
  'operator.tigera.io/TigeraStatus': availableProgressingDegraded,
  // conditions of jobs: kubeflow/training-operator JobConditionType; kubernetes-sigs/jobset; kubernetes-sigs/lws.
  'kubeflow.org/MPIJob': unlessStopped('Suspended', unlessTrue(['Failed'], isTrue('Succeeded'))),
  'kubeflow.org/PyTorchJob': unlessStopped('Suspended', unlessTrue(['Failed'], isTrue('Succeeded'))),
  'kubeflow.org/TFJob': unlessStopped('Suspended', unlessTrue(['Failed'], isTrue('Succeeded'))),
  'jobset.x-k8s.io/JobSet': unlessStopped('Suspended', unlessTrue(['Failed'], isTrue('Completed'))),
  'leaderworkerset.x-k8s.io/LeaderWorkerSet': isTrue('Available'),
  // status.state: ray-operator ClusterState; conditions Ready, status.jobDeploymentStatus.
  'ray.io/RayCluster': byPhase({ at: ['state'], message: ['reason'], healthy: ['ready'], degraded: ['failed'], suspended: ['suspended'] }),
  'ray.io/RayJob': byPhase({
    at: ['jobDeploymentStatus'],
    healthy: ['Complete'],
    degraded: ['Failed', 'ValidationFailed'],
    suspended: ['Suspended'],
  }),
  'ray.io/RayService': isTrue('Ready', { failed: ['ValidationFailed', 'FailedServe'] }),
  // status.applicationState.state, status.scheduleState: spark-operator api/v1beta2.
  'sparkoperator.k8s.io/ScheduledSparkApplication': unlessSpec(
    'suspend',
    byPhase({ at: ['scheduleState'], message: ['reason'], healthy: ['Scheduled'], degraded: ['FailedValidation'] }),
  ),
  'sparkoperator.k8s.io/SparkApplication': byPhase({
    at: ['applicationState', 'state'],
    message: ['applicationState', 'errorMessage'],
    healthy: ['COMPLETED', 'RUNNING'],
    degraded: ['FAILED', 'SUBMISSION_FAILED', 'INVALIDATING', 'UNKNOWN'],
    suspended: ['SUSPENDED'],
  }),
}

/** Whole families of kinds that speak alike, by their group. */
const FAMILIES: ReadonlyArray<readonly [suffix: string, rule: Rule]> = [
  // conditions Synced, Ready of managed resources and of what providers ship.
  ['.crossplane.io', crossplaneManaged],
  ['.upbound.io', crossplaneManaged],
  // conditions ACK.Terminal, ACK.ResourceSynced: aws-controllers-k8s/runtime.
  ['.services.k8s.aws', ack],
  // condition Ready and its reasons: GoogleCloudPlatform/k8s-config-connector.
  ['.cnrm.cloud.google.com', configConnector],
  // condition Ready with severity: azure-service-operator conditions.
  ['.azure.com', azure],
  // condition Ready, False for good: knative/pkg apis.
  ['.knative.dev', isTrue('Ready', { falseIs: 'Degraded' })],
]
/** Those families hold configuration too (ProviderConfig), which has no conditions; what is managed has a `spec.forProvider`, or a status. */
export function deliveryFamily(group: string): Rule | null {
  for (const [suffix, rule] of FAMILIES) {
    if (!group.endsWith(suffix)) continue
    const isManaged = ({ spec, status }: Look) =>
      spec['forProvider'] !== undefined || (Object.keys(status).length > 0 && status['users'] === undefined)
    return (look) => (look.conditions.length === 0 && !isManaged(look) ? HEALTHY : rule(look))
  }
  return null
}
