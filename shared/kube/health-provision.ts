// Health of kinds that provision what is outside of a cluster, clusters themselves, and operators: Crossplane, cloud
// controllers, Cluster API, OLM, OpenShift. Each row names the field that it reads and where that field is documented;
// the rows follow the types of those APIs, not another tool's table.
import {
  availableProgressingDegraded,
  bothOf,
  byPhase,
  conditionsTogether,
  isTrue,
  notReported,
  readySummary,
  statusTogether,
  unlessFalse,
  unlessSaid,
  unlessTrue,
} from './health-conditions.ts'
import { byConditions, byCounters, failedBy, waitsFor } from './health-general.ts'
import { HEALTHY, oneLine, progressing, type Rule, suspended } from './health-object.ts'

/** A revision that is not the active one runs nothing. */
const packageRevision: Rule = (reading) => (reading.spec['desiredState'] === 'Inactive' ? HEALTHY : conditionsTogether(reading))
const crossplanePackage = unlessFalse(['Installed'], isTrue('Healthy'))
/** A condition Synced or LastAsyncOperation that is False names the cloud's own error. */
const crossplaneManaged = unlessFalse(['Synced', 'LastAsyncOperation'], isTrue('Ready'))

/** ProviderConfig, StoreConfig, ProviderConfigUsage, Composition: configuration without conditions, whatever the
 *  provider. */
const isCrossplaneConfiguration = (kind: string): boolean =>
  kind.endsWith('Config') || kind.endsWith('ConfigUsage') || kind === 'Composition' || kind === 'CompositionRevision' || kind === 'Lock'
const crossplaneFamily: Rule = (reading) => {
  if (reading.conditions.length === 0 && isCrossplaneConfiguration(reading.kind)) return HEALTHY
  if (reading.conditions.length > 0 || reading.spec['forProvider'] !== undefined) return crossplaneManaged(reading)
  return statusTogether(reading)
}

const capiBroken = (rule: Rule): Rule => unlessSaid(['failureReason'], ['failureMessage'], 'Failed', rule)
/** Conditions explain a phase: one of severity Error ends no wait by itself. */
const capiPhase = (...healthy: string[]): Rule => {
  const phase = byPhase({ healthy, degraded: ['Failed'], message: ['failureMessage'] })
  return capiBroken((reading) => {
    // The summary: Available since v1beta2, Ready before.
    const available = reading.condition('Available')
    const conditions = byConditions(available === undefined ? reading.conditions : [available], reading.generation)
    if (conditions?.word === 'Degraded' || conditions?.word === 'Suspended') return conditions
    const found = phase(reading)
    return found.word === 'Healthy' && conditions !== null ? conditions : found
  })
}
const capiSet: Rule = capiBroken(
  bothOf(
    ({ status, spec }) => byCounters({ ...status, readyReplicas: status['readyReplicas'] ?? 0 }, spec) ?? HEALTHY,
    (reading) => byConditions(reading.conditions, reading.generation) ?? HEALTHY,
  ),
)
const controlPlane: Rule = capiBroken((reading) =>
  reading.condition('Available') === undefined ? readySummary(reading) : isTrue('Available')(reading),
)
/** RemediationAllowed is False when too many machines are unhealthy to continue. */
const machineHealthCheck: Rule = unlessFalse(['RemediationAllowed'], ({ status }) => {
  const [expected, healthy] = [status['expectedMachines'], status['currentHealthy'] ?? 0]
  if (expected === undefined) return notReported('status.expectedMachines')
  if (typeof expected === 'number' && typeof healthy === 'number' && healthy < expected)
    return progressing('LessHealthy', `${healthy} of ${expected} machines are healthy`)
  return HEALTHY
})

/** ACK.Terminal does not end by itself; ACK.Recoverable is the cloud's error, tried again; ACK.ResourceSynced is False
 *  while it waits. */
const ack: Rule = unlessTrue(['ACK.Terminal', 'ACK.Recoverable'], (reading) =>
  reading.condition('ACK.Adopted') === undefined ? isTrue('ACK.ResourceSynced')(reading) : isTrue('ACK.Adopted')(reading),
)

/** The verdict of Open Cluster Management's policies; a policy that was not evaluated for this generation says nothing
 *  of it. */
const compliance: Rule = (reading) => {
  const { status, spec, generation = 0 } = reading
  if (spec['disabled'] === true) return suspended('spec.disabled is true')
  const evaluated = status['lastEvaluatedGeneration']
  if (typeof evaluated === 'number' && evaluated < generation)
    return progressing('GenerationNotObserved', `generation ${evaluated} of ${generation} was evaluated`)
  return byPhase({ at: ['compliant'], healthy: ['Compliant'], degraded: ['NonCompliant'] })(reading)
}

/** A plan that waits for a person is a stop. */
const subscription: Rule = unlessTrue(
  ['CatalogSourcesUnhealthy', 'InstallPlanFailed', 'InstallPlanMissing', 'ResolutionFailed', 'BundleUnpackFailed'],
  (reading) => {
    const pending = reading.condition('InstallPlanPending')
    if (pending?.status === 'True' && pending.reason === 'RequiresApproval') return suspended('its InstallPlan waits for approval')
    const moving = pending?.status === 'True' ? pending : reading.condition('BundleUnpacking')
    if (moving?.status === 'True') return waitsFor(moving)
    return byPhase({ at: ['state'], healthy: ['AtLatestKnown', 'UpgradeAvailable'], suspended: ['UpgradePending'] })(reading)
  },
)

/** Succeeded is about the last operation; Ready stays True while an update runs or has failed. */
const sapService: Rule = unlessTrue(['Failed'], (reading) => {
  const last = reading.condition('Succeeded')
  if (last?.status === 'False') return last.reason.endsWith('Failed') ? failedBy(last) : waitsFor(last)
  return isTrue('Ready')(reading)
})

export const PROVISION_RULES: Readonly<Record<string, Rule>> = {
  // conditions Installed, Healthy, RevisionHealthy, RuntimeHealthy: crossplane apis/pkg/v1; Established:
  // apiextensions/v1.
  'pkg.crossplane.io/Configuration': crossplanePackage,
  'pkg.crossplane.io/ConfigurationRevision': packageRevision,
  'pkg.crossplane.io/Function': crossplanePackage,
  'pkg.crossplane.io/FunctionRevision': packageRevision,
  'pkg.crossplane.io/Provider': crossplanePackage,
  'pkg.crossplane.io/ProviderRevision': packageRevision,
  'apiextensions.crossplane.io/CompositeResourceDefinition': isTrue('Established'),
  'apiextensions.crossplane.io/Composition': () => HEALTHY,
  // status.conditionedStatus.conditions: crossplane stacks.crossplane.io/v1alpha1.
  'stacks.crossplane.io/ClusterStackInstall': statusTogether,
  // status.healthy, status.errors: k8s-config-connector apis/core/v1beta1.
  'core.cnrm.cloud.google.com/ConfigConnector': statusTogether,
  'core.cnrm.cloud.google.com/ConfigConnectorContext': statusTogether,
  // status.phase, failureReason, failureMessage, spec.paused: cluster-api api/v1beta1; conditions Ready (v1beta1, with
  // severity), Available (v1beta2).
  'cluster.x-k8s.io/Cluster': capiPhase('Provisioned'),
  'cluster.x-k8s.io/Machine': capiPhase('Running'),
  'cluster.x-k8s.io/MachineDeployment': capiPhase('Running'),
  'cluster.x-k8s.io/MachineHealthCheck': machineHealthCheck,
  'cluster.x-k8s.io/MachinePool': capiPhase('Running'),
  'cluster.x-k8s.io/MachineSet': capiSet,
  'controlplane.cluster.x-k8s.io/AWSManagedControlPlane': controlPlane,
  'controlplane.cluster.x-k8s.io/KubeadmControlPlane': controlPlane,
  'bootstrap.cluster.x-k8s.io/KubeadmConfig': capiBroken(isTrue('Ready')),
  'addons.cluster.x-k8s.io/ClusterResourceSet': isTrue('ResourcesApplied', {
    failed: ['ApplyFailed', 'RetrievingResourceFailed', 'WrongSecretType'],
  }),
  // conditions Ready, ControlPlaneReady, WorkersReady, status.failureMessage: eks-anywhere pkg/api/v1alpha1;
  // status.state: eks-anywhere-packages api/v1alpha1.
  'anywhere.eks.amazonaws.com/Cluster': unlessSaid(['failureMessage'], ['failureMessage'], 'Failed', readySummary),
  'packages.eks.amazonaws.com/Package': byPhase({ at: ['state'], message: ['detail'], healthy: ['installed'] }),
  // phases and conditions: operator-framework/api operators/v1alpha1.
  'operators.coreos.com/CatalogSource': byPhase({
    at: ['connectionState', 'lastObservedState'],
    healthy: ['READY'],
    degraded: ['TRANSIENT_FAILURE', 'SHUTDOWN'],
  }),
  'operators.coreos.com/ClusterServiceVersion': byPhase({ healthy: ['Succeeded'], degraded: ['Failed'] }),
  'operators.coreos.com/InstallPlan': byPhase({ healthy: ['Complete'], degraded: ['Failed'], suspended: ['RequiresApproval'] }),
  'operators.coreos.com/Subscription': subscription,
  // conditions Succeeded, Failed, Ready; reasons CreateInProgress, CreateFailed, Blocked: sap-btp-service-operator
  // api/v1.
  'services.cloud.sap.com/ServiceBinding': sapService,
  'services.cloud.sap.com/ServiceInstance': sapService,
  // conditions Available, Progressing, Degraded: openshift/api config/v1, operator/v1; tigera/operator api/v1;
  // ocs-operator api/v1.
  'config.openshift.io/ClusterOperator': availableProgressingDegraded,
  'config.openshift.io/ClusterVersion': availableProgressingDegraded,
  'operator.openshift.io/IngressController': availableProgressingDegraded,
  'operator.tigera.io/APIServer': availableProgressingDegraded,
  'operator.tigera.io/Installation': availableProgressingDegraded,
  'operator.tigera.io/TigeraStatus': availableProgressingDegraded,
  'ocs.openshift.io/StorageCluster': availableProgressingDegraded,
  // conditions Updated, Updating, Degraded: openshift/api machineconfiguration/v1.
  'machineconfiguration.openshift.io/MachineConfigPool': unlessTrue(['Degraded', 'RenderDegraded', 'NodeDegraded'], isTrue('Updated')),
  // status.compliant, status.lastEvaluatedGeneration, spec.disabled: open-cluster-management config-policy-controller
  // api/v1, governance-policy-propagator api/v1.
  'policy.open-cluster-management.io/CertificatePolicy': compliance,
  'policy.open-cluster-management.io/ConfigurationPolicy': compliance,
  'policy.open-cluster-management.io/OperatorPolicy': compliance,
  'policy.open-cluster-management.io/Policy': compliance,
  // conditions Scheduled, FullyApplied: karmada pkg/apis/work/v1alpha2.
  'work.karmada.io/ClusterResourceBinding': unlessFalse(['Scheduled'], isTrue('FullyApplied')),
  'work.karmada.io/ResourceBinding': unlessFalse(['Scheduled'], isTrue('FullyApplied')),
  // conditions Available, Progressing, Degraded, Ignored (no node matches): kubernetes-nmstate api/shared.
  'nmstate.io/NodeNetworkConfigurationPolicy': (reading) => {
    const ignored = reading.condition('Ignored')
    if (ignored?.status === 'True') return suspended(oneLine(ignored.message) || 'condition Ignored is True: no node matches')
    return availableProgressingDegraded(reading)
  },
}

/** Whole families of kinds with equal statuses, by the ending of their group; the first match. */
export const FAMILIES: ReadonlyArray<readonly [suffix: string, rule: Rule]> = [
  // conditions Synced, Ready, LastAsyncOperation: crossplane-runtime apis/common/v1; upjet.
  ['.crossplane.io', crossplaneFamily],
  ['.upbound.io', crossplaneFamily],
  // conditions ACK.Terminal, ACK.Recoverable, ACK.ResourceSynced, ACK.Adopted: aws-controllers-k8s/runtime.
  ['.services.k8s.aws', ack],
  // condition Ready and its reasons (UpToDate, Updating, UpdateFailed, DependencyNotFound): Config Connector's
  // reference of conditions.
  ['.cnrm.cloud.google.com', isTrue('Ready')],
  // condition Ready with severity: azure-service-operator conditions.
  ['.azure.com', isTrue('Ready')],
  // condition Ready: the operator waits for its Deployments with False; everywhere else in Knative False is final
  // (knative/pkg apis).
  ['operator.knative.dev', isTrue('Ready')],
  ['.knative.dev', isTrue('Ready', { falseIs: 'Degraded' })],
]
export function familyRule(group: string): Rule | null {
  for (const [suffix, rule] of FAMILIES) if (group.endsWith(suffix)) return rule
  return null
}
