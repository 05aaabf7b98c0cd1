// The report of a full check of a shard file: whether it is whole, and how much of it is history. Reads on a connection
// of its own, so it can run in a Worker.
import { type Database, isDamage, openSqlite, readTransaction } from '../../shared/adapters/sqlite.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { findDamage } from './shard-file.ts'

export interface ShardReport {
  /** Null if everything fits (CU5). */
  damage: string | null
  /** Live rows of all clusters. */
  rows: number
  /** Keys whose row is deleted. */
  tombstones: number
  /** Versions that were heads once. */
  versions: number
}

/** Throws when it cannot look, which says nothing about the file. */
export function examineShard(path: string): ShardReport {
  try {
    const db = openSqlite(path, { readonly: true })
    try {
      return readTransaction(db, () => {
        const damage = findDamage(db)
        return damage === null ? { damage, ...countRows(db) } : damaged(damage)
      })
    } finally {
      db.close()
    }
  } catch (error) {
    if (isDamage(error)) return damaged(describeError(error))
    throw error
  }
}

const damaged = (damage: string): ShardReport => ({ damage, rows: 0, tombstones: 0, versions: 0 })

function countRows(db: Database) {
  const count = (table: string) => db.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${table}`).get()?.n ?? 0
  const rows = count('desired')
  return { rows, tombstones: count('desired__crsql_pks') - rows, versions: count('tx_log') }
}

/** RP3: past half of the rows… */
const TOMBSTONES_SHARE = 0.5
/** …and this many, or a small shard would be rewritten for every other delete, */
export const TOMBSTONES_MIN = 1_000
/** or past this many whatever the rows are. */
export const TOMBSTONES_MAX = 50_000
/** The log has an entry for each revision that a cluster ever had. */
export const VERSIONS_MAX = 250_000

export const compactionDue = ({ rows, tombstones, versions }: Omit<ShardReport, 'damage'>): boolean =>
  tombstones > TOMBSTONES_MAX || versions > VERSIONS_MAX || (tombstones > TOMBSTONES_MIN && tombstones > rows * TOMBSTONES_SHARE)
