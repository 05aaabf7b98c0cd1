// Health of well-known custom kinds that a platform is made of: certificates, secrets, gateways, databases, storage, machines. Each row names the field it reads and where that is
// promised; the rows were written from what the types of those APIs say, and were not compared with another tool's table.
import {
  byPhase,
  conditionLists,
  isTrue,
  reasonOf,
  replicasReady,
  unlessFalse,
  unlessSaid,
  unlessSpec,
  unlessStopped,
  unlessTrue,
  whenSeen,
} from './health-conditions.ts'
import { at, degraded, HEALTHY, progressing, type Rule, suspended, text } from './health-look.ts'

/** Issuing is True while a certificate is made, and False with reason Failed when that was given up for now. */
const certificate: Rule = whenSeen(['Ready'], (look) => {
  const issuing = look.condition('Issuing')
  if (issuing?.status === 'False' && issuing.reason === 'Failed') return degraded('Failed', issuing.message)
  if (issuing?.status === 'True') return progressing(issuing.reason || 'Issuing', issuing.message)
  return isTrue('Ready')(look)
})
const certificateRequest = unlessTrue(['Denied', 'InvalidRequest'], isTrue('Ready', { failed: ['Failed', 'Denied'] }))
const issuer = isTrue('Ready', { falseIs: 'Degraded' })
const acme = byPhase({ at: ['state'], message: ['reason'], healthy: ['valid', 'ready'], degraded: ['invalid', 'expired', 'errored'] })

const keda: Rule = unlessStopped('Paused', isTrue('Ready', { falseIs: 'Degraded' }))

/** HE5: a gateway without an address is programmed as far as an edge cluster can. */
const gateway: Rule = whenSeen(['Accepted', 'Programmed'], (look) => {
  const accepted = isTrue('Accepted', { falseIs: 'Degraded', patient: ['Pending', 'NotReconciled'] })(look)
  if (accepted.word !== 'Healthy') return accepted
  const programmed = look.condition('Programmed')
  if (!look.waitForAddress && programmed?.status === 'False' && programmed.reason === 'AddressNotAssigned') return HEALTHY
  return isTrue('Programmed', { failed: ['Invalid', 'NoResources', 'AddressNotUsable'] })(look)
})

/** Every parent that has looked must accept it. */
const attached =
  (name: 'parents' | 'ancestors'): Rule =>
  (look) => {
    const owners = name === 'parents' ? conditionLists(look, 'parents') : conditionLists(look, 'ancestors')
    if (owners.length === 0) return progressing('NotReported', 'no gateway has looked at it yet; check its parentRefs if this stays')
    const { generation = 0 } = look
    if (owners.flat().some((entry) => entry.type === 'Accepted' && entry.generation !== null && entry.generation < generation)) {
      return progressing('GenerationNotObserved', `not every gateway has looked at generation ${generation} yet`)
    }
    for (const conditions of owners) {
      const refused = conditions.find(({ type, status }) => (type === 'Accepted' || type === 'ResolvedRefs') && status === 'False')
      if (refused !== undefined) return degraded(refused.reason || refused.type, refused.message)
    }
    const waits = owners.some((conditions) => !conditions.some(({ type, status }) => type === 'Accepted' && status === 'True'))
    return waits ? progressing('NotAccepted', 'a gateway has not accepted it yet') : HEALTHY
  }

/** Strimzi has two conditions instead of one; `Creating` is how a NotReady begins. */
const strimzi: Rule = (look) => {
  const stopped = look.condition('ReconciliationPaused')
  if (stopped?.status === 'True') return suspended('its reconciliation is paused by annotation')
  if (look.condition('Ready')?.status === 'True') return HEALTHY
  const wrong = look.condition('NotReady')
  if (wrong === undefined) return progressing('NotReported', 'its operator has not looked at it yet')
  if (wrong.status !== 'True' || wrong.reason === 'Creating') return progressing(wrong.reason || 'NotReady', wrong.message)
  return degraded(wrong.reason || 'NotReady', wrong.message)
}
const rebalance: Rule = (look) => {
  const now = look.conditions.find(({ status }) => status === 'True')
  if (now === undefined) return progressing('NotReported', 'its operator has not looked at it yet')
  if (now.type === 'Ready') return HEALTHY
  if (now.type === 'ProposalReady') return suspended('a proposal waits: annotate it with strimzi.io/rebalance=approve')
  if (now.type === 'Stopped') return suspended('it was stopped')
  return now.type === 'NotReady' ? degraded(now.reason || 'NotReady', now.message) : progressing(now.type, now.message)
}

/** Available is True, Degraded (some Pods are not ready, as in every roll-out) or False; Reconciled is False when the spec cannot be carried out. */
const prometheus: Rule = unlessSpec('paused', unlessFalse(['Reconciled'], isTrue('Available')))

const cnpgCluster: Rule = (look) => {
  if (look.annotations['cnpg.io/hibernation'] === 'on') return suspended('the annotation cnpg.io/hibernation is on')
  const phase = text(look.status['phase'])
  if (/unrecoverable|failed|invalid|not enough disk space/i.test(phase))
    return degraded(reasonOf(phase).slice(0, 60), text(look.status['phaseReason']) || phase)
  if (phase === 'Waiting for user action') return suspended(text(look.status['phaseReason']) || phase)
  // Before 1.17 there was no such condition.
  if (look.condition('Ready') === undefined && phase === 'Cluster in healthy state') return HEALTHY
  const ready = isTrue('Ready')(look)
  return ready.word === 'Healthy' || phase === '' ? ready : progressing(ready.reason, text(look.status['phaseReason']) || phase)
}
const cnpgApplied: Rule = ({ status }) => {
  if (status['applied'] === true) return HEALTHY
  const why = text(status['message'])
  return status['applied'] === false && why !== '' ? degraded('NotApplied', why) : progressing('NotApplied', 'it is not applied yet')
}

/** HEALTH_WARN is how Ceph looks during every recovery. */
const cephCluster: Rule = (look) =>
  at(look.status, 'ceph', 'health') === 'HEALTH_ERR'
    ? degraded('HealthErr', text(look.status['message']) || 'Ceph reports HEALTH_ERR; ask `ceph status`')
    : ceph(look)
const ceph = byPhase({ healthy: ['Ready', 'Connected'], degraded: ['Failure', 'Error'] })

const elasticsearch: Rule = (look) => {
  const phase = text(look.status['phase'])
  if (phase === 'Invalid' || phase === 'Stalled') return degraded(phase, `status.phase is ${phase}`)
  if (look.status['health'] === 'red') return degraded('Red', 'status.health is red: shards are missing')
  if (phase !== 'Ready')
    return progressing(phase || 'NotReported', phase === '' ? 'status.phase is not set yet' : `status.phase is ${phase}`)
  return byPhase({ at: ['health'], healthy: ['green', 'yellow'] })(look)
}
const elastic = byPhase({ at: ['health'], healthy: ['green', 'yellow'], degraded: ['red'] })

const velero = byPhase({
  message: ['failureReason'],
  healthy: ['Completed'],
  degraded: ['Failed', 'PartiallyFailed', 'FailedValidation'],
})
const longhornVolume: Rule = ({ status }) => {
  const robustness = text(status['robustness'])
  if (robustness === 'faulted') return degraded('Faulted', 'status.robustness is faulted: no replica works')
  const state = text(status['state'])
  if (state === '') return progressing('NotReported', 'status.state is not set yet')
  if (state === 'detached') return HEALTHY
  if (state !== 'attached') return progressing(reasonOf(state), `status.state is ${state}`)
  return robustness === 'degraded' ? progressing('Degraded', 'status.robustness is degraded: replicas are rebuilt') : HEALTHY
}

const snapshot: Rule = (look) =>
  unlessSaid(['error', 'message'], ['error', 'message'], 'SnapshotFailed', ({ status }) =>
    status['readyToUse'] === true ? HEALTHY : progressing('NotReady', 'it is not ready to use yet'),
  )(look)

const virtualMachine = byPhase({
  at: ['printableStatus'],
  healthy: ['Running'],
  degraded: [
    'CrashLoopBackOff',
    'DataVolumeError',
    'ErrImagePull',
    'ErrorDataVolumeNotFound',
    'ErrorPvcNotFound',
    'ErrorUnschedulable',
    'ImagePullBackOff',
  ],
  suspended: ['Paused', 'Stopped'],
})

const percona = byPhase({ at: ['state'], healthy: ['ready'], degraded: ['error'], suspended: ['paused'] })
const rabbit: Rule = unlessFalse(['ReconcileSuccess'], isTrue('AllReplicasReady'))
/** Each pod of Gatekeeper says for itself what is wrong with the template. */
const constraintTemplate: Rule = ({ status }) => {
  const byPod = Array.isArray(status['byPod']) ? (status['byPod'] as unknown[]) : []
  for (const pod of byPod) {
    const errors = at({ pod }, 'pod', 'errors')
    if (Array.isArray(errors) && errors.length > 0)
      return degraded('TemplateError', text(at({ first: errors[0] as unknown }, 'first', 'message')))
  }
  return status['created'] === true ? HEALTHY : progressing('NotCreated', 'its constraint is not created yet')
}

export const PLATFORM_RULES: Readonly<Record<string, Rule>> = {
  // conditions Ready, Issuing, Denied, InvalidRequest; status.state of ACME: cert-manager pkg/apis/{certmanager,acme}/v1.
  'acme.cert-manager.io/Challenge': acme,
  'acme.cert-manager.io/Order': acme,
  'cert-manager.io/Certificate': certificate,
  'cert-manager.io/CertificateRequest': certificateRequest,
  'cert-manager.io/ClusterIssuer': issuer,
  'cert-manager.io/Issuer': issuer,
  'trust.cert-manager.io/Bundle': isTrue('Synced', { falseIs: 'Degraded' }),
  // condition Ready, reasons SecretSynced, SecretSyncedError: external-secrets apis/externalsecrets/v1.
  'external-secrets.io/ClusterExternalSecret': isTrue('Ready', { falseIs: 'Degraded' }),
  'external-secrets.io/ClusterSecretStore': isTrue('Ready', { falseIs: 'Degraded' }),
  'external-secrets.io/ExternalSecret': isTrue('Ready', { falseIs: 'Degraded' }),
  'external-secrets.io/PushSecret': isTrue('Ready', { falseIs: 'Degraded' }),
  'external-secrets.io/SecretStore': isTrue('Ready', { falseIs: 'Degraded' }),
  // condition Synced: sealed-secrets pkg/apis/sealedsecrets/v1alpha1.
  'bitnami.com/SealedSecret': isTrue('Synced', { falseIs: 'Degraded' }),
  // conditions Ready, Paused (Active False is an idle workload): keda apis/keda/v1alpha1.
  'keda.sh/ScaledJob': keda,
  'keda.sh/ScaledObject': keda,
  // conditions Accepted, Programmed, ResolvedRefs: gateway-api apis/v1 (GatewayConditionReason, RouteStatus.parents, PolicyStatus.ancestors).
  'gateway.networking.k8s.io/BackendTLSPolicy': attached('ancestors'),
  'gateway.networking.k8s.io/GRPCRoute': attached('parents'),
  'gateway.networking.k8s.io/Gateway': gateway,
  'gateway.networking.k8s.io/GatewayClass': whenSeen(
    ['Accepted'],
    isTrue('Accepted', { falseIs: 'Degraded', patient: ['Waiting', 'Pending'] }),
  ),
  'gateway.networking.k8s.io/HTTPRoute': attached('parents'),
  'gateway.networking.k8s.io/TCPRoute': attached('parents'),
  'gateway.networking.k8s.io/TLSRoute': attached('parents'),
  'gateway.networking.k8s.io/UDPRoute': attached('parents'),
  // conditions Ready, NotReady, ReconciliationPaused; states of a rebalance: strimzi api.
  'kafka.strimzi.io/Kafka': strimzi,
  'kafka.strimzi.io/KafkaBridge': strimzi,
  'kafka.strimzi.io/KafkaConnect': strimzi,
  'kafka.strimzi.io/KafkaConnector': strimzi,
  'kafka.strimzi.io/KafkaMirrorMaker2': strimzi,
  'kafka.strimzi.io/KafkaRebalance': rebalance,
  'kafka.strimzi.io/KafkaTopic': strimzi,
  'kafka.strimzi.io/KafkaUser': strimzi,
  // conditions Available (True, Degraded, False), Reconciled; spec.paused: prometheus-operator pkg/apis/monitoring/v1.
  'monitoring.coreos.com/Alertmanager': prometheus,
  'monitoring.coreos.com/Prometheus': prometheus,
  'monitoring.coreos.com/PrometheusAgent': prometheus,
  'monitoring.coreos.com/ThanosRuler': prometheus,
  // condition Ready, status.phase in words, status.applied, phases of a backup: cloudnative-pg api/v1.
  'postgresql.cnpg.io/Backup': byPhase({ message: ['error'], healthy: ['completed'], degraded: ['failed', 'walArchivingFailing'] }),
  'postgresql.cnpg.io/Cluster': cnpgCluster,
  'postgresql.cnpg.io/Database': cnpgApplied,
  'postgresql.cnpg.io/ScheduledBackup': unlessSpec('suspend', () => HEALTHY),
  // status.PostgresClusterStatus: zalando postgres-operator pkg/apis/acid.zalan.do/v1.
  'acid.zalan.do/postgresql': byPhase({
    at: ['PostgresClusterStatus'],
    healthy: ['Running'],
    degraded: ['CreateFailed', 'UpdateFailed', 'SyncFailed', 'Invalid'],
  }),
  // status.phase, status.ceph.health: rook pkg/apis/ceph.rook.io/v1.
  'ceph.rook.io/CephBlockPool': ceph,
  'ceph.rook.io/CephCluster': cephCluster,
  'ceph.rook.io/CephFilesystem': ceph,
  'ceph.rook.io/CephObjectStore': ceph,
  // status.health, status.phase: cloud-on-k8s pkg/apis.
  'agent.k8s.elastic.co/Agent': elastic,
  'apm.k8s.elastic.co/ApmServer': elastic,
  'beat.k8s.elastic.co/Beat': elastic,
  'elasticsearch.k8s.elastic.co/Elasticsearch': elasticsearch,
  'kibana.k8s.elastic.co/Kibana': elastic,
  'logstash.k8s.elastic.co/Logstash': elastic,
  // status.phase of each: velero pkg/apis/velero/v1.
  'velero.io/Backup': velero,
  'velero.io/BackupStorageLocation': byPhase({ healthy: ['Available'], degraded: ['Unavailable'] }),
  'velero.io/Restore': velero,
  'velero.io/Schedule': unlessSpec('paused', byPhase({ healthy: ['Enabled'], degraded: ['FailedValidation'] })),
  // status.state, status.robustness: longhorn-manager k8s/pkg/apis/longhorn/v1beta2.
  'longhorn.io/Volume': longhornVolume,
  // status.readyToUse, status.error: external-snapshotter client/apis/volumesnapshot/v1.
  'snapshot.storage.k8s.io/VolumeSnapshot': snapshot,
  'snapshot.storage.k8s.io/VolumeSnapshotContent': snapshot,
  // status.printableStatus, status.phase: kubevirt.io/api core/v1, cdi.kubevirt.io core/v1beta1.
  'cdi.kubevirt.io/CDI': byPhase({ healthy: ['Deployed'], degraded: ['Error'] }),
  'cdi.kubevirt.io/DataVolume': byPhase({
    healthy: ['Succeeded', 'WaitForFirstConsumer', 'PendingPopulation'],
    degraded: ['Failed'],
    suspended: ['Paused'],
  }),
  'kubevirt.io/KubeVirt': byPhase({ healthy: ['Deployed'], degraded: ['Error'] }),
  'kubevirt.io/VirtualMachine': virtualMachine,
  'kubevirt.io/VirtualMachineInstance': byPhase({ healthy: ['Running', 'Succeeded'], degraded: ['Failed'] }),
  // condition Ready: karpenter pkg/apis/v1.
  'karpenter.k8s.aws/EC2NodeClass': isTrue('Ready', { falseIs: 'Degraded' }),
  'karpenter.sh/NodeClaim': isTrue('Ready'),
  'karpenter.sh/NodePool': isTrue('Ready', { falseIs: 'Degraded' }),
  // condition Ready, False for good: kserve (knative's apis).
  'serving.kserve.io/InferenceService': isTrue('Ready', { falseIs: 'Degraded', patient: ['PredictorNotReady', 'RevisionMissing'] }),
  // status.phase: mongodb-kubernetes-operator api/v1; status.state: percona operators; conditions: cluster-operator of RabbitMQ; condition Ready: mariadb-operator.
  'mongodbcommunity.mongodb.com/MongoDBCommunity': byPhase({ healthy: ['Running'], degraded: ['Failed'] }),
  'pxc.percona.com/PerconaXtraDBCluster': percona,
  'psmdb.percona.com/PerconaServerMongoDB': percona,
  'pgv2.percona.com/PerconaPGCluster': percona,
  'rabbitmq.com/RabbitmqCluster': rabbit,
  'k8s.mariadb.com/MariaDB': unlessSpec('suspend', isTrue('Ready')),
  // condition Ready: kyverno api/kyverno/v1; status.byPod[].errors, status.created: gatekeeper frameworks/constraint.
  'kyverno.io/ClusterPolicy': isTrue('Ready', { falseIs: 'Degraded' }),
  'kyverno.io/Policy': isTrue('Ready', { falseIs: 'Degraded' }),
  'templates.gatekeeper.sh/ConstraintTemplate': constraintTemplate,
  // status.state of the Sail operator, status.status of the older one: istio api.
  'sailoperator.io/Istio': byPhase({ at: ['state'], healthy: ['Healthy'], degraded: ['ReconcileError'] }),
  'install.istio.io/IstioOperator': byPhase({ at: ['status'], healthy: ['HEALTHY'], degraded: ['ERROR', 'ACTION_REQUIRED'] }),
  // status.readyReplicas: opentelemetry, and others that repeat a scale.
  'apps.kruise.io/CloneSet': replicasReady,
}
