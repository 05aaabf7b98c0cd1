// The services of this cluster together: the state of each, the owner of each object, and the facts that they need of
// each other. It reads the agent's state when a service is first used. It must not read live objects and never sends
// requests.
import { refKey } from '../../../../shared/kube/object.ts'
import type { ServiceRow } from '../../../../shared/model/desired.ts'
import { type ServiceId, serviceKey } from '../../../../shared/runtime/ids.ts'
import type { InventoryEntry } from '../../../state/agent-state.ts'
import { isAppliedOver } from '../hook-spec.ts'
import { mayName } from '../objects.ts'
import type { ServiceModel } from '../service-model.ts'
import { ObjectIndex, Owners } from './object-index.ts'

export type Handover = NonNullable<ServiceRow['handover']>[number]

/** The known state of the service that takes it. */
export type Taker =
  /** No row, or none that was read: unknown. */
  | { kind: 'unread' }
  /** Its complete revision does not name the object, or it is being removed. */
  | { kind: 'read'; digest: string; handover: readonly Handover[] }

export interface ServiceRegistryDeps {
  /** As a former process left it. */
  recall(id: ServiceId): ServiceModel
  /** The content of the file. */
  inventory(id: ServiceId): readonly InventoryEntry[]
  wake(serviceKey: string): void
  /** Its row, read or not, is a removal order, or is gone. */
  isLeaving(id: ServiceId): boolean
  /** An object left its inventory. */
  release(key: string): void
}

const takesForHook = ({ hooks }: ServiceModel, key: string): boolean => {
  const spec = hooks.specs.get(key)
  return spec !== undefined && isAppliedOver(spec)
}

export class ServiceRegistry {
  readonly owners: Owners
  readonly #deps: ServiceRegistryDeps
  readonly #models = new Map<string, ServiceModel>()
  readonly #index = new ObjectIndex()
  /** Services with unread rows, which may take objects that others lose. */
  readonly #unread = new Set<ServiceModel>()
  /** Services whose prune waits for rows of others to be read. */
  readonly #waiting = new Set<string>()
  #revisionsSeen = 0
  #takersSeen = 0

  constructor(deps: ServiceRegistryDeps) {
    this.#deps = deps
    this.owners = new Owners(deps.release)
  }

  all(): Iterable<ServiceModel> {
    return this.#models.values()
  }

  ownerOf(key: string): ServiceModel | null {
    const owner = this.owners.get(key)
    return owner === undefined ? null : this.known(serviceKey(owner))
  }

  model(id: ServiceId): ServiceModel {
    const key = serviceKey(id)
    const known = this.#models.get(key)
    if (known !== undefined) return known
    const model = this.#deps.recall(id)
    for (const objectKey of model.inventory.keys()) this.owners.set(objectKey, id)
    this.#index.follow(model)
    this.#models.set(key, model)
    if (model.revisionPending) this.#unread.add(model)
    return model
  }

  /** Null if the service is unknown. */
  known(serviceKey: string): ServiceModel | null {
    return this.#models.get(serviceKey) ?? null
  }

  /** No row, no object: services that are gone use no memory, also after years of changes. */
  drop(model: ServiceModel): void {
    model.deadlines.clear()
    this.#index.drop(model)
    this.#models.delete(model.key)
    this.#unread.delete(model)
    this.#waiting.delete(model.key)
  }

  revisionsChanged(services: readonly ServiceId[]): void {
    if (services.length > 0) this.#revisionsSeen += 1
    for (const id of services) {
      const model = this.model(id)
      model.rowsCame()
      // RC34: a service that leaves takes no object.
      if (!this.#deps.isLeaving(id)) {
        this.#unread.add(model)
        this.#takersSeen += 1
      }
      this.#deps.wake(model.key)
    }
  }

  /** After a failed reconciliation, such as on a full disk: the file counts, and work that it does not record is
   *  repeated. */
  recover(model: ServiceModel): void {
    const written = new Map(this.#deps.inventory(model.id).map((entry) => [refKey(entry.ref), entry]))
    for (const key of model.inventory.keys()) if (!written.has(key)) this.owners.delete(key)
    for (const key of written.keys()) this.owners.set(key, model.id)
    model.recover(written)
  }

  /** Applied objects of an incomplete revision are wanted too, and its unreadable rows may be. */
  othersWanting(model: ServiceModel, key: string): ServiceModel[] {
    const wants = (model: ServiceModel) =>
      model.reading.kind !== 'absent' &&
      model.row?.removal === undefined &&
      (model.wanted.get(key)?.onlyIfAbsent === false || takesForHook(model, key) || mayName(model, key))
    return [...this.#index.naming(key)].filter((other) => other !== model && wants(other))
  }

  /** Another service that has the object, or whose revision names it. Null means none. */
  otherOf(model: ServiceModel, key: string): string | null {
    const owner = this.ownerOf(key)
    return owner !== null && owner !== model ? owner.key : (this.othersWanting(model, key)[0]?.key ?? null)
  }

  othersNeeding(model: ServiceModel, key: string): ServiceModel[] {
    const needs = ({ wanted, hooks }: ServiceModel) => wanted.get(key)?.onlyIfAbsent === true || hooks.specs.has(key)
    return [...this.#index.naming(key)].filter((other) => other !== model && needs(other))
  }

  revisionsSeen(): number {
    return this.#revisionsSeen
  }

  /** As `revisionsSeen`, of services that may take objects that others lose. */
  takersSeen(): number {
    return this.#takersSeen
  }

  waitsForOthers(model: ServiceModel): boolean {
    if (this.#unread.size === (this.#unread.has(model) ? 1 : 0)) return false
    this.#waiting.add(model.key)
    return true
  }

  wakeWhenRead(model: ServiceModel): void {
    this.#waiting.add(model.key)
  }

  taker(id: ServiceId): Taker {
    const model = this.#models.get(serviceKey(id))
    if (model === undefined || model.revisionPending || model.reading.kind !== 'complete') return { kind: 'unread' }
    const { digest, handover = [] } = model.reading.row
    return { kind: 'read', digest, handover }
  }

  isUidInForce(uid: string): boolean {
    return this.#index.isUidInForce(uid)
  }

  revisionRead(model: ServiceModel): void {
    model.rowsRead()
    this.#unread.delete(model)
    if (this.#unread.size > 0) return
    for (const key of this.#waiting) this.#deps.wake(key)
    this.#waiting.clear()
  }
}
