// One file of the agent's replica: rows, position and counters in one place, changed in one transaction (CU4). Knows
// SQL and nothing of pages, signatures or which file is in force.
import { ALL_DESIRED, type CrdtDb, type Opening, openCrdtDb } from '../../shared/adapters/crdt-db.ts'
import { type Database, openSqlite, writeTransaction } from '../../shared/adapters/sqlite.ts'
import { type Position, positionSchema, samePosition } from '../../shared/crdt/position.ts'
import { addHash, hashText, parseHash, removeHash, rowHash } from '../../shared/crdt/row-hash.ts'
import { sealMarkOf } from '../../shared/model/sealed-object.ts'
import { type HeadProof, headProofSchema, type Row } from '../../shared/protocol/frames.ts'
import { BucketSums, bucketCountFor } from '../../shared/protocol/refetch.ts'
import type { Wrap } from './page-reader.ts'

/** The file's own description. */
export interface Held {
  position: Position
  count: number
  epoch: number
}

export interface ReplicaFile {
  readonly db: Database
  held(): Held | null
  proof(): HeadProof | null
  /** A delta: all or nothing. Returns the ids whose document changed, or the difference from the head; then nothing
   *  is changed. */
  merge(rows: readonly Row[], head: HeadProof, wraps: Wraps): { changedIds: string[] } | { differs: string }
  /** A new file: the kept rows of another one, then the rows of the page. Not compared with the head: `damage` does
   *  that, reading everything back. */
  fill(kept: Iterable<readonly [id: string, doc: string]>, rows: readonly Row[], head: HeadProof, wraps: WrapSource): void
  /** The key of a sealed row. */
  wrapOf(id: string): Wrap | null
  /** Encapsulations that keys of the range need. */
  encapsulations(from: string, below: string): Array<Pick<Wrap, 'enc' | 'to'>>
  doc(id: string): string | null
  /** Live rows of the range, by id. */
  rows(from: string, below: string): Array<readonly [id: string, doc: string]>
  /** Every live row by id, as a lookup finds it. */
  all(): Iterable<{ id: string; doc: string }>
  /** Rows of this file that the other one lacks or has otherwise, and the other way round. */
  differingIds(otherPath: string): string[]
  /** One for each bucket of the rows (PL9), after a check of them all; throws if they differ from the held rows. */
  bucketSums(): Uint8Array
  /** Full check: structure (`whole`: of the indexes too), no foreign rows, hash and count. Null when intact. */
  damage(structure: 'quick' | 'whole'): string | null
  /** Another connection wrote the file since the last time this was asked. */
  touchedByOthers(): boolean
  close(): void
}

export type Wraps = ReadonlyMap<string, Wrap>
/** The wrap of a row of the page, or of a kept row. */
type WrapSource = (id: string) => Wrap | null

// Beside the rows, in the same transaction, and not replicated: another agent could not open it.
// An earlier agent kept keys in `row_key`: it finds none there and fetches them again, when it is put back.
const KEY_TABLE = `CREATE TABLE IF NOT EXISTS page_key (
  id TEXT PRIMARY KEY, enc TEXT NOT NULL, recipient TEXT NOT NULL, wrapped TEXT NOT NULL, bound TEXT NOT NULL
) STRICT, WITHOUT ROWID`
const FORMER_KEYS = ["INSERT OR IGNORE INTO page_key SELECT id, enc, recipient, wrapped, '' FROM row_key", 'DROP TABLE row_key']

const POSITION_TABLE = `CREATE TABLE IF NOT EXISTS replica_position (
  one INTEGER PRIMARY KEY, cluster TEXT NOT NULL, db_id TEXT NOT NULL, term INTEGER NOT NULL, dv INTEGER NOT NULL, hash TEXT NOT NULL,
  count INTEGER NOT NULL, epoch INTEGER NOT NULL, proof TEXT NOT NULL
) STRICT`

// The key is packed here, from text: packed keys of others crash cr-sqlite or read a neighbour's values (PL4).
const MERGE = `INSERT INTO crsql_changes ("table", pk, cid, val, col_version, db_version, site_id, cl, seq)
VALUES ('desired', crsql_pack_columns(?1, ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9)`

/** Kept rows enter a new file without a history, so that every row of the server wins (PL9). */
const KEPT = { colVersion: 1, cl: 1 } as const

/**
 * The cache of a file that stays open while the agent runs: a delta is small, and the kernel has the pages. A file that
 * is being built uses SQLite's default of 2 MB.
 */
const FOLLOWING_CACHE_KIB = 512

/** Rows of a delta that are read at once, before and after they are merged. */
const CHUNK_ROWS = 256

interface PositionRow {
  cluster: string
  dbId: string
  term: number
  dv: number
  hash: string
  count: number
  epoch: number
}

export interface ReplicaFileOptions {
  clusterId: string
  libraryDir?: string
  opening?: Opening
  /** No other process reads it and it is dropped after any failure: no log and no sync to disk until it is complete. */
  building?: boolean
  /** Whether this agent has the recipient key with that fingerprint. Default: it has all. */
  knows?: (recipient: string) => boolean
  /** SL10: whether it is the key in use; a file with keys for another one is replaced whole. Default: all are. */
  isCurrent?: (recipient: string) => boolean
}

export function openReplicaFile(
  path: string,
  { clusterId: cluster, building = false, knows = () => true, isCurrent = () => true, ...native }: ReplicaFileOptions,
): ReplicaFile {
  const mode = building
    ? ({ journal: 'MEMORY', synchronous: 'OFF' } as const)
    : ({ synchronous: 'NORMAL', cacheKiB: FOLLOWING_CACHE_KIB } as const)
  const crdt = openCrdtDb(path, { ...mode, ...native })
  try {
    crdt.db.run(POSITION_TABLE)
    crdt.db.run(KEY_TABLE)
    if (crdt.db.query("SELECT 1 FROM sqlite_schema WHERE name = 'row_key'").get() !== null)
      writeTransaction(crdt.db, () => {
        for (const statement of FORMER_KEYS) crdt.db.run(statement)
      })
    return new CrdtReplicaFile(crdt, cluster, { knows, isCurrent })
  } catch (error) {
    crdt.close()
    throw error
  }
}

/** Throws if the next start could not read the file: an open connection keeps the schema that it once read, whatever
 *  the file has now. */
function readAnew(path: string): void {
  const db = openSqlite(path, { readonly: true })
  try {
    for (const table of ['desired', 'replica_position']) db.query(`SELECT 1 FROM ${table} LIMIT 1`).get()
  } finally {
    db.close()
  }
}

/** Above every id, which are text that begins with a letter. */
export const ID_CEILING = '\u{10ffff}'

class Differs extends Error {}

class CrdtReplicaFile implements ReplicaFile {
  readonly db: Database
  readonly #crdt: CrdtDb
  readonly #cluster: string
  readonly #recipients: Required<Pick<ReplicaFileOptions, 'knows' | 'isCurrent'>>
  readonly #statements
  #dataVersion: number

  constructor(crdt: CrdtDb, cluster: string, recipients: Required<Pick<ReplicaFileOptions, 'knows' | 'isCurrent'>>) {
    this.#recipients = recipients
    this.db = crdt.db
    this.#crdt = crdt
    this.#cluster = cluster
    this.#statements = prepare(crdt.db)
    this.#dataVersion = this.#readDataVersion()
  }

  held(): Held | null {
    const row = this.#statements.held.get()
    if (row === null || row.cluster !== this.#cluster) return null
    const { dbId, term, dv, hash, count, epoch } = row
    const position = positionSchema.safeParse({ dbId, term, dv, hash })
    return position.success ? { position: position.data, count, epoch } : null
  }

  proof(): HeadProof | null {
    const row = this.#statements.proof.get()
    if (row === null || row.cluster !== this.#cluster) return null
    return headProofSchema.nullable().catch(null).parse(parseJson(row.proof))
  }

  merge(rows: readonly Row[], head: HeadProof, wraps: Wraps): { changedIds: string[] } | { differs: string } {
    try {
      return { changedIds: writeTransaction(this.db, () => this.#mergeInTransaction(rows, head, wraps)) }
    } catch (error) {
      if (error instanceof Differs) return { differs: error.message }
      throw error
    }
  }

  #mergeInTransaction(rows: readonly Row[], head: HeadProof, wraps: Wraps): string[] {
    const before = this.held()
    let { sum, count } = { sum: parseHash(before?.position.hash ?? '0'), count: before?.count ?? 0 }
    const changedIds: string[] = []
    const hasKeys = this.#statements.hasKeys.get() !== null
    const mergeRow = this.#merger(head)
    for (let start = 0; start < rows.length; start += CHUNK_ROWS) {
      const chunk = rows.slice(start, start + CHUNK_ROWS)
      const ids = chunk.map(({ id }) => id)
      const old = this.#docs(ids)
      for (const { id, doc, colVersion, cl } of chunk) mergeRow(id, doc, colVersion, cl)
      if (hasKeys) this.#statements.dropKeys.run(JSON.stringify(ids))
      for (const id of wraps.size === 0 ? [] : ids) this.#keepKey(id, wraps.get(id))
      // The present content of the file counts: a row that outranks the server's keeps its own document, and the hash
      // must show it (RP1).
      const now = this.#docs(ids)
      for (const id of ids) {
        const [was, is] = [old.get(id), now.get(id)]
        if (was === is) continue
        changedIds.push(id)
        if (was !== undefined) sum = removeHash(sum, rowHash(id, was))
        if (is !== undefined) sum = addHash(sum, rowHash(id, is))
        count += (is === undefined ? 0 : 1) - (was === undefined ? 0 : 1)
      }
    }
    const { hello, checkpoint } = head
    if (count !== checkpoint.count) throw new Differs(`${count} rows after the page; its checkpoint has ${checkpoint.count}`)
    if (hashText(sum) !== hello.to.hash) throw new Differs('the hash of the rows after the page differs from its checkpoint')
    this.#hold(head)
    return changedIds
  }

  fill(kept: Iterable<readonly [id: string, doc: string]>, rows: readonly Row[], head: HeadProof, wraps: WrapSource): void {
    writeTransaction(this.db, () => {
      const mergeRow = this.#merger(head)
      const keep = (id: string, doc: string | null) => void (doc !== null && sealMarkOf(doc) !== null && this.#keepKey(id, wraps(id)))
      for (const [id, doc] of kept) {
        mergeRow(id, doc, KEPT.colVersion, KEPT.cl)
        keep(id, doc)
      }
      // In the order of the key, in which a file grows at its end.
      for (const { id, doc, colVersion, cl } of rows.toSorted((a, b) => (a.id < b.id ? -1 : 1))) {
        mergeRow(id, doc, colVersion, cl)
        keep(id, doc)
      }
      this.#hold(head)
    })
  }

  wrapOf(id: string): Wrap | null {
    return this.#statements.keyOf.get(id)
  }

  encapsulations(from: string, below: string): Array<Pick<Wrap, 'enc' | 'to'>> {
    return this.#statements.encapsulations.all(from, below)
  }

  #keepKey(id: string, wrap: Wrap | null | undefined): void {
    if (wrap != null) this.#statements.keepKey.run(id, wrap.enc, wrap.to, wrap.wrapped, wrap.bound)
  }

  /** SL4: an agent whose file lost a key fetches everything again. */
  #lacksKey(id: string, doc: string): boolean {
    if (sealMarkOf(doc) === null) return false
    const wrap = this.wrapOf(id)
    return wrap === null || !this.#recipients.knows(wrap.to)
  }

  #merger({ hello }: HeadProof): (id: string, doc: string | null, colVersion: number, cl: number) => void {
    const { merge } = this.#statements
    const [cluster, dv, siteId] = [this.#cluster, hello.to.dv, Buffer.from(hello.siteId, 'hex')]
    let seq = 0
    return (id, doc, colVersion, cl) => void merge.run(cluster, id, doc === null ? '-1' : 'doc', doc, colVersion, dv, siteId, cl, seq++)
  }

  #hold({ hello, checkpoint }: HeadProof): void {
    const { dbId, term, dv, hash } = hello.to
    const proof = JSON.stringify({ hello, checkpoint })
    this.#statements.hold.run({ cluster: this.#cluster, dbId, term, dv, hash, count: checkpoint.count, epoch: hello.epoch, proof })
  }

  #docs(ids: readonly string[]): Map<string, string> {
    return new Map(this.#statements.docs.values(this.#cluster, JSON.stringify(ids)) as Array<[string, string]>)
  }

  doc(id: string): string | null {
    return this.#statements.doc.get({ cluster: this.#cluster, id })?.doc ?? null
  }

  rows(from: string, below: string): Array<readonly [id: string, doc: string]> {
    return this.#statements.range.all({ cluster: this.#cluster, from, below }).map(({ id, doc }) => [id, doc] as const)
  }

  all(): Iterable<{ id: string; doc: string }> {
    return this.#statements.all.iterate()
  }

  differingIds(otherPath: string): string[] {
    this.db.query('ATTACH DATABASE ? AS other').run(otherPath)
    try {
      const differing = this.db.prepare<{ id: string }, { cluster: string }>(DIFFERING)
      const ids = differing.all({ cluster: this.#cluster }).map(({ id }) => id)
      differing.finalize()
      return ids
    } finally {
      this.db.run('DETACH DATABASE other')
    }
  }

  bucketSums(): Uint8Array {
    const held = this.held()
    if (this.encapsulations('', ID_CEILING).some(({ to }) => !this.#recipients.isCurrent(to))) return new Uint8Array()
    const sums = new BucketSums(bucketCountFor(held?.count ?? 0))
    const rows = new RowCheck()
    for (const { id, doc } of this.all()) {
      if (this.#lacksKey(id, doc)) return new Uint8Array()
      sums.add(rows.add(id, doc))
    }
    if (held === null || rows.damage(held) !== null) throw new Differs('its rows differ from its hash')
    return sums.bytes()
  }

  damage(structure: 'quick' | 'whole'): string | null {
    try {
      this.db.run('PRAGMA shrink_memory') // what is checked is the file, not what this connection remembers of it
      const pragma = structure === 'quick' ? 'quick_check' : 'integrity_check'
      const found = this.db.query(`PRAGMA ${pragma}(1)`).values()[0]?.[0]
      if (found !== 'ok') return `${pragma}: ${found ?? 'no answer'}`
      if (structure === 'whole') readAnew(this.db.filename)
      return this.#rowDamage()
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
  }

  #rowDamage(): string | null {
    const held = this.held()
    if (held === null) return 'it has no position'
    const hello = this.proof()?.hello
    if (hello === undefined || hello.epoch !== held.epoch || !samePosition(hello.to, held.position))
      return 'its position differs from its proof'
    if (this.#statements.foreign.get(this.#cluster) !== null) return 'it holds a row of another cluster'
    const rows = new RowCheck()
    for (const { id, doc } of this.all()) {
      if (this.#lacksKey(id, doc)) return 'a sealed row lacks its key'
      rows.add(id, doc)
    }
    return rows.damage(held)
  }

  touchedByOthers(): boolean {
    const now = this.#readDataVersion()
    const touched = now !== this.#dataVersion
    this.#dataVersion = now
    return touched
  }

  close(): void {
    for (const statement of Object.values(this.#statements)) statement.finalize()
    this.#crdt.close()
  }

  #readDataVersion(): number {
    return this.#statements.dataVersion.get()?.data_version ?? 0
  }
}

/** CU2 in full: every row, in the order that lookups rely on. */
class RowCheck {
  #sum = 0n
  #count = 0
  #last = ''
  #wrong: string | null = null

  /** Gives the row's hash back. */
  add(id: string, doc: string): bigint {
    // UTF-16 and UTF-8 order differ only past the Basic Multilingual Plane.
    if (id <= this.#last && Buffer.compare(Buffer.from(id), Buffer.from(this.#last)) <= 0) this.#wrong ??= 'its rows are out of order'
    this.#last = id
    const hash = rowHash(id, doc)
    this.#sum = addHash(this.#sum, hash)
    this.#count++
    return hash
  }

  damage(held: Held): string | null {
    if (this.#wrong !== null) return this.#wrong
    return this.#count === held.count && hashText(this.#sum) === held.position.hash ? null : 'its rows differ from its hash'
  }
}

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return null
  }
}

const DIFFERING = `SELECT o.id AS id FROM other.desired o LEFT JOIN main.desired n ON n.cluster = o.cluster AND n.id = o.id
  WHERE o.cluster = $cluster AND n.doc IS NOT o.doc
UNION ALL SELECT n.id FROM main.desired n LEFT JOIN other.desired o ON o.cluster = n.cluster AND o.id = n.id
  WHERE n.cluster = $cluster AND o.id IS NULL`

function prepare(db: Database) {
  return {
    held: db.prepare<PositionRow, []>('SELECT cluster, db_id AS dbId, term, dv, hash, count, epoch FROM replica_position WHERE one = 1'),
    proof: db.prepare<{ cluster: string; proof: string }, []>('SELECT cluster, proof FROM replica_position WHERE one = 1'),
    hold: db.prepare<null, { [K in keyof PositionRow]: PositionRow[K] } & { proof: string }>(
      `INSERT OR REPLACE INTO replica_position (one, cluster, db_id, term, dv, hash, count, epoch, proof)
       VALUES (1, $cluster, $dbId, $term, $dv, $hash, $count, $epoch, $proof)`,
    ),
    keyOf: db.prepare<Wrap, [string]>('SELECT enc, recipient AS "to", wrapped, bound FROM page_key WHERE id = ?1'),
    encapsulations: db.prepare<Pick<Wrap, 'enc' | 'to'>, [string, string]>(
      'SELECT DISTINCT enc, recipient AS "to" FROM page_key WHERE id >= ?1 AND id < ?2',
    ),
    keepKey: db.prepare<null, [string, string, string, string, string]>(
      'INSERT OR REPLACE INTO page_key (id, enc, recipient, wrapped, bound) VALUES (?1, ?2, ?3, ?4, ?5)',
    ),
    dropKeys: db.prepare<null, [string]>('DELETE FROM page_key WHERE id IN (SELECT value FROM json_each(?1))'),
    hasKeys: db.prepare<{ one: number }, []>('SELECT 1 AS one FROM page_key LIMIT 1'),
    merge: db.prepare<null, [string, string, string, string | null, number, number, Uint8Array, number, number]>(MERGE),
    doc: db.prepare<{ doc: string }, { cluster: string; id: string }>('SELECT doc FROM desired WHERE cluster = $cluster AND id = $id'),
    docs: db.prepare<{ id: string; doc: string }, [cluster: string, ids: string]>(
      'SELECT id, doc FROM desired WHERE cluster = ?1 AND id IN (SELECT value FROM json_each(?2))',
    ),
    range: db.prepare<{ id: string; doc: string }, { cluster: string; from: string; below: string }>(
      'SELECT id, doc FROM desired WHERE cluster = $cluster AND id >= $from AND id < $below ORDER BY id',
    ),
    all: db.prepare<{ id: string; doc: string }, []>(`SELECT id, doc FROM (${ALL_DESIRED})`),
    foreign: db.prepare<{ id: string }, [cluster: string]>('SELECT id FROM desired WHERE cluster <> ?1 LIMIT 1'),
    dataVersion: db.prepare<{ data_version: number }, []>('PRAGMA data_version'),
  }
}
