// How files become objects: what a Service says to its renderer, to those that come after it, and for some of its clusters.
import { z } from 'zod'
import { nameSchema } from './ids.ts'
import { labelSelectorSchema, labelsSchema } from './labels.ts'
import { treePathSchema } from './sources.ts'

export const RENDERERS = ['raw', 'helm', 'kustomize', 'typescript', 'exec'] as const
export type RendererName = (typeof RENDERERS)[number]

/** JSON values under names that templates can write: `config.color`. */
export const configDataSchema = z.record(
  z.string().regex(/^[A-Za-z_][-A-Za-z0-9_]{0,62}$/, 'expected a name of letters, digits, _ and -'),
  z.json(),
)
export type ConfigData = z.infer<typeof configDataSchema>
const helmValuesSchema = z.record(z.string(), z.json())
export type HelmValues = z.infer<typeof helmValuesSchema>

/** Files of the service's tree; `$NAME/path` is a file of the source of that name. What stands after that is a template: `envs/{{ cluster.name }}.yaml?`. */
const valuesFilesSchema = z.array(z.string().min(1).max(1_024)).max(50)

const helmOptionsSchema = z.strictObject({
  helm: z.enum(['3', '4']).optional().describe('Of helm itself. Default 4.'),
  releaseName: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?$/, 'expected a release name of at most 53 characters')
    .optional()
    .describe('Default: the name of the service.'),
  valuesFiles: valuesFilesSchema.optional().describe('Later ones win. A name that ends with ? may be missing.'),
  valuesFrom: z
    .array(
      z.strictObject({
        name: nameSchema,
        key: z.string().max(63).default('values'),
        at: z.string().max(256).optional(),
        optional: z.boolean().optional(),
      }),
    )
    .max(50)
    .optional()
    .describe('YAML texts of Configs, or single values at a path.'),
  values: helmValuesSchema.optional().describe('Texts in it are templates: {{ cluster.name }}.'),
  skipCrds: z.boolean().optional().describe("CRDs of the chart's crds folder are left out. Default false."),
  skipSchemaValidation: z.boolean().optional().describe("Values are not held against the chart's values.schema.json. Default false."),
})

const kustomizeOptionsSchema = z.strictObject({
  helmCharts: z
    .boolean()
    .optional()
    .describe('helmCharts: of kustomizations is inflated; only charts that are in the tree. Default false: refused.'),
  namePrefix: z.string().max(63).optional(),
  nameSuffix: z.string().max(63).optional(),
  images: z.array(z.string().max(512)).max(100).optional().describe('name=newName:tag, as kustomize edit set image takes them.'),
  components: z.array(treePathSchema).max(50).optional().describe('Added to those of the kustomization.'),
})

const execOptionsSchema = z.strictObject({
  command: nameSchema.describe("A name of the operator's allow-list (skerry server --renderers FILE)."),
  args: z.array(z.string().max(1_024)).max(50).default([]),
  inputs: z
    .array(z.string().max(256))
    .max(50)
    .default([])
    .describe('What it gets of the inputs, as a JSON document on its standard input: cluster.name, cluster.labels, config.'),
})

const patchTargetSchema = z.strictObject({
  group: z.string().max(253).optional(),
  version: z.string().max(63).optional(),
  kind: z.string().max(128).optional().describe('Texts are whole names, or regular expressions that match whole names, as in kustomize.'),
  namespace: z.string().max(253).optional(),
  name: z.string().max(253).optional(),
  labelSelector: z.string().max(1_024).optional().describe("As kubectl's -l."),
  annotationSelector: z.string().max(1_024).optional(),
})
const jsonPatchOpSchema = z.strictObject({
  op: z.enum(['add', 'remove', 'replace', 'move', 'copy', 'test']),
  path: z.string().max(1_024),
  from: z.string().max(1_024).optional(),
  value: z.json().optional(),
})
export const jsonPatchSchema = z.array(jsonPatchOpSchema).max(1_000)
/** A list is a JSON patch (RFC 6902), an object a strategic merge patch, a text one of both as YAML. Without a target a strategic one is of the object that it names. */
export const patchSchema = z.strictObject({
  target: patchTargetSchema.optional(),
  patch: z.union([jsonPatchSchema, z.record(z.string(), z.json()), z.string().max(262_144)]),
})
export type Patch = z.infer<typeof patchSchema>

export const renderSchema = z.strictObject({
  type: z
    .enum(['auto', ...RENDERERS])
    .optional()
    .describe('Default auto: Chart.yaml → helm, a kustomization → kustomize, main.ts → typescript, else raw.'),
  templated: z
    .boolean()
    .optional()
    .describe('Manifests, values files and kustomizations are Liquid templates, whatever they are called. Default: only *.liquid.'),
  helm: helmOptionsSchema.optional(),
  kustomize: kustomizeOptionsSchema.optional(),
  typescript: z.strictObject({ entry: treePathSchema.default('main.ts') }).optional(),
  exec: execOptionsSchema.optional(),
  patches: z.array(patchSchema).max(100).optional().describe('After the renderer, in their order. One that meets no object is an error.'),
  commonLabels: labelsSchema.optional().describe("Of every object's metadata; selectors stay as they are."),
  commonAnnotations: z.record(z.string().max(317), z.string().max(4_096)).optional(),
})
export type RenderSpec = z.infer<typeof renderSchema>

/** What is different in some clusters. */
const overrideShape = {
  config: configDataSchema.optional(),
  helm: z
    .strictObject({
      values: helmValuesSchema.optional(),
      valuesFiles: valuesFilesSchema.optional().describe('Below the values beside them, above all that the service itself says.'),
    })
    .refine(({ values, valuesFiles }) => values !== undefined || valuesFiles !== undefined, 'expected values or valuesFiles')
    .optional(),
  patches: z.array(patchSchema).max(100).optional(),
}
/** Later ones win over earlier ones. */
export const overrideSchema = z.strictObject({ selector: labelSelectorSchema, ...overrideShape })
export type Override = z.infer<typeof overrideSchema>
/** Of a Cluster: for one service, over everything that the service itself says. */
export const clusterOverrideSchema = z.strictObject({ service: nameSchema, project: nameSchema.optional(), ...overrideShape })
export type ClusterOverride = z.infer<typeof clusterOverrideSchema>

/** Variables and secrets of a project. Secrets are written and never shown: reads give `hmac:…`, and writing that back keeps what is there. */
export const CONFIG_DATA_LENGTH_MAX = 1_048_576
export const CONFIG_SECRETS_MAX = 100
export const configSpecSchema = z.strictObject({
  data: configDataSchema
    .default({})
    .refine((data) => JSON.stringify(data).length <= CONFIG_DATA_LENGTH_MAX, `at most ${CONFIG_DATA_LENGTH_MAX} characters as JSON`),
  secrets: z
    .record(
      z.string().regex(/^[A-Za-z_][-A-Za-z0-9_]{0,62}$/, 'expected a name of letters, digits, _ and -'),
      z.string().max(262_144, 'at most 262144 characters'),
    )
    .default({})
    .refine((secrets) => Object.keys(secrets).length <= CONFIG_SECRETS_MAX, `at most ${CONFIG_SECRETS_MAX} secrets`),
})
export type ConfigSpec = z.infer<typeof configSpecSchema>
