// A document for each thing that a well-known controller says, by the words of its own API types.
import { expect, test } from 'bun:test'
import { healthOf } from '../../shared/kube/health.ts'
import { PLATFORM_RULES } from '../../shared/kube/health-platform.ts'
import {
  conditions,
  nothing,
  objectOf,
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

const strimzi = (kind: string) => `kafka.strimzi.io/v1beta2/${kind}`
const elastic = (kind: string) => `${kind.toLowerCase().replace('server', '')}.k8s.elastic.co/v1/${kind}`
const parents = (...each: Part[]): Part => ({ status: { parents: each } })

const ROWS: Row[] = [
  {
    kinds: ['Order', 'Challenge'].map((kind) => `acme.cert-manager.io/v1/${kind}`),
    Healthy: [state('valid'), state('ready')],
    Progressing: [nothing, state('pending'), state('processing')],
    Degraded: [state('invalid'), state('expired'), state('errored')],
  },
  {
    kinds: ['cert-manager.io/v1/Certificate'],
    Healthy: [says('Ready:True'), says('Ready:True', 'Issuing:False:Issued')],
    Progressing: [nothing, says('Ready:False:DoesNotExist', 'Issuing:True:DoesNotExist'), says('Ready:True', 'Issuing:True:Renewing')],
    Degraded: [says('Ready:False:DoesNotExist', 'Issuing:False:Failed:the order is invalid')],
  },
  {
    kinds: ['cert-manager.io/v1/CertificateRequest'],
    Healthy: [says('Approved:True', 'Ready:True:Issued')],
    Progressing: [nothing, says('Approved:True', 'Ready:False:Pending')],
    Degraded: [says('Ready:False:Failed'), says('Denied:True:Policy'), says('InvalidRequest:True')],
  },
  {
    kinds: ['cert-manager.io/v1/Issuer', 'cert-manager.io/v1/ClusterIssuer'],
    ...ready,
    Degraded: [says('Ready:False:ErrRegisterACMEAccount')],
  },
  {
    kinds: ['trust.cert-manager.io/v1alpha1/Bundle'],
    Healthy: [says('Synced:True')],
    Progressing: [nothing],
    Degraded: [says('Synced:False:SourceNotFound')],
  },
  {
    kinds: ['ClusterExternalSecret', 'ClusterSecretStore', 'ExternalSecret', 'PushSecret', 'SecretStore'].map(
      (kind) => `external-secrets.io/v1/${kind}`,
    ),
    ...ready,
    Degraded: [says('Ready:False:SecretSyncedError:could not get secret data from provider')],
  },
  {
    kinds: ['bitnami.com/v1alpha1/SealedSecret'],
    Healthy: [says('Synced:True')],
    Progressing: [nothing],
    Degraded: [says('Synced:False::no key could decrypt secret')],
  },
  {
    kinds: ['keda.sh/v1alpha1/ScaledObject', 'keda.sh/v1alpha1/ScaledJob'],
    Healthy: [says('Ready:True', 'Active:False:ScalerNotActive', 'Fallback:False', 'Paused:False')],
    Progressing: [nothing, says('Ready:Unknown')],
    Degraded: [says('Ready:False:ScaledObjectCheckFailed')],
    Suspended: [says('Ready:True', 'Paused:True:ScaledObjectPaused')],
  },
  {
    kinds: ['GRPCRoute', 'HTTPRoute', 'TCPRoute', 'TLSRoute', 'UDPRoute'].map((kind) => `gateway.networking.k8s.io/v1/${kind}`),
    Healthy: [parents(conditions('Accepted:True', 'ResolvedRefs:True'), conditions('Accepted:True'))],
    Progressing: [
      nothing,
      parents(conditions('ResolvedRefs:True')),
      parents(conditions('Accepted:True'), conditions('Accepted:Unknown:Pending')),
    ],
    Degraded: [
      parents(conditions('Accepted:True'), conditions('Accepted:False:NotAllowedByListeners')),
      parents(conditions('Accepted:True', 'ResolvedRefs:False:BackendNotFound')),
    ],
  },
  {
    kinds: ['gateway.networking.k8s.io/v1/BackendTLSPolicy'],
    Healthy: [{ status: { ancestors: [conditions('Accepted:True')] } }],
    Progressing: [nothing],
    Degraded: [{ status: { ancestors: [conditions('Accepted:False:Invalid')] } }],
  },
  {
    kinds: ['gateway.networking.k8s.io/v1/Gateway'],
    Healthy: [says('Accepted:True', 'Programmed:True'), says('Accepted:True', 'Programmed:False:AddressNotAssigned')],
    Progressing: [
      nothing,
      says('Accepted:Unknown:Pending', 'Programmed:Unknown:Pending'),
      says('Accepted:True', 'Programmed:False:Pending'),
    ],
    Degraded: [says('Accepted:False:InvalidParameters', 'Programmed:Unknown'), says('Accepted:True', 'Programmed:False:NoResources')],
  },
  {
    kinds: ['gateway.networking.k8s.io/v1/GatewayClass'],
    Healthy: [says('Accepted:True')],
    Progressing: [nothing, says('Accepted:Unknown:Pending')],
    Degraded: [says('Accepted:False:InvalidParameters')],
  },
  {
    kinds: ['Kafka', 'KafkaBridge', 'KafkaConnect', 'KafkaConnector', 'KafkaMirrorMaker2', 'KafkaTopic', 'KafkaUser'].map(strimzi),
    Healthy: [says('Warning:True:x', 'Ready:True')],
    Progressing: [nothing, says('NotReady:True:Creating')],
    Degraded: [says('NotReady:True:InvalidResourceException')],
    Suspended: [says('ReconciliationPaused:True')],
  },
  {
    kinds: [strimzi('KafkaRebalance')],
    Healthy: [says('Ready:True')],
    Progressing: [nothing, says('PendingProposal:True'), says('Rebalancing:True')],
    Degraded: [says('NotReady:True:CruiseControlRestException')],
    Suspended: [says('ProposalReady:True'), says('Stopped:True')],
  },
  {
    kinds: ['Alertmanager', 'Prometheus', 'PrometheusAgent', 'ThanosRuler'].map((kind) => `monitoring.coreos.com/v1/${kind}`),
    Healthy: [says('Available:True', 'Reconciled:True')],
    Progressing: [
      nothing,
      says('Available:False:NoPodReady', 'Reconciled:True'),
      says('Available:Degraded:SomePodsNotReady', 'Reconciled:True'),
    ],
    Degraded: [says('Available:True', 'Reconciled:False:ReconciliationFailed')],
    Suspended: [paused],
  },
  {
    kinds: ['postgresql.cnpg.io/v1/Backup'],
    Healthy: [phase('completed')],
    Progressing: [nothing, phase('running')],
    Degraded: [{ status: { phase: 'failed', error: 'no space' } }],
  },
  {
    kinds: ['postgresql.cnpg.io/v1/Cluster'],
    Healthy: [{ status: { phase: 'Cluster in healthy state', ...conditions('Ready:True') } }, phase('Cluster in healthy state')],
    Progressing: [nothing, { status: { phase: 'Setting up primary', ...conditions('Ready:False:ClusterIsNotReady') } }],
    Degraded: [{ status: { phase: 'Cluster is in an unrecoverable state, needs manual intervention', ...conditions('Ready:False') } }],
    Suspended: [{ metadata: { annotations: { 'cnpg.io/hibernation': 'on' } } }, phase('Waiting for user action')],
  },
  {
    kinds: ['postgresql.cnpg.io/v1/Database'],
    Healthy: [{ status: { applied: true } }],
    Progressing: [nothing, { status: { applied: false } }],
    Degraded: [{ status: { applied: false, message: 'role does not exist' } }],
  },
  { kinds: ['postgresql.cnpg.io/v1/ScheduledBackup'], Healthy: [nothing], Suspended: [suspended] },
  {
    kinds: ['acid.zalan.do/v1/postgresql'],
    Healthy: [{ status: { PostgresClusterStatus: 'Running' } }],
    Progressing: [nothing, { status: { PostgresClusterStatus: 'Updating' } }],
    Degraded: ['CreateFailed', 'UpdateFailed', 'SyncFailed', 'Invalid'].map((word) => ({ status: { PostgresClusterStatus: word } })),
  },
  {
    kinds: ['CephBlockPool', 'CephCluster', 'CephFilesystem', 'CephObjectStore'].map((kind) => `ceph.rook.io/v1/${kind}`),
    Healthy: [phase('Ready')],
    Progressing: [nothing, phase('Progressing')],
    Degraded: [phase('Failure')],
  },
  {
    kinds: ['ceph.rook.io/v1/CephCluster'],
    Healthy: [{ status: { phase: 'Ready', ceph: { health: 'HEALTH_WARN' } } }],
    Degraded: [{ status: { phase: 'Ready', ceph: { health: 'HEALTH_ERR' } } }],
  },
  {
    kinds: ['Agent', 'ApmServer', 'Beat', 'Kibana', 'Logstash'].map(elastic),
    Healthy: [{ status: { health: 'green' } }],
    Progressing: [nothing, { status: { health: 'unknown' } }],
    Degraded: [{ status: { health: 'red' } }],
  },
  {
    kinds: [elastic('Elasticsearch')],
    Healthy: [{ status: { phase: 'Ready', health: 'green' } }, { status: { phase: 'Ready', health: 'yellow' } }],
    Progressing: [nothing, { status: { phase: 'ApplyingChanges', health: 'green' } }, { status: { phase: 'Ready', health: 'unknown' } }],
    Degraded: [{ status: { phase: 'Ready', health: 'red' } }, { status: { phase: 'Invalid' } }],
  },
  {
    kinds: ['velero.io/v1/Backup', 'velero.io/v1/Restore'],
    Healthy: [phase('Completed')],
    Progressing: [nothing, phase('New'), phase('InProgress'), phase('Finalizing')],
    Degraded: [phase('PartiallyFailed'), phase('Failed'), phase('FailedValidation')],
  },
  {
    kinds: ['velero.io/v1/BackupStorageLocation'],
    Healthy: [phase('Available')],
    Progressing: [nothing],
    Degraded: [phase('Unavailable')],
  },
  {
    kinds: ['velero.io/v1/Schedule'],
    Healthy: [phase('Enabled')],
    Progressing: [nothing, phase('New')],
    Degraded: [phase('FailedValidation')],
    Suspended: [paused],
  },
  {
    kinds: ['longhorn.io/v1beta2/Volume'],
    Healthy: [{ status: { state: 'attached', robustness: 'healthy' } }, { status: { state: 'detached', robustness: 'unknown' } }],
    Progressing: [nothing, { status: { state: 'attaching' } }, { status: { state: 'attached', robustness: 'degraded' } }],
    Degraded: [{ status: { state: 'detached', robustness: 'faulted' } }],
  },
  {
    kinds: ['VolumeSnapshot', 'VolumeSnapshotContent'].map((kind) => `snapshot.storage.k8s.io/v1/${kind}`),
    Healthy: [{ status: { readyToUse: true } }],
    Progressing: [nothing, { status: { readyToUse: false } }],
    Degraded: [{ status: { readyToUse: false, error: { message: 'no such volume' } } }],
  },
  {
    kinds: ['cdi.kubevirt.io/v1beta1/CDI', 'kubevirt.io/v1/KubeVirt'],
    Healthy: [phase('Deployed')],
    Progressing: [nothing, phase('Deploying')],
    Degraded: [phase('Error')],
  },
  {
    kinds: ['cdi.kubevirt.io/v1beta1/DataVolume'],
    Healthy: [phase('Succeeded'), phase('WaitForFirstConsumer')],
    Progressing: [nothing, phase('ImportInProgress')],
    Degraded: [phase('Failed')],
    Suspended: [phase('Paused')],
  },
  {
    kinds: ['kubevirt.io/v1/VirtualMachine'],
    Healthy: [{ status: { printableStatus: 'Running' } }],
    Progressing: [nothing, ...['Provisioning', 'Starting', 'Migrating'].map((word) => ({ status: { printableStatus: word } }))],
    Degraded: ['CrashLoopBackOff', 'ErrorUnschedulable', 'ErrorPvcNotFound'].map((word) => ({ status: { printableStatus: word } })),
    Suspended: ['Stopped', 'Paused'].map((word) => ({ status: { printableStatus: word } })),
  },
  {
    kinds: ['kubevirt.io/v1/VirtualMachineInstance'],
    Healthy: [phase('Running')],
    Progressing: [nothing, phase('Scheduling')],
    Degraded: [phase('Failed')],
  },
  { kinds: ['karpenter.k8s.aws/v1/EC2NodeClass', 'karpenter.sh/v1/NodePool'], ...ready, Degraded: [says('Ready:False:NodeClassNotReady')] },
  { kinds: ['karpenter.sh/v1/NodeClaim'], Healthy: [says('Ready:True')], Progressing: [nothing, says('Ready:False:NotLaunched')] },
  {
    kinds: ['serving.kserve.io/v1beta1/InferenceService'],
    ...ready,
    Progressing: [nothing, says('Ready:False:PredictorNotReady')],
    Degraded: [says('Ready:False:RevisionFailed')],
  },
  {
    kinds: ['mongodbcommunity.mongodb.com/v1/MongoDBCommunity'],
    Healthy: [phase('Running')],
    Progressing: [nothing, phase('Pending')],
    Degraded: [phase('Failed')],
  },
  {
    kinds: ['pxc.percona.com/v1/PerconaXtraDBCluster', 'psmdb.percona.com/v1/PerconaServerMongoDB', 'pgv2.percona.com/v2/PerconaPGCluster'],
    Healthy: [state('ready')],
    Progressing: [nothing, state('initializing')],
    Degraded: [state('error')],
    Suspended: [state('paused')],
  },
  {
    kinds: ['rabbitmq.com/v1beta1/RabbitmqCluster'],
    Healthy: [says('AllReplicasReady:True', 'ReconcileSuccess:True')],
    Progressing: [nothing, says('AllReplicasReady:False', 'ReconcileSuccess:True')],
    Degraded: [says('AllReplicasReady:True', 'ReconcileSuccess:False:Error')],
  },
  {
    kinds: ['k8s.mariadb.com/v1alpha1/MariaDB'],
    Healthy: [says('Ready:True')],
    Progressing: [nothing, says('Ready:False:Initializing')],
    Suspended: [suspended],
  },
  { kinds: ['kyverno.io/v1/ClusterPolicy', 'kyverno.io/v1/Policy'], ...ready, Degraded: [says('Ready:False:Failed')] },
  {
    kinds: ['templates.gatekeeper.sh/v1/ConstraintTemplate'],
    Healthy: [{ status: { created: true, byPod: [{ id: 'a' }] } }],
    Progressing: [nothing],
    Degraded: [{ status: { created: true, byPod: [{ errors: [{ message: 'rego does not parse' }] }] } }],
  },
  {
    kinds: ['sailoperator.io/v1/Istio'],
    Healthy: [state('Healthy')],
    Progressing: [nothing, state('Reconciling')],
    Degraded: [state('ReconcileError')],
  },
  {
    kinds: ['install.istio.io/v1alpha1/IstioOperator'],
    Healthy: [{ status: { status: 'HEALTHY' } }],
    Progressing: [nothing, { status: { status: 'RECONCILING' } }],
    Degraded: [{ status: { status: 'ERROR' } }],
  },
  {
    kinds: ['apps.kruise.io/v1alpha1/CloneSet'],
    Healthy: [{ spec: { replicas: 1 }, status: { readyReplicas: 1 } }],
    Progressing: [nothing],
  },
]

testHealthTable(ROWS, PLATFORM_RULES, ['apps.kruise.io/CloneSet', 'karpenter.sh/NodeClaim', 'postgresql.cnpg.io/ScheduledBackup'])

test('HE4 where an API promises that conditions name their generation, one of an older generation says nothing', () => {
  const seen = (type: string, observedGeneration: number) => ({ type, status: 'True', observedGeneration })
  const at = (kind: string, generation: number, status: Part) =>
    healthOf(objectOf(kind, { metadata: { name: 'x', generation }, status }), 0)
  const kinds = [
    ['gateway.networking.k8s.io/v1/Gateway', (n: number) => ({ conditions: [seen('Accepted', 2), seen('Programmed', n)] })],
    ['gateway.networking.k8s.io/v1/GatewayClass', (n: number) => ({ conditions: [seen('Accepted', n)] })],
    [
      'gateway.networking.k8s.io/v1/HTTPRoute',
      (n: number) => ({ parents: [{ conditions: [seen('Accepted', 2)] }, { conditions: [seen('Accepted', n)] }] }),
    ],
    ['cert-manager.io/v1/Certificate', (n: number) => ({ conditions: [seen('Ready', n)] })],
  ] as const
  for (const [kind, status] of kinds) {
    expect(at(kind, 2, status(1))).toMatchObject({ word: 'Progressing', reason: 'GenerationNotObserved' })
    expect(at(kind, 2, status(2)).word).toBe('Healthy')
  }
})

test('HE4 a condition that a known kind never had is on the way, and one that a foreign kind never had is well', () => {
  expect(healthOf(objectOf('cert-manager.io/v1/Issuer', {}), 0).reason).toBe('NotReported')
  expect(healthOf(objectOf('nobody.example/v1/Thing', {}), 0).word).toBe('Healthy')
})
