// What the garbage collector of a cluster knows: which objects name which owner, and which of them lost their last one.
import { groupOf, type K8sObject, type ObjectRef, refKey, refOf } from '../../shared/kube/object.ts'

export class OwnerIndex {
  /** By the UID of an owner: the keys of the objects that name it in `ownerReferences`. */
  readonly #dependents = new Map<string, Set<string>>()

  changed(before: K8sObject | null, after: K8sObject | null): void {
    for (const owner of ownersOf(before)) this.#dependents.get(owner.uid)?.delete(refKey(refOf(before as K8sObject)))
    for (const { uid } of ownersOf(after)) {
      const keys = this.#dependents.get(uid) ?? new Set()
      this.#dependents.set(uid, keys.add(refKey(refOf(after as K8sObject))))
    }
  }

  /** The objects that have no owner any more, now that the one with this UID is gone. */
  orphansOf(uid: string, byKey: (key: string) => K8sObject | undefined, find: (ref: ObjectRef) => K8sObject | null): K8sObject[] {
    const keys = [...(this.#dependents.get(uid) ?? [])]
    this.#dependents.delete(uid)
    return keys.flatMap((key) => {
      const dependent = byKey(key)
      return dependent === undefined || hasOwner(dependent, find) ? [] : [dependent]
    })
  }
}

interface Owner {
  apiVersion: string
  kind: string
  name: string
  uid: string
}

const ownersOf = (object: K8sObject | null): Owner[] => (object?.metadata.ownerReferences ?? []) as unknown as Owner[]

/** An owner is in the namespace of the object, or it has none. */
const hasOwner = (object: K8sObject, find: (ref: ObjectRef) => K8sObject | null): boolean =>
  ownersOf(object).some(({ apiVersion, kind, name, uid }) =>
    ['', object.metadata.namespace ?? ''].some(
      (namespace) => find({ group: groupOf(apiVersion), kind, name, namespace })?.metadata.uid === uid,
    ),
  )
