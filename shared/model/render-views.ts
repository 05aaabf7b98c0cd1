// The render of a service, requested by a person: for one cluster, with the number of variants for all of them. It
// holds no secrets.
import { z } from 'zod'
import { problemSchema } from '../runtime/error.ts'

const count = z.number().int()

export const explainedValueSchema = z.object({
  path: z.string(),
  /** For a secret its mark; null if the caller may not read the Config. */
  value: z.unknown(),
  secret: z.boolean(),
  /**
   * `Config/NAME`, `service`, `overrides[N]`, `cluster`, `cluster overrides[N]` or `site ConfigMap NAMESPACE/NAME`; of
   * a Helm value also `chart values.yaml`, a values file, or `render.helm.values`.
   */
  from: z.string(),
  /** Lower levels that set it, too. */
  over: z.array(z.string()),
  /** A Helm value, of the chart of this source. Absent means a variable of templates. */
  helm: z.string().optional(),
})
export type ExplainedValue = z.infer<typeof explainedValueSchema>

export const renderViewSchema = z.object({
  project: z.string(),
  service: z.string(),
  /** Null for no cluster in particular. */
  cluster: z.string().nullable(),
  /** About the choice of the cluster. Null means that there is nothing to say. */
  note: z.string().nullable(),
  /** The version of the source: its commit, or version and digest. */
  version: z.string().nullable(),
  /** The programs that took part, with versions. */
  tools: z.record(z.string(), z.string()),
  /** Null if it does not render. */
  digest: z.string().nullable(),
  /** As they are sent; data of Secrets, and what came of a Config's secrets, is a mark. */
  objects: z.array(z.record(z.string(), z.unknown())),
  warnings: z.array(problemSchema),
  /** The problem in one sentence. Null if it renders. */
  error: z.string().nullable(),
  problems: z.array(problemSchema),
  /** Effective variables of templates, then Helm values; only if they were asked for. */
  values: z.array(explainedValueSchema).optional(),
})
export type RenderView = z.infer<typeof renderViewSchema>

export const variantsViewSchema = z.object({
  project: z.string(),
  service: z.string(),
  /** Most clusters first. */
  variants: z.array(z.object({ digest: z.string(), objects: count, clusters: z.array(z.string()) })),
  /** By what is wrong. */
  failing: z.array(z.object({ error: z.string(), clusters: z.array(z.string()), problems: z.array(problemSchema) })),
})
export type VariantsView = z.infer<typeof variantsViewSchema>

export const originViewSchema = z.object({
  project: z.string(),
  service: z.string(),
  cluster: z.string(),
  /** `apps/Deployment/shop/web`; the group is empty for the core group. */
  object: z.string(),
  /** The version of the source that was read: its commit, or version and digest. Null if nothing was read. */
  version: z.string().nullable(),
  /** Name of the Repository. */
  repository: z.string().nullable(),
  /** Path in the repository. Null if a program makes the object, or if it is not known. */
  file: z.string().nullable(),
  /** From 1; null where the object is not written in the file itself, such as in a template. */
  line: count.nullable(),
  /** Why there is no file. Null if there is one. */
  note: z.string().nullable(),
})
export type OriginView = z.infer<typeof originViewSchema>
