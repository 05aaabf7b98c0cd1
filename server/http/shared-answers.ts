// Equal reads of callers with equal rights share one answer, as long as nothing was written meanwhile: many dashboards
// show the same lists, and a change makes all of them read at once.
import { createHash } from 'node:crypto'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Grant } from '../fleet/rights.ts'

/** Times in answers, such as the liveness of a cluster, are at most this old. */
const AGE_MS_MAX = 500
const KEPT_MAX = 500
const KEPT_BYTES_MAX = 16 * 1024 * 1024
const ANSWER_BYTES_MAX = 1024 * 1024

const NAME = '[^/]+'
const SERVICE = `/projects/${NAME}/services/${NAME}`
/** Below the prefix of the API. Their answers depend on the rights of the caller and the store, and on nothing else of
 *  the caller. */
const SHARED = new RegExp(
  `^(?:/(?:services|clusters|repositories|placements|objects|counts|chart|events|confirmations|suspensions)|/clusters/${NAME}(?:/services)?|/projects/${NAME}/repositories/${NAME}|${SERVICE}(?:/clusters|/revisions|/history|/dependencies)?)$`,
)

interface Answer {
  headers: [string, string][]
  body: ArrayBuffer
}

interface Entry {
  version: number
  untilMs: number
  /** Null means that the answer cannot be shared. */
  answer: Promise<Answer | null>
  bytes: number
}

export interface SharedAnswers {
  /** `grants` are those of the caller. `perform` answers the request itself. */
  run(request: Request, path: string, grants: () => readonly Grant[], perform: () => Promise<Response>): Promise<Response>
}

/** `version` is another one before and after each write. */
export function createSharedAnswers(version: () => number, clock: Pick<Clock, 'monotonicMs'>): SharedAnswers {
  /** The oldest first. */
  const kept = new Map<string, Entry>()
  let bytes = 0
  const forget = (key: string, entry: Entry) => {
    if (kept.get(key) !== entry) return
    kept.delete(key)
    bytes -= entry.bytes
  }
  const makeRoom = (nowMs: number) => {
    for (const [key, entry] of kept) {
      if (entry.untilMs > nowMs && entry.version === version() && kept.size <= KEPT_MAX && bytes <= KEPT_BYTES_MAX) return
      forget(key, entry)
    }
  }
  return {
    async run(request, path, grants, perform) {
      if (request.method !== 'GET' || !SHARED.test(path) || isSpecial(request.headers)) return perform()
      const nowMs = clock.monotonicMs()
      const key = `${keyOfGrants(grants())} ${request.headers.get('accept-encoding') ?? ''} ${path}${new URL(request.url).search}`
      const held = kept.get(key)
      if (held !== undefined && held.version === version() && held.untilMs > nowMs) {
        const answer = await held.answer
        // The caller whose request was shared went away, or its request failed.
        return answer === null ? perform() : new Response(answer.body, { headers: answer.headers })
      }
      if (held !== undefined) forget(key, held)
      const { promise, resolve } = Promise.withResolvers<Answer | null>()
      const entry: Entry = { version: version(), untilMs: nowMs + AGE_MS_MAX, answer: promise, bytes: 0 }
      kept.set(key, entry)
      makeRoom(nowMs)
      try {
        const response = await perform()
        if (response.status !== 200) {
          forget(key, entry)
          resolve(null)
          return response
        }
        const answer: Answer = { headers: [...response.headers], body: await response.arrayBuffer() }
        if (answer.body.byteLength > ANSWER_BYTES_MAX) forget(key, entry)
        else if (kept.get(key) === entry) {
          entry.bytes = answer.body.byteLength
          bytes += entry.bytes
        }
        resolve(answer)
        return new Response(answer.body, { headers: answer.headers })
      } catch (error) {
        forget(key, entry)
        resolve(null)
        throw error
      }
    },
  }
}

/** True if the answer depends on headers, so that it cannot be shared. */
const isSpecial = (headers: Headers): boolean =>
  (headers.get('accept') ?? '').includes('event-stream') || headers.has('if-none-match') || headers.has('if-match') || headers.has('range')

const keys = new WeakMap<readonly Grant[], string>()
/** Without their subjects: only the granted rights and their places. */
function keyOfGrants(grants: readonly Grant[]): string {
  const known = keys.get(grants)
  if (known !== undefined) return known
  const text = JSON.stringify(grants.map(({ rule, projects, services, clusters }) => [rule, projects, services, clusters]))
  const key = createHash('sha256').update(text).digest('base64')
  keys.set(grants, key)
  return key
}
