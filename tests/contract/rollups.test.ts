// Counts that are kept with every change, over random histories: after each step they equal what all rows count, and
// what people are shown.
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createFleetViews } from '../../server/http/fleet-views.ts'
import { countDifferences, rebuildCounts, recount, wordDifferences } from '../../server/store/counts/rollup-recount.ts'
import type { FleetPage, ObjectFacts, Position } from '../../server/store/queries/fleet-queries.ts'
import type { Store } from '../../server/store/store.ts'
import type { Connections } from '../../server/store/store-db.ts'
import { keepBounds, RETENTION } from '../../server/store/upkeep/upkeep.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { CountHistory } from '../support/count-history.ts'
import { inLong } from '../support/extent.ts'
import { joinCluster } from '../support/store-fixtures.ts'
import { STORES } from '../support/stores.ts'

setDefaultTimeout(120_000) // PostgreSQL is started in one of them

describe.each(STORES)('counts on $name', (kind) => {
  const seeds = Array.from({ length: kind.name === 'SQLite' ? inLong(10, 4) : inLong(2, 1) }, (_, seed) => seed + 1)
  test.each(seeds)('RU1 RU2 what is kept equals what is counted and what is shown, after each step of history %d', async (seed) => {
    const place = await kind.place()
    const random = seededRandom(seed)
    const open = () => place.open({ random, clock: systemClock })
    const history = new CountHistory(await open(), random, open)
    const beside = await place.connect()
    const steps = kind.name === 'SQLite' ? 60 : 30
    let most = 0
    for (let step = 0; step < steps; step += 1) {
      await history.step()
      const at = `step ${step}, ${history.told}`
      expect([at, await differences(beside)]).toEqual([at, []])
      expect([at, await kept(beside)]).toEqual([at, await shown(history.current)])
      most = Math.max(most, (await recount(beside.reader)).rows().length)
    }
    expect(most).toBeGreaterThan(30)
    await beside.close()
    await history.current.close()
  })

  test('RU3 counts that are wrong are found, and made anew from the rows', async () => {
    const place = await kind.place()
    const random = seededRandom(3)
    const history = new CountHistory(await place.open(), random, () => place.open())
    const beside = await place.connect()
    while ((await recount(beside.reader)).rows().length < 30) await history.step()
    const { writer, engine } = beside
    const kept = () =>
      writer.selectFrom('rollups').selectAll().where('n', '!=', 0).orderBy('dimension').orderBy('key').orderBy('value').execute()
    const right = await kept()
    await writer.updateTable('rollups').set({ n: 77 }).where('dimension', '=', 'object').execute()
    await writer.deleteFrom('rollups').where('dimension', '=', 'image').execute()
    await writer.insertInto('rollups').values({ dimension: 'label', key: 'no=where', value: 'clusters', n: 1 }).execute()
    await writer
      .updateTable('desired')
      .set({ sync: 'Synced', health: 'Suspended', digest: 'other' })
      .where('sync', 'is not', null)
      .execute()
    expect((await differences(beside)).length).toBeGreaterThan(4)
    await writer.transaction().execute((trx) => rebuildCounts(trx, engine))
    expect(await differences(beside)).toEqual([])
    expect(await kept()).toEqual(right)
    await beside.close()
    await history.current.close()
  })

  test('RU3 a server that is told to counts everything anew when it starts', async () => {
    const place = await kind.place()
    const store = await place.open()
    const id = await joinCluster(store, 'a', { env: 'prod' })
    await store.upsertStatus(id, [{ kind: 'object', key: 'p/a//Pod/n/x', rev: 1, doc: {} }], { complete: false, nowMs: 1 })
    await store.close()
    const beside = await place.connect()
    const counted = async () => [
      await beside.reader.selectFrom('rollups').select(['key', 'n']).where('n', '!=', 0).orderBy('dimension').orderBy('key').execute(),
      await beside.reader.selectFrom('names').select('refs').execute(),
      await beside.reader.selectFrom('states').select('refs').execute(),
      await beside.reader.selectFrom('clusters').select('row_count').execute(),
    ]
    const right = await counted()
    await beside.writer.updateTable('rollups').set({ n: 3 }).execute()
    await beside.writer.updateTable('names').set({ refs: 5 }).execute()
    await beside.writer.updateTable('states').set({ refs: 5 }).execute()
    await beside.writer.updateTable('clusters').set({ row_count: 5 }).execute()
    await (await place.open()).close()
    expect(await counted()).not.toEqual(right)
    await (await place.open({ recount: true })).close()
    expect(await counted()).toEqual(right)
    await beside.close()
  })

  test('RU1 a revoked cluster counts as such whatever else its spec says, and a variable that is called so revokes nothing', async () => {
    const store = await (await kind.place()).open()
    const specs: Record<string, object> = {
      a: { revoked: true },
      b: { config: { region: 'eu' }, revoked: true, overrides: [{ service: 'web', config: { revoked: false } }] },
      c: { config: { nested: { revoked: true } }, revoked: false },
      d: { revoked: false },
    }
    for (const [digit, spec] of Object.entries(specs)) {
      await joinCluster(store, digit)
      await store.applyResource(
        { kind: 'Cluster', project: '', name: `cluster-${digit}` },
        { labels: {}, spec: canonicalJson(spec), nowMs: 2 },
      )
    }
    expect(await store.rollups.liveness(3, () => 1_000)).toEqual({ Online: 0, Offline: 0, NeverSeen: 2, Revoked: 2 })
    await store.close()
  })

  test('RU1 what came down to none is forgotten with the next upkeep', async () => {
    const place = await kind.place()
    const store = await place.open()
    const beside = await place.connect()
    const kept = () => beside.reader.selectFrom('rollups').select(['key', 'n']).where('dimension', '=', 'label').orderBy('key').execute()
    await joinCluster(store, 'a', { env: 'prod' })
    const key = { kind: 'Cluster', project: '', name: 'cluster-a' } as const
    await store.applyResource(key, { labels: { env: 'dev' }, spec: '{"revoked":false}', nowMs: 2 })
    expect(await kept()).toEqual([
      { key: 'env=dev', n: 1 },
      { key: 'env=prod', n: 0 },
    ])
    expect((await store.rollups.page({ dimension: 'label', limit: 10 })).items.map((item) => item.key)).toEqual(['env=dev'])
    const keep = keepBounds(RETENTION, 1)
    expect(await store.upkeep.slice('counts', keep, null)).toEqual({ removed: 1, next: null })
    expect(await store.upkeep.slice('counts', keep, null)).toEqual({ removed: 0, next: null })
    expect(await kept()).toEqual([{ key: 'env=dev', n: 1 }])
    await beside.close()
    await store.close()
  })

  test('RU3 a store whose counts are of another version counts anew when it is opened', async () => {
    const place = await kind.place()
    const store = await place.open()
    await joinCluster(store, 'a', { env: 'prod' })
    await store.close()
    const before = await place.connect()
    const kept = await before.reader.selectFrom('rollups').selectAll().execute()
    expect(kept).toHaveLength(2)
    await before.writer.deleteFrom('rollups').execute()
    await before.writer.updateTable('meta').set({ value: '0' }).where('key', '=', 'counts').execute()
    await before.close()
    const after = await place.connect()
    expect(await after.reader.selectFrom('rollups').selectAll().execute()).toEqual(kept)
    await after.close()
  })
})

async function differences({ reader }: Connections): Promise<unknown[]> {
  const found: unknown[] = []
  for await (const difference of countDifferences(reader)) found.push(difference)
  for await (const difference of wordDifferences(reader)) found.push(difference)
  return found
}

const COMPARED = ['object', 'placement', 'service', 'service_object', 'cluster'] as const

async function kept({ reader }: Connections): Promise<Record<string, number>> {
  const rows = await reader.selectFrom('rollups').selectAll().where('dimension', 'in', COMPARED).where('n', '!=', 0).execute()
  return Object.fromEntries(rows.map(({ dimension, key, value, n }) => [`${dimension} ${key} ${value}`, n]))
}

/** Counted from what the lists show. */
async function shown(store: Store): Promise<Record<string, number>> {
  const views = createFleetViews(store, systemClock, { pendingSinceMs: async () => null })
  const counts: Record<string, number> = {}
  const count = (key: string) => {
    counts[key] = (counts[key] ?? 0) + 1
  }
  for (const cluster of await store.listClusters()) {
    count('cluster  clusters')
    for (const { project, service, sync, health } of await views.placementsInCluster(cluster)) {
      count(`placement  ${sync}/${health}`)
      count(`service ${project}/${service} ${sync}/${health}`)
    }
  }
  for (let after: Position | null | undefined; after !== null; ) {
    const page: FleetPage<ObjectFacts> = await store.queries.answer({ kind: 'objects', query: { sort: 'cluster', limit: 500, after } })
    for (const { id, status } of page.items) {
      count(`object  ${status.sync}/${status.health}`)
      count(`service_object ${id.project}/${id.service} ${status.sync}/${status.health}`)
    }
    after = page.next
  }
  return counts
}
