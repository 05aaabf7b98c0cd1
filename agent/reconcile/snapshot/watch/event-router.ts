// Handles an event: it marks the objects that have to be evaluated and wakes their services, which decide in their
// reconciliations. It also stores facts that only the event has: the end of a Job, and the change of another manager.
import { groupOf, type K8sObject, type ObjectRef } from '../../../../shared/kube/object.ts'
import type { Clock } from '../../../../shared/runtime/clock.ts'
import { serviceKey } from '../../../../shared/runtime/ids.ts'
import type { Logger } from '../../../../shared/runtime/logger.ts'
import { describeError } from '../../../../shared/runtime/loop.ts'
import type { Random } from '../../../../shared/runtime/random.ts'
import type { ApiResource } from '../../../cluster/cluster.ts'
import type { InventoryEntry } from '../../../state/agent-state.ts'
import { actingOf } from '../account.ts'
import { describeDrift, NO_NOTE } from '../fields/drift.ts'
import { isFilledByOthers } from '../fields/owned-fields.ts'
import { settleShape } from '../fields/shape.ts'
import type { HookEnd } from '../hook-spec.ts'
import { endOf, type LiveRun } from '../live-run.ts'
import type { ServiceModel } from '../service-model.ts'
import { sentObject } from '../wanted.ts'
import type { Autoscalers } from './autoscalers.ts'
import { type Ending, endedBy, type Lacking, LackingObjects } from './causes.ts'
import type { WatchSink } from './kind-watch.ts'
import { isOfThisCluster, type LiveObject, type Registrations } from './live-object.ts'
import type { OwnedIndex } from './owned-index.ts'
import { learnKind, type ServedKinds } from './served-kinds.ts'
import type { ServiceRegistry } from './service-registry.ts'

export interface EventRouterDeps extends Registrations {
  registry: ServiceRegistry
  index: OwnedIndex
  /** Both throw where there is no space on the disk. */
  keep: { settled(model: ServiceModel, entry: InventoryEntry): void; facts(model: ServiceModel, facts: ReadonlyMap<string, unknown>): void }
  kinds: ServedKinds
  clock: Clock
  random: Random
  log: Logger
  signal: AbortSignal
  /** `heal`: something that was in force is not any more. */
  wake(serviceKey: string, urgency?: 'heal' | 'other'): void
  autoscalers(): Autoscalers
}

const isDrifted = ({ appliedDoc, ownedHash }: InventoryEntry, live: LiveObject | null): boolean =>
  appliedDoc !== null && ownedHash !== (live?.ownedHash ?? null)

const CRD_KEY = 'apiextensions.k8s.io/CustomResourceDefinition//'

export class EventRouter implements WatchSink {
  /** A failure that another object may have caused. */
  readonly lacking = new LackingObjects()
  readonly #deps: EventRouterDeps

  constructor(deps: EventRouterDeps) {
    this.#deps = deps
  }

  /** The service is gone. */
  forget({ key }: ServiceModel): void {
    this.lacking.forget(key)
  }

  /** DR10: an autoscaler appeared, disappeared, or targets another object. Null means that any may have. */
  rescaled(targets: readonly string[] | null): void {
    const { registry } = this.#deps
    const autoscalers = this.#deps.autoscalers()
    for (const key of targets ?? [...registry.owners.keys()]) {
      const model = registry.ownerOf(key)
      const wanted = model?.wanted.get(key)
      if (model === null || wanted === undefined || (wanted.leave?.scaled.length ?? 0) === 0) continue
      const isWaiting = model.problems.get(key)?.kind === 'unknown'
      if (targets === null && !isWaiting && autoscalers.of(key, null).length === 0 && model.inventory.get(key)?.appliedDoc === wanted.sent)
        continue
      model.queue.mark(key)
      this.#deps.wake(model.key)
    }
  }

  /** The change is only one that a rule allows, or in a map that was sent empty: noted, without a request. */
  #settle(model: ServiceModel, key: string, entry: InventoryEntry, live: LiveObject, object: K8sObject): boolean {
    const wanted = model.wanted.get(key)
    const others = live.others ?? null
    const leave = wanted === undefined ? null : this.#deps.index.leaveOf(wanted, others)
    const { appliedDoc, ownedHash } = entry
    if (appliedDoc === null) return false
    const isFilled = ownedHash !== null && isFilledByOthers(ownedHash, object)
    const settled = isFilled ? appliedDoc : leave === null ? null : settleShape({ appliedDoc, ownedHash }, object, others, leave)
    if (settled === null) return false
    const now = { ...entry, appliedDoc: settled, ownedHash: live.ownedHash }
    try {
      this.#deps.keep.settled(model, now)
    } catch (error) {
      // No space: then it costs a request, as any other change does.
      this.#deps.log.warn('cannot record the ignored fields', { service: model.key, object: key, error: describeError(error) })
      return false
    }
    model.objects.own(now)
    return true
  }

  changed(key: string, live: LiveObject | null, object: K8sObject | null): void {
    const { registry } = this.#deps
    const owner = registry.owners.get(key)
    const model = owner === undefined ? this.#claimant(live) : registry.model(owner)
    if (model === null) return
    const end = live?.run === undefined ? null : endOf(live)
    if (live?.run !== undefined && end !== null) this.#noteEnd(model, key, live.uid, live.run, end)
    const entry = model.inventory.get(key)
    const isDrift = entry !== undefined && isDrifted(entry, live)
    if (isDrift && !(live !== null && object !== null && this.#settle(model, key, entry, live, object)))
      this.#noteDrift(model, key, entry, object)
    model.queue.mark(key)
    model.markWaiting(key)
    this.#deps.wake(model.key, isDrift ? 'heal' : 'other')
    this.causeChanged(key, live?.health.word === 'Healthy')
    if (key.startsWith(CRD_KEY) && live?.health.word === 'Healthy') {
      const { kinds } = this.#deps
      void learnKind(kinds, key.slice(CRD_KEY.length), this.#deps).then(() => this.#kindsLearned())
    }
  }

  doubted(key: string): void {
    const model = this.#deps.registry.ownerOf(key)
    if (model === null) return
    model.queue.mark(key)
    this.#deps.wake(model.key)
  }

  #noteEnd(model: ServiceModel, key: string, uid: string, run: LiveRun, end: HookEnd): void {
    if (run.id !== '') {
      model.hooks.note(uid, run.id, end)
      return
    }
    const facts = model.finishedJobs.note(key, uid, end)
    if (facts === null) return
    try {
      this.#deps.keep.facts(model, facts)
    } catch (error) {
      // No space: the next turn of this process still knows it.
      this.#deps.log.warn('cannot record the end of a Job', { service: model.key, object: key, error: describeError(error) })
    }
  }

  /** DR2: changes without a running watch are described too. */
  met(key: string, live: LiveObject, object: K8sObject): void {
    const model = this.#deps.registry.ownerOf(key)
    const entry = model?.inventory.get(key)
    if (model !== null && entry !== undefined && isDrifted(entry, live)) this.#noteDrift(model, key, entry, object)
  }

  #noteDrift(model: ServiceModel, key: string, { appliedDoc, commit, revision }: InventoryEntry, object: K8sObject | null): void {
    const note = object === null || appliedDoc === null ? NO_NOTE : describeDrift(sentObject({ doc: appliedDoc, commit, revision }), object)
    // During a takeover on the way to the correction, the object only shows that something differs.
    const knowsMore = note.paths.length > 0 || (model.notes.get(key)?.paths.length ?? 0) === 0
    if (knowsMore) model.objects.setNote(key, { ...note, atMs: this.#deps.clock.nowMs() })
  }

  /** RC16: its CRD was deleted. Asked again after each attempt of the watch until discovery knows it, too. */
  unserved(resource: ApiResource): void {
    const told = () => {
      this.#deps.index.followKinds()
      this.turned(resource)
    }
    this.#deps.kinds.refresh().then(told, (error: unknown) => this.#deps.log.debug('discovery failed', { error: describeError(error) }))
  }

  turned(resource: ApiResource): void {
    const concerns = ({ ref, apiVersion }: { ref: ObjectRef; apiVersion: string }) =>
      ref.kind === resource.kind && ref.group === resource.group && groupOf(apiVersion) === resource.group
    for (const model of this.#deps.registry.all()) {
      let isConcerned = false
      for (const named of [model.wanted, model.inventory]) {
        for (const [key, object] of named) {
          if (!concerns(object)) continue
          isConcerned = true
          model.queue.mark(key)
        }
      }
      const { specs, removalSpecs } = model.hooks
      isConcerned ||= [...specs.values(), ...removalSpecs.values()].some(concerns)
      if (isConcerned) this.#deps.wake(model.key)
    }
    // Also services that want nothing of the kind: objects with their marks may exist from an earlier incarnation
    // (IV3).
    const { index, registry } = this.#deps
    index.unrecorded.maybeNew()
    for (const key of index.unrecorded.services()) {
      const model = registry.known(key)
      if (model === null) continue
      model.expectNewObjects()
      this.#deps.wake(key)
    }
  }

  /** IV3: it is in no inventory, and its marks name its service. */
  #claimant(live: LiveObject | null): ServiceModel | null {
    if (live === null || !isOfThisCluster(live.owner, this.#deps)) return null
    const model = this.#deps.registry.known(serviceKey(live.owner))
    this.#deps.index.unrecorded.maybeNew()
    if (model !== null) model.expectNewObjects()
    return model
  }

  /** RC22: retries failed objects whose cause may be gone. */
  causeChanged(key: string, isHealthy: boolean): void {
    const ending = endedBy(key, isHealthy)
    if (ending === null) return
    for (const kind of ending.kinds) {
      for (const [service, keys] of this.lacking.of(kind)) {
        const model = this.#deps.registry.known(service)
        if (model === null) this.lacking.forget(service)
        else this.#retryCaused(model, kind, keys, ending)
      }
    }
  }

  #retryCaused(model: ServiceModel, kind: Lacking['kind'], keys: ReadonlySet<string>, { ends }: Ending): void {
    const acting = actingOf(model)
    const account = acting.kind === 'account' ? acting.account : null
    for (const key of keys) {
      const problem = model.problems.get(key)
      const ref = (model.wanted.get(key) ?? model.inventory.get(key))?.ref
      const isLacking = problem?.kind === 'failed' && problem.failure.kind === kind && ref !== undefined
      if (isLacking && !ends({ kind, message: problem.failure.message, ref, account })) continue
      this.lacking.drop(kind, model.key, key)
      if (!isLacking) continue
      model.objects.setProblem(key, null)
      model.queue.mark(key)
      this.#deps.wake(model.key)
    }
  }

  /** RC16: a CRD became Established. Objects that wait for a kind are tried when discovery shows the kind, or when the
   *  attempts to discover it have stopped. */
  #kindsLearned(): void {
    const nowMs = this.#deps.clock.nowMs()
    for (const model of this.#deps.registry.all()) {
      for (const [key, problem] of model.problems) {
        if (problem.kind !== 'unserved') continue
        model.objects.setProblem(key, { ...problem, retryAtMs: nowMs })
        this.#deps.wake(model.key)
      }
    }
  }
}
