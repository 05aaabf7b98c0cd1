// Takes in what came of each step: the model at once, the agent's state in batches. A batch lost in a crash costs one more apply of what was in
// it, never an object: the inventory was widened before, and is narrowed only here, after the API server confirmed.
import { deletingText, deletionText } from '../../shared/kube/deletion.ts'
import { otherOwner, takeoverWarning } from '../../shared/kube/foreign-owners.ts'
import { type K8sObject, type ObjectRef, refKey, refText } from '../../shared/kube/object.ts'
import { serviceKey } from '../../shared/model/ids.ts'
import type { DriftStatus } from '../../shared/model/status.ts'
import { exhaustive } from '../../shared/runtime/assert.ts'
import { backoffMs } from '../../shared/runtime/backoff.ts'
import { type ApiFailure, TERMINAL_FAILURES } from '../cluster/cluster.ts'
import type { InventoryEntry } from '../state/agent-state.ts'
import { isCaused } from './apply/causes.ts'
import { forgetRecreate, refuseRecreate } from './apply/recreate.ts'
import { RETRY_BACKOFF } from './revision.ts'
import type { ServiceModel } from './service-model.ts'
import { namespaceKey, type Problem } from './situation.ts'
import type { Step, StepOf, StepResult } from './step.ts'
import { describeProblem } from './tell/outcome.ts'
import { liveIn, type TurnDeps } from './turn-deps.ts'

const BATCH_MAX = 200

export class Recorder {
  readonly #model: ServiceModel
  readonly #deps: TurnDeps
  #gone: ObjectRef[] = []
  /** What was forgotten with the mark of another service on it, and which. */
  readonly #marked = new Map<string, { model: ServiceModel; entry: InventoryEntry }>()

  constructor(model: ServiceModel, deps: TurnDeps) {
    this.#model = model
    this.#deps = deps
  }

  take(result: StepResult): void {
    const model = this.#model
    switch (result.kind) {
      case 'inspected':
        for (const [key, contact] of result.contacts) model.contacts.set(key, contact)
        return
      case 'applied':
        if (result.object.metadata.deletionTimestamp === undefined) this.#takeApplied(result)
        else this.#takeDying(result)
        break
      case 'cleared':
        this.#deps.watches.drop(result.step.resource, result.step.key)
        model.problems.delete(result.step.key)
        model.mark(result.step.key)
        break
      case 'gone':
        this.#takeGone(result.step)
        break
      case 'deleting': {
        const message = deletingText(result.finalizers)
        this.#deps.watches.markDeleting(result.step.resource, result.step.key, message)
        model.problems.set(result.step.key, { kind: 'waiting', on: result.step.key, message })
        model.touched.add(result.step.key)
        break
      }
      case 'changed':
        // Perhaps a keep mark came: it is judged again by what it is now.
        this.#deps.watches.accept(result.step.resource, result.object)
        model.touched.add(result.step.key)
        break
      case 'failed':
        this.#takeFailed(result.step, result.failure)
        break
      default:
        exhaustive(result)
    }
    if (this.#model.unrecorded.length + this.#gone.length >= BATCH_MAX) this.flush()
  }

  flush(): void {
    const { state } = this.#deps
    if (this.#model.unrecorded.length >= BATCH_MAX) state.recordApplied(this.#model.id, this.#model.takeUnrecorded())
    if (this.#gone.length > 0) state.narrowInventory(this.#model.id, this.#gone)
    const gone = this.#gone
    this.#gone = []
    if (gone.length === 0) return
    for (const ref of gone) this.#release(refKey(ref))
    this.#deps.followKinds(this.#model)
  }

  /** The file is the judge of who owns what: whoever wants the object next is told that it is free when the file says so, and not before. */
  #release(key: string): void {
    const { owners, othersWanting, wake, state } = this.#deps
    const owner = owners.get(key)
    if (owner !== undefined && serviceKey(owner) === this.#model.key) owners.delete(key)
    const takers = othersWanting(this.#model, key)
    for (const taker of [...takers, ...this.#deps.othersNeeding(this.#model, key)]) {
      taker.narrow = true
      taker.mark(key)
      wake(taker.key)
    }
    const marked = this.#marked.get(key)
    if (marked === undefined || takers.length > 0) return
    // At once: with its last object a kind is watched no more, and nobody would find it.
    const { model, entry } = marked
    if (state.widenInventory(model.id, [entry]).length > 0) return
    owners.set(key, model.id)
    model.inventory.set(key, entry)
    model.mark(key)
    wake(model.key)
  }

  /** IV3: it was to be taken over and never was: the service whose mark is still on it has it again. */
  #noteMark(key: string): void {
    const { clusterId, modelOf } = this.#deps
    const entry = this.#model.inventory.get(key)
    if (entry === undefined) return
    const view = liveIn(this.#deps, { key, ref: entry.ref, apiVersion: entry.apiVersion })
    if (view.kind !== 'present' || view.live.owner.kind !== 'service' || view.live.owner.clusterId !== clusterId) return
    const marked = modelOf(serviceKey(view.live.owner))
    if (marked === null || marked === this.#model) return
    const { ref, apiVersion } = entry
    this.#marked.set(key, {
      model: marked,
      entry: { ref, apiVersion, uid: view.live.uid, appliedDoc: null, ownedHash: null, digest: null },
    })
  }

  #takeApplied({ step, object }: Extract<StepResult, { kind: 'applied' }>): void {
    const { key, ref, doc, why } = step
    const model = this.#model
    const live = this.#deps.watches.accept(step.resource, object)
    const before = model.inventory.get(key)
    const digest = why === 'drift' || why === 'takeover' ? (before?.digest ?? null) : (model.row?.digest ?? null)
    const entry = { ref, apiVersion: object.apiVersion, uid: live.uid, appliedDoc: doc, ownedHash: live.ownedHash, digest }
    model.inventory.set(key, entry)
    if (before?.uid !== entry.uid || before.appliedDoc !== doc || before.ownedHash !== entry.ownedHash) model.unrecorded.push(entry)
    // It went again before this answer came; its event has been and told nobody of an object that was not known yet.
    if (liveIn(this.#deps, { key, ref, apiVersion: object.apiVersion }).kind === 'absent') model.mark(key)
    const wanted = model.wanted.get(key)
    if (wanted !== undefined && wanted.sent !== (step.shaped?.of ?? doc)) {
      // DR6: healed to what is in force; what keeps the wanted one back is found again, or nothing would remember that it is still to come.
      model.mark(key)
    } else if (wanted !== undefined) {
      model.problems.delete(key)
      if (forgetRecreate(model, this.#deps.state, key)) {
        this.#emit('Normal', 'Recreated', `${refText(ref)} was deleted and made again, because a field of it cannot be changed`, key)
      }
    }
    model.contacts.delete(key)
    model.touched.add(key)
    if (why === 'new' || why === 'changed') {
      this.#deps.emitOnObject({
        type: 'Normal',
        reason: 'Applied',
        message: `${refText(ref)} was applied`,
        service: model.key,
        object: key,
      })
    }
    if (why === 'changed') {
      model.progressingSinceMs.delete(key)
      model.deadlines.forget(key)
    }
    if (why === 'new') this.#tellTakeover(step, object)
    if (why === 'drift') {
      this.drift(key, 'healed')
      const note = model.notes.get(key)
      const what = note === undefined || note.paths.length === 0 ? '' : ` (${note.paths.slice(0, 5).join(', ')})`
      const by = note?.manager ? ` after a change by ${note.manager}` : ''
      this.#emit('Normal', 'DriftHealed', `${refText(ref)}${what} was put back${by}`, key)
    }
    // An apply to an object without managedFields makes an entry `before-first-apply` of all that was there: it is taken over like any other tool's.
    if (live.others !== undefined && why !== 'takeover') model.mark(key)
    if (step.shaped?.take) this.#emit('Normal', 'FieldsTaken', `${refText(ref)}: what other tools had applied is Git's from now on`, key)
    model.notes.delete(key)
    if (key.startsWith(namespaceKey(''))) model.markWaiting(key)
    this.#deps.causeChanged(key, live.health.word === 'Healthy')
  }

  /** RC20: the API server says yes, and the object goes all the same. Its events tell when; who has no label of ours yet is looked at again. */
  #takeDying({ step: { key, ref }, object }: Extract<StepResult, { kind: 'applied' }>): void {
    const model = this.#model
    const { clock, random } = this.#deps
    const before = model.problems.get(key)
    const attempt = before?.kind === 'owned' && before.going !== undefined ? before.attempt + 1 : 0
    const retryAtMs = clock.nowMs() + backoffMs(attempt, RETRY_BACKOFF, random)
    model.problems.set(key, { kind: 'owned', owner: refText(ref), going: deletionText(object) ?? '', attempt, retryAtMs })
    model.contacts.delete(key)
    model.touched.add(key)
  }

  /** RC3: the other tool's mark stays, because its fields are not ours to delete; what that means is said once. */
  #tellTakeover({ key, ref, doc }: StepOf<'apply'>, object: K8sObject): void {
    const warning = takeoverWarning(object.metadata, ref)
    if (warning === null || otherOwner((JSON.parse(doc) as K8sObject).metadata, ref) === otherOwner(object.metadata, ref)) return
    this.#emit('Warning', 'TakenOver', `${refText(ref)} was taken over; ${warning}`, key)
  }

  #takeGone(step: StepOf<'delete' | 'orphan' | 'forget'>): void {
    const { key, ref } = step
    const { watches } = this.#deps
    if (step.kind !== 'forget') {
      watches.drop(step.resource, key)
      const reason = step.kind === 'delete' ? 'Pruned' : 'LetGo'
      this.#emit('Normal', reason, `${refText(ref)} ${step.kind === 'delete' ? 'was deleted' : 'was let go and stays'}`, key)
    }
    if (step.kind === 'forget') this.#noteMark(key)
    this.#model.forget(key)
    forgetRecreate(this.#model, this.#deps.state, key)
    this.#gone.push(ref)
    if (step.kind === 'delete') this.#deps.causeChanged(key, false)
  }

  #takeFailed(step: Step, failure: ApiFailure): void {
    const refs = step.kind === 'inspect' ? step.refs : [step.ref]
    for (const ref of refs) this.#fail(refKey(ref), ref, step, failure)
  }

  #fail(key: string, ref: ObjectRef, step: Step, failure: ApiFailure): void {
    const model = this.#model
    const { random, clock, state } = this.#deps
    const sent = step.kind === 'apply' ? (step.shaped?.of ?? step.doc) : (model.wanted.get(key)?.sent ?? null)
    const before = model.problems.get(key)
    const heals = step.kind === 'apply' && step.why === 'drift'
    // RC8: the wanted document and the one in force take turns; that is no reason to try either more often.
    const isAgain = before?.kind === 'failed' && (before.sent === sent || heals || before.heals === true)
    const attempt = isAgain ? before.attempt + 1 : 0
    const terminal = step.kind === 'apply' && TERMINAL_FAILURES.has(failure.kind)
    const retryAtMs = terminal ? null : clock.nowMs() + backoffMs(attempt, RETRY_BACKOFF, random, failure.retryAfterMs)
    const problem: Problem = { kind: 'failed', failure, attempt, retryAtMs, sent, ...(heals ? { heals } : {}) }
    model.problems.set(key, problem)
    model.contacts.delete(key)
    model.touched.add(key)
    if (isCaused(failure.kind)) this.#deps.lacking.add(model.key)
    const wanted = model.wanted.get(key)
    if (step.kind === 'apply' && wanted?.sent === sent) {
      if (terminal && failure.kind !== 'immutable') refuseRecreate(model, state, key, failure.message)
      // Looked at again at once: it may be made again, or else what was there before comes back (DR6).
      model.dirty.add(key)
    }
    if (before?.kind !== 'failed' || before.failure.kind !== failure.kind) {
      // Who asked for Force need not be told of it.
      const again = failure.kind === 'immutable' && wanted?.sent === sent && (wanted?.options?.recreate ?? 'never') !== 'never'
      const said = again
        ? `${failure.message}; its sync-options have it made again where nothing forbids that`
        : describeProblem(problem).message
      this.#emit('Warning', 'Failed', `${refText(ref)}: ${said}`, key)
    }
    if (step.kind === 'apply' && step.why === 'drift') this.drift(key, 'failed')
    // The service's own namespace went unseen, because it is not ours: look again, and make it if it is gone.
    const namespace = namespaceKey(ref.namespace)
    if (failure.kind === 'namespace_missing' && model.wanted.get(namespace)?.onlyIfAbsent && model.contacts.delete(namespace))
      model.mark(namespace)
  }

  /** The newest drift of an object, with how often it happened. */
  drift(key: string, action: DriftStatus['action']): void {
    const { state, clock } = this.#deps
    const note = this.#model.notes.get(key)
    const nowMs = clock.nowMs()
    const statusKey = `${this.#model.key}/${key}`
    const last = state.lastReported('drift', statusKey)
    const count = last !== null && typeof last === 'object' && 'count' in last && typeof last.count === 'number' ? last.count : 0
    const doc: DriftStatus = {
      paths: note?.paths ?? [],
      manager: note?.manager ?? '',
      action,
      detectedMs: note?.atMs ?? nowMs,
      ...(action === 'healed' ? { healedMs: nowMs } : {}),
      count: count + 1,
    }
    this.#deps.report([{ kind: 'drift', key: statusKey, doc }])
  }

  #emit(type: 'Normal' | 'Warning', reason: string, message: string, object: string): void {
    this.#deps.emit({ type, reason, message: message.slice(0, 1_000), service: this.#model.key, object: object.slice(0, 512) })
  }
}
