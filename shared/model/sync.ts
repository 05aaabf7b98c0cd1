// A manual sync (`sync.mode: manual`) in the admin API: the changes that a confirmation would make in each cluster, and
// the confirmation itself. Names and numbers, never values.
import { z } from 'zod'
import { nameSchema } from '../runtime/ids.ts'
import { livenessSchema } from './views.ts'

const count = z.number().int().nonnegative()

/** The limit of the names shown in each list. */
export const SYNC_NAMES_MAX = 200

/** Sorted; `count` is the whole number when there are more than are named. */
export const namesSchema = z.object({ count, names: z.array(z.string()) })
export type SyncNames = z.infer<typeof namesSchema>

/** The changes when a cluster goes from one revision to another; clusters share them. */
export const syncChangeSchema = z.object({
  digest: z.string(),
  commit: z.string(),
  /** The digest that was last allowed there, or else applied. Null if there is none, or it is not known. */
  fromDigest: z.string().nullable(),
  fromCommit: z.string().nullable(),
  /** False: the objects of one of the two are not kept any more, so there is nothing to compare. */
  known: z.boolean(),
  create: namesSchema,
  change: namesSchema,
  prune: namesSchema,
  same: count,
})
export type SyncChange = z.infer<typeof syncChangeSchema>

export const syncClusterSchema = z.object({
  cluster: z.string(),
  liveness: livenessSchema,
  /** False: what it shall have was allowed. */
  waits: z.boolean(),
  digest: z.string(),
  commit: z.string(),
  /** Index in `changes`; null when nothing waits. */
  change: count.nullable(),
})
export type SyncCluster = z.infer<typeof syncClusterSchema>

export const syncPlanViewSchema = z.object({
  project: z.string(),
  service: z.string(),
  mode: z.enum(['auto', 'manual']).catch('manual'),
  /** `sync.prune` of the service: false keeps what `prune` names. */
  prunes: z.boolean(),
  clusters: z.array(syncClusterSchema),
  changes: z.array(syncChangeSchema),
})
export type SyncPlanView = z.infer<typeof syncPlanViewSchema>

/** `clusters` left out: all that wait for this digest. */
export const syncRequestSchema = z.strictObject({ digest: z.string().min(1).max(64), clusters: z.array(nameSchema).min(1).optional() })
export type SyncRequest = z.infer<typeof syncRequestSchema>

/** `clusters`: whose rows say now that this may be applied; `already`: how many did before. */
export const syncAnswerSchema = z.object({ digest: z.string(), commit: z.string(), clusters: z.array(z.string()), already: count })
export type SyncAnswer = z.infer<typeof syncAnswerSchema>
