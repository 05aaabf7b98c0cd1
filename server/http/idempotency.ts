// Answers to writes that had an Idempotency-Key. A client that got no answer sends the same request again and gets the
// first answer; nothing is done twice. The store keeps that a request began, and its answer, so that a restart forgets
// neither. An answer with a new token stays in memory: a token must not be written anywhere.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Store } from '../store/store.ts'

export const KEPT_MAX = 5_000
export const KEPT_MS = 24 * 60 * 60_000
/** Limit for all stored bodies together. */
const KEPT_BYTES_MAX = 32 * 1_024 * 1_024

interface Kept {
  digest: string
  /** Null if it ended without an answer to repeat. */
  answer: Promise<KeptAnswer | null>
  untilMs: number
  bytes: number
}
interface KeptAnswer {
  status: number
  headers: [string, string][]
  body: ArrayBuffer
}

export interface Idempotency {
  /** HT6. `perform` runs at most once for each key of a caller as long as its answer is kept. */
  run(caller: string, request: Request, body: Uint8Array | null, perform: () => Promise<Response>): Promise<Response>
}

const WRITES = new Set(['POST', 'PUT', 'DELETE', 'PATCH'])
/** These change nothing, so that repeating them does no harm. Whoever may only read takes no room from those who write.
 */
const READS = /\/(?:query|diff)$/
/** Kept answers of one caller, so that one cannot push out those of all others. */
export const KEPT_OF_ONE_MAX = 500
const KEY = /^[\x21-\x7e]{1,255}$/

/** Answers of these routes hold a new credential. */
const SECRET = /\/(?:tokens|join-tokens|token\/exchange|sign-in-links)$/
/** Larger answers are not kept in the store. */
const STORED_BYTES_MAX = 256 * 1_024

const storedSchema = z.object({ status: z.int(), headers: z.array(z.tuple([z.string(), z.string()])), body: z.string() })

type RequestStore = Pick<Store, 'beginRequest' | 'endRequest' | 'forgetRequest'>

export function createIdempotency(
  store: RequestStore,
  clock: Pick<Clock, 'nowMs'>,
  keptMax: number = KEPT_MAX,
  ofOneMax: number = KEPT_OF_ONE_MAX,
): Idempotency {
  /** In the order in which they end. */
  const kept = new Map<string, Kept>()
  let bytes = 0
  const forget = (id: string, entry: Kept) => {
    if (kept.get(id) !== entry) return
    kept.delete(id)
    bytes -= entry.bytes
    entry.bytes = 0
  }
  const makeRoom = (nowMs: number) => {
    for (const [id, entry] of kept) {
      if (entry.untilMs > nowMs && kept.size <= keptMax && bytes <= KEPT_BYTES_MAX) return
      forget(id, entry)
    }
  }
  /** The oldest of one caller go first. */
  const makeRoomOf = (caller: string) => {
    const own = [...kept].filter(([id]) => id.startsWith(`${caller} `))
    for (const [id, entry] of own.slice(0, Math.max(0, own.length - ofOneMax))) forget(id, entry)
  }
  const idempotency: Idempotency = {
    async run(caller, request, body, perform) {
      const key = request.headers.get('idempotency-key')
      if (key === null || !WRITES.has(request.method) || READS.test(new URL(request.url).pathname)) return perform()
      if (!KEY.test(key))
        throw new AppError('bad_request', { detail: 'Idempotency-Key takes 1 to 255 printable ASCII characters without blanks' })
      const id = `${caller} ${key}`
      const digest = digestOf(request, body)
      const held = kept.get(id)
      if (held !== undefined && held.untilMs > clock.nowMs()) {
        if (held.digest !== digest) throw new AppError('idempotency_key_reused')
        const answer = await held.answer
        // The first request failed. One of those that waited takes its place, and the others wait for that one.
        return answer === null ? idempotency.run(caller, request, body, perform) : repeated(answer)
      }
      if (held !== undefined) forget(id, held)
      const { promise, resolve } = Promise.withResolvers<KeptAnswer | null>()
      const entry: Kept = { digest, answer: promise, untilMs: clock.nowMs() + KEPT_MS, bytes: 0 }
      kept.set(id, entry)
      makeRoom(clock.nowMs())
      makeRoomOf(caller)
      const stored = { id: storedId(id), digest, untilMs: entry.untilMs, nowMs: clock.nowMs() }
      try {
        const before = await store.beginRequest(stored)
        if (before !== null) {
          const answer = answerBefore(before, digest)
          resolve(answer)
          return repeated(answer)
        }
        const response = await perform()
        if (!response.ok || isStream(response)) {
          forget(id, entry)
          await store.forgetRequest(stored.id)
          resolve(null)
          return response
        }
        const answer = { status: response.status, headers: [...response.headers], body: await response.arrayBuffer() }
        if (kept.get(id) === entry) {
          entry.bytes = answer.body.byteLength
          bytes += entry.bytes
          makeRoom(clock.nowMs())
        }
        // The change is made: a store that cannot note its answer now must not turn it into a failure.
        if (!SECRET.test(new URL(request.url).pathname) && answer.body.byteLength <= STORED_BYTES_MAX)
          await store.endRequest(stored.id, storedText(answer)).catch(() => {})
        resolve(answer)
        return new Response(bodyOf(answer), answer)
      } catch (error) {
        forget(id, entry)
        if (!(error instanceof Unrepeatable)) await store.forgetRequest(stored.id).catch(() => {})
        resolve(null)
        throw error instanceof Unrepeatable ? error.told : error
      }
    },
  }
  return idempotency
}

function repeated(answer: KeptAnswer): Response {
  const response = new Response(bodyOf(answer), answer)
  response.headers.set('idempotency-replayed', 'true')
  return response
}

/** The request was performed before, or may have been, and must not be performed now. */
class Unrepeatable extends Error {
  readonly told: AppError
  constructor(told: AppError) {
    super(told.message)
    this.told = told
  }
}

function answerBefore(before: { digest: string; answer: string | null }, digest: string): KeptAnswer {
  if (before.digest !== digest) throw new Unrepeatable(new AppError('idempotency_key_reused'))
  const read = before.answer === null ? null : storedSchema.safeParse(JSON.parse(before.answer)).data
  if (read === null || read === undefined)
    throw new Unrepeatable(
      new AppError('conflict', {
        doing: 'repeat the request',
        detail: 'a request with this Idempotency-Key began before the server was restarted, and its answer is not kept',
        remedy: 'Read what the request would have changed, and use a new key to change it again.',
      }),
    )
  return { status: read.status, headers: read.headers, body: new Uint8Array(Buffer.from(read.body, 'base64')).buffer }
}

const storedText = ({ status, headers, body }: KeptAnswer): string =>
  JSON.stringify({ status, headers, body: Buffer.from(body).toString('base64') })

const storedId = (id: string): string => createHash('sha256').update(id).digest('base64')
const isStream = ({ headers }: Response): boolean => /^(text\/event-stream|application\/x-ndjson)/.test(headers.get('content-type') ?? '')

const NO_CONTENT = 204
const bodyOf = ({ status, body }: KeptAnswer): ArrayBuffer | null => (status === NO_CONTENT ? null : body)

/** The request as the handlers see it: what its headers say about the resource belongs to it. */
function digestOf({ method, url, headers }: Request, body: Uint8Array | null): string {
  const { pathname, search } = new URL(url)
  const about = [method, pathname, search, headers.get('if-match') ?? '', headers.get('if-none-match') ?? '']
  return createHash('sha256')
    .update(about.join('\n'))
    .update('\n\n')
    .update(body ?? '')
    .digest('base64')
}
