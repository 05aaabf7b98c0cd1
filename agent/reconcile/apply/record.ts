// Records the result of each step: the model at once, the agent's state in batches. A batch lost in a crash costs one
// more apply of its objects, never an object: the inventory was widened before, and is narrowed only here, after the
// API server confirmed.
import { deletingText } from '../../../shared/kube/deletion.ts'
import { otherOwner, takeoverWarning } from '../../../shared/kube/foreign-owners.ts'
import { type K8sObject, type ObjectRef, refKey, refText } from '../../../shared/kube/object.ts'
import { isBuiltInGroup } from '../../../shared/kube/order.ts'
import type { DriftStatus, EventStatus } from '../../../shared/model/status.ts'
import { exhaustive } from '../../../shared/runtime/assert.ts'
import { backoffMs } from '../../../shared/runtime/backoff.ts'
import { serviceKey } from '../../../shared/runtime/ids.ts'
import { type ApiFailure, TERMINAL_FAILURES } from '../../cluster/cluster.ts'
import { news, warning } from '../../messages/event-messages.ts'
import { objectPart } from '../../messages/object-messages.ts'
import { entryOnPaper, type InventoryEntry } from '../../state/agent-state.ts'
import { describeProblem, warningNews } from '../plan/problem-text.ts'
import { refusedRecreate } from '../plan/recreate.ts'
import type { Step, StepOf, StepResult } from '../plan/step.ts'
import { liveIn } from '../plan/turn-view.ts'
import type { Reports, Services, Site, Storage, Turns } from '../ports.ts'
import { driftText, NO_NOTE, shownPaths } from '../snapshot/fields/drift.ts'
import type { ServiceModel } from '../snapshot/service-model.ts'
import { CHANGED_BEFORE_DELETE, namespaceKey, type Problem } from '../snapshot/situation.ts'
import { dropNulls, nullsDocumentId, withoutRefusedNulls } from '../snapshot/wanted.ts'
import { isOfThisCluster, safeDeletion } from '../snapshot/watch/live-object.ts'
import { dropDeleted, type Heir, keepRecreates, keepRefusedNulls, lastObject, letGo, remember, writeApplied } from './remember.ts'
import { RETRY_BACKOFF } from './revision.ts'

const BATCH_MAX = 200
/** RC38: at first for an API server that does not know a new CRD yet, then for a person who updates an old one. */
const SCHEMA_BACKOFF = { baseMs: 1_000, capMs: 1_800_000 }
/** Attempts to delete an object that always changes meanwhile, before the next ones wait. */
const DELETES_AT_ONCE_MAX = 3

export class Recorder {
  readonly #model: ServiceModel
  readonly #deps: Site & Storage & Services & Turns & Reports
  #gone: ObjectRef[] = []
  readonly #namespaceRetriesMs = new Map<string, number>()
  /** An object removed from the inventory that may still exist, and the service whose label it has. */
  readonly #forgotten = new Map<string, { marked: ServiceModel | null; entry: InventoryEntry }>()

  constructor(model: ServiceModel, deps: Site & Storage & Services & Turns & Reports) {
    this.#model = model
    this.#deps = deps
  }

  take(result: StepResult): void {
    const model = this.#model
    switch (result.kind) {
      case 'inspected':
        for (const [key, contact] of result.contacts) model.objects.met(key, contact)
        return
      case 'applied':
        if (result.object.metadata.deletionTimestamp === undefined) this.#takeApplied(result)
        else this.#takeDying(result)
        this.#tellWarnings(result.step, result.warnings, false)
        break
      case 'cleared':
        dropDeleted(model, this.#deps, result.step)
        model.objects.setProblem(result.step.key, null)
        model.queue.mark(result.step.key)
        break
      case 'gone':
        this.#takeGone(result.step)
        break
      case 'deleting': {
        const message = deletingText(result.finalizers)
        this.#deps.watches.markDeleting(result.step.resource, result.step.key, message)
        model.objects.setProblem(result.step.key, { kind: 'waiting', on: result.step.key, message })
        model.queue.touch(result.step.key)
        break
      }
      case 'changed':
        // It may have a keep mark now: it is judged again by its present state.
        this.#deps.watches.accept(result.step.resource, result.object)
        this.#takeChanged(result.step)
        break
      case 'failed':
        this.#takeFailed(result.step, result.failure)
        if (result.step.kind === 'apply') this.#tellWarnings(result.step, result.warnings, true)
        break
      default:
        exhaustive(result)
    }
    if (this.#model.unrecordedCount + this.#gone.length >= BATCH_MAX) this.flush()
  }

  flush(): void {
    if (this.#model.unrecordedCount >= BATCH_MAX) writeApplied(this.#model, this.#deps)
    const gone = this.#gone
    if (gone.length === 0) return
    const heirs = gone.flatMap((ref) => this.#heirOf(refKey(ref)) ?? [])
    letGo(this.#model, this.#deps, gone, heirs)
    this.#gone = []
    for (const ref of gone) this.#release(refKey(ref))
    for (const { model } of heirs) {
      this.#deps.followKinds(model)
      this.#deps.wake(model.key)
    }
    this.#deps.followKinds(this.#model)
  }

  /**
   * The inventory file decides about ownership: the next service learns that the object is free after the file says so,
   * and not before.
   */
  #release(key: string): void {
    const { othersWanting, othersNeeding, wake } = this.#deps
    for (const taker of [...othersWanting(this.#model, key), ...othersNeeding(this.#model, key)]) {
      taker.expectNewObjects()
      taker.queue.mark(key)
      // A hook waits for the time of its problem.
      if (taker.hooks.specs.has(key)) taker.objects.setProblem(key, null)
      wake(taker.key)
    }
  }

  /**
   * IV11: the first service that wants the object, or the one whose mark it carries, gets it in the write by which this
   * one releases it. A service that drops it before its reconciliation would leave it without an owner, and with its
   * last object a kind is no longer watched.
   */
  #heirOf(key: string): Heir | null {
    const forgotten = this.#forgotten.get(key)
    this.#forgotten.delete(key)
    if (forgotten === undefined) return null
    const { marked, entry } = forgotten
    const takers = this.#deps.othersWanting(this.#model, key)
    const model = takers.find(({ wanted }) => wanted.get(key)?.options?.touch !== 'never') ?? (takers.length > 0 ? null : marked)
    return model === null || model.inventory.has(key) ? null : { model, entry }
  }

  #noteForgotten(key: string): void {
    const entry = this.#model.inventory.get(key)
    if (entry === undefined) return
    const { ref, apiVersion } = entry
    const view = liveIn(this.#deps, { key, ref, apiVersion })
    if (view.kind === 'absent') return
    const owner = view.kind === 'present' && isOfThisCluster(view.live.owner, this.#deps) ? view.live.owner : null
    const marked = owner === null ? null : this.#deps.modelOf(serviceKey(owner))
    const uid = view.kind === 'present' ? view.live.uid : undefined
    this.#forgotten.set(key, { marked: marked === this.#model ? null : marked, entry: entryOnPaper({ ref, apiVersion }, uid) })
  }

  #takeApplied({ step, object, created, withoutNulls }: Extract<StepResult, { kind: 'applied' }>): void {
    const { key, ref, why } = step
    const doc = withoutNulls ?? step.doc
    const model = this.#model
    const live = this.#deps.watches.accept(step.resource, object)
    const before = model.inventory.get(key)
    const digest = why === 'drift' || why === 'takeover' ? (before?.digest ?? null) : (model.row?.digest ?? null)
    const { commit, revision } = step
    const entry = {
      ref,
      apiVersion: object.apiVersion,
      uid: live.uid,
      appliedDoc: doc,
      ownedHash: live.ownedHash,
      digest,
      commit,
      revision,
    }
    const isNews = before?.uid !== entry.uid || before.appliedDoc !== doc || before.ownedHash !== entry.ownedHash
    model.applied(entry, isNews)
    // It disappeared again before this answer; its event came before the object was known.
    if (liveIn(this.#deps, { key, ref, apiVersion: object.apiVersion }).kind === 'absent') model.queue.mark(key)
    if (withoutNulls !== undefined) this.#takeWithoutNulls(step)
    const wanted = model.wanted.get(key)
    const of = step.shaped?.of ?? step.doc
    if (wanted !== undefined && wanted.sent !== (withoutNulls === undefined ? of : (dropNulls(of) ?? of))) {
      // DR6: corrected to the applied document; the obstacle of the wanted one is found again, or nothing would
      // remember that it is still to be applied.
      model.queue.mark(key)
    } else if (wanted !== undefined) {
      model.objects.setProblem(key, null)
      if (model.recreates.has(key)) {
        keepRecreates(model, this.#deps, new Map([[key, null]]))
        this.#emit(news('Recreated', { object: refText(ref) }), key)
      }
    }
    model.queue.touch(key)
    if (why === 'new' || why === 'changed') {
      this.#deps.emitOnObject({ ...news('Applied.object', { object: refText(ref) }), service: model.key, object: key })
    }
    if (why === 'changed') {
      model.objects.progresses(key, null)
      model.deadlines.forget(key)
    }
    if (why === 'new') this.#tellTakeover(step, object)
    if (why === 'drift') this.#tellHealed(key, ref, created)
    // An apply to an object without managedFields creates an entry `before-first-apply` of all its fields: it is taken
    // over like any other tool's.
    if (live.others !== undefined && why !== 'takeover') model.queue.mark(key)
    if (step.shaped?.take) this.#emit(news('FieldsTaken', { object: refText(ref) }), key)
    model.objects.setNote(key, null)
    if (key.startsWith(namespaceKey(''))) model.markWaiting(key)
    this.#deps.causeChanged(key, live.health.word === 'Healthy')
  }

  /** RC25: from now on the document without nulls is the wanted one, until Git changes it. */
  #takeWithoutNulls({ key, ref, shaped, doc }: StepOf<'apply'>): void {
    const model = this.#model
    const refused = shaped?.of ?? doc
    const wanted = model.wanted.get(key)
    if (wanted?.sent !== refused) return
    const isNews = keepRefusedNulls(model, this.#deps, key, nullsDocumentId(refused))
    model.objects.want(key, withoutRefusedNulls(wanted, model.refusedNulls.get(key)))
    if (isNews) this.#emit(warning('NullRefused', { object: refText(ref) }), key)
  }

  /** DR2, DR12: `deleted`: the correction created the object. */
  #tellHealed(key: string, ref: ObjectRef, deleted: boolean): void {
    this.drift(key, 'healed', deleted)
    const drift = driftText(this.#model.notes.get(key) ?? NO_NOTE, deleted)
    this.#emit(news(deleted ? 'Restored' : 'DriftHealed', { object: refText(ref), drift }), key)
  }

  /**
   * RC20: the API server accepts the apply, and the object is deleted all the same. Its events tell when. An object
   * without Skerry's label is read again.
   */
  #takeDying({ step: { key, ref }, object }: Extract<StepResult, { kind: 'applied' }>): void {
    const model = this.#model
    const { clock, random } = this.#deps
    const before = model.problems.get(key)
    const attempt = before?.kind === 'owned' && before.going !== undefined ? before.attempt + 1 : 0
    const retryAtMs = clock.nowMs() + backoffMs(attempt, RETRY_BACKOFF, random)
    model.objects.failed(key, { kind: 'owned', owner: refText(ref), going: safeDeletion(object) ?? '', attempt, retryAtMs })
    model.queue.touch(key)
  }

  /** RC3: the other tool's mark stays, because its fields belong to that tool; the consequence is reported once. */
  #tellTakeover({ key, ref, doc }: StepOf<'apply'>, object: K8sObject): void {
    const why = takeoverWarning(object.metadata, ref)
    if (why === null || otherOwner((JSON.parse(doc) as K8sObject).metadata, ref) === otherOwner(object.metadata, ref)) return
    this.#emit(warning('TakenOver', { object: refText(ref), warning: why }), key)
  }

  #takeGone(step: StepOf<'delete' | 'orphan' | 'forget'>): void {
    const { key, ref } = step
    const { watches } = this.#deps
    if (step.kind !== 'forget') {
      if (step.kind === 'delete') {
        dropDeleted(this.#model, this.#deps, step)
        this.#model.deletedUids.add(step.uid)
      } else watches.drop(step.resource, key)
      this.#emit(news(step.kind === 'delete' ? 'Pruned' : 'LetGo', { object: refText(ref) }), key)
    }
    if (step.kind === 'forget') this.#noteForgotten(key)
    this.#model.forget(key)
    keepRecreates(this.#model, this.#deps, new Map([[key, null]]))
    keepRefusedNulls(this.#model, this.#deps, key, null)
    remember(this.#model, this.#deps, this.#model.finishedJobs.forget(key))
    this.#gone.push(ref)
    if (step.kind === 'delete') this.#deps.causeChanged(key, false)
  }

  /** PR12: at once a few times, then with backoff: a controller that writes all the time would be raced for ever. */
  #takeChanged({ kind, key, ref }: StepOf<'delete' | 'recreate'>): void {
    const model = this.#model
    const before = model.problems.get(key)
    const attempt = before?.kind === 'failed' ? changesOf(before) : 0
    const waitMs = attempt < DELETES_AT_ONCE_MAX ? 0 : backoffMs(attempt - DELETES_AT_ONCE_MAX, RETRY_BACKOFF, this.#deps.random)
    const message = objectPart('changed_before_delete', { attempts: attempt + 1 })
    const retryAtMs = this.#deps.clock.nowMs() + waitMs
    // AO4: keeps the reason of the recreation.
    if (kind === 'recreate' && before?.kind === 'failed') model.objects.setProblem(key, { ...before, changes: attempt + 1, retryAtMs })
    else {
      const failure: ApiFailure = { kind: 'conflict', status: 409, reason: CHANGED_BEFORE_DELETE, message }
      model.objects.setProblem(key, { kind: 'failed', failure, attempt, retryAtMs, sent: null })
    }
    if (kind === 'recreate') model.queue.plan(key)
    model.queue.touch(key)
    if (attempt === DELETES_AT_ONCE_MAX) this.#emit(warning('DeletionConflict', { object: refText(ref), failure: message }), key)
  }

  #takeFailed(step: Step, failure: ApiFailure): void {
    const refs = step.kind === 'inspect' ? step.refs : [step.ref]
    for (const ref of refs) this.#fail(refKey(ref), ref, step, failure)
  }

  #fail(key: string, ref: ObjectRef, step: Step, failure: ApiFailure): void {
    const model = this.#model
    const { random, clock } = this.#deps
    const sent = step.kind === 'apply' ? (step.shaped?.of ?? step.doc) : (model.wanted.get(key)?.sent ?? null)
    const before = model.problems.get(key)
    const heals = step.kind === 'apply' && step.why === 'drift'
    // RC8: the wanted document and the one in force take turns; that is no reason to try either more often.
    const isAgain = before?.kind === 'failed' && (before.sent === sent || heals || before.heals === true)
    const attempt = isAgain ? before.attempt + 1 : 0
    const terminal = step.kind === 'apply' && TERMINAL_FAILURES.has(failure.kind)
    const backoff = terminal ? (failure.kind === 'invalid' && !isBuiltInGroup(ref.group) ? SCHEMA_BACKOFF : null) : RETRY_BACKOFF
    const ownRetryAtMs = backoff === null ? null : clock.nowMs() + backoffMs(attempt, backoff, random, failure.retryAfterMs)
    const retryAtMs = failure.kind === 'namespace_terminating' ? this.#sharedRetry(ref.namespace, ownRetryAtMs) : ownRetryAtMs
    const problem: Problem = { kind: 'failed', failure, attempt, retryAtMs, sent, ...(heals ? { heals } : {}) }
    model.objects.failed(key, problem)
    model.queue.touch(key)
    this.#deps.lacking.add(failure.kind, model.key, key)
    const wanted = model.wanted.get(key)
    if (step.kind === 'apply' && wanted?.sent === sent) {
      const refused = terminal && failure.kind !== 'immutable' ? refusedRecreate(model, key, failure.message) : null
      if (refused !== null) keepRecreates(model, this.#deps, new Map([[key, refused]]))
      // Evaluated again at once: it may be recreated, or else the former object is restored (DR6).
      model.queue.plan(key)
    }
    if (before?.kind !== 'failed' || before.failure.kind !== failure.kind) {
      // A manifest with Force needs no hint about Force.
      const again = failure.kind === 'immutable' && wanted?.sent === sent && (wanted?.options?.recreate ?? 'never') !== 'never'
      const object = refText(ref)
      const event = again
        ? warning('Failed.recreates', { object, failure: failure.message })
        : warning('Failed', { object, message: describeProblem(problem).message })
      this.#emit(event, key)
    }
    if (step.kind === 'apply' && step.why === 'drift') {
      const entry = model.inventory.get(key)
      this.drift(key, 'failed', entry !== undefined && liveIn(this.#deps, { key, ref, apiVersion: entry.apiVersion }).kind === 'absent')
    }
    // The service's own namespace disappeared without an event, because it is not owned: it is read again, and created
    // if it is gone.
    const namespace = namespaceKey(ref.namespace)
    if (failure.kind === 'namespace_missing' && model.wanted.get(namespace)?.onlyIfAbsent && model.objects.forgetContact(namespace))
      model.queue.mark(namespace)
  }

  /** RC36: one time for all objects of the namespace. */
  #sharedRetry(namespace: string, ownMs: number | null): number | null {
    const sharedMs = this.#namespaceRetriesMs.get(namespace) ?? ownMs
    if (sharedMs !== null) this.#namespaceRetriesMs.set(namespace, sharedMs)
    return sharedMs
  }

  #tellWarnings({ key, ref }: StepOf<'apply'>, warnings: readonly string[] = [], isRefused: boolean): void {
    const model = this.#model
    // Almost every write has none, and reading the state for each would cost a thousand reads.
    const known = warnings.length === 0 ? [] : (model.warnings.get(key) ?? lastObject(model, this.#deps, key)?.warnings ?? [])
    const told = warningNews({ ref, warnings, known, isRefused })
    if (told.warnings !== null) model.objects.warned(key, told.warnings)
    if (told.event !== null) this.#emit(told.event, key)
  }

  /** The newest drift of an object, with how often it happened. */
  drift(key: string, action: DriftStatus['action'], deleted: boolean): void {
    const { state, clock } = this.#deps
    const note = deleted ? undefined : this.#model.notes.get(key)
    const nowMs = clock.nowMs()
    const statusKey = `${this.#model.key}/${key}`
    const last = state.lastReported('drift', statusKey)
    const count = last !== null && typeof last === 'object' && 'count' in last && typeof last.count === 'number' ? last.count : 0
    const doc: DriftStatus = {
      paths: shownPaths(note?.paths ?? []),
      manager: note?.manager ?? '',
      ...(deleted ? { deleted: true } : {}),
      action,
      detectedMs: this.#model.notes.get(key)?.atMs ?? nowMs,
      ...(action === 'healed' ? { healedMs: nowMs } : {}),
      count: count + 1,
    }
    this.#deps.report([{ kind: 'drift', key: statusKey, doc }])
  }

  #emit(event: Pick<EventStatus, 'type' | 'reason' | 'message'>, object: string): void {
    const message = event.message.slice(0, 1_000)
    this.#deps.emit({ ...event, message, service: this.#model.key, object: object.slice(0, 512) })
  }
}

const changesOf = ({ failure, attempt, changes = 0 }: Extract<Problem, { kind: 'failed' }>): number =>
  failure.reason === CHANGED_BEFORE_DELETE ? attempt + 1 : changes
