// The main file of the room `snapshot`: the desired and live state. It holds in memory the agent's knowledge of one
// service: the revision to reach, the inventory, and the obstacles. It is filled from replica and agent state, so that
// a restart without a network begins with all of it. Only the methods here and of its parts change it. The room reads
// the cluster by watches, and must never decide on actions, send requests, or write to the disk.
import { canonicalJson } from '../../../shared/kube/canonical.ts'
import { type ObjectRef, refKey } from '../../../shared/kube/object.ts'
import { isUnreadable, parseRowId, type ServiceRow } from '../../../shared/model/desired.ts'
import { type SyncOptions, syncOptionsSchema } from '../../../shared/model/resources.ts'
import type { ServiceStatus } from '../../../shared/model/status.ts'
import { type ServiceId, serviceKey } from '../../../shared/runtime/ids.ts'
import { withTrace } from '../../../shared/runtime/trace-id.ts'
import type { DesiredRevision } from '../../replica/replica.ts'
import type { InventoryEntry, ServiceProgress, ServiceState } from '../../state/agent-state.ts'
import type { ActingAs } from './account.ts'
import type { FinishedJobs } from './finished-jobs.ts'
import type { HookSpec } from './hook-spec.ts'
import type { HookBook } from './hooks.ts'
import type { Recreate, SiteConfirmation } from './kept-notes.ts'
import { mayName, ObjectStates } from './objects.ts'
import { Deadlines } from './overdue.ts'
import { optionsText, permitText, type SitePolicy } from './permits.ts'
import { DeletedUids, Gating, ObjectQueue, Progress, PruneState, Removal, Told } from './service-state.ts'
import { type Closed, isOrderReason, namespaceKey, type Problem } from './situation.ts'
import {
  heldWanted,
  isOutdated,
  mayMakeNamespace,
  preparing,
  readWanted,
  rowContext,
  type Unread,
  type Wanted,
  type WantedContext,
  wantedNamespace,
  withoutRefusedNulls,
} from './wanted.ts'

/** By rows that are read. */
interface Named {
  wanted: Map<string, Wanted>
  unread: Map<string, Unread>
  specs: Map<string, HookSpec>
  skipped: Set<string>
}
const nothingNamed = (): Named => ({ wanted: new Map(), unread: new Map(), specs: new Map(), skipped: new Set() })

interface RowMark {
  hash: number | bigint
  key: string
}

export type Reading = { kind: 'none' } | { kind: 'complete'; row: ServiceRow } | { kind: 'incomplete'; why: string } | { kind: 'absent' }

const DEFAULT_SYNC: SyncOptions = syncOptionsSchema.parse({})

/** The knowledge of a former process. */
export interface Recalled {
  inventory: readonly InventoryEntry[]
  progress: ServiceState
  /** Its own last reported status. */
  said: ServiceStatus | null
  hooks: HookBook
  finishedJobs: FinishedJobs
  acting: ActingAs
  recreates: ReadonlyMap<string, Recreate>
  refusedNulls: ReadonlyMap<string, string>
  confirmation: SiteConfirmation | null
  keepsNamespace: boolean
  begun: string | null
  degraded: boolean
}

export class ServiceModel {
  readonly id: ServiceId
  readonly key: string
  readonly objects = new ObjectStates()
  readonly wanted = this.objects.facet('wanted')
  readonly unread = this.objects.facet('unread')
  /** PR13: keys that entered the inventory since the start of this process because of a label alone. */
  readonly foundByLabel = new Set<string>()
  readonly deletedUids = new DeletedUids()
  readonly inventory = this.objects.facet('entry')
  readonly problems = this.objects.facet('problem')
  readonly contacts = this.objects.facet('contact')
  readonly contests = this.objects.facet('contest')
  readonly notes = this.objects.facet('note')
  readonly statuses = this.objects.facet('status')
  readonly warnings = this.objects.facet('warnings')
  readonly progressingSinceMs = this.objects.facet('progressingSinceMs')
  readonly progressed = this.objects.facet('progressed')
  readonly recreates = this.objects.facet('recreate')
  readonly refusedNulls = this.objects.facet('refusedNulls')
  readonly queue = new ObjectQueue()
  readonly gating: Gating
  readonly removal: Removal
  readonly pruning: PruneState
  readonly progress: Progress
  readonly told: Told
  readonly hooks: HookBook
  readonly finishedJobs: FinishedJobs
  /** Deadlines of hooks, and of objects that hooks or waves wait for. */
  readonly deadlines = new Deadlines()
  policy: SitePolicy | null = null // LX1: of the site; null: none
  #reading: Reading = { kind: 'none' }
  #row: ServiceRow | null = null
  #received: ServiceProgress | null = null
  #revisionPending = true
  #actedAs: ActingAs
  #narrow = false
  #unrecorded: InventoryEntry[] = []
  #rowHashes = new Map<string, RowMark>()
  #specs = new Map<string, HookSpec>()
  #skipped = new Set<string>()
  #readWith = ''
  #scopes = 0

  constructor(id: ServiceId, recalled: Recalled) {
    this.id = id
    this.key = serviceKey(id)
    this.hooks = recalled.hooks
    this.finishedJobs = recalled.finishedJobs
    this.removal = new Removal(recalled.keepsNamespace)
    this.pruning = new PruneState(recalled.confirmation)
    this.progress = new Progress(recalled.progress)
    this.told = new Told(recalled.said, recalled.degraded)
    this.gating = new Gating(recalled.begun)
    this.#actedAs = recalled.acting
    for (const entry of recalled.inventory) this.objects.own(entry)
    for (const [key, note] of recalled.recreates) this.objects.setRecreate(key, note)
    for (const [key, document] of recalled.refusedNulls) this.objects.refuseNulls(key, document)
  }

  get reading(): Reading {
    return this.#reading
  }

  /** The last complete row; it stays when a later one is incomplete. */
  get row(): ServiceRow | null {
    return this.#row
  }

  get received(): ServiceProgress | null {
    return this.#received
  }

  /** The replica may hold a newer revision than the one that was read. */
  get revisionPending(): boolean {
    return this.#revisionPending
  }

  /** IM1: the account that makes the writes of this service. */
  get actedAs(): ActingAs {
    return this.#actedAs
  }

  actsAs(acting: ActingAs): void {
    this.#actedAs = acting
  }

  rowsCame(): void {
    this.#revisionPending = true
  }

  /** RC4: `scopes`: the kinds with a namespace. Rows placed by other scopes or another policy are read again. */
  placeBy(scopes: number, policy: SitePolicy | null): void {
    if ((this.#scopes !== scopes || this.policy !== policy) && this.#row !== null) this.rowsCame()
    this.#scopes = scopes
    this.policy = policy
  }

  rowsRead(): void {
    this.#revisionPending = false
  }

  readNone(): void {
    this.#reading = { kind: 'absent' }
  }

  readInPart(why: string): void {
    this.#reading = { kind: 'incomplete', why }
    this.#holdApplied()
  }

  receivedAt({ digest, commit, trace }: Pick<ServiceRow, 'digest' | 'commit' | 'trace'>, atMs: number): void {
    this.#received = { digest, commit, atMs, ...withTrace(trace) }
  }

  /** The file forgot it. */
  startOver(): void {
    this.removal.startOver()
    this.pruning.forgetConfirmation()
  }

  /** Wanted objects may have no inventory entry yet. */
  expectNewObjects(): void {
    this.#narrow = true
  }

  /** True once after each `expectNewObjects`. */
  takeNarrow(): boolean {
    const narrow = this.#narrow
    this.#narrow = false
    return narrow
  }

  sync(): SyncOptions {
    return this.row?.sync ?? DEFAULT_SYNC
  }

  markAll(): void {
    for (const key of this.wanted.keys()) this.queue.mark(key)
    for (const key of this.inventory.keys()) this.queue.mark(key)
    for (const key of this.unread.keys()) this.queue.touch(key)
  }

  /** `isNews`: it has to be written down. */
  applied(entry: InventoryEntry, isNews: boolean): void {
    this.objects.applied(entry)
    if (isNews) this.#unrecorded.push(entry)
  }

  get unrecordedCount(): number {
    return this.#unrecorded.length
  }

  /** Applied documents that are not stored yet: stored at the end of the reconciliation at the latest. */
  takeUnrecorded(): InventoryEntry[] {
    // Entries that were stored or removed since are not overwritten.
    return this.#unrecorded.splice(0).filter((entry) => this.inventory.get(refKey(entry.ref)) === entry)
  }

  /** Each reconciliation checks a gate again, unless `shut` is the known answer for the whole service: or each event of
   *  a waiting service of four thousand objects would cost four thousand checks. */
  markGated(shut: Closed | null): void {
    for (const [key, problem] of this.problems) {
      // A fight about the applied document does not concern the document to send.
      if (problem.kind === 'contested' && shut === null) this.queue.plan(key)
      if (problem.kind !== 'gated' || isOrderReason(problem.reason)) continue
      if (problem.reason !== shut?.reason || problem.message !== shut.message) this.queue.plan(key)
    }
  }

  /** PR14: the condition of a recreation is no event of the object. */
  planHeldAgain(): void {
    for (const [key, problem] of this.problems) if (problem.kind === 'failed' && problem.again !== undefined) this.queue.plan(key)
  }

  /** RC3: the state of an object that is not created yet is valid for one reconciliation. */
  forgetContacts(): void {
    for (const key of this.contacts.keys()) {
      const wanted = this.wanted.get(key)
      const isSettled = wanted?.onlyIfAbsent === true || wanted?.options?.touch === 'ifAbsent' || this.problems.get(key)?.kind === 'owned'
      if (!isSettled) this.objects.forgetContact(key)
    }
  }

  /** Objects that wait for `key`. */
  markWaiting(key: string): void {
    for (const [waiting, problem] of this.problems) if (problem.kind === 'waiting' && problem.on === key) this.queue.mark(waiting)
  }

  /** Inventory that no row of the revision asks for. */
  leaving(): string[] {
    const keys: string[] = []
    const held = this.hooks.held()
    const mayBeHook = this.hooks.unread.length === 0 ? () => false : (key: string) => this.hooks.isUnread(key)
    for (const key of this.inventory.keys())
      if (!this.wanted.has(key) && !mayName(this, key) && !held.has(key) && !mayBeHook(key)) keys.push(key)
    return keys
  }

  /** RC7: only changed rows are read, whatever the number of others. It stops before each row, with what to wait for
   *  (null means nothing); until all are read, the former revision stays in force. */
  *take(revision: DesiredRevision, context: Omit<WantedContext, 'service' | 'namespace'>): Generator<Promise<void> | null, void, void> {
    const { row, objects } = revision
    const full: WantedContext = { ...context, ...rowContext(this.id, row, this.policy) }
    const readWith = canonicalJson([row.namespace, row.ignore, row.sync.enforceNamespace, permitText({ row, policy: this.policy })])
    const known = readWith === this.#readWith ? this.#rowHashes : new Map<string, RowMark>()
    const hashes = new Map<string, RowMark>()
    const named = nothingNamed()
    for (const [rowId, doc] of objects) {
      yield preparing(rowId, doc, full)
      // Not SHA-256: the hash only compares a row with its own last state; the author was verified before.
      const hash = Bun.hash(doc)
      const before = known.get(rowId)
      const kept = before?.hash === hash ? this.wanted.get(before.key) : undefined
      if (kept !== undefined && before !== undefined && !isOutdated(kept, full)) {
        named.wanted.set(kept.key, kept)
        hashes.set(rowId, before)
        continue
      }
      const parsed = parseRowId(rowId)
      if (parsed.kind !== 'object') continue
      const key = this.#read(parsed.ref, doc, full, named)
      hashes.set(rowId, { hash, key })
      this.queue.mark(key)
    }
    this.#specs = named.specs
    this.#skipped = named.skipped
    for (const [key, { problem }] of named.unread) this.objects.setProblem(key, problem)
    if (row.namespace !== undefined && row.sync.createNamespace && row.removal === undefined)
      this.#wantNamespace(row.namespace, full, named)
    const keysBefore = [...this.wanted.keys(), ...this.unread.keys()]
    this.objects.name(named.wanted, named.unread)
    for (const key of keysBefore) if (!this.wanted.has(key) && !this.unread.has(key)) this.#left(key)
    if (optionsText(this.row) !== optionsText(row)) this.#optionsChanged()
    this.#rowHashes = hashes
    this.#readWith = readWith
    this.#order(row)
    this.#row = row
    this.#reading = { kind: 'complete', row }
  }

  /** The objects with an order. */
  #order(row: ServiceRow): void {
    if (row.removal !== undefined) {
      this.hooks.takeRemoval()
      this.objects.nameHooks(this.hooks.specs)
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
    // Objects that were healthy before this start are not ordered again; those that return later are.
    if (this.row?.digest !== row.digest) {
      const { applied, healthy } = this.progress.reached
      const wasWell = this.row === null && applied?.digest === row.digest && healthy?.digest === row.digest
      this.hooks.finished = wasWell ? row.digest : null
    }
    for (const key of this.#specs.keys()) this.objects.setProblem(key, null)
    this.hooks.skipped = this.#skipped
    this.hooks.take(this.#specs, unreadHooks)
    this.objects.nameHooks(this.hooks.specs)
  }

  /** Before any complete revision was read: the applied documents stay in force. */
  #holdApplied(): void {
    if (this.row !== null) return
    for (const [key, entry] of this.inventory) {
      const held = heldWanted(entry)
      if (held !== null) this.objects.want(key, held)
    }
    this.markAll()
  }

  /** Discovery changed: unserved kinds may be served now. True: an object became wanted. */
  readAgain(context: Omit<WantedContext, 'service' | 'namespace'>): boolean {
    const full: WantedContext = { ...context, ...rowContext(this.id, this.row, this.policy) }
    let changed = false
    let reordered = false
    for (const [key, unread] of [...this.unread]) {
      if (unread.problem.kind === 'unreadable') continue
      const named: Named = { ...nothingNamed(), specs: this.#specs, skipped: this.#skipped }
      const next = this.#read(unread.ref, unread.doc, full, named)
      this.objects.setUnread(key, null)
      for (const [name, wanted] of named.wanted) this.objects.want(name, wanted)
      for (const [name, stillUnread] of named.unread) {
        this.objects.setUnread(name, stillUnread)
        this.objects.setProblem(name, stillUnread.problem)
      }
      if (this.#specs.has(next) || this.#skipped.has(next)) {
        this.#left(key)
        reordered = true
      }
      if (!this.wanted.has(next)) continue
      changed = true
      if (next !== key) this.#left(key)
      for (const [rowId, known] of this.#rowHashes) if (known.key === key) this.#rowHashes.set(rowId, { ...known, key: next })
      this.queue.mark(next)
    }
    if (reordered && this.row !== null) this.#order(this.row)
    return changed
  }

  #read(ref: ObjectRef, doc: string, context: WantedContext, named: Named): string {
    const read = readWanted(ref, doc, context)
    if (read.kind === 'wanted') {
      const wanted = withoutRefusedNulls(read.wanted, this.refusedNulls.get(read.wanted.key))
      const applied = this.inventory.get(wanted.key)?.appliedDoc
      // One string for both: the applied document is usually the wanted one.
      named.wanted.set(wanted.key, applied === wanted.sent ? { ...wanted, sent: applied } : wanted)
      return wanted.key
    }
    if (read.kind === 'hook') {
      named.specs.set(read.spec.key, read.spec)
      return read.spec.key
    }
    if (read.kind === 'skipped') {
      named.skipped.add(refKey(read.ref))
      return refKey(read.ref)
    }
    const key = refKey(ref)
    const before = this.problems.get(key)
    const problem: Problem =
      read.kind === 'unreadable'
        ? { kind: 'unreadable', message: read.message, ...(read.reason === undefined ? {} : { reason: read.reason }) }
        : {
            kind: 'unserved',
            message: read.message,
            attempt: before?.kind === 'unserved' ? before.attempt : 0,
            retryAtMs: before?.kind === 'unserved' ? before.retryAtMs : 0,
          }
    const wave = read.kind === 'unserved' ? read.wave : 0
    const { hook } = read
    named.unread.set(key, { ref, apiVersion: read.apiVersion, doc, problem, wave, ...(hook === undefined ? {} : { hook }) })
    return key
  }

  #wantNamespace(name: string, context: WantedContext, named: Named): void {
    const { labels, annotations } = context.namespaceMarks ?? {}
    if (named.unread.has(namespaceKey(name)) || !mayMakeNamespace(name, context)) return
    const wanted = isUnreadable(labels) || isUnreadable(annotations) ? this.#namespaceAsItIs(name) : wantedNamespace(name, context)
    if (wanted === null || named.wanted.has(wanted.key)) return
    if (this.wanted.get(wanted.key)?.sent !== wanted.sent) this.queue.mark(wanted.key)
    named.wanted.set(wanted.key, wanted)
  }

  /** RV5: the last applied one. Null means that there was none, and it is not created without its metadata. */
  #namespaceAsItIs(name: string): Wanted | null {
    const entry = this.inventory.get(namespaceKey(name))
    const held = entry === undefined ? null : heldWanted(entry)
    return held === null ? null : { ...held, onlyIfAbsent: true }
  }

  /** Problems under the old options may not exist under the new ones, and ignored fields may be owned now. */
  #optionsChanged(): void {
    for (const [key, problem] of this.problems) {
      if (problem.kind === 'failed') this.objects.setProblem(key, null)
      this.queue.mark(key)
    }
    for (const key of this.wanted.keys()) this.queue.mark(key)
  }

  /** The facts about an object that the revision no longer names; its inventory entry stays until it is pruned. */
  #left(key: string): void {
    this.queue.touch(key)
    // RC11: an event of a namespace that is no longer owned would never come.
    if (key.startsWith(namespaceKey(''))) this.markWaiting(key)
    this.objects.left(key)
  }

  /** It is out of the inventory. */
  forget(key: string): void {
    this.objects.forget(key)
    this.#left(key)
    this.deadlines.forget(key)
  }

  /** After a failed reconciliation: the file counts, and work that it does not record is repeated. */
  recover(written: ReadonlyMap<string, InventoryEntry>): void {
    this.objects.recover(written)
    this.#unrecorded = []
    this.expectNewObjects()
    this.markAll()
  }
}

/** A read-only view of a service for plans and reports. It shares the model's data; valid for one round. */
export type ServiceSnapshot = Readonly<
  Pick<
    ServiceModel,
    | 'id'
    | 'key'
    | 'row'
    | 'reading'
    | 'received'
    | 'revisionPending'
    | 'actedAs'
    | 'policy'
    | 'sync'
    | 'leaving'
    | 'wanted'
    | 'unread'
    | 'inventory'
    | 'problems'
    | 'contacts'
    | 'contests'
    | 'notes'
    | 'statuses'
    | 'warnings'
    | 'progressingSinceMs'
    | 'recreates'
    | 'refusedNulls'
  > & {
    queue: Pick<ObjectQueue, 'dirty' | 'touched' | 'turnBeganMs'>
    gating: Pick<Gating, 'hold' | 'held' | 'begun' | 'begunBefore'>
    removal: Pick<Removal, 'isCarriedOut' | 'isRecalled' | 'attempts' | 'keepsNamespace'>
    pruning: Pick<PruneState, 'refusal' | 'why' | 'isOverdue' | 'confirmedHere' | 'confirmation'>
    progress: Pick<Progress, 'reached'>
    told: Pick<Told, 'status' | 'last' | 'degraded'>
    hooks: Readonly<Pick<HookBook, 'position' | 'specs' | 'removalSpecs' | 'run' | 'held' | 'heldBack' | 'count' | 'isOrdered'>>
    finishedJobs: Pick<FinishedJobs, 'endOf'>
  }
>
