// One shard file and its only writer. Writes are not synced (CU5): the fleet store has all its content, and after an
// unclean stop the file is either verified or rebuilt under another dbId.
import { existsSync, renameSync, rmSync } from 'node:fs'
import { crdtDamage } from '../../shared/adapters/crdt-damage.ts'
import { ALL_DESIRED, type CrdtDb, type CrdtOptions, type Opening, openCrdtDb } from '../../shared/adapters/crdt-db.ts'
import { setAside } from '../../shared/adapters/native-guard.ts'
import { type Database, isDamage, openSqlite, writeTransaction } from '../../shared/adapters/sqlite.ts'
import { syncPath } from '../../shared/adapters/sync-path.ts'
import { type Position, samePosition } from '../../shared/crdt/position.ts'
import { addHash, EMPTY_HASH, hashText, parseHash, rowHash } from '../../shared/crdt/row-hash.ts'
import { fleetRowsPrefix, isFleetRows, objectRowPrefix, serviceRowId } from '../../shared/model/desired.ts'
import { assert } from '../../shared/runtime/assert.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { type RecentLines, RecentLinesCache } from './recent-lines.ts'
import { type Changes, changesFromBefore, changesFromHeld } from './revision-changes.ts'
import type { ReadBounds, RowLines } from './row-lines.ts'
import { type ChangeRow, deltaReader, deltaRows, type KnownHead, SHARD_CACHE_KIB, type ShardOrigin } from './shard-reader.ts'
import type { ServiceRevision } from './shards.ts'

const TABLES = `
CREATE TABLE tx_log (
  dv INTEGER PRIMARY KEY, cluster TEXT NOT NULL, ordinal INTEGER NOT NULL, term INTEGER NOT NULL, hash TEXT NOT NULL, count INTEGER NOT NULL
) STRICT;
CREATE INDEX tx_log_cluster ON tx_log (cluster, dv);
CREATE TABLE cluster_ordinal (cluster TEXT PRIMARY KEY, ordinal INTEGER NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE meta (db_id TEXT NOT NULL, term INTEGER NOT NULL, origin TEXT NOT NULL) STRICT;`
const TABLE_NAMES = ['tx_log', 'tx_log_cluster', 'cluster_ordinal', 'meta']

// Equal rows are left out before this; the WHERE holds where that is ever wrong: an update that changes nothing would
// still raise cr-sqlite's version in memory, a restart would hand the number out again, and an agent whose cursor
// stands there would miss what comes with it (RV4).
const UPSERT = `INSERT INTO desired (cluster, id, doc) VALUES ($cluster, $id, $doc)
ON CONFLICT (cluster, id) DO UPDATE SET doc = excluded.doc WHERE doc IS NOT excluded.doc`

// A page that a crash kept from the disk is not missed by the others. Rows, clocks and log prove each other; nothing
// proves these, so that what the log does not name is replayed (CU7). Most of that is there already, and writes
// nothing.
const AS_LOGGED = `UPDATE cluster_ordinal SET ordinal =
  coalesce((SELECT max(t.ordinal) FROM tx_log t WHERE t.cluster = cluster_ordinal.cluster), 0)`

// The clocks of a transaction's own versions, as DELTA has them; the documents are those that were just written.
const CLOCKS = `
SELECT c.db_version AS dv, p.id AS id, c.col_name AS cell, c.col_version AS colVersion,
  (SELECT s.col_version FROM desired__crsql_clock s WHERE s.key = c.key AND s.col_name = '-1') AS cl
FROM desired__crsql_clock c CROSS JOIN desired__crsql_pks p ON p.__crsql_key = c.key
WHERE c.db_version >= $first ORDER BY c.db_version, c.seq, p.id`

const SERVICE_ROWS = `SELECT id, doc FROM desired WHERE cluster = $cluster AND (id = $service OR (id >= $from AND id < $below))`

export interface ShardFile {
  /** One transaction. Of each the new head, or null when the revision is what the file holds already. */
  write(revisions: readonly ServiceRevision[]): Array<Position | null>
  head(clusterId: string): Position
  /** For a cursor that was the head before the cluster's last write, where that write led, from memory. Null for any
   *  other: the file knows. */
  led(clusterId: string, cursor: Position): KnownHead | null
  ordinal(clusterId: string): number
  /** The clusters of which it remembers anything. */
  clusters(): ClusterId[]
  removeCluster(clusterId: string): void
  readonly dbId: string
  readonly siteId: string
  readonly origin: ShardOrigin
  close(): void
}

export interface ShardFileOptions {
  path: string
  /** 32 hex digits, fresh at each call. */
  newDbId(): string
  libraryDir?: string
  opening?: Opening
  /** Shared by the files of a server; default: one of its own. */
  recent?: RecentLinesCache
}

export interface OpenShardFile extends ShardFileOptions {
  /** The last stop was not clean: everything is checked, not only the structure. */
  suspect: boolean
  /** Why the file is replaced whatever it holds. */
  discard?: string
  /** Why the file is replaced and kept under another name: native code ended a process on it. */
  setAside?: string
}

/** At a start. `rebuilt` says why an existing file was thrown away: its clusters need a new epoch and a replay. */
export function openShardFile(options: OpenShardFile): { file: ShardFile; rebuilt: string | null } {
  const { path, discard, setAside: deadly } = options
  removeShardFile(path + NEW_FILE)
  if (!existsSync(path)) return { file: replaceShardFile(options, 'created'), rebuilt: null }
  if (deadly !== undefined) setAside(path)
  const opened = deadly ?? discard ?? openWhole(options)
  return typeof opened === 'string' ? { file: replaceShardFile(options, 'rebuilt'), rebuilt: opened } : { file: opened, rebuilt: null }
}

/** The file, or why it is damaged. Other errors are thrown: they say nothing about the file. */
function openWhole(options: OpenShardFile): ShardFile | string {
  try {
    const damage = plainDamage(options)
    return damage ?? reopenShardFile(options)
  } catch (error) {
    if (isDamage(error)) return error instanceof Error ? error.message : String(error)
    throw error
  }
}

function plainDamage({ path, suspect }: OpenShardFile): string | null {
  const db = openSqlite(path, { synchronous: 'OFF', cacheKiB: SHARD_CACHE_KIB })
  try {
    const damage = suspect ? findDamage(db) : findStructureDamage(db)
    if (damage === null && suspect) db.run(AS_LOGGED)
    return damage
  } finally {
    db.close()
  }
}

/** Under a temporary name until it is complete: what a crash leaves of it is never taken for a shard file. */
function replaceShardFile(options: ShardFileOptions, origin: ShardOrigin): ShardFile {
  const { path } = options
  const staged = path + NEW_FILE
  createShardFile({ ...options, path: staged }, origin).close()
  syncPath(staged)
  putInPlace(staged, path)
  return reopenShardFile(options)
}

/** The old file's log goes first, or it would be played into the new file. */
export function putInPlace(staged: string, path: string): void {
  removeBesides(path)
  renameSync(staged, path)
}

/** Ending of a file that will take the place of the one beside it. The next start removes what a crash leaves of it. */
export const NEW_FILE = '.new'

export function removeShardFile(path: string): void {
  rmSync(path, { force: true })
  removeBesides(path)
}

/** SQLite's files beside a database. Left there, they would become part of the next file of that name. */
function removeBesides(path: string): void {
  for (const suffix of ['-wal', '-shm', '-journal']) rmSync(path + suffix, { force: true })
}

/** Checks everything (CU5): structure, row hashes and clocks against the log. Null means whole. */
export function findDamage(db: Database): string | null {
  return findStructureDamage(db) ?? findRowDamage(db)
}

function findStructureDamage(db: Database): string | null {
  const damage = crdtDamage(db)
  if (damage !== null) return damage
  const tables = db.query<{ n: number }, [string]>('SELECT count(*) AS n FROM sqlite_master WHERE name IN (SELECT value FROM json_each(?))')
  if (tables.get(JSON.stringify(TABLE_NAMES))?.n !== TABLE_NAMES.length) return 'its tables are missing'
  const identities = db.query<Identity, []>(IDENTITY).all()
  return identities.length === 1 && /^[0-9a-f]{32}$/.test(identities[0]?.dbId ?? '') ? null : 'it has no identity'
}

interface Identity {
  dbId: string
  term: number
  origin: ShardOrigin
}
const IDENTITY = 'SELECT db_id AS dbId, term, origin FROM meta'

function findRowDamage(db: Database): string | null {
  const sums = new Map<string, { hash: bigint; count: number }>()
  for (const row of db.query<{ cluster: string; id: string; doc: string }, []>(ALL_DESIRED).iterate()) {
    const sum = sums.get(row.cluster) ?? { hash: 0n, count: 0 }
    sums.set(row.cluster, { hash: addHash(sum.hash, rowHash(row.id, row.doc)), count: sum.count + 1 })
  }
  const heads = db.query<{ cluster: string; hash: string; count: number; dv: number }, []>(
    'SELECT cluster, hash, count, max(dv) AS dv FROM tx_log GROUP BY cluster',
  )
  for (const { cluster, hash, count } of heads.all()) {
    const sum = sums.get(cluster) ?? { hash: 0n, count: 0 }
    if (hashText(sum.hash) !== hash || sum.count !== count) return `rows of ${cluster} differ from its log`
    sums.delete(cluster)
  }
  if (sums.size > 0) return 'it has rows of a cluster without a log'
  const clocks = db.query<{ n: number }, []>(`
    SELECT (SELECT count(*) FROM desired) - (SELECT count(*) FROM desired__crsql_clock c
      JOIN desired__crsql_pks p ON p.__crsql_key = c.key JOIN desired d ON d.cluster = p.cluster AND d.id = p.id
      JOIN tx_log t ON t.dv = c.db_version AND t.cluster = p.cluster WHERE c.col_name = 'doc') AS n`)
  return clocks.get()?.n === 0 ? null : 'row clocks differ from the rows'
}

const openOptions = ({ libraryDir, opening }: Pick<OpenShardFile, 'libraryDir' | 'opening'>): CrdtOptions => ({
  synchronous: 'OFF',
  cacheKiB: SHARD_CACHE_KIB,
  ...(libraryDir === undefined ? {} : { libraryDir }),
  ...(opening === undefined ? {} : { opening }),
})

/** A new file at a path where none is. */
export function createShardFile(options: ShardFileOptions, origin: ShardOrigin): ShardFile {
  const crdt = openCrdtDb(options.path, openOptions(options))
  writeTransaction(crdt.db, () => {
    crdt.db.run(TABLES)
    crdt.db.query('INSERT INTO meta (db_id, term, origin) VALUES (?, 1, ?)').run(options.newDbId(), origin)
  })
  return new CrdtShardFile(crdt, options.recent)
}

/** A file that was checked or written by this process just before. */
export function reopenShardFile(options: Omit<ShardFileOptions, 'newDbId'>): ShardFile {
  return new CrdtShardFile(openCrdtDb(options.path, { ...openOptions(options), checked: true }), options.recent)
}

class CrdtShardFile implements ShardFile {
  readonly dbId: string
  readonly siteId: string
  readonly origin: ShardOrigin
  readonly #crdt: CrdtDb
  readonly #term: number
  readonly #statements
  readonly #transaction
  /** This is the file's only writer, so what it wrote or read last is what the file holds. */
  readonly #heads = new Map<string, Head>()
  readonly #recent: RecentLinesCache

  constructor(crdt: CrdtDb, recent = new RecentLinesCache()) {
    this.#crdt = crdt
    this.#recent = recent
    this.#transaction = crdt.db.transaction((revisions: readonly ServiceRevision[], reread: boolean) => this.#writeAll(revisions, reread))
    this.siteId = crdt.siteId
    const meta = crdt.db.query<Identity, []>(IDENTITY).get()
    assert(meta, 'a shard file has an identity')
    this.dbId = meta.dbId
    this.#term = meta.term
    this.origin = meta.origin
    this.#statements = prepare(crdt.db)
  }

  write(revisions: readonly ServiceRevision[]): Array<Position | null> {
    try {
      return this.#writeWhole(revisions, false)
    } catch (error) {
      if (!(error instanceof NotAsBefore)) throw error
      return this.#writeWhole(revisions, true)
    }
  }

  #writeWhole(revisions: readonly ServiceRevision[], reread: boolean): Array<Position | null> {
    try {
      return this.#transaction.immediate(revisions, reread)
    } catch (error) {
      this.#heads.clear() // they were of the transaction that is undone
      throw error
    }
  }

  /** `reread`: trust nothing but the rows themselves about what is held. */
  #writeAll(revisions: readonly ServiceRevision[], reread: boolean): Array<Position | null> {
    let last = 0
    const written = new Map<string, Written>()
    const heads = revisions.map((revision) => {
      const head = this.#writeOne(revision, last, reread, written)
      if (head !== null) last = head.dv
      return head
    })
    if (written.size > 0) this.#remember(written)
    return heads
  }

  #writeOne(revision: ServiceRevision, last: number, reread: boolean, written: Map<string, Written>): Position | null {
    const { clusterId: cluster, ordinal } = revision
    const { upsert, remove, log, seen } = this.#statements
    const held = this.#head(cluster)
    const { changes, sum, count } = this.#changes(revision, reread || held.ordinal !== ordinal - 1)
    const next = { ...held, ordinal: Math.max(held.ordinal, ordinal) }
    if (ordinal > held.ordinal) seen.run({ cluster, ordinal })
    this.#heads.set(cluster, next)
    if (changes.length === 0) return null

    const dv = this.#crdt.nextDbVersion(last + 1) // CU6
    const own: Written = written.get(cluster) ?? { after: this.#positionOf(held), dvs: [], chars: 0, docs: new Map() }
    own.dvs.push(dv)
    written.set(cluster, own)
    for (const { id, doc } of changes) {
      own.docs.set(id, doc)
      own.chars += doc?.length ?? 0
      const ran = doc === null ? remove.run({ cluster, id }) : upsert.run({ cluster, id, doc })
      if (ran.changes !== 1) throw new NotAsBefore(`${id} of ${cluster} does not have the expected row`)
    }
    const hash = hashText(addHash(parseHash(held.hash), sum))
    Object.assign(next, { dv, term: this.#term, hash, count: held.count + count })
    log.run({ dv, cluster, ordinal, term: this.#term, hash, count: next.count })
    return { dbId: this.dbId, term: this.#term, dv, hash }
  }

  #changes(revision: ServiceRevision, reread: boolean): Changes {
    if (revision.before !== undefined && !reread) return changesFromBefore(revision, revision.before)
    const prefix = isFleetRows(revision) ? fleetRowsPrefix(revision) : objectRowPrefix(revision)
    const bounds = { service: serviceRowId(revision), from: prefix, below: `${prefix.slice(0, -1)}0` }
    const held = this.#statements.rows.all({ cluster: revision.clusterId, ...bounds })
    return changesFromHeld(revision, new Map(held.map(({ id, doc }) => [id, doc])))
  }

  /** The agents of these clusters ask for their pages at once. */
  #remember(written: ReadonlyMap<string, Written>): void {
    const rows = written.values().reduce((sum, { docs }) => sum + docs.size, 0)
    const cells = rows > REMEMBERED_ROWS_MAX ? null : this.#cellsOf(written)
    for (const [cluster, { after, chars, docs }] of written) {
      const changed = cells?.get(cluster)?.map((cell) => ({ ...cell, doc: docs.get(cell.id) ?? null }))
      const lines = changed === undefined ? null : this.#recent.of([...deltaRows(changed)])
      this.#head(cluster).written = { after, rows: docs.size, chars, lines }
    }
  }

  /** By cluster, in the order of a page. */
  #cellsOf(written: ReadonlyMap<string, Written>): Map<string, ClockRow[]> {
    const clusterOf = new Map<number, string>()
    for (const [cluster, { dvs }] of written) for (const dv of dvs) clusterOf.set(dv, cluster)
    const first = clusterOf.keys().reduce((least, dv) => Math.min(least, dv))
    const cells = this.#statements.clocks.all({ first })
    return Map.groupBy(cells, ({ dv }) => clusterOf.get(dv) ?? '')
  }

  head(clusterId: string): Position {
    return this.#positionOf(this.#head(clusterId))
  }

  #positionOf({ dv, term, hash }: Head): Position {
    return { dbId: this.dbId, term, dv, hash }
  }

  led(clusterId: string, cursor: Position): KnownHead | null {
    const { written, count, ordinal } = this.#head(clusterId)
    if (written === undefined || !samePosition(written.after, cursor)) return null
    const { delta } = this.#statements
    const isLarge = ({ rows, bytes }: ReadBounds) => written.rows > rows || written.chars > bytes
    return {
      to: this.head(clusterId),
      count,
      ordinal,
      delta: (bounds) => (isLarge(bounds) ? null : (heldLines(written.lines) ?? delta.lines(clusterId, cursor.dv, bounds))),
    }
  }

  ordinal(clusterId: string): number {
    return this.#head(clusterId).ordinal
  }

  clusters(): ClusterId[] {
    return this.#crdt.db
      .query<{ cluster: ClusterId }, []>('SELECT cluster FROM cluster_ordinal')
      .all()
      .map(({ cluster }) => cluster)
  }

  /** Ids of clusters are never used again, so the tombstones that are dropped here are not needed. */
  removeCluster(clusterId: string): void {
    const { db } = this.#crdt
    this.#heads.delete(clusterId)
    writeTransaction(db, () => {
      db.query('DELETE FROM desired WHERE cluster = ?').run(clusterId)
      db.query('DELETE FROM desired__crsql_clock WHERE key IN (SELECT __crsql_key FROM desired__crsql_pks WHERE cluster = ?)').run(
        clusterId,
      )
      db.query('DELETE FROM desired__crsql_pks WHERE cluster = ?').run(clusterId)
      db.query('DELETE FROM tx_log WHERE cluster = ?').run(clusterId)
      db.query('DELETE FROM cluster_ordinal WHERE cluster = ?').run(clusterId)
    })
  }

  close(): void {
    for (const statement of Object.values(this.#statements)) statement.finalize()
    try {
      this.#crdt.db.run('PRAGMA wal_checkpoint(TRUNCATE)')
    } finally {
      this.#crdt.close()
    }
  }

  #head(cluster: string): Head {
    const known = this.#heads.get(cluster)
    if (known !== undefined) return known
    const logged = this.#statements.head.get({ cluster }) ?? { dv: 0, term: this.#term, hash: EMPTY_HASH, count: 0 }
    const head = { ...logged, ordinal: this.#statements.ordinal.get({ cluster })?.ordinal ?? 0 }
    this.#heads.set(cluster, head)
    return head
  }
}

interface Head {
  dv: number
  term: number
  hash: string
  count: number
  ordinal: number
  /** The last transaction of this process that wrote to the cluster: where it began, how much it was, and its lines. */
  written?: { after: Position; rows: number; chars: number; lines: RecentLines | null }
}

/** To one cluster in one transaction. */
interface Written {
  after: Position
  dvs: number[]
  /** Row id → document. Null means deleted. */
  docs: Map<string, string | null>
  chars: number
}
type ClockRow = Omit<ChangeRow, 'doc'> & { dv: number }

/** In a transaction; the lines of larger ones are read when they are asked for. */
const REMEMBERED_ROWS_MAX = 1_000

function heldLines(lines: RecentLines | null): RowLines | null {
  if (lines === null || lines.bytes === null) return null
  const { bytes, rows, sealed, bounded, sops } = lines
  return { bytes, rows, sealed, bounded, sops, recent: lines }
}

/** The shard does not hold what was said to be held: nothing is written. */
class NotAsBefore extends Error {}

function prepare(db: Database) {
  return {
    rows: db.prepare<{ id: string; doc: string }, { cluster: string; service: string; from: string; below: string }>(SERVICE_ROWS),
    upsert: db.prepare<null, { cluster: string; id: string; doc: string }>(UPSERT),
    remove: db.prepare<null, { cluster: string; id: string }>('DELETE FROM desired WHERE cluster = $cluster AND id = $id'),
    delta: deltaReader(db),
    clocks: db.prepare<ClockRow, { first: number }>(CLOCKS),
    log: db.prepare<null, { dv: number; cluster: string; ordinal: number; term: number; hash: string; count: number }>(
      'INSERT INTO tx_log (dv, cluster, ordinal, term, hash, count) VALUES ($dv, $cluster, $ordinal, $term, $hash, $count)',
    ),
    head: db.prepare<{ dv: number; term: number; hash: string; count: number }, { cluster: string }>(
      'SELECT dv, term, hash, count FROM tx_log WHERE cluster = $cluster ORDER BY dv DESC LIMIT 1',
    ),
    ordinal: db.prepare<{ ordinal: number }, { cluster: string }>('SELECT ordinal FROM cluster_ordinal WHERE cluster = $cluster'),
    seen: db.prepare<null, { cluster: string; ordinal: number }>(
      'INSERT INTO cluster_ordinal (cluster, ordinal) VALUES ($cluster, $ordinal) ON CONFLICT DO UPDATE SET ordinal = excluded.ordinal',
    ),
  }
}
