// The objects inside a Namespace, or of the kind of a CRD, that do not belong to the deleting service. Excluded are
// objects that Kubernetes creates itself and those that are deleted with objects of the service anyway. Pure: the
// metadata is an input, and which outside owners are gone.
import { type K8sObject, type ObjectRef, refOf } from '../../../../shared/kube/object.ts'

/** Kubernetes creates objects of these kinds for other objects. One that is created by hand holds no data. */
const FOLLOWERS: ReadonlySet<string> = new Set([
  '/Event',
  'events.k8s.io/Event',
  '/Endpoints',
  'discovery.k8s.io/EndpointSlice',
  'coordination.k8s.io/Lease',
])
/** A search of a namespace skips them. */
export const isFollowerKind = ({ group, kind }: Pick<ObjectRef, 'group' | 'kind'>): boolean => FOLLOWERS.has(`${group}/${kind}`)

/** In every namespace, created by the control plane, OpenShift or Istio. */
const IN_EVERY_NAMESPACE: ReadonlySet<string> = new Set([
  '/ServiceAccount default',
  '/ConfigMap kube-root-ca.crt',
  '/ConfigMap openshift-service-ca.crt',
  '/ConfigMap istio-ca-root-cert',
])

export interface OwnerRef {
  apiVersion: string
  kind: string
  name: string
  uid: string
  /** Namespace of the owned object. The owner is in the same one, or in none. */
  namespace: string
}

export interface Item {
  ref: ObjectRef
  uid: string
  owners: readonly OwnerRef[]
  /** `own`: of the service itself. Null means no mark, or another tool's. */
  of: 'own' | { service: string; isLeaving: boolean } | null
}

/** Null if the deletion of the object loses nothing: it is being deleted already, or Kubernetes created it. */
export function itemOf(object: K8sObject, of: Item['of']): Item | null {
  const ref = refOf(object)
  const { uid = '', deletionTimestamp, ownerReferences = [], annotations } = object.metadata
  if (deletionTimestamp !== undefined || isFollowerKind(ref) || IN_EVERY_NAMESPACE.has(`${ref.group}/${ref.kind} ${ref.name}`)) return null
  if (ref.group === '' && ref.kind === 'Secret' && annotations?.['kubernetes.io/service-account.name'] === 'default') return null
  const owners = ownerReferences.map(({ apiVersion, ...owner }) => ({
    ...owner,
    apiVersion: typeof apiVersion === 'string' ? apiVersion : '',
    namespace: ref.namespace,
  }))
  return { ref, uid, owners, of }
}

/** Volumes that a StatefulSet created are data, whoever owns them. */
const isClaim = ({ ref: { group, kind } }: Item): boolean => group === '' && kind === 'PersistentVolumeClaim'

/** Owners that are not among the items: the caller finds out whether they still exist. */
export function ownersOutside(items: readonly Item[]): OwnerRef[] {
  const inside = new Set(items.map(({ uid }) => uid))
  const outside = new Map<string, OwnerRef>()
  for (const item of items)
    if (item.of !== 'own') for (const owner of item.owners) if (!inside.has(owner.uid)) outside.set(owner.uid, owner)
  return [...outside.values()]
}

/** `isGone`: an owner outside of the items no longer exists, so that the garbage collector deletes its objects. */
export function otherObjects(items: readonly Item[], isGone: (uid: string) => boolean): Item[] {
  const byUid = new Map(items.map((item) => [item.uid, item]))
  const known = new Map<Item, boolean>()
  const isOther = (item: Item): boolean => {
    const before = known.get(item)
    if (before !== undefined) return before
    known.set(item, true) // of owners in a circle nobody is of the service
    const goesAnyway = item.owners.length > 0 && !isClaim(item) && item.owners.every(({ uid }) => goes(uid))
    const answer = item.of !== 'own' && !goesAnyway
    known.set(item, answer)
    return answer
  }
  const goes = (uid: string): boolean => {
    const owner = byUid.get(uid)
    return owner === undefined ? isGone(uid) : !isOther(owner)
  }
  return items.filter(isOther)
}
