// The permissions of a service in this cluster: by its Project, whose bounds came in its signed row, and by the policy
// of the site, which no server can widen. A refusal deletes nothing: refused objects stay named by their revision.
// Pure.
import { z } from 'zod'
import { canonicalJson } from '../../../shared/kube/canonical.ts'
import type { ObjectRef } from '../../../shared/kube/object.ts'
import { type Bounds, type Refusal, refusalText, refuseAccount, refuseNamespaceMarks, refuseObject } from '../../../shared/model/bounds.ts'
import type { ServiceRow } from '../../../shared/model/desired.ts'
import {
  allowedAccountsSchema,
  kindNameSchema,
  kindPatternSchema,
  kindsRuleSchema,
  namespacePatternSchema,
} from '../../../shared/model/projects.ts'
import { matchesGlob } from '../../../shared/model/source-patterns.ts'
import { QUESTION_KINDS } from '../../../shared/protocol/ask.ts'
import { nameSchema, type ServiceId } from '../../../shared/runtime/ids.ts'
import { objectPart, objectStatus, objectText } from '../../messages/object-messages.ts'
import { type Closed, closed, closedBy } from './situation.ts'

const LIST_MAX = 200
/** LX1: a rule that is left out allows everything. */
export const sitePolicySchema = z.strictObject({
  projects: z
    .array(z.union([nameSchema, z.literal('*')]))
    .max(LIST_MAX)
    .optional(),
  namespaces: z.array(namespacePatternSchema).max(LIST_MAX).optional(),
  kinds: kindsRuleSchema.optional(),
  clusterScopedKinds: z.array(kindNameSchema).max(LIST_MAX).optional(),
  serviceAccounts: z.union([z.literal('required'), z.strictObject({ allowed: allowedAccountsSchema })]).optional(),
  /** `delete`: no object is deleted. `prune`: none that its revision no longer names, or whose service is removed.
   *  `site-config`: no ConfigMap is reported (SC4). */
  deny: z.array(z.enum(['apply', 'delete', 'prune', 'site-config'])).optional(),
  /** AK5: questions of people who are not at the site. */
  ask: z
    .strictObject({
      deny: z.array(z.enum([...QUESTION_KINDS, '*'])).optional(),
      namespaces: z.array(namespacePatternSchema).max(LIST_MAX).optional(),
      projects: z
        .array(z.union([nameSchema, z.literal('*')]))
        .max(LIST_MAX)
        .optional(),
      /** Kinds whose contents are masked in answers. */
      hide: z.array(kindPatternSchema).max(LIST_MAX).optional(),
    })
    .optional(),
})
export type SitePolicy = z.infer<typeof sitePolicySchema>

export const PROJECT_REFUSED = 'ProjectRefused'
export const POLICY_REFUSED = 'LocalPolicy'
const LOCAL_POLICY = objectPart('local_policy')

export interface Refused {
  reason: typeof PROJECT_REFUSED | typeof POLICY_REFUSED
  message: string
}

/** A service, as far as it decides what is allowed. */
export interface Permitted {
  id: ServiceId
  /** Null if no revision was read yet. */
  row: Pick<ServiceRow, 'bounds' | 'sync' | 'namespace'> | null
  /** Null if the site has none. */
  policy: SitePolicy | null
}

/** `isOwnNamespace`: the namespace that `sync.createNamespace` makes, which needs no entry among kinds. */
export function refusedObject({ id, row, policy }: Permitted, ref: ObjectRef, isOwnNamespace = false): Refused | null {
  const by = (bounds: Bounds): Refusal | null => refuseObject(isOwnNamespace ? { namespaces: bounds.namespaces } : bounds, ref)
  const ofSite = policy === null ? null : by(policy)
  if (ofSite !== null) return { reason: POLICY_REFUSED, message: refusalText(LOCAL_POLICY, ofSite, ref) }
  const ofProject = row?.bounds === undefined ? null : by(row.bounds)
  return ofProject === null ? null : { reason: PROJECT_REFUSED, message: refusalText(`project ${id.project}`, ofProject, ref) }
}

/** LX2, PJ12: why nothing of the service may be written at all. Null means allowed. */
export function refusedService({ id, row, policy }: Permitted): Closed | null {
  if (policy?.projects !== undefined && !policy.projects.some((name) => matchesGlob(name, id.project)))
    return closedBy(objectStatus('LocalPolicy.project', { project: id.project, allowed: policy.projects.join(', ') || 'none' }))
  if (policy?.deny?.includes('apply') === true) return closedBy(objectStatus('LocalPolicy.apply'))
  if (row === null) return null
  const { sync, namespace } = row
  const by = (bounds: Bounds): Refusal | null => refuseAccount(bounds, sync.serviceAccount, namespace) ?? refuseNamespaceMarks(bounds, sync)
  const ofSite = policy === null ? null : by(policy)
  if (ofSite !== null) return closed(POLICY_REFUSED, refusalText(LOCAL_POLICY, ofSite))
  const ofProject = row.bounds === undefined ? null : by(row.bounds)
  return ofProject === null ? null : closed(PROJECT_REFUSED, refusalText(`project ${id.project}`, ofProject))
}

/** LX3: why nothing may be deleted. Null means allowed. `isPrune`: because no revision names it any more. */
export function refusedDeletion({ policy }: Pick<Permitted, 'policy'>, isPrune: boolean): string | null {
  const denied = policy?.deny ?? []
  if (denied.includes('delete')) return objectText('LocalPolicy.delete')
  return isPrune && denied.includes('prune') ? objectText('LocalPolicy.prune') : null
}

/** Rows are read again when it changes. */
export const permitText = ({ row, policy }: Pick<Permitted, 'row' | 'policy'>): string => JSON.stringify([row?.bounds ?? null, policy])

/** The options that affect how any object is applied. */
export const optionsText = (row: ServiceRow | null): string => canonicalJson([row?.sync, row?.protect, row?.bounds])
