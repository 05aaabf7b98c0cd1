// Events that say the same and that nobody has heard yet are one event with a count, as Kubernetes does: a day of flapping behind a dead link costs as much as
// an hour of it. Only what was not handed out yet is counted up: an event that may be on the server stays as it went.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { eventStatusSchema } from '../../shared/model/status.ts'

/** Different events that are remembered; the outbox holds no more. */
const REMEMBERED_MAX = 1_000

export interface EventRepeats {
  /** The document to keep under `key`. `take` removes an earlier event of that key and says whether it was there. */
  count(key: string, doc: unknown, take: (earlierKey: string) => boolean): unknown
  /** What was counted so far may be on its way. */
  forget(): void
}

export function createRepeats(): EventRepeats {
  const waiting = new Map<string, { key: string; count: number }>()
  return {
    forget: () => waiting.clear(),
    count(key, doc, take) {
      const event = eventStatusSchema.safeParse(doc)
      if (!event.success) return doc
      const { type, reason, message, service = '', object = '', count = 1 } = event.data
      const what = canonicalJson([type, reason, message, service, object])
      const earlier = waiting.get(what)
      const before = earlier === undefined ? 0 : earlier.key === key ? earlier.count - count : take(earlier.key) ? earlier.count : 0
      const total = count + Math.max(0, before)
      waiting.delete(what)
      waiting.set(what, { key, count: total })
      const [oldest] = waiting.keys()
      if (waiting.size > REMEMBERED_MAX && oldest !== undefined) waiting.delete(oldest)
      return total === 1 ? doc : { ...event.data, count: total }
    },
  }
}
