// The watched kinds, and whether autoscalers are watched: all that services own or want. Updated service by service, so
// that one change among a thousand services costs one of them.
import { type ObjectRef, versionOf } from '../../../../shared/kube/object.ts'
import type { ApiResource } from '../../../cluster/cluster.ts'
import type { Scaled } from '../fields/ignore.ts'
import type { ServiceSnapshot } from '../service-model.ts'
import type { KindLookup, ServedKinds } from './served-kinds.ts'
import { resourceKey } from './watches.ts'

interface Named {
  ref: ObjectRef
  apiVersion: string
}

/** `exact`: wanted in that version. Else any version will do: an object keeps its identity across versions. */
interface KindUse {
  group: string
  version: string
  kind: string
  exact: boolean
}

interface Use {
  kinds: ReadonlyMap<string, KindUse>
  scaled: ReadonlySet<Scaled>
}
const NO_USE: Use = { kinds: new Map(), scaled: new Set() }

export interface FollowedKindsDeps {
  kinds: Pick<ServedKinds, 'find' | 'findAny' | 'generation'>
  follow(resources: ReadonlyMap<string, ApiResource>): void
  followScaled(parts: ReadonlySet<Scaled>): void
}

export class FollowedKinds {
  readonly #deps: FollowedKindsDeps
  readonly #uses = new Map<string, Use>()
  readonly #kinds = new Map<string, { use: KindUse; count: number }>()
  readonly #scaled = new Map<Scaled, number>()
  #generation = -1

  constructor(deps: FollowedKindsDeps) {
    this.#deps = deps
  }

  /** RC5: of one service; the others are unchanged. */
  update(model: ServiceSnapshot): void {
    const isNew = this.#replace(model.key, useOf(model))
    if (isNew || this.#generation !== this.#deps.kinds.generation()) this.#tell()
  }

  updateAll(models: Iterable<ServiceSnapshot>): void {
    for (const model of models) this.#replace(model.key, useOf(model))
    this.#tell()
  }

  /** The service is gone. */
  forget(key: string): void {
    const isLast = this.#replace(key, NO_USE)
    this.#uses.delete(key)
    if (isLast) this.#tell()
  }

  /** True: a kind, or a field that autoscalers write, appeared first or disappeared last. */
  #replace(key: string, use: Use): boolean {
    const before = this.#uses.get(key) ?? NO_USE
    this.#uses.set(key, use)
    let changed = false
    for (const [id, kindUse] of use.kinds) {
      if (before.kinds.has(id)) continue
      const known = this.#kinds.get(id)
      if (known === undefined) this.#kinds.set(id, { use: kindUse, count: 1 })
      else known.count += 1
      changed ||= known === undefined
    }
    for (const id of before.kinds.keys()) {
      const known = this.#kinds.get(id)
      if (use.kinds.has(id) || known === undefined) continue
      known.count -= 1
      if (known.count > 0) continue
      this.#kinds.delete(id)
      changed = true
    }
    for (const part of use.scaled) {
      if (before.scaled.has(part)) continue
      const count = this.#scaled.get(part) ?? 0
      this.#scaled.set(part, count + 1)
      changed ||= count === 0
    }
    for (const part of before.scaled) {
      if (use.scaled.has(part)) continue
      const count = (this.#scaled.get(part) ?? 1) - 1
      if (count > 0) this.#scaled.set(part, count)
      else this.#scaled.delete(part)
      changed ||= count <= 0
    }
    return changed
  }

  #tell(): void {
    const { kinds, follow, followScaled } = this.#deps
    this.#generation = kinds.generation()
    const resources = new Map<string, ApiResource>()
    for (const { use } of this.#kinds.values()) {
      const { group, version, kind, exact } = use
      const lookup: KindLookup = exact ? kinds.find(group, version, kind) : kinds.findAny(group, version, kind)
      if (lookup.kind === 'served') resources.set(resourceKey(lookup.resource), lookup.resource)
    }
    follow(resources)
    followScaled(new Set(this.#scaled.keys()))
  }
}

function useOf(model: ServiceSnapshot): Use {
  const kinds = new Map<string, KindUse>()
  const add = (named: Iterable<Named>, exact: boolean) => {
    for (const { ref, apiVersion } of named) {
      const id = `${exact} ${apiVersion} ${ref.kind}`
      if (!kinds.has(id)) kinds.set(id, { group: ref.group, version: versionOf(apiVersion), kind: ref.kind, exact })
    }
  }
  add(model.wanted.values(), true)
  const { specs, removalSpecs } = model.hooks
  add((model.row?.removal === undefined ? specs : removalSpecs).values(), false)
  add(model.inventory.values(), false)
  const scaled = new Set<Scaled>()
  for (const { leave } of model.wanted.values()) for (const part of leave?.scaled ?? []) scaled.add(part)
  return { kinds, scaled }
}
