// The owned objects, kind by kind: which kinds are watched for them, which objects a watch has to show, and which live
// objects belong to a service of this agent by their marks. It answers questions and decides nothing.
import { type ObjectRef, versionOf } from '../../../../shared/kube/object.ts'
import type { ApiResource } from '../../../cluster/cluster.ts'
import type { InventoryEntry } from '../../../state/agent-state.ts'
import { type Leave, leaveOf } from '../fields/ignore.ts'
import type { OtherFields } from '../fields/other-fields.ts'
import { takeFor } from '../fields/shaping.ts'
import type { ServiceModel } from '../service-model.ts'
import type { Wanted } from '../wanted.ts'
import type { Autoscalers } from './autoscalers.ts'
import type { FollowUp } from './follow-ups.ts'
import { FollowedKinds } from './followed-kinds.ts'
import type { OwnedLookup } from './kind-watch.ts'
import type { LiveObject, LiveView, Registrations } from './live-object.ts'
import type { KindLookup, ServedKinds } from './served-kinds.ts'
import type { ServiceRegistry } from './service-registry.ts'
import { UnrecordedObjects } from './unrecorded-objects.ts'
import type { Watches } from './watches.ts'

export interface OwnedIndexDeps extends Registrations {
  registry: ServiceRegistry
  kinds: ServedKinds
  follow(resources: ReadonlyMap<string, ApiResource>): void
  /** All objects of the watches. */
  live(): Iterable<{ key: string; apiVersion: string; live: LiveObject }>
  autoscalers(): Autoscalers
}

export interface SourcedObject {
  service: string
  key: string
  source: LiveSource
  view: LiveView
}

/** Else it is on paper only. */
const hasExisted = ({ appliedDoc, uid }: InventoryEntry): boolean => appliedDoc !== null || uid !== null

export class OwnedIndex implements OwnedLookup {
  readonly unrecorded: UnrecordedObjects
  readonly #deps: OwnedIndexDeps
  readonly #followed: FollowedKinds

  constructor(deps: OwnedIndexDeps) {
    this.#deps = deps
    const { registry, kinds, follow, clusterId, former } = deps
    this.#followed = new FollowedKinds({ kinds, follow, followScaled: (parts) => deps.autoscalers().follow(parts) })
    this.unrecorded = new UnrecordedObjects({ owners: registry.owners, clusterId, former, all: () => deps.live() })
  }

  /** Without a service: discovery may say something else of any. */
  followKinds(model?: ServiceModel): void {
    if (model === undefined) this.#followed.updateAll(this.#deps.registry.all())
    else this.#followed.update(model)
  }

  /** The service is gone. */
  forget({ key }: ServiceModel): void {
    this.#followed.forget(key)
  }

  /** DR9–DR11, TK1: do other owners of the object's fields matter here? */
  minds(key: string, { others }: LiveObject): boolean {
    const model = this.#deps.registry.ownerOf(key)
    const wanted = model?.wanted.get(key)
    if (model === null || wanted === undefined) return false
    if (model.sync().driftAdditions === 'report') return true
    const leave = this.leaveOf(wanted, others ?? null)
    return leave !== null || takeFor(wanted, leave, others ?? null, 'keep', model.sync()) !== null
  }

  /** The fields of a live object that are left to others. Null means none. */
  leaveOf(wanted: Wanted, others: readonly OtherFields[] | null): Leave | null {
    const scaled = (wanted.leave?.scaled.length ?? 0) === 0 ? [] : this.#deps.autoscalers().of(wanted.key, others)
    return leaveOf(
      wanted.leave,
      scaled.map(({ part }) => part),
    )
  }

  expected(resource: ApiResource): ObjectRef[] {
    const refs: ObjectRef[] = []
    for (const model of this.#deps.registry.all()) {
      for (const entry of model.inventory.values()) {
        const { ref } = entry
        if (ref.kind === resource.kind && ref.group === resource.group && hasExisted(entry)) refs.push(ref)
      }
    }
    return refs
  }

  expects(key: string): boolean {
    const entry = this.#deps.registry.ownerOf(key)?.inventory.get(key)
    return entry !== undefined && hasExisted(entry)
  }

  misses(key: string): boolean {
    return this.#deps.registry.ownerOf(key)?.statuses.get(key)?.health === 'Missing'
  }

  /** LS1: of every inventory entry whose object has existed. */
  *sources(watches: Pick<Watches, 'view' | 'followUp'>): Generator<SourcedObject> {
    for (const model of this.#deps.registry.all()) {
      for (const [key, entry] of model.inventory) {
        if (!hasExisted(entry)) continue
        const lookup = this.#deps.kinds.findAny(entry.ref.group, versionOf(entry.apiVersion), entry.ref.kind)
        const resource = lookup.kind === 'served' ? lookup.resource : null
        const view: LiveView = resource === null ? { kind: 'unknown' } : watches.view(resource, key)
        const followUp = resource === null ? undefined : watches.followUp(resource, key)
        yield { service: model.key, key, view, source: liveSourceOf({ lookup, view, followUp, isMissed: this.misses(key) }) }
      }
    }
  }
}

// LS1: the source that reports changes of an inventory object. Pure, for status and tests: an entry whose source is
// `none` would never be corrected again.

export type LiveSource =
  /** The labelled watch of its kind shows it, or would show it. */
  | 'label'
  /** A watch of this one object. */
  | 'name'
  /** It is read by name, in turn with others. */
  | 'turn'
  /** It is followed in a moment unless it is corrected before. */
  | 'soon'
  /** Its kind is not served, or its source is not complete: no conclusion is drawn. */
  | 'unknown'
  | 'none'

export interface SourceFacts {
  lookup: KindLookup
  view: LiveView
  /** Undefined where its kind is not watched. */
  followUp: Pick<FollowUp, 'source'> | null | undefined
  /** The service reports it as missing. */
  isMissed: boolean
}

export function liveSourceOf({ lookup, view, followUp, isMissed }: SourceFacts): LiveSource {
  if (lookup.kind !== 'served') return 'unknown'
  if (followUp === undefined) return 'none'
  if (view.kind === 'unknown') return 'unknown'
  if (followUp !== null) return followUp.source
  const needsFollowing = view.kind === 'present' ? view.live.unlabelled === true : isMissed
  return needsFollowing ? 'none' : 'label'
}
