// The statements of this cluster's services about objects, by object: its owner, the services that name it, the UIDs in
// use, and the services with objects in a namespace. Each change updates it, so that no lookup reads all services
// (RC31).
import { keyOutsideNamespaces, parseRefKey } from '../../../../shared/kube/object.ts'
import { type ServiceId, serviceKey } from '../../../../shared/runtime/ids.ts'
import type { ServiceModel } from '../service-model.ts'

/** The service that owns an object, by refKey; counts the objects that lost their owner. */
export class Owners extends Map<string, ServiceId> {
  left = 0
  readonly #onLeft: (key: string) => void
  /** Number of objects of each service, by namespace. */
  readonly #inNamespaces = new Map<string, Map<string, number>>()

  constructor(onLeft: (key: string) => void) {
    super()
    this.#onLeft = onLeft
  }

  override set(key: string, owner: ServiceId): this {
    const before = this.get(key)
    if (before !== undefined) this.#count(key, before, -1)
    this.#count(key, owner, 1)
    return super.set(key, owner)
  }

  override delete(key: string): boolean {
    this.left += 1
    const before = this.get(key)
    if (before !== undefined) this.#count(key, before, -1)
    const had = super.delete(key)
    this.#onLeft(key)
    return had
  }

  /** Whether a service other than `own` (serviceKey) has an object in the namespace. */
  hasOthersIn(namespace: string, own: string): boolean {
    const services = this.#inNamespaces.get(namespace)
    return services !== undefined && services.size > (services.has(own) ? 1 : 0)
  }

  #count(key: string, owner: ServiceId, by: 1 | -1): void {
    const namespace = parseRefKey(key)?.namespace ?? ''
    if (namespace === '') return
    const service = serviceKey(owner)
    const services = this.#inNamespaces.get(namespace) ?? new Map<string, number>()
    const count = (services.get(service) ?? 0) + by
    if (count > 0) services.set(service, count)
    else services.delete(service)
    if (services.size > 0) this.#inNamespaces.set(namespace, services)
    else this.#inNamespaces.delete(namespace)
  }
}

export class ObjectIndex {
  /** Services whose revision names the object; almost every object has one. */
  readonly #naming = new Map<string, ServiceModel | Set<ServiceModel>>()
  /** By key without a namespace: services with unread objects there, and how many. Whether their kind has namespaces is
   *  not known (`namesObject`). */
  readonly #unread = new Map<string, Map<ServiceModel, number>>()
  /** Number of objects in force under each UID. */
  readonly #uids = new Map<string, number>()

  follow(model: ServiceModel): void {
    model.objects.listen({
      named: (key, isNamed) => (isNamed ? this.#name(key, model) : this.#unname(key, model)),
      unread: (key, isUnread) => this.#countUnread(keyOutsideNamespaces(key), model, isUnread ? 1 : -1),
      inForce: (uid, isInForce) => this.#countUid(uid, isInForce ? 1 : -1),
    })
  }

  /** Nothing of the service is kept any more. */
  drop({ objects }: ServiceModel): void {
    objects.unname()
  }

  /** Services that name the object, or may: each once. */
  naming(key: string): Iterable<ServiceModel> {
    const models = this.#naming.get(key)
    const named = models === undefined ? [] : models instanceof Set ? [...models] : [models]
    const unread = this.#unread.get(keyOutsideNamespaces(key))
    return unread === undefined ? named : new Set([...named, ...unread.keys()])
  }

  isUidInForce(uid: string): boolean {
    return this.#uids.has(uid)
  }

  #name(key: string, model: ServiceModel): void {
    const known = this.#naming.get(key)
    if (known === undefined) this.#naming.set(key, model)
    else if (known instanceof Set) known.add(model)
    else this.#naming.set(key, new Set([known, model]))
  }

  #unname(key: string, model: ServiceModel): void {
    const known = this.#naming.get(key)
    if (known instanceof Set) known.delete(model)
    if (known === model || (known instanceof Set && known.size === 0)) this.#naming.delete(key)
  }

  #countUnread(key: string, model: ServiceModel, by: 1 | -1): void {
    const models = this.#unread.get(key) ?? new Map<ServiceModel, number>()
    const count = (models.get(model) ?? 0) + by
    if (count > 0) models.set(model, count)
    else models.delete(model)
    if (models.size > 0) this.#unread.set(key, models)
    else this.#unread.delete(key)
  }

  #countUid(uid: string, by: 1 | -1): void {
    const count = (this.#uids.get(uid) ?? 0) + by
    if (count > 0) this.#uids.set(uid, count)
    else this.#uids.delete(uid)
  }
}
