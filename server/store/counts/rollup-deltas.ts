// The changes of one write transaction to the counts: summed, and written once at its end, in the order of their keys.
import type { Transaction } from 'kysely'
import { type Bulk, runBulk } from '../bulk.ts'
import type { Engine } from '../engines/engine.ts'
import type { Tables } from '../tables.ts'
import type { RollupFact } from './rollup-dimensions.ts'

/**
 * A count of zero keeps its row for now: most return, and checking each with every change costs a third of counting.
 * Retention removes them.
 */
const COUNT: Bulk = {
  before: 'insert into rollups (dimension, key, value, n) values',
  row: '(?, ?, ?, ?)',
  after: 'on conflict (dimension, key, value) do update set n = rollups.n + excluded.n',
  types: ['text', 'text', 'text', 'bigint'],
}

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

  rows(): Array<Tables['rollups']> {
    const rows: Array<Tables['rollups']> = []
    for (const { fact, n } of this.sums.values()) if (n !== 0) rows.push({ dimension: fact[0], key: fact[1], value: fact[2], n })
    return rows
  }

  async write(trx: Transaction<Tables>, engine: Engine): Promise<void> {
    const rows = this.rows().map(({ dimension, key, value, n }) => [dimension, key, value, n])
    await runBulk(trx, engine, COUNT, rows)
  }
}
