// A body that is larger than a route takes is refused before anything parses it, also when its length is not announced;
// the rest of it is left unread.
import { AppError } from '../../shared/runtime/error.ts'

export const tooLarge = (bytesMax: number): AppError => new AppError('too_large', { detail: `at most ${bytesMax} bytes` })

/** AR2: what is held of bodies that still come in, of all requests together. */
export interface BodyBudget {
  /** False: there is no room for them, and nothing was taken. */
  take(bytes: number): boolean
  give(bytes: number): void
}

export function createBodyBudget(bytesMax: number): BodyBudget {
  let held = 0
  return {
    take(bytes) {
      if (held + bytes > bytesMax) return false
      held += bytes
      return true
    },
    give(bytes) {
      held -= bytes
    },
  }
}

/** AR2: shares of one budget. `ofOneBytesMax`: the limit of each sharer. */
export function createBodyShares(bytesMax: number, ofOneBytesMax: number): (who: string) => BodyBudget {
  const all = createBodyBudget(bytesMax)
  const held = new Map<string, number>()
  const change = (who: string, bytes: number): void => {
    const left = (held.get(who) ?? 0) + bytes
    if (left > 0) held.set(who, left)
    else held.delete(who)
  }
  return (who) => ({
    take(bytes) {
      if ((held.get(who) ?? 0) + bytes > ofOneBytesMax || !all.take(bytes)) return false
      change(who, bytes)
      return true
    },
    give(bytes) {
      all.give(bytes)
      change(who, -bytes)
    },
  })
}

/** The time until there is room is unknown; slow bodies are ended by then. */
const RETRY_AFTER_MS = 5_000

export interface BodyReading {
  budget?: BodyBudget
  /** Taken from the budget before the first byte came. */
  overheadBytes?: number
  /** Stops reading; what came is thrown away. */
  signal?: AbortSignal
}

/**
 * Memory outside of the heap is invisible to the collector: dozens of large bodies a second would wait for it by the
 * hundred megabytes. No other code may hold `bytes` any more.
 */
export function giveBack(bytes: Uint8Array): void {
  const { buffer } = bytes
  // Small ones may lie in a pool with others.
  if (buffer instanceof ArrayBuffer && !buffer.detached && buffer.byteLength === bytes.byteLength) buffer.transfer(0)
}

/** An announced body up to this size is taken from the budget as a whole and read in one piece, which costs a third of
 *  the processor time of a stream. Bun may hold it after the server gave up: no more than a connection costs anyway. */
const ONE_PIECE_BYTES_MAX = 4 * 1_024

/** As it came, still compressed if it is. */
export async function readBody(request: Request, bytesMax: number, reading: BodyReading = {}): Promise<Uint8Array<ArrayBuffer>> {
  const announced = Number(request.headers.get('content-length') ?? 0)
  if (announced > bytesMax) {
    await request.body?.cancel()
    throw tooLarge(bytesMax)
  }
  return announced > 0 && announced <= ONE_PIECE_BYTES_MAX
    ? readInOnePiece(request, bytesMax, announced, reading)
    : readStream(request, bytesMax, reading)
}

async function readInOnePiece(
  request: Request,
  bytesMax: number,
  announced: number,
  { budget, overheadBytes = 0, signal }: BodyReading,
): Promise<Uint8Array<ArrayBuffer>> {
  const held = overheadBytes + announced
  if (budget?.take(held) === false) {
    await request.body?.cancel()
    throw tooManyBodies()
  }
  const stopped = Promise.withResolvers<never>()
  const stop = () => stopped.reject(notComplete())
  signal?.addEventListener('abort', stop, { once: true })
  try {
    if (signal?.aborted) throw notComplete()
    const whole = request.bytes().catch(() => {
      throw endedEarly()
    })
    const bytes = await (signal === undefined ? whole : Promise.race([whole, stopped.promise]))
    if (bytes.byteLength > bytesMax) throw tooLarge(bytesMax)
    return bytes
  } finally {
    signal?.removeEventListener('abort', stop)
    budget?.give(held)
  }
}

const endedEarly = (): AppError => new AppError('bad_request', { detail: 'the body ended early' })
const notComplete = (): AppError => new AppError('bad_request', { detail: 'the body was not read completely' })

async function readStream(
  request: Request,
  bytesMax: number,
  { budget, overheadBytes = 0, signal }: BodyReading,
): Promise<Uint8Array<ArrayBuffer>> {
  if (budget?.take(overheadBytes) === false) {
    await request.body?.cancel()
    throw tooManyBodies()
  }
  const chunks: Uint8Array[] = []
  let bytes = 0
  const reader = request.body?.getReader()
  const cancel = () => void reader?.cancel().catch(() => {})
  const refuse = (error: AppError): never => {
    cancel()
    throw error
  }
  signal?.addEventListener('abort', cancel, { once: true })
  try {
    for (;;) {
      const chunk = await reader?.read().catch(() => refuse(endedEarly()))
      if (signal?.aborted) throw notComplete()
      if (chunk?.value === undefined) return Buffer.concat(chunks)
      if (budget?.take(chunk.value.byteLength) === false) {
        refuse(tooManyBodies())
      }
      bytes += chunk.value.byteLength
      if (bytes > bytesMax) refuse(tooLarge(bytesMax))
      chunks.push(chunk.value)
    }
  } finally {
    for (const chunk of chunks) giveBack(chunk)
    signal?.removeEventListener('abort', cancel)
    budget?.give(bytes + overheadBytes)
  }
}

const tooManyBodies = (): AppError =>
  new AppError('unavailable', { doing: 'read a body', detail: 'too many at once', retryAfterMs: RETRY_AFTER_MS })

/**
 * The same request with its body in memory, under a name of four letters or more. Elysia searches the path at a fixed
 * place behind the scheme: under a short name (`http://hub/api/…`) it would use another path than the credential check.
 */
export async function withLimitedBody(
  request: Request,
  bytesMax: number,
  reading: BodyReading,
): Promise<{ request: Request; body: Uint8Array<ArrayBuffer> | null }> {
  const body = request.body === null ? null : await readBody(request, bytesMax, reading)
  if (request.method === 'GET' || request.method === 'HEAD') return { request: rewritten(request, null), body: null }
  const isEmpty = body === null || body.byteLength === 0
  if (!isEmpty && isTooDeep(body)) throw new AppError('bad_request', { detail: `the body is nested deeper than ${JSON_DEPTH_MAX} levels` })
  if (!isEmpty && !JSON_TYPE.test(request.headers.get('content-type') ?? '')) throw new AppError('unsupported_media')
  return { request: rewritten(request, isEmpty ? NOTHING : body), body }
}

/** Schemas and comparisons go through a document by recursion. */
export const JSON_DEPTH_MAX = 100
const [QUOTE, BACKSLASH] = [0x22, 0x5c]
const [OPEN_LIST, CLOSE_LIST, OPEN_MAP, CLOSE_MAP] = [0x5b, 0x5d, 0x7b, 0x7d]

/** Whether lists and mappings of a JSON text are nested deeper than JSON_DEPTH_MAX. Of a text that is no JSON it says
 *  something, and the parser refuses it. */
export function isTooDeep(text: Uint8Array): boolean {
  let depth = 0
  let isString = false
  for (let at = 0; at < text.length; at++) {
    const byte = text[at]
    if (isString) {
      if (byte === BACKSLASH) at += 1
      else if (byte === QUOTE) isString = false
    } else if (byte === QUOTE) isString = true
    else if (byte === OPEN_LIST || byte === OPEN_MAP) {
      depth += 1
      if (depth > JSON_DEPTH_MAX) return true
    } else if (byte === CLOSE_LIST || byte === CLOSE_MAP) depth -= 1
  }
  return false
}

/** A form of another site cannot send it, and no parser but the one for JSON sees a body. */
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i
/** In place of no body: the schema of the route says what is missing. */
const NOTHING = '{}'

/** The same request with its body left unread. */
export const withoutBody = (request: Request): Request => rewritten(request, null)

function rewritten(request: Request, body: Uint8Array<ArrayBuffer> | string | null): Request {
  const { pathname, search } = new URL(request.url)
  const { method, signal } = request
  const url = `http://localhost${pathname}${search}`
  if (body === null) return new Request(url, { method, headers: request.headers, signal })
  const headers = new Headers(request.headers)
  headers.set('content-type', 'application/json')
  return new Request(url, { method, headers, signal, body })
}
