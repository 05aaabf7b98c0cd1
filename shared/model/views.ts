// The views of the admin API: resources with their status, a service in a cluster, an object, questions for a person.
// The server makes these, the command line prints them. Times are ms since the epoch. An absent list filter means all.

import { z } from 'zod'
import { HEALTH_WORDS } from '../kube/health-object.ts'
import { problemSchema } from '../runtime/error.ts'
import { roleBindingSpecSchema, roleSpecSchema, TOKEN_ROLES } from './access.ts'
import { rightSourceSchema } from './access-views.ts'
import { writtenBy } from './commits.ts'
import { LIST_LIMIT_MAX } from './constants.ts'
import { removalOrderSchema } from './desired.ts'
import { healthRuleSpecSchema } from './health-rules.ts'
import { projectSpecSchema } from './projects.ts'
import { removalViewSchema } from './removal-views.ts'
import { configSpecSchema, valueStateSchema } from './render.ts'
import { resourceHead } from './resource-head.ts'
import { clusterSpecSchema, repositorySpecSchema, serviceSpecSchema } from './resources.ts'
import { siteStatusSchema } from './site-config.ts'
import { driftStatusSchema, factsStatusSchema, pruneRefusalSchema, SYNC_WORDS } from './status.ts'
import { suspensionViewSchema } from './suspension.ts'

export { LIST_LIMIT_MAX }
export const LIST_LIMIT_DEFAULT = 100
/** The limit of one request to the admin API. */
export const ADMIN_BODY_BYTES_MAX = 4 * 1_024 * 1_024
export const APPLY_RESOURCES_MAX = 500

/** By cluster, then key; by the object's own name; by the time of the last change of state; the worst first. */
export const OBJECT_SORTS = ['cluster', 'name', 'newest', 'oldest', 'health'] as const
export type ObjectSort = (typeof OBJECT_SORTS)[number]
export const PLACEMENT_SORTS = ['cluster', 'name', 'health'] as const
export type PlacementSort = (typeof PLACEMENT_SORTS)[number]
export const CLUSTER_SORTS = ['name', 'seen'] as const
/** The worst words over their clusters first; the most clusters first. */
export const SERVICE_SORTS = ['name', 'health', 'clusters'] as const
export type ClusterSort = (typeof CLUSTER_SORTS)[number]

const ms = z.number().int()

/** Sync and health with the reason, the time and the next step. `next` is empty only when nothing is to be done. */
const state = {
  sync: z.enum(SYNC_WORDS).catch('Unknown'),
  health: z.enum(HEALTH_WORDS).catch('Unknown'),
  reason: z.string(),
  message: z.string(),
  next: z.string(),
  sinceMs: ms.nullable(),
}
export const stateSchema = z.object(state)
export type State = z.infer<typeof stateSchema>

export const LIVENESS_WORDS = ['Online', 'Offline', 'NeverSeen', 'Revoked'] as const
export type LivenessWord = (typeof LIVENESS_WORDS)[number]
/** Beside the two axes: is what we show now, or what was last known? */
export const livenessSchema = z.object({
  word: z.enum(LIVENESS_WORDS).catch('Offline'),
  /** The time of the last request of its agent. Null if never. */
  lastSeenMs: ms.nullable(),
})
export type Liveness = z.infer<typeof livenessSchema>

/** Members of `metadata` that the server writes: `get -o yaml` shows them and `apply -f` ignores them. */
export const READ_ONLY_METADATA = ['uid', 'generation', 'version', 'createdMs', 'updatedMs', 'deletingMs'] as const

/** Suspensions that concern it, or a part of it; the widest first. */
const suspended = { suspensions: z.array(suspensionViewSchema).default([]) }

const head = resourceHead
const counts = z.object({ total: ms, synced: ms, healthy: ms, offline: ms })

export const repositoryViewSchema = z.object({
  ...head,
  kind: z.literal('Repository'),
  spec: repositorySpecSchema,
  status: z.object({
    ready: z.boolean(),
    commit: z.string().nullable(),
    ...writtenBy,
    /** That a semver range chose. */
    tag: z.string().nullable(),
    fetchedMs: ms.nullable(),
    /** When the last look ended, well or not. Null means that there was none since the server started. */
    lastReadMs: ms.nullable().default(null),
    /** In the past: it is being read, or waits for its turn. */
    nextReadMs: ms.nullable().default(null),
    reason: z.string(),
    message: z.string(),
    next: z.string(),
    sinceMs: ms.nullable(),
    problems: z.array(problemSchema),
  }),
})
export type RepositoryView = z.infer<typeof repositoryViewSchema>

export const serviceViewSchema = z.object({
  ...head,
  kind: z.literal('Service'),
  spec: serviceSpecSchema,
  status: z.object({
    ...state,
    commit: z.string().nullable(),
    ...writtenBy,
    objectCount: ms,
    renderedMs: ms.nullable(),
    clusters: counts,
    /** In how many ways its clusters get it. */
    variants: ms.default(1),
    /** By repository: what was read of it, where there are several, or a program took part. */
    revisions: z.record(z.string(), z.string()).default({}),
    /** The programs that took part in the last render: `{ helm: '4.3.1' }`. */
    tools: z.record(z.string(), z.string()).default({}),
    /** Warnings of the last good render; only the first ones. */
    warnings: z.array(problemSchema).default([]),
    /** Problems of the last render: `path` is `file:line:column` where there is a line. */
    problems: z.array(problemSchema),
    /**
     * The revision at which the last render first failed with its present error, and its author. Null means that it did
     * not fail, or nothing was read.
     */
    failedAt: z.object({ commit: z.string(), author: z.string().nullable(), subject: z.string().optional() }).nullable().default(null),
    /** The argument of `skerry confirm`, when this service waits for a person. */
    confirmationId: z.string().nullable(),
    /** PJ11: targeted clusters that the project does not select; not named, they may be of others. Absent in lists. */
    leftOut: ms.exactOptional(),
    ...suspended,
  }),
})
export type ServiceView = z.infer<typeof serviceViewSchema>
export const serviceListSchema = z.object({
  items: z.array(serviceViewSchema),
  continue: z.string().nullable(),
  /** How many match the filters; absent without filters and order. */
  total: ms.exactOptional(),
})
export type ServiceList = z.infer<typeof serviceListSchema>

export const clusterViewSchema = z.object({
  ...head,
  kind: z.literal('Cluster'),
  spec: clusterSpecSchema,
  status: z.object({
    ...state,
    liveness: livenessSchema,
    joinedMs: ms,
    agentVersion: z.string().nullable(),
    kubernetesVersion: z.string().nullable(),
    /**
     * The facts for templates: its version, and its API by group and version. Null if its agent has not reported yet,
     * or in a list.
     */
    facts: factsStatusSchema.nullable().default(null),
    /** Values that its agent reports of ConfigMaps (siteConfig), by `namespace/name`. Null means none, or in a list. */
    site: siteStatusSchema.nullable().default(null),
    nodeCount: ms.nullable(),
    services: counts,
    ...suspended,
    problems: z.array(z.object({ code: z.string(), message: z.string(), sinceMs: ms })),
  }),
})
export type ClusterView = z.infer<typeof clusterViewSchema>

export const configViewSchema = z.object({
  ...head,
  kind: z.literal('Config'),
  /** `hmac:…` in the place of each secret. */
  spec: configSpecSchema,
  status: z.object({
    /** `repository/apps`, `service/web`: it cannot be deleted while they name it. Null in lists: not looked for. */
    usedBy: z.array(z.string()).nullable(),
    /** Sources of spec.valueFrom. Null in lists. */
    sources: z.array(valueStateSchema).nullable(),
  }),
})
export type ConfigView = z.infer<typeof configViewSchema>

export const healthRuleViewSchema = z.object({
  ...head,
  kind: z.literal('HealthRule'),
  spec: healthRuleSpecSchema,
  status: z.object({
    /** Clusters whose agents are given the rule. Null in lists: not counted. */
    clusters: ms.nullable(),
  }),
})
export type HealthRuleView = z.infer<typeof healthRuleViewSchema>

/** A resource that its Project does not allow, as a Problem: `path` names the resource and the field. */
export const violationSchema = z.object({ resource: z.string(), path: z.string(), message: z.string() })
export type ViolationView = z.infer<typeof violationSchema>
export const projectViewSchema = z.object({
  ...head,
  kind: z.literal('Project'),
  spec: projectSpecSchema,
  status: z.object({
    services: ms,
    /** Repositories, services and configs that the Project does not allow. Null in lists: not looked for. */
    violations: z.array(violationSchema).nullable(),
    /** Absent means none, or the server does not say. */
    warnings: z.array(z.string()).exactOptional(),
  }),
})
export type ProjectView = z.infer<typeof projectViewSchema>
/** `status.builtIn`: it exists in every installation, and cannot be changed. */
export const roleViewSchema = z.object({
  ...head,
  kind: z.literal('Role'),
  spec: roleSpecSchema,
  status: z.object({ builtIn: z.boolean() }),
})
export type RoleView = z.infer<typeof roleViewSchema>

export const roleBindingViewSchema = z.object({
  ...head,
  kind: z.literal('RoleBinding'),
  spec: roleBindingSpecSchema,
  status: z.object({
    /** False: the role does not exist, and the binding gives nothing. */
    roleExists: z.boolean(),
  }),
})
export type RoleBindingView = z.infer<typeof roleBindingViewSchema>

/** Correlation id of the change. Absent means that the revision has none. */
const correlated = { trace: z.string().optional() }
const point = z.object({ commit: z.string(), ...writtenBy, digest: z.string(), atMs: ms, ...correlated }).nullable()
/** One service in one cluster. */
export const placementViewSchema = z.object({
  project: z.string(),
  service: z.string(),
  cluster: z.string(),
  liveness: livenessSchema,
  ...state,
  /** The desired state. Null while it goes away. */
  desired: z.object({ commit: z.string(), ...writtenBy, digest: z.string(), count: ms, ...correlated }).nullable(),
  received: point,
  applied: point,
  healthy: point,
  objectCount: ms,
  healthyCount: ms,
  removal: removalOrderSchema.nullable(),
  refusal: pruneRefusalSchema.nullable(),
  confirmationId: z.string().nullable(),
  ...suspended,
})
export type PlacementView = z.infer<typeof placementViewSchema>

export const objectViewSchema = z.object({
  project: z.string(),
  service: z.string(),
  cluster: z.string(),
  liveness: livenessSchema,
  group: z.string(),
  kind: z.string(),
  namespace: z.string(),
  name: z.string(),
  ...state,
  drift: driftStatusSchema.nullable(),
  /** As the live pod template names them; absent for what runs none. */
  images: z.array(z.string()).optional(),
  /** Warnings of the API server about the last write; absent if there are none. */
  warnings: z.array(z.string()).optional(),
})
export type ObjectView = z.infer<typeof objectViewSchema>

export const eventViewSchema = z.object({
  id: ms,
  atMs: ms,
  type: z.string(),
  reason: z.string(),
  message: z.string(),
  cluster: z.string().nullable(),
  project: z.string().nullable(),
  service: z.string().nullable(),
  object: z.string().nullable(),
  /** Correlation id of the change that it tells of; absent if it tells of none. */
  trace: z.string().exactOptional(),
})
export type EventView = z.infer<typeof eventViewSchema>

export const confirmationViewSchema = z.object({
  id: z.string(),
  kind: z.string(),
  project: z.string(),
  service: z.string(),
  cluster: z.string().nullable(),
  /**
   * For several clusters whose agents ask about the same objects of the same revision: their number, and the first of
   * them. A confirmation is for those up to `upTo`.
   */
  clusters: z.object({ count: z.number(), first: z.array(z.string()), upTo: z.number() }).exactOptional(),
  /** Clusters, or objects as `Kind namespace/name`: exactly the items of a confirmation. */
  names: z.array(z.string()),
  why: z.string(),
  createdMs: ms,
  confirmedMs: ms.nullable(),
  confirmedBy: z.string().nullable(),
  /** The person who decided to keep the objects, and why. Absent means that nobody did. It can still be confirmed. */
  refused: z.object({ atMs: ms, by: z.string(), why: z.string() }).exactOptional(),
  /** The deletions of its confirmation, for a removal; only in the answer for one id. */
  removals: z.array(removalViewSchema).exactOptional(),
})
export const refuseConfirmationSchema = z.strictObject({ reason: z.string().trim().min(1).max(500) })
export type ConfirmationView = z.infer<typeof confirmationViewSchema>

export const joinTokenViewSchema = z.object({
  id: z.string(),
  state: z.string(),
  uses: ms,
  usesLeft: ms,
  labels: z.record(z.string(), z.string()),
  createdMs: ms,
  expiresMs: ms,
  createdBy: z.string(),
})
export type JoinTokenView = z.infer<typeof joinTokenViewSchema>
/** The only answer that ever holds the token itself. */
export const createdJoinTokenSchema = z.object({ ...joinTokenViewSchema.shape, token: z.string() })

export const apiTokenViewSchema = z.object({
  id: z.string(),
  name: z.string(),
  role: z.enum(TOKEN_ROLES),
  /** It has no right outside of these. Null means no such limit. */
  projects: z.array(z.string()).nullable().default(null),
  state: z.string(),
  createdMs: ms,
  createdBy: z.string().nullable(),
  expiresMs: ms.nullable(),
  lastUsedMs: ms.nullable(),
  lastUsedFrom: z.string().nullable(),
})
export type ApiTokenView = z.infer<typeof apiTokenViewSchema>
/** The only answer that ever holds the token itself. */
export const createdApiTokenSchema = z.object({ ...apiTokenViewSchema.shape, token: z.string() })

const restoreServiceViewSchema = z.object({
  project: z.string(),
  service: z.string(),
  /** `place`: the agent does not have it. `unclaimed`: the server knows nothing of it; it is kept. */
  what: z.enum(['change', 'place', 'remove', 'let go', 'unclaimed', 'resume']).catch('change'),
  /** Commits: what the agent has, what the server would send. */
  from: z.string().nullable(),
  to: z.string().nullable(),
})
export type RestoreServiceView = z.infer<typeof restoreServiceViewSchema>
const restoreClusterViewSchema = z.object({
  cluster: z.string(),
  lastSeenMs: ms.nullable(),
  /** Made contact since the restore was found out. */
  heard: z.boolean(),
  /**
   * The position that the server once signed for this cluster, and the one that it knows now; null when its agent
   * proved nothing.
   */
  behind: z.object({ epoch: ms, ordinal: ms, provenEpoch: ms, provenOrdinal: ms }).nullable(),
  /** Services that stay as they are. */
  same: ms,
  /** All others. */
  services: z.array(restoreServiceViewSchema),
})
export type RestoreClusterView = z.infer<typeof restoreClusterViewSchema>
export const restorePlanViewSchema = z.object({
  pending: z.boolean(),
  sinceMs: ms.nullable(),
  /** The argument of `confirm` for exactly these clusters and services. Null when nothing is pending. */
  token: z.string().nullable(),
  clusters: z.array(restoreClusterViewSchema),
  /** Agents that ask for a session and are not known here. */
  unknownAgents: z.array(z.object({ agentId: z.string(), tries: ms, lastMs: ms })),
})
export type RestorePlanView = z.infer<typeof restorePlanViewSchema>
export const restoreConfirmSchema = z.strictObject({ token: z.string().min(1).max(64) })
export const restoreConfirmedSchema = z.object({ clusters: ms, marked: ms })

export const serverKeyViewSchema = z.object({
  /** The part of the key that join tokens carry. */
  fingerprint: z.string(),
  publicKey: z.string(),
  /** `earlier`: it signs no more, but agents still trust it; `revoked`: agents that heard of it do not. */
  state: z.string(),
  /** Null if it is the server's first, or as good as that. */
  sinceMs: ms.nullable(),
})
export type ServerKeyView = z.infer<typeof serverKeyViewSchema>
export const resealAnswerSchema = z.object({
  configs: z.number(),
  secrets: z.number(),
  /** Sealed under a key that this server does not have. */
  unopened: z.number(),
})
export const keyRevokeSchema = z.strictObject({
  before: z
    .string()
    .regex(/^[0-9a-f]{32}$/, 'expected a fingerprint of 32 hex digits')
    .optional(),
})

export { listOf } from './list-page.ts'

export const DELETE_OUTCOMES = ['deleted', 'removing', 'waiting'] as const
/** `removing`: its clusters carry out removal orders. `waiting`: a person must confirm the exact names first. */
export const deleteAnswerSchema = z.object({
  outcome: z.enum(DELETE_OUTCOMES),
  clusters: z.array(z.string()),
  confirmation: confirmationViewSchema.nullable(),
})
export type DeleteAnswer = z.infer<typeof deleteAnswerSchema>

/** By the clock of the server: a read that ended before then was another one. */
export const refreshAnswerSchema = z.object({ requestedMs: ms })
export const webhookAnswerSchema = z.object({ url: z.string(), secret: z.string() }) // a read answers the mark of the secret
export const exchangedTokenSchema = z.object({ token: z.string() })
export const whoamiAnswerSchema = z.object({
  /** Id of the API token or the session. */
  id: z.string(),
  kind: z.enum(['token', 'user', 'workload']),
  name: z.string(),
  /** Null if its rights come from role bindings alone. */
  role: z.enum(TOKEN_ROLES).nullable(),
  /** Null for an API token. */
  provider: z.string().nullable(),
  subject: z.string().nullable(),
  email: z.string().nullable(),
  groups: z.array(z.string()),
  /** Projects that the credential is limited to. Null means no limit. */
  projects: z.array(z.string()).nullable().default(null),
  /** Each role that the caller has, and the binding that gives it. */
  roles: z.array(rightSourceSchema).default([]),
})
export type WhoamiAnswer = z.infer<typeof whoamiAnswerSchema>
export const versionAnswerSchema = z.looseObject({ version: z.string() })
