// Reads why an object is unhealthy: the Pods of a workload, the Job of a CronJob, the Events of other kinds, the taints
// of nodes. Each is read once on request, and bounded.
import { healthOf } from '../../../shared/kube/health.ts'
import { SCHEDULE_MISSED } from '../../../shared/kube/health-schedule.ts'
import { isWorking } from '../../../shared/kube/health-working.ts'
import { type K8sObject, type ObjectRef, versionOf } from '../../../shared/kube/object.ts'
import { LAST_LOG_LINES } from '../../../shared/model/why.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { ApiFailure } from '../../cluster/cluster.ts'
import type { PodLogs } from '../../cluster/pod-logs.ts'
import { safeLog, safeText } from '../../cluster/redact/safe-text.ts'
import { explanation as explain } from '../../messages/explanation-messages.ts'
import { type Asking, targetOf } from '../requests/placed-cluster.ts'
import { activeJobs, isCronJob } from '../snapshot/live-run.ts'
import type { ServedKinds } from '../snapshot/watch/served-kinds.ts'
import { EventFindings, POD_CAUSES, tellsInNormalEvents } from './explain-events.ts'
import { type Explanation, hasPods, lastJob, logText, PodFindings, podSelector } from './explain-workload.ts'
import { TaintFindings } from './node-taints.ts'

/** Maximum number of Pods, Events or nodes to read for one object. */
const READ_MAX = 500
/** Characters of the scheduler's words, which may be long, so that the taints follow within the length of a cause. */
const BEFORE_TAINTS_CHARS_MAX = 340
/** Maximum number of runs of one CronJob to read. */
const JOBS_MAX = 5

export interface CauseReader {
  asking: Pick<Asking, 'get' | 'list' | 'ask'>
  kinds: Pick<ServedKinds, 'find'>
  clock: Clock
  signal: AbortSignal
  /** Null if logs are never read, since they may hold confidential values. */
  logs: (PodLogs & { lines: number }) | null
}

/** `isWeak`: the text names no cause, only that something is late, or it is ''. Schedulers and kubelets may say more in
 *  a moment. */
export interface Cause {
  text: string
  isWeak: boolean
}

/** HE8: an empty text if nothing readable explains it. */
export async function readCause(deps: CauseReader, { ref, apiVersion }: { ref: ObjectRef; apiVersion: string }): Promise<Cause> {
  const object = await read(deps, ref, apiVersion)
  if (object === null) return NOTHING
  // The controller reports in Events why it starts no run; the last run does not show it.
  if (isCronJob(ref))
    return healthOf(object, deps.clock.nowMs()).reason === SCHEDULE_MISSED ? causeInEvents(deps, object) : causeOfRun(deps, object)
  const byPods = hasPods(ref) ? await causeOfPods(deps, object) : NOTHING
  // Quota and admission refuse Pods before they exist, and a claim has none: Kubernetes then reports it in Events
  // alone.
  return byPods.text === '' ? causeInEvents(deps, object) : byPods
}

const NOTHING: Cause = { text: '', isWeak: true }

async function read({ asking, kinds }: CauseReader, ref: ObjectRef, apiVersion: string): Promise<K8sObject | null> {
  const lookup = kinds.find(ref.group, versionOf(apiVersion), ref.kind)
  if (lookup.kind !== 'served') return null
  const answer = await asking.get(lookup.resource, ref)
  return answer.kind === 'found' ? answer.object : null
}

/** HE23: of the Job that runs no Pod, or else of the last one. */
async function causeOfRun(deps: CauseReader, cronJob: K8sObject): Promise<Cause> {
  const { namespace = '' } = cronJob.metadata
  const active = activeJobs(cronJob)
  for (const name of active.length > 0 ? active.slice(0, JOBS_MAX) : lastJob(cronJob)) {
    const job = await read(deps, { group: 'batch', kind: 'Job', namespace, name }, 'batch/v1')
    if (job === null || isWorking(job)) continue
    const byPods = await causeOfPods(deps, job)
    const said = byPods.text === '' ? await causeInEvents(deps, job) : byPods
    const cause = said.text || safeText(healthOf(job, deps.clock.nowMs()).message, { documents: [job] })
    if (cause !== '') return { text: explain('job', { name, cause }), isWeak: said.isWeak }
  }
  return NOTHING
}

async function causeOfPods(deps: CauseReader, workload: K8sObject): Promise<Cause> {
  const labelSelector = podSelector(workload)
  if (labelSelector === null) return NOTHING
  const findings = new PodFindings(workload)
  const { namespace = '' } = workload.metadata
  const failure = await list(deps, { kind: 'Pod', group: '', namespace, labelSelector }, (pod) => findings.add(pod))
  if (failure !== null) return { text: explain('pods_unread', { failure: failure.message }), isWeak: false }
  const explanation = findings.explain()
  if (explanation === null) return NOTHING
  const said = explanation.eventsOf === null ? NOTHING : await causeInEvents(deps, explanation.eventsOf, POD_CAUSES)
  const taints = explanation.taintsOf === null ? '' : await taintsFor(deps, explanation.taintsOf)
  const more = [said.text, taints].flatMap((text) => (text === '' ? [] : `; ${text}`)).join('')
  const told = taints === '' ? explanation.text : explanation.text.slice(0, BEFORE_TAINTS_CHARS_MAX)
  const text = told + more + (await lastLines(deps, explanation))
  return { text, isWeak: explanation.isWeak && said.isWeak }
}

async function taintsFor(deps: CauseReader, pod: K8sObject): Promise<string> {
  const findings = new TaintFindings(pod)
  // Without the right to read nodes, the words of the scheduler are used.
  await list(deps, { kind: 'Node', group: '' }, (node) => findings.add(node))
  return findings.explain()
}

async function causeInEvents(deps: CauseReader, object: K8sObject, causes?: ReadonlySet<string>): Promise<Cause> {
  const { namespace = 'default', uid = '' } = object.metadata
  const findings = new EventFindings(object, causes)
  const fieldSelector = `involvedObject.uid=${uid}${tellsInNormalEvents(object) ? '' : ',type=Warning'}`
  // Without the right to read Events, the other facts are used.
  await list(deps, { kind: 'Event', group: '', namespace, fieldSelector }, (event) => findings.add(event))
  const text = findings.explain()
  return { text, isWeak: text === '' }
}

interface Listing {
  group: string
  kind: string
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
}

/** Null, unless the agent may not read it: a missing answer is no result. */
async function list(
  deps: CauseReader,
  { group, kind, ...options }: Listing,
  take: (object: K8sObject) => void,
): Promise<ApiFailure | null> {
  const { asking, kinds } = deps
  const lookup = kinds.find(group, 'v1', kind)
  if (lookup.kind !== 'served') return null
  const enough = new AbortController()
  const signal = AbortSignal.any([deps.signal, enough.signal])
  let seen = 0
  const failure = await asking.list(lookup.resource, { ...options, signal }, (object, isThere) => {
    if (isThere) take(object)
    seen += 1
    if (seen >= READ_MAX) enough.abort()
  })
  return failure?.kind === 'forbidden' ? failure : null
}

async function lastLines({ asking, logs }: CauseReader, { log, documents }: Explanation): Promise<string> {
  if (logs === null || log === null) return ''
  const { pod, container, previous } = log
  // The kubelet answers for its logs, and may be out of reach when the API server is not.
  const answer = await asking.ask(
    targetOf('read', { group: '', kind: 'Pod/log' }, pod.namespace),
    () => logs.logTail(pod, { container, previous, lines: logs.lines }),
    (log) => (log.kind === 'failed' ? log.failure : null),
  )
  // Without the right to read logs, or without the container, the other facts are used.
  const text = answer.kind === 'log' ? logText(safeLog(answer.text, { documents }), logs.lines) : ''
  return text === '' ? '' : `${LAST_LOG_LINES}${text}`
}
