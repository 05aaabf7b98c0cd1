// Explains workloads that are not well by their Pods: read once when a workload becomes Degraded or is late, and again when it changed, at most once a minute. It never holds up a turn, it
// never polls: what it found wakes the service, whose turn says it.
import { hasHealthDeadline } from '../../../shared/kube/health.ts'
import { type K8sObject, type ObjectRef, versionOf } from '../../../shared/kube/object.ts'
import { durationMs } from '../../../shared/model/resources.ts'
import type { ObjectStatus } from '../../../shared/model/status.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import { listOnce } from '../../cluster/list-once.ts'
import type { PodLogs } from '../../cluster/pod-logs.ts'
import { CALM } from '../apply/request-gate.ts'
import type { ServiceModel } from '../service-model.ts'
import type { TurnDeps } from '../turn-deps.ts'
import { type Explanation, isWorkload, logText, PodFindings, podSelector } from './explain-workload.ts'

/** Workloads whose Pods are read at the same time, for all services. */
const AT_ONCE = 4
/** Pods of one workload that are looked at. */
const PODS_MAX = 500
const AGAIN_AFTER_MS = 60_000
const TEXT_CHARS_MAX = 600

interface Explained {
  /** Of the workload that was explained. */
  resourceVersion: string
  atMs: number
  /** '': its Pods say nothing. Null: being asked. */
  text: string | null
  /** What they said before they were asked. */
  before: string
}

export interface ExplainerOptions {
  /** Null: logs are never read, since they may hold what nobody wants outside of the cluster. */
  logs: (PodLogs & { lines: number }) | null
}

export class Explainer {
  readonly #options: ExplainerOptions
  readonly #known = new Map<string, Explained>()
  /** By service: what changed within the minute, and when it is looked at again. */
  readonly #due = new Map<string, Map<string, number>>()
  readonly #waiting: Array<() => void> = []
  #running = 0

  constructor(options: ExplainerOptions) {
    this.#options = options
  }

  /** HE8: asks for what is to be explained, before statuses are said. */
  look(model: ServiceModel, deps: TurnDeps): void {
    const nowMs = deps.clock.nowMs()
    const lateMs = durationMs(model.sync().healthDeadline) / 2
    for (const [key, sinceMs] of model.progressingSinceMs) {
      const ref = named(model, key)?.ref
      if (ref === undefined || !isWorkload(ref) || !hasHealthDeadline(ref.group, ref.kind)) continue
      if (nowMs - sinceMs >= lateMs) {
        if (!this.#known.has(`${model.key}/${key}`)) model.touched.add(key)
      } else deps.wakeAt(model.key, sinceMs + lateMs)
    }
    const due = this.#due.get(model.key)
    for (const [key, atMs] of due ?? []) {
      if (atMs > nowMs) continue
      due?.delete(key)
      model.touched.add(key)
    }
    for (const key of model.touched) this.#consider(model, deps, key, nowMs)
    for (const atMs of due?.values() ?? []) deps.wakeAt(model.key, atMs)
    if (due?.size === 0) this.#due.delete(model.key)
  }

  /** What the Pods say goes behind what the workload says. While they are asked, what was said before stays. */
  say(model: ServiceModel, key: string, status: ObjectStatus, previous: ObjectStatus | null): ObjectStatus {
    const explained = this.#known.get(`${model.key}/${key}`)
    if (explained === undefined || status.sync !== 'Synced' || explained.text === '') return status
    const said = status.message.replace(/\.$/, '')
    if (explained.text !== null) return { ...status, message: `${said}; ${explained.text}` }
    const stays = previous?.reason === status.reason && previous.message.startsWith(`${said}; `)
    return stays ? { ...status, message: previous.message } : status
  }

  /** What the Pods of a workload said last; '': nothing, or nobody asked. */
  explanation(service: string, key: string): string {
    const explained = this.#known.get(`${service}/${key}`)
    return explained === undefined ? '' : (explained.text ?? explained.before)
  }

  #consider(model: ServiceModel, deps: TurnDeps, key: string, nowMs: number): void {
    const id = `${model.key}/${key}`
    const wanted = named(model, key)
    if (wanted === undefined || !isWorkload(wanted.ref)) {
      this.#known.delete(id)
      return
    }
    const { group, kind } = wanted.ref
    const lookup = deps.kinds.find(group, versionOf(wanted.apiVersion), kind)
    const view = lookup.kind === 'served' ? deps.watches.view(lookup.resource, key) : null
    if (view?.kind !== 'present' || !isUnwell(model, key, view.live.health.word, nowMs)) {
      if (view?.kind !== 'unknown') this.#known.delete(id)
      return
    }
    const known = this.#known.get(id)
    if (known !== undefined) {
      if (known.text === null || known.resourceVersion === view.live.resourceVersion) return
      if (nowMs - known.atMs < AGAIN_AFTER_MS) {
        const atMs = known.atMs + AGAIN_AFTER_MS
        this.#due.set(model.key, (this.#due.get(model.key) ?? new Map<string, number>()).set(key, atMs))
        deps.wakeAt(model.key, atMs)
        return
      }
    }
    this.#known.set(id, { resourceVersion: view.live.resourceVersion, atMs: nowMs, text: null, before: known?.text ?? '' })
    const asking = this.#explain(model, deps, key).catch((error: unknown) => {
      deps.log.error('workload could not be explained', { service: model.key, object: key, error: describeError(error) })
      return ''
    })
    void asking.then((text) => {
      const asked = this.#known.get(id)
      if (asked === undefined || deps.signal.aborted) return
      this.#known.set(id, { ...asked, text })
      if (text === '') return
      model.touched.add(key)
      deps.wake(model.key)
    })
  }

  async #explain(model: ServiceModel, deps: TurnDeps, key: string): Promise<string> {
    if (this.#running >= AT_ONCE) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    this.#running += 1
    try {
      return (await this.#ask(model, deps, key)).slice(0, TEXT_CHARS_MAX)
    } finally {
      this.#running -= 1
      this.#waiting.shift()?.()
    }
  }

  async #ask(model: ServiceModel, deps: TurnDeps, key: string): Promise<string> {
    const { cluster, kinds, gate } = deps
    const wanted = named(model, key)
    const pods = kinds.find('', 'v1', 'Pod')
    if (wanted === undefined || pods.kind !== 'served') return ''
    const lookup = kinds.find(wanted.ref.group, versionOf(wanted.apiVersion), wanted.ref.kind)
    if (lookup.kind !== 'served') return ''
    const workload = await gate.run(
      () => cluster.get(lookup.resource, wanted.ref),
      () => CALM,
    )
    if (workload.kind !== 'found') return ''
    const selector = podSelector(workload.object)
    if (selector === null) return ''
    const findings = new PodFindings(workload.object)
    const failure = await gate.run(
      () => this.#read(deps, pods.resource, wanted.ref.namespace, selector, findings),
      () => CALM,
    )
    if (failure !== null) return `its Pods cannot be read (${failure.message}); allow the agent to list and watch pods`
    const explanation = findings.explain()
    return explanation === null ? '' : explanation.text + (await this.#log(explanation, deps))
  }

  async #read(
    { cluster, signal }: TurnDeps,
    resource: Parameters<typeof listOnce>[1],
    namespace: string,
    labelSelector: string,
    findings: PodFindings,
  ) {
    const enough = new AbortController()
    const options = { namespace, labelSelector, signal: AbortSignal.any([signal, enough.signal]) }
    const failure = await listOnce(cluster, resource, options, (pod: K8sObject, isThere) => {
      if (isThere) findings.add(pod)
      if (findings.seen() >= PODS_MAX) enough.abort()
    })
    // What was cut by ourselves did not fail, and what could not be answered now is no news of the Pods.
    return enough.signal.aborted || failure?.kind !== 'forbidden' ? null : failure
  }

  async #log({ log }: Explanation, { gate }: TurnDeps): Promise<string> {
    const { logs } = this.#options
    if (logs === null || log === null) return ''
    const { pod, container, previous } = log
    const answer = await gate.run(
      () => logs.logTail(pod, { container, previous, lines: logs.lines }),
      () => CALM,
    )
    // Whoever may not read logs, or whose container is gone, has the rest.
    const text = answer.kind === 'log' ? logText(answer.text, logs.lines) : ''
    return text === '' ? '' : `; last log lines: ${text}`
  }
}

/** Hooks are in the inventory only. */
const named = (model: ServiceModel, key: string): { ref: ObjectRef; apiVersion: string } | undefined =>
  model.wanted.get(key) ?? model.inventory.get(key)

function isUnwell(model: ServiceModel, key: string, word: string, nowMs: number): boolean {
  if (word === 'Degraded') return true
  const sinceMs = model.progressingSinceMs.get(key)
  const ref = named(model, key)?.ref
  if (word !== 'Progressing' || sinceMs === undefined || ref === undefined || !hasHealthDeadline(ref.group, ref.kind)) return false
  return nowMs - sinceMs >= durationMs(model.sync().healthDeadline) / 2
}
