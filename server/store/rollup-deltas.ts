// What one write transaction adds to and takes from the counts: summed, and written once at its end, in the order of their keys.
import type { Transaction } from 'kysely'
import { type Bulk, runBulk } from './bulk.ts'
import type { Engine } from './store-db.ts'
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

const COUNT: Bulk = {
  before: 'insert into rollups (dimension, key, value, n) values',
  row: '(?, ?, ?, ?)',
  after: 'on conflict (dimension, key, value) do update set n = rollups.n + excluded.n',
}
/** What is none any more has no row: counts of images and labels that came and went would grow for ever. */
const FORGET: Bulk = { before: 'delete from rollups where n = 0 and (dimension, key, value) in (values', row: '(?, ?, ?)', after: ')' }

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

  /** In the order of the table. */
  rows(): Array<Tables['rollups']> {
    return [...this.sums.entries()]
      .filter(([, { n }]) => n !== 0)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(
        ([
          ,
          {
            fact: [dimension, key, value],
            n,
          },
        ]) => ({ dimension, key, value, n }),
      )
  }

  /** In the order of the table, so that its pages are visited once. */
  async write(trx: Transaction<Tables>, engine: Engine): Promise<void> {
    const rows = this.rows()
    await runBulk(
      trx,
      engine,
      COUNT,
      rows.map(({ dimension, key, value, n }) => [dimension, key, value, n]),
    )
    const fewer = rows.flatMap(({ dimension, key, value, n }) => (n < 0 ? [[dimension, key, value]] : []))
    await runBulk(trx, engine, FORGET, fewer)
  }
}
