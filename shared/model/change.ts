// The feed of changes in the admin API: pages of JSON, and server-sent events. A change names what changed, not how: a
// watcher reads the item again.
import { z } from 'zod'

export const CHANGE_TOPICS = [
  'resource',
  'repository',
  'render',
  'desired',
  'cluster',
  'token',
  'status',
  'event',
  'confirmation',
  'restore',
  'notification',
] as const
export type ChangeTopic = (typeof CHANGE_TOPICS)[number]

export const changeViewSchema = z.object({
  /** Position in the feed; continue strictly after it. */
  id: z.number().int(),
  atMs: z.number().int(),
  /** One of CHANGE_TOPICS, or of a newer server. */
  topic: z.string(),
  /** Id of the cluster. */
  cluster: z.string().nullable(),
  project: z.string().nullable(),
  name: z.string().nullable(),
  /** The changed keys. Null if they are too many to name, or if all changed. */
  keys: z.array(z.string()).nullable(),
})
export type ChangeView = z.infer<typeof changeViewSchema>

/** `next`: pass it as `after`; everything was read when it equals `newest`. */
export const changePageSchema = z.object({ items: z.array(changeViewSchema), next: z.number().int(), newest: z.number().int() })

/** Name in a change of a service that was deleted, for callers who may not know which one it was: list again. */
export const ANY_SERVICE = 'Service/*'

/** Events of the stream that are no changes. `ready` comes first; `reset`: list again what you show, then what follows
 *  `position` comes. */
export const READY_EVENT = 'ready'
export const RESET_EVENT = 'reset'
export const positionSchema = z.object({ position: z.number().int() })

export const EVENT_STREAM = 'text/event-stream'
