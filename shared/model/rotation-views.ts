// How far a rotation of the keys of secrets is.
import { z } from 'zod'

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
