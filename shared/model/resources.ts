// The resources that people write. One schema each: the admin API, its OpenAPI document and `skerry apply -f` all come
// from here. Unknown fields are errors: a misspelt `maxPrunePercent` must never be a silent default.
import { z } from 'zod'
import { durationMs, durationSchema } from '../runtime/durations.ts'
import { nameSchema } from '../runtime/ids.ts'
import { isBuiltIn, roleBindingSpecSchema, roleSpecSchema, TOKEN_ROLES } from './access.ts'
import { API_VERSION, DEFAULT_PROJECT } from './constants.ts'
import { healthRuleSpecSchema, serviceHealthSchema } from './health-rules.ts'
import { labelSelectorSchema, labelsSchema } from './labels.ts'
import { notificationRouteSchema, notificationSinkSchema } from './notifications.ts'
import { projectSpecSchema } from './projects.ts'
import { clusterOverrideSchema, configDataSchema, configSpecSchema, overrideSchema, renderSchema } from './render.ts'
import { siteConfigSchema } from './site-config.ts'
import {
  type GitSpec,
  type HelmRepositorySpec,
  isMapping,
  type OciSpec,
  PICKS_ONE,
  pickShape,
  picksOne,
  repositorySourceShape,
  VERSIONS_CHART,
  versionsChart,
} from './sources.ts'

export { API_VERSION, DEFAULT_PROJECT, durationMs, durationSchema }

const projectMetadata = z.strictObject({
  name: nameSchema.describe('Name, unique for the kind within the project.'),
  project: nameSchema.default(DEFAULT_PROJECT).describe('Project of the resource. References name resources of the same project.'),
  labels: labelsSchema.default({}).describe('Labels of the resource, for -l.'),
})
const fleetMetadata = z.strictObject({
  name: nameSchema.describe('Name, unique in the fleet.'),
  labels: labelsSchema.default({}).describe('Labels of the cluster, which services select and templates can read: {region: eu}.'),
})

const boundaryMetadata = z.strictObject({
  name: nameSchema.describe('Name of the project.'),
  labels: labelsSchema.default({}).describe('Labels of the resource, for -l.'),
})
const ruleMetadata = z.strictObject({
  name: nameSchema.describe('Name, unique within the project, or among the rules of the whole fleet.'),
  project: nameSchema.optional().describe('Project whose services use the rule. Default: all services of the fleet.'),
  labels: labelsSchema.default({}).describe('Labels of the resource, for -l.'),
})

export const repositorySpecSchema = z
  .strictObject({
    ...repositorySourceShape,
    poll: durationSchema
      .default('60s')
      .refine((text) => durationMs(text) >= 1_000, 'at least 1s')
      .describe('Poll interval: a whole number with ms, s, m, h or d, at least 1s.'),
  })
  .refine(({ git, helm, oci }) => [git, helm, oci].filter((one) => one !== undefined).length === 1, {
    message: 'expected one of git, helm and oci',
    when: isMapping,
  })
export type RepositorySpec = z.infer<typeof repositorySpecSchema>

/** The source of a repository, tagged with its kind. */
export type RepositoryPlace = { kind: 'git'; spec: GitSpec } | { kind: 'helm'; spec: HelmRepositorySpec } | { kind: 'oci'; spec: OciSpec }
export function placeOf({ git, helm, oci }: RepositorySpec): RepositoryPlace {
  if (git !== undefined) return { kind: 'git', spec: { ...git, ref: git.ref ?? 'main' } }
  if (helm !== undefined) return { kind: 'helm', spec: helm }
  if (oci !== undefined) return { kind: 'oci', spec: oci }
  throw new Error('a repository without a source passed its schema')
}

/** For columns and messages: the address and the ref, tag or version range. */
export function placeTexts(spec: RepositorySpec): { url: string; ref: string } {
  const place = placeOf(spec)
  if (place.kind === 'git') return { url: place.spec.url, ref: place.spec.semver ?? place.spec.ref }
  if (place.kind === 'helm') return { url: place.spec.url, ref: 'index' }
  return { url: place.spec.url, ref: place.spec.digest ?? place.spec.semver ?? place.spec.tag ?? '' }
}

const SERVICE_ACCOUNT = /^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\/)?[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

export const syncOptionsSchema = z.strictObject({
  prune: z.boolean().default(true).describe('Delete objects that are no longer in the manifests. false: keep and report them.'),
  pruneWhen: z
    .enum(['healthy', 'applied'])
    .default('healthy')
    .describe('healthy: prune once the new objects are healthy. applied: as soon as they are applied.'),
  maxPrunePercent: z
    .number()
    .int()
    .min(0)
    .max(100)
    .default(50)
    .describe("A prune of more than 5 objects and more than this percentage of the service's objects waits for a confirmation."),
  drift: z
    .enum(['correct', 'report', 'pause'])
    .default('correct')
    .describe(
      'Response to drift: another manager changed a field that Skerry owns. correct: restore it at once. report: only report it. pause: report it, and apply no new revision to the object while it lasts.',
    ),
  createNamespace: z.boolean().default(true).describe('Create the namespace of the service if it does not exist.'),
  force: z
    .boolean()
    .default(true)
    .describe('Take fields from other field managers. false: report a conflict with the name of the other manager.'),
  takeover: z.boolean().default(false).describe('Adopt objects that another tool or service manages.'),
  healthDeadline: durationSchema.default('10m').describe('Time after which a Progressing object counts as Degraded.'),
  // The fields below have no default here, so that rows written by earlier versions keep the same bytes.
  mode: z.enum(['auto', 'manual']).optional().describe('manual: a revision waits for `skerry sync`. Default auto.'),
  waitForHealth: z.boolean().optional().describe('Each wave waits until the previous wave is healthy. Default true.'),
  driftAdditions: z
    .enum(['ignore', 'report'])
    .optional()
    .describe('report: list fields that other managers added to managed objects. Default ignore.'),
  serviceAccount: z
    .string()
    .regex(SERVICE_ACCOUNT, 'expected the name of a ServiceAccount, or namespace/name')
    .optional()
    .describe("ServiceAccount that the agent impersonates for this service: a name in the service's namespace, or namespace/name."),
  namespaceLabels: labelsSchema.optional().describe('Labels of the namespace that createNamespace creates.'),
  namespaceAnnotations: z
    .record(z.string().max(317), z.string().max(4_096))
    .optional()
    .describe('Annotations of the namespace that createNamespace creates.'),
  deleteNamespace: z.boolean().optional().describe('Delete the namespace of createNamespace when the service is removed. Default false.'),
  enforceNamespace: z.boolean().optional().describe('Reject objects that name a namespace other than that of the service. Default false.'),
  waitForAddress: z
    .boolean()
    .optional()
    .describe(
      'Wait for the address of an Ingress or a load balancer before it is healthy. Default false, because many edge clusters assign none.',
    ),
})
export type SyncOptions = z.infer<typeof syncOptionsSchema>

/** Ignored fields are neither compared nor sent. All given conditions must hold; an omitted `group`, `namespace` or
 *  `name` matches any. */
export const ignoreRuleSchema = z
  .strictObject({
    group: z.string().max(253).optional().describe('API group, such as apps; "" is the core group. Default: all.'),
    kind: z.string().min(1).max(63).describe('Kind of the objects, such as Deployment.'),
    namespace: z.string().max(63).optional().describe('Namespace of the objects. Default: all.'),
    name: z.string().max(253).optional().describe('Name of the object. Default: all.'),
    jsonPointers: z
      .array(
        z
          .string()
          .regex(/^(\/([^~/]|~[01])*)+$/, 'expected a JSON pointer such as /spec/replicas')
          .max(1_024),
      )
      .min(1)
      .max(50)
      .optional()
      .describe('Fields as JSON pointers (RFC 6901), such as /spec/replicas. A pointer to a missing field is not an error.'),
    managers: z.array(z.string().min(1).max(128)).min(1).max(20).optional().describe('Field managers whose fields are ignored.'),
  })
  .refine(({ jsonPointers, managers }) => jsonPointers !== undefined || managers !== undefined, {
    message: 'expected jsonPointers or managers',
    when: isMapping,
  })
export type IgnoreRule = z.infer<typeof ignoreRuleSchema>

/** A service that must be Healthy in the same cluster first. */
export const dependencySchema = z.strictObject({
  name: nameSchema.describe('Name of the other service.'),
  project: nameSchema.optional().describe('Project of the other service. Default: the project of this service.'),
})
export type Dependency = z.infer<typeof dependencySchema>

export const sourceSchema = z
  .strictObject(pickShape)
  .refine(picksOne, { message: PICKS_ONE, when: isMapping })
  .refine(versionsChart, { message: VERSIONS_CHART, when: isMapping })
export type ServiceSource = z.infer<typeof sourceSchema>
const namedSourceSchema = z
  .strictObject({
    ...pickShape,
    name: nameSchema.optional().describe('Name by which values files of other sources refer to this source: $NAME/….'),
    render: renderSchema.optional().describe('Render options of this source. Default: render of the service.'),
    filesOnly: z.boolean().optional().describe('Do not render this source; other sources only read its files. Default false.'),
  })
  .refine(picksOne, { message: PICKS_ONE, when: isMapping })
  .refine(versionsChart, { message: VERSIONS_CHART, when: isMapping })
export type NamedSource = z.infer<typeof namedSourceSchema>

const serviceShape = z.strictObject({
  source: sourceSchema.optional().describe('Source of the manifests. Set either source or sources.'),
  sources: z
    .array(namedSourceSchema)
    .min(1)
    .max(20)
    .optional()
    .describe('Several sources, whose objects form one set. A source can use values files of another.'),
  render: renderSchema.optional().describe('Rendering of the files, and changes to the rendered objects.'),
  config: configDataSchema
    .optional()
    .describe(
      'Variables of templates. Later ones win: configFrom in order, config, overrides in order, config of the Cluster, siteConfig.',
    ),
  configFrom: z
    .array(
      z.strictObject({
        name: nameSchema.describe('Name of a Config in the same project.'),
        optional: z.boolean().optional().describe('Allow the Config to be missing. Default false.'),
      }),
    )
    .max(50)
    .optional()
    .describe('Configs whose data and secrets are variables of templates; later ones win.'),
  siteConfig: siteConfigSchema
    .optional()
    .describe('Variables from a ConfigMap in each cluster. They override all other variables; the agent reports the named keys only.'),
  overrides: z.array(overrideSchema).max(200).optional().describe('Changes for some clusters; later ones win.'),
  targets: z
    .strictObject({
      selector: labelSelectorSchema.describe('Labels of the clusters that get the service; {} is every cluster.'),
      exclude: z.array(labelSelectorSchema).default([]).describe('Selectors of clusters to leave out.'),
    })
    .describe('Clusters that get the service.'),
  namespace: nameSchema.optional().describe('Namespace for namespaced objects that name none. Without it, such objects are an error.'),
  sync: syncOptionsSchema.default(() => syncOptionsSchema.parse({})).describe('Options for applying the service in each cluster.'),
  deletionPolicy: z
    .enum(['prune', 'orphan'])
    .default('prune')
    .describe(
      'Handling of the objects when the service is deleted or a cluster leaves its targets. prune: delete them. orphan: keep them.',
    ),
  protect: z.boolean().default(false).describe('Require a confirmation before anything of the service is removed or pruned.'),
  ignore: z.array(ignoreRuleSchema).max(100).optional().describe('Fields that Skerry neither compares nor sends.'),
  health: z
    .array(serviceHealthSchema)
    .max(50)
    .optional()
    .describe('Health rules for more kinds, as CEL expressions over the fields of the object.'),
  dependsOn: z.array(dependencySchema).max(50).optional().describe('Services that must be Healthy in the same cluster first.'),
})
export const serviceSpecSchema = serviceShape
  .refine(({ source, sources }) => (source === undefined) !== (sources === undefined), {
    message: 'expected source or sources',
    when: isMapping,
  })
  .refine(({ sources }) => hasNoDouble(namesIn(sources)), { message: 'two sources have the same name', path: ['sources'], when: isMapping })
export type ServiceSpec = z.infer<typeof serviceSpecSchema>

/** Names in a list that may still be invalid. */
const namesIn = (sources: unknown): unknown[] =>
  (Array.isArray(sources) ? sources : []).flatMap((one: { name?: unknown } | null | undefined) => one?.name ?? [])
const hasNoDouble = (names: readonly unknown[]): boolean => new Set(names).size === names.length

/** All sources as one list, from either of the two forms. */
export const sourcesOf = ({ source, sources }: Pick<ServiceSpec, 'source' | 'sources'>): readonly NamedSource[] =>
  sources ?? (source === undefined ? [] : [source])
/** For columns and messages: `apps/podinfo`, `charts/podinfo ^6`. */
export const sourceText = ({ repository, path, chart, version }: ServiceSource): string =>
  `${repository}/${chart ?? path}${version === undefined ? '' : ` ${version}`}`

/** Joining creates a cluster; people write its labels. `revoked` stops its agent from syncing; applied objects stay. */
export const clusterSpecSchema = z.strictObject({
  revoked: z.boolean().default(false).describe('Refuse requests from the agent. Applied objects stay.'),
  config: configDataSchema.optional().describe('Variables of this cluster; they override those of all services.'),
  siteConfig: siteConfigSchema
    .optional()
    .describe('Variables for all services from a ConfigMap in this cluster. They override config; siteConfig of a service overrides them.'),
  overrides: z
    .array(clusterOverrideSchema)
    .max(200)
    .optional()
    .describe('Changes for single services in this cluster; they override the service.'),
})
export type ClusterSpec = z.infer<typeof clusterSpecSchema>

export const joinTokenSpecSchema = z.strictObject({
  expires: durationSchema.default('1h'),
  uses: z.number().int().min(1).max(10_000).default(1),
  labels: labelsSchema.default({}).describe('Labels for each cluster that joins with the token.'),
})
export const apiTokenSpecSchema = z.strictObject({
  name: nameSchema.describe('Name of the user of the token, shown in events, commands and confirmations.'),
  role: z.enum(TOKEN_ROLES).default('viewer').describe('Built-in role; none: only role bindings of the token name. admin is fleet-admin.'),
  projects: z.array(nameSchema).min(1).max(100).optional().describe('Projects to which the rights of the token are limited.'),
  expires: z.union([durationSchema, z.literal('never')]).default('90d'),
})

export type JoinTokenSpec = z.infer<typeof joinTokenSpecSchema>

const head = { apiVersion: z.literal(API_VERSION).describe('Version of the resource schema.') }
const KIND_MEANING = 'Kind of the resource.'
const METADATA_MEANING = 'Name, project and labels.'
export const repositorySchema = z.strictObject({
  ...head,
  kind: z.literal('Repository').describe(KIND_MEANING),
  metadata: projectMetadata.describe(METADATA_MEANING),
  spec: repositorySpecSchema.describe('Source of manifests or charts.'),
})
export const serviceSchema = z.strictObject({
  ...head,
  kind: z.literal('Service').describe(KIND_MEANING),
  metadata: projectMetadata.describe(METADATA_MEANING),
  spec: serviceSpecSchema.describe('Manifests to deliver, and the clusters that get them.'),
})
export const clusterSchema = z.strictObject({
  ...head,
  kind: z.literal('Cluster').describe(KIND_MEANING),
  metadata: fleetMetadata.describe('Name and labels.'),
  spec: clusterSpecSchema.default(() => clusterSpecSchema.parse({})).describe('Settings of this cluster.'),
})

export const configSchema = z.strictObject({
  ...head,
  kind: z.literal('Config').describe(KIND_MEANING),
  metadata: projectMetadata.describe(METADATA_MEANING),
  spec: configSpecSchema.default(() => configSpecSchema.parse({})).describe('Variables and secrets of a project.'),
})

export const healthRuleSchema = z.strictObject({
  ...head,
  kind: z.literal('HealthRule').describe(KIND_MEANING),
  metadata: ruleMetadata.describe(METADATA_MEANING),
  spec: healthRuleSpecSchema.describe('Health of the objects of one kind, for all services of a project or of the fleet.'),
})

export const projectSchema = z.strictObject({
  ...head,
  kind: z.literal('Project').describe(KIND_MEANING),
  metadata: boundaryMetadata.describe('Name and labels.'),
  spec: projectSpecSchema.describe('Limits for the resources of the project and their destinations.'),
})
export const roleSchema = z.strictObject({
  ...head,
  kind: z.literal('Role').describe(KIND_MEANING),
  metadata: z
    .strictObject({
      name: nameSchema.refine((name) => !isBuiltIn(name), 'already the name of a built-in role').describe('Name, unique in the fleet.'),
      labels: labelsSchema.default({}).describe('Labels of the resource, for -l.'),
    })
    .describe('Name and labels.'),
  spec: roleSpecSchema.describe('Allowed actions. A RoleBinding names the users and the projects.'),
})
export const roleBindingSchema = z
  .strictObject({
    ...head,
    kind: z.literal('RoleBinding').describe(KIND_MEANING),
    metadata: z
      .strictObject({
        name: nameSchema.describe('Name, unique within the project, or among the bindings of the fleet.'),
        project: nameSchema.optional().describe('Project to which the binding is limited.'),
        labels: labelsSchema.default({}).describe('Labels of the resource, for -l.'),
      })
      .describe(METADATA_MEANING),
    spec: roleBindingSpecSchema.describe('Role, its users, and where they have it.'),
  })
  .refine(({ metadata, spec }) => (metadata?.project === undefined) !== (spec?.projects === undefined), {
    message: 'expected spec.projects (names, or "*" for the whole fleet) or metadata.project, and not both',
    path: ['spec', 'projects'],
    when: isMapping,
  })

/** The resources that `skerry apply -f` accepts. */
export const applicableSchema = z.discriminatedUnion('kind', [
  repositorySchema,
  serviceSchema,
  clusterSchema,
  configSchema,
  healthRuleSchema,
  projectSchema,
  roleSchema,
  roleBindingSchema,
  notificationSinkSchema,
  notificationRouteSchema,
])
export type Applicable = z.infer<typeof applicableSchema>
export type RepositoryResource = z.infer<typeof repositorySchema>
export type ServiceResource = z.infer<typeof serviceSchema>
export type ConfigResource = z.infer<typeof configSchema>
export type ClusterResource = z.infer<typeof clusterSchema>
export type ProjectResource = z.infer<typeof projectSchema>
export type RoleResource = z.infer<typeof roleSchema>
export type RoleBindingResource = z.infer<typeof roleBindingSchema>
export type HealthRuleResource = z.infer<typeof healthRuleSchema>

/** Clusters, projects, and health rules for the whole fleet, belong to no project; their project is the empty string in
 *  keys and columns. */
export const FLEET = ''
export const projectOf = ({ metadata }: Applicable): string => ('project' in metadata ? metadata.project : undefined) ?? FLEET
