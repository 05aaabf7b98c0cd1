// All services of this cluster together: which object belongs to which, which kinds are watched for them, and whom a watch event concerns. It
// marks and wakes; what to do is decided in the service's turn.
import { groupOf, type K8sObject, type ObjectRef, refKey, versionOf } from '../../../shared/kube/object.ts'
import { type ServiceId, serviceKey } from '../../../shared/model/ids.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import type { Random } from '../../../shared/runtime/random.ts'
import type { ApiResource } from '../../cluster/cluster.ts'
import type { Replica } from '../../replica/replica.ts'
import type { AgentState, InventoryEntry } from '../../state/agent-state.ts'
import { actingOf, recallActing } from '../apply/acting.ts'
import { endedBy, isCaused, type Lacking } from '../apply/causes.ts'
import { readRecreates } from '../apply/recreate.ts'
import type { Autoscalers } from '../fields/autoscalers.ts'
import { describeDrift } from '../fields/drift.ts'
import { type Leave, leaveOf } from '../fields/ignore.ts'
import type { OtherFields } from '../fields/other-fields.ts'
import { isFilledByOthers } from '../fields/owned-fields.ts'
import { settleShape } from '../fields/shape.ts'
import { takeFor } from '../fields/shaping.ts'
import { endOf } from '../order/hook-run.ts'
import { HOOK_FACTS } from '../order/hooks.ts'
import type { Taker } from '../prune/handover.ts'
import { ServiceModel } from '../service-model.ts'
import type { Wanted } from '../wanted.ts'
import { FollowedKinds } from './followed-kinds.ts'
import type { LiveObject } from './live-object.ts'
import { learnKind, type ServedKinds } from './served-kinds.ts'
import { Owners, Strays } from './strays.ts'
import type { WatchSink } from './watches.ts'

export interface OwnedObjectsDeps {
  state: AgentState
  replica: Replica
  kinds: ServedKinds
  clusterId: string
  clock: Clock
  random: Random
  log: Logger
  signal: AbortSignal
  wake(serviceKey: string): void
  follow(resources: ReadonlyMap<string, ApiResource>): void
  /** Everything that the watches hold. */
  live(): Iterable<{ key: string; apiVersion: string; live: LiveObject }>
  autoscalers(): Autoscalers
}

const CRD_KEY = 'apiextensions.k8s.io/CustomResourceDefinition//'
export class OwnedObjects implements WatchSink {
  /** Keyed by refKey. */
  readonly owners = new Owners()
  readonly strays: Strays
  /** Keys of services of which something failed that another object may be the cause of. */
  readonly lacking = new Set<string>()
  readonly #deps: OwnedObjectsDeps
  readonly #models = new Map<string, ServiceModel>()
  /** Services whose prune waits for rows of others to be read. */
  readonly #waiting = new Set<string>()
  #revisionsSeen = 0

  readonly #followed: FollowedKinds

  constructor(deps: OwnedObjectsDeps) {
    this.#deps = deps
    const { kinds, follow, clusterId } = deps
    this.#followed = new FollowedKinds({ kinds, follow, followScaled: (parts) => deps.autoscalers().follow(parts) })
    this.strays = new Strays({ owners: this.owners, clusterId, all: () => deps.live() })
  }

  /** Everything that replica or inventory know is looked at once. */
  load(): void {
    const { state, replica, wake } = this.#deps
    for (const id of [...state.services(), ...replica.services()]) this.model(id).markAll()
    this.followKinds()
    for (const key of this.#models.keys()) wake(key)
  }

  model(id: ServiceId): ServiceModel {
    const key = serviceKey(id)
    const known = this.#models.get(key)
    if (known !== undefined) return known
    const { state } = this.#deps
    const model = new ServiceModel(id, state.inventory(id), state.serviceState(id), state.facts(id, HOOK_FACTS))
    recallActing(model, state)
    for (const [objectKey, note] of readRecreates(state, id)) model.recreates.set(objectKey, note)
    for (const objectKey of model.inventory.keys()) this.owners.set(objectKey, id)
    this.#models.set(key, model)
    return model
  }

  /** Null: nothing is known of it. */
  known(serviceKey: string): ServiceModel | null {
    return this.#models.get(serviceKey) ?? null
  }

  /** No row, no object: a cluster in which services come and go for years holds none of those that went. */
  drop({ key, deadlines }: ServiceModel): void {
    deadlines.clear()
    this.#models.delete(key)
    this.#waiting.delete(key)
    this.lacking.delete(key)
    this.#followed.forget(key)
  }

  revisionsChanged(services: readonly ServiceId[]): void {
    this.#revisionsSeen += 1
    for (const id of services) {
      const model = this.model(id)
      model.revisionPending = true
      this.#deps.wake(model.key)
    }
  }

  /** After a turn that broke, on a full disk for one: what the file says is what counts, and what it does not say is done again. */
  recover(model: ServiceModel): void {
    const written = new Map(this.#deps.state.inventory(model.id).map((entry) => [refKey(entry.ref), entry]))
    for (const key of model.inventory.keys()) {
      if (written.has(key)) continue
      model.inventory.delete(key)
      this.owners.delete(key)
    }
    for (const [key, entry] of written) {
      model.inventory.set(key, entry)
      this.owners.set(key, model.id)
    }
    model.unrecorded = []
    model.narrow = true
    model.markAll()
  }

  /** What an incomplete revision leaves in force is wanted too, and what cannot be read of one may be. */
  othersWanting(model: ServiceModel, key: string): ServiceModel[] {
    const wants = ({ reading, row, wanted, unread }: ServiceModel) =>
      reading.kind !== 'absent' && row?.removal === undefined && (wanted.get(key)?.onlyIfAbsent === false || unread.has(key))
    return [...this.#models.values()].filter((other) => other !== model && wants(other))
  }

  othersNeeding(model: ServiceModel, key: string): ServiceModel[] {
    return [...this.#models.values()].filter((other) => other !== model && other.wanted.get(key)?.onlyIfAbsent === true)
  }

  revisionsSeen(): number {
    return this.#revisionsSeen
  }

  waitsForOthers(model: ServiceModel): boolean {
    for (const other of this.#models.values()) {
      if (other === model || !other.revisionPending) continue
      this.#waiting.add(model.key)
      return true
    }
    return false
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

  uidsInForce(): ReadonlySet<string> {
    const uids = new Set<string>()
    for (const { wanted, inventory } of this.#models.values()) {
      for (const key of wanted.keys()) {
        const uid = inventory.get(key)?.uid
        if (uid) uids.add(uid)
      }
    }
    return uids
  }

  revisionRead(): void {
    if (this.#waiting.size === 0) return
    for (const { revisionPending } of this.#models.values()) if (revisionPending) return
    for (const key of this.#waiting) this.#deps.wake(key)
    this.#waiting.clear()
  }

  /** Without a service: discovery may say something else of any. */
  followKinds(model?: ServiceModel): void {
    if (model === undefined) this.#followed.updateAll(this.#models.values())
    else this.#followed.update(model)
  }

  /** DR10: an autoscaler came, went, or targets another; null: any may have. */
  rescaled(targets: readonly string[] | null): void {
    const autoscalers = this.#deps.autoscalers()
    const concerned = targets ?? [...this.owners.keys()]
    for (const key of concerned) {
      const owner = this.owners.get(key)
      const model = owner === undefined ? null : this.model(owner)
      const wanted = model?.wanted.get(key)
      if (model === null || wanted === undefined || (wanted.leave?.scaled.length ?? 0) === 0) continue
      const isWaiting = model.problems.get(key)?.kind === 'unknown'
      if (targets === null && !isWaiting && autoscalers.of(key, null).length === 0 && model.inventory.get(key)?.appliedDoc === wanted.sent)
        continue
      model.mark(key)
      this.#deps.wake(model.key)
    }
  }

  /** DR9–DR11, TK1: does it matter here what others own of the object? */
  minds(key: string, { others }: LiveObject): boolean {
    const owner = this.owners.get(key)
    const model = owner === undefined ? undefined : this.#models.get(serviceKey(owner))
    const wanted = model?.wanted.get(key)
    if (model === undefined || wanted === undefined) return false
    if (model.sync().driftAdditions === 'report') return true
    const leave = this.#leave(wanted, others ?? null)
    return leave !== null || takeFor(wanted, leave, others ?? null, 'keep', model.sync()) !== null
  }

  #leave(wanted: Wanted, others: readonly OtherFields[] | null): Leave | null {
    const scaled = (wanted.leave?.scaled.length ?? 0) === 0 ? [] : this.#deps.autoscalers().of(wanted.key, others)
    return leaveOf(
      wanted.leave,
      scaled.map(({ part }) => part),
    )
  }

  /** What happened is only what a rule allows, or in a map that was sent empty: noted, and no request. */
  #settle(model: ServiceModel, key: string, entry: InventoryEntry, live: LiveObject, object: K8sObject): boolean {
    const wanted = model.wanted.get(key)
    const others = live.others ?? null
    const leave = wanted === undefined ? null : this.#leave(wanted, others)
    const { appliedDoc, ownedHash } = entry
    if (appliedDoc === null) return false
    const isFilled = ownedHash !== null && isFilledByOthers(ownedHash, object)
    const settled = isFilled ? appliedDoc : leave === null ? null : settleShape({ appliedDoc, ownedHash }, object, others, leave)
    if (settled === null) return false
    const now = { ...entry, appliedDoc: settled, ownedHash: live.ownedHash }
    try {
      this.#deps.state.recordApplied(model.id, [now])
    } catch (error) {
      // No space: then it costs a request, as any other change does.
      this.#deps.log.warn('what is left to others cannot be noted', { service: model.key, object: key, error: describeError(error) })
      return false
    }
    model.inventory.set(key, now)
    return true
  }

  // What watches tell.

  expected(resource: ApiResource): ObjectRef[] {
    const refs: ObjectRef[] = []
    for (const model of this.#models.values()) {
      for (const { ref, apiVersion, appliedDoc } of model.inventory.values()) {
        if (appliedDoc !== null && ref.kind === resource.kind && ref.group === resource.group && versionOf(apiVersion) === resource.version)
          refs.push(ref)
      }
    }
    return refs
  }

  changed(key: string, live: LiveObject | null, object: K8sObject | null): void {
    const owner = this.owners.get(key)
    const model = owner === undefined ? this.#claimant(live) : this.model(owner)
    if (model === null) return
    const end = live?.run === undefined ? null : endOf(live)
    if (live?.run !== undefined && end !== null) model.hooks.note(live.uid, live.run.id, end)
    const entry = model.inventory.get(key)
    const isDrift = entry !== undefined && entry.appliedDoc !== null && entry.ownedHash !== (live?.ownedHash ?? null)
    if (isDrift && entry.appliedDoc && !(live !== null && object !== null && this.#settle(model, key, entry, live, object))) {
      const note = object === null ? { paths: [], manager: '' } : describeDrift(JSON.parse(entry.appliedDoc) as K8sObject, object)
      // While fields are taken over on the way to the correction, the object says no more than that something is different.
      const knowsMore = note.paths.length > 0 || (model.notes.get(key)?.paths.length ?? 0) === 0
      if (knowsMore) model.notes.set(key, { ...note, atMs: this.#deps.clock.nowMs() })
    }
    model.mark(key)
    model.markWaiting(key)
    this.#deps.wake(model.key)
    this.causeChanged(key, live?.health.word === 'Healthy')
    if (key.startsWith(CRD_KEY) && live?.health.word === 'Healthy') {
      const { kinds } = this.#deps
      void learnKind(kinds, key.slice(CRD_KEY.length), this.#deps).then(() => this.#kindsLearned())
    }
  }

  /** RC16: its CRD was deleted. Asked again after each attempt of the watch until discovery knows it, too. */
  unserved(resource: ApiResource): void {
    const told = () => {
      this.followKinds()
      this.turned(resource)
    }
    this.#deps.kinds.refresh().then(told, (error: unknown) => this.#deps.log.debug('discovery failed', { error: describeError(error) }))
  }

  turned(resource: ApiResource): void {
    const concerns = ({ ref, apiVersion }: { ref: ObjectRef; apiVersion: string }) =>
      ref.kind === resource.kind && ref.group === resource.group && groupOf(apiVersion) === resource.group
    for (const model of this.#models.values()) {
      let isConcerned = false
      for (const named of [model.wanted, model.inventory]) {
        for (const [key, object] of named) {
          if (!concerns(object)) continue
          isConcerned = true
          model.mark(key)
        }
      }
      const { specs, farewell } = model.hooks
      isConcerned ||= [...specs.values(), ...farewell.values()].some(concerns)
      if (isConcerned) this.#deps.wake(model.key)
    }
    // Also who wants nothing of the kind: what carries its marks may be there from an earlier life (IV3).
    this.strays.maybeNew()
    for (const key of this.strays.services()) {
      const model = this.#models.get(key)
      if (model === undefined) continue
      model.narrow = true
      this.#deps.wake(key)
    }
  }

  /** IV3: nobody has it, and it says whose it is. */
  #claimant(live: LiveObject | null): ServiceModel | null {
    if (live?.owner.kind !== 'service' || live.owner.clusterId !== this.#deps.clusterId) return null
    const model = this.#models.get(serviceKey(live.owner))
    this.strays.maybeNew()
    if (model !== undefined) model.narrow = true
    return model ?? null
  }

  /** RC22 */
  causeChanged(key: string, isHealthy: boolean): void {
    if (this.lacking.size === 0) return
    const isEnded = endedBy(key, isHealthy)
    if (isEnded === null) return
    for (const lackingKey of this.lacking) {
      const model = this.#models.get(lackingKey)
      if (model === undefined || !this.#retryCaused(model, isEnded)) this.lacking.delete(lackingKey)
    }
  }

  /** False: nothing is left of it that another object could be the cause of. */
  #retryCaused(model: ServiceModel, isEnded: (lacking: Lacking) => boolean): boolean {
    const acting = actingOf(model)
    const account = acting.kind === 'account' ? acting.account : null
    let left = false
    for (const [key, problem] of model.problems) {
      if (problem.kind !== 'failed' || !isCaused(problem.failure.kind)) continue
      const ref = (model.wanted.get(key) ?? model.inventory.get(key))?.ref
      if (ref === undefined || !isEnded({ kind: problem.failure.kind, message: problem.failure.message, ref, account })) {
        left = true
        continue
      }
      model.problems.delete(key)
      model.mark(key)
      this.#deps.wake(model.key)
    }
    return left
  }

  /** RC16: a CRD became Established. What waited for a kind is tried when discovery shows it, or when asking for it was given up for now. */
  #kindsLearned(): void {
    const nowMs = this.#deps.clock.nowMs()
    for (const model of this.#models.values()) {
      for (const [key, problem] of model.problems) {
        if (problem.kind !== 'unserved') continue
        model.problems.set(key, { ...problem, retryAtMs: nowMs })
        this.#deps.wake(model.key)
      }
    }
  }
}
