// Saved queries: SQL over the views of the fleet that people share. A saved query is text; its rows are those that the
// caller may read.
import { z } from 'zod'
import { nameSchema } from '../runtime/ids.ts'

/** Saved queries of a server. */
export const SAVED_QUERIES_MAX = 500
export const SAVED_QUERY_ABOUT_CHARS_MAX = 200
export const SQL_CHARS_MAX = 10_000

export const savedQueryInputSchema = z.strictObject({
  sql: z.string().min(1).max(SQL_CHARS_MAX).describe('One SELECT over the views of the fleet.'),
  about: z
    .string()
    .max(SAVED_QUERY_ABOUT_CHARS_MAX)
    .regex(/^[^\n\r\t]*$/, 'expected one line')
    .default('')
    .describe('One line for people.'),
})
export type SavedQueryInput = z.infer<typeof savedQueryInputSchema>

export const savedQueryViewSchema = z.object({
  name: nameSchema,
  sql: z.string(),
  about: z.string(),
  /** Name of the caller who saved it last. */
  savedBy: z.string(),
  updatedMs: z.number().int(),
})
export type SavedQueryView = z.infer<typeof savedQueryViewSchema>
