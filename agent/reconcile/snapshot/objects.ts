// The known state of each object of one service: one record for each object, and the few transitions that change it.
// All other code only reads. A facet is one field of all records that have it, so that a search for problems costs the
// number of problems, and not of objects.
import { keyInNamespace, keyOutsideNamespaces, namesObject, refKey } from '../../../shared/kube/object.ts'
import type { ObjectStatus } from '../../../shared/model/status.ts'
import type { InventoryEntry } from '../../state/agent-state.ts'
import { type Contest, movedContest, noteContests } from './fields/contest.ts'
import type { DriftNote } from './fields/drift.ts'
import type { HookSpec } from './hook-spec.ts'
import type { Recreate } from './kept-notes.ts'
import { type Contact, movedProblem, type Problem } from './situation.ts'
import type { Unread, Wanted } from './wanted.ts'

/** RC3: whether an unreadable row may be of the object. One without a namespace is in the service's, or in any if
 *  the service has none. */
export function mayName(
  { unread, row }: { unread: ReadonlyMap<string, unknown>; row: { namespace?: string | undefined } | null },
  key: string,
): boolean {
  if (unread.size === 0) return false
  if (unread.has(key)) return true
  const bare = keyOutsideNamespaces(key)
  if (bare === key) return [...unread.keys()].some((named) => namesObject(named, key))
  return unread.has(bare) && (row?.namespace === undefined || key === keyInNamespace(bare, row.namespace))
}

export interface TimedNote extends DriftNote {
  atMs: number
}

export interface ObjectState {
  /** The revision names it, or its namespace. */
  readonly wanted: Wanted
  /** The revision names it, and its row could not become a wanted object yet. */
  readonly unread: Unread
  /** The revision names it as a hook. */
  readonly hook: HookSpec
  /** The entry in the inventory. */
  readonly entry: InventoryEntry
  /** Why it differs from its wanted state. */
  readonly problem: Problem
  readonly contact: Contact
  readonly contest: Contest
  /** The last drift. */
  readonly note: TimedNote
  readonly status: ObjectStatus
  /** Warnings of the API server about writes, until they are in a status. */
  readonly warnings: readonly string[]
  readonly progressingSinceMs: number
  /** HE30: since when it was Progressing before it became well. */
  readonly progressed: Progressed
  /** Deleted in order to be recreated, and not created yet. */
  readonly recreate: Recreate
  /** RC25: the document whose nulls the API server refused. */
  readonly refusedNulls: string
}

export interface Progressed {
  sinceMs: number
  wellMs: number
  /** The digest of the revision that was in force. */
  digest: string | null
}

type Field = keyof ObjectState
type Change = { readonly [F in Field]?: ObjectState[F] | undefined }

/** The facts about this service's objects that other services need. */
export interface ObjectListener {
  /** The revision names the object now, or no more. */
  named(key: string, isNamed: boolean): void
  /** Its row cannot be read now, or can be. */
  unread(key: string, isUnread: boolean): void
  /** An object that the revision names is in the inventory under this UID now, or no more. */
  inForce(uid: string, isInForce: boolean): void
}

/** All fields from the beginning: thousands of these are held. */
class Known implements Record<Field, unknown> {
  wanted: Wanted | undefined = undefined
  unread: Unread | undefined = undefined
  hook: HookSpec | undefined = undefined
  entry: InventoryEntry | undefined = undefined
  problem: Problem | undefined = undefined
  contact: Contact | undefined = undefined
  contest: Contest | undefined = undefined
  note: TimedNote | undefined = undefined
  status: ObjectStatus | undefined = undefined
  warnings: readonly string[] | undefined = undefined
  progressingSinceMs: number | undefined = undefined
  progressed: Progressed | undefined = undefined
  recreate: Recreate | undefined = undefined
  refusedNulls: string | undefined = undefined
}

class Facet<T> implements ReadonlyMap<string, T> {
  readonly #of: (known: Known) => T | undefined
  #records: Map<string, Known> = new Map()

  constructor(of: (known: Known) => T | undefined) {
    this.#of = of
  }

  get size(): number {
    return this.#records.size
  }

  has(key: string): boolean {
    return this.#records.has(key)
  }

  get(key: string): T | undefined {
    const known = this.#records.get(key)
    return known === undefined ? undefined : this.#of(known)
  }

  keys() {
    return this.#records.keys()
  }

  *values(): Generator<T, undefined> {
    for (const known of this.#records.values()) {
      const value = this.#of(known)
      if (value !== undefined) yield value
    }
  }

  entries(): Generator<[string, T], undefined> {
    return this[Symbol.iterator]()
  }

  *[Symbol.iterator](): Generator<[string, T], undefined> {
    for (const [key, known] of this.#records) {
      const value = this.#of(known)
      if (value !== undefined) yield [key, value]
    }
  }

  forEach(callback: (value: T, key: string, map: ReadonlyMap<string, T>) => void): void {
    for (const [key, value] of this) callback(value, key, this)
  }

  /** Only for the owner of the records. */
  note(key: string, known: Known): void {
    if (this.#of(known) === undefined) this.#records.delete(key)
    else this.#records.set(key, known)
  }

  /** From now on in the order of `keys`, which are all that it has. */
  arrange(keys: Iterable<string>): void {
    const before = this.#records
    this.#records = new Map()
    for (const key of keys) {
      const known = before.get(key)
      if (known !== undefined) this.#records.set(key, known)
    }
  }
}

function isEmpty(known: Known): boolean {
  for (const field in known) if (known[field as Field] !== undefined) return false
  return true
}

/** The argument of the listener. `uid`: null if nothing is applied. */
interface Said {
  named: boolean
  unread: boolean
  uid: string | null
}
const saidOf = ({ wanted, unread, hook, entry }: Known): Said => ({
  named: wanted !== undefined || unread !== undefined || hook !== undefined,
  unread: unread !== undefined,
  uid: wanted === undefined ? null : (entry?.uid ?? null),
})

/** The date and the monotonic clock differ by less without anybody setting the date. */
const DATE_SET_LEAST_MS = 1_000

export class ObjectStates {
  readonly #known = new Map<string, Known>()
  #listener: ObjectListener | null = null
  #dateAheadMs: number | null = null
  readonly #facets = {
    wanted: new Facet((known) => known.wanted),
    unread: new Facet((known) => known.unread),
    hook: new Facet((known) => known.hook),
    entry: new Facet((known) => known.entry),
    problem: new Facet((known) => known.problem),
    contact: new Facet((known) => known.contact),
    contest: new Facet((known) => known.contest),
    note: new Facet((known) => known.note),
    status: new Facet((known) => known.status),
    warnings: new Facet((known) => known.warnings),
    progressingSinceMs: new Facet((known) => known.progressingSinceMs),
    progressed: new Facet((known) => known.progressed),
    recreate: new Facet((known) => known.recreate),
    refusedNulls: new Facet((known) => known.refusedNulls),
  } satisfies Record<Field, Facet<unknown>>

  facet<F extends Field>(field: F): ReadonlyMap<string, ObjectState[F]> {
    return this.#facets[field] as unknown as ReadonlyMap<string, ObjectState[F]>
  }

  /** From now on; no object was named before. */
  listen(listener: ObjectListener): void {
    this.#listener = listener
  }

  /** The objects of the last revision are no longer named. */
  unname(): void {
    this.name(new Map(), new Map())
    this.nameHooks(new Map())
  }

  #put(key: string, change: Change): void {
    const known = this.#known.get(key) ?? new Known()
    const isTold = 'wanted' in change || 'unread' in change || 'hook' in change || 'entry' in change
    const before = isTold ? saidOf(known) : null
    Object.assign(known, change)
    if (before !== null) this.#tell(key, before, saidOf(known))
    if (isEmpty(known)) this.#known.delete(key)
    else this.#known.set(key, known)
    for (const field in change) this.#facets[field as Field].note(key, known)
  }

  #tell(key: string, before: Said, now: Said): void {
    if (now.named !== before.named) this.#listener?.named(key, now.named)
    if (now.unread !== before.unread) this.#listener?.unread(key, now.unread)
    if (now.uid === before.uid) return
    if (before.uid !== null) this.#listener?.inForce(before.uid, false)
    if (now.uid !== null) this.#listener?.inForce(now.uid, true)
  }

  /** A revision was read: it names these, in this order, and no others. */
  name(wanted: ReadonlyMap<string, Wanted>, unread: ReadonlyMap<string, Unread>): void {
    this.#replace('wanted', wanted)
    this.#replace('unread', unread)
  }

  /** These are its hooks, and no others. */
  nameHooks(specs: ReadonlyMap<string, HookSpec>): void {
    if (specs.size > 0 || this.#facets.hook.size > 0) this.#replace('hook', specs)
  }

  #replace<F extends 'wanted' | 'unread' | 'hook'>(field: F, named: ReadonlyMap<string, ObjectState[F]>): void {
    const facet = this.#facets[field]
    for (const key of [...facet.keys()]) if (!named.has(key)) this.#put(key, { [field]: undefined })
    const names = facet.keys()
    let isInOrder = facet.size === named.size
    for (const [key, value] of named) {
      isInOrder &&= names.next().value === key
      if (this.#known.get(key)?.[field] !== value) this.#put(key, { [field]: value })
    }
    if (!isInOrder) facet.arrange(named.keys())
  }

  /** Its row was read again. */
  want(key: string, wanted: Wanted): void {
    this.#put(key, { wanted, unread: undefined })
  }

  /** Its row cannot be read. Null means that the row is another object's, or gone. */
  setUnread(key: string, unread: Unread | null): void {
    this.#put(key, { unread: unread ?? undefined })
  }

  /** It is in the inventory, in memory or settled. */
  own(entry: InventoryEntry): void {
    this.#put(refKey(entry.ref), { entry })
  }

  /** It was sent: earlier findings no longer hold. */
  applied(entry: InventoryEntry): void {
    this.#put(refKey(entry.ref), { entry, contact: undefined })
  }

  setProblem(key: string, problem: Problem | null): void {
    if (problem === null && !this.#facets.problem.has(key)) return
    this.#put(key, { problem: problem ?? undefined })
  }

  /** A request about it failed, or met an object that is being deleted: earlier findings no longer hold. */
  failed(key: string, problem: Problem): void {
    this.#put(key, { problem, contact: undefined })
  }

  met(key: string, contact: Contact): void {
    this.#put(key, { contact })
  }

  /** RC3: it has to be evaluated again. True: it had been evaluated. */
  forgetContact(key: string): boolean {
    if (!this.#facets.contact.has(key)) return false
    this.#put(key, { contact: undefined })
    return true
  }

  /** DR4: notes which objects others fight about. */
  contested(judged: ReadonlyMap<string, Contest>, nowMs: number): void {
    const all = {
      [Symbol.iterator]: () => this.#facets.contest[Symbol.iterator](),
      set: (key: string, contest: Contest) => this.#put(key, { contest }),
      delete: (key: string) => this.#put(key, { contest: undefined }),
    }
    noteContests(all, judged, nowMs)
  }

  /** RC17: a changed date makes no object wait longer. `aheadMs`: of the date, before the monotonic clock. */
  noteDate(aheadMs: number): void {
    const setByMs = aheadMs - (this.#dateAheadMs ?? aheadMs)
    if (this.#dateAheadMs !== null && Math.abs(setByMs) < DATE_SET_LEAST_MS) return
    this.#dateAheadMs = aheadMs
    if (setByMs === 0) return
    for (const [key, problem] of [...this.#facets.problem]) this.#put(key, { problem: movedProblem(problem, setByMs) })
    for (const [key, contest] of [...this.#facets.contest]) this.#put(key, { contest: movedContest(contest, setByMs) })
  }

  /** DR2. Null means that it was corrected. */
  setNote(key: string, note: TimedNote | null): void {
    if (note === null && !this.#facets.note.has(key)) return
    this.#put(key, { note: note ?? undefined })
  }

  warned(key: string, warnings: readonly string[]): void {
    this.#put(key, { warnings })
  }

  /** Its status from now on, its warnings included. */
  said(key: string, status: ObjectStatus): void {
    this.#put(key, { status, warnings: undefined })
  }

  /** The reported status stays, and the new one waits. */
  saidAgain(key: string, status: ObjectStatus): void {
    this.#put(key, { status })
  }

  /** It is not reported. */
  unsaid(key: string): void {
    this.#put(key, { status: undefined, progressingSinceMs: undefined })
  }

  /** Null if it is not on its way. */
  progresses(key: string, sinceMs: number | null): void {
    if (sinceMs === null && !this.#facets.progressingSinceMs.has(key)) return
    this.#put(key, { progressingSinceMs: sinceMs ?? undefined })
  }

  /** It is well, at `wellMs`. */
  ceased(key: string, progressed: Progressed): void {
    this.#put(key, { progressed })
  }

  /** AO5. Null means that it exists, or is no longer wanted. */
  setRecreate(key: string, recreate: Recreate | null): void {
    this.#put(key, { recreate: recreate ?? undefined })
  }

  /** RC25: notes the document whose nulls the API server refused. */
  refuseNulls(key: string, document: string | null): void {
    this.#put(key, { refusedNulls: document ?? undefined })
  }

  /** The revision names it no more; its inventory entry stays until it is pruned. */
  left(key: string): void {
    this.#put(key, { problem: undefined, contact: undefined, contest: undefined, note: undefined })
  }

  /** It left the inventory. The next report withdraws its status. */
  forget(key: string): void {
    this.#put(key, { entry: undefined, warnings: undefined, progressingSinceMs: undefined, progressed: undefined })
    this.left(key)
  }

  /** After a failed reconciliation: the inventory is that of the file. */
  recover(written: ReadonlyMap<string, InventoryEntry>): void {
    for (const key of [...this.#facets.entry.keys()]) if (!written.has(key)) this.#put(key, { entry: undefined })
    for (const entry of written.values()) this.own(entry)
  }
}
