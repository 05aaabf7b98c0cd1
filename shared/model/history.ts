// The past: the revisions of a service, and the changes of its words in a cluster. Times are ms since the epoch, by the
// server's clock.
import { z } from 'zod'
import { HEALTH_WORDS } from '../kube/health-object.ts'
import { writtenBy } from './commits.ts'
import { SYNC_WORDS } from './status.ts'

const ms = z.number().int()

export const revisionViewSchema = z.object({
  /** The number within its service, from 1. */
  number: ms,
  /** That it was rendered from first. */
  commit: z.string().nullable(),
  ...writtenBy,
  digest: z.string(),
  /** The generation of the service's spec. */
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

export const CAUSE_KINDS = [
  ...(['commit', 'drift', 'person', 'hook', 'gate', 'removal', 'relabel', 'apply', 'cluster', 'workload'] as const),
] as const
export const historyCauseSchema = z.object({
  /** `commit`: another revision was applied. `workload`: the objects themselves changed their state. */
  kind: z.enum(CAUSE_KINDS).catch('workload'),
  text: z.string(),
  /** Person or field manager. Null means not known, or none. */
  by: z.string().nullable(),
  /** Time of the event that says so, by the clock of its sender. Null means that no event says so. */
  atMs: ms.nullable(),
  /** `Deployment shop/web`. Null means no single object. */
  object: z.string().nullable(),
})
export type HistoryCause = z.infer<typeof historyCauseSchema>

export const historyViewSchema = z.object({
  atMs: ms,
  sync: z.enum(SYNC_WORDS).catch('Unknown'),
  health: z.enum(HEALTH_WORDS).catch('Unknown'),
  reason: z.string(),
  /** That was applied, or received if none was. */
  commit: z.string().nullable(),
  ...writtenBy,
  /** Null if it is not known. A server before this field sends none. */
  cause: historyCauseSchema.nullable().default(null),
})
export type HistoryView = z.infer<typeof historyViewSchema>

/** The timeline of a cluster: changes of its services, and events of the cluster itself, which have no service. */
export const timelineViewSchema = historyViewSchema.extend({
  project: z.string().nullable(),
  service: z.string().nullable(),
  sync: historyViewSchema.shape.sync.nullable(),
  health: historyViewSchema.shape.health.nullable(),
})
export type TimelineView = z.infer<typeof timelineViewSchema>
