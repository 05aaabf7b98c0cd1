// How far the sealing of a fleet is whose rows were written in clear before.
import { z } from 'zod'

export const SEAL_STEPS = ['off', 'rendering', 'rewriting', 'cleaning', 'finished', 'failed'] as const

export const sealViewSchema = z.object({
  /** `off`: rows are written in clear. `finished`: nothing in clear is left on this server. */
  step: z.enum(SEAL_STEPS),
  /** Nothing in clear is left anywhere that the server knows of: on this server, at agents, and in its backups. */
  done: z.boolean().default(false),
  /** Clusters whose agent has not shown since the start of this server that it fetched its rows anew. */
  replicas: z.object({ count: z.number(), first: z.array(z.string()) }).default({ count: 0, first: [] }),
  /** Archives of the schedule that were made before everything was sealed. `newestMs`: the newest of them. */
  backups: z.object({ count: z.number(), newestMs: z.number().nullable() }).default({ count: 0, newestMs: null }),
  /** Id of the key that seals; null while rows are written in clear. */
  key: z.string().nullable(),
  /** `project/service` whose clusters still get Secrets in clear, because it does not render. */
  left: z.array(z.string()),
  /** Earlier keys under which rows may still be sealed. */
  formerKeys: z.array(z.string()).default([]),
  /** Sets of past revisions with clear text, or under an earlier key, that were removed. */
  removed: z.number(),
  /** Shard files that were made anew, so that agents replace their replica. */
  shards: z.number(),
  /** Error of the last attempt. */
  error: z.string().nullable(),
})
export type SealView = z.infer<typeof sealViewSchema>

/** `newKey`: under a new key; the earlier one is destroyed when nothing is sealed under it. */
export const sealRequestSchema = z.object({ newKey: z.boolean().default(false) })
