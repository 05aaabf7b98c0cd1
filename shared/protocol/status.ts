// POST status: rows of what happened, one last state for each key (PU5). `rev` = incarnation · 2^32 + counter, so that
// a lost disk never reuses a number (PU1). A null document removes the key. Rows are taken or refused one by one (PU3).
import { z } from 'zod'
import { INTEGER_BOUND } from '../crdt/position.ts'
import { STATUS_ROWS_MAX } from './routes.ts'

export const REV_INCARNATION = 2 ** 32
/** Above it, rev would exceed 2^53. */
export const INCARNATION_MAX = 2 ** 21 - 1

export const statusRowSchema = z.object({
  kind: z.string().min(1).max(32),
  key: z.string().min(1).max(1_024),
  rev: z.number().int().positive().max(INTEGER_BOUND),
  doc: z.unknown(),
})
export type StatusRow = z.infer<typeof statusRowSchema>

export const inventoryRangeSchema = z.object({ after: z.string().max(1_100).nullable(), upTo: z.string().max(1_100).nullable() })
export type InventoryRange = z.infer<typeof inventoryRangeSchema>

/** Takes `kind/key`. */
export const inRange = (name: string, { after, upTo }: InventoryRange): boolean =>
  (after === null || name > after) && (upTo === null || name <= upTo)

export const statusRequestSchema = z.object({
  incarnation: z.number().int().positive().max(INCARNATION_MAX),
  rows: z.array(statusRowSchema).max(STATUS_ROWS_MAX),
  /** PU4: `rows` is everything there is, or everything of a range of `kind/key` (in code unit order; `after` exclusive,
   *  `upTo` inclusive, null: open): older rows of this cluster in it that are not among them are removed. Absent means
   *  false. */
  complete: z.union([z.boolean(), inventoryRangeSchema]).optional(),
})
export type StatusRequest = z.infer<typeof statusRequestSchema>

export const REJECT_CODES = ['unknown_kind', 'bad_document', 'too_large', 'bad_rev', 'too_many'] as const
export type RejectCode = (typeof REJECT_CODES)[number]

export const statusAnswerSchema = z.object({
  /** Greatest rev of this cluster that the server knows: the agent acknowledges its rows up to it and never counts
   *  below it. */
  ack: z.number().int().nonnegative(),
  /**
   * The value of `ack` before this push: if it is less than the agent was acknowledged, the server lost some of it
   * since (PU7).
   */
  had: z.number().int().nonnegative().optional(),
  reject: z.array(z.object({ key: z.string(), code: z.string() })),
})
export type StatusAnswer = z.infer<typeof statusAnswerSchema>
