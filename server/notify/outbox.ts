// Delivers what is due: one request at a time to each sink, at least once, with a backoff that honours Retry-After.
// A message that cannot be delivered is a dead letter, which people see and can send again.
import { FLEET } from '../../shared/model/resources.ts'
import { backoffMs } from '../../shared/runtime/backoff.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Random } from '../../shared/runtime/random.ts'
import type { NotificationRecord } from '../fleet/notification-records.ts'
import type { NotificationOutbox } from '../store/notify/notification-outbox.ts'
import type { GroupRecord } from './groups.ts'
import { type Sent, SinkError } from './sinks/sink.ts'

export const ATTEMPTS_MAX = 12
/** The time after the first failed attempt after which no other one is made. */
export const AGE_MS_MAX = 24 * 3_600_000
const BACKOFF = { baseMs: 5_000, capMs: 15 * 60_000 }
export const REQUEST_MS_MAX = 20_000
const CONCURRENT_MAX = 8
const IDLE_MS = 60_000

export interface Channel {
  paused: boolean
  /** Between two messages. */
  pauseMs: number
  send(record: GroupRecord, version: number, signal: AbortSignal): Promise<Sent>
}

/** `failed`: it is tried again. */
export type DeliveryResult = 'delivered' | 'failed' | 'dead'

export interface OutboxDeps {
  store: Pick<NotificationOutbox, 'settle'>
  /** Records that may be due, of all that is in memory. */
  records(): Iterable<GroupRecord>
  /** The sink of a record. Null means that it does not exist. */
  channel(record: GroupRecord): Channel | null
  /** When a later version of a delivered record goes out. */
  dueOf(record: GroupRecord): number
  onSettled(record: GroupRecord): void
  /** After each attempt. */
  onAttempt?(record: GroupRecord, result: DeliveryResult): void
  clock: Clock
  random: Random
  log: Logger
}

export class Outbox {
  readonly #deps: OutboxDeps
  /** Sinks to which a request is open. */
  readonly #busy = new Set<string>()
  /** Sinks that get nothing before that time. */
  readonly #notBefore = new Map<string, number>()
  #poke = new AbortController()

  constructor(deps: OutboxDeps) {
    this.#deps = deps
  }

  /** Something may be due sooner. */
  poke(): void {
    this.#poke.abort()
  }

  /** `signal`: no further delivery begins, and those that are open end by themselves. `stopping`: they are cut, and the
   *  next start sends them again. */
  async run(signal: AbortSignal, stopping: AbortSignal): Promise<void> {
    const { clock } = this.#deps
    const open = new Set<Promise<void>>()
    let failure: { error: unknown } | null = null
    while (!signal.aborted && failure === null) {
      this.#poke = new AbortController()
      const nowMs = clock.nowMs()
      let nextMs = nowMs + IDLE_MS
      for (const record of this.#deps.records()) {
        const dueMs = this.#dueMs(record)
        if (dueMs > nowMs || open.size >= CONCURRENT_MAX) {
          nextMs = Math.min(nextMs, dueMs)
          continue
        }
        const delivery = this.#deliver(record, stopping)
          .catch((error: unknown) => {
            failure = { error }
          })
          .finally(() => {
            open.delete(delivery)
            this.poke()
          })
        open.add(delivery)
      }
      const waitMs = open.size >= CONCURRENT_MAX ? IDLE_MS : Math.max(0, nextMs - clock.nowMs())
      await clock.sleep(waitMs, AbortSignal.any([signal, this.#poke.signal]))
    }
    await Promise.allSettled([...open])
    if (failure !== null) throw (failure as { error: unknown }).error
  }

  #dueMs(record: GroupRecord): number {
    const { nextMs, state, inFlight, id } = record
    if (nextMs === null || state !== 'open' || inFlight || id === null) return Number.POSITIVE_INFINITY
    const sink = sinkKey(record)
    if (this.#busy.has(sink) || this.#deps.channel(record)?.paused === true) return Number.POSITIVE_INFINITY
    return Math.max(nextMs, this.#notBefore.get(sink) ?? 0)
  }

  async #deliver(record: GroupRecord, stopping: AbortSignal): Promise<void> {
    const { store, clock } = this.#deps
    const sink = sinkKey(record)
    this.#busy.add(sink)
    record.inFlight = true
    const { version } = record
    const channel = this.#deps.channel(record)
    let result: DeliveryResult
    try {
      if (channel === null) throw new SinkError(`the sink ${record.sink} does not exist`, { retryable: false })
      const sent = await channel.send(record, version, AbortSignal.any([stopping, AbortSignal.timeout(REQUEST_MS_MAX)]))
      this.#delivered(record, version, sent)
      result = 'delivered'
    } catch (error) {
      if (stopping.aborted) return // the next start sends it again
      this.#failed(record, error)
      result = record.nextMs === null ? 'dead' : 'failed'
    } finally {
      record.inFlight = false
      this.#busy.delete(sink)
    }
    this.#notBefore.set(sink, Math.max(this.#notBefore.get(sink) ?? 0, clock.nowMs() + (channel?.pauseMs ?? 0)))
    await store.settle(stored(record))
    this.#deps.onAttempt?.(record, result)
    this.#deps.onSettled(record)
  }

  #delivered(record: GroupRecord, version: number, { ref }: Sent): void {
    const nowMs = this.#deps.clock.nowMs()
    Object.assign(record, { sentVersion: version, sentMs: nowMs, updatedMs: nowMs, attempts: 0, triedMs: 0, error: null, ref })
    if (record.version > version) {
      record.nextMs = this.#deps.dueOf(record)
      return
    }
    record.nextMs = null
    const { doc } = record
    if (doc.type === 'commit' ? doc.state !== 'pending' : doc.resolved) record.state = 'closed'
  }

  #failed(record: GroupRecord, error: unknown): void {
    const { clock, random, log } = this.#deps
    const nowMs = clock.nowMs()
    const { retryable, retryAfterMs } =
      error instanceof SinkError ? error : { retryable: !(error instanceof AppError), retryAfterMs: undefined }
    record.attempts += 1
    record.updatedMs = nowMs
    record.error = error instanceof Error ? error.message : String(error)
    if (record.triedMs === 0) record.triedMs = nowMs
    const isTooOld = nowMs - record.triedMs > AGE_MS_MAX
    if (!retryable || record.attempts >= ATTEMPTS_MAX || isTooOld) {
      record.state = 'dead'
      record.nextMs = null
    } else {
      const waitMs = backoffMs(record.attempts - 1, BACKOFF, random, retryAfterMs)
      record.nextMs = nowMs + waitMs
      // The others to the same receiver fare no better.
      this.#notBefore.set(sinkKey(record), nowMs + waitMs)
    }
    const { id, sink, project, attempts, state, nextMs } = record
    const retryInMs = nextMs === null ? null : nextMs - nowMs
    log.warn('notification not delivered', {
      id,
      sink,
      project: project === FLEET ? null : project,
      attempts,
      state,
      retryInMs,
      error: record.error,
    })
  }
}

const sinkKey = ({ project, sink }: GroupRecord): string => `${project}/${sink}`

/** Its record in the outbox. */
export function stored({ inFlight: _, id, ...record }: GroupRecord): NotificationRecord {
  if (id === null) throw new Error('a notification must be stored before it is settled')
  return { ...record, id }
}
