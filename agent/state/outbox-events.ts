// The events of the outbox: repeated ones are counted, and together they stay within bounds.
import { eventStatusSchema } from '../../shared/model/status.ts'
import type { Statements } from './state-statements.ts'

/** Unacknowledged events kept for a server that cannot be reached, and their documents together; the oldest go first.
 *  States are one for each key. */
export const OUTBOX_EVENTS_MAX = 1_000
export const OUTBOX_EVENT_BYTES_MAX = 512 * 1_024

/** Different events that are remembered; the outbox holds no more. */
const REMEMBERED_MAX = 1_000

/**
 * Equal events that were not sent yet are one event with a count, as in Kubernetes: a day of flapping without a
 * connection costs as much as an hour of it. Only events that were not handed out yet are counted up, because the
 * server may already have the others.
 */
export interface EventRepeats {
  /** The document to store under `key`. `take` removes an earlier event of that key and says whether it existed. */
  count(key: string, doc: unknown, take: (earlierKey: string) => boolean): unknown
  /** Ends counting: events counted so far may already be on their way to the server. */
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
      const what = JSON.stringify([type, reason, message, service, object])
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

/**
 * Deletes the oldest events when there are too many. Only then are all events read: reading them after each report
 * would cost a burst of reports as much as all its other writes.
 */
export interface EventBounds {
  /** An event entered the outbox; `text`: its document. */
  added(text: string): void
  /** At the end of the transaction in which they were added. */
  enforce(eventsMax: number): void
  /** The transaction failed: its counts are invalid. */
  recount(): void
}

export function createEventBounds({ events, boundEvents, boundEventBytes }: Statements): EventBounds {
  /** At most: events that were acknowledged since the last count are still in it. */
  let held = { n: 0, bytes: 0 }
  let isCounted = false
  const count = () => {
    held = events.get() ?? { n: 0, bytes: 0 }
    isCounted = true
  }
  return {
    added: (text) => {
      held.n += 1
      held.bytes += Buffer.byteLength(text)
    },
    enforce: (eventsMax) => {
      const isTooMuch = () => held.n > eventsMax || held.bytes > OUTBOX_EVENT_BYTES_MAX
      if (isCounted && !isTooMuch()) return
      count()
      if (!isTooMuch()) return
      boundEvents.run(eventsMax)
      boundEventBytes.run(OUTBOX_EVENT_BYTES_MAX)
      count()
    },
    recount: () => {
      isCounted = false
    },
  }
}
