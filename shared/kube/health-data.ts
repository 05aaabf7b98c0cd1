// Health of kinds that hold data: databases, queues, search, storage, snapshots, backups. Each row names the field that
// it reads and where that field is documented; the rows follow the types of those APIs, not another tool's table.
import { bothOf, byPhase, isTrue, notReported, readySummary, statusTogether, unlessFalse, unlessSaid } from './health-conditions.ts'
import { byCounters } from './health-general.ts'
import {
  at,
  count,
  degraded,
  fields,
  HEALTHY,
  healthyWith,
  list,
  oneLine,
  progressing,
  type Rule,
  suspended,
  text,
} from './health-object.ts'
import { camelCase, senseOf } from './health-words.ts'

/** Strimzi has two conditions instead of one; `Creating` is how a NotReady begins. */
const strimzi: Rule = (reading) => {
  const stopped = reading.condition('ReconciliationPaused')
  if (stopped?.status === 'True') return suspended('its reconciliation is paused by annotation')
  if (reading.condition('Ready')?.status === 'True') return HEALTHY
  const wrong = reading.condition('NotReady')
  if (wrong === undefined) return notReported('condition Ready')
  if (wrong.status !== 'True' || wrong.reason === 'Creating') return progressing(wrong.reason || 'NotReady', oneLine(wrong.message))
  return degraded(wrong.reason || 'NotReady', oneLine(wrong.message))
}
/** A connector or one of its tasks fails while the resource is Ready, as Kafka Connect tells it. */
const strimziConnector: Rule = bothOf(strimzi, ({ status }) => {
  const told = fields(status['connectorStatus'])
  const states = [fields(told['connector']), ...list(told['tasks'])]
  if (states.some((entry) => entry['state'] === 'FAILED')) return degraded('ConnectorFailed', 'the connector or a task of it is FAILED')
  const stopped = states.find((entry) => entry['state'] === 'PAUSED' || entry['state'] === 'STOPPED')
  return stopped === undefined ? HEALTHY : suspended(`the connector is ${text(stopped['state'])}`)
})
const rebalance: Rule = (reading) => {
  const now = reading.conditions.find(({ status }) => status === 'True')
  if (now === undefined) return notReported('a condition')
  if (now.type === 'Ready') return HEALTHY
  if (now.type === 'ProposalReady') return suspended('a proposal waits: annotate it with strimzi.io/rebalance=approve')
  if (now.type === 'Stopped') return suspended('the command was stopped')
  if (now.type === 'NotReady') return degraded(now.reason || 'NotReady', oneLine(now.message))
  return progressing(now.type, oneLine(now.message))
}

const cnpgCluster: Rule = (reading) => {
  if (reading.annotations['cnpg.io/hibernation'] === 'on') return suspended('the annotation cnpg.io/hibernation is on')
  if (reading.annotations['cnpg.io/reconciliationLoop'] === 'disabled')
    return suspended('the annotation cnpg.io/reconciliationLoop is disabled')
  const phase = text(reading.status['phase'])
  const why = oneLine(text(reading.status['phaseReason']) || phase)
  if (phase === 'Failing over' || CNPG_FAILED.some((part) => phase.includes(part))) return degraded(camelCase(phase), why)
  if (phase === 'Waiting for user action') return suspended(why)
  // Before 1.17 there was no such condition.
  if (reading.condition('Ready') === undefined && phase === 'Cluster in healthy state') return HEALTHY
  const ready = isTrue('Ready', { falseIs: 'Progressing' })(reading)
  return ready.word === 'Healthy' || phase === '' ? ready : progressing(ready.reason, why)
}
const CNPG_FAILED = ['unrecoverable', 'failed', 'Failed', 'invalid', 'Not enough disk space', 'unknown plugin', 'cannot proceed']
const cnpgApplied: Rule = ({ status }) => {
  if (status['applied'] === true) return HEALTHY
  const why = oneLine(text(status['message']))
  return status['applied'] === false && why !== '' ? degraded('NotApplied', why) : progressing('NotApplied', 'it is not applied yet')
}

/** Rook writes the phase; `state` is its older name. HEALTH_WARN is how Ceph looks during every recovery and, without
 *  redundancy, for ever: a note, not a failure. */
const cephCluster: Rule = (reading) => {
  const health = at(reading.status, 'ceph', 'health')
  const why = oneLine(text(reading.status['message']))
  if (health === 'HEALTH_ERR') return degraded('HealthErr', why || 'Ceph reports HEALTH_ERR; ask `ceph status`')
  const phase = reading.status['phase'] === undefined ? cephState(reading) : ceph(reading)
  if (phase.word !== 'Healthy' || health !== 'HEALTH_WARN') return phase
  return healthyWith('HealthWarn', 'Ceph reports HEALTH_WARN; ask `ceph status`')
}
const ceph = byPhase({ healthy: ['Ready', 'Connected'], degraded: ['Failure', 'Error'] })
const cephState = byPhase({ at: ['state'], healthy: ['Created', 'Connected'], degraded: ['Error'] })

/** Yellow misses replica shards: for ever on one node alone, where it is a note, and until they are allocated on
 *  several. */
const elasticsearch: Rule = (reading) => {
  const phase = text(reading.status['phase'])
  if (phase === 'Invalid' || phase === 'Stalled') return degraded(phase, `status.phase is ${phase}`)
  if (reading.status['health'] === 'red') return degraded('Red', 'status.health is red: shards are missing')
  if (phase !== 'Ready') return phase === '' ? notReported('status.phase') : progressing(phase, `status.phase is ${phase}`)
  if (reading.status['health'] === 'yellow') {
    const nodes = list(reading.spec['nodeSets']).reduce((sum, { count: some }) => sum + count(some, 1), 0)
    const why = 'status.health is yellow: replica shards are not allocated'
    return nodes > 1 ? progressing('Yellow', why) : healthyWith('Yellow', why)
  }
  return byPhase({ at: ['health'], healthy: ['green'] })(reading)
}
/** Yellow means that a Pod or an association is not ready yet. */
const elastic = byPhase({ at: ['health'], healthy: ['green'], degraded: ['red'] })

const velero = byPhase({
  message: ['failureReason'],
  healthy: ['Completed'],
  degraded: ['Failed', 'PartiallyFailed', 'FailedValidation'],
})
const longhornVolume: Rule = ({ status }) => {
  const robustness = text(status['robustness'])
  if (robustness === 'faulted') return degraded('Faulted', 'status.robustness is faulted: no replica works')
  const state = text(status['state'])
  if (state === '') return notReported('status.state')
  if (state === 'detached') return HEALTHY
  if (state !== 'attached') return progressing(camelCase(state), `status.state is ${state}`)
  return robustness === 'degraded' ? progressing('Degraded', 'status.robustness is degraded: replicas are rebuilt') : HEALTHY
}
const snapshot: Rule = unlessSaid(['error', 'message'], ['error', 'message'], 'SnapshotFailed', ({ status }) =>
  status['readyToUse'] === true ? HEALTHY : progressing('NotReady', 'it is not ready to use yet'),
)

/** A Running that is False with reason Error names the import's failure, while the phase still reports progress. */
const dataVolume: Rule = (reading) => {
  const running = reading.condition('Running')
  if (running?.status === 'False' && senseOf(running.reason) === 'failing') return degraded(running.reason, oneLine(running.message))
  return byPhase({ healthy: ['Succeeded', 'WaitForFirstConsumer', 'PendingPopulation'], degraded: ['Failed'], suspended: ['Paused'] })(
    reading,
  )
}

const percona = byPhase({ at: ['state'], healthy: ['ready'], degraded: ['error'], suspended: ['paused'] })
const rabbit: Rule = unlessFalse(['ReconcileSuccess'], isTrue('AllReplicasReady'))

/** A backup or job with a schedule is as well as its last run; the reason is CronJobScheduled also for a run that
 *  failed. */
const mariadbRun: Rule = (reading) => {
  const complete = reading.condition('Complete')
  if (complete?.reason !== 'CronJobScheduled' || complete.status === 'True') return isTrue('Complete')(reading)
  return senseOf(complete.message) === 'failing' ? degraded('CronJobFailed', oneLine(complete.message)) : HEALTHY
}

/** The operator names one node and what is wrong with it, or the cluster when nothing is. */
const druid: Rule = ({ status }) => {
  const { druidNodeConditionType: type, druidNode, reason } = fields(status['druidNodeStatus'])
  if (type === 'DruidClusterReady') return HEALTHY
  const said = `${text(druidNode) || 'a node'}: ${oneLine(text(reason)) || text(type)}`
  if (type === 'DruidNodeErrorState') return degraded('DruidNodeErrorState', said)
  return text(type) === '' ? notReported('status.druidNodeStatus') : progressing(text(type), said)
}

/** Each instance set counts its Pods; a count of 0 is left out. */
const crunchy: Rule = (reading) => {
  const instances = list(reading.status['instances'])
  if (instances.length === 0) return notReported('status.instances')
  const less = instances
    .map((entry) => byCounters({ ...entry, readyReplicas: entry['readyReplicas'] ?? 0 }, {}))
    .find((found) => found?.word === 'Progressing')
  return less ?? statusTogether(reading)
}

const MINIO_FAILED = [
  'Another MinIO Tenant already exists in the namespace',
  'Different versions across MinIO Pools',
  'Pool Decommissioning Not Allowed',
  'Statefulset not controlled by operator',
  'Tenant credentials are not set properly',
] as const
const minioTenant: Rule = bothOf(byPhase({ at: ['currentState'], healthy: ['Initialized'], degraded: MINIO_FAILED }), (reading) =>
  reading.status['healthStatus'] === undefined
    ? HEALTHY
    : byPhase({ at: ['healthStatus'], healthy: ['green'], degraded: ['red'] })(reading),
)

/** A connector runs while its tasks fail. */
const confluentConnector: Rule = (reading) => {
  const failed = Object.keys(fields(reading.status['failedTasks'])).length
  if (failed > 0) return degraded('TasksFailed', `${failed} tasks of the connector failed`)
  return statusTogether(reading)
}

/** Racks count their members. */
const cassandraRook: Rule = ({ status }) => {
  const racks = Object.values(fields(status['racks'])).map(fields)
  if (racks.length === 0) return notReported('status.racks')
  return (
    racks
      .map((rack) => byCounters({ ...rack, readyMembers: rack['readyMembers'] ?? 0 }, {}))
      .find((found) => found?.word === 'Progressing') ?? HEALTHY
  )
}

export const DATA_RULES: Readonly<Record<string, Rule>> = {
  // conditions Ready, NotReady, ReconciliationPaused; connectorStatus; states of a rebalance: strimzi api.
  'kafka.strimzi.io/Kafka': strimzi,
  'kafka.strimzi.io/KafkaBridge': strimzi,
  'kafka.strimzi.io/KafkaConnect': strimzi,
  'kafka.strimzi.io/KafkaConnector': strimziConnector,
  'kafka.strimzi.io/KafkaMirrorMaker2': strimzi,
  'kafka.strimzi.io/KafkaNodePool': () => HEALTHY,
  'kafka.strimzi.io/KafkaRebalance': rebalance,
  'kafka.strimzi.io/KafkaTopic': strimzi,
  'kafka.strimzi.io/KafkaUser': strimzi,
  // status.phase, conditions, state of a connector and its tasks: Confluent for Kubernetes API reference
  // platform.confluent.io/v1beta1.
  'platform.confluent.io/Connect': statusTogether,
  'platform.confluent.io/Connector': confluentConnector,
  'platform.confluent.io/ControlCenter': statusTogether,
  'platform.confluent.io/Kafka': statusTogether,
  'platform.confluent.io/KsqlDB': statusTogether,
  'platform.confluent.io/SchemaRegistry': statusTogether,
  'platform.confluent.io/Zookeeper': statusTogether,
  // condition Ready, status.phase in words, status.applied, phases of a backup: cloudnative-pg api/v1.
  'postgresql.cnpg.io/Backup': byPhase({ message: ['error'], healthy: ['completed'], degraded: ['failed', 'walArchivingFailing'] }),
  'postgresql.cnpg.io/Cluster': cnpgCluster,
  'postgresql.cnpg.io/Database': cnpgApplied,
  'postgresql.cnpg.io/Publication': cnpgApplied,
  'postgresql.cnpg.io/ScheduledBackup': () => HEALTHY,
  'postgresql.cnpg.io/Subscription': cnpgApplied,
  // status.PostgresClusterStatus: zalando postgres-operator pkg/apis/acid.zalan.do/v1.
  'acid.zalan.do/postgresql': byPhase({
    at: ['PostgresClusterStatus'],
    healthy: ['Running'],
    degraded: ['CreateFailed', 'UpdateFailed', 'SyncFailed', 'Invalid'],
  }),
  // status.instances[].{replicas,readyReplicas}, conditions: crunchydata postgres-operator.crunchydata.com/v1beta1.
  'postgres-operator.crunchydata.com/PostgresCluster': crunchy,
  // status.phase: mongodb-kubernetes-operator api/v1; status.state: percona operators; conditions: cluster-operator and
  // topology operator of RabbitMQ; Ready, Complete: mariadb-operator.
  'mongodb.com/MongoDB': byPhase({ healthy: ['Running'], degraded: ['Failed', 'Unsupported'], suspended: ['Disabled'] }),
  'mongodbcommunity.mongodb.com/MongoDBCommunity': byPhase({ healthy: ['Running'], degraded: ['Failed'] }),
  'pgv2.percona.com/PerconaPGCluster': percona,
  'ps.percona.com/PerconaServerMySQL': percona,
  'psmdb.percona.com/PerconaServerMongoDB': percona,
  'pxc.percona.com/PerconaXtraDBCluster': percona,
  'rabbitmq.com/RabbitmqCluster': rabbit,
  ...Object.fromEntries(
    ['Binding', 'Exchange', 'Federation', 'Permission', 'Policy', 'Queue', 'Shovel', 'User', 'Vhost'].map((kind) => [
      `rabbitmq.com/${kind}`,
      isTrue('Ready', { falseIs: 'Degraded' }),
    ]),
  ),
  'k8s.mariadb.com/Backup': mariadbRun,
  'k8s.mariadb.com/Connection': isTrue('Ready'),
  'k8s.mariadb.com/Database': isTrue('Ready'),
  'k8s.mariadb.com/Grant': isTrue('Ready'),
  'k8s.mariadb.com/MariaDB': isTrue('Ready'),
  'k8s.mariadb.com/Restore': isTrue('Complete'),
  'k8s.mariadb.com/SqlJob': mariadbRun,
  'k8s.mariadb.com/User': isTrue('Ready'),
  'mariadb.mmontes.io/MariaDB': isTrue('Ready'),
  // condition Ready and its reason: atlas-operator api/v1alpha1.
  'db.atlasgo.io/AtlasMigration': readySummary,
  'db.atlasgo.io/AtlasSchema': readySummary,
  // status.readyReplicas, status.replicas: solr-operator api/v1beta1; pravega zookeeper-operator api/v1beta1.
  'solr.apache.org/SolrCloud': statusTogether,
  'zookeeper.pravega.io/ZookeeperCluster': statusTogether,
  // status.druidNodeStatus: druid-operator apis/druid/v1alpha1 DruidNodeConditionType.
  'druid.apache.org/Druid': druid,
  // status.racks: rook cassandra.rook.io/v1alpha1.
  'cassandra.rook.io/Cluster': cassandraRook,
  // status.currentState, status.healthStatus: minio operator pkg/apis/minio.min.io/v2.
  'minio.min.io/Tenant': minioTenant,
  // status.status: clickhouse-operator (Completed, InProgress, Aborted, Terminating).
  'clickhouse.altinity.com/ClickHouseInstallation': byPhase({
    at: ['status'],
    message: ['error'],
    healthy: ['Completed'],
    degraded: ['Aborted', 'Failed'],
  }),
  'clickhouse-keeper.altinity.com/ClickHouseKeeperInstallation': byPhase({
    at: ['status'],
    message: ['error'],
    healthy: ['Completed'],
    degraded: ['Aborted', 'Failed'],
  }),
  // status.state: humio-operator api/v1alpha1.
  'core.humio.com/HumioCluster': byPhase({ at: ['state'], healthy: ['Running'], degraded: ['ConfigError'] }),
  // status.phase, status.ceph.health, status.bucketStatus.health: rook pkg/apis/ceph.rook.io/v1.
  'ceph.rook.io/CephBlockPool': ceph,
  'ceph.rook.io/CephCluster': cephCluster,
  'ceph.rook.io/CephFilesystem': ceph,
  'ceph.rook.io/CephObjectStore': bothOf(ceph, statusTogether),
  // status.health, status.phase: cloud-on-k8s pkg/apis.
  'agent.k8s.elastic.co/Agent': elastic,
  'apm.k8s.elastic.co/ApmServer': elastic,
  'beat.k8s.elastic.co/Beat': elastic,
  'elasticsearch.k8s.elastic.co/Elasticsearch': elasticsearch,
  'enterprisesearch.k8s.elastic.co/EnterpriseSearch': elastic,
  'kibana.k8s.elastic.co/Kibana': elastic,
  'logstash.k8s.elastic.co/Logstash': elastic,
  'maps.k8s.elastic.co/ElasticMapsServer': elastic,
  // status.phase of each: velero pkg/apis/velero/v1.
  'velero.io/Backup': velero,
  'velero.io/BackupStorageLocation': byPhase({ healthy: ['Available'], degraded: ['Unavailable'] }),
  'velero.io/Restore': velero,
  'velero.io/Schedule': byPhase({ healthy: ['Enabled'], degraded: ['FailedValidation'] }),
  // status.state, status.robustness: longhorn-manager k8s/pkg/apis/longhorn/v1beta2.
  'longhorn.io/Volume': longhornVolume,
  // status.readyToUse, status.error: external-snapshotter client/apis/volumesnapshot/v1.
  'snapshot.storage.k8s.io/VolumeSnapshot': snapshot,
  'snapshot.storage.k8s.io/VolumeSnapshotContent': snapshot,
  // status.phase, condition Running: cdi.kubevirt.io core/v1beta1.
  'cdi.kubevirt.io/CDI': byPhase({ healthy: ['Deployed'], degraded: ['Error'] }),
  'cdi.kubevirt.io/DataVolume': dataVolume,
  // status.lastOperationStatus, status.status: trident api (Success, Failed; Installed, Installing, Error).
  'trident.netapp.io/TridentBackendConfig': byPhase({ at: ['lastOperationStatus'], healthy: ['Success'], degraded: ['Failed'] }),
  'trident.netapp.io/TridentOrchestrator': byPhase({ at: ['status'], healthy: ['Installed', 'Updated'], degraded: ['Error', 'Failed'] }),
}
