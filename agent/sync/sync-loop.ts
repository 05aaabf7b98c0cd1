// Order of calls, nothing else: what follows from an outcome is sync-state's, waiting and retrying are runLoop's. One pull and one push are in flight
// at most. Enforcement goes on whatever happens here.
import { isDiskFull } from '../../shared/adapters/sqlite.ts'
import type { Position } from '../../shared/crdt/position.ts'
import type { ServiceId } from '../../shared/model/ids.ts'
import { AppError, ERRORS, type ErrorCode } from '../../shared/protocol/error.ts'
import { WAIT_SECONDS_DEFAULT } from '../../shared/protocol/routes.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError, runLoop } from '../../shared/runtime/loop.ts'
import type { Random } from '../../shared/runtime/random.ts'
import type { CheckedReplica } from '../replica/crdt-replica.ts'
import type { AgentState, Identity } from '../state/agent-state.ts'
import type { AgentKeys } from './agent-keys.ts'
import { type JoinInput, joinServer } from './join.ts'
import { createPoll, type Poll, type PullResult } from './poll.ts'
import { compareRevs, pushBatch, pushInventory } from './push.ts'
import { createServerClient, type Fetcher, type ServerClient, type Traffic } from './server-client.ts'
import { createSessionKeeper, type SessionKeeper } from './session-keeper.ts'
import { HALTING_CODES, type Pause, type SyncEvent, type SyncFailure, type SyncState, stepSync, taskOf } from './sync-state.ts'

/** Changes of status that come together travel together. */
export const PUSH_DEBOUNCE_MS = 20
/** Between tries that only a person can make succeed. */
export const REST_MS = 60_000
/** Bits flip under idle files, too (CU2). */
export const RECHECK_INTERVAL_MS = 3_600_000
/** After a new incarnation, before the inventory: whoever looks after the services shall have told of all of them. */
export const INVENTORY_WAIT_MS = 120_000
const BACKOFF = { baseMs: 500, capMs: 60_000 }

export interface SyncOptions {
  serverUrl: string
  fetcher: Fetcher
  keys: AgentKeys
  join: JoinInput
  state: AgentState
  openReplica(identity: Identity): CheckedReplica
  /** After rows of these services changed and are on the disk. */
  onChange(services: ServiceId[]): void
  clock: Clock
  random: Random
  log: Logger
  waitSeconds?: number
}

export interface SyncStatus {
  state: SyncState['kind']
  sinceMs: number
  position: Position | null
  epoch: number
  /** Last answer of the server, good or bad; null before the first. */
  lastContactMs: number | null
  failure: SyncFailure | null
  outboxDepth: number
  traffic: Traffic
}

export class SyncLoop {
  readonly #options: SyncOptions
  readonly #client: ServerClient
  readonly #session: SessionKeeper
  readonly #poll: Poll
  #replica: CheckedReplica | null = null
  #state: SyncState
  #lastContactMs: number | null = null
  #wakePush: () => void = () => {}
  #cutPoll = new AbortController()
  /** The greatest rev that the server can know of from this file; null once they were compared (PU7). */
  #given: number | null

  constructor(options: SyncOptions) {
    const { state, clock, keys, fetcher, serverUrl, waitSeconds } = options
    this.#options = options
    this.#client = createServerClient(serverUrl, this.#withContact(fetcher), clock)
    this.#session = createSessionKeeper({ client: this.#client, keys, state, clock })
    this.#poll = createPoll(this.#session, clock, waitSeconds ?? WAIT_SECONDS_DEFAULT)
    const identity = state.identity()
    this.#given = identity === null ? null : state.lastRev()
    const common = { sinceMs: clock.nowMs(), failure: null }
    if (identity === null) this.#state = { kind: 'joining', ...common }
    else {
      this.#replica = options.openReplica(identity)
      this.#state = this.#replica.verified() ? { kind: 'following', proven: true, ...common } : { kind: 'bootstrapping', ...common }
    }
    state.onOutbox(() => this.#wakePush())
  }

  /** What the agent enforces; null until it has joined. */
  replica(): CheckedReplica | null {
    return this.#replica
  }

  status(): SyncStatus {
    const { kind, sinceMs, failure } = this.#state
    return {
      state: kind,
      sinceMs,
      position: this.#replica?.position() ?? null,
      epoch: this.#replica?.epoch() ?? 0,
      lastContactMs: this.#lastContactMs,
      failure,
      outboxDepth: this.#options.state.outboxDepth(),
      traffic: this.#client.traffic(),
    }
  }

  /** Until the signal; nothing else ends it. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#options
    const common = { backoff: BACKOFF, clock, random, log, signal }
    signal.addEventListener('abort', () => this.#wakePush(), { once: true })
    await Promise.all([
      runLoop({ ...common, name: 'sync', turn: () => this.#pullTurn(signal) }),
      runLoop({ ...common, name: 'push', turn: () => this.#pushTurn(signal) }),
      runLoop({ ...common, name: 'inventory', turn: () => this.#inventoryTurn(signal) }),
      runLoop({ ...common, name: 'recheck', turn: () => this.#recheckTurn(signal) }),
    ])
  }

  async #pullTurn(signal: AbortSignal): Promise<void> {
    if (taskOf(this.#state) === 'follow' && !this.#replica?.verified()) this.#step({ kind: 'replica_damaged' })
    let result: { event: SyncEvent; pauseMs: number; error?: unknown }
    try {
      result = await this.#perform(signal)
    } catch (error) {
      if (signal.aborted || this.#cutPoll.signal.aborted) return
      result = { event: this.#failureEvent(error), pauseMs: 0, error }
    }
    const pause = this.#step(result.event)
    if (pause === 'back_off') throw result.error ?? new AppError('bad_page', { doing: 'pull', detail: result.event.kind })
    if (pause === 'rest') await this.#options.clock.sleep(REST_MS * (0.5 + this.#options.random()), signal)
    else if (result.pauseMs > 0) await this.#options.clock.sleep(result.pauseMs, signal)
  }

  async #perform(signal: AbortSignal): Promise<{ event: SyncEvent; pauseMs: number }> {
    const { state, join, keys, openReplica, log } = this.#options
    const replica = this.#replica
    const task = taskOf(this.#state)
    if (task === 'join' || replica === null) {
      const identity = await joinServer(this.#client, keys, join, signal)
      state.setIdentity(identity)
      this.#replica ??= openReplica(identity)
      log.info('joined', { cluster: identity.clusterId, agent: identity.agentId, incarnation: identity.incarnation })
      return { event: { kind: 'joined' }, pauseMs: 0 }
    }
    this.#cutPoll = new AbortController()
    const either = AbortSignal.any([signal, this.#cutPoll.signal])
    // Without contact the first poll does not wait: whether the server is back is to be known at once, the outbox waits for it.
    const patient = this.#state.kind === 'following'
    const pulled =
      task === 'follow'
        ? await this.#poll.follow(replica, { patient, outboxDepth: state.outboxDepth() }, either)
        : await this.#poll.bootstrap(replica, either)
    return { event: this.#eventOf(pulled), pauseMs: pulled.kind === 'nothing_new' ? pulled.pauseMs : 0 }
  }

  #eventOf(result: PullResult): SyncEvent {
    switch (result.kind) {
      case 'applied':
        if (result.changedServices.length > 0) this.#options.onChange(result.changedServices)
        return { kind: 'page_applied' }
      case 'discarded':
        return { kind: 'page_discarded' }
      case 'refused':
        return { kind: 'page_refused', failure: this.#failure('bad_page', result.why) }
      case 'must_refetch':
        this.#options.log.info('the cursor cannot be continued, everything is fetched again', { reason: result.reason })
        return { kind: 'must_refetch' }
      case 'nothing_new':
        return { kind: 'nothing_new' }
    }
  }

  #failureEvent(error: unknown): SyncEvent {
    const code = error instanceof AppError ? error.code : isDiskFull(error) ? 'disk_full' : 'internal'
    return { kind: HALTING_CODES.has(code) ? 'refused' : 'failed', failure: this.#failure(code, describeError(error)) }
  }

  #failure(code: ErrorCode, message: string): SyncFailure {
    return { code, message, remedy: ERRORS[code].remedy, atMs: this.#options.clock.nowMs() }
  }

  #step(event: SyncEvent): Pause {
    const before = this.#state
    const { state, pause } = stepSync(before, event, this.#options.clock.nowMs())
    this.#state = state
    if (state.kind !== before.kind) {
      const level = state.kind === 'halted' ? 'error' : state.kind === 'offline' ? 'warn' : 'info'
      const { failure } = state
      this.#options.log[level]('sync changed', {
        state: state.kind,
        before: before.kind,
        ...(failure === null ? {} : { why: failure.message }),
      })
    }
    this.#wakePush()
    return pause
  }

  async #pushTurn(signal: AbortSignal): Promise<void> {
    const { state, clock, log } = this.#options
    await this.#pushable(signal)
    await clock.sleep(PUSH_DEBOUNCE_MS, signal)
    if (signal.aborted) return
    if (this.#given !== null) {
      await compareRevs(this.#session, state, this.#given, log, signal)
      this.#given = null
    }
    await pushBatch(this.#session, state, log, signal)
  }

  /** While there is no contact the pull finds it again; a second prober would double the load on a server that comes back. */
  async #pushable(signal: AbortSignal): Promise<void> {
    const contact = () => this.#state.kind === 'following' || this.#state.kind === 'bootstrapping'
    const ready = () => contact() && (this.#given !== null || this.#options.state.outboxDepth() > 0)
    while (!ready() && !signal.aborted) {
      await new Promise<void>((resolve) => {
        this.#wakePush = resolve
      })
    }
  }

  async #inventoryTurn(signal: AbortSignal): Promise<void> {
    const { state, clock, random, log } = this.#options
    await clock.sleep(INVENTORY_WAIT_MS * (0.5 + random()), signal)
    // With an empty outbox every later row has a greater rev than any that is named, and none of them can be swept.
    const settled = !signal.aborted && this.#state.kind === 'following' && this.#given === null && state.outboxDepth() === 0
    if (settled && state.inventoryDue()) await pushInventory(this.#session, state, log, signal)
  }

  async #recheckTurn(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options
    await clock.sleep(RECHECK_INTERVAL_MS * (0.5 + random()), signal)
    if (signal.aborted || this.#replica === null) return
    this.#given ??= this.#options.state.lastRev() // a server that was restored meanwhile
    this.#wakePush()
    if (!this.#replica.verified() || this.#replica.recheck()) return
    this.#cutPoll.abort() // the next turn sees the damage
  }

  #withContact(fetcher: Fetcher): Fetcher {
    return async (url, init) => {
      const response = await fetcher(url, init)
      this.#lastContactMs = this.#options.clock.nowMs()
      return response
    }
  }
}
