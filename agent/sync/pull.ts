// The ways to get a page: by a poll from the cursor, by a refetch, or part by part (PL3). Each call of a method is one
// request and returns its outcome.
import { cursorText } from '../../shared/crdt/position.ts'
import { ASK_FRAME_BEGINS, ASK_PARAM } from '../../shared/protocol/ask.ts'
import { PROJECTS_PARAM, REFETCH_REASONS, type RefetchReason } from '../../shared/protocol/frames.ts'
import { HEAD_PARAM } from '../../shared/protocol/head.ts'
import type { KeyLink } from '../../shared/protocol/key-links.ts'
import type { RefetchHead } from '../../shared/protocol/refetch.ts'
import { PAGE_BYTES_MAX, PART_BYTES_MAX, ROUTES } from '../../shared/protocol/routes.ts'
import { BOUND_PARAM, SEAL_PARAM } from '../../shared/protocol/sealed-keys.ts'
import { parseTransfer, SLICE_PARAM, TRANSFER_HEADER } from '../../shared/protocol/transfer.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { SOPS_PARAM } from '../../shared/sops/parcel.ts'
import type { AskDesk } from '../ask/ask-desk.ts'
import { anotherAnswered } from '../link/link-failure.ts'
import { cutOf, inflated, isGatewayTimeout, type ServerAnswer, type ServerCall, TIMED_OUT } from '../link/server-client.ts'
import { CALL_TIMEOUT_MS, type SessionKeeper } from '../link/session-keeper.ts'
import { NOT_SIGNED, SEALED_FOR_OTHER } from '../replica/page-reader.ts'
import type { ApplyPageResult, Replica } from '../replica/replica.ts'
import type { HeadCheck } from './head-check.ts'
import { type PartStage, partLength, transferLie } from './part-stage.ts'
import { afterClean, afterCut, afterSilence, beginWait, type PollWait } from './poll-wait.ts'
import { anySlice, sliceAfterCut, sliceAfterPage, sliceAfterPiece } from './slice-choice.ts'
import type { PageTask } from './sync-state.ts'

/** A poll that was interrupted after this time met a proxy that ends silent connections: no change, and a shorter
 *  wait. */
export const CUT_AFTER_MS = 5_000
/** After an interruption the agents of a stopped server must not all return in one moment. */
export const CUT_PAUSE_MS = 5_000
/** An empty answer long before its time is followed by a pause, lest a server or proxy that does not wait gets a
 *  thousand polls a second. */
export const EMPTY_POLL_MS_MIN = 20_000
/** The server reads and compresses a large page before it sends the first byte. */
const REFETCH_TIMEOUT_MS = 120_000

export type PullResult =
  | ApplyPageResult
  /** Not `heard`: a box between ended the poll, which proves nothing about the server. */
  | { kind: 'nothing_new'; pauseMs: number; heard: boolean }
  | { kind: 'must_refetch'; reason: RefetchReason }
  | { kind: 'transfer_began' }
  | { kind: 'part_staged' }
  | { kind: 'transfer_gone' }

export interface Pull {
  /** `patient`: waits for changes; otherwise the answer comes at once. */
  follow(replica: Replica, task: PageTask, patient: boolean, signal: AbortSignal): Promise<PullResult>
  /** `sums`: only the differences from the held rows. */
  refetch(replica: Replica, task: PageTask, sums: boolean, signal: AbortSignal): Promise<PullResult>
  nextPart(replica: Replica, signal: AbortSignal): Promise<PullResult>
  waitSeconds(): number
}

export interface PullDeps {
  session: SessionKeeper
  stage: PartStage
  clock: Clock
  random: Random
  clusterId(): string
  head: HeadCheck
  /** Absent means that this agent takes no questions. */
  asks?: Pick<AskDesk, 'nonce' | 'take'> | undefined
  /** RP7: how its pinned keys follow from each other. */
  keyLinks?(): readonly KeyLink[]
  /** A page was verified and merged in that time. */
  onPage?(startMs: number, endMs: number): void
  /** Longest wait of a poll; asked each time, because a spent budget raises it. */
  waitLimit(): { startSeconds: number; limitSeconds: number; longest: boolean }
}

export function createPull(deps: PullDeps): Pull {
  return new ServerPull(deps)
}

class ServerPull implements Pull {
  readonly #deps: PullDeps
  #wait: PollWait
  #slice = anySlice
  /** The size of the request for the staged page; a server that gave larger parts cannot do better. */
  #stagedSlice: number | null = null
  /** The last poll was ended by something on the way. */
  #wasCut = false

  constructor(deps: PullDeps) {
    this.#deps = deps
    this.#wait = beginWait(deps.waitLimit().startSeconds)
  }

  waitSeconds(): number {
    const { limitSeconds, longest } = this.#deps.waitLimit()
    return longest ? Math.min(limitSeconds, this.#wait.cutLimit ?? limitSeconds) : Math.min(limitSeconds, this.#wait.seconds)
  }

  async refetch(replica: Replica, task: PageTask, sums: boolean, signal: AbortSignal): Promise<PullResult> {
    const proof = replica.proof()
    const keyLinks = this.#deps.keyLinks?.() ?? []
    const head: RefetchHead = proof === null ? {} : { proof, ...(keyLinks.length === 0 ? {} : { keyLinks: [...keyLinks] }) }
    const bytes = Buffer.concat([Buffer.from(`${JSON.stringify(head)}\n`), sums ? replica.bucketSums() : new Uint8Array(0)])
    const query = { ...FEATURES, ...this.#sliceQuery() }
    const common = { doing: 'refetch', ...PAGE, timeoutMs: REFETCH_TIMEOUT_MS, signal, query }
    const { session } = this.#deps
    return this.#page({ replica, task, cursor: null, signal }, () =>
      session.call({ ...common, method: 'POST', path: ROUTES.buckets, bytes }),
    )
  }

  async follow(replica: Replica, task: PageTask, patient: boolean, signal: AbortSignal): Promise<PullResult> {
    const { session, clock, random } = this.#deps
    const position = replica.position()
    if (position === null) throw new AppError('internal', { doing: 'pull', detail: 'no cursor' })
    const cursor = cursorText(position)
    const waitSeconds = patient ? this.waitSeconds() : 0
    const nonce = this.#deps.head.nonce()
    const { asks } = this.#deps
    const askNonce = asks?.nonce()
    const query = {
      ...{ cursor, wait: String(waitSeconds), ...FEATURES },
      ...(askNonce === undefined ? {} : { [ASK_PARAM]: askNonce }),
      ...(nonce === null ? {} : { [HEAD_PARAM]: nonce }),
      ...this.#sliceQuery(),
    }
    const call = { doing: 'pull', ...PAGE, method: 'GET', path: ROUTES.desired, query, signal } as const
    const startMs = clock.monotonicMs()
    try {
      let headSignature: string | null = null
      let asked: Uint8Array | null = null
      const result = await this.#page({ replica, task, cursor, signal, mayBeSilence: patient }, async () => {
        const answer = await session.call({ ...call, timeoutMs: waitSeconds * 1000 + CALL_TIMEOUT_MS })
        headSignature = answer.headSignature
        if (askNonce === undefined || !hasQuestions(answer)) return answer
        asked = answer.body
        return { ...answer, status: 204 }
      })
      if (asked !== null && askNonce !== undefined) {
        const isTaken = await asks?.take(asked, askNonce, signal)
        return { kind: 'nothing_new', pauseMs: isTaken ? 0 : EMPTY_POLL_MS_MIN, heard: true }
      }
      if (nonce !== null && result.kind === 'nothing_new') await this.#deps.head.take(nonce, position, headSignature, signal)
      if (!patient) return result
      const tookMs = clock.monotonicMs() - startMs
      this.#wait = afterClean(
        { ...this.#wait, seconds: waitSeconds },
        tookMs >= waitSeconds * 1000 - 1_000,
        this.#deps.waitLimit().limitSeconds,
      )
      if (result.kind !== 'nothing_new') return result
      const pauseMs = Math.max(0, Math.min(EMPTY_POLL_MS_MIN, waitSeconds * 1000) - tookMs)
      return { kind: 'nothing_new', pauseMs, heard: true }
    } catch (error) {
      const tookMs = clock.monotonicMs() - startMs
      if (!patient || signal.aborted || !isSilence(error, call.doing)) throw error
      if (isTimeout(error)) this.#wait = afterSilence({ ...this.#wait, seconds: waitSeconds })
      if (isTimeout(error) || tookMs < CUT_AFTER_MS) throw error
      this.#wait = afterCut({ ...this.#wait, seconds: waitSeconds }, tookMs)
      const pauseMs = random() * CUT_PAUSE_MS
      if (!this.#wasCut) {
        this.#wasCut = true
        return { kind: 'nothing_new', pauseMs, heard: false }
      }
      // The shorter wait was interrupted too: the program that takes the connection may have no server behind it.
      await clock.sleep(pauseMs, signal)
      throw error
    }
  }

  async nextPart(replica: Replica, signal: AbortSignal): Promise<PullResult> {
    const { session, stage, clock } = this.#deps
    const staged = stage.current(clock.nowMs())
    if (staged === null || staged.clusterId !== this.#deps.clusterId() || this.#tooLargeForLink(staged.partBytes))
      return { kind: 'transfer_gone' }
    const position = replica.position()
    if (staged.cursor !== null && (position === null || staged.cursor !== cursorText(position))) return { kind: 'discarded' }
    if (staged.have < staged.transfer.parts) {
      const query = { transfer: staged.transfer.id, part: String(staged.have) }
      const length = partLength(staged, staged.have)
      const call = { doing: 'fetch a part', method: 'GET', path: ROUTES.desired, query, raw: true, signal } as const
      const answer = await this.#measured(() =>
        session.call({ ...call, answerBytesMax: PART_BYTES_MAX, timeoutMs: CALL_TIMEOUT_MS }),
      ).catch(unlessGone)
      if (answer === 'gone') return { kind: 'transfer_gone' }
      if (answer.body.length !== length)
        return { kind: 'refused', why: `part ${staged.have} has ${answer.body.length} bytes instead of ${length}` }
      stage.add(answer.body, clock.nowMs())
      if (staged.have + 1 < staged.transfer.parts) return { kind: 'part_staged' }
    }
    return this.#apply(replica, stage.assembled(), signal)
  }

  #tooLargeForLink(partBytes: number): boolean {
    const wanted = this.#slice.bytes
    return wanted !== null && partBytes > wanted && (this.#stagedSlice ?? Number.POSITIVE_INFINITY) > wanted
  }

  #sliceQuery(): { [SLICE_PARAM]: string } | null {
    return this.#slice.bytes === null ? null : { [SLICE_PARAM]: String(this.#slice.bytes) }
  }

  async #page({ replica, task, cursor, signal, mayBeSilence = false }: Asking, ask: () => Promise<ServerAnswer>): Promise<PullResult> {
    const { stage, clock, clusterId } = this.#deps
    let answer: ServerAnswer
    try {
      answer = await this.#measured(ask, mayBeSilence)
    } catch (error) {
      if (error instanceof AppError && error.code === 'bad_page') return { kind: 'refused', why: error.message }
      if (!(error instanceof AppError && error.code === 'must_refetch')) throw error
      return { kind: 'must_refetch', reason: reasonOf(error.data.extra?.['reason']) }
    }
    this.#wasCut = false
    if (answer.status === 204) return { kind: 'nothing_new', pauseMs: 0, heard: true }
    if (answer.piece === null) {
      // For example the log-in page of a network: no reason to doubt the stored rows or to fetch them again.
      if (answer.body[0] !== PAGE_BEGINS) throw new AppError('server_unreachable', { doing: 'pull', ...anotherAnswered })
      return this.#apply(replica, answer.body, signal)
    }
    const transfer = parseTransfer(answer.piece, PAGE_BYTES_MAX)
    const lie = transfer === null ? 'invalid transfer' : transferLie(transfer, answer.body.length)
    if (transfer === null || lie !== null) return { kind: 'refused', why: lie ?? '' }
    stage.begin({ transfer, of: task, cursor, clusterId: clusterId(), movedMs: clock.nowMs() }, answer.body)
    this.#stagedSlice = this.#slice.bytes
    return { kind: 'transfer_began' }
  }

  /** Learns from answers that break off how much this link brings over in one go. */
  async #measured(ask: () => Promise<ServerAnswer>, mayBeSilence = false): Promise<ServerAnswer> {
    try {
      const answer = await ask()
      this.#slice = sliceAfterPiece(this.#slice)
      return answer
    } catch (error) {
      const cut = cutOf(error)
      // A reset drops unread bytes, so the head is enough proof; without it, the connection may have been silent.
      if (cut?.sent && (cut.begun || (!mayBeSilence && !isTimeout(error)))) this.#slice = sliceAfterCut(this.#slice, cut.bodyBytes)
      throw error
    }
  }

  /** RP7: a page that no pinned key has signed may be by a key that follows from one; a new session tells, once. */
  async #apply(replica: Replica, wire: Uint8Array, signal: AbortSignal): Promise<ApplyPageResult> {
    const startMs = this.#deps.clock.nowMs()
    const result = await this.#read(replica, wire, signal)
    if (result.kind === 'applied') this.#deps.onPage?.(startMs, this.#deps.clock.nowMs())
    return result
  }

  async #read(replica: Replica, wire: Uint8Array, signal: AbortSignal): Promise<ApplyPageResult> {
    let frames: Uint8Array
    try {
      frames = inflated(wire, PAGE_BYTES_MAX)
    } catch (error) {
      if (!(error instanceof AppError)) throw error
      return { kind: 'refused', why: error.message }
    }
    this.#slice = sliceAfterPage(this.#slice)
    const result = replica.applyPage(frames)
    // SL15: with its next session the agent announces its own recipient key, and the next page is sealed to that.
    if (result.kind === 'refused' && result.why === SEALED_FOR_OTHER) await this.#deps.session.renewKeys(signal)
    if (result.kind !== 'refused' || result.why !== NOT_SIGNED) return result
    const learned = await this.#deps.session.renewKeys(signal)
    return learned ? replica.applyPage(frames) : result
  }
}

interface Asking {
  replica: Replica
  task: PageTask
  cursor: string | null
  signal: AbortSignal
  /** A poll that waits. */
  mayBeSilence?: boolean
}

const PAGE = { answerBytesMax: PAGE_BYTES_MAX, pieceHeader: TRANSFER_HEADER } as const satisfies Partial<ServerCall>

/** The encodings that this agent can read besides plain rows. */
const FEATURES = { [SEAL_PARAM]: '1', [BOUND_PARAM]: '1', [SOPS_PARAM]: '1', [PROJECTS_PARAM]: '1' }
const ASKS = Buffer.from(ASK_FRAME_BEGINS)
const hasQuestions = ({ piece, body }: ServerAnswer): boolean => piece === null && ASKS.equals(body.subarray(0, ASKS.length))

/** The `{` of its hello. */
const PAGE_BEGINS = 0x7b

/** This very request was sent, and nothing came back; not an earlier one on the same connection, and not one without
 *  a connection. */
function isSilence(error: unknown, doing: string): boolean {
  if (!(error instanceof AppError && error.code === 'server_unreachable' && error.data.doing === doing)) return false
  const cut = cutOf(error)
  return cut === null ? isGatewayTimeout(error) : cut.sent && !cut.begun
}
const isTimeout = (error: unknown): boolean => error instanceof AppError && error.data.detail === TIMED_OUT

function unlessGone(error: unknown): 'gone' {
  if (error instanceof AppError && error.code === 'transfer_gone') return 'gone'
  throw error
}

const reasonOf = (reason: unknown): RefetchReason => REFETCH_REASONS.find((known) => known === reason) ?? 'unknown'
