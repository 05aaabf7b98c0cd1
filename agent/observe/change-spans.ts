// Spans of changes at the site (pull, apply, become healthy), read off the statuses and events that the reconciler
// reports: without telemetry nothing of this runs.
import { eventStatusSchema, type ServiceStatus, serviceStatusSchema } from '../../shared/model/status.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { FinishedSpan, RecordSpan } from '../../shared/runtime/spans.ts'
import type { AgentState } from '../state/agent-state.ts'

type Step = 'received' | 'applied' | 'healthy'
type Point = NonNullable<ServiceStatus[Step]>

/** Services of which the last steps are remembered. */
const SERVICES_MAX = 10_000

export class ChangeSpans {
  readonly #record: RecordSpan
  /** Steps of before were told by the process that reached them. */
  readonly #sinceMs: number
  readonly #told = new Map<string, Partial<Record<Step, string>>>()
  /** By service: the revision that it received last, and whether its failure was told. */
  readonly #received = new Map<string, { point: Point; isFailed: boolean }>()
  /** By service: a failure of a revision that no status has named yet. */
  readonly #early = new Map<string, unknown>()
  #page: { startMs: number; endMs: number } | null = null

  constructor(record: RecordSpan, clock: Clock) {
    this.#record = record
    this.#sinceMs = clock.nowMs()
  }

  /** A page was verified and merged in that time. */
  pageApplied(startMs: number, endMs: number): void {
    this.#page = { startMs, endMs }
  }

  /** The same state, with its reports observed. */
  watching(state: AgentState): AgentState {
    const report: AgentState['report'] = (rows, turns) => {
      state.report(rows, turns)
      for (const { kind, key, doc } of rows)
        if (kind === 'service') this.#look(key, doc)
        else if (kind === 'event') this.#lookAtEvent(doc)
    }
    return Object.create(state, { report: { value: report } }) as AgentState
  }

  #look(service: string, doc: unknown): void {
    const status = serviceStatusSchema.safeParse(doc).data
    if (status === undefined) {
      this.#received.delete(service)
      this.#early.delete(service)
      return void this.#told.delete(service)
    }
    const told = this.#told.get(service) ?? {}
    const { received, applied, healthy } = status
    const pulled = this.#page
    if (received !== undefined && keyOf(this.#received.get(service)?.point) !== keyOf(received))
      this.#received.set(service, { point: received, isFailed: false })
    const early = this.#early.get(service)
    this.#early.delete(service)
    if (early !== undefined) this.#lookAtEvent(early)
    if (this.#isNew(told, 'received', received)) {
      const endMs = Math.max(received.atMs, pulled?.endMs ?? 0)
      this.#tell('pull', service, received, { startMs: pulled?.startMs ?? received.atMs, endMs }, status)
    }
    if (this.#isNew(told, 'applied', applied)) {
      const startMs = received?.digest === applied.digest ? received.atMs : applied.atMs
      this.#tell('apply', service, applied, { startMs, endMs: applied.atMs }, status)
    }
    if (this.#isNew(told, 'healthy', healthy)) {
      const startMs = applied?.digest === healthy.digest ? applied.atMs : healthy.atMs
      this.#tell('become healthy', service, healthy, { startMs, endMs: healthy.atMs }, status)
    }
    this.#told.delete(service)
    this.#told.set(service, { received: keyOf(received), applied: keyOf(applied), healthy: keyOf(healthy) })
    const [oldest] = this.#told.keys()
    if (this.#told.size > SERVICES_MAX && oldest !== undefined) {
      this.#told.delete(oldest)
      this.#received.delete(oldest)
    }
  }

  /** The first failure of a revision: its apply did not succeed, or not yet. An event may come before the status that
   *  names its revision. */
  #lookAtEvent(doc: unknown): void {
    const event = eventStatusSchema.safeParse(doc).data
    if (event?.service === undefined || event.trace === undefined || !FAILURES.has(event.reason)) return
    const { service, trace, reason, atMs, object } = event
    const known = this.#received.get(service)
    if (known?.point.trace !== trace) return void this.#early.set(service, doc)
    if (known.isFailed || known.point.atMs < this.#sinceMs) return
    known.isFailed = true
    const { commit, digest, atMs: startMs } = known.point
    const attributes = { 'skerry.service': service, 'skerry.commit': commit, 'skerry.revision': digest }
    this.#record({
      name: 'apply',
      trace,
      startMs: Math.min(startMs, atMs),
      endMs: atMs,
      attributes: { ...attributes, ...(object === undefined ? {} : { 'skerry.object': object }) },
      error: reason,
    })
  }

  #isNew(told: Partial<Record<Step, string>>, step: Step, point: Point | undefined): point is Point {
    return point !== undefined && point.atMs >= this.#sinceMs && told[step] !== keyOf(point)
  }

  #tell(
    name: FinishedSpan['name'],
    service: string,
    { trace, commit, digest }: Point,
    times: { startMs: number; endMs: number },
    { objectCount, healthyCount }: ServiceStatus,
  ): void {
    if (trace === undefined) return
    const attributes = { 'skerry.service': service, 'skerry.commit': commit, 'skerry.revision': digest }
    this.#record({
      name,
      trace,
      ...times,
      attributes: { ...attributes, 'skerry.objects': objectCount, 'skerry.objects.healthy': healthyCount },
    })
  }
}

/** Reasons of events that end an attempt to apply a revision. */
const FAILURES: ReadonlySet<string> = new Set(['Failed', 'HookFailed'])

const keyOf = (point: Point | undefined): string => (point === undefined ? '' : `${point.digest} ${point.atMs}`)
