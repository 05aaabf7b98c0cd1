// Decides when status is pushed: gathered for as long as the link is expensive, after a comparison of revs (PU7), with
// a whole inventory when one is due (PU4).
import type { BackoffLimits } from '../../shared/runtime/backoff.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError, runLoop } from '../../shared/runtime/loop.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { type Watch, watched } from '../../shared/runtime/watchdog.ts'
import { cutOf } from '../link/server-client.ts'
import type { SessionKeeper } from '../link/session-keeper.ts'
import type { AgentState } from '../state/agent-state.ts'
import { bytesAfterCut, bytesAfterPush, PUSH_BYTES_MAX, PUSH_ROWS_MAX } from './outbox-batch.ts'
import { compareRevs, type PushLimits, pushBatch, pushInventory } from './push.ts'
import { paidUntilMs, pushAtMs } from './push-pace.ts'

/** Time between a new incarnation and its inventory, in which each service reports. */
export const INVENTORY_WAIT_MS = 120_000
/**
 * Minimum time between two renumberings caused by the server's answers. A server that always contradicts must not
 * receive everything again and again, and incarnations are limited.
 */
const DOUBT_INTERVAL_MS = 60_000
/**
 * Mean time between comparisons of revs. They detect a server that was restored meanwhile, which then receives
 * everything again.
 */
const COMPARE_INTERVAL_MS = 3_600_000
const COMPARE_INTERVAL_METERED_MS = 12 * 3_600_000

export interface PushLoopOptions {
  session: SessionKeeper
  state: AgentState
  clock: Clock
  random: Random
  log: Logger
  metered: boolean
  /** The day's budget is used up. */
  spent(): boolean
  /** Without contact, the pull finds the server again; a second prober would double the load on a returning server. */
  contact(): boolean
  /** Sync is where it should be, so that an inventory would be a true one. */
  idle(): boolean
  watch?: Watch | undefined
}

export class PushLoop {
  readonly #options: PushLoopOptions
  #wakers: Array<() => void> = []
  /** The greatest rev that the server can know of from this file; null once they were compared (PU7). */
  #given: number | null
  readonly #limits: PushLimits
  /** Both on the monotonic clock: a changed date delays nothing. */
  #lastMs: number | null = null
  #paidMs = Number.NEGATIVE_INFINITY
  #underWay: Promise<unknown> = Promise.resolve()
  /** Until the next doubt may be acted on at once. */
  #calm: Promise<unknown> = Promise.resolve()
  /** The key after which the inventory continues. */
  #after: string | null = null

  constructor(options: PushLoopOptions) {
    this.#options = options
    const { state } = options
    this.#given = state.identity() === null ? null : state.sentRev()
    // The rows that arrived from a former incarnation are unknown.
    this.#limits = { sentRev: this.#given ?? 0, bytesMax: PUSH_BYTES_MAX }
    state.onOutbox(() => this.wake())
  }

  /** Something changed that a push may wait for. */
  wake(): void {
    for (const waker of this.#wakers.splice(0)) waker()
  }

  /** PU7: the server may have been set back. */
  compareSoon(): void {
    this.#given ??= this.#options.state.lastRev()
    this.wake()
  }

  /**
   * PU7: the server says that it was restored. The rev that it names proves nothing: a delayed push from before may
   * hide what it lost.
   */
  reportAnew(): void {
    const { state, log } = this.#options
    try {
      state.reportAnew()
    } catch (error) {
      log.warn('cannot report everything again', { why: describeError(error) })
      this.compareSoon()
    }
  }

  async run(common: { backoff: BackoffLimits; clock: Clock; random: Random; log: Logger; signal: AbortSignal }): Promise<void> {
    const { signal } = common
    signal.addEventListener('abort', () => this.wake(), { once: true })
    await Promise.all([
      runLoop({ ...common, name: 'push', turn: () => this.#pushTurn(signal) }),
      runLoop({ ...common, name: 'inventory', turn: () => this.#inventoryTurn(signal) }),
      runLoop({ ...common, name: 'compare revs', turn: () => this.#compareTurn(signal) }),
    ])
  }

  async #pushTurn(signal: AbortSignal): Promise<void> {
    const { session, state, clock, random, log } = this.#options
    await this.#due(signal)
    if (signal.aborted) return
    this.#lastMs = clock.monotonicMs()
    this.#paidMs = paidUntilMs(this.#paidMs, this.#lastMs)
    const pushed = await this.#alone(async () => {
      if (this.#given !== null) {
        const compared = await compareRevs(session, state, this.#given, log, signal)
        this.#given = null
        if (compared === 'doubted') return compared
      }
      return pushBatch(session, state, this.#limits, log, signal)
    })
    if (pushed === 'settled') return
    await this.#calm
    this.#calm = clock.sleep(DOUBT_INTERVAL_MS * (0.5 + random()), signal)
  }

  /** One push runs at a time: the server takes only one of an agent. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#underWay.then(() => this.#measured(work))
    this.#underWay = turn.catch(() => {})
    return turn
  }

  async #measured<T>(work: () => Promise<T>): Promise<T> {
    const limits = this.#limits
    try {
      const done = await watched(this.#options.watch, 'push of statuses', work)
      limits.bytesMax = bytesAfterPush(limits.bytesMax)
      return done
    } catch (error) {
      if (cutOf(error)?.sent) limits.bytesMax = bytesAfterCut(limits.bytesMax)
      throw error
    }
  }

  /** Returns when there is contact, a row to push, and its time has come. */
  async #due(signal: AbortSignal): Promise<void> {
    const { state, clock, contact, metered, spent } = this.#options
    let sinceMs: number | null = null
    while (!signal.aborted) {
      const depth = state.outboxDepth()
      if (!contact() || (this.#given === null && depth === 0)) {
        sinceMs = null
        await this.#woken(null, signal)
        continue
      }
      const nowMs = clock.monotonicMs()
      sinceMs ??= nowMs
      const urgent = metered && state.outboxUrgent()
      const full = depth >= PUSH_ROWS_MAX
      const atMs = pushAtMs({ metered, spent: spent(), urgent, sinceMs, lastMs: this.#lastMs, paidMs: this.#paidMs, full })
      if (atMs <= nowMs) return
      await this.#woken(atMs - nowMs, signal)
    }
  }

  /**
   * Waits for `ms` (null means without limit), or until a change. A wake-up ends a short wait only if there is other
   * work.
   */
  async #woken(ms: number | null, signal: AbortSignal): Promise<void> {
    const woken = new AbortController()
    const waiting = new Promise<void>((resolve) => this.#wakers.push(resolve)).then(() => woken.abort())
    if (ms === null) await waiting
    else await this.#options.clock.sleep(ms, AbortSignal.any([signal, woken.signal]))
  }

  async #inventoryTurn(signal: AbortSignal): Promise<void> {
    const { session, state, clock, random, log, idle } = this.#options
    if (this.#after === null) await clock.sleep(INVENTORY_WAIT_MS * (0.5 + random()), signal)
    // With an empty outbox every later row has a greater rev than any named one, so none of them is removed.
    const settled = !signal.aborted && idle() && this.#given === null && state.outboxDepth() === 0
    this.#after =
      settled && state.inventoryDue()
        ? await this.#alone(() => pushInventory(session, state, this.#after, this.#limits.bytesMax, log, signal))
        : null
  }

  async #compareTurn(signal: AbortSignal): Promise<void> {
    const { state, clock, random, metered } = this.#options
    await clock.sleep((metered ? COMPARE_INTERVAL_METERED_MS : COMPARE_INTERVAL_MS) * (0.5 + random()), signal)
    if (signal.aborted || state.identity() === null) return
    this.compareSoon()
  }
}
