// The chart of the fleet on both databases: it says of each cluster what the rows of the fleet say.
import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { fillPostgres, fillSqlite } from '../../scripts/benchmarks/store-fleet.ts'
import type { Store } from '../../server/store/store.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import type { ClusterId } from '../../shared/model/ids.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
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
const chart = (store: Store, query = {}) => store.queries.answer({ kind: 'chart', query: { limit: 100, ...query } })

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
    expect(items.map(({ group, words, services, bad }) => [group, words, services, bad])).toEqual([
      ['north', { sync: 'Synced', health: 'Degraded' }, 2, 1],
      ['south', { sync: 'Synced', health: 'Healthy' }, 1, 0],
      [null, null, 0, 0],
    ])
    expect(labels).toEqual([{ key: 'region', clusters: 2, values: 2 }])
    expect((await chart(store, { clusters: [b] })).items.map(({ clusterId }) => clusterId)).toEqual([b])
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
    expect(items.map(({ clusterId, services }) => [clusterId, services])).toEqual([[a, 1]])
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
