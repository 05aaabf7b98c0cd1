// One file of the agent's replica: rows, position and counters in one place, changed in one transaction (CU4). Knows SQL and nothing of pages,
// signatures or which file is in force.
import { type CrdtDb, openCrdtDb } from '../../shared/adapters/crdt-db.ts'
import { type Database, writeTransaction } from '../../shared/adapters/sqlite.ts'
import { type Position, positionSchema } from '../../shared/crdt/position.ts'
import { addHash, hashText, parseHash, removeHash, rowHash } from '../../shared/crdt/row-hash.ts'
import type { Row } from '../../shared/protocol/frames.ts'

/** What the file says of itself. */
export interface Held {
  position: Position
  count: number
  epoch: number
}

export interface ReplicaFile {
  readonly db: Database
  held(): Held | null
  /** All or nothing; null when `held` came out as it should, else what differs and nothing is changed. Returns also the ids whose document changed. */
  merge(rows: readonly Row[], siteId: string, held: Held): { changedIds: string[] } | { differs: string }
  doc(id: string): string | null
  /** Live rows of the range, by id. */
  rows(from: string, below: string): Array<readonly [id: string, doc: string]>
  /** Full check: structure, rows of nobody else, hash and count. Null when whole. */
  damage(): string | null
  /** Another connection wrote the file since the last time this was asked. */
  touchedByOthers(): boolean
  close(): void
}

const POSITION_TABLE = `CREATE TABLE IF NOT EXISTS replica_position (
  one INTEGER PRIMARY KEY, cluster TEXT NOT NULL, db_id TEXT NOT NULL, term INTEGER NOT NULL, dv INTEGER NOT NULL, hash TEXT NOT NULL,
  count INTEGER NOT NULL, epoch INTEGER NOT NULL
) STRICT`

// The key is packed here, from text: packed keys of others crash cr-sqlite or read a neighbour's values (PL4).
const MERGE = `INSERT INTO crsql_changes ("table", pk, cid, val, col_version, db_version, site_id, cl, seq)
VALUES ('desired', crsql_pack_columns($cluster, $id), $cid, $doc, $colVersion, $dv, unhex($siteId), $cl, $seq)`

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
}

export function openReplicaFile(path: string, { clusterId: cluster, libraryDir }: ReplicaFileOptions): ReplicaFile {
  const crdt = openCrdtDb(path, libraryDir === undefined ? { synchronous: 'NORMAL' } : { synchronous: 'NORMAL', libraryDir })
  try {
    crdt.db.run(POSITION_TABLE)
    return new CrdtReplicaFile(crdt, cluster)
  } catch (error) {
    crdt.close()
    throw error
  }
}

class Differs extends Error {}

class CrdtReplicaFile implements ReplicaFile {
  readonly db: Database
  readonly #crdt: CrdtDb
  readonly #cluster: string
  readonly #statements
  #dataVersion: number

  constructor(crdt: CrdtDb, cluster: string) {
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

  merge(rows: readonly Row[], siteId: string, held: Held): { changedIds: string[] } | { differs: string } {
    try {
      return { changedIds: writeTransaction(this.db, () => this.#mergeInTransaction(rows, siteId, held)) }
    } catch (error) {
      if (error instanceof Differs) return { differs: error.message }
      throw error
    }
  }

  #mergeInTransaction(rows: readonly Row[], siteId: string, held: Held): string[] {
    const { merge, setHeld } = this.#statements
    const before = this.held()
    let { sum, count } = { sum: parseHash(before?.position.hash ?? '0'), count: before?.count ?? 0 }
    const changedIds: string[] = []
    const { dv } = held.position
    for (const [seq, { id, doc, colVersion, cl }] of rows.entries()) {
      const old = this.doc(id)
      merge.run({ cluster: this.#cluster, id, cid: doc === null ? '-1' : 'doc', doc, colVersion, dv, siteId, cl, seq })
      // What counts is what the file holds now: a row that outranks the server's keeps its own document, and the hash must show it (RP1).
      const now = this.doc(id)
      if (now === old) continue
      changedIds.push(id)
      if (old !== null) sum = removeHash(sum, rowHash(id, old))
      if (now !== null) sum = addHash(sum, rowHash(id, now))
      count += (now === null ? 0 : 1) - (old === null ? 0 : 1)
    }
    const { position, epoch } = held
    if (count !== held.count) throw new Differs(`${count} rows after the page, its checkpoint says ${held.count}`)
    if (hashText(sum) !== position.hash) throw new Differs('rows after the page hash to another sum than its checkpoint says')
    setHeld.run({ cluster: this.#cluster, dbId: position.dbId, term: position.term, dv: position.dv, hash: position.hash, count, epoch })
    return changedIds
  }

  doc(id: string): string | null {
    return this.#statements.doc.get({ cluster: this.#cluster, id })?.doc ?? null
  }

  rows(from: string, below: string): Array<readonly [id: string, doc: string]> {
    return this.#statements.range.all({ cluster: this.#cluster, from, below }).map(({ id, doc }) => [id, doc] as const)
  }

  damage(): string | null {
    try {
      const check = this.db.query<{ quick_check: string }, []>('PRAGMA quick_check(1)').get()
      if (check?.quick_check !== 'ok') return `quick_check: ${check?.quick_check ?? 'no answer'}`
      const held = this.held()
      if (held === null) return 'it has no position'
      let { sum, count } = { sum: 0n, count: 0 }
      for (const row of this.db.query<{ cluster: string; id: string; doc: string }, []>('SELECT cluster, id, doc FROM desired').iterate()) {
        if (row.cluster !== this.#cluster) return 'it holds a row of another cluster'
        sum = addHash(sum, rowHash(row.id, row.doc))
        count++
      }
      return count === held.count && hashText(sum) === held.position.hash ? null : 'its rows differ from its hash'
    } catch (error) {
      return error instanceof Error ? error.message : String(error)
    }
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

function prepare(db: Database) {
  return {
    held: db.prepare<PositionRow, []>('SELECT cluster, db_id AS dbId, term, dv, hash, count, epoch FROM replica_position WHERE one = 1'),
    setHeld: db.prepare<null, { [K in keyof PositionRow]: PositionRow[K] }>(
      `INSERT OR REPLACE INTO replica_position (one, cluster, db_id, term, dv, hash, count, epoch)
       VALUES (1, $cluster, $dbId, $term, $dv, $hash, $count, $epoch)`,
    ),
    merge: db.prepare<
      null,
      {
        cluster: string
        id: string
        cid: string
        doc: string | null
        colVersion: number
        dv: number
        siteId: string
        cl: number
        seq: number
      }
    >(MERGE),
    doc: db.prepare<{ doc: string }, { cluster: string; id: string }>('SELECT doc FROM desired WHERE cluster = $cluster AND id = $id'),
    range: db.prepare<{ id: string; doc: string }, { cluster: string; from: string; below: string }>(
      'SELECT id, doc FROM desired WHERE cluster = $cluster AND id >= $from AND id < $below ORDER BY id',
    ),
    dataVersion: db.prepare<{ data_version: number }, []>('PRAGMA data_version'),
  }
}
