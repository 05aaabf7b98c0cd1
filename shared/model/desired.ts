// Rows of `desired`: what the server writes for a cluster and its agent enforces. An id's form is part of the protocol.
import { z } from 'zod'
import { type ObjectRef, parseRefKey, refKey } from '../kube/object.ts'
import type { ServiceId } from '../runtime/ids.ts'
import { traceIdSchema } from '../runtime/trace-id.ts'
import { boundsSchema } from './bounds.ts'
import { serviceHealthSchema } from './health-rules.ts'
import { dependencySchema, ignoreRuleSchema, type SyncOptions, syncOptionsSchema } from './resources.ts'
import { SITE_CONFIG_PREFIX, SITE_CONFIGS } from './site-config.ts'
import { SUSPENSION_PREFIX, SUSPENSIONS } from './suspension.ts'

export const serviceRowId = (id: ServiceId): string => `service/${id.project}/${id.service}`
/** Every object row of a service begins with this, and nothing else does: names hold no slash. */
export const objectRowPrefix = (id: ServiceId): string => `object/${id.project}/${id.service}/`
export const objectRowId = (id: ServiceId, ref: ObjectRef): string => objectRowPrefix(id) + refKey(ref)

/** Stands in the place of a service for the health rules that a cluster's agent shall know. No service has an empty
 *  name. */
export const HEALTH_RULES: ServiceId = { project: '', service: '' }
/** Rows of a cluster that are of no service: health rules, suspensions, and ConfigMaps to report. */
export const isFleetRows = ({ service }: ServiceId): boolean => service === HEALTH_RULES.service
export const fleetRowsPrefix = ({ project }: ServiceId): string =>
  project === SUSPENSIONS.project ? SUSPENSION_PREFIX : project === SITE_CONFIGS.project ? SITE_CONFIG_PREFIX : HEALTH_RULE_PREFIX
/** `project` is empty for a rule of the whole fleet. Agents that know no rules take these rows for rows of another
 *  kind, which they leave alone. */
export const healthRuleRowId = (project: string, name: string): string => `${HEALTH_RULE_PREFIX}${project}/${name}`
export const HEALTH_RULE_PREFIX = 'healthrule/'

export type RowId =
  | { kind: 'service'; id: ServiceId }
  | { kind: 'object'; id: ServiceId; ref: ObjectRef }
  | { kind: 'healthrule'; project: string; name: string }
  | { kind: 'other' }

/** Rows of a kind this version does not know are kept and left alone: a newer server may have a use for them. */
export function parseRowId(rowId: string): RowId {
  const [kind, project, service, ...rest] = rowId.split('/')
  if (kind === 'healthrule' && project !== undefined && service && rest.length === 0) return { kind, project, name: service }
  if (!project || !service) return { kind: 'other' }
  if (kind === 'service' && rest.length === 0) return { kind: 'service', id: { project, service } }
  const ref = kind === 'object' ? parseRefKey(rest.join('/')) : null
  return ref === null ? { kind: 'other' } : { kind: 'object', id: { project, service }, ref }
}

export const removalOrderSchema = z.object({
  /** `delete`: objects that hold data or objects of others only when `confirmed` names them. `prune`: from a server
   *  that had no such rule; carried out as `delete`. An agent without the rule cannot read `delete`, and so deletes
   *  nothing (RV5). */
  policy: z.enum(['prune', 'orphan', 'delete']),
  by: z.string(),
  atMs: z.number().int(),
  why: z.string(),
})
export type RemovalOrder = z.infer<typeof removalOrderSchema>
export const deletes = ({ policy }: Pick<RemovalOrder, 'policy'>): boolean => policy !== 'orphan'

/** NS1: of a namespace that is not changed. */
const UNREADABLE_MARKS = { 'skerry.dev/unreadable': '' }
export const isUnreadable = (marks: Readonly<Record<string, string>> = {}): boolean => Object.hasOwn(marks, 'skerry.dev/unreadable')

const written = syncOptionsSchema.shape
/** Sync options as an agent reads them. The server may be newer: options that this version does not know are left out,
 *  and a value that it cannot understand becomes the careful one, which deletes and overwrites nothing. */
const rowSyncSchema: z.ZodType<SyncOptions, unknown> = z.object({
  prune: written.prune.catch(false),
  pruneWhen: written.pruneWhen.catch('healthy'),
  maxPrunePercent: written.maxPrunePercent.catch(0),
  drift: written.drift.catch('report'),
  createNamespace: written.createNamespace.catch(false),
  force: written.force.catch(false),
  takeover: written.takeover.catch(false),
  healthDeadline: written.healthDeadline.catch('10m'),
  mode: written.mode.catch('manual'),
  waitForHealth: written.waitForHealth.catch(true),
  driftAdditions: written.driftAdditions.catch('ignore'),
  // Never more rights than intended: no account has this name.
  serviceAccount: written.serviceAccount.catch('skerry-unreadable/unreadable'),
  namespaceLabels: written.namespaceLabels.catch(UNREADABLE_MARKS),
  namespaceAnnotations: written.namespaceAnnotations.catch(UNREADABLE_MARKS),
  deleteNamespace: written.deleteNamespace.catch(false),
  enforceNamespace: written.enforceNamespace.catch(true),
  waitForAddress: written.waitForAddress.catch(true),
} satisfies Record<keyof SyncOptions, z.ZodType>)

/** Document of a `service/…` row. */
export const serviceRowSchema = z.object({
  /** The last commit that changed this revision's digest (RV2). */
  commit: z.string(),
  /** CO1: correlation id of the change that made the digest. Absent means a server without them wrote it. */
  trace: traceIdSchema,
  /** Set digest of the object rows of this revision (RV1). */
  digest: z.string(),
  count: z.number().int().nonnegative(),
  /** Where its namespaced objects go by default; created if `sync.createNamespace`. */
  namespace: z.string().optional(),
  sync: rowSyncSchema,
  /** PJ9: of its Project, in this cluster. Absent means that the project has no boundary, or the server knows none. */
  bounds: boundsSchema.optional(),
  protect: z.boolean().default(false),
  /** A person confirmed that this digest may prune past the guard. */
  pruneConfirmed: z.string().optional(),
  /** RM1: names of objects whose deletion a person confirmed with what is lost: of the revision that `pruneConfirmed`
   *  names, or of the removal order. Absent beside a `pruneConfirmed`: the sender confirms whole revisions. What a
   *  newer server means by another value confirms nothing. */
  confirmed: z.array(z.string()).catch([]).optional(),
  /** RP2: the server was set back to a backup and this digest is not what the cluster had; cleared by the next commit
   *  that changes it. What a newer server means by another value prunes nothing either. */
  restored: z.boolean().catch(true).optional(),
  /** RL5: it lacks something, and the cluster serves other kinds or another version than the one before was made for.
   *  Cleared by a person's yes. What a newer server means by another value prunes nothing either. */
  factsOnly: z.boolean().catch(true).optional(),
  /** Each as in the service's spec. Rules that this version cannot read make the revision incomplete: the last one
   *  stays in force. */
  ignore: z.array(ignoreRuleSchema).optional(),
  health: z.array(serviceHealthSchema).optional(),
  dependsOn: z.array(dependencySchema).optional(),
  /** `sync.mode: manual`: a person said that this digest may be applied. */
  synced: z.string().optional(),
  /**
   * Objects that another service of this cluster takes over with the same commit: released to it, deleted only if it
   * does not want them.
   */
  handover: z
    .array(
      z.object({
        object: z.string(),
        project: z.string(),
        service: z.string(),
        /** The digest that the taker's row had when this was written, where that one did not name the object yet. */
        after: z.string().optional(),
      }),
    )
    .optional(),
  /** Set: the service goes. Its object rows are gone already, its inventory decides what is removed. */
  removal: removalOrderSchema.optional(),
})
export type ServiceRow = z.infer<typeof serviceRowSchema>

/** The subject of a confirmation: a revision of the service, or one removal order. */
export const confirmationToken = ({ digest, removal }: Pick<ServiceRow, 'digest' | 'removal'>): string =>
  removal === undefined ? digest : `${digest.slice(0, 40)}-${removal.atMs}`
