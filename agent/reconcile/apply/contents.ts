// Searches a Namespace or the custom resources of a CRD before it is deleted, with everything in it. Reads only
// metadata, at the moment of the deletion. An unreadable kind counts as objects of others.
import { deletionName } from '../../../shared/kube/data-loss.ts'
import { groupOf, type K8sObject, type ObjectRef, refKey, refOf, versionOf } from '../../../shared/kube/object.ts'
import { compareRefs, namespaceOfObject } from '../../../shared/kube/order.ts'
import { serviceKey } from '../../../shared/runtime/ids.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import type { ApiFailure, ApiResource } from '../../cluster/cluster.ts'
import { deletionText } from '../../messages/deletion-messages.ts'
import { isOurs } from '../plan/plan.ts'
import type { Contents } from '../plan/prune/deletion.ts'
import { type Item, isFollowerKind, itemOf, type OwnerRef, otherObjects, ownersOutside } from '../plan/prune/other-objects.ts'
import type { Asking } from '../requests/placed-cluster.ts'
import type { ServiceModel } from '../snapshot/service-model.ts'
import { isOfThisCluster, ownerOf, type Registrations } from '../snapshot/watch/live-object.ts'
import type { ServedKinds } from '../snapshot/watch/served-kinds.ts'
import { findGap, storesObjects } from './discovery-gaps.ts'

export interface ContentsDeps extends Registrations {
  asking(who: { service: string }): Pick<Asking, 'get' | 'list'>
  kinds: Pick<ServedKinds, 'all' | 'find' | 'findAny' | 'unheard' | 'refresh' | 'servesPlural' | 'answers'>
  signal: AbortSignal
  /** Another service of this cluster that has the object, or whose revision names it, by its key. Null means none. */
  otherOf(model: ServiceModel, key: string): string | null
  /** A service of this cluster with a removal order. */
  isLeaving(serviceKey: string): boolean
}

/** Kinds that are listed at the same time. */
const LISTS_MAX = 4
/** Owners that are read one by one; objects of further owners count as objects of others. */
const OWNERS_MAX = 50
const NAMES_MAX = 5
/** Objects without an owner that are not of the service: enough is known by then. */
const OTHERS_MAX = 100

export class ContentsReader {
  readonly #deps: ContentsDeps

  constructor(deps: ContentsDeps) {
    this.#deps = deps
  }

  /** RM3: of a Namespace, of what stands for one, or of a CRD. */
  async look(model: ServiceModel, ref: ObjectRef): Promise<Contents> {
    // A kind that came a moment ago may have objects in it.
    const unasked = await this.#refresh()
    if (unasked !== null) return { kind: 'unread', why: unasked }
    const asking = this.#deps.asking({ service: model.key })
    const namespace = namespaceOfObject(ref)
    const hidden = namespace !== null ? await this.#gap(asking) : null
    if (hidden !== null) return { kind: 'unread', why: hidden }
    const inside = namespace !== null ? this.#namespaced() : this.#defined(ref.name)
    if (inside.kind === 'unread') return inside
    const items: Item[] = []
    let others = 0
    const isEnough = () => others >= OTHERS_MAX
    const failure = await this.#list(asking, inside.resources, namespace ?? '', isEnough, (object) => {
      const item = itemOf(object, this.#ownerOf(model, object))
      if (item === null) return
      items.push(item)
      if (item.of === null && item.owners.length === 0) others += 1
    })
    if (failure !== null && !isEnough()) return { kind: 'unread', why: failure }
    const gone = isEnough() ? new Set<string>() : await this.#goneOwners(asking, ownersOutside(items))
    return contentsOf(
      otherObjects(items, (uid) => gone.has(uid)),
      isEnough(),
    )
  }

  #ownerOf(model: ServiceModel, object: K8sObject): Item['of'] {
    const owner = ownerOf(object)
    const { clusterId, former, isLeaving, otherOf } = this.#deps
    const objectKey = refKey(refOf(object))
    // RC3: released to a service that has not begun, it still carries the mark of this one.
    const other = otherOf(model, objectKey)
    if (other !== null) return { service: other, isLeaving: isLeaving(other) }
    if (model.inventory.has(objectKey) || isOurs({ id: model.id, clusterId, former }, { owner })) return 'own'
    if (!isOfThisCluster(owner, { clusterId, former })) return null
    const key = serviceKey({ project: owner.project, service: owner.service } as ServiceModel['id'])
    return { service: key, isLeaving: isLeaving(key) }
  }

  #namespaced(): { kind: 'read'; resources: ApiResource[] } | Extract<Contents, { kind: 'unread' }> {
    const { kinds } = this.#deps
    const [silent] = kinds.unheard().filter(storesObjects)
    if (silent !== undefined) return { kind: 'unread', why: deletionText('group_silent', { group: silent }) }
    const holds = ({ namespaced, verbs }: ApiResource) => namespaced && ['list', 'watch', 'delete'].every((verb) => verbs.includes(verb))
    return { kind: 'read', resources: kinds.all().filter((resource) => holds(resource) && !isFollowerKind(resource)) }
  }

  #defined(crd: string): { kind: 'read'; resources: ApiResource[] } | Extract<Contents, { kind: 'unread' }> {
    const resource = this.#deps.kinds.all().find(({ plural, group }) => `${plural}.${group}` === crd)
    return resource === undefined ? { kind: 'unread', why: deletionText('resources_unserved') } : { kind: 'read', resources: [resource] }
  }

  /** Returns null when all kinds were read, or enough of them. */
  async #list(
    asking: Pick<Asking, 'list'>,
    resources: readonly ApiResource[],
    namespace: string,
    isEnough: () => boolean,
    onObject: (object: K8sObject) => void,
  ): Promise<string | null> {
    const { signal } = this.#deps
    const open = [...resources]
    let failed: string | null = null
    const options = { signal, metadataOnly: true, ...(namespace === '' ? {} : { namespace }) }
    const worker = async () => {
      for (let resource = open.pop(); resource !== undefined && failed === null && !isEnough(); resource = open.pop()) {
        const failure = await asking.list(resource, options, (object, isThere) => void (isThere && onObject(object)))
        if (failure !== null && !(await this.#isUnserved(resource, failure)))
          failed = deletionText('list_failed', { plural: resource.plural, failure: failure.message })
      }
    }
    await Promise.all(Array.from({ length: LISTS_MAX }, worker))
    return failed
  }

  /** Returns a kind that may have objects in the Namespace and that discovery does not show, or null. */
  async #gap({ get, list }: Pick<Asking, 'get' | 'list'>): Promise<string | null> {
    const { kinds, signal } = this.#deps
    try {
      return (await findGap({ kinds, get, list, signal }, { namespacedOnly: true }))?.message ?? null
    } catch (error) {
      return deletionText('kinds_unread', { failure: describeError(error) })
    }
  }

  /** Asks which kinds are served now. Returns the reason if that failed, else null. */
  async #refresh(): Promise<string | null> {
    try {
      await this.#deps.kinds.refresh()
      return null
    } catch (error) {
      return deletionText('kinds_unread', { failure: describeError(error) })
    }
  }

  /** A 404 says that nothing is there only if the API server serves the kind in no version any more. */
  async #isUnserved({ group, version, kind }: ApiResource, failure: ApiFailure): Promise<boolean> {
    return (
      failure.kind === 'not_found' && (await this.#refresh()) === null && this.#deps.kinds.findAny(group, version, kind).kind === 'unserved'
    )
  }

  /** UIDs of owners that do not exist any more. */
  async #goneOwners(asking: Pick<Asking, 'get'>, owners: readonly OwnerRef[]): Promise<ReadonlySet<string>> {
    const gone = new Set<string>()
    const { kinds } = this.#deps
    for (const { apiVersion, kind, name, namespace, uid } of owners.slice(0, OWNERS_MAX)) {
      const lookup = kinds.find(groupOf(apiVersion), versionOf(apiVersion), kind)
      if (lookup.kind !== 'served') continue
      const ref = { group: lookup.resource.group, kind, namespace: lookup.resource.namespaced ? namespace : '', name }
      const answer = await asking.get(lookup.resource, ref, { metadataOnly: true })
      if (answer.kind === 'absent' || (answer.kind === 'found' && answer.object.metadata.uid !== uid)) gone.add(uid)
    }
    return gone
  }
}

function contentsOf(others: readonly Item[], more: boolean): Contents {
  if (others.length === 0) return { kind: 'own' }
  const leaving = others.flatMap(({ of }) => (of !== null && of !== 'own' && of.isLeaving ? [of.service] : []))
  if (leaving.length === others.length) return { kind: 'leaving', services: [...new Set(leaving)].sort() }
  // Owners are named before the objects that they own.
  const sorted = [...others].sort((a, b) => a.owners.length - b.owners.length || compareRefs(a.ref, b.ref))
  const names = sorted.slice(0, NAMES_MAX).map(({ ref }) => deletionName(ref))
  return { kind: 'others', count: others.length, names, more }
}
