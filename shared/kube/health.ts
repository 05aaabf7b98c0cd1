// How an object is doing, from the object alone: no API call, no clock. The rules mirror kstatus (kubernetes-sigs/cli-utils pkg/kstatus) where
// it has one; where ours differs, the line says why.
//   Healthy      it is what its spec asks for      Progressing  on the way there
//   Degraded     it will not get there by itself   Suspended    somebody stopped it on purpose
//   Missing      it should exist and does not      Unknown      it could not be looked at
import type { HealthWord } from '../model/status.ts'
import { deletionText } from './deletion.ts'
import { groupOf, type K8sObject } from './object.ts'
import { isBuiltInGroup } from './order.ts'

export interface Health {
  word: HealthWord
  reason: string
  message: string
}

export const HEALTHY: Health = { word: 'Healthy', reason: 'Healthy', message: '' }
const progressing = (reason: string, message: string): Health => ({ word: 'Progressing', reason, message })
const degraded = (reason: string, message: string): Health => ({ word: 'Degraded', reason, message })
const suspended = (message: string): Health => ({ word: 'Suspended', reason: 'Suspended', message })

type Fields = Record<string, unknown>
interface Condition {
  type: string
  status: string
  reason: string
  message: string
  atMs: number
}
interface Look {
  spec: Fields
  status: Fields
  condition(type: string): Condition | undefined
  nowMs: number
}
type Rule = (look: Look) => Health

/** A Pod may be unschedulable for a moment while nodes join or others leave. */
const UNSCHEDULABLE_GRACE_MS = 15_000

/** HE1: general rules first (deletion, observedGeneration, Stalled, Reconciling), then the kind's own, then conditions. */
export function healthOf(object: K8sObject, nowMs: number): Health {
  const deleting = deletionText(object)
  if (deleting !== null) return progressing('Deleting', deleting)
  const look = lookAt(object, nowMs)
  const observed = look.status['observedGeneration']
  const generation = object.metadata.generation
  if (typeof observed === 'number' && generation !== undefined && observed < generation) {
    return progressing('GenerationNotObserved', `its controller has seen generation ${observed} of ${generation}`)
  }
  const stalled = look.condition('Stalled')
  if (stalled?.status === 'True') return degraded(stalled.reason || 'Stalled', stalled.message)
  const reconciling = look.condition('Reconciling')
  if (reconciling?.status === 'True') return progressing(reconciling.reason || 'Reconciling', reconciling.message)

  const group = groupOf(object.apiVersion)
  const rule = RULES[`${group}/${object.kind}`]
  if (rule !== undefined) return rule(look)
  return isBuiltInGroup(group) ? HEALTHY : byConditions(look)
}

/** HE2: past its deadline, Progressing is Degraded. */
export function pastDeadline(health: Health, sinceMs: number, deadlineMs: number, nowMs: number): Health {
  if (health.word !== 'Progressing' || nowMs - sinceMs < deadlineMs) return health
  const message = `${health.message}; not healthy within ${Math.round(deadlineMs / 1000)} s`.replace(/^; /, '')
  return degraded('DeadlineExceeded', message)
}

/** Kinds without a rule, of groups that the API server does not serve itself. Without a condition there is nothing to wait for. */
function byConditions(look: Look): Health {
  for (const type of ['Ready', 'Available', 'Established']) {
    const condition = look.condition(type)
    if (condition === undefined) continue
    if (condition.status === 'True') return HEALTHY
    return progressing(condition.reason || `Not${type}`, condition.message || `condition ${type} is ${condition.status}`)
  }
  return HEALTHY
}

const deployment: Rule = ({ spec, status, condition }) => {
  if (spec['paused'] === true) return suspended('spec.paused is true')
  const moving = condition('Progressing')
  if (moving?.reason === 'ProgressDeadlineExceeded') return degraded('ProgressDeadlineExceeded', moving.message)
  const failure = condition('ReplicaFailure')
  if (failure?.status === 'True') return progressing(failure.reason || 'ReplicaFailure', failure.message)
  if (status['observedGeneration'] === undefined) return progressing('NotObserved', 'its controller has not looked at it yet')
  const wanted = count(spec['replicas'], 1)
  const total = count(status['replicas'])
  const updated = count(status['updatedReplicas'])
  const available = count(status['availableReplicas'])
  if (total < wanted) return progressing('LessReplicas', `${total} of ${wanted} replicas exist`)
  if (updated < wanted) return progressing('LessUpdated', `${updated} of ${wanted} replicas are updated`)
  if (total > updated) return progressing('ExtraReplicas', `${total - updated} old replicas are still there`)
  if (available < updated) return progressing('LessAvailable', `${available} of ${updated} replicas are available`)
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
  if (total !== wanted)
    return progressing(total < wanted ? 'LessReplicas' : 'ExtraReplicas', `${total} replicas exist, ${wanted} are wanted`)
  if (available < wanted) return progressing('LessAvailable', `${available} of ${wanted} replicas are available`)
  return HEALTHY
}

const statefulSet: Rule = ({ spec, status }) => {
  const strategy = fields(spec['updateStrategy'])
  if (status['observedGeneration'] === undefined) return progressing('NotObserved', 'its controller has not looked at it yet')
  const wanted = count(spec['replicas'], 1)
  const total = count(status['replicas'])
  const ready = count(status['readyReplicas'])
  if (total < wanted) return progressing('LessReplicas', `${total} of ${wanted} replicas exist`)
  if (ready < wanted) return progressing('LessReady', `${ready} of ${wanted} replicas are ready`)
  if (total > wanted) return progressing('ExtraReplicas', `${total - wanted} replicas too many`)
  // With OnDelete nobody replaces old Pods: waiting for that would last for ever.
  if (strategy['type'] === 'OnDelete') return HEALTHY
  const toUpdate = Math.max(0, wanted - count(fields(strategy['rollingUpdate'])['partition']))
  const updated = count(status['updatedReplicas'])
  if (updated < toUpdate) return progressing('LessUpdated', `${updated} of ${toUpdate} replicas are updated`)
  const partitioned = toUpdate < wanted
  if (!partitioned && status['currentRevision'] !== status['updateRevision']) {
    return progressing('RevisionsDiffer', `revision ${status['updateRevision']} is not the current one yet`)
  }
  return HEALTHY
}

const daemonSet: Rule = ({ spec, status }) => {
  if (status['observedGeneration'] === undefined) return progressing('NotObserved', 'its controller has not looked at it yet')
  const wanted = count(status['desiredNumberScheduled'])
  const scheduled = count(status['currentNumberScheduled'])
  const updated = count(status['updatedNumberScheduled'])
  const available = count(status['numberAvailable'])
  if (scheduled < wanted) return progressing('LessScheduled', `${scheduled} of ${wanted} Pods are scheduled`)
  if (fields(spec['updateStrategy'])['type'] !== 'OnDelete' && updated < wanted) {
    return progressing('LessUpdated', `${updated} of ${wanted} Pods are updated`)
  }
  if (available < wanted) return progressing('LessAvailable', `${available} of ${wanted} Pods are available`)
  return HEALTHY
}

const pod: Rule = ({ status, condition, nowMs }) => {
  const phase = status['phase']
  if (phase === 'Succeeded') return HEALTHY
  if (phase === 'Failed') return degraded(text(status['reason']) || 'PodFailed', text(status['message']) || 'the Pod has failed')
  const looping = waitingContainer(status, ['CrashLoopBackOff'])
  if (looping !== null) return degraded(looping.reason, looping.message)
  const ready = condition('Ready')
  if (phase === 'Running' && ready?.status === 'True') return HEALTHY
  const scheduled = condition('PodScheduled')
  if (scheduled?.status === 'False' && scheduled.reason === 'Unschedulable') {
    const grown = nowMs - scheduled.atMs >= UNSCHEDULABLE_GRACE_MS
    return grown ? degraded('Unschedulable', scheduled.message) : progressing('Unschedulable', scheduled.message)
  }
  const waiting = waitingContainer(status, null)
  if (waiting !== null) return progressing(waiting.reason, waiting.message)
  return progressing(phase === 'Running' ? 'NotReady' : 'Pending', ready?.message || 'the Pod is not ready yet')
}

/** Unlike kstatus, a Job is healthy when it is done, not when it has begun: what comes after it relies on its work. */
const job: Rule = ({ spec, status, condition }) => {
  const failed = condition('Failed')
  if (failed?.status === 'True') return degraded(failed.reason || 'JobFailed', failed.message)
  const complete = condition('Complete')
  if (complete?.status === 'True') return HEALTHY
  if (spec['suspend'] === true) return suspended('spec.suspend is true')
  const done = count(status['succeeded'])
  const wanted = count(spec['completions'], 1)
  return progressing('Running', `${done} of ${wanted} completions, ${count(status['active'])} active, ${count(status['failed'])} failed`)
}

const cronJob: Rule = ({ spec }) => (spec['suspend'] === true ? suspended('spec.suspend is true') : HEALTHY)

const claim: Rule = ({ status }) => {
  const phase = text(status['phase'])
  if (phase === 'Bound') return HEALTHY
  if (phase === 'Lost') return degraded('Lost', 'its volume is gone')
  return progressing('NotBound', `phase is ${phase || 'not set'}`)
}

const budget: Rule = ({ status }) => {
  if (status['observedGeneration'] === undefined) return progressing('NotObserved', 'its controller has not looked at it yet')
  const [now, wanted] = [count(status['currentHealthy']), count(status['desiredHealthy'])]
  return now >= wanted ? HEALTHY : progressing('BudgetNotMet', `${now} of ${wanted} Pods are healthy`)
}

const definition: Rule = ({ condition }) => {
  const names = condition('NamesAccepted')
  if (names?.status === 'False') return degraded(names.reason || 'NamesNotAccepted', names.message)
  const established = condition('Established')
  if (established?.status === 'True') return HEALTHY
  return progressing(established?.reason || 'Installing', established?.message || 'it is not Established yet')
}

const namespace: Rule = ({ status }) =>
  status['phase'] === undefined || status['phase'] === 'Active' ? HEALTHY : progressing('NotActive', `phase is ${status['phase']}`)

const apiService: Rule = ({ condition }) => {
  const available = condition('Available')
  if (available?.status === 'True') return HEALTHY
  return progressing(available?.reason || 'NotAvailable', available?.message || 'its backend has not answered yet')
}

/** Edge clusters have no load balancer and often no metrics: an address or a metric that never comes must not hold up everything else. */
const always: Rule = () => HEALTHY

const RULES: Readonly<Record<string, Rule>> = {
  '/Namespace': namespace,
  '/PersistentVolumeClaim': claim,
  '/Pod': pod,
  '/Service': always,
  'apiextensions.k8s.io/CustomResourceDefinition': definition,
  'apiregistration.k8s.io/APIService': apiService,
  'apps/DaemonSet': daemonSet,
  'apps/Deployment': deployment,
  'apps/ReplicaSet': replicaSet,
  'apps/StatefulSet': statefulSet,
  'autoscaling/HorizontalPodAutoscaler': always,
  'batch/CronJob': cronJob,
  'batch/Job': job,
  'networking.k8s.io/Ingress': always,
  'policy/PodDisruptionBudget': budget,
}

/** These end by their own rules and may run for hours: the health deadline is not theirs. */
export const hasHealthDeadline = (group: string, kind: string): boolean => !(group === 'batch' && kind === 'Job')

function lookAt(object: K8sObject, nowMs: number): Look {
  const status = fields(object['status'])
  const conditions = Array.isArray(status['conditions']) ? status['conditions'] : []
  return {
    spec: fields(object['spec']),
    status,
    nowMs,
    condition: (type) => {
      const found = conditions.map(fields).find((entry) => entry['type'] === type)
      if (found === undefined) return undefined
      const atMs = Date.parse(text(found['lastTransitionTime']))
      return {
        type,
        status: text(found['status']),
        reason: text(found['reason']),
        message: text(found['message']),
        atMs: Number.isNaN(atMs) ? nowMs : atMs,
      }
    },
  }
}

/** The first container that waits, for one of `reasons` or for any. */
function waitingContainer(status: Fields, reasons: readonly string[] | null): { reason: string; message: string } | null {
  for (const list of ['initContainerStatuses', 'containerStatuses']) {
    const containers = status[list]
    if (!Array.isArray(containers)) continue
    for (const container of containers.map(fields)) {
      const waiting = fields(fields(container['state'])['waiting'])
      const reason = text(waiting['reason'])
      if (reason === '' || (reasons !== null && !reasons.includes(reason))) continue
      return { reason, message: `container ${text(container['name'])}: ${text(waiting['message']) || reason}` }
    }
  }
  return null
}

const fields = (value: unknown): Fields => (value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Fields) : {})
const text = (value: unknown): string => (typeof value === 'string' ? value : '')
const count = (value: unknown, absent = 0): number => (typeof value === 'number' ? value : absent)
