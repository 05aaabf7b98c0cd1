// The kept part of a live object: enough to judge it, never the document itself. Four thousand of these are two
// megabytes.

import { type BindsAtFirstUse, decidingClass, withBinding } from '../../../../shared/kube/claim-binding.ts'
import { takesAlong } from '../../../../shared/kube/data-loss.ts'
import { deletionText } from '../../../../shared/kube/deletion.ts'
import { otherOwner } from '../../../../shared/kube/foreign-owners.ts'
import { HEALTHY, type Health, type HealthOptions, healthOf } from '../../../../shared/kube/health.ts'
import { isWorking, lastMovedMs } from '../../../../shared/kube/health-working.ts'
import { allowsPrune, keepMark } from '../../../../shared/kube/keep-marks.ts'
import { FIELD_MANAGER, parseTracking, SERVICE_LABEL, TRACKING_ANNOTATION } from '../../../../shared/kube/marks.ts'
import { type K8sObject, refKey, refOf } from '../../../../shared/kube/object.ts'
import { serviceKey, serviceText } from '../../../../shared/runtime/ids.ts'
import type { ApiFailure } from '../../../cluster/cluster.ts'
import { safeAbout, safeReason } from '../../../cluster/redact/safe-text.ts'
import { objectPart } from '../../../messages/object-messages.ts'
import { type OtherFields, otherFieldsOf } from '../fields/other-fields.ts'
import { ownedHash } from '../fields/owned-fields.ts'
import type { HookEnd } from '../hook-spec.ts'
import { isCronJob, type LiveRun, liveRunOf, runningSinceMs } from '../live-run.ts'
import { workloadImages } from './workload-images.ts'

export interface LiveObject {
  uid: string
  resourceVersion: string
  /** DR1: the hash of the values at the paths of Skerry's Apply entry. */
  ownedHash: string
  health: Health
  /** The obstacle to its deletion. Null if it is not being deleted. */
  deleting: string | null
  /** Annotation that keeps it from being pruned, or null. */
  keep: string | null
  /** An annotation allows its prune, whatever it holds. Set only then. */
  pruneAllowed?: true
  /** The further loss of its deletion, by its spec: `claims` of a StatefulSet that deletes them; `nothing`: a volume
   *  that outlives its object. Set only for those. */
  takes?: 'claims' | 'nothing'
  /** The mark of another tool on it, beside ours or without. Set only if there is one. */
  otherMark?: string
  owner: Owner
  /** For a hook, the run that it belongs to; for a Job with a TTL, whether it has ended. Set only for these. */
  run?: LiveRun
  /** Owners of its fields other than Skerry, except of its status. Set only if there are any. */
  others?: readonly OtherFields[]
  /** The images of its pod template. Null for a kind without one. */
  images: string[] | null
  /** The StorageClass (null means the default one) that decides whether this unbound volume claim waits for a consumer.
   *  Only set for such a claim. */
  pendingClass?: string | null
  /** Our label is not on it, so that the labelled watch of its kind does not show it. Only set where it is so. */
  unlabelled?: true
  /** PR13: it was there when the watch of its kind began. */
  wasThere?: true
  /** HE21: it is Progressing because its work continues, so that no deadline runs. Set only then. */
  isWorking?: true
  /** Since when a run of this CronJob lasts. Only set while one does. */
  runningSinceMs?: number
  /** The last change of a Progressing object by its own status. Set only if it has one. */
  movedMs?: number
}

/** `unknown`: its source is not complete (not started, not synced, failed), so no conclusion is allowed. `failure`:
 *  the answer to that source. `ended`: it is a Job that had ended when its TTL removed it (JB1). */
export type LiveView =
  | { kind: 'unknown'; failure?: ApiFailure }
  | { kind: 'absent'; ended?: HookEnd }
  | { kind: 'present'; live: LiveObject }

/** The owner by the mark of a live object. A tracking mark that names another object was copied by a controller and
 *  does not count. */
export type Owner =
  | { kind: 'none' }
  | { kind: 'service'; clusterId: string; project: string; service: string }
  | { kind: 'other'; name: string }

/** The registrations of a cluster whose marks count as this agent's own. */
export interface Registrations {
  clusterId: string
  /** Earlier registrations of this very cluster (CM8). */
  former: ReadonlySet<string>
}

export const isOfThisCluster = (owner: Owner, { clusterId, former }: Registrations): owner is Extract<Owner, { kind: 'service' }> =>
  owner.kind === 'service' && (owner.clusterId === clusterId || former.has(owner.clusterId))

const NOBODY: Owner = { kind: 'none' }

export function ownerOf(object: K8sObject): Owner {
  const ref = refOf(object)
  const tracking = parseTracking(object.metadata.annotations?.[TRACKING_ANNOTATION])
  if (tracking !== null && tracking.key === refKey(ref)) {
    return serviceOwner(tracking)
  }
  const name = otherOwner(object.metadata, ref)
  return name === null ? NOBODY : { kind: 'other', name }
}

let lastOwner: Extract<Owner, { kind: 'service' }> | null = null

/** One value for all objects of a service: they arrive one after the other, and each is held for as long as its
 *  object exists. */
function serviceOwner({ clusterId, project, service }: { clusterId: string; project: string; service: string }): Owner {
  if (lastOwner?.clusterId !== clusterId || lastOwner.project !== project || lastOwner.service !== service)
    lastOwner = { kind: 'service', clusterId, project, service }
  return lastOwner
}

/** The inputs of health besides the object itself. */
export interface HealthFacts {
  /** How the owner of an object wants its health evaluated. */
  optionsOf?: (owner: Owner) => HealthOptions | undefined
  binds?: BindsAtFirstUse
  /** Its kind has a status subresource; absent when that is not known. */
  hasStatus?: boolean | undefined
  /** Another object of its kind has a status. */
  siblingsReport?: boolean
}

/** `nowMs` is for the few health rules that wait a moment before they judge. */
export function liveObjectOf(
  object: K8sObject,
  nowMs: number,
  { optionsOf, binds, hasStatus, siblingsReport = false }: HealthFacts = {},
): LiveObject {
  const otherMark = otherOwner(object.metadata, refOf(object))
  const owner = ownerOf(object)
  const pendingClass = decidingClass(object)
  const options = optionsOf?.(owner)
  const told = healthOf(object, nowMs, hasStatus === undefined ? options : { ...options, hasStatus, siblingsReport })
  const bound = pendingClass === undefined || binds === undefined ? told : withBinding(told, pendingClass, binds)
  const health = safeHealth(bound, object)
  const run = liveRunOf(object, health)
  const takes = takesAlong(object)
  const others = otherFieldsOf(object)
  return {
    uid: object.metadata.uid ?? '',
    resourceVersion: object.metadata.resourceVersion ?? '',
    ownedHash: ownedHash(object),
    health: health.word === 'Healthy' && health.message === '' && health.settles === undefined ? HEALTHY : health,
    deleting: safeDeletion(object),
    keep: keepMark(object.metadata.annotations),
    ...(allowsPrune(object.metadata.annotations) ? { pruneAllowed: true } : {}),
    owner,
    ...(otherMark === null ? {} : { otherMark }),
    ...(others === null ? {} : { others }),
    ...(run === undefined ? {} : { run }),
    ...(pendingClass === undefined ? {} : { pendingClass }),
    ...(object.metadata.labels?.[SERVICE_LABEL] === undefined ? { unlabelled: true } : {}),
    ...(health.word === 'Progressing' ? progressOf(object) : {}),
    ...runOf(object),
    ...(takes === null ? {} : { takes }),
    images: workloadImages(object),
  }
}

/** KA31: conditions hold what controllers write, values of the object among it. */
function safeHealth(health: Health, object: K8sObject): Health {
  if (health.message === '' && safeReason(health.reason) !== null) return health
  const reason = safeReason(health.reason) ?? safeAbout(health.reason, object)
  const message = safeAbout(health.message, object)
  return message === health.message && reason === health.reason ? health : { ...health, reason, message }
}

/** KA31: the obstacle of a deletion, which a Namespace reports in conditions. Null means that the object is not being
 *  deleted. */
export function safeDeletion(object: K8sObject): string | null {
  const text = deletionText(object)
  return text === null ? null : safeAbout(text, object)
}

function progressOf(object: K8sObject): Pick<LiveObject, 'isWorking' | 'movedMs'> {
  if (isWorking(object)) return { isWorking: true }
  const movedMs = lastMovedMs(object, FIELD_MANAGER)
  return movedMs === null ? {} : { movedMs }
}

function runOf(object: K8sObject): Pick<LiveObject, 'runningSinceMs'> {
  const sinceMs = object.kind === 'CronJob' && isCronJob(refOf(object)) ? runningSinceMs(object) : null
  return sinceMs === null ? {} : { runningSinceMs: sinceMs }
}

/** Does this change affect an action or a report? A new resourceVersion alone (an annotation of others) does not. */
export function isRelevantChange(before: LiveObject | undefined, now: LiveObject): boolean {
  if (before === undefined) return true
  return (
    before.uid !== now.uid ||
    before.ownedHash !== now.ownedHash ||
    before.deleting !== now.deleting ||
    before.keep !== now.keep ||
    before.run?.ended !== now.run?.ended ||
    before.pruneAllowed !== now.pruneAllowed ||
    before.takes !== now.takes ||
    before.otherMark !== now.otherMark ||
    before.health.word !== now.health.word ||
    before.health.reason !== now.health.reason ||
    before.health.message !== now.health.message ||
    before.isWorking !== now.isWorking ||
    before.runningSinceMs !== now.runningSinceMs ||
    before.images?.join() !== now.images?.join()
  )
}

/** For people; null if there is no owner. */
export function ownerText(owner: Owner): string | null {
  if (owner.kind === 'none') return null
  if (owner.kind === 'other') return owner.name
  return objectPart('owner_elsewhere', { service: serviceText(serviceKey(owner)), cluster: owner.clusterId })
}
