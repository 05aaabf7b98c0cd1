// Kinds whose controllers report nothing while all is well: configuration that other objects refer to. Their CRDs have
// a status subresource or may get one, so that only this list tells them from kinds whose status is still to come. What
// they do report counts. Each row names where the API says what its status is for.
import { generalHealth } from './health-general.ts'
import { HEALTHY, type Rule } from './health-object.ts'

/** HE19: a controller that reports nothing while it works has not finished. */
const silent: Rule = (reading) => {
  const health = generalHealth(reading)
  return health.reason === 'NotReported' || health.reason === 'NotUnderstood' ? HEALTHY : health
}

const KINDS: ReadonlyArray<readonly [group: string, kinds: readonly string[]]> = [
  // argo-rollouts and argo-workflows: templates have no status.
  ['argoproj.io', ['AnalysisTemplate', 'ClusterAnalysisTemplate', 'WorkflowEventBinding']],
  // trident protect, formerly astra-connector: a schedule only says when it ran, a hook is read by its runs.
  ['astra.netapp.io', ['ExecHook', 'Schedule']],
  ['protect.trident.netapp.io', ['ExecHook', 'Schedule']],
  // cilium: a condition Valid since 1.16, per-node results before.
  ['cilium.io', ['CiliumClusterwideNetworkPolicy', 'CiliumLoadBalancerIPPool', 'CiliumNetworkPolicy']],
  // kong: a condition Programmed where the controller is new enough.
  ['configuration.konghq.com', ['KongClusterPlugin', 'KongConsumer', 'KongIngress', 'KongPlugin', 'KongUpstreamPolicy']],
  // gateway-api: ReferenceGrant has no status.
  ['gateway.networking.k8s.io', ['ReferenceGrant']],
  // keda: the status of an authentication lists its users.
  ['keda.sh', ['ClusterTriggerAuthentication', 'TriggerAuthentication']],
  // kyverno: exceptions and clean-ups report only their last run.
  ['kyverno.io', ['CleanupPolicy', 'ClusterCleanupPolicy', 'PolicyException']],
  // metallb: pools count addresses, advertisements report nothing.
  ['metallb.io', ['BFDProfile', 'BGPAdvertisement', 'BGPPeer', 'Community', 'IPAddressPool', 'L2Advertisement']],
  // prometheus-operator: bindings are written only with the feature gate StatusForConfigurationResources.
  ['monitoring.coreos.com', ['AlertmanagerConfig', 'PodMonitor', 'Probe', 'PrometheusRule', 'ScrapeConfig', 'ServiceMonitor']],
  // opentelemetry-operator: an Instrumentation is read when a Pod is made.
  ['opentelemetry.io', ['Instrumentation']],
  // cloudnative-pg: catalogues are read by clusters.
  ['postgresql.cnpg.io', ['ClusterImageCatalog', 'ImageCatalog']],
  // secrets-store-csi-driver: a class is read when a Pod mounts it.
  ['secrets-store.csi.x-k8s.io', ['SecretProviderClass']],
  // tekton triggers: templates and bindings are read by an EventListener.
  ['triggers.tekton.dev', ['ClusterTriggerBinding', 'Interceptor', 'Trigger', 'TriggerBinding', 'TriggerTemplate']],
  // velero: a location of volume snapshots is not probed.
  ['velero.io', ['VolumeSnapshotLocation']],
]
/** Istio writes a status only with its analysis turned on; generators and Traefik’s and Calico’s resources are read by
 *  others. */
export const SILENT_GROUPS: ReadonlySet<string> = new Set([
  'crd.projectcalico.org',
  'extensions.istio.io',
  'generators.external-secrets.io',
  'networking.istio.io',
  'projectcalico.org',
  'security.istio.io',
  'telemetry.istio.io',
  'traefik.io',
])

export const SILENT_RULES: Readonly<Record<string, Rule>> = Object.fromEntries(
  KINDS.flatMap(([group, kinds]) => kinds.map((kind) => [`${group}/${kind}`, silent] as const)),
)
export const silentGroup = (group: string): Rule | null => (SILENT_GROUPS.has(group) ? silent : null)
