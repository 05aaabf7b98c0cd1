// Progress of two works on secrets: sealing rows that were written in clear before, and the rotation of keys.
import { z } from 'zod'

/** How far the sealing of a fleet is whose rows were written in clear before. */
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

/** How far a rotation of the keys of secrets is. */
export const ROTATION_REASONS = ['rotation', 'upgrade'] as const
export const ROTATION_STATES = ['running', 'finished', 'failed'] as const

export const rotationViewSchema = z.object({
  id: z.string(),
  /** `rotation`: a person asked for it. `upgrade`: an earlier version, or another master key, sealed some of the
   *  secrets. */
  reason: z.enum(ROTATION_REASONS),
  by: z.string(),
  state: z.enum(ROTATION_STATES),
  /** The master key that wraps the data keys. */
  masterKey: z.string(),
  /** Why the master key itself was not replaced. Null means that it was. */
  note: z.string().nullable(),
  startedMs: z.number(),
  finishedMs: z.number().nullable(),
  /** Configs to seal anew. Null means not counted yet. */
  total: z.number().nullable(),
  /** Configs that are sealed anew. */
  configs: z.number(),
  secrets: z.number(),
  /** Secrets that do not open with the keys of this server; they stay as they are. */
  unopened: z.number(),
  error: z.string().nullable(),
})
export type RotationView = z.infer<typeof rotationViewSchema>

export const rotationAnswerSchema = z.object({
  /** The newest one; null means that there was none yet. */
  rotation: rotationViewSchema.nullable(),
  /** The master key that wraps new data keys. */
  masterKey: z.string(),
})
export type RotationAnswer = z.infer<typeof rotationAnswerSchema>
