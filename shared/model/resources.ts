// The resources that people write. One schema each: the admin API, its OpenAPI document and `skerry apply -f` all come from here.
// Unknown fields are errors: a misspelt `maxPrunePercent` must never be a silent default.
import { z } from 'zod'
import { isBuiltIn, roleBindingSpecSchema, roleSpecSchema, TOKEN_ROLES } from './access.ts'
import { DEFAULT_PROJECT } from './constants.ts'
import { healthRuleSpecSchema, serviceHealthSchema } from './health-rules.ts'
import { nameSchema } from './ids.ts'
import { labelSelectorSchema, labelsSchema } from './labels.ts'
import { projectSpecSchema } from './projects.ts'
import { clusterOverrideSchema, configDataSchema, configSpecSchema, overrideSchema, renderSchema } from './render.ts'
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

export const API_VERSION = 'skerry.dev/v1'
export { DEFAULT_PROJECT }

const DURATION = /^([1-9][0-9]*)(ms|s|m|h|d)$/
const UNIT_MS: Record<string, number> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }
/** `90s`, `10m`, `2h`, `7d`: a whole number and a unit. */
export const durationSchema = z
  .string('expected a whole number with ms, s, m, h or d, such as 60s')
  .regex(DURATION, { error: 'expected a whole number with ms, s, m, h or d, such as 60s', abort: true })
export function durationMs(text: string): number {
  const match = DURATION.exec(text)
  return match ? Number(match[1]) * (UNIT_MS[match[2] ?? ''] ?? 0) : Number.NaN
}

const projectMetadata = z.strictObject({
  name: nameSchema.describe('Name, the only one of its kind in the project.'),
  project: nameSchema.default(DEFAULT_PROJECT).describe('Resources name others of the same project.'),
  labels: labelsSchema.default({}).describe('Labels of the resource itself, for -l.'),
})
const fleetMetadata = z.strictObject({
  name: nameSchema.describe('Name, the only one in the fleet.'),
  labels: labelsSchema.default({}).describe('By which services choose clusters, and which templates may look at: {region: eu}.'),
})

const boundaryMetadata = z.strictObject({
  name: nameSchema.describe('Name of the project.'),
  labels: labelsSchema.default({}).describe('Labels of the resource itself, for -l.'),
})
const ruleMetadata = z.strictObject({
  name: nameSchema.describe('Name, the only one of a rule in its project, or of those for the whole fleet.'),
  project: nameSchema
    .optional()
    .describe('The rule is for the services of this project. Without a project it is for all services of the fleet.'),
  labels: labelsSchema.default({}).describe('Labels of the resource itself, for -l.'),
})

export const repositorySpecSchema = z
  .strictObject({
    ...repositorySourceShape,
    poll: durationSchema
      .default('60s')
      .refine((text) => durationMs(text) >= 1_000, 'at least 1s')
      .describe('How often it is asked for news: a whole number with ms, s, m, h or d, at least 1s.'),
  })
  .refine(({ git, helm, oci }) => [git, helm, oci].filter((one) => one !== undefined).length === 1, {
    message: 'expected one of git, helm and oci',
    when: isMapping,
  })
export type RepositorySpec = z.infer<typeof repositorySpecSchema>

/** Which of the three it is. */
export type RepositoryPlace = { kind: 'git'; spec: GitSpec } | { kind: 'helm'; spec: HelmRepositorySpec } | { kind: 'oci'; spec: OciSpec }
export function placeOf({ git, helm, oci }: RepositorySpec): RepositoryPlace {
  if (git !== undefined) return { kind: 'git', spec: { ...git, ref: git.ref ?? 'main' } }
  if (helm !== undefined) return { kind: 'helm', spec: helm }
  if (oci !== undefined) return { kind: 'oci', spec: oci }
  throw new Error('a repository without a source passed its schema')
}

/** For columns and messages: the address, and what of it is wanted. */
export function placeTexts(spec: RepositorySpec): { url: string; ref: string } {
  const place = placeOf(spec)
  if (place.kind === 'git') return { url: place.spec.url, ref: place.spec.semver ?? place.spec.ref }
  if (place.kind === 'helm') return { url: place.spec.url, ref: 'index' }
  return { url: place.spec.url, ref: place.spec.digest ?? place.spec.semver ?? place.spec.tag ?? '' }
}

const SERVICE_ACCOUNT = /^([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\/)?[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/

export const syncOptionsSchema = z.strictObject({
  prune: z.boolean().default(true).describe('Objects that left the manifests are deleted; false keeps and reports them.'),
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
    .describe("More than this part of a service's objects, and more than 5, waits for a person."),
  drift: z
    .enum(['correct', 'report', 'pause'])
    .default('correct')
    .describe(
      'A foreign change of a field that we own. correct: put back at once. report: only shown. pause: shown, and the object gets no new document until it is gone.',
    ),
  createNamespace: z.boolean().default(true).describe('Makes the namespace of the service where there is none.'),
  force: z
    .boolean()
    .default(true)
    .describe("Takes fields from other managers (Git wins). Off: a conflict is shown with the other manager's name."),
  takeover: z.boolean().default(false).describe("Adopts objects that carry another owner's mark."),
  healthDeadline: durationSchema.default('10m').describe('How long Progressing may last before it counts as Degraded.'),
  // What follows came later. Absent is the default: a row that names none of it stays the same bytes.
  mode: z.enum(['auto', 'manual']).optional().describe("manual: a revision waits for a person's skerry sync. Default auto."),
  waitForHealth: z.boolean().optional().describe('A wave waits for the health of the one before. Default true.'),
  driftAdditions: z
    .enum(['ignore', 'report'])
    .optional()
    .describe('Fields that others added inside objects of ours are listed. Default ignore.'),
  serviceAccount: z
    .string()
    .regex(SERVICE_ACCOUNT, 'expected the name of a ServiceAccount, or namespace/name')
    .optional()
    .describe("Requests are made as this ServiceAccount: a name in the service's namespace, or namespace/name."),
  namespaceLabels: labelsSchema.optional().describe('Labels of the namespace that createNamespace makes.'),
  namespaceAnnotations: z
    .record(z.string().max(317), z.string().max(4_096))
    .optional()
    .describe('Annotations of the namespace that createNamespace makes.'),
  deleteNamespace: z.boolean().optional().describe('The namespace that createNamespace made goes with the service. Default false.'),
  enforceNamespace: z
    .boolean()
    .optional()
    .describe("An object that names another namespace than the service's is an error. Default false."),
  waitForAddress: z
    .boolean()
    .optional()
    .describe('An Ingress or a load balancer without an address is not healthy. Default false: edge clusters have none to give.'),
})
export type SyncOptions = z.infer<typeof syncOptionsSchema>

/** Fields that are left to others: neither compared nor sent. All given conditions must hold; `group`, `namespace` and `name` left out are any. */
export const ignoreRuleSchema = z
  .strictObject({
    group: z.string().max(253).optional().describe('API group, such as apps; left out it is any, "" is the core group.'),
    kind: z.string().min(1).max(63).describe('Kind of the objects, such as Deployment.'),
    namespace: z.string().max(63).optional().describe('Namespace of the objects; left out it is any.'),
    name: z.string().max(253).optional().describe('Name of the object; left out it is any.'),
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
      .describe('Fields as JSON pointers (RFC 6901), such as /spec/replicas; one that points nowhere is no error.'),
    managers: z
      .array(z.string().min(1).max(128))
      .min(1)
      .max(20)
      .optional()
      .describe('Field managers: whatever one of them owns is theirs.'),
  })
  .refine(({ jsonPointers, managers }) => jsonPointers !== undefined || managers !== undefined, {
    message: 'expected jsonPointers or managers',
    when: isMapping,
  })
export type IgnoreRule = z.infer<typeof ignoreRuleSchema>

/** Another service of the same clusters that must be Healthy first. */
export const dependencySchema = z.strictObject({
  name: nameSchema.describe('The other service.'),
  project: nameSchema.optional().describe('Its project. Default: that of this service.'),
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
    name: nameSchema.optional().describe('By which values files of others name it: $NAME/….'),
    render: renderSchema.optional().describe("Default: the service's render."),
    filesOnly: z.boolean().optional().describe('Nothing is rendered of it: others take files from it. Default false.'),
  })
  .refine(picksOne, { message: PICKS_ONE, when: isMapping })
  .refine(versionsChart, { message: VERSIONS_CHART, when: isMapping })
export type NamedSource = z.infer<typeof namedSourceSchema>

const serviceShape = z.strictObject({
  source: sourceSchema.optional().describe('Where its files come from. Either this or sources has to be there.'),
  sources: z
    .array(namedSourceSchema)
    .min(1)
    .max(20)
    .optional()
    .describe('Several places, whose objects are one set; values files of one may be named by another.'),
  render: renderSchema.optional().describe('How files become objects, and what is changed in these.'),
  config: configDataSchema
    .optional()
    .describe("Variables of templates: configFrom in its order < config < overrides in their order < the cluster's own."),
  configFrom: z
    .array(
      z.strictObject({
        name: nameSchema.describe('A Config of the same project.'),
        optional: z.boolean().optional().describe('It may be missing. Default false: that is an error.'),
      }),
    )
    .max(50)
    .optional()
    .describe('Configs whose data and secrets are variables of templates; later ones win.'),
  overrides: z.array(overrideSchema).max(200).optional().describe('What is different in some clusters; later ones win.'),
  targets: z
    .strictObject({
      selector: labelSelectorSchema.describe('The clusters that get it, by their labels; {} is every cluster.'),
      exclude: z
        .array(labelSelectorSchema)
        .default([])
        .describe('And not these: a cluster that one of the selectors matches gets nothing.'),
    })
    .describe('Which clusters get it.'),
  namespace: nameSchema.optional().describe('Given to namespaced objects that name none. Without it such objects are an error.'),
  sync: syncOptionsSchema.default(() => syncOptionsSchema.parse({})).describe('How it is applied in each cluster.'),
  deletionPolicy: z
    .enum(['prune', 'orphan'])
    .default('prune')
    .describe(
      'What happens to its objects when the service goes, or a cluster leaves its targets: prune deletes them, orphan leaves them there.',
    ),
  protect: z.boolean().default(false).describe('Nothing of it is removed or pruned without a person.'),
  ignore: z.array(ignoreRuleSchema).max(100).optional().describe('Fields that are left to others: neither compared nor sent.'),
  health: z.array(serviceHealthSchema).max(50).optional().describe('Health of further kinds, in CEL over their members.'),
  dependsOn: z.array(dependencySchema).max(50).optional().describe('Services of the same clusters that must be Healthy first.'),
})
export const serviceSpecSchema = serviceShape
  .refine(({ source, sources }) => (source === undefined) !== (sources === undefined), {
    message: 'expected source or sources',
    when: isMapping,
  })
  .refine(({ sources }) => hasNoDouble(namesIn(sources)), { message: 'two sources have the same name', path: ['sources'], when: isMapping })
export type ServiceSpec = z.infer<typeof serviceSpecSchema>

/** Of a list that may be wrong still. */
const namesIn = (sources: unknown): unknown[] =>
  (Array.isArray(sources) ? sources : []).flatMap((one: { name?: unknown } | null | undefined) => one?.name ?? [])
const hasNoDouble = (names: readonly unknown[]): boolean => new Set(names).size === names.length

/** One list, whichever of the two forms was written. */
export const sourcesOf = ({ source, sources }: Pick<ServiceSpec, 'source' | 'sources'>): readonly NamedSource[] =>
  sources ?? (source === undefined ? [] : [source])
/** For columns and messages: `apps/podinfo`, `charts/podinfo ^6`. */
export const sourceText = ({ repository, path, chart, version }: ServiceSource): string =>
  `${repository}/${chart ?? path}${version === undefined ? '' : ` ${version}`}`

/** A cluster comes into being by joining; people write its labels. `revoked` stops its agent from syncing, what is applied stays. */
export const clusterSpecSchema = z.strictObject({
  revoked: z.boolean().default(false).describe('Its agent syncs no more; what is applied stays.'),
  config: configDataSchema.optional().describe('Variables of this cluster, over those of every service.'),
  overrides: z
    .array(clusterOverrideSchema)
    .max(200)
    .optional()
    .describe('For one service each, over everything that the service itself says.'),
})
export type ClusterSpec = z.infer<typeof clusterSpecSchema>

export const joinTokenSpecSchema = z.strictObject({
  expires: durationSchema.default('1h'),
  uses: z.number().int().min(1).max(10_000).default(1),
  labels: labelsSchema.default({}).describe('Given to every cluster that joins with it.'),
})
export const apiTokenSpecSchema = z.strictObject({
  name: nameSchema.describe('Who uses it: it stands in events, orders and confirmations.'),
  role: z
    .enum(TOKEN_ROLES)
    .default('viewer')
    .describe('A built-in role, or none: only role bindings of the name count. admin is fleet-admin.'),
  projects: z.array(nameSchema).min(1).max(100).optional().describe('The token has no right outside of these projects.'),
  expires: z.union([durationSchema, z.literal('never')]).default('90d'),
})

export type JoinTokenSpec = z.infer<typeof joinTokenSpecSchema>

const head = { apiVersion: z.literal(API_VERSION).describe('Version of this form of resources.') }
const KIND_MEANING = 'Which kind of resource it is.'
const METADATA_MEANING = 'Name, project and labels.'
export const repositorySchema = z.strictObject({
  ...head,
  kind: z.literal('Repository').describe(KIND_MEANING),
  metadata: projectMetadata.describe(METADATA_MEANING),
  spec: repositorySpecSchema.describe('Where manifests or charts come from.'),
})
export const serviceSchema = z.strictObject({
  ...head,
  kind: z.literal('Service').describe(KIND_MEANING),
  metadata: projectMetadata.describe(METADATA_MEANING),
  spec: serviceSpecSchema.describe('What is delivered, and to which clusters.'),
})
export const clusterSchema = z.strictObject({
  ...head,
  kind: z.literal('Cluster').describe(KIND_MEANING),
  metadata: fleetMetadata.describe('Name and labels.'),
  spec: clusterSpecSchema.default(() => clusterSpecSchema.parse({})).describe('What is particular to this cluster.'),
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
  spec: healthRuleSpecSchema.describe('How the objects of one kind are judged, for all services of a project or of the fleet.'),
})

export const projectSchema = z.strictObject({
  ...head,
  kind: z.literal('Project').describe(KIND_MEANING),
  metadata: boundaryMetadata.describe('Name and labels.'),
  spec: projectSpecSchema.describe('What the resources of the project may be and where they may go.'),
})
export const roleSchema = z.strictObject({
  ...head,
  kind: z.literal('Role').describe(KIND_MEANING),
  metadata: z
    .strictObject({
      name: nameSchema.refine((name) => !isBuiltIn(name), 'is the name of a built-in role').describe('Name, the only one in the fleet.'),
      labels: labelsSchema.default({}).describe('Labels of the resource itself, for -l.'),
    })
    .describe('Name and labels.'),
  spec: roleSpecSchema.describe('What may be done. A RoleBinding says by whom, and where.'),
})
export const roleBindingSchema = z
  .strictObject({
    ...head,
    kind: z.literal('RoleBinding').describe(KIND_MEANING),
    metadata: z
      .strictObject({
        name: nameSchema.describe('Name, the only one of a binding in its project, or of those of the fleet.'),
        project: nameSchema.optional().describe('The binding gives its role in this project only.'),
        labels: labelsSchema.default({}).describe('Labels of the resource itself, for -l.'),
      })
      .describe(METADATA_MEANING),
    spec: roleBindingSpecSchema.describe('Who gets a role, and where.'),
  })
  .refine(({ metadata, spec }) => (metadata?.project === undefined) !== (spec?.projects === undefined), {
    message: 'expected spec.projects (names, or "*" for the whole fleet) or metadata.project, and not both',
    path: ['spec', 'projects'],
    when: isMapping,
  })

/** What `skerry apply -f` takes. */
export const applicableSchema = z.discriminatedUnion('kind', [
  repositorySchema,
  serviceSchema,
  clusterSchema,
  configSchema,
  healthRuleSchema,
  projectSchema,
  roleSchema,
  roleBindingSchema,
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

/** Clusters, projects, and health rules for the whole fleet, belong to no project; their project is the empty string in keys and columns. */
export const FLEET = ''
export const projectOf = ({ metadata }: Applicable): string => ('project' in metadata ? metadata.project : undefined) ?? FLEET
