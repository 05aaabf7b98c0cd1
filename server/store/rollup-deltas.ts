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

/** Rows in one statement. */
const BATCH_ROWS = 500

export class RollupDeltas {
  private readonly sums = new Map<string, { fact: RollupFact; n: number }>()

  add(facts: Iterable<RollupFact>, n: 1 | -1): void {
    for (const fact of facts) {
      const key = fact.join('\n')
      const held = this.sums.get(key)
      if (held === undefined) this.sums.set(key, { fact, n })
      else held.n += n
    }
  }

  async write(trx: Transaction<Tables>): Promise<void> {
    const rows = [...this.sums.entries()]
      .filter(([, { n }]) => n !== 0)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { fact, n }]) => ({ dimension: fact[0], key: fact[1], value: fact[2], n }))
    for (let start = 0; start < rows.length; start += BATCH_ROWS)
      await trx
        .insertInto('rollups')
        .values(rows.slice(start, start + BATCH_ROWS))
        .onConflict((on) => on.columns(['dimension', 'key', 'value']).doUpdateSet({ n: sql<number>`rollups.n + excluded.n` }))
        .execute()
    if (rows.some(({ n }) => n < 0)) await trx.deleteFrom('rollups').where('n', '=', 0).execute()
  }
}
