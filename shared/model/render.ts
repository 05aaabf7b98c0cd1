// How files become objects: what a Service says to its renderer, to those that come after it, and for some of its clusters.
import { z } from 'zod'
import { nameSchema } from './ids.ts'
import { labelSelectorSchema, labelsSchema } from './labels.ts'
import { isMapping, treePathSchema } from './sources.ts'

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
  helm: z.enum(['3', '4']).optional().describe('Major version of helm itself that renders the chart. Default 4.'),
  releaseName: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?$/, 'expected a release name of at most 53 characters')
    .optional()
    .describe('Name of the release, as the chart sees it in .Release.Name. Default: the name of the service.'),
  valuesFiles: valuesFilesSchema
    .optional()
    .describe(
      'Files relative to the folder of the service, or $NAME/path of the source of that name; later ones win. The path may be a template, and one that ends with ? may be missing: envs/{{ cluster.name }}.yaml?.',
    ),
  valuesFrom: z
    .array(
      z.strictObject({
        name: nameSchema.describe('A Config of the same project.'),
        key: z.string().max(63).default('values').describe('Name in the data or the secrets of the Config.'),
        at: z
          .string()
          .max(256)
          .optional()
          .describe(
            'Where the value goes: names with dots between them, such as auth.password; a dot in a name is written \\. (labels.example\\.com/tier). Without it the value is a mapping of values, or YAML text of one.',
          ),
        optional: z.boolean().optional().describe('The Config or the key may be missing. Default false: that is an error.'),
      }),
    )
    .max(50)
    .optional()
    .describe('Values of Configs, over those of files: whole mappings, or a single value at a path; later ones win.'),
  values: helmValuesSchema.optional().describe('Values over those of files and Configs. Texts in it are templates: {{ cluster.name }}.'),
  skipCrds: z.boolean().optional().describe("CRDs of the chart's crds folder are left out. Default false."),
  skipSchemaValidation: z.boolean().optional().describe("Values are not held against the chart's values.schema.json. Default false."),
})

/** Characters of a glob. */
export const GLOB_LENGTH_MAX = 128
const globSchema = z.string().min(1).max(GLOB_LENGTH_MAX)
const directoryOptionsSchema = z.strictObject({
  include: globSchema
    .optional()
    .describe(
      'Glob of the files to read, matched against the path below the folder: *.yaml, {base,eu}/*. As in Argo CD, * also matches /.',
    ),
  exclude: globSchema.optional().describe('Glob of files to leave out: alternatives/*. It wins over include.'),
  recurse: z.boolean().optional().describe('Folders inside the folder are read, too. Default true.'),
})

const kustomizeOptionsSchema = z.strictObject({
  helmCharts: z
    .boolean()
    .optional()
    .describe('helmCharts: of kustomizations is inflated; only charts that are in the tree. Default false: refused.'),
  remoteBases: z
    .boolean()
    .optional()
    .describe(
      'resources and components of kustomizations may be URLs: Git repositories (https://host/org/repo//path?ref=v1) and YAML files. They are fetched like a Repository, and followed at its poll interval. Default false: refused.',
    ),
  remoteBaseSecretRefs: z
    .array(nameSchema)
    .max(20)
    .optional()
    .describe(
      'Configs of the same project with credentials for remote bases. Each is sent only to the hosts that it is bound to. Default: none.',
    ),
  namePrefix: z.string().max(63).optional().describe('Put before the name of every object, instead of what the kustomization says.'),
  nameSuffix: z.string().max(63).optional().describe('Put behind the name of every object, instead of what the kustomization says.'),
  images: z
    .array(z.string().max(512))
    .max(100)
    .optional()
    .describe('Other images, as kustomize edit set image takes them: nginx=registry.example.com/nginx:1.29, or nginx:1.29.'),
  components: z
    .array(treePathSchema)
    .max(50)
    .optional()
    .describe('Folders of components, relative to the kustomization, that are added to its own.'),
})

const execOptionsSchema = z.strictObject({
  command: nameSchema.describe("A name of the operator's allow-list (skerry server --renderers FILE)."),
  args: z
    .array(z.string().max(1_024))
    .max(50)
    .default([])
    .describe('Arguments after those of the allow-list, each as it is: no shell reads them.'),
  inputs: z
    .array(z.string().max(256))
    .max(50)
    .default([])
    .describe('Paths of what it gets of the inputs, as one JSON document on its standard input: cluster.name, cluster.labels, config.'),
})

const patchTargetSchema = z.strictObject({
  group: z.string().max(253).optional().describe('API group, such as apps; left out it is any.'),
  version: z.string().max(63).optional().describe('API version without its group, such as v1; left out it is any.'),
  kind: z
    .string()
    .max(128)
    .optional()
    .describe(
      'Kind, such as Deployment. Like all of these a whole name, or a regular expression of one as in kustomize: Deployment|StatefulSet.',
    ),
  namespace: z.string().max(253).optional().describe('Namespace; an object without one is in that of its service.'),
  name: z.string().max(253).optional().describe('Name of the object: web, or web-.* for all that begin so.'),
  labelSelector: z.string().max(1_024).optional().describe("Labels, as kubectl's -l takes them: app=web,tier in (gold,silver),!canary."),
  annotationSelector: z.string().max(1_024).optional().describe('Annotations, written like labelSelector.'),
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
  target: patchTargetSchema
    .optional()
    .describe(
      'The objects that it is of: all that is given has to hold. Without it a strategic merge patch is of the object that it names.',
    ),
  patch: z
    .union([jsonPatchSchema, z.record(z.string(), z.json()), z.string().max(262_144)])
    .describe(
      'A list is a JSON patch (RFC 6902): [{op: replace, path: /spec/replicas, value: 3}]. A mapping is a strategic merge patch. A text is YAML of one of both.',
    ),
})
export type Patch = z.infer<typeof patchSchema>

export const renderSchema = z.strictObject({
  type: z
    .enum(['auto', ...RENDERERS])
    .optional()
    .describe(
      'Who renders the files. Default auto: the program that exec names, else by the folder: Chart.yaml → helm, a kustomization → kustomize, else raw. A folder with main.ts needs typescript or raw.',
    ),
  templated: z
    .boolean()
    .optional()
    .describe('Manifests, values files and kustomizations are Liquid templates, whatever they are called. Default: only *.liquid.'),
  directory: directoryOptionsSchema.optional().describe('Which files of a folder of plain manifests are read. Default: all of them.'),
  helm: helmOptionsSchema.optional().describe('Options of Helm charts.'),
  kustomize: kustomizeOptionsSchema.optional().describe('Options of kustomizations.'),
  typescript: z
    .strictObject({
      entry: treePathSchema.default('main.ts').describe('The file whose default export is the objects, or a function that gives them.'),
    })
    .optional()
    .describe('Options of TypeScript.'),
  exec: execOptionsSchema.optional().describe('A program of the operator that renders the files.'),
  patches: z.array(patchSchema).max(100).optional().describe('After the renderer, in their order. One that meets no object is an error.'),
  commonLabels: labelsSchema
    .optional()
    .describe('Labels that every object gets in its metadata, over its own; selectors stay as they are.'),
  commonAnnotations: z
    .record(z.string().max(317), z.string().max(4_096))
    .optional()
    .describe('Annotations that every object gets in its metadata, over its own.'),
})
export type RenderSpec = z.infer<typeof renderSchema>

/** What is different in some clusters. */
const overrideShape = {
  config: configDataSchema.optional().describe('Variables of templates, over those of the service.'),
  helm: z
    .strictObject({
      values: helmValuesSchema
        .optional()
        .describe('Helm values over those of the service; mappings are merged, lists replaced, null removes.'),
      valuesFiles: valuesFilesSchema
        .optional()
        .describe('Files of values over all values of the service, and below values beside it; named as those of the service.'),
    })
    .refine(({ values, valuesFiles }) => values !== undefined || valuesFiles !== undefined, {
      message: 'expected values or valuesFiles',
      when: isMapping,
    })
    .optional()
    .describe('Other values for a Helm chart.'),
  patches: z.array(patchSchema).max(100).optional().describe('Patches after those of the service.'),
}
/** Later ones win over earlier ones. */
export const overrideSchema = z.strictObject({
  selector: labelSelectorSchema.describe('The clusters for which it is, by their labels; {} is every cluster.'),
  ...overrideShape,
})
export type Override = z.infer<typeof overrideSchema>
/** Of a Cluster: for one service, over everything that the service itself says. */
export const clusterOverrideSchema = z.strictObject({
  service: nameSchema.describe('The service for which it is.'),
  project: nameSchema.optional().describe('Project of that service. Default "default".'),
  ...overrideShape,
})
export type ClusterOverride = z.infer<typeof clusterOverrideSchema>

/** Variables and secrets of a project. Secrets are written and never shown: reads give `hmac:…`, and writing that back keeps what is there. */
export const CONFIG_DATA_LENGTH_MAX = 1_048_576
export const CONFIG_SECRETS_MAX = 100
export const CONFIG_HOSTS_MAX = 100
export const configSpecSchema = z.strictObject({
  data: configDataSchema
    .default({})
    .refine((data) => JSON.stringify(data).length <= CONFIG_DATA_LENGTH_MAX, `at most ${CONFIG_DATA_LENGTH_MAX} characters as JSON`)
    .describe('JSON values by names that templates can write: {color: blue} is config.color.'),
  secrets: z
    .record(
      z.string().regex(/^[A-Za-z_][-A-Za-z0-9_]{0,62}$/, 'expected a name of letters, digits, _ and -'),
      z.string().max(262_144, 'at most 262144 characters'),
    )
    .default({})
    .refine((secrets) => Object.keys(secrets).length <= CONFIG_SECRETS_MAX, `at most ${CONFIG_SECRETS_MAX} secrets`)
    .describe('Texts that are written and never shown: reads give a mark (hmac:…), and a mark written back keeps what is there.'),
  hosts: z
    .array(
      z
        .string()
        .max(260)
        .regex(
          /^([a-z0-9]([-a-z0-9.]*[a-z0-9])?|\[[0-9a-f:.]+\])(:[0-9]{1,5})?$/,
          'expected a host in lower case, with its port unless it is the usual one',
        ),
    )
    .max(CONFIG_HOSTS_MAX)
    .optional()
    .describe(
      'Hosts to which the secrets may be sent as a credential of a Repository. Default: those of their first use, which are kept and shown.',
    ),
})
export type ConfigSpec = z.infer<typeof configSpecSchema>
