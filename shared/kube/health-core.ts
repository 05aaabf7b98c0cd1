// Health of the kinds that Kubernetes itself serves, as kstatus has it (kubernetes-sigs/cli-utils
// pkg/kstatus/status/core.go) where it has a rule; where ours differs, the line says why. Ingress,
// HorizontalPodAutoscaler, APIService, Namespace, Node and PersistentVolume are ours: kstatus knows none of them.
import {
  count,
  degraded,
  type Fields,
  fields,
  HEALTHY,
  type Health,
  healthyWith,
  list,
  progressing,
  type Rule,
  suspended,
  text,
} from './health-object.ts'
import { onSchedule } from './health-schedule.ts'

/** A Pod may be unschedulable for a moment while nodes join or others leave. */
const UNSCHEDULABLE_GRACE_MS = 15_000

const notObserved = (status: Fields): Health | null =>
  status['observedGeneration'] === undefined ? progressing('NotObserved', 'its controller has not processed it yet') : null

const deployment: Rule = ({ spec, status, condition }) => {
  if (spec['paused'] === true) return suspended('spec.paused is true; resume its rollout')
  const moving = condition('Progressing')
  // kstatus reads ReplicaFailure of ReplicaSets only; on a Deployment it is the one place that says why no Pod is
  // created.
  const failure = condition('ReplicaFailure')
  if (moving?.reason === 'ProgressDeadlineExceeded') {
    const texts = [moving.message, failure?.status === 'True' ? failure.message : ''].filter((part) => part !== '')
    return degraded('ProgressDeadlineExceeded', texts.join('; '))
  }
  if (failure?.status === 'True') return progressing(failure.reason || 'ReplicaFailure', failure.message)
  const unseen = notObserved(status)
  if (unseen !== null) return unseen
  const wanted = count(spec['replicas'], 1)
  const total = count(status['replicas'])
  const updated = count(status['updatedReplicas'])
  const available = count(status['availableReplicas'])
  const ready = count(status['readyReplicas'], available)
  if (total < wanted) return progressing('LessReplicas', `${total} of ${wanted} replicas exist`)
  if (updated < wanted) return progressing('LessUpdated', `${updated} of ${wanted} replicas are updated`)
  if (total > updated) return progressing('ExtraReplicas', `${total - updated} old replicas still exist`)
  if (available < updated) return progressing('LessAvailable', `${available} of ${updated} replicas are available`)
  if (ready < wanted) return progressing('LessReady', `${ready} of ${wanted} replicas are ready`)
  // Without a deadline the controller never says Progressing; Kubernetes sets one by default, and 2147483647 is "none".
  const hasDeadline = count(spec['progressDeadlineSeconds'], 2_147_483_647) !== 2_147_483_647
  if (hasDeadline && moving !== undefined && (moving.status !== 'True' || moving.reason !== 'NewReplicaSetAvailable')) {
    return progressing(moving.reason || 'ReplicaSetNotAvailable', moving.message || 'its newest ReplicaSet is not available yet')
  }
  const serving = condition('Available')
  if (serving !== undefined && serving.status !== 'True') return progressing(serving.reason || 'NotAvailable', serving.message)
  return HEALTHY
}

const replicaSet: Rule = ({ spec, status, condition }) => {
  const failure = condition('ReplicaFailure')
  if (failure?.status === 'True') return progressing(failure.reason || 'ReplicaFailure', failure.message)
  const wanted = count(spec['replicas'], 1)
  const total = count(status['replicas'])
  const available = count(status['availableReplicas'])
  const ready = count(status['readyReplicas'], available)
  if (total !== wanted) {
    return progressing(total < wanted ? 'LessReplicas' : 'ExtraReplicas', `${total} replicas exist, ${wanted} are wanted`)
  }
  if (available < wanted) return progressing('LessAvailable', `${available} of ${wanted} replicas are available`)
  if (ready < wanted) return progressing('LessReady', `${ready} of ${wanted} replicas are ready`)
  return HEALTHY
}

const statefulSet: Rule = ({ spec, status }) => {
  const strategy = fields(spec['updateStrategy'])
  const unseen = notObserved(status)
  if (unseen !== null) return unseen
  const wanted = count(spec['replicas'], 1)
  const total = count(status['replicas'])
  const ready = count(status['readyReplicas'])
  if (total < wanted) return progressing('LessReplicas', `${total} of ${wanted} replicas exist`)
  if (ready < wanted) return progressing('LessReady', `${ready} of ${wanted} replicas are ready`)
  if (total > wanted) return progressing('ExtraReplicas', `${total - wanted} replicas too many`)
  // With OnDelete nothing replaces old Pods: waiting for that would never end. kstatus does not read the replicas
  // either.
  if (strategy['type'] === 'OnDelete') return HEALTHY
  const toUpdate = Math.max(0, wanted - count(fields(strategy['rollingUpdate'])['partition']))
  const updated = count(status['updatedReplicas'])
  if (updated < toUpdate) return progressing('LessUpdated', `${updated} of ${toUpdate} replicas are updated`)
  const partitioned = toUpdate < wanted
  if (!partitioned && status['currentRevision'] !== status['updateRevision']) {
    return progressing('RevisionsDiffer', `revision ${status['updateRevision']} is not the current revision yet`)
  }
  return HEALTHY
}

const daemonSet: Rule = ({ spec, status }) => {
  const unseen = notObserved(status)
  if (unseen !== null) return unseen
  if (status['desiredNumberScheduled'] === undefined) return progressing('NoDesiredNumber', 'its controller has not counted the nodes yet')
  const wanted = count(status['desiredNumberScheduled'])
  const scheduled = count(status['currentNumberScheduled'])
  const updated = count(status['updatedNumberScheduled'])
  const available = count(status['numberAvailable'])
  const ready = count(status['numberReady'], available)
  if (scheduled < wanted) return progressing('LessScheduled', `${scheduled} of ${wanted} Pods are scheduled`)
  // With OnDelete nothing replaces old Pods; kstatus waits for that all the same.
  if (fields(spec['updateStrategy'])['type'] !== 'OnDelete' && updated < wanted) {
    return progressing('LessUpdated', `${updated} of ${wanted} Pods are updated`)
  }
  if (available < wanted) return progressing('LessAvailable', `${available} of ${wanted} Pods are available`)
  if (ready < wanted) return progressing('LessReady', `${ready} of ${wanted} Pods are ready`)
  return HEALTHY
}

const replicationController: Rule = (reading) => replicaSet(reading)

const pod: Rule = ({ status, condition, nowMs }) => {
  const phase = status['phase']
  if (phase === 'Succeeded') return HEALTHY
  // kstatus calls a failed Pod Current, since nothing about it will change.
  if (phase === 'Failed') return degraded(text(status['reason']) || 'PodFailed', text(status['message']) || 'the Pod has failed')
  const looping = waitingContainer(status, ['CrashLoopBackOff'])
  if (looping !== null) return degraded(looping.reason, looping.message)
  const ready = condition('Ready')
  if (phase === 'Running' && ready?.status === 'True') return HEALTHY
  const scheduled = condition('PodScheduled')
  if (scheduled?.status === 'False' && scheduled.reason === 'Unschedulable') {
    const grown = nowMs - Date.parse(scheduled.changedAt) >= UNSCHEDULABLE_GRACE_MS
    return grown ? degraded('Unschedulable', scheduled.message) : progressing('Unschedulable', scheduled.message)
  }
  const waiting = waitingContainer(status, null)
  if (waiting !== null) return progressing(waiting.reason, waiting.message)
  return progressing(phase === 'Running' ? 'NotReady' : 'Pending', ready?.message || 'the Pod is not ready yet')
}

/** The first container that waits, for one of `reasons` or for any. */
function waitingContainer(status: Fields, reasons: readonly string[] | null): { reason: string; message: string } | null {
  for (const name of ['initContainerStatuses', 'containerStatuses']) {
    for (const container of list(status[name])) {
      const waiting = fields(fields(container['state'])['waiting'])
      const reason = text(waiting['reason'])
      if (reason === '' || (reasons !== null && !reasons.includes(reason))) continue
      return { reason, message: `container ${text(container['name'])}: ${text(waiting['message']) || reason}` }
    }
  }
  return null
}

/** Unlike kstatus, a Job is healthy when it is done, not when it has begun: what comes after it relies on its work. */
const job: Rule = ({ spec, status, condition }) => {
  const failed = condition('Failed') ?? condition('FailureTarget')
  if (failed?.status === 'True') return degraded(failed.reason || 'JobFailed', failed.message)
  const complete = condition('Complete')
  if (complete?.status === 'True') return HEALTHY
  if (spec['suspend'] === true) return suspended('spec.suspend is true')
  const active = count(status['active'])
  if (status['startTime'] === undefined && active === 0) return progressing('NotStarted', 'its controller has not started it yet')
  const done = `${count(status['succeeded'])} of ${count(spec['completions'], 1)} completions`
  // `ready` counts the Pods that run; others wait for a node, for an image, or for their turn.
  if (count(status['ready'], active) > 0) return progressing('Running', `${done}, ${active} active, ${count(status['failed'])} failed`)
  return progressing('NoPodRuns', `${done}; none of its Pods runs (${active} active, ${count(status['failed'])} failed)`)
}

/** Before Kubernetes 1.31 a run leaves `active` in one update of the status and enters `lastSuccessfulTime` in the next
 *  one. */
const RUN_END_GRACE_MS = 10_000

/** A CronJob is as well as its last run: it says when one was due last, when one last succeeded, and which still run.
 */
const cronJob: Rule = (reading) => {
  const { spec, status, statusMs, nowMs } = reading
  if (spec['suspend'] === true) return suspended('spec.suspend is true')
  const due = text(status['lastScheduleTime'])
  if (list(status['active']).length > 0) return HEALTHY
  if (due === '') return onSchedule(reading)
  const succeeded = text(status['lastSuccessfulTime'])
  if (succeeded !== '' && Date.parse(succeeded) >= Date.parse(due)) return onSchedule(reading)
  const failed = degraded('LastRunFailed', `its last run, due at ${due}, did not succeed`)
  // An agent's clock may be behind the API server's.
  const atMs = statusMs === null ? nowMs : Math.min(statusMs, nowMs) + RUN_END_GRACE_MS
  return nowMs >= atMs ? failed : { ...HEALTHY, settles: { atMs, health: failed } }
}

const claim: Rule = ({ status }) => {
  const phase = text(status['phase'])
  if (phase === 'Bound') return HEALTHY
  if (phase === 'Lost')
    return degraded('Lost', 'its volume no longer exists; restore the data, then delete the claim so that it is recreated')
  return progressing('NotBound', `phase is ${phase || 'not set'}`)
}

const volume: Rule = ({ status }) => {
  const phase = text(status['phase'])
  if (phase === 'Failed') return degraded(text(status['reason']) || 'Failed', text(status['message']) || 'it could not be reclaimed')
  return phase === '' || phase === 'Pending' ? progressing('Pending', 'it is not available yet') : HEALTHY
}

/** kstatus asks only whether the controller has looked. A budget that is not met means that Pods are away; SyncFailed
 *  means that its controller cannot count them and allows no eviction. */
const budget: Rule = ({ status, conditions }) => {
  const unseen = notObserved(status)
  if (unseen !== null) return unseen
  const failed = conditions.find(({ type, reason }) => type === 'DisruptionAllowed' && reason === 'SyncFailed')
  if (failed !== undefined) return degraded('SyncFailed', failed.message || 'its controller cannot count its Pods')
  const [now, wanted] = [count(status['currentHealthy']), count(status['desiredHealthy'])]
  // A workload at zero replicas has nothing to keep.
  return now >= wanted || status['expectedPods'] === 0 ? HEALTHY : progressing('BudgetNotMet', `${now} of ${wanted} Pods are healthy`)
}

const definition: Rule = ({ condition }) => {
  const names = condition('NamesAccepted')
  if (names?.status === 'False') return degraded(names.reason || 'NamesNotAccepted', names.message)
  const schema = condition('NonStructuralSchema')
  // Its objects are served without pruning, defaults and some validation; a manifest of v1 does not repair it by
  // itself.
  if (schema?.status === 'True') return degraded('NonStructuralSchema', schema.message)
  const established = condition('Established')
  if (established?.status === 'True') return HEALTHY
  if (established?.status === 'False' && established.reason !== 'Installing' && established.reason !== '') {
    return degraded(established.reason, established.message)
  }
  return progressing(established?.reason || 'Installing', established?.message || 'it is not Established yet')
}

const namespace: Rule = ({ status }) =>
  status['phase'] === undefined || status['phase'] === 'Active' ? HEALTHY : progressing('NotActive', `phase is ${status['phase']}`)

const node: Rule = ({ spec, condition }) => {
  const ready = condition('Ready')
  if (ready?.status !== 'True') return progressing(ready?.reason || 'NotReady', ready?.message || 'its kubelet has not reported yet')
  return spec['unschedulable'] === true ? suspended('spec.unschedulable is true; uncordon it') : HEALTHY
}

const apiService: Rule = ({ condition }) => {
  const available = condition('Available')
  if (available?.status === 'True') return HEALTHY
  return progressing(available?.reason || 'NotAvailable', available?.message || 'its backend has not answered yet')
}

/** HE5: edge clusters have no load balancer: an address that never comes must not hold up everything else, unless a
 *  service asks for it. kstatus waits for a ClusterIP only, which the API server gives before it answers. */
const addressed: Rule = ({ spec, status, waitForAddress }) => {
  if (!waitForAddress) return HEALTHY
  const isBalancer = spec['type'] === undefined || spec['type'] === 'LoadBalancer'
  const given = list(fields(status['loadBalancer'])['ingress']).some((entry) => text(entry['ip']) !== '' || text(entry['hostname']) !== '')
  if (given || !isBalancer) return HEALTHY
  return progressing(
    'NoAddress',
    'it has no address yet (sync.waitForAddress); check the load balancer or Ingress controller of this cluster',
  )
}

const service: Rule = (reading) => (reading.spec['type'] === 'LoadBalancer' ? addressed(reading) : HEALTHY)

/** Approved and signed, or refused by a person. */
const signingRequest: Rule = ({ status, condition }) => {
  const refused = condition('Denied') ?? condition('Failed')
  if (refused?.status === 'True') return degraded(refused.reason || refused.type, refused.message)
  return text(status['certificate']) === ''
    ? progressing('NotIssued', 'it is not signed yet; approve it with kubectl certificate approve')
    : HEALTHY
}

/** Reasons of a ScalingActive that is False for what the spec says, not for missing metrics. */
const INVALID_SCALING = ['InvalidMetricSourceType', 'InvalidSelector', 'AmbiguousSelector'] as const
/** Often no metrics on the edge: an autoscaler that cannot scale must not hold up everything else, so that is a note. A
 *  target that is not there, or a spec that cannot work, is a failure. */
const autoscaler: Rule = ({ condition }) => {
  const able = condition('AbleToScale')
  if (able?.status === 'False' && (able.reason === 'FailedGetScale' || able.reason === 'FailedUpdateScale'))
    return degraded(able.reason, able.message)
  const active = condition('ScalingActive')
  if (active?.status !== 'False' || active.reason === 'ScalingDisabled') return HEALTHY
  const isInvalid = (INVALID_SCALING as readonly string[]).includes(active.reason)
  return isInvalid ? degraded(active.reason, active.message) : healthyWith(active.reason || 'ScalingInactive', active.message)
}

/** Kinds of built-in groups that are not here are healthy when they exist: they are configuration. */
export const CORE_RULES: Readonly<Record<string, Rule>> = {
  '/Namespace': namespace,
  '/Node': node,
  '/PersistentVolume': volume,
  '/PersistentVolumeClaim': claim,
  '/Pod': pod,
  '/ReplicationController': replicationController,
  '/Service': service,
  'apiextensions.k8s.io/CustomResourceDefinition': definition,
  'apiregistration.k8s.io/APIService': apiService,
  'apps/DaemonSet': daemonSet,
  'apps/Deployment': deployment,
  'apps/ReplicaSet': replicaSet,
  'apps/StatefulSet': statefulSet,
  'autoscaling/HorizontalPodAutoscaler': autoscaler,
  'batch/CronJob': cronJob,
  'batch/Job': job,
  'certificates.k8s.io/CertificateSigningRequest': signingRequest,
  'networking.k8s.io/Ingress': addressed,
  'policy/PodDisruptionBudget': budget,
}
