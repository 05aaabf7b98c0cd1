// What the agent holds in memory of one service: the revision it is to be, the inventory it has, and what stands in the way. Filled from replica
// and agent state, so that a restart with no network begins with all of it; nothing here is truth of its own.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { type ObjectRef, refKey } from '../../shared/kube/object.ts'
import { isUnreadable, parseRowId, type ServiceRow } from '../../shared/model/desired.ts'
import { type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import { type SyncOptions, syncOptionsSchema } from '../../shared/model/resources.ts'
import type { ObjectStatus, PruneRefusal, ServiceStatus } from '../../shared/model/status.ts'
import type { DesiredRevision } from '../replica/replica.ts'
import type { InventoryEntry, ServiceProgress, ServiceState } from '../state/agent-state.ts'
import type { ActingAs } from './apply/acting.ts'
import { namespaceContext } from './apply/own-namespace.ts'
import type { Recreate } from './apply/recreate.ts'
import type { Contest } from './fields/contest.ts'
import type { DriftNote } from './fields/drift.ts'
import type { Closed } from './gates/gates.ts'
import { heldWanted } from './gates/held-wanted.ts'
import type { ActiveHold } from './gates/hold.ts'
import type { HookSpec } from './order/hook-spec.ts'
import { HookBook } from './order/hooks.ts'
import { Deadlines } from './order/overdue.ts'
import { isOrderReason } from './order/phases.ts'
import { type Contact, namespaceKey, type Problem } from './situation.ts'
import { readWanted, type Wanted, type WantedContext, wantedNamespace } from './wanted.ts'

export interface TimedNote extends DriftNote {
  atMs: number
}

/** A row that could not become a wanted object yet. */
interface Unread {
  ref: ObjectRef
  apiVersion: string
  doc: string
  problem: Problem
  wave: number
  /** It is no ordinary object: its phase waits for it, and no wave. */
  hook?: HookSpec
}

interface RowMark {
  hash: number | bigint
  key: string
}

export type Reading = { kind: 'none' } | { kind: 'complete'; row: ServiceRow } | { kind: 'incomplete'; why: string } | { kind: 'absent' }

const DEFAULT_SYNC: SyncOptions = syncOptionsSchema.parse({})

export class ServiceModel {
  readonly id: ServiceId
  readonly key: string
  reading: Reading = { kind: 'none' }
  /** The last complete row; it stays when a later one is incomplete. */
  row: ServiceRow | null = null
  received: ServiceProgress | null = null
  progress: ServiceState
  wanted = new Map<string, Wanted>()
  unread = new Map<string, Unread>()
  readonly inventory: Map<string, InventoryEntry>
  readonly problems = new Map<string, Problem>()
  readonly contacts = new Map<string, Contact>()
  readonly contests = new Map<string, Contest>()
  readonly notes = new Map<string, TimedNote>()
  readonly statuses = new Map<string, ObjectStatus>()
  readonly progressingSinceMs = new Map<string, number>()
  /** Of hooks, and of objects that hooks or waves wait for. */
  readonly deadlines = new Deadlines()
  /** IM1 */
  actedAs: ActingAs | null = null
  /** Deleted to be made again, and not there yet. */
  readonly recreates = new Map<string, Recreate>()
  readonly hooks: HookBook
  status: ServiceStatus | null = null
  /** HE11: it was Degraded and has not been well since; null: not read yet. */
  degraded: boolean | null = null
  refusal: PruneRefusal | null = null
  pruneWhy: string | null = null
  /** The prune waits for longer than `sync.healthDeadline`. */
  pruneOverdue = false
  /** The digest whose prune a person confirmed at the site since this process began. */
  confirmedHere: string | null = null
  /** A person's word at the site that nothing is changed for now. */
  hold: ActiveHold | null = null
  /** `atMs` of the removal order that was carried out, and of the one for which every kind was looked at. */
  removedOrderMs: number | null = null
  recalledOrderMs: number | null = null
  recallAttempts = 0
  /** Wanted objects may have no inventory entry yet. */
  narrow = false
  /** Digest of the revision that no gate holds back as a whole any more (revision-gate.ts). */
  begunDigest: string | null = null
  /** Why the revision that the row names has not begun. */
  held: Closed | null = null
  /** The replica may hold something newer than what was read. */
  revisionPending = true
  turnBeganMs = 0
  unrecorded: InventoryEntry[] = []
  /** Keys that the next round plans, and keys whose status is said again. */
  readonly dirty = new Set<string>()
  readonly touched = new Set<string>()
  #rowHashes = new Map<string, RowMark>()
  #specs = new Map<string, HookSpec>()
  #skipped = new Set<string>()
  #readWith = ''
  #wasShut = false

  constructor(id: ServiceId, inventory: readonly InventoryEntry[], progress: ServiceState, facts?: ReadonlyMap<string, unknown>) {
    this.hooks = new HookBook(facts)
    this.id = id
    this.key = serviceKey(id)
    this.progress = progress
    this.inventory = new Map(inventory.map((entry) => [refKey(entry.ref), entry]))
  }

  sync(): SyncOptions {
    return this.row?.sync ?? DEFAULT_SYNC
  }

  mark(key: string): void {
    this.dirty.add(key)
    this.touched.add(key)
  }

  markAll(): void {
    for (const key of this.wanted.keys()) this.mark(key)
    for (const key of this.inventory.keys()) this.mark(key)
    for (const key of this.unread.keys()) this.touched.add(key)
  }

  /** What was applied and is not written down yet: with the end of the turn at the latest. */
  takeUnrecorded(): InventoryEntry[] {
    // What was written or has left since is not written over.
    return this.unrecorded.splice(0).filter((entry) => this.inventory.get(refKey(entry.ref)) === entry)
  }

  /** A gate opens by time, by other services, by a person: each turn asks again. `shut`: what would be answered for the service as a whole; who was told that already
   *  is not asked again, or each event of a service of four thousand objects that waits would cost four thousand. */
  markGated(shut: Closed | null): void {
    for (const [key, problem] of this.problems) {
      // A fight about what was in force says nothing of what may be sent now.
      if (problem.kind === 'contested' && shut === null) this.dirty.add(key)
      if (problem.kind !== 'gated' || isOrderReason(problem.reason)) continue
      if (problem.reason !== shut?.reason || problem.message !== shut.message) this.dirty.add(key)
    }
  }

  /** A hold or window shuts corrections, too, of which some have no problem: what other tools wrote beside ours. */
  noteShut(isShut: boolean): void {
    if (this.#wasShut && !isShut) for (const key of this.wanted.keys()) this.dirty.add(key)
    this.#wasShut = isShut
  }

  /** RC3: what was seen of an object that is not made yet is true for the turn that looked. */
  forgetContacts(): void {
    for (const key of this.contacts.keys()) {
      const wanted = this.wanted.get(key)
      const isSettled = wanted?.onlyIfAbsent === true || wanted?.options?.touch === 'ifAbsent' || this.problems.get(key)?.kind === 'owned'
      if (!isSettled) this.contacts.delete(key)
    }
  }

  /** Objects that wait for `key`. */
  markWaiting(key: string): void {
    for (const [waiting, problem] of this.problems) if (problem.kind === 'waiting' && problem.on === key) this.mark(waiting)
  }

  setProblem(key: string, problem: Problem | null): void {
    if (problem === null) this.problems.delete(key)
    else this.problems.set(key, problem)
  }

  /** Inventory that no row of the revision asks for. */
  leaving(): string[] {
    const keys: string[] = []
    const held = this.hooks.held()
    for (const key of this.inventory.keys()) if (!this.wanted.has(key) && !this.unread.has(key) && !held.has(key)) keys.push(key)
    return keys
  }

  /** RC7: only rows that changed are read; a revision that changes one of four thousand objects costs one. */
  take(revision: DesiredRevision, context: Omit<WantedContext, 'service' | 'namespace'>): void {
    const { row, objects } = revision
    const full: WantedContext = { ...context, service: this.id, ...namespaceContext(row), ignore: row.ignore }
    const readWith = canonicalJson([row.namespace, row.ignore, row.sync.enforceNamespace])
    const known = readWith === this.#readWith ? this.#rowHashes : new Map<string, RowMark>()
    const hashes = new Map<string, RowMark>()
    const [wantedBefore, unreadBefore] = [this.wanted, this.unread]
    this.wanted = new Map()
    this.unread = new Map()
    this.#specs = new Map()
    this.#skipped = new Set()
    for (const [rowId, doc] of objects) {
      // Not SHA-256: this tells a row from its own last state, in 4,000 rows of which one changed; who wrote it was proven before.
      const hash = Bun.hash(doc)
      const before = known.get(rowId)
      const kept = before?.hash === hash ? wantedBefore.get(before.key) : undefined
      if (kept !== undefined && before !== undefined) {
        this.wanted.set(kept.key, kept)
        hashes.set(rowId, before)
        continue
      }
      const parsed = parseRowId(rowId)
      if (parsed.kind !== 'object') continue
      const key = this.#read(parsed.ref, doc, full)
      hashes.set(rowId, { hash, key })
      this.mark(key)
    }
    if (row.namespace !== undefined && row.sync.createNamespace && row.removal === undefined)
      this.#wantNamespace(row.namespace, full, wantedBefore)
    for (const key of [...wantedBefore.keys(), ...unreadBefore.keys()]) if (!this.wanted.has(key) && !this.unread.has(key)) this.#left(key)
    if (canonicalJson([this.row?.sync, this.row?.protect]) !== canonicalJson([row.sync, row.protect])) this.#optionsChanged()
    this.#rowHashes = hashes
    this.#readWith = readWith
    this.#order(row)
    this.row = row
    this.reading = { kind: 'complete', row }
  }

  /** What is in an order. */
  #order(row: ServiceRow): void {
    if (row.removal !== undefined) {
      this.hooks.takeRemoval()
      return
    }
    const waves = new Set<number>()
    for (const { onlyIfAbsent, wave = 0 } of this.wanted.values()) if (!onlyIfAbsent) waves.add(wave)
    const unreadHooks: HookSpec[] = []
    for (const { wave, hook } of this.unread.values()) {
      if (hook === undefined) waves.add(wave)
      else unreadHooks.push(hook)
    }
    this.hooks.hasWaves = waves.size > 1
    // What was well before this start is not put in order again; what comes back later is.
    if (this.row?.digest !== row.digest) {
      const { applied, healthy } = this.progress
      const wasWell = this.row === null && applied?.digest === row.digest && healthy?.digest === row.digest
      this.hooks.finished = wasWell ? row.digest : null
    }
    for (const key of this.#specs.keys()) this.problems.delete(key)
    this.hooks.skipped = this.#skipped
    this.hooks.take(this.#specs, unreadHooks)
  }

  /** Before any complete revision was read: what was applied stays in force. */
  holdApplied(): void {
    if (this.row !== null) return
    for (const [key, entry] of this.inventory) {
      const held = heldWanted(entry)
      if (held !== null) this.wanted.set(key, held)
    }
    this.markAll()
  }

  /** Discovery changed: what no API served may be served now. True: something became wanted. */
  readAgain(context: Omit<WantedContext, 'service' | 'namespace'>): boolean {
    const full: WantedContext = {
      ...context,
      service: this.id,
      namespace: undefined,
      ...(this.row === null ? {} : namespaceContext(this.row)),
      ignore: this.row?.ignore,
    }
    const before = this.unread
    this.unread = new Map()
    let changed = false
    let reordered = false
    for (const [key, unread] of before) {
      if (unread.problem.kind === 'unreadable') {
        this.unread.set(key, unread)
        continue
      }
      const next = this.#read(unread.ref, unread.doc, full)
      if (this.#specs.has(next) || this.#skipped.has(next)) {
        this.#left(key)
        reordered = true
      }
      if (!this.wanted.has(next)) continue
      changed = true
      if (next !== key) this.#left(key)
      for (const [rowId, known] of this.#rowHashes) if (known.key === key) this.#rowHashes.set(rowId, { ...known, key: next })
      this.mark(next)
    }
    if (reordered && this.row !== null) this.#order(this.row)
    return changed
  }

  #read(ref: ObjectRef, doc: string, context: WantedContext): string {
    const read = readWanted(ref, doc, context)
    if (read.kind === 'wanted') {
      const { wanted } = read
      const applied = this.inventory.get(wanted.key)?.appliedDoc
      // One string for both: the applied document is usually the wanted one.
      this.wanted.set(wanted.key, applied === wanted.sent ? { ...wanted, sent: applied } : wanted)
      return wanted.key
    }
    if (read.kind === 'hook') {
      this.#specs.set(read.spec.key, read.spec)
      return read.spec.key
    }
    if (read.kind === 'skipped') {
      this.#skipped.add(refKey(read.ref))
      return refKey(read.ref)
    }
    const key = refKey(ref)
    const before = this.problems.get(key)
    const problem: Problem =
      read.kind === 'unreadable'
        ? { kind: 'unreadable', message: read.message }
        : {
            kind: 'unserved',
            message: read.message,
            attempt: before?.kind === 'unserved' ? before.attempt : 0,
            retryAtMs: before?.kind === 'unserved' ? before.retryAtMs : 0,
          }
    const wave = read.kind === 'unserved' ? read.wave : 0
    const { hook } = read
    this.unread.set(key, { ref, apiVersion: read.apiVersion, doc, problem, wave, ...(hook === undefined ? {} : { hook }) })
    this.problems.set(key, problem)
    return key
  }

  #wantNamespace(name: string, context: WantedContext, before: ReadonlyMap<string, Wanted>): void {
    const { labels, annotations } = context.namespaceMarks ?? {}
    const wanted = isUnreadable(labels) || isUnreadable(annotations) ? this.#namespaceAsItIs(name) : wantedNamespace(name, context)
    if (wanted === null || this.wanted.has(wanted.key)) return
    this.wanted.set(wanted.key, wanted)
    if (before.get(wanted.key)?.sent !== wanted.sent) this.mark(wanted.key)
  }

  /** RV5: as it was applied last; null: it was not, and is not made without what it should have. */
  #namespaceAsItIs(name: string): Wanted | null {
    const entry = this.inventory.get(namespaceKey(name))
    const held = entry === undefined ? null : heldWanted(entry)
    return held === null ? null : { ...held, onlyIfAbsent: true }
  }

  /** What stood in the way under the old options may not under the new ones, and what was nobody's business may be ours. */
  #optionsChanged(): void {
    for (const [key, problem] of this.problems) {
      if (problem.kind === 'failed') this.problems.delete(key)
      this.mark(key)
    }
    for (const key of this.wanted.keys()) this.mark(key)
  }

  /** What is kept about an object that the revision no longer names; its inventory entry stays until it is pruned. */
  #left(key: string): void {
    this.touched.add(key)
    // RC11: an event of a namespace that is no longer ours would never come.
    if (key.startsWith(namespaceKey(''))) this.markWaiting(key)
    this.problems.delete(key)
    this.contacts.delete(key)
    this.contests.delete(key)
    this.notes.delete(key)
  }

  /** It is out of the inventory. */
  forget(key: string): void {
    this.inventory.delete(key)
    this.#left(key)
    this.progressingSinceMs.delete(key)
    this.deadlines.forget(key)
  }
}
