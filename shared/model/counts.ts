// Counts of a fleet as the admin API answers them: by what, of what, and in which parts.
import { z } from 'zod'

export const COUNT_BY = ['state', 'sync', 'health', 'service', 'label', 'image', 'drift-age', 'version', 'liveness'] as const
export type CountBy = (typeof COUNT_BY)[number]
/** `placements`: services in clusters. */
export const COUNT_OF = ['placements', 'objects', 'clusters'] as const
export type CountOf = (typeof COUNT_OF)[number]
/** Resources that each key can count; the first one is the default. */
export const COUNTED: Readonly<Record<CountBy, readonly [CountOf, ...CountOf[]]>> = {
  state: ['placements', 'objects'],
  sync: ['placements', 'objects'],
  health: ['placements', 'objects'],
  service: ['placements', 'objects'],
  label: ['placements'],
  image: ['objects'],
  'drift-age': ['objects'],
  version: ['clusters'],
  liveness: ['clusters'],
}
export const COUNT_SORTS = ['key', 'count'] as const
export type CountSort = (typeof COUNT_SORTS)[number]

const count = z.number().int()
const countRowSchema = z.object({
  /** `Synced/Healthy`, `project/service`, `env=prod`, an image, `<1h`, `agent/0.5.0`, `Online`. */
  key: z.string(),
  count,
  /** By sync and health together, of drift-age by what the agents did about it; empty where it is not divided further.
   */
  parts: z.record(z.string(), count),
  /** For a label: the clusters that have it. */
  clusters: count.optional(),
})
export type CountRow = z.infer<typeof countRowSchema>
export const countsViewSchema = z.object({
  by: z.enum(COUNT_BY),
  of: z.enum(COUNT_OF),
  items: z.array(countRowSchema),
  /** Sorted by count: what the keys that are not shown have together. */
  rest: z.object({ keys: count, count }).nullable(),
  continue: z.string().nullable(),
})
export type CountsView = z.infer<typeof countsViewSchema>
