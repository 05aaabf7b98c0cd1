// What was: the revisions of a service, and how its words changed in a cluster. Times are ms since the epoch, by the server's clock.
import { z } from 'zod'
import { writtenBy } from './commits.ts'
import { HEALTH_WORDS, SYNC_WORDS } from './status.ts'

const ms = z.number().int()

export const revisionViewSchema = z.object({
  /** Of its service, from 1. */
  number: ms,
  /** That it was rendered from first. */
  commit: z.string().nullable(),
  ...writtenBy,
  digest: z.string(),
  /** Of the service's spec. */
  generation: ms,
  objectCount: ms,
  renderedMs: ms,
  /** How many shall have it now, in one of its variants. */
  clusters: ms,
  /** In how many ways its clusters get it. */
  variants: ms.default(1),
  /** By repository, where there are several. */
  revisions: z.record(z.string(), z.string()).default({}),
})
export type RevisionView = z.infer<typeof revisionViewSchema>

export const historyViewSchema = z.object({
  atMs: ms,
  sync: z.enum(SYNC_WORDS).catch('Unknown'),
  health: z.enum(HEALTH_WORDS).catch('Unknown'),
  reason: z.string(),
  /** That was applied, or received if none was. */
  commit: z.string().nullable(),
  ...writtenBy,
})
export type HistoryView = z.infer<typeof historyViewSchema>
