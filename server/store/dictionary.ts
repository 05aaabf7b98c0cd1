// Numbers of names and states. Most of what comes was there before, so they are remembered; what a transaction made counts for others only once that is committed, and nothing
// counts any more once something was collected from these tables (the counter `dictionary`).
import { type Bulk, runBulk, runIn } from './bulk.ts'
import { RecentMap } from './recent-map.ts'
import { nameParts, type RowKind, type StateParts, stateDigest, stateText } from './status-columns.ts'
import type { Engine, Tx } from './store-db.ts'

const NAMES_MAX = 200_000
const STATES_MAX = 100_000

interface NewState {
  text: string
  state: StateParts
}

/** Of one database. Entries that are not collected in between never change. */
export class Dictionary {
  readonly engine: Engine
  readonly names = new RecentMap<number>(NAMES_MAX)
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
      this.names.clear()
      this.states.clear()
      this.statesById.clear()
      this.#generation = row.value
    }
    return new DictionaryWork(this, tx, row.value)
  }

  /** After the commit, and only then: what was rolled back has no number. */
  keep(work: DictionaryWork): void {
    if (work.generation !== this.#generation) return
    for (const [key, id] of work.newNames) this.names.set(key, id)
    for (const [text, id] of work.newStates) this.states.set(text, id)
    for (const [id, state] of work.newStatesById) this.statesById.set(id, state)
  }
}

export const nameText = (kind: RowKind, key: string): string => `${kind} ${key}`

const FIND_NAMES: Bulk = { before: 'select id, key from names where kind = ? and key in (', row: '?', after: ')' }
const ADD_NAMES: Bulk = {
  before: 'insert into names (kind, key, project, service, api_group, object_kind, namespace, name, refs) values',
  row: '(?, ?, ?, ?, ?, ?, ?, ?, 0)',
  after: 'returning id, kind, key',
}
const FIND_STATES: Bulk = { before: 'select id, digest from states where digest in (', row: '?', after: ')' }
const ADD_STATES: Bulk = {
  before: 'insert into states (digest, sync, health, reason, message, images, refs) values',
  row: '(?, ?, ?, ?, ?, ?, 0)',
  after: 'returning id, digest',
}
const READ_STATES: Bulk = { before: 'select id, sync, health, reason, message, images from states where id in (', row: '?', after: ')' }
// The casts: PostgreSQL takes parameters in a list of values for text.
const refs = (table: 'names' | 'states'): Bulk => ({
  before: `update ${table} set refs = refs + more.column2 from (values`,
  row: '(cast(? as bigint), cast(? as bigint))',
  after: `) as more where ${table}.id = more.column1`,
})
const NAME_REFS = refs('names')
const STATE_REFS = refs('states')

/** The dictionary as one transaction sees it, and what it adds to the numbers of rows that refer to each entry. */
export class DictionaryWork {
  readonly generation: number
  readonly newNames = new Map<string, number>()
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

  nameId(text: string): number | undefined {
    return this.#shared.names.get(text) ?? this.newNames.get(text)
  }

  /** Looks for those that are not remembered; a name that is nowhere stays unknown. */
  async findNames(rows: ReadonlyArray<{ text: string; row: { kind: RowKind; key: string } }>): Promise<void> {
    const missing = new Map<RowKind, Set<string>>()
    for (const { text, row } of rows) {
      if (this.nameId(text) !== undefined) continue
      const keys = missing.get(row.kind)
      if (keys === undefined) missing.set(row.kind, new Set([row.key]))
      else keys.add(row.key)
    }
    for (const [kind, keys] of missing) {
      const found = await runIn<{ id: number; key: string }>(this.#tx.sql, this.engine, FIND_NAMES, [...keys], [kind])
      for (const { id, key } of found) this.newNames.set(nameText(kind, key), id)
    }
  }

  /** Only of names that `findNames` did not find, each once. */
  async addNames(rows: ReadonlyArray<{ kind: RowKind; key: string }>): Promise<void> {
    const values = rows.map(({ kind, key }) => {
      const { project, service, api_group, object_kind, namespace, name } = nameParts(kind, key)
      return [kind, key, project, service, api_group, object_kind, namespace, name]
    })
    const added = await runBulk<{ id: number; kind: RowKind; key: string }>(this.#tx.sql, this.engine, ADD_NAMES, values)
    for (const { id, kind, key } of added) this.newNames.set(nameText(kind, key), id)
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

  /** Of each number that there is. */
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
  async write(): Promise<void> {
    await runBulk(this.#tx.sql, this.engine, NAME_REFS, changesOf(this.#nameRefs))
    await runBulk(this.#tx.sql, this.engine, STATE_REFS, changesOf(this.#stateRefs))
  }
}

const changesOf = (refs: ReadonlyMap<number, number>): Array<[number, number]> =>
  [...refs].filter(([, n]) => n !== 0).sort(([a], [b]) => a - b)
