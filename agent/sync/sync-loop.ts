// Carries out the decisions of sync-state and nothing else; runLoop waits and retries. At most one pull and one push
// run at once. Enforcement continues independently.
import { isDiskFull } from '../../shared/adapters/sqlite.ts'
import type { Position } from '../../shared/crdt/position.ts'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { WAIT_SECONDS_DEFAULT } from '../../shared/protocol/routes.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { fingerprint } from '../../shared/runtime/keys.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError, runLoop } from '../../shared/runtime/loop.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { type Watch, watched } from '../../shared/runtime/watchdog.ts'
import { type AskAnswerer, AskDesk } from '../ask/ask-desk.ts'
import type { AgentKeys } from '../link/agent-keys.ts'
import { type JoinInput, joinServer } from '../link/join.ts'
import { createServerClient, type Fetcher, type ServerClient, type Traffic } from '../link/server-client.ts'
import { createSessionKeeper, type SessionKeeper } from '../link/session-keeper.ts'
import type { CheckedReplica } from '../replica/crdt-replica.ts'
import type { AgentState, Identity } from '../state/agent-state.ts'
import { HeadCheck } from './head-check.ts'
import { memoryStage, type PartStage } from './part-stage.ts'
import { WAIT_SECONDS_LIMIT, WAIT_SECONDS_LIMIT_METERED } from './poll-wait.ts'
import { createPull, type Pull, type PullResult } from './pull.ts'
import { PushLoop } from './push-loop.ts'
import {
  beginSync,
  HALTING_CODES,
  inContact,
  type SyncEffect,
  type SyncEvent,
  type SyncFailure,
  type SyncState,
  stepSync,
  syncFailure,
  turnOf,
} from './sync-state.ts'
import { createTrafficDay, type TrafficDay } from './traffic-day.ts'

/** Between tries that only a person can make succeed. */
export const REST_MS = 60_000
/** Bits flip under idle files, too (CU2). */
export const RECHECK_INTERVAL_MS = 3_600_000
const BACKOFF = { baseMs: 500, capMs: 60_000 }
/** On a metered link a server that is away is asked less often. */
const BACKOFF_METERED = { baseMs: 500, capMs: 300_000 }

export interface SyncOptions {
  /** Work that must end. Absent means that nobody watches. */
  watch?: Watch | undefined
  serverUrl: string
  fetcher: Fetcher
  keys: AgentKeys
  /** SL11: makes another recipient key in place of that of `keys`. */
  rotateRecipient?(): void
  join: JoinInput
  state: AgentState
  openReplica(identity: Identity): CheckedReplica
  /** After rows of these services changed and are on the disk. */
  onChange(services: ServiceId[]): void
  /** A page was verified and merged in that time. */
  onPage?(startMs: number, endMs: number): void
  /** CM9: the server removed this cluster, or knows it again. */
  onRemoved?(isRemoved: boolean): void
  /** SL15: the server seals to another recipient key, or no more. */
  onRecipient?(): void
  /** PR7: the server signed that the replica is at its head. */
  onCurrent?(): void
  clock: Clock
  random: Random
  /** For values that must not be guessable. */
  randomBytes(count: number): Uint8Array
  log: Logger
  /** Longest wait of a poll; without it, as long as the link allows. */
  waitSeconds?: number
  /** Every byte of this link is paid for. */
  metered?: boolean
  traffic?: TrafficDay
  /** Answers questions to this cluster. Absent means that it accepts none. */
  answerer?: AskAnswerer
  /** Where parts of a page wait; without it, in memory. */
  parts?: PartStage
}

export interface SyncStatus {
  state: SyncState['kind']
  sinceMs: number
  position: Position | null
  epoch: number
  /** Last answer of the server, good or bad; null before the first. */
  lastContactMs: number | null
  /** When the server last signed its head. Null means not since this process started. */
  headSignedMs: number | null
  failure: SyncFailure | null
  /** The page in parts. */
  parts: { have: number; of: number; bytes: number } | null
  outboxDepth: number
  traffic: Traffic
  metered: boolean
  today: { bytes: number; budgetBytes: number }
  waitSeconds: number
}

export class SyncLoop {
  readonly #options: SyncOptions
  readonly #client: ServerClient
  readonly #session: SessionKeeper
  readonly #head: HeadCheck
  readonly #asks: AskDesk | undefined
  readonly #pull: Pull
  readonly #push: PushLoop
  readonly #stage: PartStage
  readonly #day: TrafficDay
  #replica: CheckedReplica | null = null
  #state: SyncState
  #lastContactMs: number | null = null
  #cutPoll = new AbortController()
  /** The server took another recipient key: all rows are fetched, sealed to it. */
  #isSealedAnew = false
  #foreignRecipient: string | null = null
  /** Everything was reported again because of the restore that is pending, or was until the last page. */
  #isToldAnew = false
  /** Since this process started. */
  #wasHeard = false

  constructor(options: SyncOptions) {
    const { state, clock, random, log, keys, fetcher, serverUrl, metered = false } = options
    this.#options = options
    this.#stage = options.parts ?? memoryStage()
    this.#day = options.traffic ?? createTrafficDay({ path: null, budgetBytes: 0, clock })
    this.#client = createServerClient(serverUrl, this.#withContact(fetcher), clock, {
      onTraffic: (sent, received) => this.#day.add(sent + received),
    })
    this.#session = createSessionKeeper({
      client: this.#client,
      keys,
      state,
      clock,
      randomBytes: options.randomBytes,
      onRemoved: (isRemoved) => options.onRemoved?.(isRemoved),
      renewAfter: metered ? 0.95 : 0.5,
      ...(options.rotateRecipient === undefined ? {} : { rotateRecipient: options.rotateRecipient }),
      onSealedAnew: () => {
        this.#isSealedAnew = true
        this.#cutPoll.abort()
      },
      onRecipient: (other) => this.#recipientStated(other),
    })
    this.#head = new HeadCheck({
      clock,
      randomBytes: options.randomBytes,
      clusterId: () => state.identity()?.clusterId ?? '',
      serverKeys: () => state.identity()?.serverKeys ?? [],
      renewKeys: (signal) => this.#session.renewKeys(signal),
    })
    this.#asks =
      options.answerer === undefined
        ? undefined
        : new AskDesk({
            ...{ session: this.#session, answerer: options.answerer, clock, log, randomBytes: options.randomBytes },
            clusterId: () => state.identity()?.clusterId ?? '',
            serverKeys: () => state.identity()?.serverKeys ?? [],
            epoch: () => this.#replica?.epoch() ?? 0,
            spent: () => this.#day.exceeded(),
          })
    this.#pull = createPull({
      session: this.#session,
      head: this.#head,
      asks: this.#asks,
      stage: this.#stage,
      clock,
      random,
      clusterId: () => state.identity()?.clusterId ?? '',
      keyLinks: () => state.identity()?.keyLinks ?? [],
      waitLimit: () => this.#waitLimit(),
      ...(options.onPage === undefined ? {} : { onPage: options.onPage }),
    })
    const identity = state.identity()
    if (identity !== null) this.#replica = options.openReplica(identity)
    this.#state = this.#begin(identity)
    const contact = () => inContact(this.#state)
    const idle = () => this.#state.kind === 'following'
    const spent = () => this.#day.exceeded()
    this.#push = new PushLoop({ session: this.#session, state, clock, random, log, metered, spent, contact, idle, watch: options.watch })
  }

  #begin(identity: Identity | null): SyncState {
    const nowMs = this.#options.clock.nowMs()
    const staged = this.#stage.current(nowMs)
    const ours = staged !== null && staged.clusterId === identity?.clusterId
    if (staged !== null && !ours) this.#stage.drop()
    const verified = this.#replica?.verified() ?? false
    const behind = this.#replica !== null && (this.#replica.isBehind() || this.#replica.hasFormerKeys())
    return beginSync({ joined: identity !== null, verified, behind, staged: ours ? staged.of : null }, nowMs)
  }

  /** The replica that the agent enforces. Null until it has joined. */
  replica(): CheckedReplica | null {
    return this.#replica
  }

  /**
   * A reader of the replica may be the first to find damage. A poll may wait long, and nothing is enforced meanwhile
   * (RP1).
   */
  replicaDamaged(): void {
    this.#cutPoll.abort() // the next turn sees it
  }

  status(): SyncStatus {
    const { kind, sinceMs, failure } = this.#state
    const staged = this.#state.task.kind === 'parts' ? this.#stage.current(this.#options.clock.nowMs()) : null
    return {
      state: kind,
      sinceMs,
      position: this.#replica?.position() ?? null,
      epoch: this.#replica?.epoch() ?? 0,
      lastContactMs: this.#lastContactMs,
      headSignedMs: this.#head.signed?.atMs ?? null,
      failure,
      parts: staged === null ? null : { have: staged.have, of: staged.transfer.parts, bytes: staged.transfer.bytes },
      outboxDepth: this.#options.state.outboxDepth(),
      traffic: this.#client.traffic(),
      metered: this.#options.metered ?? false,
      today: { bytes: this.#day.today().bytes, budgetBytes: this.#day.budgetBytes },
      waitSeconds: this.#pull.waitSeconds(),
    }
  }

  /** SL15: the server seals to this recipient key, which is not the agent's; null means that it does not. Unlike
   *  status(), it reads nothing of the state on disk. */
  get foreignRecipient(): string | null {
    return this.#foreignRecipient
  }

  #recipientStated(other: string | null): void {
    if (other === this.#foreignRecipient) return
    this.#foreignRecipient = other
    const { log, keys, onRecipient } = this.#options
    const own = fingerprint(keys.recipient.publicKey)
    if (other === null) log.info('the server seals to the recipient key of this agent again', { own })
    else log.error('the server seals to another recipient key than that of this agent, and keeps it', { own, other })
    onRecipient?.()
  }

  /** SL15: a page that is sealed to the own key ends the problem; the next session may be hours away. */
  #pageTaken(): void {
    const to = this.#replica?.proof()?.hello.seal?.to
    if (to === fingerprint(this.#options.keys.recipient.publicKey)) this.#recipientStated(null)
  }

  /** Runs until the signal only. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log, metered = false } = this.#options
    const common = { backoff: metered ? BACKOFF_METERED : BACKOFF, clock, random, log, signal }
    await Promise.all([
      runLoop({ ...common, name: 'sync', turn: () => this.#pullTurn(signal) }),
      this.#push.run(common),
      runLoop({ ...common, name: 'recheck', turn: () => this.#recheckTurn(signal) }),
    ])
    await this.#asks?.stop()
    this.#day.flush()
  }

  async #pullTurn(signal: AbortSignal): Promise<void> {
    const { task } = this.#state
    const needsFile = task.kind === 'follow' || (task.kind === 'parts' && task.of.kind === 'follow')
    if (needsFile && !this.#replica?.verified()) await this.#step({ kind: 'replica_damaged' }, undefined, signal)
    if (this.#isSealedAnew && this.#state.task.kind === 'follow') {
      this.#isSealedAnew = false
      if (this.#replica?.hasFormerKeys()) await this.#step({ kind: 'must_refetch', reason: 'unknown' }, undefined, signal)
    }
    let event: SyncEvent
    let cause: unknown
    const { signed } = this.#head
    try {
      event = await watched(this.#options.watch, 'sync with the server', () => this.#perform(signal))
    } catch (error) {
      if (signal.aborted || this.#cutPoll.signal.aborted) return
      event = this.#failureEvent(error)
      cause = error
    }
    await this.#step(event, cause, signal)
    if (event.kind !== 'page_applied' && !(event.kind === 'nothing_new' && event.heard)) return
    this.#wasHeard = true
    if (this.#head.signed !== signed) this.#options.onCurrent?.()
  }

  async #perform(signal: AbortSignal): Promise<SyncEvent> {
    const turn = turnOf(this.#state)
    const replica = this.#replica
    if (turn.kind === 'join' || replica === null) return this.#join(signal)
    this.#cutPoll = new AbortController()
    const either = AbortSignal.any([signal, this.#cutPoll.signal])
    const { task } = this.#state
    if (turn.kind === 'fetch_part' || task.kind === 'join' || task.kind === 'parts')
      return this.#eventOf(await this.#pull.nextPart(replica, either))
    return this.#eventOf(
      turn.kind === 'follow'
        ? await this.#pull.follow(replica, task, turn.patient && this.#wasHeard && this.#head.isAnswered, either) // what waits for the server waits no longer than it must
        : await this.#pull.refetch(replica, task, turn.sums, either),
    )
  }

  async #join(signal: AbortSignal): Promise<SyncEvent> {
    const { state, join, keys, openReplica, log } = this.#options
    const identity = await joinServer(this.#client, keys, join, signal)
    state.setIdentity(identity)
    if (join.joinToken !== null) state.noteToken(sha256Hex(join.joinToken))
    this.#replica ??= openReplica(identity)
    log.info('joined', { cluster: identity.clusterId, agent: identity.agentId, incarnation: identity.incarnation })
    return {
      kind: 'joined',
      verified:
        this.#replica.verified() && this.#replica.position() !== null && !this.#replica.isBehind() && !this.#replica.hasFormerKeys(),
    }
  }

  #eventOf(result: PullResult): SyncEvent {
    switch (result.kind) {
      case 'applied':
        this.#pageTaken()
        return { kind: 'page_applied', services: result.changedServices }
      case 'discarded':
        return { kind: 'page_discarded' }
      case 'refused':
        return { kind: 'page_refused', failure: this.#failure(new AppError('bad_page', { doing: 'pull', detail: result.why })) }
      default:
        return result
    }
  }

  #failureEvent(error: unknown): SyncEvent {
    const failure = this.#failure(error)
    if (failure.code === 'restore_pending') return { kind: 'restore_pending', failure }
    return { kind: HALTING_CODES.has(failure.code) ? 'refused' : 'failed', failure }
  }

  #failure(error: unknown): SyncFailure {
    const nowMs = this.#options.clock.nowMs()
    if (error instanceof AppError) {
      if (error.code === 'disk_full') return syncFailure('unavailable', describeError(error), nowMs, 'Free some space on the server.')
      return syncFailure(error.code, describeError(error), nowMs, error.remedy)
    }
    return syncFailure(isDiskFull(error) ? 'disk_full' : 'internal', describeError(error), nowMs)
  }

  async #step(event: SyncEvent, cause: unknown, signal: AbortSignal): Promise<void> {
    const { state, effects } = stepSync(this.#state, event, this.#options.clock.nowMs())
    // The server's memory of this site comes from the backup, and a person is about to decide by it.
    if (state.kind === 'restore_pending' && !this.#isToldAnew) this.#push.reportAnew()
    this.#isToldAnew = state.kind === 'restore_pending' || (this.#isToldAnew && event.kind !== 'page_applied')
    this.#state = state
    this.#push.wake()
    for (const effect of effects) await this.#carryOut(effect, event, cause, signal)
  }

  async #carryOut(effect: SyncEffect, event: SyncEvent, cause: unknown, signal: AbortSignal): Promise<void> {
    const { clock, random, log, onChange } = this.#options
    switch (effect.kind) {
      case 'log':
        return log[effect.level](effect.message, effect.fields)
      case 'tell':
        return onChange([...effect.services])
      case 'drop_parts':
        return this.#stage.drop()
      case 'sleep':
        return clock.sleep(effect.ms, signal)
      case 'rest':
        return clock.sleep(REST_MS * (0.5 + random()), signal)
      case 'back_off':
        throw cause ?? new AppError('bad_page', { doing: 'pull', detail: event.kind.replaceAll('_', ' ') })
    }
  }

  async #recheckTurn(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#options
    await clock.sleep(RECHECK_INTERVAL_MS * (0.5 + random()), signal)
    if (signal.aborted || this.#replica === null) return
    if (!this.#replica.verified() || this.#replica.recheck()) return
    this.#cutPoll.abort() // the next turn sees the damage
  }

  #waitLimit(): { startSeconds: number; limitSeconds: number; longest: boolean } {
    const { waitSeconds, metered = false } = this.#options
    const spent = this.#day.exceeded()
    const limitSeconds = waitSeconds ?? (metered || spent ? WAIT_SECONDS_LIMIT_METERED : WAIT_SECONDS_LIMIT)
    return { startSeconds: Math.min(limitSeconds, WAIT_SECONDS_DEFAULT), limitSeconds, longest: spent }
  }

  #withContact(fetcher: Fetcher): Fetcher {
    return async (url, init) => {
      const response = await fetcher(url, init)
      this.#lastContactMs = this.#options.clock.nowMs()
      return response
    }
  }
}
