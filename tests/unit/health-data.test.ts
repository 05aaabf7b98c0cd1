// What well-known controllers say of databases, queues, search, storage and backups, by the words of their own API
// types, and the health that it means.
import { DATA_RULES } from '../../shared/kube/health-data.ts'
import {
  conditions,
  nothing,
  type Part,
  paused,
  phase,
  type Row,
  says,
  state,
  suspended,
  testHealthTable,
} from '../support/health-table.ts'

const strimzi = (kind: string) => `kafka.strimzi.io/v1beta2/${kind}`
const elastic = (kind: string) => `${kind.toLowerCase().replace('server', '')}.k8s.elastic.co/v1/${kind}`

const connector = (connectorStatus: Part): Part => ({ status: { ...conditions('Ready:True'), connectorStatus } })

const ROWS: Row[] = [
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
    kinds: ['postgresql.cnpg.io/v1/Backup'],
    Healthy: [phase('completed')],
    Progressing: [nothing, phase('running')],
    Degraded: [{ status: { phase: 'failed', error: 'no space' } }],
  },
  {
    kinds: ['postgresql.cnpg.io/v1/Cluster'],
    Healthy: [{ status: { phase: 'Cluster in healthy state', ...conditions('Ready:True') } }, phase('Cluster in healthy state')],
    Progressing: [nothing, { status: { phase: 'Setting up primary', ...conditions('Ready:False:ClusterIsNotReady') } }],
    Degraded: [
      { status: { phase: 'Cluster is in an unrecoverable state, needs manual intervention', ...conditions('Ready:False') } },
      { status: { phase: 'Failing over', phaseReason: 'the primary is gone', ...conditions('Ready:False:ClusterIsNotReady') } },
    ],
    Suspended: [
      { metadata: { annotations: { 'cnpg.io/hibernation': 'on' } } },
      { metadata: { annotations: { 'cnpg.io/reconciliationLoop': 'disabled' } } },
      phase('Waiting for user action'),
    ],
  },
  {
    kinds: ['Database', 'Publication', 'Subscription'].map((kind) => `postgresql.cnpg.io/v1/${kind}`),
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
    kinds: ['Agent', 'ApmServer', 'Beat', 'EnterpriseSearch', 'Kibana', 'Logstash']
      .map(elastic)
      .concat('maps.k8s.elastic.co/v1/ElasticMapsServer'),
    Healthy: [{ status: { health: 'green' } }],
    Progressing: [nothing, { status: { health: 'unknown' } }, { status: { health: 'yellow' } }],
    Degraded: [{ status: { health: 'red' } }],
  },
  {
    kinds: [elastic('Elasticsearch')],
    Healthy: [
      { status: { phase: 'Ready', health: 'green' } },
      { spec: { nodeSets: [{ name: 'a', count: 1 }] }, status: { phase: 'Ready', health: 'yellow' } },
    ],
    Progressing: [
      nothing,
      { spec: { nodeSets: [{ count: 1 }, { count: 2 }] }, status: { phase: 'Ready', health: 'yellow' } },
      { status: { phase: 'ApplyingChanges', health: 'green' } },
      { status: { phase: 'Ready', health: 'unknown' } },
    ],
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
    kinds: ['cdi.kubevirt.io/v1beta1/CDI'],
    Healthy: [phase('Deployed')],
    Progressing: [nothing, phase('Deploying')],
    Degraded: [phase('Error')],
  },
  {
    kinds: ['cdi.kubevirt.io/v1beta1/DataVolume'],
    Healthy: [phase('Succeeded'), phase('WaitForFirstConsumer')],
    Progressing: [
      nothing,
      phase('ImportInProgress'),
      { status: { phase: 'ImportInProgress', ...conditions('Running:False:ContainerCreating') } },
    ],
    Degraded: [phase('Failed'), { status: { phase: 'ImportInProgress', ...conditions('Running:False:Error:404 Not Found') } }],
    Suspended: [phase('Paused')],
  },
  {
    kinds: ['mongodbcommunity.mongodb.com/v1/MongoDBCommunity'],
    Healthy: [phase('Running')],
    Progressing: [nothing, phase('Pending')],
    Degraded: [phase('Failed')],
  },
  {
    kinds: [
      'pxc.percona.com/v1/PerconaXtraDBCluster',
      'ps.percona.com/v1alpha1/PerconaServerMySQL',
      'psmdb.percona.com/v1/PerconaServerMongoDB',
      'pgv2.percona.com/v2/PerconaPGCluster',
    ],
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
    kinds: [
      ...['Connection', 'Database', 'Grant', 'MariaDB', 'User'].map((kind) => `k8s.mariadb.com/v1alpha1/${kind}`),
      'mariadb.mmontes.io/v1alpha1/MariaDB',
    ],
    Healthy: [says('Ready:True')],
    Progressing: [nothing, says('Ready:False:Initializing'), says('Ready:False:StatefulSetNotReady:Not ready')],
    Degraded: [says('Ready:False:Failed:Error creating ConfigMap')],
    Suspended: [suspended],
  },
  {
    kinds: ['Backup', 'Restore', 'SqlJob'].map((kind) => `k8s.mariadb.com/v1alpha1/${kind}`),
    Healthy: [says('Complete:True:JobComplete')],
    Progressing: [nothing, says('Complete:False:JobRunning')],
    Degraded: [says('Complete:False:JobFailed')],
  },
  {
    kinds: ['Backup', 'SqlJob'].map((kind) => `k8s.mariadb.com/v1alpha1/${kind}`),
    Healthy: [says('Complete:False:CronJobScheduled:Scheduled'), says('Complete:True:CronJobSucess:Success')],
    Progressing: [says('Complete:False:CronJobRunning:Running')],
    Degraded: [says('Complete:False:CronJobScheduled:Failed')],
  },
  {
    kinds: ['druid.apache.org/v1alpha1/Druid'],
    Healthy: [{ status: { druidNodeStatus: { druidNode: 'All', druidNodeConditionType: 'DruidClusterReady' } } }],
    Progressing: [nothing, { status: { druidNodeStatus: { druidNode: 'brokers', druidNodeConditionType: 'DruidNodeRollingUpdate' } } }],
    Degraded: [{ status: { druidNodeStatus: { druidNode: 'a-0', druidNodeConditionType: 'DruidNodeErrorState', reason: 'no image' } } }],
  },
  {
    kinds: [strimzi('KafkaConnector')],
    Healthy: [connector({ connector: { state: 'RUNNING' }, tasks: [{ state: 'RUNNING' }] })],
    Degraded: [
      connector({ connector: { state: 'FAILED' } }),
      connector({ connector: { state: 'RUNNING' }, tasks: [{ state: 'FAILED', trace: 'x' }] }),
    ],
    Suspended: [connector({ connector: { state: 'PAUSED' } }), connector({ connector: { state: 'STOPPED' } })],
  },
  {
    kinds: ['ceph.rook.io/v1/CephObjectStore'],
    Healthy: [{ status: { phase: 'Ready', bucketStatus: { health: 'Connected' } } }],
    Degraded: [{ status: { phase: 'Ready', bucketStatus: { health: 'Failure', details: 'x' } } }],
  },
  { kinds: [strimzi('KafkaNodePool')], Healthy: [nothing] },
  {
    kinds: ['Connect', 'Connector', 'ControlCenter', 'Kafka', 'KsqlDB', 'SchemaRegistry', 'Zookeeper'].map(
      (kind) => `platform.confluent.io/v1beta1/${kind}`,
    ),
    Healthy: [{ status: { phase: 'RUNNING', ...conditions('platform.confluent.io/resources-ready:True') } }],
    Progressing: [nothing, phase('PROVISIONING')],
    Degraded: [{ status: { state: 'ERROR', ...conditions('platform.confluent.io/app-ready:False:CreateFailed') } }],
  },
  {
    kinds: ['platform.confluent.io/v1beta1/Connector'],
    Healthy: [{ status: { connectorState: 'RUNNING', tasksReady: '2/2' } }],
    Progressing: [{ status: { connectorState: 'RUNNING', tasksReady: '1/2' } }],
    Degraded: [{ status: { connectorState: 'RUNNING', failedTasks: { 'task-0': { id: 0 } } } }],
  },
  {
    kinds: ['postgres-operator.crunchydata.com/v1beta1/PostgresCluster'],
    Healthy: [{ status: { instances: [{ name: '00', replicas: 2, readyReplicas: 2 }] } }],
    Progressing: [nothing, { status: { instances: [{ name: '00', replicas: 2 }] } }],
    Degraded: [
      { status: { instances: [{ replicas: 1, readyReplicas: 1 }], ...conditions('PGBackRestRepoHostReady:False:RepoHostFailed') } },
    ],
  },
  {
    kinds: ['mongodb.com/v1/MongoDB'],
    Healthy: [phase('Running')],
    Progressing: [nothing, phase('Reconciling'), phase('Pending')],
    Degraded: [phase('Failed'), phase('Unsupported')],
    Suspended: [phase('Disabled')],
  },
  {
    kinds: ['Binding', 'Exchange', 'Federation', 'Permission', 'Policy', 'Queue', 'Shovel', 'User', 'Vhost'].map(
      (kind) => `rabbitmq.com/v1beta1/${kind}`,
    ),
    Healthy: [says('Ready:True:SuccessfulCreateOrUpdate')],
    Progressing: [nothing],
    Degraded: [says('Ready:False:FailedCreateOrUpdate')],
  },
  {
    kinds: ['db.atlasgo.io/v1alpha1/AtlasMigration', 'db.atlasgo.io/v1alpha1/AtlasSchema'],
    Healthy: [says('Ready:True:Applied')],
    Progressing: [nothing, says('Ready:False:Reconciling')],
    Degraded: [says('Ready:False:BackoffLimitExceeded')],
  },
  {
    kinds: ['solr.apache.org/v1beta1/SolrCloud', 'zookeeper.pravega.io/v1beta1/ZookeeperCluster'],
    Healthy: [{ spec: { replicas: 2 }, status: { replicas: 2, readyReplicas: 2 } }],
    Progressing: [nothing, { spec: { replicas: 2 }, status: { replicas: 2, readyReplicas: 1 } }],
    Suspended: [paused],
  },
  {
    kinds: ['cassandra.rook.io/v1alpha1/Cluster'],
    Healthy: [{ status: { racks: { a: { members: 2, readyMembers: 2 } } } }],
    Progressing: [nothing, { status: { racks: { a: { members: 2, readyMembers: 2 }, b: { members: 1 } } } }],
    Suspended: [paused],
  },
  {
    kinds: ['minio.min.io/v2/Tenant'],
    Healthy: [{ status: { currentState: 'Initialized', healthStatus: 'green' } }],
    Progressing: [
      nothing,
      { status: { currentState: 'Waiting for Pods to be ready' } },
      { status: { currentState: 'Initialized', healthStatus: 'yellow' } },
    ],
    Degraded: [
      { status: { currentState: 'Different versions across MinIO Pools' } },
      { status: { currentState: 'Initialized', healthStatus: 'red' } },
    ],
  },
  {
    kinds: ['clickhouse.altinity.com/v1/ClickHouseInstallation', 'clickhouse-keeper.altinity.com/v1/ClickHouseKeeperInstallation'],
    Healthy: [{ status: { status: 'Completed' } }],
    Progressing: [nothing, { status: { status: 'InProgress' } }],
    Degraded: [{ status: { status: 'Aborted' } }],
  },
  {
    kinds: ['core.humio.com/v1alpha1/HumioCluster'],
    Healthy: [state('Running')],
    Progressing: [nothing, state('Upgrading'), state('Restarting')],
    Degraded: [state('ConfigError')],
  },
  {
    kinds: ['trident.netapp.io/v1/TridentBackendConfig'],
    Healthy: [{ status: { lastOperationStatus: 'Success', phase: 'Bound' } }],
    Progressing: [nothing, { status: { lastOperationStatus: 'Progressing' } }],
    Degraded: [{ status: { lastOperationStatus: 'Failed', message: 'no such backend', phase: '' } }],
  },
  {
    kinds: ['trident.netapp.io/v1/TridentOrchestrator'],
    Healthy: [{ status: { status: 'Installed' } }],
    Progressing: [nothing, { status: { status: 'Installing' } }],
    Degraded: [{ status: { status: 'Error', message: 'bound to another' } }],
  },
]

testHealthTable(ROWS, DATA_RULES, ['kafka.strimzi.io/KafkaNodePool', 'postgresql.cnpg.io/ScheduledBackup'], 70)
