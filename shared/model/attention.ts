// Things that need a person, over the whole fleet: confirmations, failed renders, unreadable repositories, fights about
// fields, revisions that wait for a sync, and a restore that waits for its confirmation.
import { z } from 'zod'
import { problemSchema } from '../runtime/error.ts'
import { confirmationViewSchema } from './views.ts'

const count = z.number().int().nonnegative()
const ms = z.number().int()

/** In the order in which they are listed. */
export const ATTENTION_KINDS = ['restore', 'confirmation', 'render', 'repository', 'contested', 'sync'] as const
export type AttentionKind = (typeof ATTENTION_KINDS)[number]

const base = { id: z.string(), sinceMs: ms.nullable() }
const ofService = { ...base, project: z.string(), service: z.string() }
/** `first`: of so many, by name. */
const clusters = z.object({ count, first: z.array(z.string()) })

export const attentionSchema = z.discriminatedUnion('kind', [
  /** The server was restored from a backup, and sends nothing until a person confirms. */
  z.object({ ...base, kind: z.literal('restore') }),
  z.object({ ...base, kind: z.literal('confirmation'), confirmation: confirmationViewSchema }),
  /** A service cannot be rendered, for all clusters or for some. */
  z.object({ ...ofService, kind: z.literal('render'), message: z.string(), problems: z.array(problemSchema) }),
  z.object({ ...base, kind: z.literal('repository'), project: z.string(), repository: z.string(), message: z.string() }),
  /** Another field manager changes objects again after each correction. */
  z.object({ ...ofService, kind: z.literal('contested'), objects: count, clusters }),
  /** `sync.mode: manual`: a revision arrived and waits for a person. */
  z.object({ ...ofService, kind: z.literal('sync'), clusters }),
])
export type Attention = z.infer<typeof attentionSchema>

export const attentionViewSchema = z.object({
  items: z.array(attentionSchema),
  /** By kind, of all pages. */
  counts: z.record(z.enum(ATTENTION_KINDS), count),
  total: count,
  continue: z.string().nullable(),
})
export type AttentionView = z.infer<typeof attentionViewSchema>
