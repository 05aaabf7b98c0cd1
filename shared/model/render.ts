// Schemas of rendering: options of each renderer, patches after it, and overrides for some clusters.
import { z } from 'zod'
import { durationMs, durationSchema } from '../runtime/durations.ts'
import { nameSchema } from '../runtime/ids.ts'
import { labelSelectorSchema, labelsSchema } from './labels.ts'
import { isMapping, treePathSchema } from './sources.ts'

export const RENDERERS = ['raw', 'helm', 'kustomize', 'typescript', 'exec'] as const
export type RendererName = (typeof RENDERERS)[number]

/** JSON values with names that templates can use: `config.color`. */
export const configDataSchema = z.record(
  z.string().regex(/^[A-Za-z_][-A-Za-z0-9_]{0,62}$/, 'expected a name of letters, digits, _ and -'),
  z.json(),
)
export type ConfigData = z.infer<typeof configDataSchema>
const helmValuesSchema = z.record(z.string(), z.json())
export type HelmValues = z.infer<typeof helmValuesSchema>

/** Files of the service's tree; `$NAME/path` is a file of the source of that name. What stands after that is a
 *  template: `envs/{{ cluster.name }}.yaml?`. */
const valuesFilesSchema = z.array(z.string().min(1).max(1_024)).max(50)

const helmOptionsSchema = z.strictObject({
  helm: z.enum(['3', '4']).optional().describe('Major version of Helm that renders the chart. Default 4.'),
  releaseName: z
    .string()
    .regex(/^[a-z0-9]([-a-z0-9]{0,51}[a-z0-9])?$/, 'expected a release name of at most 53 characters')
    .optional()
    .describe('Release name (.Release.Name). Default: the name of the service.'),
  valuesFiles: valuesFilesSchema
    .optional()
    .describe(
      'Values files, relative to the folder of the service, or $NAME/path in the source of that name. Later ones win. A path can be a template; a file whose path ends with ? may be missing: envs/{{ cluster.name }}.yaml?.',
    ),
  valuesFrom: z
    .array(
      z.strictObject({
        name: nameSchema.describe('Name of a Config in the same project.'),
        key: z.string().max(63).default('values').describe('Key in the data or the secrets of the Config.'),
        at: z
          .string()
          .max(256)
          .optional()
          .describe(
            'Path of the Helm value, such as auth.password; write a dot in a name as \\. (labels.example\\.com/tier). Without a path, the value must be a mapping of values, or its YAML text.',
          ),
        optional: z.boolean().optional().describe('Allow the Config or the key to be missing. Default false.'),
      }),
    )
    .max(50)
    .optional()
    .describe('Values from Configs, which override values files: whole mappings, or a single value at a path. Later ones win.'),
  values: helmValuesSchema.optional().describe('Values that override files and Configs. Strings can be templates: {{ cluster.name }}.'),
  skipCrds: z.boolean().optional().describe("Leave out the CRDs of the chart's crds folder. Default false."),
  skipSchemaValidation: z.boolean().optional().describe("Do not validate values against the chart's values.schema.json. Default false."),
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
  exclude: globSchema.optional().describe('Glob of files to leave out: alternatives/*. exclude takes precedence over include.'),
  recurse: z.boolean().optional().describe('Read subfolders. Default true.'),
})

const kustomizeOptionsSchema = z.strictObject({
  helmCharts: z.boolean().optional().describe('Allow helmCharts: in kustomizations, for charts in the tree only. Default false.'),
  remoteBases: z
    .boolean()
    .optional()
    .describe(
      'Allow URLs in resources and components of kustomizations: Git repositories (https://host/org/repo//path?ref=v1) and YAML files. The server polls them like a Repository. Default false.',
    ),
  remoteBaseSecretRefs: z
    .array(nameSchema)
    .max(20)
    .optional()
    .describe(
      'Configs of the same project with credentials for remote bases. Each credential is sent only to its own hosts. Default: none.',
    ),
  namePrefix: z.string().max(63).optional().describe('Prefix for the name of every object; replaces that of the kustomization.'),
  nameSuffix: z.string().max(63).optional().describe('Suffix for the name of every object; replaces that of the kustomization.'),
  images: z
    .array(z.string().max(512))
    .max(100)
    .optional()
    .describe('Image replacements, as in kustomize edit set image: nginx=registry.example.com/nginx:1.29, or nginx:1.29.'),
  components: z.array(treePathSchema).max(50).optional().describe('Folders of more components, relative to the kustomization.'),
})

const execOptionsSchema = z.strictObject({
  command: nameSchema.describe('Name of a program in the file of `skerry server --renderers FILE`.'),
  args: z.array(z.string().max(1_024)).max(50).default([]).describe('Arguments after those in the file. No shell interprets them.'),
  inputs: z
    .array(z.string().max(256))
    .max(50)
    .default([])
    .describe('Paths of the inputs that the program gets as one JSON document on standard input: cluster.name, cluster.labels, config.'),
})

const patchTargetSchema = z.strictObject({
  group: z.string().max(253).optional().describe('API group, such as apps. Default: all.'),
  version: z.string().max(63).optional().describe('API version without its group, such as v1. Default: all.'),
  kind: z
    .string()
    .max(128)
    .optional()
    .describe(
      'Kind, such as Deployment. Like the other fields, a whole name or a regular expression as in kustomize: Deployment|StatefulSet.',
    ),
  namespace: z.string().max(253).optional().describe('Namespace. An object without one has the namespace of its service.'),
  name: z.string().max(253).optional().describe('Name of the object: web, or web-.* for all names that begin with web-.'),
  labelSelector: z.string().max(1_024).optional().describe('Label selector, as in kubectl -l: app=web,tier in (gold,silver),!canary.'),
  annotationSelector: z.string().max(1_024).optional().describe('Annotation selector, in the form of labelSelector.'),
})
const jsonPatchOpSchema = z.strictObject({
  op: z.enum(['add', 'remove', 'replace', 'move', 'copy', 'test']),
  path: z.string().max(1_024),
  from: z.string().max(1_024).optional(),
  value: z.json().optional(),
})
export const jsonPatchSchema = z.array(jsonPatchOpSchema).max(1_000)
/** A list is a JSON patch (RFC 6902), an object a strategic merge patch, a string the YAML of either. A strategic merge
 *  patch without a target applies to the object that it names. */
export const patchSchema = z.strictObject({
  target: patchTargetSchema
    .optional()
    .describe(
      'Objects to patch; all given fields must match. A strategic merge patch without a target applies to the object that it names.',
    ),
  patch: z
    .union([jsonPatchSchema, z.record(z.string(), z.json()), z.string().max(262_144)])
    .describe(
      'Patch. A list is a JSON patch (RFC 6902): [{op: replace, path: /spec/replicas, value: 3}]. A mapping is a strategic merge patch. A string is the YAML of either.',
    ),
})
export type Patch = z.infer<typeof patchSchema>

export const renderSchema = z.strictObject({
  type: z
    .enum(['auto', ...RENDERERS])
    .optional()
    .describe(
      'Renderer. Default auto: the program of exec; else helm for a Chart.yaml, kustomize for a kustomization, raw for other folders. A folder with main.ts needs typescript or raw.',
    ),
  templated: z
    .boolean()
    .optional()
    .describe('Read all manifests, values files and kustomizations as Liquid templates. Default: only *.liquid.'),
  directory: directoryOptionsSchema.optional().describe('Files to read in a folder of plain manifests. Default: all.'),
  helm: helmOptionsSchema.optional().describe('Options of Helm charts.'),
  kustomize: kustomizeOptionsSchema.optional().describe('Options of kustomizations.'),
  typescript: z
    .strictObject({
      entry: treePathSchema.default('main.ts').describe('File whose default export is the list of objects, or a function that returns it.'),
    })
    .optional()
    .describe('Options of TypeScript.'),
  exec: execOptionsSchema.optional().describe('Render program that the operator of the server provides.'),
  patches: z
    .array(patchSchema)
    .max(100)
    .optional()
    .describe('Patches to apply after the renderer, in order. A patch that matches no object is an error.'),
  commonLabels: labelsSchema.optional().describe('Labels to set in the metadata of every object. Selectors do not change.'),
  commonAnnotations: z
    .record(z.string().max(317), z.string().max(4_096))
    .optional()
    .describe('Annotations to set in the metadata of every object.'),
})
export type RenderSpec = z.infer<typeof renderSchema>

/** Changes for some clusters. */
const overrideShape = {
  config: configDataSchema.optional().describe('Variables of templates; they override those of the service.'),
  helm: z
    .strictObject({
      values: helmValuesSchema
        .optional()
        .describe('Helm values that override those of the service. Mappings are merged, lists replaced; null removes a value.'),
      valuesFiles: valuesFilesSchema
        .optional()
        .describe('Values files that override all values of the service, but not values in this override.'),
    })
    .refine(({ values, valuesFiles }) => values !== undefined || valuesFiles !== undefined, {
      message: 'expected values or valuesFiles',
      when: isMapping,
    })
    .optional()
    .describe('Changed values for a Helm chart.'),
  patches: z.array(patchSchema).max(100).optional().describe('Patches to apply after those of the service.'),
}
/** Later ones win over earlier ones. */
export const overrideSchema = z.strictObject({
  selector: labelSelectorSchema.describe('Labels of the clusters; {} is every cluster.'),
  ...overrideShape,
})
export type Override = z.infer<typeof overrideSchema>
/** An override for one service in a Cluster: it wins over the service's own settings. */
export const clusterOverrideSchema = z.strictObject({
  service: nameSchema.describe('Name of the service.'),
  project: nameSchema.optional().describe('Project of the service. Default "default".'),
  ...overrideShape,
})
export type ClusterOverride = z.infer<typeof clusterOverrideSchema>

/** Variables and secrets of a project. Secrets are written and never shown: reads give `hmac:…`, and writing that back
 *  keeps what is there. */
export const CONFIG_DATA_LENGTH_MAX = 1_048_576
export const CONFIG_SECRETS_MAX = 100
export const CONFIG_HOSTS_MAX = 100
const secretName = z.string().regex(/^[A-Za-z_][-A-Za-z0-9_]{0,62}$/, 'expected a name of letters, digits, _ and -')
const entryKey = z.string().min(1).max(253)
const apiPath = z
  .string()
  .max(512)
  .regex(/^[A-Za-z0-9_.@=+-]+(\/[A-Za-z0-9_.@=+-]+)*$/, 'expected a path of letters, digits and . _ @ = + - between slashes')
  .refine((path) => !path.split('/').some((part) => part === '.' || part === '..'), 'expected a path without . and ..')
export const CONFIG_SOURCES_MAX = 50
export const REFRESH_MS_DEFAULT = 300_000
export const REFRESH_MS_MIN = 10_000
const valueSourceSchema = z
  .strictObject({
    name: secretName.describe('Name of the value, as a template and auth.secretRef read it.'),
    vault: z
      .strictObject({
        url: z
          .url({ protocol: /^https?$/, error: 'expected an address such as https://vault.example.com:8200' })
          .max(512)
          .describe('Address of HashiCorp Vault or OpenBao.'),
        namespace: z.string().min(1).max(256).optional().describe('Namespace of Vault Enterprise or OpenBao. Default: none.'),
        mount: apiPath.default('secret').describe('Path of the key/value engine.'),
        engine: z.enum(['kv1', 'kv2']).default('kv2').describe('Version of the key/value engine.'),
        path: apiPath.describe('Path of the secret below the engine, such as shop/database.'),
        key: entryKey.describe('Key in the secret.'),
        secretRef: nameSchema.describe(
          'Config of the same project with the credential: token, or roleId and secretId (AppRole). caCert is its certificate authority.',
        ),
        authMount: apiPath.default('approle').describe('Path of the AppRole sign-in.'),
      })
      .optional()
      .describe('A secret in HashiCorp Vault or OpenBao.'),
    kubernetesSecret: z
      .strictObject({
        name: z
          .string()
          .max(253)
          .regex(/^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/, 'expected the name of a Secret')
          .describe('Name of the Secret.'),
        key: entryKey.describe('Key in the data of the Secret.'),
      })
      .optional()
      .describe(
        'A Secret in the namespace of the server, with the annotation skerry.dev/value-projects that names this project. Needs `skerry server --value-secrets`.',
      ),
    file: apiPath
      .optional()
      .describe('File below the folder of this project in the folder of `skerry server --value-files`: database/password.'),
  })
  .refine(({ vault, kubernetesSecret, file }) => [vault, kubernetesSecret, file].filter((one) => one !== undefined).length === 1, {
    message: 'expected one of vault, kubernetesSecret and file',
    when: isMapping,
  })
export type ValueSource = z.infer<typeof valueSourceSchema>
const atMs = z.number().int().nonnegative()
/** State of a source, for people. */
export const valueStateSchema = z.object({
  name: z.string(),
  /** `vault secret/shop#password at vault.example.com`. */
  from: z.string(),
  state: z.enum(['pending', 'ready', 'failed']),
  /** Why it failed; the last value stays in use. */
  message: z.string().nullable(),
  /** Since when it has this state. Null means that it is pending. */
  sinceMs: atMs.nullable(),
  /** The mark of the value in use, its version at the source, and when it was read first. Null means that there is none
   *  yet. */
  value: z.object({ mark: z.string(), version: z.string(), atMs }).nullable(),
})
export const configSpecSchema = z.strictObject({
  data: configDataSchema
    .default({})
    .refine((data) => JSON.stringify(data).length <= CONFIG_DATA_LENGTH_MAX, `at most ${CONFIG_DATA_LENGTH_MAX} characters as JSON`)
    .describe('JSON values by name: a template reads {color: blue} as config.color.'),
  secrets: z
    .record(
      z.string().regex(/^[A-Za-z_][-A-Za-z0-9_]{0,62}$/, 'expected a name of letters, digits, _ and -'),
      z.string().max(262_144, 'at most 262144 characters'),
    )
    .default({})
    .refine((secrets) => Object.keys(secrets).length <= CONFIG_SECRETS_MAX, `at most ${CONFIG_SECRETS_MAX} secrets`)
    .describe('Secret strings. They are never shown: a read returns a mark (hmac:…), and writing the mark back keeps the value.'),
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
      'Hosts that may receive the secrets as a credential of a Repository. Default: the hosts of the first use, which are then stored here.',
    ),
  valueFrom: z
    .array(valueSourceSchema)
    .max(CONFIG_SOURCES_MAX)
    .refine((sources) => new Set(sources.map(({ name }) => name)).size === sources.length, 'expected each name once')
    .optional()
    .describe('Secrets whose values come from outside of Skerry. They are read again at the interval refresh, and stored like secrets.'),
  refresh: durationSchema
    .refine((text) => durationMs(text) >= REFRESH_MS_MIN && durationMs(text) <= 86_400_000, 'expected 10s to 24h')
    .optional()
    .describe('How often the values of valueFrom are read again. Default 5m.'),
})
export type ConfigSpec = z.infer<typeof configSpecSchema>
