// What well-known controllers say of clouds, clusters and operators, by the words of their own API types, and the
// health that it means.
import { PROVISION_RULES } from '../../shared/kube/health-provision.ts'
import { conditions, nothing, paused, phase, type Row, ready, says, state, testHealthTable } from '../support/health-table.ts'

const ROWS: Row[] = [
  {
    kinds: ['Configuration', 'Function', 'Provider'].map((kind) => `pkg.crossplane.io/v1/${kind}`),
    Healthy: [says('Installed:True:ActivePackageRevision', 'Healthy:True:HealthyPackageRevision')],
    Progressing: [nothing, says('Installed:True', 'Healthy:Unknown:UnknownPackageRevisionHealth')],
    Degraded: [says('Installed:False:UnpackingPackage'), says('Installed:True', 'Healthy:False:UnhealthyPackageRevision')],
  },
  {
    kinds: ['s3.aws.upbound.io/v1beta1/Bucket', 'nop.crossplane.io/v1alpha1/NopResource'],
    Healthy: [{ spec: { forProvider: {} }, ...says('Synced:True', 'Ready:True') }],
    Progressing: [nothing, { spec: { forProvider: {} } }, says('Synced:True', 'Ready:False:Creating'), says('Synced:True')],
    Degraded: [
      says('Synced:False:ReconcileError', 'Ready:True'),
      says('Synced:True', 'LastAsyncOperation:False:CreateFailure', 'Ready:False'),
    ],
    Suspended: [
      says('Synced:False:ReconcilePaused', 'Ready:True'),
      { metadata: { annotations: { 'crossplane.io/paused': 'true' } }, ...says('Synced:True', 'Ready:True') },
    ],
  },
  {
    // Configuration has no conditions, whatever its provider.
    kinds: [
      'aws.upbound.io/v1beta1/ProviderConfig',
      'kubernetes.crossplane.io/v1alpha1/ProviderConfigUsage',
      'apiextensions.crossplane.io/v1beta1/EnvironmentConfig',
    ],
    Healthy: [nothing, { status: { users: 3 } }],
  },
  {
    // A claim, in whatever group its author chose.
    kinds: ['platform.example.org/v1/Database'],
    Healthy: [says('Synced:True', 'Ready:True')],
    Progressing: [says('Synced:True', 'Ready:False:Waiting')],
    Degraded: [says('Synced:False:ReconcileError', 'Ready:False:Waiting')],
  },
  {
    kinds: ['apiextensions.crossplane.io/v1/CompositeResourceDefinition'],
    Healthy: [says('Established:True')],
    Progressing: [nothing, says('Established:False:Creating')],
  },
  { kinds: ['apiextensions.crossplane.io/v1/Composition'], Healthy: [nothing] },
  {
    kinds: ['cluster.x-k8s.io/v1beta1/Cluster'],
    Healthy: [phase('Provisioned')],
    Progressing: [
      nothing,
      phase('Pending'),
      { status: { phase: 'Provisioning', ...conditions('Ready:True') } },
      { status: { phase: 'Provisioned', ...conditions('Available:False:NotAvailable', 'RollingOut:True') } },
    ],
    Degraded: [
      phase('Failed'),
      { status: { phase: 'Provisioning', failureReason: 'CreateError', failureMessage: 'no quota' } },
      { status: { phase: 'Provisioned', conditions: [{ type: 'Ready', status: 'False', severity: 'Error', reason: 'Unreachable' }] } },
    ],
    Suspended: [paused],
  },
  {
    kinds: ['Machine', 'MachineDeployment', 'MachinePool'].map((kind) => `cluster.x-k8s.io/v1beta1/${kind}`),
    Healthy: [phase('Running')],
    Progressing: [nothing, phase('Provisioning'), phase('ScalingUp')],
    Degraded: [phase('Failed'), { status: { phase: 'Running', failureReason: 'UpdateError' } }],
    Suspended: [paused],
  },
  {
    kinds: ['cluster.x-k8s.io/v1beta1/MachineSet'],
    Healthy: [{ spec: { replicas: 2 }, status: { readyReplicas: 2 } }],
    Progressing: [{ spec: { replicas: 2 }, status: { readyReplicas: 1 } }],
    Degraded: [{ spec: { replicas: 0 }, status: { failureReason: 'InvalidConfiguration' } }],
  },
  {
    kinds: ['AWSManagedControlPlane', 'KubeadmControlPlane'].map((kind) => `controlplane.cluster.x-k8s.io/v1beta1/${kind}`),
    Healthy: [says('Available:True', 'Ready:False'), says('Ready:True')],
    Progressing: [nothing, says('Available:False:WaitingForKubeadmInit')],
    Degraded: [{ status: { failureReason: 'UnsupportedChange' } }],
  },
  {
    kinds: ['bootstrap.cluster.x-k8s.io/v1beta1/KubeadmConfig'],
    ...ready,
    Degraded: [{ status: { failureMessage: 'x', failureReason: 'CreateError' } }],
  },
  {
    kinds: ['addons.cluster.x-k8s.io/v1beta1/ClusterResourceSet'],
    Healthy: [says('ResourcesApplied:True')],
    Progressing: [nothing, says('ResourcesApplied:False')],
    Degraded: [says('ResourcesApplied:False:ApplyFailed'), says('ResourcesApplied:False:RemoteClusterClientFailed')],
  },
  {
    kinds: ['operators.coreos.com/v1alpha1/CatalogSource'],
    Healthy: [{ status: { connectionState: { lastObservedState: 'READY' } } }],
    Progressing: [nothing, { status: { connectionState: { lastObservedState: 'CONNECTING' } } }],
    Degraded: [{ status: { connectionState: { lastObservedState: 'TRANSIENT_FAILURE' } } }],
  },
  {
    kinds: ['operators.coreos.com/v1alpha1/ClusterServiceVersion'],
    Healthy: [phase('Succeeded')],
    Progressing: [nothing, phase('Installing')],
    Degraded: [phase('Failed')],
  },
  {
    kinds: ['operators.coreos.com/v1alpha1/InstallPlan'],
    Healthy: [phase('Complete')],
    Progressing: [nothing, phase('Installing')],
    Degraded: [phase('Failed')],
    Suspended: [phase('RequiresApproval')],
  },
  {
    kinds: ['operators.coreos.com/v1alpha1/Subscription'],
    Healthy: [state('AtLatestKnown')],
    Progressing: [
      nothing,
      { status: { state: 'AtLatestKnown', ...conditions('BundleUnpacking:True') } },
      { status: { state: 'AtLatestKnown', ...conditions('InstallPlanPending:True:Installing') } },
    ],
    Degraded: [
      { status: { state: 'AtLatestKnown', ...conditions('InstallPlanFailed:True') } },
      { status: { state: 'UpgradePending', ...conditions('BundleUnpackFailed:True:ErrorPreventedUnpacking') } },
    ],
    Suspended: [
      state('UpgradePending'),
      { status: { state: 'UpgradeAvailable', ...conditions('InstallPlanPending:True:RequiresApproval') } },
    ],
  },
  {
    kinds: ['ServiceBinding', 'ServiceInstance'].map((kind) => `services.cloud.sap.com/v1/${kind}`),
    Healthy: [says('Succeeded:True:Created', 'Ready:True:Provisioned')],
    Progressing: [
      nothing,
      says('Succeeded:False:CreateInProgress', 'Ready:False:NotProvisioned'),
      says('Succeeded:False:UpdateInProgress', 'Ready:True:Provisioned'),
      says('Succeeded:False:Blocked:the instance is not ready', 'Ready:False:NotProvisioned'),
    ],
    Degraded: [says('Succeeded:False:UpdateFailed', 'Failed:True:UpdateFailed', 'Ready:True:Provisioned')],
  },
  {
    kinds: [
      'config.openshift.io/v1/ClusterOperator',
      'config.openshift.io/v1/ClusterVersion',
      'operator.openshift.io/v1/IngressController',
      'ocs.openshift.io/v1/StorageCluster',
      ...['APIServer', 'Installation', 'TigeraStatus'].map((kind) => `operator.tigera.io/v1/${kind}`),
    ],
    Healthy: [says('Available:True', 'Progressing:False', 'Degraded:False')],
    Progressing: [nothing, says('Available:True', 'Progressing:True', 'Degraded:False'), says('Available:False', 'Progressing:False')],
    Degraded: [says('Available:True', 'Progressing:True', 'Degraded:True:ResourceNotReady')],
  },
  {
    kinds: ['s3.services.k8s.aws/v1alpha1/Bucket'],
    Healthy: [says('ACK.ResourceSynced:True')],
    Progressing: [{ status: { ackResourceMetadata: {} } }, says('ACK.ResourceSynced:False')],
    Degraded: [
      says('ACK.ResourceSynced:True', 'ACK.Terminal:True::the name is taken'),
      says('ACK.ResourceSynced:False', 'ACK.Recoverable:True::access denied'),
    ],
  },
  {
    kinds: ['storage.cnrm.cloud.google.com/v1beta1/StorageBucket'],
    ...ready,
    Progressing: [nothing, says('Ready:False:Updating'), says('Ready:False:DependencyNotReady')],
    Degraded: [says('Ready:False:UpdateFailed'), says('Ready:False:DependencyNotFound'), says('Ready:False:ManagementConflict')],
  },
  {
    kinds: ['storage.azure.com/v1api20230101/StorageAccount'],
    Healthy: [says('Ready:True')],
    Progressing: [says('Ready:False:Reconciling')],
    Degraded: [{ status: { conditions: [{ type: 'Ready', status: 'False', severity: 'Error', reason: 'BadRequest', message: 'no' }] } }],
  },
  {
    kinds: ['serving.knative.dev/v1/Service', 'eventing.knative.dev/v1/Broker'],
    ...ready,
    Progressing: [says('Ready:Unknown')],
    Degraded: [says('Ready:False:RevisionFailed')],
  },
  {
    kinds: ['ConfigurationRevision', 'FunctionRevision', 'ProviderRevision'].map((kind) => `pkg.crossplane.io/v1/${kind}`),
    Healthy: [says('RevisionHealthy:True:HealthyPackageRevision'), { spec: { desiredState: 'Inactive' } }],
    Progressing: [nothing, says('RevisionHealthy:True', 'RuntimeHealthy:Unknown')],
    Degraded: [says('RevisionHealthy:False:UnhealthyPackageRevision')],
  },
  {
    kinds: ['stacks.crossplane.io/v1alpha1/ClusterStackInstall'],
    Healthy: [{ status: { conditionedStatus: conditions('Ready:True', 'Synced:True') } }],
    Progressing: [nothing, { status: { conditionedStatus: conditions('Ready:False:Creating', 'Synced:True') } }],
    Degraded: [{ status: { conditionedStatus: conditions('Ready:True', 'Synced:False:ReconcileError') } }],
  },
  {
    kinds: ['ConfigConnector', 'ConfigConnectorContext'].map((kind) => `core.cnrm.cloud.google.com/v1beta1/${kind}`),
    Healthy: [{ status: { healthy: true } }],
    Progressing: [nothing, { status: { healthy: false } }],
    Degraded: [{ status: { healthy: false, errors: ['the service account does not exist'] } }],
  },
  {
    kinds: ['cluster.x-k8s.io/v1beta1/MachineHealthCheck'],
    Healthy: [{ status: { expectedMachines: 2, currentHealthy: 2, ...conditions('RemediationAllowed:True') } }],
    Progressing: [nothing, { status: { expectedMachines: 2, currentHealthy: 1 } }],
    Degraded: [{ status: { expectedMachines: 2, ...conditions('RemediationAllowed:False:TooManyUnhealthy') } }],
  },
  {
    kinds: ['anywhere.eks.amazonaws.com/v1alpha1/Cluster'],
    Healthy: [says('ControlPlaneReady:True', 'Ready:True')],
    Progressing: [nothing, says('Ready:False:ScalingUp'), says('Ready:False:OutdatedInformation')],
    Degraded: [{ status: { failureMessage: 'dependent cluster objects do not exist', ...conditions('Ready:False') } }],
  },
  {
    kinds: ['packages.eks.amazonaws.com/v1alpha1/Package'],
    Healthy: [state('installed')],
    Progressing: [nothing, state('installing dependencies')],
    Suspended: [paused],
  },
  {
    kinds: ['machineconfiguration.openshift.io/v1/MachineConfigPool'],
    Healthy: [says('Updated:True', 'Updating:False', 'Degraded:False')],
    Progressing: [nothing, says('Updated:False', 'Updating:True', 'Degraded:False')],
    Degraded: [says('Updated:False', 'Degraded:True:1 node is reporting')],
    Suspended: [paused],
  },
  {
    kinds: ['CertificatePolicy', 'ConfigurationPolicy', 'OperatorPolicy', 'Policy'].map(
      (kind) => `policy.open-cluster-management.io/v1/${kind}`,
    ),
    Healthy: [{ status: { compliant: 'Compliant' } }],
    Progressing: [
      nothing,
      { status: { compliant: 'Pending' } },
      { metadata: { generation: 3 }, status: { compliant: 'NonCompliant', lastEvaluatedGeneration: 2 } },
    ],
    Degraded: [{ status: { compliant: 'NonCompliant' } }],
    Suspended: [{ spec: { disabled: true } }],
  },
  {
    kinds: ['ClusterResourceBinding', 'ResourceBinding'].map((kind) => `work.karmada.io/v1alpha2/${kind}`),
    Healthy: [says('Scheduled:True', 'FullyApplied:True')],
    Progressing: [nothing, says('Scheduled:True'), says('Scheduled:True', 'FullyApplied:False')],
    Degraded: [says('Scheduled:False:NoClusterFit')],
  },
  {
    kinds: ['nmstate.io/v1/NodeNetworkConfigurationPolicy'],
    Healthy: [says('Available:True:SuccessfullyConfigured', 'Degraded:False', 'Progressing:False')],
    Progressing: [nothing, says('Available:Unknown', 'Degraded:Unknown', 'Progressing:True:ConfigurationProgressing')],
    Degraded: [says('Available:False', 'Degraded:True:FailedToConfigure')],
    Suspended: [says('Available:False:NoMatchingNode', 'Ignored:True:NoMatchingNode')],
  },
]

testHealthTable(
  ROWS,
  PROVISION_RULES,
  ['apiextensions.crossplane.io/Composition', 'apiextensions.crossplane.io/CompositeResourceDefinition'],
  40,
)
