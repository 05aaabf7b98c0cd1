// Answers to writes that had an Idempotency-Key. A client that got no answer sends the same request again and gets the first answer; nothing is done twice.
// They are kept in memory: an answer may hold a new token, which must not be written anywhere.
import { createHash } from 'node:crypto'
import { AppError } from '../../shared/protocol/error.ts'
import type { Clock } from '../../shared/runtime/clock.ts'

export const KEPT_MAX = 5_000
export const KEPT_MS = 24 * 60 * 60_000
/** Limit for all stored bodies together. */
const KEPT_BYTES_MAX = 32 * 1_024 * 1_024

interface Kept {
  digest: string
  /** Null means: it ended without an answer to repeat. */
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
const KEY = /^[\x21-\x7e]{1,255}$/

export function createIdempotency(clock: Pick<Clock, 'nowMs'>, keptMax: number = KEPT_MAX): Idempotency {
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
  const idempotency: Idempotency = {
    async run(caller, request, body, perform) {
      const key = request.headers.get('idempotency-key')
      if (key === null || !WRITES.has(request.method)) return perform()
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
      try {
        const response = await perform()
        if (!response.ok) {
          forget(id, entry)
          resolve(null)
          return response
        }
        const answer = { status: response.status, headers: [...response.headers], body: await response.arrayBuffer() }
        if (kept.get(id) === entry) {
          entry.bytes = answer.body.byteLength
          bytes += entry.bytes
          makeRoom(clock.nowMs())
        }
        resolve(answer)
        return new Response(bodyOf(answer), answer)
      } catch (error) {
        forget(id, entry)
        resolve(null)
        throw error
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
