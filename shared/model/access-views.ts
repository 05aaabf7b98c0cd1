// Answers to questions about rights.
import { z } from 'zod'
import { labelSelectorSchema } from './labels.ts'

const texts = z.array(z.string())
export const rightSourceSchema = z.object({
  role: z.string(),
  /** Null for the role that the token itself has. Project '': a binding of the fleet. */
  binding: z.object({ project: z.string(), name: z.string() }).nullable(),
  /** Null, here and below: not limited. */
  projects: texts.nullable(),
  services: texts.nullable(),
  clusters: labelSelectorSchema.nullable(),
})
export type RightSource = z.infer<typeof rightSourceSchema>

export const canIAnswerSchema = z.object({
  allowed: z.boolean(),
  by: rightSourceSchema.nullable(),
  /** Which role and binding allow it, or what is missing. */
  detail: z.string(),
})
/** `subject`: `user:…`, `group:provider:group` or `token:name`. */
export const whoCanAnswerSchema = z.object({
  items: z.array(rightSourceSchema.extend({ subject: z.string() })),
  hidden: z.number().int(),
})
