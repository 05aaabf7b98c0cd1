// Takes questions out of the answer of a poll and answers them beside it. Only a question that the server signed for
// this very poll is taken, each id once. Nothing here can hold up sync or enforcement.
import { z } from 'zod'
import { ASK_FRAMES_MAX, ASK_REFUSALS, type AskFrame, askBytes, askFrameSchema } from '../../shared/protocol/ask.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { verifyBytes } from '../../shared/runtime/keys.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { safeText } from '../cluster/redact/safe-text.ts'
import { parseJson } from '../link/server-client.ts'
import type { SessionKeeper } from '../link/session-keeper.ts'
import { answerNote, type QuestionRefusal, questionRefusal } from '../messages/question-messages.ts'
import { endLine, failedLine } from './answer-lines.ts'
import { AnswerLimit, type AnswerSink, AnswerWriter } from './answer-writer.ts'

/** Questions that are answered at once. */
export const ANSWERS_AT_ONCE_MAX = 64
const IDS_KEPT = 512
const NONCE_BYTES = 8

/** A question that this agent refuses, with what to do about it. Its texts are words of this program and of failures
 *  that passed the redaction boundary. */
export class AskRefused extends Error {
  readonly code: string
  readonly remedy: string | undefined
  constructor({ code, message, remedy }: QuestionRefusal) {
    super(message)
    this.code = code
    this.remedy = remedy
  }
}

export interface AskAnswerer {
  /** Throws AskRefused. `signal`: nobody waits any more, or a limit was reached. */
  answer(ask: AskFrame, sink: AnswerSink, signal: AbortSignal): Promise<void>
}

export interface AskDeskDeps {
  session: Pick<SessionKeeper, 'call'>
  answerer: AskAnswerer
  clusterId(): string
  serverKeys(): readonly string[]
  epoch(): number
  /** The budget of the link for today is used up. */
  spent(): boolean
  clock: Clock
  log: Logger
  randomBytes(count: number): Uint8Array
}

export class AskDesk {
  readonly #deps: AskDeskDeps
  readonly #stop = new AbortController()
  readonly #running = new Set<Promise<void>>()
  /** Oldest first: a frame comes again when its answer did not arrive in time. */
  readonly #taken = new Set<string>()

  constructor(deps: AskDeskDeps) {
    this.#deps = deps
  }

  /** For the next poll. */
  nonce(): string {
    return Buffer.from(this.#deps.randomBytes(NONCE_BYTES)).toString('base64url')
  }

  /** False: the server signed none of it. */
  async take(bytes: Uint8Array, nonce: string, signal: AbortSignal): Promise<boolean> {
    const { log } = this.#deps
    let isSigned = false
    const lines = new TextDecoder().decode(bytes).split('\n', ASK_FRAMES_MAX + 1)
    for (const line of lines.slice(0, ASK_FRAMES_MAX)) {
      if (line === '') continue
      const frame = this.#verified(line, nonce)
      if (frame === null) {
        log.warn('question refused: the server did not sign it for this poll')
        continue
      }
      isSigned = true
      if (this.#taken.has(frame.id) || signal.aborted) continue
      this.#remember(frame.id)
      const answered = this.#answer(frame).finally(() => this.#running.delete(answered))
      this.#running.add(answered)
    }
    return isSigned
  }

  /** Answers end. */
  async stop(): Promise<void> {
    this.#stop.abort()
    await Promise.all(this.#running)
  }

  #verified(line: string, nonce: string): AskFrame | null {
    const { clusterId, serverKeys, epoch } = this.#deps
    const parsed = askFrameSchema.safeParse(parseJson(new TextEncoder().encode(line)))
    if (!parsed.success || parsed.data.epoch < epoch()) return null
    const signed = askBytes(clusterId(), nonce, parsed.data)
    return serverKeys().some((key) => verifyBytes(key, signed, parsed.data.signature)) ? parsed.data : null
  }

  #remember(id: string): void {
    this.#taken.add(id)
    const [oldest] = this.#taken
    if (this.#taken.size > IDS_KEPT && oldest !== undefined) this.#taken.delete(oldest)
  }

  async #answer(frame: AskFrame): Promise<void> {
    const { session, answerer, clock, log, spent } = this.#deps
    const writer = new AnswerWriter({ session, clock, id: frame.id, bytesMax: frame.bytesMax, stop: this.#stop.signal })
    const over = new AbortController()
    const timed = new AbortController()
    void clock.sleep(frame.msMax, timed.signal).then(() => timed.signal.aborted || over.abort())
    const signal = AbortSignal.any([over.signal, writer.gone])
    try {
      if (this.#running.size >= ANSWERS_AT_ONCE_MAX)
        throw new AskRefused(questionRefusal('agent_busy.questions', { most: ANSWERS_AT_ONCE_MAX }))
      if (spent()) throw new AskRefused(questionRefusal('agent_busy.traffic'))
      await answerer.answer(frame, writer, signal)
      await writer.end(over.signal.aborted ? endLine('time') : endLine())
    } catch (error) {
      if (over.signal.aborted) await writer.end(endLine('time'))
      else if (error instanceof AnswerLimit) await writer.end(endLine('bytes'))
      else if (error instanceof AskRefused) await writer.end(failedLine(error.code, error.message, error.remedy))
      else if (!writer.gone.aborted) {
        const message = error instanceof z.ZodError ? answerNote('invalid_question') : safeText(describeError(error))
        log.error('question failed', { question: frame.question.kind, error: message })
        await writer.end(failedLine(ASK_REFUSALS.failed, message))
      }
    } finally {
      timed.abort()
    }
  }
}
