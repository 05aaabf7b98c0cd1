// An answer of a Git server as a stream: it may take its time as long as bytes arrive, has a bound, and large ones wait
// for their turn once they are complete. Errors name the host and never the answer (IN14).
import { isDiskFull } from '../../../shared/adapters/sqlite.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { unresolvedText } from '../address/resolve.ts'
import { GitTooLarge, USE_PROGRAM } from './limits.ts'
import { Spool } from './spool.ts'

const STALL_MS = 60_000
const ANSWER_MS = 10 * 60_000
const LARGE_BYTES = 8 * 1024 * 1024
const TURN_MS = 10 * 60_000
const MIB = 1024 * 1024

/** Counts the time that is spent waiting for the other side, and no other. */
export class Patience {
  readonly signal: AbortSignal
  private readonly clock: Clock
  private readonly stallMs: number
  private readonly over = new AbortController()
  private spentMs = 0
  private bytes = 0

  constructor(clock: Clock, ended: AbortSignal, stallMs = STALL_MS) {
    this.clock = clock
    this.stallMs = stallMs
    this.signal = AbortSignal.any([ended, this.over.signal])
  }

  async wait<T>(act: () => Promise<T>): Promise<T> {
    const done = new AbortController()
    const startMs = this.clock.nowMs()
    void this.clock.sleep(Math.min(this.stallMs, ANSWER_MS - this.spentMs), done.signal).then(() => {
      if (!done.signal.aborted) this.over.abort()
    })
    try {
      return await act()
    } finally {
      done.abort()
      this.spentMs += this.clock.nowMs() - startMs
    }
  }

  came(bytes: number): void {
    this.bytes += bytes
  }

  /** Null if it is not over. */
  whyOver(): { why: string; remedy?: string } | null {
    if (!this.over.signal.aborted) return null
    const seconds = this.stallMs / 1000
    if (this.bytes === 0) return { why: `did not answer within ${seconds} s` }
    const came = `${(this.bytes / MIB).toFixed(1)} MiB came`
    const isStalled = this.spentMs < ANSWER_MS
    const why = isStalled
      ? `stopped sending for ${seconds} s; ${came}`
      : `did not complete its answer within ${ANSWER_MS / 60_000} minutes; ${came}`
    return { why, remedy: `Check the network between the two; or fetch less: ${USE_PROGRAM}` }
  }
}

/** The turn of the last one: memory belongs to the process, not to one fetch. */
let lastTurn: Promise<void> = Promise.resolve()

/** Processes one large answer at a time, over all repositories. No fetch holds the turn while it waits for a server. */
export class LargeTurn {
  private turn: Promise<void> | null = null
  private leave: () => void = () => {}

  take(): Promise<void> {
    if (this.turn !== null) return this.turn
    this.turn = lastTurn
    const left = new Promise<void>((resolve) => {
      this.leave = resolve
    })
    lastTurn = lastTurn.then(() => left)
    return this.turn
  }

  /** False: it did not come in that time. */
  async takeWithin(clock: Clock, ms: number): Promise<boolean> {
    const done = new AbortController()
    try {
      return await Promise.race([this.take().then(() => true), clock.sleep(ms, done.signal).then(() => false)])
    } finally {
      done.abort()
    }
  }

  /** The next `take` is for another one. */
  end(): void {
    this.leave()
    this.turn = null
  }
}

interface PartsOptions {
  host: string
  patience: Patience
  turn: LargeTurn
  clock: Clock
  bytesMax: number
  /** The file that holds bytes after the first 8 MiB. */
  beside: string
}

/** Gives the rest of a large answer when all of it has arrived and its turn has come. */
export async function* partsOf(
  answer: Response,
  { host, patience, turn, clock, bytesMax, beside }: PartsOptions,
): AsyncIterableIterator<Uint8Array> {
  if (answer.body === null) return
  const reader = answer.body.getReader()
  const read = () => patience.wait(() => reader.read()).catch((error: unknown) => Promise.reject(unreachable(host, patience, error)))
  let [size, spool]: [number, Spool | null] = [0, null]
  try {
    for (;;) {
      const { done, value } = await read()
      if (done) break
      patience.came(value.byteLength)
      size += value.byteLength
      if (size > bytesMax) throw new GitTooLarge(`the Git server ${host} sends more than ${bytesMax / MIB} MiB in one answer`)
      if (size > LARGE_BYTES && spool === null) spool = await Spool.beside(beside)
      if (spool === null) yield value
      else await spool.add(value)
    }
    if (spool === null) return
    if (!(await turn.takeWithin(clock, TURN_MS))) throw busy(host)
    yield* spool.all()
  } catch (error) {
    throw isDiskFull(error) ? new AppError('disk_full', { doing: `fetch: ${host}` }, { cause: error }) : error
  } finally {
    await spool?.close()
    await reader.cancel().catch(() => {})
  }
}

const busy = (host: string): AppError =>
  new AppError('git_unreachable', {
    detail: `a large answer of the Git server ${host} waited ${TURN_MS / 60_000} minutes for other repositories`,
    remedy: `The server retries. To use less memory of the server: ${USE_PROGRAM}`,
  })

const CERTIFICATE = /CERT|ISSUER|SELF_SIGNED|VERIFY|ALTNAME/

/** An AppError says more, and is passed on. */
export function unreachable(host: string, patience: Patience, error: unknown): AppError {
  if (error instanceof AppError) return error
  const code = error instanceof Error && 'code' in error ? String(error.code) : ''
  const { why, remedy } = patience.whyOver() ?? { why: whyNot(code) }
  return new AppError(
    'git_unreachable',
    { detail: `the Git server ${host} ${why}`, ...(remedy === undefined ? {} : { remedy }) },
    { cause: error },
  )
}

function whyNot(code: string): string {
  if (CERTIFICATE.test(code))
    return `shows a certificate that is not trusted (${code}); set caCert of the Config to its certificate authority`
  if (code === 'ECONNREFUSED' || code === 'ConnectionRefused') return 'cannot be reached: connection refused'
  return unresolvedText(code) ?? 'cannot be reached'
}

export async function collect(parts: AsyncIterable<Uint8Array>): Promise<Uint8Array<ArrayBuffer>> {
  const chunks: Uint8Array[] = []
  for await (const part of parts) chunks.push(part)
  return Buffer.concat(chunks)
}

export async function* once(bytes: Uint8Array): AsyncIterableIterator<Uint8Array> {
  yield bytes
}
