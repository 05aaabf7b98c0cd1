// The objects that a removal deletes, as far as the server knows. Shown before anything is ordered; confirmed names are
// checked against it.
import { z } from 'zod'

const count = z.number().int().nonnegative()

/** The same in each of these clusters. */
export const removalViewSchema = z.object({
  project: z.string(),
  service: z.string(),
  /** `first`: of so many, by name. */
  clusters: z.object({ count, first: z.array(z.string()) }),
  /** Deleted without another question, in the order in which they go; `first`: of so many. */
  deletes: z.object({ count, first: z.array(z.string()) }),
  /** Kept until a person confirms that very name (RM1). `contents`: a Namespace or CRD, kept if it holds objects of
   *  others (RM3). */
  holding: z.array(z.object({ name: z.string(), what: z.string(), kind: z.enum(['data', 'contents']).catch('data') })),
  /** Released, or never of the service. */
  stays: z.object({ count, first: z.array(z.object({ name: z.string(), why: z.string() })) }),
  /** Kept, and managed by the service `by` from then on: `project/service`, or `another service` for one that the
   *  caller may not read. Absent means none, or the server does not say. */
  takenOver: z.object({ count, first: z.array(z.object({ name: z.string(), by: z.string() })) }).exactOptional(),
})
export type RemovalView = z.infer<typeof removalViewSchema>
export const removalsViewSchema = z.object({ items: z.array(removalViewSchema) })

/** For a service that the caller may not read. */
export const ANOTHER_SERVICE = 'another service'

const CONFIRM_NAMES_MAX = 1_000
/** Exact names of objects whose deletion is confirmed with what is lost. */
export const confirmDataSchema = z.array(z.string().min(1).max(1_000)).max(CONFIRM_NAMES_MAX).default([])
