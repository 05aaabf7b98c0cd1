// Explains an unhealthy workload by its Pods: the worst one decides, in the words of its kubelet and of the scheduler.
// Pure; explainer.ts reads the Pods once.
import { type Fields, fields, list, text } from '../../../shared/kube/health-object.ts'
import { type K8sObject, type ObjectRef, refText } from '../../../shared/kube/object.ts'
import { safeReason, safeText } from '../../cluster/redact/safe-text.ts'
import { explanation } from '../../messages/explanation-messages.ts'
import { isCronJob } from '../snapshot/live-run.ts'
import { isByTaints } from './node-taints.ts'

type Kind = Pick<ObjectRef, 'group' | 'kind'>
const WORKLOADS: ReadonlySet<string> = new Set(['apps/Deployment', 'apps/StatefulSet', 'apps/DaemonSet', 'apps/ReplicaSet', 'batch/Job'])
/** Kinds that have Pods of their own to ask. */
export const hasPods = ({ group, kind }: Kind): boolean => WORKLOADS.has(`${group}/${kind}`)
/** Kinds whose trouble is explained by other objects. */
export const isExplained = (ref: Kind): boolean =>
  hasPods(ref) || isCronJob(ref) || (ref.group === '' && ref.kind === 'PersistentVolumeClaim')

/** The name of the Job of the last run, as the CronJob controller derives it from the due minute; null before the
 *  first run. */
export function lastJob(cronJob: K8sObject): string[] {
  const atMs = Date.parse(text(fields(cronJob['status'])['lastScheduleTime']))
  return Number.isNaN(atMs) ? [] : [`${cronJob.metadata.name}-${Math.floor(atMs / 60_000)}`]
}

const OPERATORS: Readonly<Record<string, (key: string, values: string) => string>> = {
  In: (key, values) => `${key} in (${values})`,
  NotIn: (key, values) => `${key} notin (${values})`,
  Exists: (key) => key,
  DoesNotExist: (key) => `!${key}`,
}

/** The form of a query to an API server. Null means that it selects nothing that could be requested. */
export function podSelector(workload: K8sObject): string | null {
  const selector = fields(fields(workload['spec'])['selector'])
  const parts = Object.entries(fields(selector['matchLabels'])).map(([key, value]) => `${key}=${text(value)}`)
  for (const { key, operator, values } of list(selector['matchExpressions'])) {
    const form = OPERATORS[text(operator)]
    if (form === undefined) return null
    parts.push(form(text(key), Array.isArray(values) ? values.map(text).join(',') : ''))
  }
  return parts.length === 0 ? null : parts.sort().join(',')
}

/** The problem of one Pod. `weight`: its significance; `container`: the one whose log would explain more, null for
 *  none. */
interface Finding {
  weight: number
  /** In our words. */
  what: string
  /** In the words of the kubelet or the scheduler; '' for none. */
  said: string
  container: { name: string; previous: boolean } | null
}

export interface Explanation {
  text: string
  /** Objects of the message: logs may hold their values. */
  documents: readonly K8sObject[]
  /** The container whose last log lines belong to the explanation. */
  log: { pod: ObjectRef; container: string; previous: boolean } | null
  /** The Pod whose Events say more than its status: a volume that is not mounted, a probe that fails. Null: its status
   *  says why. */
  eventsOf: K8sObject | null
  /** The Pod that taints keep from nodes, in words that do not always name them. */
  taintsOf: K8sObject | null
  /** The Pod is late and says no reason. */
  isWeak: boolean
}

const BROKEN = 3
const RESTARTED = 2
const LATE = 1

/** Reads Pods one after the other and keeps the most significant one. */
export class PodFindings {
  readonly #workload: K8sObject
  #seen = 0
  #failing = 0
  #worst: { object: K8sObject; pod: ObjectRef; madeAt: string; finding: Finding } | null = null

  constructor(workload: K8sObject) {
    this.#workload = workload
  }

  seen(): number {
    return this.#seen
  }

  add(pod: K8sObject): void {
    if (!isPodOf(this.#workload, pod)) return
    this.#seen += 1
    const finding = findingOf(pod, reasonsOf([pod, this.#workload]))
    if (finding === null) return
    this.#failing += 1
    const madeAt = pod.metadata.creationTimestamp ?? ''
    const ref = { group: '', kind: 'Pod', namespace: pod.metadata.namespace ?? '', name: pod.metadata.name ?? '' }
    const worst = this.#worst
    const says =
      finding.weight - (worst?.finding.weight ?? 0) ||
      (madeAt > (worst?.madeAt ?? '') ? 1 : madeAt === worst?.madeAt && ref.name < worst.pod.name ? 1 : -1)
    if (worst === null || says > 0) this.#worst = { object: pod, pod: ref, madeAt, finding }
  }

  /** Null if none of them has a problem. */
  explain(): Explanation | null {
    const worst = this.#worst
    if (worst === null) return null
    const { object, pod, finding } = worst
    const { container, what, said } = finding
    const documents = [object, this.#workload]
    const told = { pod: refText(pod), finding: join(what, safeText(said, { documents })) }
    const counts = { failing: this.#failing, seen: this.#seen }
    return {
      text: counts.failing === 1 ? explanation('pod', told) : explanation('one_of_pods', { ...told, ...counts }),
      documents,
      log: container === null ? null : { pod, container: container.name, previous: container.previous },
      eventsOf: finding.weight < BROKEN || isKilled(finding) ? object : null,
      taintsOf: isByTaints(said) ? object : null,
      isWeak: finding.weight <= LATE,
    }
  }
}

/** By a signal, as a kubelet ends what fails its liveness probe; what exceeds its memory says so itself. */
const isKilled = ({ what }: Finding): boolean => /exited with code (137|143)\b/.test(what) && !what.includes('OOMKilled')

/** A selector may take in Pods of others. */
function isPodOf(workload: K8sObject, pod: K8sObject): boolean {
  const owners = pod.metadata.ownerReferences ?? []
  if (workload.kind !== 'Deployment') return owners.some(({ uid }) => uid === workload.metadata.uid)
  return owners.some(({ kind, name }) => kind === 'ReplicaSet' && name.startsWith(`${workload.metadata.name}-`))
}

type Reason = (value: unknown) => string
/** A reason is one word of a kubelet or a controller. Anything else is text of others. */
const reasonsOf =
  (documents: readonly K8sObject[]): Reason =>
  (value) => {
    const reason = text(value)
    return safeReason(reason) ?? safeText(reason, { documents })
  }

function findingOf(pod: K8sObject, reasonText: Reason): Finding | null {
  if (pod.metadata.deletionTimestamp !== undefined) return null
  const status = fields(pod['status'])
  const found = [
    ...list(status['initContainerStatuses']).flatMap((container) => inContainer(container, true, reasonText) ?? []),
    ...list(status['containerStatuses']).flatMap((container) => inContainer(container, false, reasonText) ?? []),
  ].sort((a, b) => b.weight - a.weight)
  const [worst] = found
  if (worst !== undefined && worst.weight > LATE) return worst
  const reason = reasonText(status['reason'])
  if (status['phase'] === 'Failed')
    return { weight: BROKEN, what: reason || explanation('pod_failed'), said: text(status['message']), container: null }
  if (status['phase'] === 'Succeeded') return null
  const scheduled = list(status['conditions']).find(({ type }) => type === 'PodScheduled')
  if (scheduled?.['status'] === 'False')
    return {
      weight: BROKEN,
      what: reasonText(scheduled['reason']) || explanation('pod_not_scheduled'),
      said: text(scheduled['message']),
      container: null,
    }
  if (worst !== undefined) return worst
  const ready = list(status['conditions']).find(({ type }) => type === 'Ready')
  if (ready?.['status'] === 'True') return null
  return {
    weight: LATE,
    what: reasonText(ready?.['reason']) || explanation('pod_phase', { phase: reasonText(status['phase']) }),
    said: text(ready?.['message']),
    container: null,
  }
}

function inContainer(container: Fields, isInit: boolean, reasonText: Reason): Finding | null {
  const name = text(container['name'])
  const { waiting, terminated, running } = fields(container['state'])
  const before = fields(fields(container['lastState'])['terminated'])
  const why = reasonText(fields(waiting)['reason'])
  if (terminated !== undefined) {
    const end = endText(fields(terminated), reasonText)
    if (end === null) return null
    const what = explanation('container_ended', { isInit, name, end })
    return { weight: BROKEN, what, said: '', container: { name, previous: false } }
  }
  const end = endText(before, reasonText)
  if (why !== '' && why !== 'ContainerCreating' && why !== 'PodInitializing') {
    // A kubelet's own words of a crash loop only count seconds.
    const isLoop = why === 'CrashLoopBackOff'
    const what = explanation('container_waits', { isInit, name, why: join(why, isLoop ? (end ?? '') : '') })
    const said = isLoop ? '' : text(fields(waiting)['message'])
    return { weight: BROKEN, what, said, container: end === null ? null : { name, previous: true } }
  }
  if (end !== null && container['ready'] !== true) {
    const what = explanation('container_restarted', { isInit, name, end })
    return { weight: RESTARTED, what, said: '', container: { name, previous: true } }
  }
  if (running === undefined || container['ready'] !== false) return null
  return { weight: LATE, what: explanation('container_not_ready', { isInit, name }), said: '', container: { name, previous: false } }
}

/** Null if it did not end, or ended well. */
function endText(terminated: Fields, reasonText: Reason): string | null {
  const { exitCode, signal } = terminated
  if (typeof exitCode !== 'number' || exitCode === 0) return null
  const reason = reasonText(terminated['reason'])
  const by = typeof signal === 'number' && signal !== 0 ? String(signal) : ''
  return explanation('exited', { exitCode, signal: by, reason: reason === 'Error' ? '' : reason })
}

const join = (reason: string, message: string): string => (message === '' ? reason : `${reason}: ${message}`)

const LINE_CHARS_MAX = 200
/** Whole escape sequences of terminals, and other unprintable characters. */
const UNPRINTABLE = new RegExp(
  `${String.fromCharCode(27)}\\[[0-9;?]*[ -/]*[@-~]|[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f\\u2028-\\u202e\\u2066-\\u2069]`,
  'g',
)

/** The last `count` lines as one line of text; '' for none. */
export function logText(log: string, count: number): string {
  const lines = log
    .split('\n')
    .map((line) => line.replace(UNPRINTABLE, '').replaceAll('\t', ' ').trim().slice(0, LINE_CHARS_MAX))
    .filter((line) => line !== '')
  return lines.slice(-count).join(' | ')
}
