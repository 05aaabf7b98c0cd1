// The chart of the fleet on both databases: it says of each cluster what the rows of the fleet say.
import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { fillPostgres, fillSqlite } from '../../scripts/benchmarks/store-fleet.ts'
import type { Store } from '../../server/store/store.ts'
import type { ChartCluster } from '../../shared/model/chart.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { joinCluster } from '../support/store-fixtures.ts'
import { openIn, STORES } from '../support/stores.ts'

setDefaultTimeout(60_000)
const delta = { complete: false, nowMs: 1_000 }
const row = serviceRowSchema.parse({ commit: 'c', digest: 'one', count: 1, sync: syncOptionsSchema.parse({}) })
const open: Store[] = []
afterEach(async () => {
  for (const store of open.splice(0)) await store.close()
})

const put = (store: Store, clusterId: ClusterId, project: string, service: string) =>
  store.publish([{ clusterId, project, service, doc: row, setSha: null, placedBy: '{}' }])
const report = (store: Store, clusterId: ClusterId, rev: number, service: string, health: string) => {
  const point = { commit: 'c', digest: 'one', atMs: 1 }
  const doc = {
    sync: 'Synced',
    health,
    reason: health,
    message: '',
    sinceMs: 1,
    received: point,
    applied: point,
    objectCount: 1,
    healthyCount: 1,
  }
  return store.upsertStatus(clusterId, [{ kind: 'service', key: service, rev, doc: doc as never }], delta)
}
async function chart(store: Store, query = {}) {
  const all = { limit: 100, suspended: [], nowMs: 1_000, ...query }
  const { items, ...rest } = await store.queries.answer({ kind: 'chart', query: all })
  return { ...rest, items: JSON.parse(items) as ChartCluster[] }
}

describe.each(STORES)('chart on $name', (kind) => {
  test('each cluster has the worst words of its services, their number, and the value of the label', async () => {
    const store = await openIn(kind)
    open.push(store)
    const [a, b] = [await joinCluster(store, 'a', { region: 'north' }), await joinCluster(store, 'b', { region: 'south' })]
    await joinCluster(store, 'c', {})
    await put(store, a, 'p', 'web')
    await put(store, a, 'p', 'api')
    await put(store, b, 'q', 'web')
    await report(store, a, 1, 'p/web', 'Healthy')
    await report(store, a, 2, 'p/api', 'Degraded')
    await report(store, b, 1, 'q/web', 'Healthy')

    const { items, labels } = await chart(store, { by: 'region' })
    expect(items.map(({ group, sync, health, services, bad }) => [group, sync, health, services, bad])).toEqual([
      ['north', 'Synced', 'Degraded', 2, 1],
      ['south', 'Synced', 'Healthy', 1, 0],
      [null, null, null, 0, 0],
    ])
    expect(labels).toEqual([{ key: 'region', clusters: 2, values: 2 }])
    expect((await chart(store, { clusters: [b] })).items.map(({ id }) => id)).toEqual([b])
    const byField = await chart(store, { by: 'region', columns: true })
    expect(byField.items as unknown).toMatchObject({ group: ['north', 'south', null], services: [2, 1, 0] })
  })

  test('a chart after changes says what a first one would say', async () => {
    const store = await openIn(kind)
    open.push(store)
    const names = ['a', 'b', 'c']
    const ids = new Map<string, ClusterId>()
    for (const name of names) ids.set(name, await joinCluster(store, name, {}))
    const said = async () => (await chart(store)).items.map(({ name, health, services, bad, held }) => [name, health, services, bad, held])
    const [a, b, c] = names.map((name) => ids.get(name) as ClusterId) as [ClusterId, ClusterId, ClusterId]
    expect(await said()).toEqual(names.map((name) => [`cluster-${name}`, null, 0, 0, false]))
    await put(store, a, 'p', 'web')
    await put(store, b, 'p', 'web')
    expect((await said()).map(([, , services]) => services)).toEqual([1, 1, 0])
    await report(store, a, 1, 'p/web', 'Degraded')
    await report(store, b, 1, 'p/web', 'Healthy')
    expect((await said()).map(([, health, , bad]) => [health, bad])).toEqual([
      ['Degraded', 1],
      ['Healthy', 0],
      [null, 0],
    ])
    const hold = { issues: [{ code: 'held', message: 'docking', sinceMs: 1 }] }
    await store.upsertStatus(c, [{ kind: 'cluster', key: 'cluster', rev: 1, doc: hold as never }], delta)
    await report(store, a, 2, 'p/web', 'Healthy')
    expect((await said()).map(([name, health, , , held]) => [name, health, held])).toEqual([
      ['cluster-a', 'Healthy', false],
      ['cluster-b', 'Healthy', false],
      ['cluster-c', null, true],
    ])
    await store.publish([{ clusterId: a, project: 'p', service: 'web', doc: null, setSha: null, placedBy: '{}' }])
    await store.upsertStatus(a, [{ kind: 'service', key: 'p/web', rev: 3, doc: null as never }], delta)
    expect((await said())[0]?.slice(1)).toEqual([null, 0, 0, false])
  })

  test('who may read some projects or some clusters sees only those', async () => {
    const store = await openIn(kind)
    open.push(store)
    const a = await joinCluster(store, 'a', { region: 'north' })
    await joinCluster(store, 'b', { region: 'south' })
    await put(store, a, 'p', 'web')
    await put(store, a, 'q', 'secret')
    const north = { matchLabels: { region: 'north' } }
    const { items, labels } = await chart(store, { visible: [north], projects: ['p'] })
    expect(items.map(({ id, services }) => [id, services])).toEqual([[a, 1]])
    expect(labels.map(({ values }) => values)).toEqual([1])
    expect((await chart(store, { projects: [] })).items.map(({ services }) => services)).toEqual([0, 0])
  })

  test('pages follow each other by name', async () => {
    const store = await openIn(kind)
    open.push(store)
    for (const name of ['a', 'b', 'c']) await joinCluster(store, name, {})
    const first = await chart(store, { limit: 2 })
    const rest = await chart(store, { limit: 2, after: first.next ?? '' })
    expect([first.items.length, rest.items.length, rest.next]).toEqual([2, 1, null])
  })

  test('a fleet of more clusters than a page of a list comes in one answer', async () => {
    const place = await kind.place()
    await (kind.name === 'SQLite' ? fillSqlite : fillPostgres)(place.at, { clusters: 620, objects: 2, nowMs: 1_790_000_000_000 })
    const store = await place.open()
    open.push(store)
    const { items, next } = await chart(store, { by: 'region', limit: 10_000 })
    expect([items.length, next]).toEqual([620, null])
    expect(new Set(items.map(({ services }) => services))).toEqual(new Set([20]))
  })
})
