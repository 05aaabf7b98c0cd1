// Sends an answer in parts, one request after the other. While a part is under way lines collect, so that parts of a
// busy log are large and those of a quiet one come at once. A server without room holds its reply, which slows the
// source.
import { setImmediate } from 'node:timers/promises'
import { ANSWER_PART_BYTES, ANSWER_SILENCE_MS, ANSWERS, partAnswerSchema } from '../../shared/protocol/ask.ts'
import { COMPRESS_BYTES_MIN } from '../../shared/protocol/routes.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { zstd } from '../../shared/runtime/zstd.ts'
import { CALL_TIMEOUT_MS, parseAnswer, type SessionKeeper } from '../link/session-keeper.ts'
import type { SafeLine } from './answer-lines.ts'

/** Lines that wait beyond this hold up their source. */
const WAITING_BYTES_MAX = 2 * ANSWER_PART_BYTES
/** Between two parts that are not full: a busy log needs fewer requests, and nobody sees the difference. */
const PART_GAP_MS = 50
const TRIES_MAX = 3
const RETRY_MS = 1_000
/** The fastest: a log of 5 MB/s is compressed here. */
const ZSTD_LEVEL = 1

export interface AnswerSink {
  /** Resolves when there is room for more. Throws AnswerLimit when the answer has reached its size. */
  write(line: SafeLine): Promise<void>
}

/** The answer is as large as it may be. */
export class AnswerLimit extends Error {}

interface WriterDeps {
  session: Pick<SessionKeeper, 'call'>
  clock: Clock
  id: string
  bytesMax: number
  stop: AbortSignal
}

export class AnswerWriter implements AnswerSink {
  readonly #deps: WriterDeps
  readonly #gone = new AbortController()
  #lines: Buffer[] = []
  #waitingBytes = 0
  #bytes = 0
  #isEnding = false
  #changed = Promise.withResolvers<void>()
  readonly #sending: Promise<void>

  constructor(deps: WriterDeps) {
    this.#deps = deps
    const leave = () => this.#leave()
    deps.stop.addEventListener('abort', leave, { once: true })
    if (deps.stop.aborted) leave()
    // The signal lives as long as the agent, and the listener would keep the answer with it.
    this.#sending = this.#send().finally(() => deps.stop.removeEventListener('abort', leave))
  }

  /** Aborts when the caller no longer waits for the answer. */
  get gone(): AbortSignal {
    return this.#gone.signal
  }

  async write(line: SafeLine): Promise<void> {
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`)
    if (this.#bytes + bytes.length > this.#deps.bytesMax) throw new AnswerLimit()
    this.#add(bytes)
    while (this.#waitingBytes > WAITING_BYTES_MAX && !this.#gone.signal.aborted) await this.#changed.promise
  }

  /** Resolves when the last line arrived, or nobody waits for it. */
  async end(line: SafeLine): Promise<void> {
    this.#isEnding = true
    this.#add(Buffer.from(`${JSON.stringify(line)}\n`))
    await this.#sending
  }

  #add(bytes: Buffer): void {
    this.#lines.push(bytes)
    this.#bytes += bytes.length
    this.#waitingBytes += bytes.length
    this.#tell()
  }

  #tell(): void {
    const { resolve } = this.#changed
    this.#changed = Promise.withResolvers()
    resolve()
  }

  #leave(): void {
    this.#gone.abort()
    this.#tell()
  }

  async #send(): Promise<void> {
    const { clock } = this.#deps
    let sentMs = 0
    for (let part = 0; !this.#gone.signal.aborted; part++) {
      const heard = new AbortController()
      const silence = clock.sleep(ANSWER_SILENCE_MS, heard.signal).then(() => 'silence' as const)
      while (this.#lines.length === 0 && !this.#gone.signal.aborted)
        if ((await Promise.race([this.#changed.promise, silence])) === 'silence') break
      heard.abort()
      // The last line of a short answer comes in the same turn, and needs no part of its own then.
      await setImmediate()
      if (part > 0 && this.#lines.length > 0) await this.#gather(sentMs + PART_GAP_MS - clock.monotonicMs())
      sentMs = clock.monotonicMs()
      if (this.#gone.signal.aborted) return
      const bytes = this.#next()
      const isLast = this.#isEnding && this.#lines.length === 0
      try {
        await this.#deliver(part, bytes)
      } catch {
        return this.#leave() // nobody waits, or nothing arrives: the server ends the answer by itself
      }
      if (isLast) return this.#leave()
    }
  }

  async #gather(ms: number): Promise<void> {
    if (ms <= 0) return
    const full = new AbortController()
    const waited = this.#deps.clock.sleep(ms, full.signal).then(() => 'waited' as const)
    while (this.#waitingBytes < ANSWER_PART_BYTES && !this.#isEnding && !this.#gone.signal.aborted)
      if ((await Promise.race([this.#changed.promise, waited])) === 'waited') break
    full.abort()
  }

  /** Whole lines, at least one if there is any. */
  #next(): Buffer {
    let [count, size] = [0, 0]
    for (const line of this.#lines) {
      if (count > 0 && size + line.length > ANSWER_PART_BYTES) break
      count += 1
      size += line.length
    }
    const bytes = Buffer.concat(this.#lines.splice(0, count))
    this.#waitingBytes -= size
    this.#tell()
    return bytes
  }

  async #deliver(part: number, plain: Buffer): Promise<void> {
    const { session, clock, id } = this.#deps
    const isZstd = plain.length >= COMPRESS_BYTES_MIN
    const doing = 'answer a question'
    const call = {
      ...{ doing, method: 'POST' as const, path: `${ANSWERS}/${id}`, query: { part: String(part) } },
      ...{ bytes: isZstd ? zstd(plain, ZSTD_LEVEL) : plain, isZstd, answerBytesMax: 1_024, timeoutMs: CALL_TIMEOUT_MS },
      signal: this.#gone.signal,
    }
    for (let tries = 0; ; ) {
      try {
        const answer = await session.call(call)
        if (parseAnswer(answer, partAnswerSchema, doing).taken) return
      } catch (error) {
        const mayPass = error instanceof AppError && (error.code === 'server_unreachable' || error.code === 'too_many_requests')
        if (!mayPass || ++tries >= TRIES_MAX) throw error
        await clock.sleep(error.retryAfterMs ?? RETRY_MS, this.#gone.signal)
      }
      if (this.#gone.signal.aborted) throw new AppError('ask_gone')
    }
  }
}
