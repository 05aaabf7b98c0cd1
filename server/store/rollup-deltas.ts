// What one write transaction adds to and takes from the counts: summed, and written once at its end, in the order of their keys.
import { sql, type Transaction } from 'kysely'
import type { Tables } from './tables.ts'

export const ROLLUP_DIMENSIONS = [
  'placement',
  'service',
  'label',
  'object',
  'service_object',
  'image',
  'drift_hour',
  'version',
  'cluster',
] as const
export type RollupDimension = (typeof ROLLUP_DIMENSIONS)[number]

/** One thing that is counted once under a key. */
export type RollupFact = readonly [dimension: RollupDimension, key: string, value: string]

/** Rows in one statement: 4 parameters each, databases take at least 32,766. */
const BATCH_ROWS = 500

interface Sum {
  fact: RollupFact
  n: number
}

export class RollupDeltas {
  private readonly sums = new Map<string, Sum>()

  /** `n`: of how many equal things these are the facts; negative: which are no more. */
  add(facts: Iterable<RollupFact>, n: number): void {
    for (const fact of facts) {
      const key = `${fact[0]}\n${fact[1]}\n${fact[2]}`
      const held = this.sums.get(key)
      if (held === undefined) this.sums.set(key, { fact, n })
      else held.n += n
    }
  }

  async write(trx: Transaction<Tables>): Promise<void> {
    const sums = [...this.sums.entries()]
      .filter(([, { n }]) => n !== 0)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, sum]) => sum)
    for (let start = 0; start < sums.length; start += BATCH_ROWS) await writeBatch(trx, sums.slice(start, start + BATCH_ROWS))
  }
}

async function writeBatch(trx: Transaction<Tables>, sums: readonly Sum[]): Promise<void> {
  const counted = await trx
    .insertInto('rollups')
    .values(sums.map(({ fact: [dimension, key, value], n }) => ({ dimension, key, value, n })))
    .onConflict((on) => on.columns(['dimension', 'key', 'value']).doUpdateSet({ n: sql<number>`rollups.n + excluded.n` }))
    .returning(['dimension', 'key', 'value', 'n'])
    .execute()
  // What is none any more has no row: counts of images and labels that came and went would grow for ever.
  const none = counted.filter(({ n }) => n === 0)
  if (none.length > 0) await trx.deleteFrom('rollups').where(isOneOf(none)).execute()
}

const isOneOf = (rows: ReadonlyArray<Pick<Tables['rollups'], 'dimension' | 'key' | 'value'>>) =>
  sql<boolean>`(dimension, key, value) in (values ${sql.join(rows.map(({ dimension, key, value }) => sql`(${dimension}, ${key}, ${value})`))})`
