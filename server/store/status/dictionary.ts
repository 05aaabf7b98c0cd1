// Numbers of names and states. Most of what comes was there before, so they are remembered; what a transaction made
// counts for others only once that is committed, and nothing counts any more once something was collected from these
// tables (the counter `dictionary`).
import type { Pace } from '../../../shared/runtime/pace.ts'
import { type Bulk, runBulk, runIn } from '../bulk.ts'
import type { Engine } from '../engines/engine.ts'
import { RecentMap } from '../recent-map.ts'
import type { Tx } from '../store-db.ts'
import { nameParts, type RowKind, type StateParts, stateDigest, stateText } from './status-columns.ts'

/** In one statement, after which others may have a turn. */
const REFS_A_TURN = 512
const NAMES_MAX = 200_000
const STATES_MAX = 100_000
/** Longer ones are looked up each time: what agents of honest clusters repeat is short, and what a hostile one makes up
 *  shall not fill memory. */
const REMEMBERED_CHARS_MAX = 1_024

/** Most names are those of objects. */
const KIND_SHARES: Readonly<Record<RowKind, number>> = {
  object: 0.7,
  drift: 0.2,
  service: 0.09,
  cluster: 0.004,
  facts: 0.002,
  site: 0.002,
  agent: 0.002,
}
const KINDS = Object.keys(KIND_SHARES) as RowKind[]
const perKind = <T>(make: (share: number) => T): Readonly<Record<RowKind, T>> => ({
  object: make(KIND_SHARES.object),
  drift: make(KIND_SHARES.drift),
  service: make(KIND_SHARES.service),
  cluster: make(KIND_SHARES.cluster),
  facts: make(KIND_SHARES.facts),
  site: make(KIND_SHARES.site),
  agent: make(KIND_SHARES.agent),
})

interface NewState {
  text: string
  state: StateParts
}

/** The dictionary of one database. Entries that are not collected meanwhile never change. */
export class Dictionary {
  readonly engine: Engine
  readonly names = perKind((share) => new RecentMap<number>(NAMES_MAX * share))
  readonly states = new RecentMap<number>(STATES_MAX)
  readonly statesById = new RecentMap<StateParts>(STATES_MAX)
  #generation = -1

  constructor(engine: Engine) {
    this.engine = engine
  }

  /** For one transaction. */
  async open(tx: Tx): Promise<DictionaryWork> {
    const row = await tx.sql.selectFrom('counters').select('value').where('name', '=', 'dictionary').executeTakeFirstOrThrow()
    if (row.value !== this.#generation) {
      for (const names of Object.values(this.names)) names.clear()
      this.states.clear()
      this.statesById.clear()
      this.#generation = row.value
    }
    return new DictionaryWork(this, tx, row.value)
  }

  /** After the commit, and only then: what was rolled back has no number. */
  keep(work: DictionaryWork): void {
    if (work.generation !== this.#generation) return
    for (const kind of KINDS) for (const [key, id] of work.newNames[kind]) this.names[kind].set(key, id)
    for (const [text, id] of work.newStates) if (text.length <= REMEMBERED_CHARS_MAX) this.states.set(text, id)
    for (const [id, state] of work.newStatesById) if (isShort(state)) this.statesById.set(id, state)
  }
}

const isShort = ({ message, images }: StateParts): boolean => message.length + (images?.length ?? 0) <= REMEMBERED_CHARS_MAX

/** A row whose name gets its number. Null means not known. */
export interface Numbered {
  readonly row: { readonly kind: RowKind; readonly key: string }
  nameId: number | null
}

const FIND_NAMES: Bulk = { before: 'select id, key from names where kind = ? and key in (', row: '?', after: ')', types: ['text'] }
const ADD_NAMES: Bulk = {
  before: 'insert into names (kind, key, project, service, api_group, object_kind, namespace, name, refs) values',
  row: '(?, ?, ?, ?, ?, ?, ?, ?, 0)',
  after: 'returning id, key',
  types: ['text', 'text', 'text', 'text', 'text', 'text', 'text', 'text'],
}
const FIND_STATES: Bulk = { before: 'select id, digest from states where digest in (', row: '?', after: ')', types: ['text'] }
const ADD_STATES: Bulk = {
  before: 'insert into states (digest, sync, health, reason, message, images, refs) values',
  row: '(?, ?, ?, ?, ?, ?, 0)',
  after: 'returning id, digest',
  types: ['text', 'text', 'text', 'text', 'text', 'text'],
}
const READ_STATES: Bulk = {
  before: 'select id, sync, health, reason, message, images from states where id in (',
  row: '?',
  after: ')',
  types: ['bigint'],
}
// The casts: PostgreSQL takes parameters in a list of values for text.
const refs = (table: 'names' | 'states'): Bulk => ({
  before: `update ${table} set refs = refs + more.column2 from (values`,
  row: '(cast(? as bigint), cast(? as bigint))',
  after: `) as more where ${table}.id = more.column1`,
  types: ['bigint', 'bigint'],
})
const NAME_REFS = refs('names')
const STATE_REFS = refs('states')

/** The dictionary as one transaction sees it, and what it adds to the numbers of rows that refer to each entry. */
export class DictionaryWork {
  readonly generation: number
  readonly newNames = perKind(() => new Map<string, number>())
  readonly newStates = new Map<string, number>()
  readonly newStatesById = new Map<number, StateParts>()
  readonly #shared: Dictionary
  readonly #tx: Tx
  readonly #nameRefs = new Map<number, number>()
  readonly #stateRefs = new Map<number, number>()

  constructor(shared: Dictionary, tx: Tx, generation: number) {
    this.#shared = shared
    this.#tx = tx
    this.generation = generation
  }

  get engine(): Engine {
    return this.#shared.engine
  }

  /** Looks for those that are not remembered; a name that is nowhere stays unknown. */
  async findNames(rows: readonly Numbered[]): Promise<void> {
    const missing = rows.filter((one) => !this.#number(one))
    for (const [kind, some] of Map.groupBy(missing, ({ row }) => row.kind)) {
      const keys = new Set(some.map(({ row }) => row.key))
      const found = await runIn<{ id: number; key: string }>(this.#tx.sql, this.engine, FIND_NAMES, [...keys], [kind])
      for (const { id, key } of found) this.newNames[kind].set(key, id)
    }
    for (const one of missing) this.#number(one)
  }

  /** Only of names that `findNames` did not find. */
  async addNames(rows: readonly Numbered[]): Promise<void> {
    const missing = rows.filter((one) => !this.#number(one))
    for (const [kind, some] of Map.groupBy(missing, ({ row }) => row.kind)) {
      const values = [...new Set(some.map(({ row }) => row.key))].map((key) => {
        const { project, service, api_group, object_kind, namespace, name } = nameParts(kind, key)
        return [kind, key, project, service, api_group, object_kind, namespace, name]
      })
      const added = await runBulk<{ id: number; key: string }>(this.#tx.sql, this.engine, ADD_NAMES, values)
      for (const { id, key } of added) this.newNames[kind].set(key, id)
    }
    for (const one of missing) this.#number(one)
  }

  /** False: it has none yet. */
  #number(one: Numbered): boolean {
    const { kind, key } = one.row
    one.nameId = this.#shared.names[kind].get(key) ?? this.newNames[kind].get(key) ?? null
    return one.nameId !== null
  }

  /** In the order given. */
  async stateIds(states: readonly StateParts[]): Promise<number[]> {
    const texts = states.map(stateText)
    const missing = new Map<string, NewState>()
    for (const [index, text] of texts.entries()) {
      const state = states[index]
      if (state !== undefined && this.#stateId(text) === undefined) missing.set(text, { text, state })
    }
    if (missing.size > 0) await this.#findOrAddStates([...missing.values()])
    return texts.map((text) => this.#stateId(text) ?? 0)
  }

  #stateId(text: string): number | undefined {
    return this.#shared.states.get(text) ?? this.newStates.get(text)
  }

  async #findOrAddStates(missing: readonly NewState[]): Promise<void> {
    const byDigest = new Map(missing.map((one) => [stateDigest(one.text), one]))
    const note = (rows: ReadonlyArray<{ id: number; digest: string }>) => {
      for (const { id, digest } of rows) {
        const one = byDigest.get(digest)
        if (one === undefined) continue
        this.newStates.set(one.text, id)
        this.newStatesById.set(id, one.state)
        byDigest.delete(digest)
      }
    }
    note(await runIn(this.#tx.sql, this.engine, FIND_STATES, [...byDigest.keys()]))
    const values = [...byDigest].map(([digest, { state }]) => [digest, state.sync, state.health, state.reason, state.message, state.images])
    note(await runBulk(this.#tx.sql, this.engine, ADD_STATES, values))
  }

  /** The states of each number that exists. */
  async statesOf(ids: Iterable<number>): Promise<Map<number, StateParts>> {
    const states = new Map<number, StateParts>()
    const missing: number[] = []
    for (const id of ids) {
      const state = this.#shared.statesById.get(id) ?? this.newStatesById.get(id)
      if (state === undefined) missing.push(id)
      else states.set(id, state)
    }
    for (const { id, ...state } of await runIn<StateParts & { id: number }>(this.#tx.sql, this.engine, READ_STATES, missing)) {
      this.newStatesById.set(id, state)
      states.set(id, state)
    }
    return states
  }

  countName(id: number, n: number): void {
    this.#nameRefs.set(id, (this.#nameRefs.get(id) ?? 0) + n)
  }

  countState(id: number | null, n: number): void {
    if (id !== null) this.#stateRefs.set(id, (this.#stateRefs.get(id) ?? 0) + n)
  }

  /** Once, at the end of the transaction. */
  async write(pace: Pace): Promise<void> {
    await this.#writeRefs(NAME_REFS, changesOf(this.#nameRefs), pace)
    await this.#writeRefs(STATE_REFS, changesOf(this.#stateRefs), pace)
  }

  async #writeRefs(bulk: Bulk, changes: ReadonlyArray<[number, number]>, pace: Pace): Promise<void> {
    for (let start = 0; start < changes.length; start += REFS_A_TURN) {
      await runBulk(this.#tx.sql, this.engine, bulk, changes.slice(start, start + REFS_A_TURN))
      await pace()
    }
  }
}

const changesOf = (refs: ReadonlyMap<number, number>): Array<[number, number]> =>
  [...refs].filter(([, n]) => n !== 0).sort(([a], [b]) => a - b)
