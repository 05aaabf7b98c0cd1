// The dependencies and dependents of a service in the admin API.
import { z } from 'zod'
import { namesSchema } from './sync.ts'

const count = z.number().int().nonnegative()

/** A service that another one depends on, in the clusters of that one. */
export const dependencyViewSchema = z.object({
  project: z.string(),
  service: z.string(),
  /** False: there is no such service (yet). */
  exists: z.boolean(),
  /** In how many of those clusters it is Healthy at what it shall be there. */
  ready: count,
  unready: namesSchema,
  /** It is not placed there, or leaves. */
  absent: namesSchema,
})
export type DependencyView = z.infer<typeof dependencyViewSchema>

export const dependenciesViewSchema = z.object({
  dependsOn: z.array(dependencyViewSchema),
  neededBy: z.array(z.object({ project: z.string(), service: z.string() })),
})
export type DependenciesView = z.infer<typeof dependenciesViewSchema>
