// How much of an object the site shows: nothing of kinds that its policy hides (AK5), and no contents of objects that
// came sealed or that such an object owns (AK10): the Pods of a sealed Deployment have its arguments.

import { type Position, samePosition } from '../../shared/crdt/position.ts'
import { parseTracking, TRACKING_ANNOTATION } from '../../shared/kube/marks.ts'
import { groupOf, type K8sObject, type ObjectRef, refKey } from '../../shared/kube/object.ts'
import { coversKind } from '../../shared/model/bounds.ts'
import { parseRowId } from '../../shared/model/desired.ts'
import { isSealed } from '../../shared/model/sealed-object.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import type { SitePolicy } from '../reconcile/snapshot/permits.ts'
import { isSealedKey, SEALED_FACTS, sealedKeys } from '../reconcile/snapshot/sealed-objects.ts'
import type { AnswerContext } from './ask-context.ts'

/** `sealed`: no contents, and texts as about a Secret. `hidden`: no contents and no texts. */
export type Hiding = 'nothing' | 'sealed' | 'hidden'

/** Between an object of a service and one that belongs to it: Deployment, ReplicaSet, Pod. */
export const OWNERS_MAX = 6

type Site = Pick<AnswerContext, 'policy' | 'state' | 'replica'>

/** For an object of this service, without its owners. */
export function hidingInService({ policy, state, replica }: Site, service: ServiceId): (ref: ObjectRef) => Hiding {
  const held = replica()
  const rows = held === null ? NO_KEYS : sealedRows(held, service)
  const facts = [...state.facts(service, SEALED_FACTS).keys()].map((fact) => fact.slice(SEALED_FACTS.length))
  const keys = new Set([...rows, ...facts])
  return (ref) => (isHiddenKind(policy(), ref) ? 'hidden' : isSealedKey(keys, ref) ? 'sealed' : 'nothing')
}

type Held = NonNullable<ReturnType<Site['replica']>>
const NO_KEYS: ReadonlySet<string> = new Set()
/** Keys at the present position of a replica. A service is read whole and hashed, which no question should repeat. */
const known = new WeakMap<Held, { position: Position; keys: Map<string, ReadonlySet<string>> }>()

function sealedRows(held: Held, service: ServiceId): ReadonlySet<string> {
  const position = held.position()
  const before = known.get(held)
  const isSame = before !== undefined && position !== null && samePosition(before.position, position)
  const found = isSame ? before.keys.get(serviceKey(service)) : undefined
  if (found !== undefined) return found
  const read = held.read(service)
  // A service that cannot be read now may be readable at the same position later.
  if (read.kind !== 'complete') return NO_KEYS
  const keys = sealedKeys(read.revision.objects)
  if (isSame) before.keys.set(serviceKey(service), keys)
  else if (position !== null) known.set(held, { position, keys: new Map([[serviceKey(service), keys]]) })
  return keys
}

/** For any live object. An owner that cannot be read may be a sealed one. */
export async function hidingOf(context: Site & Pick<AnswerContext, 'reads'>, live: K8sObject, ref: ObjectRef): Promise<Hiding> {
  if (isHiddenKind(context.policy(), ref)) return 'hidden'
  const isSealedHere = (one: ObjectRef): boolean => {
    const service = serviceOf(context, one)
    return service !== null && hidingInService(context, service)(one) === 'sealed'
  }
  if (isSealedHere(ref) || mayBeSealed(context, live, ref)) return 'sealed'
  let owners = ownersOf(live, ref)
  for (let level = 0; level < OWNERS_MAX && owners.length > 0; level++) {
    if (owners.some(isSealedHere)) return 'sealed'
    const next: ObjectRef[] = []
    for (const owner of owners) {
      // An object of an inventory that is not sealed has no owner that matters.
      if (serviceOf(context, owner) !== null) continue
      const found = await context.reads.objectIfReadable(owner, { metadataOnly: true })
      if (found === 'unreadable') return 'sealed'
      if (found !== null && mayBeSealed(context, found, owner)) return 'sealed'
      if (found !== null) next.push(...ownersOf(found, owner))
    }
    owners = next.slice(0, OWNERS_MAX)
  }
  return 'nothing'
}

/** An object with our marks that no inventory has, as after a lost disk: whether it came sealed is not remembered. */
function mayBeSealed(context: Site, live: K8sObject, ref: ObjectRef): boolean {
  const tracking = parseTracking(live.metadata.annotations?.[TRACKING_ANNOTATION])
  const keys = [refKey(ref), refKey({ ...ref, namespace: '' })]
  if (tracking === null || !keys.includes(tracking.key) || serviceOf(context, ref) !== null) return false
  const { project, service } = tracking
  const read = context.replica()?.read({ project, service })
  const rows = read?.kind === 'complete' ? [...read.revision.objects] : []
  return !rows.some(([rowId, doc]) => {
    const row = isSealed(doc) ? null : parseRowId(rowId)
    return row?.kind === 'object' && keys.includes(refKey(row.ref))
  })
}

/** An owner may be outside namespaces, which its references do not say. */
const serviceOf = ({ state }: Pick<Site, 'state'>, ref: ObjectRef): ServiceId | null =>
  state.ownerOf(refKey(ref)) ?? state.ownerOf(refKey({ ...ref, namespace: '' }))

/** An owner is in the namespace of its object, or in none. */
export function ownersOf(live: K8sObject, { namespace }: Pick<ObjectRef, 'namespace'>): ObjectRef[] {
  return (live.metadata.ownerReferences ?? []).map((owner) => ({
    group: groupOf(String(owner['apiVersion'] ?? '')),
    kind: owner.kind,
    namespace,
    name: owner.name,
  }))
}

export const isHiddenKind = (policy: SitePolicy | null, ref: Pick<ObjectRef, 'group' | 'kind'>): boolean =>
  policy?.ask?.hide?.some((pattern) => coversKind(pattern, ref)) === true
