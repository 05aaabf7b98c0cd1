// Reads of one shard file on a plain read-only connection: no extension, no lock that a writer would feel. Runs on the
// main thread for what is small and in a Worker for the rest.
import { type Database, openSqlite } from '../../shared/adapters/sqlite.ts'
import type { Position } from '../../shared/crdt/position.ts'
import { EMPTY_HASH, rowHash } from '../../shared/crdt/row-hash.ts'
import type { RefetchReason, Row } from '../../shared/protocol/frames.ts'
import { BUCKET_COUNTS, BucketSums, equalBuckets, SUM_BYTES } from '../../shared/protocol/refetch.ts'
import { assert } from '../../shared/runtime/assert.ts'
import { type ReadBounds, type RowLines, UNBOUNDED, writeLines } from './row-lines.ts'

/**
 * The question of an agent: the rows after its cursor (null means everything), or everything but the buckets whose sums
 * are equal (PL9).
 */
export type Ask = { kind: 'pull'; cursor: Position | null; led?: KnownHead } | { kind: 'refetch'; sums: Uint8Array }

/**
 * The writer's knowledge of the file: where the write after the cursor led. Nothing may be written while it is in use.
 */
export interface KnownHead {
  to: Position
  count: number
  ordinal: number
  /** Its rows; null when there are more. Through the writer’s own connection: each write empties the cache of every
   *  other one. */
  delta(bounds: ReadBounds): RowLines | null
}

export type ReadResult =
  | { kind: 'rows'; to: Position; count: number; ordinal: number; siteId: string; keep?: string; lines: RowLines }
  | { kind: 'nothing_new' }
  | { kind: 'refetch'; reason: RefetchReason }
  | { kind: 'large' }

export interface ShardReader {
  readonly dbId: string
  read(clusterId: string, ask: Ask, bounds: ReadBounds): ReadResult
  /** PL1: null when a delta can answer the cursor. */
  refusal(clusterId: string, cursor: Position): RefetchReason | null
  close(): void
}

/** Sixteen files with two or three connections each: at the scale of a large fleet more of it was measured to change
 *  nothing but the process's weight. */
export const SHARD_CACHE_KIB = 512

/** How the file came to be, and therefore what an agent with another dbId has met. */
export type ShardOrigin = 'created' | 'rebuilt' | 'compacted'

/** A cell that a write changed. */
export interface ChangeRow {
  id: string
  cell: string
  colVersion: number
  doc: string | null
  cl: number | null
}
interface HeadRow {
  dv: number
  term: number
  hash: string
  count: number
}
interface Meta {
  dbId: string
  term: number
  origin: ShardOrigin
  siteId: string
}

// tx_log leads, so that the cost is that of what changed in this cluster, whatever its neighbours in the shard wrote
// meanwhile. A deleted row has no base row, hence the LEFT JOIN; `-1` is cr-sqlite's cell for the whole row and its
// column version the causal length.
const DELTA = `
SELECT p.id AS id, c.col_name AS cell, c.col_version AS colVersion, d.doc AS doc,
  (SELECT s.col_version FROM desired__crsql_clock s WHERE s.key = c.key AND s.col_name = '-1') AS cl
FROM tx_log t
CROSS JOIN desired__crsql_clock c ON c.db_version = t.dv
CROSS JOIN desired__crsql_pks p ON p.__crsql_key = c.key AND p.cluster = t.cluster
LEFT JOIN desired d ON d.cluster = p.cluster AND d.id = p.id
WHERE t.cluster = $cluster AND t.dv > $after
ORDER BY t.dv, c.seq, p.id`

// The size of a delta, read before the delta itself: sorting a large one on the main thread would cost the time that
// the Worker saves. Reads no document.
const DELTA_SIZE = `
SELECT count(*) AS cells, coalesce(sum(octet_length(d.doc)), 0) AS bytes
FROM (SELECT c.key AS key FROM tx_log t CROSS JOIN desired__crsql_clock c ON c.db_version = t.dv
  WHERE t.cluster = $cluster AND t.dv > $after LIMIT $cells) x
CROSS JOIN desired__crsql_pks p ON p.__crsql_key = x.key
LEFT JOIN desired d ON d.cluster = p.cluster AND d.id = p.id`
/** A row that was deleted and inserted again has two at one version. */
const CELLS_OF_ROW = 2

const META = `SELECT db_id AS dbId, term, origin, (SELECT lower(hex(site_id)) FROM crsql_site_id WHERE ordinal = 0) AS siteId FROM meta`

function prepare(db: Database) {
  return {
    head: db.prepare<HeadRow, { cluster: string }>(
      'SELECT dv, term, hash, count FROM tx_log WHERE cluster = $cluster ORDER BY dv DESC LIMIT 1',
    ),
    logged: db.prepare<HeadRow, { cluster: string; dv: number }>(
      'SELECT dv, term, hash, count FROM tx_log WHERE cluster = $cluster AND dv = $dv',
    ),
    delta: deltaReader(db),
    live: db.prepare<{ id: string; doc: string }, { cluster: string }>('SELECT id, doc FROM desired WHERE cluster = $cluster ORDER BY id'),
    liveBytes: db.prepare<{ bytes: number | null }, { cluster: string }>(
      'SELECT sum(octet_length(doc)) AS bytes FROM desired WHERE cluster = $cluster',
    ),
    ordinal: db.prepare<{ ordinal: number }, { cluster: string }>('SELECT ordinal FROM cluster_ordinal WHERE cluster = $cluster'),
  }
}

export function openShardReader(path: string): ShardReader {
  const db = openSqlite(path, { readonly: true, cacheKiB: SHARD_CACHE_KIB })
  const query = db.prepare<Meta, []>(META)
  const meta = query.get()
  query.finalize()
  assert(meta, `the shard file ${path} has no meta row`)
  const statements = prepare(db)
  // Made once: making it costs as much as a small read.
  const snapshot = db.transaction((cluster: string, ask: Ask, bounds: ReadBounds) => readRows(statements, meta, cluster, ask, bounds))
  const refusal = db.transaction((cluster: string, cursor: Position) => {
    return refusalOf(statements, meta, cluster, cursor, headOf(statements, meta, cluster).dv)
  })
  return {
    dbId: meta.dbId,
    read: (cluster, ask, bounds) =>
      (ask.kind === 'pull' && ask.led !== undefined ? readKnown(meta, ask.led, bounds) : null) ?? snapshot.deferred(cluster, ask, bounds),
    refusal: (cluster, cursor) => refusal.deferred(cluster, cursor),
    close() {
      for (const statement of Object.values(statements)) statement.finalize()
      db.close()
    },
  }
}

type Statements = ReturnType<typeof prepare>

/** No transaction: one statement is a snapshot of its own (PL2). The rows of a commit to ten thousand clusters are read
 *  ten thousand times. */
function readKnown({ siteId }: Meta, { delta, ...led }: KnownHead, bounds: ReadBounds): ReadResult {
  const lines = delta(bounds)
  return lines === null ? { kind: 'large' } : { kind: 'rows', ...led, siteId, lines }
}

export interface DeltaReader {
  /** Whether the rows of a cluster that are newer than a version of it are surely more than the bounds allow. Reads
   *  none of them. */
  isLarge(cluster: string, after: number, bounds: ReadBounds): boolean
  /** These rows; null when they are more. */
  lines(cluster: string, after: number, bounds: ReadBounds): RowLines | null
  finalize(): void
}

export function deltaReader(db: Database): DeltaReader {
  const delta = db.prepare<ChangeRow, { cluster: string; after: number }>(DELTA)
  const size = db.prepare<{ cells: number; bytes: number }, { cluster: string; after: number; cells: number }>(DELTA_SIZE)
  return {
    isLarge(cluster, after, bounds) {
      if (bounds === UNBOUNDED) return false
      const [cells, bytes] = [CELLS_OF_ROW * bounds.rows, CELLS_OF_ROW * bounds.bytes]
      const found = size.get({ cluster, after, cells: cells + 1 })
      return found !== null && (found.cells > cells || found.bytes > bytes)
    },
    lines: (cluster, after, bounds) => writeLines(deltaRows(delta.iterate({ cluster, after })), bounds),
    finalize() {
      delta.finalize()
      size.finalize()
    },
  }
}

/** Inside one read transaction (PL2). */
function readRows(statements: Statements, meta: Meta, cluster: string, ask: Ask, bounds: ReadBounds): ReadResult {
  const { delta, live, liveBytes } = statements
  const at = headOf(statements, meta, cluster)
  let lines: RowLines | null
  let keep: string | undefined
  if (ask.kind === 'pull' && ask.cursor !== null) {
    const { cursor } = ask
    const reason = refusalOf(statements, meta, cluster, cursor, at.dv)
    if (reason !== null) return { kind: 'refetch', reason }
    if (cursor.dv === at.dv) return { kind: 'nothing_new' }
    lines = delta.isLarge(cluster, cursor.dv, bounds) ? null : delta.lines(cluster, cursor.dv, bounds)
  } else {
    if (at.count > bounds.rows) return { kind: 'large' }
    if (bounds !== UNBOUNDED && (liveBytes.get({ cluster })?.bytes ?? 0) > bounds.bytes) return { kind: 'large' }
    const all = () => wholeRows(live.iterate({ cluster }))
    const differing = ask.kind === 'refetch' ? withoutEqualBuckets(all, ask.sums) : { rows: all() }
    keep = differing.keep
    lines = writeLines(differing.rows, bounds)
    if (keep === undefined && lines !== null)
      assert(lines.rows === at.count, `the shard has ${lines.rows} rows of ${cluster}; its log has ${at.count}`)
  }
  if (lines === null) return { kind: 'large' }
  const ordinal = statements.ordinal.get({ cluster })?.ordinal ?? 0
  const to = { dbId: meta.dbId, term: at.term, dv: at.dv, hash: at.hash }
  return { kind: 'rows', to, count: at.count, ordinal, siteId: meta.siteId, lines, ...(keep === undefined ? {} : { keep }) }
}

const headOf = ({ head }: Statements, { term }: Meta, cluster: string): HeadRow =>
  head.get({ cluster }) ?? { dv: 0, term, hash: EMPTY_HASH, count: 0 }

function refusalOf({ logged }: Statements, { dbId, origin }: Meta, cluster: string, cursor: Position, headDv: number) {
  const known = cursor.dv === 0 ? { term: cursor.term, hash: EMPTY_HASH } : logged.get({ cluster, dv: cursor.dv })
  return refetchReason(cursor, { dbId, origin, headDv, known })
}

/** PL1: null when a delta can answer the cursor. `known` is the log's entry at the cursor's dv, if that was ever a head
 *  of this cluster. */
export function refetchReason(
  cursor: Position,
  shard: { dbId: string; origin: ShardOrigin; headDv: number; known: Pick<HeadRow, 'term' | 'hash'> | null },
): RefetchReason | null {
  if (cursor.dbId !== shard.dbId) return ({ created: 'unknown', rebuilt: 'restored', compacted: 'compacted' } as const)[shard.origin]
  if (cursor.dv > shard.headDv) return 'restored'
  if (shard.known === null) return 'unknown'
  if (cursor.term !== shard.known.term) return 'forked'
  return cursor.hash === shard.known.hash ? null : 'diverged'
}

/** A new file needs no tombstones and no history: from version 1 and causal length 1 every later change wins, so that
 *  clusters with equal rows get equal lines, whatever became of each before. */
function* wholeRows(rows: Iterable<{ id: string; doc: string }>): Iterable<Row> {
  for (const { id, doc } of rows) yield { id, doc, colVersion: 1, cl: 1 }
}

/** Cells → rows. A row that was deleted and inserted again has both cells at one dv: the `doc` cell tells all. */
export function* deltaRows(changes: Iterable<ChangeRow>): Iterable<Row> {
  for (const { id, cell, colVersion, doc, cl } of changes) {
    if (cell === 'doc') {
      assert(doc !== null, `${id} has a clock but no row`)
      yield { id, doc, colVersion, cl: cl ?? 1 }
    } else if (colVersion % 2 === 0) {
      yield { id, doc: null, colVersion, cl: colVersion }
    }
  }
}

/** PL9: equal sums say that the agent has the same rows in that bucket. Read twice, in one order: once for the sums,
 *  then what differs. */
function withoutEqualBuckets(all: () => Iterable<Row>, sums: Uint8Array): { rows: Iterable<Row>; keep?: string } {
  const count = BUCKET_COUNTS.find((buckets) => buckets * SUM_BYTES === sums.length)
  assert(count !== undefined, 'sums must be checked on arrival')
  if (count === 0) return { rows: all() }
  const ours = new BucketSums(count)
  const buckets: number[] = []
  for (const { id, doc } of all()) buckets.push(ours.add(rowHash(id, doc ?? '')))
  const keep = equalBuckets(sums, ours.bytes())
  const differing = function* () {
    let index = 0
    for (const row of all()) if (keep?.[buckets[index++] ?? 0] !== '1') yield row
  }
  return { rows: differing(), ...(keep === undefined ? {} : { keep }) }
}
