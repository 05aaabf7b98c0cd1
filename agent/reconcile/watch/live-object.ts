// What is kept of a live object: enough to judge it, never the document itself. Four thousand of these are two megabytes.
import { deletionText } from '../../../shared/kube/deletion.ts'
import { otherOwner } from '../../../shared/kube/foreign-owners.ts'
import { HEALTHY, type Health, type HealthOptions, healthOf } from '../../../shared/kube/health.ts'
import { allowsPrune, keepMark } from '../../../shared/kube/keep-marks.ts'
import { parseTracking, TRACKING_ANNOTATION } from '../../../shared/kube/marks.ts'
import { type K8sObject, refKey, refOf } from '../../../shared/kube/object.ts'
import { type OtherFields, otherFieldsOf } from '../fields/other-fields.ts'
import { ownedHash } from '../fields/owned-fields.ts'
import { type LiveRun, liveRunOf } from '../order/live-run.ts'
import { workloadImages } from './workload-images.ts'

export interface LiveObject {
  uid: string
  resourceVersion: string
  /** DR1. */
  ownedHash: string
  health: Health
  /** Null: not being deleted. Else what holds it. */
  deleting: string | null
  /** Annotation that keeps it from being pruned, or null. */
  keep: string | null
  /** An annotation allows that it is pruned, whatever it holds. Only set where it is. */
  pruneAllowed?: true
  /** The mark of another tool on it, beside ours or without. Only set where there is one. */
  otherMark?: string
  owner: Owner
  /** Of a hook: which run of it. Only set where it is of one. */
  run?: LiveRun
  /** Who owns fields of it besides us, but for its status. Only set where somebody does. */
  others?: readonly OtherFields[]
  /** Of its pod template; null for a kind without. */
  images: string[] | null
}

/** Whose mark is on a live object. A tracking mark that names another object was copied by some controller and counts as none. */
export type Owner =
  | { kind: 'none' }
  | { kind: 'service'; clusterId: string; project: string; service: string }
  | { kind: 'other'; name: string }

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

/** One value for all objects of a service: they come one after the other, and each is held for as long as its object lives. */
function serviceOwner({ clusterId, project, service }: { clusterId: string; project: string; service: string }): Owner {
  if (lastOwner?.clusterId !== clusterId || lastOwner.project !== project || lastOwner.service !== service)
    lastOwner = { kind: 'service', clusterId, project, service }
  return lastOwner
}

/** `nowMs` is for the few health rules that wait a moment before they judge. */
export function liveObjectOf(object: K8sObject, nowMs: number, optionsOf?: (owner: Owner) => HealthOptions | undefined): LiveObject {
  const otherMark = otherOwner(object.metadata, refOf(object))
  const owner = ownerOf(object)
  const health = healthOf(object, nowMs, optionsOf?.(owner))
  const run = liveRunOf(object, health)
  const others = otherFieldsOf(object)
  return {
    uid: object.metadata.uid ?? '',
    resourceVersion: object.metadata.resourceVersion ?? '',
    ownedHash: ownedHash(object),
    health: health.word === 'Healthy' ? HEALTHY : health,
    deleting: deletionText(object),
    keep: keepMark(object.metadata.annotations),
    ...(allowsPrune(object.metadata.annotations) ? { pruneAllowed: true } : {}),
    owner,
    ...(otherMark === null ? {} : { otherMark }),
    ...(others === null ? {} : { others }),
    ...(run === undefined ? {} : { run }),
    images: workloadImages(object),
  }
}

/** RC6: resource versions of one resource are decimal numbers that only grow (promised since Kubernetes 1.35, so in all earlier ones with etcd). */
export function isNewer(resourceVersion: string, than: string): boolean {
  return resourceVersion.length === than.length ? resourceVersion > than : resourceVersion.length > than.length
}

/** Would anybody act or say something else because of this change? A new resourceVersion alone (an annotation of others) is none. */
export function isRelevantChange(before: LiveObject | undefined, now: LiveObject): boolean {
  if (before === undefined) return true
  return (
    before.uid !== now.uid ||
    before.ownedHash !== now.ownedHash ||
    before.deleting !== now.deleting ||
    before.keep !== now.keep ||
    before.run?.ended !== now.run?.ended ||
    before.pruneAllowed !== now.pruneAllowed ||
    before.otherMark !== now.otherMark ||
    before.health.word !== now.health.word ||
    before.health.reason !== now.health.reason ||
    before.health.message !== now.health.message ||
    before.images?.join() !== now.images?.join()
  )
}

/** For people; null for nobody. */
export function ownerText(owner: Owner): string | null {
  if (owner.kind === 'none') return null
  return owner.kind === 'other' ? owner.name : `the service ${owner.project}/${owner.service} of Skerry cluster ${owner.clusterId}`
}
