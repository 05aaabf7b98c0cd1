// Fleet queries where the databases' own numbers are far greater than what they stand for (identities of PostgreSQL
// never come back), and where very many drifts are open.
import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { sql } from 'kysely'
import { fillPostgres, fillSqlite } from '../../scripts/benchmarks/store-fleet.ts'
import type { ObjectFilter, ObjectQuery, Position } from '../../server/store/queries/fleet-queries.ts'
import { FleetQueryEngine } from '../../server/store/queries/fleet-query-engine.ts'
import { SQLITE_COSTS } from '../../server/store/queries/fleet-query-plan.ts'
import type { Connections } from '../../server/store/store-db.ts'
import { CLUSTER_SORTS, OBJECT_SORTS, PLACEMENT_SORTS } from '../../shared/model/views.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { NaiveFleet } from '../support/naive-fleet.ts'
import { STORES, type StoreKind } from '../support/stores.ts'

setDefaultTimeout(60_000)
const NOW_MS = 1_790_000_000_000
const SHAPE = { clusters: 20, objects: 100, nowMs: NOW_MS, seed: 3, tickMs: 1 }
const WALKED = { ...SQLITE_COSTS, collectMax: -1, walkMax: 300, placementsCollect: 0, placementsWalk: 50 }

let connections: Connections | null = null
afterEach(async () => {
  await connections?.close()
  connections = null
})

async function fleet(kind: StoreKind) {
  const place = await kind.place()
  await (kind.name === 'SQLite' ? fillSqlite(place.at, SHAPE) : fillPostgres(place.at, SHAPE))
  connections = await place.connect()
  return { connections, naive: new NaiveFleet(SHAPE) }
}

/** Half of everything gets a number as after years; the order of numbers stays. */
async function renumber({ writer }: Connections): Promise<void> {
  const [far, farCluster] = [sql.lit(3_000_000_000), sql.lit(5_000_000)]
  for (const [table, column, own] of [
    ['names', 'name_id', 'id'],
    ['states', 'state_id', 'id'],
  ] as const) {
    const { rows } = await sql<{ middle: number }>`select max(${sql.ref(own)}) / 2 as middle from ${sql.table(table)}`.execute(writer)
    const middle = sql.lit(Math.floor(Number(rows[0]?.middle)))
    await sql`update ${sql.table(table)} set id = id + ${far} where id > ${middle}`.execute(writer)
    await sql`update status_rows set ${sql.ref(column)} = ${sql.ref(column)} + ${far} where ${sql.ref(column)} > ${middle}`.execute(writer)
  }
  await sql`update clusters set no = no + ${farCluster} where no > 10`.execute(writer)
  await sql`update status_rows set cluster_no = cluster_no + ${farCluster} where cluster_no > 10`.execute(writer)
}

async function all<T>(ask: (after: Position | undefined) => Promise<{ items: T[]; next: Position | null }>): Promise<T[]> {
  const found: T[] = []
  for (let after: Position | null | undefined; after !== null; ) {
    const page = await ask(after)
    found.push(...page.items)
    after = page.next
  }
  return found
}

async function objects(engine: FleetQueryEngine, query: Omit<ObjectQuery, 'limit'>) {
  const items = await all((after) => engine.answer({ kind: 'objects', query: { ...query, limit: 30, after } }))
  return items.map(({ cluster, id, ref, drift }) => ({
    key: `${cluster.name} ${id.project}/${id.service}/${ref.group}/${ref.kind}/${ref.namespace}/${ref.name}`,
    hasDrift: drift !== null,
  }))
}

describe.each(STORES)('$name', (kind) => {
  test.each([
    ['as it comes', SQLITE_COSTS],
    ['walked in small steps', WALKED],
  ])('QY1 QY2 numbers of clusters, names and states may be of any size, %s', async (_, costs) => {
    const { connections, naive } = await fleet(kind)
    const asPlaced = async (engine: FleetQueryEngine) => {
      const lists: unknown[] = []
      for (const sort of PLACEMENT_SORTS)
        lists.push(await all((after) => engine.answer({ kind: 'placements', query: { sort, limit: 30, after } })))
      for (const sort of CLUSTER_SORTS)
        lists.push(await all((after) => engine.answer({ kind: 'clusters', query: { sort, limit: 7, after, nowMs: NOW_MS } })))
      return lists
    }
    const before = await asPlaced(new FleetQueryEngine(connections.reader, connections.engine, systemClock, costs))
    await renumber(connections)
    const engine = new FleetQueryEngine(connections.reader, connections.engine, systemClock, costs)
    await engine.answer({ kind: 'warm' })
    const last = naive.objects.at(-1)
    const filters: ObjectFilter[] = [
      {},
      { kind: 'deployment' },
      { health: ['Degraded', 'Progressing'] },
      { cluster: last?.cluster, service: last?.service },
      { labels: { matchLabels: { env: 'prod' } } },
      { words: ['e', '1'] },
      { drift: 'open' },
    ]
    for (const filter of filters)
      for (const sort of OBJECT_SORTS) {
        const keys = (await objects(engine, { ...filter, sort })).map(({ key }) => key)
        expect({ filter, sort, keys }).toEqual({ filter, sort, keys: naive.objectsOf({ ...filter, sort }) })
      }
    expect(await asPlaced(engine)).toEqual(before)
  })

  test.each([
    ['as it comes', { ...SQLITE_COSTS, driftsMax: 3 }],
    ['walked in small steps', { ...WALKED, driftsMax: 3 }],
  ])('QY1 QY2 of more open drifts than are held at once none is left out, %s', async (_, costs) => {
    const { connections, naive } = await fleet(kind)
    const engine = new FleetQueryEngine(connections.reader, connections.engine, systemClock, costs)
    for (const filter of [{}, { kind: 'deployment' }, { health: ['Healthy' as const] }, { words: ['e'] }])
      for (const sort of OBJECT_SORTS) {
        const query = { ...filter, sort, drift: 'open' as const }
        const found = await objects(engine, query)
        const expected = naive.objectsOf(query).map((key) => ({ key, hasDrift: true }))
        expect({ query, found }).toEqual({ query, found: expected })
        if (Object.keys(filter).length === 0) expect(found.length).toBeGreaterThan(3)
      }
  })
})
