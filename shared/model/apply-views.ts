// The answer to an apply: its results, and its effects on clusters and objects.
import { z } from 'zod'
import { removalViewSchema } from './removal-views.ts'
import { violationSchema } from './views.ts'

const placeSchema = z.object({ project: z.string(), service: z.string(), cluster: z.string() })
/** The services that a relabelled cluster, or a service with other targets, loses and gains. */
const moveSchema = z.object({
  /** The kind of the resource: `Cluster` or `Service`. */
  kind: z.string(),
  project: z.string(),
  name: z.string(),
  /** `first`: of so many, by name. `prunes`: how many of them have their objects deleted; those of the others stay. */
  leaves: z.object({ count: z.number(), prunes: z.number(), first: z.array(placeSchema) }),
  comes: z.object({ count: z.number(), first: z.array(placeSchema) }),
  /** Services among the leaving ones that leave no cluster until a person confirms, and the reason. */
  waits: z.array(z.object({ project: z.string(), service: z.string(), why: z.string() })),
  /** Leaving services that are not looked at for `waits`, or not among them. Absent means none. */
  waitsLeft: z.number().exactOptional(),
  /** The deletions where services leave. Absent if nothing leaves, or if the server does not say. */
  removals: z.array(removalViewSchema).exactOptional(),
})
export type MoveView = z.infer<typeof moveSchema>

export const KEPT_CHANGES = ['override_lost', 'override_gained', 'namespace'] as const
export interface KeptChange {
  what: (typeof KEPT_CHANGES)[number]
  /** `overrides[1] (region=eu)`, `from web to shop`. */
  detail: string
}
/** The changes of a service in clusters that keep it, because of the resource `kind`/`name`. */
const changeInPlaceSchema = z.object({
  kind: z.string(),
  name: z.string(),
  project: z.string(),
  service: z.string(),
  what: z.enum(KEPT_CHANGES),
  detail: z.string(),
  clusters: z.object({ count: z.number(), first: z.array(z.string()) }),
})
export type ChangeInPlaceView = z.infer<typeof changeInPlaceSchema>

const namedSchema = z.object({ count: z.number(), first: z.array(z.string()) })
/** `by`: `project/service`, or `another service` for one that the caller may not read. */
const ownedSchema = z.object({ count: z.number(), first: z.array(z.object({ name: z.string(), by: z.string() })) })
const objectEffectsSchema = z.object({
  deleted: namedSchema,
  /** In another namespace. */
  recreated: z.object({ count: z.number(), first: z.array(z.object({ from: z.string(), to: z.string() })) }),
  created: namedSchema,
  changed: namedSchema,
  /** Deleted or recreated objects that hold data or other objects. */
  data: namedSchema,
  /** Lost to the service `by`, which manages them from then on: kept, and never without an owner. */
  takenOver: ownedSchema.exactOptional(),
  /** Objects of the new render that the service `by` manages now: taken over when that service no longer names them. */
  takesOver: ownedSchema.exactOptional(),
  /** Null if the manifest does not say. */
  replicas: z.array(z.object({ name: z.string(), from: z.number().nullable(), to: z.number().nullable() })),
})
export type ObjectEffectsView = z.infer<typeof objectEffectsSchema>
/** Effects of the resource `kind`/`name` on the objects of a service in clusters that keep it. Of a new service: only
 *  objects that it takes over. */
const applyEffectSchema = z.object({
  kind: z.string(),
  name: z.string(),
  project: z.string(),
  service: z.string(),
  clusters: namedSchema,
  objects: objectEffectsSchema.exactOptional(),
  /** It would not render any more. */
  error: z.string().exactOptional(),
})
export type ApplyEffectView = z.infer<typeof applyEffectSchema>

export const applyAnswerSchema = z.object({
  dryRun: z.boolean(),
  /** Effects in a dry run, or of a write with `effects=true`. Absent means no object changes, or the server does not
   *  say. */
  effects: z.array(applyEffectSchema).exactOptional(),
  /** Resources whose effects are not, or not all, among `effects`: they are beyond the limits of a request, or were not
   *  rendered in time. Absent means none. */
  effectsLeft: z.number().exactOptional(),
  /** Absent means that overrides and namespaces stay as they are, or the server does not say. */
  changes: z.array(changeInPlaceSchema).exactOptional(),
  /** Changes of this kind that are not among `changes`. Absent means none. */
  changesLeft: z.number().exactOptional(),
  /** Resources that a Project of this apply refuses; what is applied of them stays. Absent means none. */
  violations: z.array(violationSchema).exactOptional(),
  /** `resource`: `project/web`. Absent means none. */
  warnings: z.array(z.object({ resource: z.string(), message: z.string() })).exactOptional(),
  /** Absent means that nothing leaves and nothing comes. */
  moves: z.array(moveSchema).exactOptional(),
  results: z.array(
    z.object({
      kind: z.string(),
      project: z.string(),
      name: z.string(),
      action: z.enum(['created', 'configured', 'unchanged']),
    }),
  ),
})
export type ApplyAnswer = z.infer<typeof applyAnswerSchema>
