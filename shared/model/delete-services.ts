// Deleting many services of a project by one request: what it takes, and what it answers. Each service is deleted as by
// a request of its own; none waits for another.
import { z } from 'zod'
import { nameSchema } from '../runtime/ids.ts'
import { confirmDataSchema, removalViewSchema } from './removal-views.ts'
import { deleteAnswerSchema } from './views.ts'

const SERVICES_MAX = 1_000

export const deleteServicesSchema = z.strictObject({
  names: z.array(nameSchema).min(1).max(SERVICES_MAX),
  /** Tells what would be deleted, and deletes nothing. */
  dryRun: z.boolean().default(false),
  confirmData: confirmDataSchema,
})

export const deleteServicesAnswerSchema = z.object({
  dryRun: z.boolean(),
  /** Set in a dry run, and where names of data are confirmed. */
  removals: z.array(removalViewSchema),
  /** In the order of the names; of a dry run none. */
  results: z.array(z.object({ name: z.string(), ...deleteAnswerSchema.shape })),
})
export type DeleteServicesAnswer = z.infer<typeof deleteServicesAnswerSchema>
