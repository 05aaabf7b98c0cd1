// Explains unhealthy objects by other objects (read-cause.ts): read once when an object becomes Degraded or is late,
// and again after a change, at most once a minute. An answer without a cause is read again a few times, since
// schedulers and kubelets report a moment later than controllers. It never delays a reconciliation and never polls: a
// result wakes the service, whose reconciliation reports it.
import { type ObjectRef, versionOf } from '../../../shared/kube/object.ts'
import { durationMs } from '../../../shared/model/resources.ts'
import type { ObjectStatus } from '../../../shared/model/status.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import type { PodLogs } from '../../cluster/pod-logs.ts'
import { objectStatus } from '../../messages/object-messages.ts'
import type { Requests, Site, Turns } from '../ports.ts'
import type { ServiceModel, ServiceSnapshot } from '../snapshot/service-model.ts'
import type { LiveObject, LiveView } from '../snapshot/watch/live-object.ts'
import { isExplained } from './explain-workload.ts'
import { type Cause, readCause } from './read-cause.ts'

/** Objects that are explained at the same time, for all services. */
const AT_ONCE = 4
const AGAIN_AFTER_MS = 60_000
/** The delays after which an answer without a cause is read again. */
export const WEAK_AGAIN_AFTER_MS: readonly number[] = [2_000, 8_000, 30_000, 120_000]
const TEXT_CHARS_MAX = 600

/** HE23: of a CronJob one of whose runs has had no Pod that runs for as long as the health deadline. */
const RUN_STUCK = 'RunStuck'

interface Explained {
  /** The version of the object that was explained. */
  resourceVersion: string
  atMs: number
  /** '' if there is no explanation; null while it is being read. */
  text: string | null
  /** The former explanation. */
  before: string
  /** Answers without a cause since a change was read. Null means that the last answer names one. */
  weakReads: number | null
  /** The object is Progressing again: nothing is reported about it, and it is not read again within the minute when
   *  it fails again. */
  isQuiet?: true
}

export interface ExplainerOptions {
  /** Null if logs are never read, since they may hold confidential values. */
  logs: (PodLogs & { lines: number }) | null
}

export class Explainer {
  readonly #options: ExplainerOptions
  readonly #known = new Map<string, Explained>()
  /** By service: the changes within the minute, and the time of the next evaluation. */
  readonly #due = new Map<string, Map<string, number>>()
  readonly #waiting: Array<() => void> = []
  #running = 0

  constructor(options: ExplainerOptions) {
    this.#options = options
  }

  /** HE8: requests the due explanations, before statuses are reported. */
  look(model: ServiceModel, deps: Site & Requests & Turns): void {
    const nowMs = deps.clock.nowMs()
    const lateMs = lateAfterMs(model)
    for (const [key, sinceMs] of model.progressingSinceMs) {
      const ref = named(model, key)?.ref
      if (ref === undefined || !isExplained(ref)) continue
      if (nowMs - sinceMs >= lateMs) {
        if (!this.#known.has(`${model.key}/${key}`)) model.queue.touch(key)
      } else deps.wakeAt(model.key, sinceMs + lateMs)
    }
    const due = this.#due.get(model.key)
    for (const [key, atMs] of due ?? []) {
      if (atMs > nowMs) continue
      due?.delete(key)
      model.queue.touch(key)
    }
    for (const key of model.queue.touched) this.#consider(model, deps, key, nowMs)
    for (const atMs of due?.values() ?? []) deps.wakeAt(model.key, atMs)
    if (due?.size === 0) this.#due.delete(model.key)
  }

  /** The cause follows the object's own message. While the cause is read, the former message stays. */
  say(model: ServiceSnapshot, key: string, status: ObjectStatus, previous: ObjectStatus | null): ObjectStatus {
    const explained = this.#known.get(`${model.key}/${key}`)
    if (explained === undefined || explained.isQuiet || status.sync !== 'Synced' || explained.text === '') return status
    if (status.health === 'Healthy') return hangingRun(status, previous, explained.text, model.sync().healthDeadline)
    const said = status.message.replace(/\.$/, '')
    if (explained.text !== null) return { ...status, message: `${said}; ${explained.text}` }
    const stays = previous?.reason === status.reason && previous.message.startsWith(`${said}; `)
    return stays ? { ...status, message: previous.message } : status
  }

  /** The last explanation by the Pods of a workload; '': none, or not read. */
  explanation(service: string, key: string): string {
    const explained = this.#known.get(`${service}/${key}`)
    return explained === undefined || explained.isQuiet ? '' : (explained.text ?? explained.before)
  }

  #consider(model: ServiceModel, deps: Site & Requests & Turns, key: string, nowMs: number): void {
    const id = `${model.key}/${key}`
    const wanted = named(model, key)
    if (wanted === undefined || !isExplained(wanted.ref)) {
      this.#known.delete(id)
      return
    }
    const { group, kind } = wanted.ref
    const lookup = deps.kinds.find(group, versionOf(wanted.apiVersion), kind)
    const view = lookup.kind === 'served' ? deps.watches.view(lookup.resource, key) : null
    const dueMs = view?.kind === 'present' ? explainedFromMs(model, key, view.live) : null
    if (view?.kind !== 'present' || dueMs === null || dueMs > nowMs) {
      this.#quieten(id, view)
      if (dueMs !== null) this.#later(model, deps, key, dueMs)
      return
    }
    const known = this.#known.get(id)
    delete known?.isQuiet
    if (known?.text === null) return
    // A CronJob does not change when the Pods of a run do, so a long run is read again.
    const isRun = view.live.health.word === 'Healthy'
    const againAfterMs = isRun ? Math.max(AGAIN_AFTER_MS, durationMs(model.sync().healthDeadline)) : AGAIN_AFTER_MS
    const changedMs =
      known === undefined || (!isRun && known.resourceVersion === view.live.resourceVersion) ? NEVER : known.atMs + againAfterMs
    if (known !== undefined && !isAskedBeforeDeadline(model, key, known, nowMs)) {
      const againMs = Math.min(changedMs, isRun ? NEVER : weakAgainMs(known))
      if (againMs === NEVER) return
      // A date that was set back delays nothing.
      if (nowMs >= known.atMs && nowMs < againMs) {
        this.#later(model, deps, key, againMs)
        return
      }
    }
    const weakReads = nowMs >= changedMs ? 0 : (known?.weakReads ?? 0)
    this.#known.set(id, { resourceVersion: view.live.resourceVersion, atMs: nowMs, text: null, before: known?.text ?? '', weakReads })
    const asking = this.#explain(deps, model.key, wanted).catch((error: unknown): Cause => {
      deps.log.error('cannot find the cause of the health of an object', { service: model.key, object: key, error: describeError(error) })
      return { text: '', isWeak: true }
    })
    void asking.then(({ text, isWeak }) => {
      const asked = this.#known.get(id)
      if (asked === undefined || deps.signal.aborted) return
      const answered = { ...asked, text, weakReads: isWeak ? (asked.weakReads ?? 0) + 1 : null }
      this.#known.set(id, answered)
      const againMs = isRun ? nowMs + againAfterMs : weakAgainMs(answered)
      if (againMs !== NEVER) this.#later(model, deps, key, againMs)
      if (text === asked.before && text === '') return
      model.queue.touch(key)
      deps.wake(model.key)
    })
  }

  /** A Deployment whose generation moves is Progressing for a moment between two times that it is Degraded. */
  #quieten(id: string, view: LiveView | null): void {
    if (view?.kind === 'unknown') return
    const known = this.#known.get(id)
    if (known !== undefined && view?.kind === 'present' && view.live.health.word === 'Progressing') known.isQuiet = true
    else this.#known.delete(id)
  }

  #later(model: ServiceModel, deps: Turns, key: string, atMs: number): void {
    this.#due.set(model.key, (this.#due.get(model.key) ?? new Map<string, number>()).set(key, atMs))
    deps.wakeAt(model.key, atMs)
  }

  async #explain(deps: Site & Requests, service: string, object: { ref: ObjectRef; apiVersion: string }): Promise<Cause> {
    if (this.#running >= AT_ONCE) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#running += 1
    try {
      const { text, isWeak } = await readCause({ ...deps, asking: deps.asking({ service }), logs: this.#options.logs }, object)
      return { text: text.slice(0, TEXT_CHARS_MAX), isWeak }
    } finally {
      this.#running -= 1
      this.#waiting.shift()?.()
    }
  }
}

/** Hooks are in the inventory only. */
const named = (model: ServiceSnapshot, key: string): { ref: ObjectRef; apiVersion: string } | undefined =>
  model.wanted.get(key) ?? model.inventory.get(key)

const lateAfterMs = (model: ServiceSnapshot): number => durationMs(model.sync().healthDeadline) / 2

/** The time from which an object is explained; null if it has no problem. */
function explainedFromMs(model: ServiceSnapshot, key: string, { health, runningSinceMs }: LiveObject): number | null {
  if (health.word === 'Degraded') return 0
  if (health.word === 'Healthy') return runningSinceMs === undefined ? null : runningSinceMs + durationMs(model.sync().healthDeadline)
  const sinceMs = model.progressingSinceMs.get(key)
  return health.word !== 'Progressing' || sinceMs === undefined ? null : sinceMs + lateAfterMs(model)
}

const NEVER = Number.POSITIVE_INFINITY

/** The time of the next read after an answer without a cause. */
const weakAgainMs = ({ atMs, weakReads }: Explained): number => {
  const delayMs = weakReads === null || weakReads === 0 ? undefined : WEAK_AGAIN_AFTER_MS[weakReads - 1]
  return delayMs === undefined ? NEVER : atMs + delayMs
}

/** There was no explanation while the object was late, and now its deadline has passed: controllers may have
 *  reported more since. */
function isAskedBeforeDeadline(model: ServiceSnapshot, key: string, { text, atMs }: Explained, nowMs: number): boolean {
  const overMs = (model.progressingSinceMs.get(key) ?? Number.POSITIVE_INFINITY) + durationMs(model.sync().healthDeadline)
  return text === '' && atMs < overMs && nowMs >= overMs
}

/** A run with running Pods needs no explanation; `cause` says why none runs. */
function hangingRun(status: ObjectStatus, previous: ObjectStatus | null, cause: string | null, deadline: string): ObjectStatus {
  const wasHanging = previous?.reason === RUN_STUCK
  if (cause === null) return wasHanging ? previous : status
  return {
    ...status,
    health: 'Degraded',
    ...objectStatus('RunStuck', { deadline, cause }),
    sinceMs: wasHanging ? previous.sinceMs : status.sinceMs,
  }
}
