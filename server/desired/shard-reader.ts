// Reads of one shard file on a plain read-only connection: no extension, no lock that a writer would feel. Everything here could run in a Worker.

import { openSqlite, readTransaction } from '../../shared/adapters/sqlite.ts'
import type { Position } from '../../shared/crdt/position.ts'
import { EMPTY_HASH } from '../../shared/crdt/row-hash.ts'
import type { RefetchReason, Row } from '../../shared/protocol/frames.ts'
import { assert } from '../../shared/runtime/assert.ts'

export type ReadResult =
  | { kind: 'rows'; to: Position; count: number; ordinal: number; rows: Row[] }
  | { kind: 'nothing_new' }
  | { kind: 'refetch'; reason: RefetchReason }

export interface ShardReader {
  read(clusterId: string, cursor: Position | null): ReadResult
  close(): void
}

/** How the file came to be, and therefore what an agent with another dbId has met. */
export type ShardOrigin = 'created' | 'rebuilt'

interface ChangeRow {
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

// tx_log leads, so that the cost is that of what changed in this cluster, whatever its neighbours in the shard wrote meanwhile. A deleted row has
// no base row, hence the LEFT JOIN; `-1` is cr-sqlite's cell for the whole row and its column version the causal length.
const DELTA = `
SELECT p.id AS id, c.col_name AS cell, c.col_version AS colVersion, d.doc AS doc,
  (SELECT s.col_version FROM desired__crsql_clock s WHERE s.key = c.key AND s.col_name = '-1') AS cl
FROM tx_log t
CROSS JOIN desired__crsql_clock c ON c.db_version = t.dv
CROSS JOIN desired__crsql_pks p ON p.__crsql_key = c.key AND p.cluster = t.cluster
LEFT JOIN desired d ON d.cluster = p.cluster AND d.id = p.id
WHERE t.cluster = $cluster AND t.dv > $after
ORDER BY t.dv, c.seq, p.id`

// A new file needs no tombstones: a row that is deleted again, or inserted again, has a higher causal length than none.
const LIVE = `
SELECT d.id AS id, c.col_name AS cell, c.col_version AS colVersion, d.doc AS doc,
  (SELECT s.col_version FROM desired__crsql_clock s WHERE s.key = c.key AND s.col_name = '-1') AS cl
FROM desired d
CROSS JOIN desired__crsql_pks p ON p.cluster = d.cluster AND p.id = d.id
CROSS JOIN desired__crsql_clock c ON c.key = p.__crsql_key AND c.col_name = 'doc'
WHERE d.cluster = $cluster
ORDER BY d.id`

export function openShardReader(path: string): ShardReader {
  const db = openSqlite(path, { readonly: true })
  const meta = db.query<{ dbId: string; term: number; origin: ShardOrigin }, []>('SELECT db_id AS dbId, term, origin FROM meta').get()
  assert(meta, `the shard file ${path} has no meta row`)
  const head = db.query<HeadRow, { cluster: string }>(
    'SELECT dv, term, hash, count FROM tx_log WHERE cluster = $cluster ORDER BY dv DESC LIMIT 1',
  )
  const logged = db.query<HeadRow, { cluster: string; dv: number }>(
    'SELECT dv, term, hash, count FROM tx_log WHERE cluster = $cluster AND dv = $dv',
  )
  const delta = db.query<ChangeRow, { cluster: string; after: number }>(DELTA)
  const live = db.query<ChangeRow, { cluster: string }>(LIVE)
  const ordinalOf = db.query<{ ordinal: number }, { cluster: string }>('SELECT ordinal FROM cluster_ordinal WHERE cluster = $cluster')

  return {
    read: (cluster, cursor) =>
      readTransaction(db, () => {
        const at = head.get({ cluster }) ?? { dv: 0, term: meta.term, hash: EMPTY_HASH, count: 0 }
        const to = { dbId: meta.dbId, term: at.term, dv: at.dv, hash: at.hash }
        const ordinal = ordinalOf.get({ cluster })?.ordinal ?? 0
        if (cursor === null) {
          const rows = pageRows(live.all({ cluster }))
          assert(rows.length === at.count, `the shard holds ${rows.length} rows of ${cluster}, its log says ${at.count}`)
          return { kind: 'rows', to, count: at.count, ordinal, rows }
        }
        const known = cursor.dv === 0 ? { dv: 0, term: cursor.term, hash: EMPTY_HASH, count: 0 } : logged.get({ cluster, dv: cursor.dv })
        const reason = refetchReason(cursor, { dbId: meta.dbId, origin: meta.origin, headDv: at.dv, known })
        if (reason !== null) return { kind: 'refetch', reason }
        if (cursor.dv === at.dv) return { kind: 'nothing_new' }
        return { kind: 'rows', to, count: at.count, ordinal, rows: pageRows(delta.all({ cluster, after: cursor.dv })) }
      }),
    close() {
      for (const statement of [head, logged, delta, live, ordinalOf]) statement.finalize()
      db.close()
    },
  }
}

/** PL1: null when a delta can answer the cursor. `known` is the log's entry at the cursor's dv, if that was ever a head of this cluster. */
export function refetchReason(
  cursor: Position,
  shard: { dbId: string; origin: ShardOrigin; headDv: number; known: Pick<HeadRow, 'term' | 'hash'> | null },
): RefetchReason | null {
  if (cursor.dbId !== shard.dbId) return shard.origin === 'rebuilt' ? 'restored' : 'unknown'
  if (cursor.dv > shard.headDv) return 'restored'
  if (shard.known === null) return 'unknown'
  if (cursor.term !== shard.known.term) return 'forked'
  return cursor.hash === shard.known.hash ? null : 'diverged'
}

/** Cells → rows. A row that was deleted and inserted again has both cells at one dv: the `doc` cell tells all. */
function pageRows(changes: readonly ChangeRow[]): Row[] {
  const rows: Row[] = []
  for (const { id, cell, colVersion, doc, cl } of changes) {
    if (cell === 'doc') {
      assert(doc !== null, `${id} has a clock but no row`)
      rows.push({ id, doc, colVersion, cl: cl ?? 1 })
    } else if (colVersion % 2 === 0) {
      rows.push({ id, doc: null, colVersion, cl: colVersion })
    }
  }
  return rows
}
