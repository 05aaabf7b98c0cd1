// An agent's report about its cluster: typed rows, one last state for each key. Enums that are sent have a fallback,
// because the other side may be newer.
import { z } from 'zod'
import { HEALTH_WORDS, type HealthWord } from '../kube/health-object.ts'
import { traceIdSchema } from '../runtime/trace-id.ts'
import { siteStatusSchema } from './site-config.ts'

export const SYNC_WORDS = ['Synced', 'OutOfSync', 'Unknown'] as const
/** In the order in which people want to see them. */
export const HEALTH_WORST = [
  'Degraded',
  'Missing',
  'Unknown',
  'Progressing',
  'Suspended',
  'Healthy',
] as const satisfies readonly HealthWord[]
export const SYNC_WORST = ['OutOfSync', 'Unknown', 'Synced'] as const satisfies readonly SyncWord[]
export type SyncWord = (typeof SYNC_WORDS)[number]
/** Nothing is waited for. */
export const isWell = (health: HealthWord): boolean => health === 'Healthy' || health === 'Suspended'
/** Without words, the result is the best one. */
export const worstOf = <Word extends string>(order: readonly Word[], words: readonly Word[]): Word =>
  order.find((word) => words.includes(word)) ?? (order.at(-1) as Word)

const sync = z.enum(SYNC_WORDS).catch('Unknown')
const health = z.enum(HEALTH_WORDS).catch('Unknown')
/** CamelCase, stable: what tools match on. */
const reason = z.string().max(128)
/** For people, deterministic (sorted, counted): names the object, the cause in the API server's or the rule's words,
 *  and what to do next. */
const message = z.string().max(4096)
const ms = z.number().int().nonnegative()

/** The limit of one object; a workload with more images reports the first ones. */
export const IMAGES_MAX = 20
export const IMAGE_CHARS_MAX = 512

/** Warnings of one object that an agent reports, and characters of each. */
export const WARNINGS_MAX = 5
export const WARNING_CHARS_MAX = 600

/** Key `<project>/<service>/<group>/<kind>/<namespace>/<name>`. */
export const objectStatusSchema = z.object({
  sync,
  health,
  reason,
  message,
  sinceMs: ms,
  /** Image references of a workload, as its live pod template names them: sorted, each once. What was pulled for a tag
   *  is not known to the agent. Absent means that the kind runs none, it is not there, or its sender does not say. */
  images: z.array(z.string().max(IMAGE_CHARS_MAX)).max(IMAGES_MAX).optional(),
  /** Warnings of the API server about the last write of the object: a deprecated version, a violated security standard.
   *  Sorted, each once. Absent means that there are none, or the sender does not report them. */
  warnings: z.array(z.string().max(1_024)).max(20).optional(),
})
export type ObjectStatus = z.infer<typeof objectStatusSchema>

/** `trace`: CO1; absent where the row of the revision has none. */
const progressPoint = z.object({ commit: z.string().max(64), digest: z.string().max(64), atMs: ms, trace: traceIdSchema })
export const pruneRefusalSchema = z.object({
  /** `confirmationToken` of the revision or removal order: a confirmation is for this one only. */
  digest: z.string().max(64),
  /** `Kind namespace/name` (deletionName), what can be lost first; `count` is the whole number when there are more than
   *  fit. */
  names: z.array(z.string().max(512)).max(200),
  count: z.number().int().nonnegative(),
  ownedCount: z.number().int().nonnegative(),
  why: message,
  /** The digest of the confirmation's digest and names: a confirmation at the site names it. */
  list: z.string().max(64).optional(),
  /** Only the named objects wait; the other deletions continue. Absent means that nothing of the revision is deleted.
   */
  only: z.boolean().optional(),
})
export type PruneRefusal = z.infer<typeof pruneRefusalSchema>

/** Key `<project>/<service>`. Absent progress: never got that far. */
export const serviceStatusSchema = z.object({
  sync,
  health,
  reason,
  message,
  sinceMs: ms,
  received: progressPoint.optional(),
  applied: progressPoint.optional(),
  healthy: progressPoint.optional(),
  objectCount: z.number().int().nonnegative(),
  healthyCount: z.number().int().nonnegative(),
  /** Objects that need a person's yes before they are pruned. */
  refusal: pruneRefusalSchema.optional(),
  /** A person at the site said that nothing is changed for now. */
  held: z.object({ by: z.string().max(256), why: z.string().max(1_024), sinceMs: ms, untilMs: ms.optional() }).optional(),
  /**
   * A removal order was carried out: nothing of this service is left in the cluster (policy prune), or its objects were
   * released (orphan).
   */
  removed: z.boolean().optional(),
  /** `atMs` of the removal order that `removed` is the answer to: an answer to an older order is no answer to this one.
   */
  removedOrderMs: ms.optional(),
})
export type ServiceStatus = z.infer<typeof serviceStatusSchema>

/** Key `cluster`. */
export const clusterStatusSchema = z.object({
  agentVersion: z.string().max(64),
  kubernetesVersion: z.string().max(64),
  /** UID of the kube-system namespace. */
  clusterUid: z.string().max(64),
  nodeCount: z.number().int().nonnegative().optional(),
  /** States of the whole agent that a person should know: disk_full, kube_unreachable, superseded, … */
  problems: z.array(z.object({ code: z.string().max(64), message, sinceMs: ms })).max(20),
})
export type ClusterStatus = z.infer<typeof clusterStatusSchema>

/** Entries of `apis`, versions and kinds together, and characters of all of it as JSON. */
export const FACTS_APIS_MAX = 3_000
export const FACTS_CHARS_MAX = 60_000

/** Key `cluster`. FA1: what the cluster serves, by complete discovery. */
export const factsStatusSchema = z.object({
  /** As /version says. */
  kubernetesVersion: z.string().max(64),
  /** `v1`, `apps/v1` → kinds, sorted. */
  apis: z
    .record(z.string().max(320), z.array(z.string().max(256)))
    .refine((apis) => Object.values(apis).reduce((sum, kinds) => sum + 1 + kinds.length, 0) <= FACTS_APIS_MAX),
  /** There are too many: kinds are left out. */
  cut: z.boolean().optional(),
})
export type FactsStatus = z.infer<typeof factsStatusSchema>

const count = z.number().int().nonnegative()

/** Key `metrics`. Sent only by agents that are told to (--report-metrics). Totals count from the start of the process.
 */
export const agentMetricsSchema = z.object({
  atMs: ms,
  /** The interval of these rows. */
  everyMs: ms,
  startedMs: ms,
  cpuSeconds: z.number().nonnegative(),
  residentBytes: count,
  enforcing: z.boolean(),
  diskWritable: z.boolean(),
  replicaRows: count,
  outboxRows: count,
  requests: count,
  sentBytes: count,
  receivedBytes: count,
  todayBytes: count,
  resyncCompared: count,
  resyncDifferences: count,
})
export type AgentMetricsStatus = z.infer<typeof agentMetricsSchema>

/** Key as an object's. The newest drift of that object. */
export const driftStatusSchema = z.object({
  paths: z.array(z.string().max(512)).max(50),
  /** The managers that own these paths now; '' if nobody does. */
  manager: z.string().max(256),
  /** The object was deleted outside Git: no field has a path or a manager. Absent means that it was not, or the sender
   *  does not say. */
  deleted: z.boolean().optional(),
  action: z.enum(['healed', 'reported', 'contested', 'failed']).catch('reported'),
  detectedMs: ms,
  healedMs: ms.optional(),
  count: z.number().int().positive(),
})
export type DriftStatus = z.infer<typeof driftStatusSchema>

/** Key: `<atMs padded to 13 digits>-<counter>`; append-only, the server copies it into the event stream once (PU2). */
export const eventStatusSchema = z.object({
  atMs: ms,
  type: z.enum(['Normal', 'Warning']).catch('Normal'),
  reason,
  message,
  service: z.string().max(256).optional(),
  object: z.string().max(512).optional(),
  /** CO1: of the revision that was in force in the cluster. */
  trace: traceIdSchema,
  /** How often it happened before the server heard of it, when more than once; `atMs` is the last time. */
  count: z.number().int().positive().optional(),
})
export type EventStatus = z.infer<typeof eventStatusSchema>

export const STATUS_SCHEMAS = {
  object: objectStatusSchema,
  service: serviceStatusSchema,
  cluster: clusterStatusSchema,
  facts: factsStatusSchema,
  site: siteStatusSchema,
  agent: agentMetricsSchema,
  drift: driftStatusSchema,
  event: eventStatusSchema,
} as const
export type StatusKind = keyof typeof STATUS_SCHEMAS
export const isStatusKind = (kind: string): kind is StatusKind => Object.hasOwn(STATUS_SCHEMAS, kind)
