// The port to counts: pages, the greatest, who is online, how old drift is.
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { livenessOf, onlineWithinMs } from '../../server/fleet/liveness.ts'
import type { StatusWrite } from '../../server/fleet/records.ts'
import { fleetCounts } from '../../server/http/fleet-counts.ts'
import type { Store } from '../../server/store/store.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { FLEET, syncOptionsSchema } from '../../shared/model/resources.ts'
import { LIVENESS_WORDS } from '../../shared/model/views.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { joinCluster } from '../support/store-fixtures.ts'
import { openIn, STORES } from '../support/stores.ts'

setDefaultTimeout(60_000) // PostgreSQL is started in one of them

const NOW = 1_795_000_123_456
const HOUR = 3_600_000
const at = { nowMs: NOW, within: onlineWithinMs }
const delta = { complete: false, nowMs: NOW }
const row = serviceRowSchema.parse({ commit: 'c', digest: 'one', count: 1, sync: syncOptionsSchema.parse({}) })

const place = (store: Store, clusterId: ClusterId, service: string) =>
  store.publish([{ clusterId, project: 'p', service, doc: row, setSha: null, placedBy: '{}' }])
const said = (rev: number, name: string, images: string[]): StatusWrite => ({
  kind: 'object',
  key: `p/a//Pod/n/${name}`,
  rev,
  doc: { sync: 'Synced', health: 'Healthy', reason: '', message: '', sinceMs: 1, images },
})
const drift = (rev: number, detectedMs: number, action: string): StatusWrite => ({
  kind: 'drift',
  key: `p/a//Pod/n/d${rev}`,
  rev,
  doc: { paths: ['/spec'], manager: 'kubectl', action, detectedMs, count: 1 },
})

describe.each(STORES)('counts on $name', (kind) => {
  test('RU4 keys come in pages in their order, narrowed by how they begin, or those with the most and what the rest has together', async () => {
    const store = await openIn(kind)
    const a = await joinCluster(store, 'a', { env: 'prod', tier: '1' })
    const b = await joinCluster(store, 'b', { env: 'dev' })
    await joinCluster(store, 'c', { env: 'prod' })
    for (const service of ['one', 'two', 'three']) await place(store, a, service)
    await place(store, b, 'one')
    const images = [['app:1', 'base:1'], ['app:1'], ['app:1', 'app:2'], ['zoo:1']]
    await store.upsertStatus(
      a,
      images.map((some, index) => said(index + 1, `pod-${index}`, some)),
      delta,
    )
    const ask = (query: Partial<Parameters<typeof fleetCounts>[1]> & Pick<Parameters<typeof fleetCounts>[1], 'by'>) =>
      fleetCounts(store.rollups, { of: 'placements', limit: 100, ...query }, at)

    const first = await ask({ by: 'label', limit: 2 })
    expect(first.items).toEqual([
      { key: 'env=dev', count: 1, parts: { 'Unknown/Unknown': 1 }, clusters: 1 },
      { key: 'env=prod', count: 3, parts: { 'Unknown/Unknown': 3 }, clusters: 2 },
    ])
    const rest = await ask({ by: 'label', limit: 2, after: first.continue ?? '' })
    expect([rest.items.map(({ key }) => key), rest.continue]).toEqual([['tier=1'], null])
    expect((await ask({ by: 'label', key: 'tier=' })).items.map(({ key }) => key)).toEqual(['tier=1'])

    expect(await ask({ by: 'image', limit: 1 })).toEqual({
      items: [{ key: 'app:1', count: 3, parts: {} }],
      rest: { keys: 3, count: 3 },
      continue: null,
    })
    expect((await ask({ by: 'image', sort: 'key', key: 'app' })).items.map(({ key, count }) => [key, count])).toEqual([
      ['app:1', 3],
      ['app:2', 1],
    ])
    expect((await ask({ by: 'service', sort: 'count', limit: 1 })).items[0]?.key).toBe('p/one')
    expect((await ask({ by: 'state' })).items).toEqual([{ key: 'Unknown/Unknown', count: 4, parts: {} }])
    expect((await ask({ by: 'state', of: 'objects' })).items).toEqual([{ key: 'Synced/Healthy', count: 4, parts: {} }])
    expect((await ask({ by: 'health' })).items.map(({ key, count }) => `${key} ${count}`)).toEqual([
      'Healthy 0',
      'Progressing 0',
      'Degraded 0',
      'Suspended 0',
      'Missing 0',
      'Unknown 4',
    ])
    await store.close()
  })

  test('RU4 the greatest of more keys than are read at once', async () => {
    const store = await openIn(kind)
    const a = await joinCluster(store, 'a')
    const rows = Array.from({ length: 700 }, (_, i) => said(i + 1, `pod-${i}`, [`image-${String(i % 600).padStart(3, '0')}`]))
    await store.upsertStatus(a, rows, delta)
    const all = { dimension: 'image', limit: 1_000 } as const
    const paged = await store.rollups.page(all)
    expect([paged.items.length, paged.next]).toEqual([600, null])
    const { items, rest } = await store.rollups.top({ dimension: 'image', limit: 3, weigh: (counts) => counts[''] ?? 0 })
    expect(items).toEqual(['000', '001', '002'].map((n) => ({ key: `image-${n}`, counts: { '': 2 } })))
    expect(rest).toEqual({ keys: 597, count: 694 })
    await store.close()
  })

  test('RU5 a drift is of the first age that it is below, to the millisecond; what was put back is none', async () => {
    const store = await openIn(kind)
    const a = await joinCluster(store, 'a')
    const ages: Array<[number, string]> = [
      [-5, 'reported'],
      [0, 'reported'],
      [HOUR - 1, 'contested'],
      [HOUR, 'failed'],
      [HOUR, 'healed'],
      [24 * HOUR - 1, 'reported'],
      [24 * HOUR, 'reported'],
      [168 * HOUR - 1, 'reported'],
      [168 * HOUR, 'reported'],
      [9_000 * HOUR, 'healed'],
      [9_000 * HOUR, 'contested'],
    ]
    await store.upsertStatus(
      a,
      ages.map(([age, action], index) => drift(index + 1, NOW - age, action)),
      delta,
    )
    const { items } = await fleetCounts(store.rollups, { by: 'drift-age', of: 'objects', limit: 10 }, at)
    expect(items).toEqual([
      { key: '<1h', count: 3, parts: { reported: 2, contested: 1 } },
      { key: '<1d', count: 2, parts: { reported: 1, failed: 1 } },
      { key: '<7d', count: 2, parts: { reported: 2 } },
      { key: 'older', count: 2, parts: { reported: 1, contested: 1 } },
    ])
    await store.close()
  })

  test('RU6 liveness is counted by the time of the question, as the view of each cluster says it', async () => {
    const store = await openIn(kind)
    expect((await fleetCounts(store.rollups, { by: 'liveness', of: 'clusters', limit: 10 }, at)).items.map(({ count }) => count)).toEqual([
      0, 0, 0, 0,
    ])
    const waits = [0, 0, 300, 300, 10]
    const edges = [onlineWithinMs(0), onlineWithinMs(0) + 1, onlineWithinMs(300), onlineWithinMs(300) + 1, 5]
    for (const [index, digit] of ['a', 'b', 'c', 'd', 'e', 'f'].entries()) {
      const id = await joinCluster(store, digit)
      for (const service of ['one', 'two']) await place(store, id, service)
      const age = edges[index]
      if (age !== undefined) await store.markSeen(new Map([[id, NOW - age]]), new Map([[id, waits[index] ?? 0]]))
    }
    const key = { kind: 'Cluster', project: FLEET, name: 'cluster-e' } as const
    await store.applyResource(key, { labels: {}, spec: '{"revoked":true}', nowMs: 2 })
    const words = (await store.listClusters()).map((cluster) => [cluster.name, livenessOf(cluster, NOW).word] as const)
    const { items } = await fleetCounts(store.rollups, { by: 'liveness', of: 'clusters', limit: 10 }, at)
    expect(items.map(({ key, count }) => [key, count])).toEqual(
      LIVENESS_WORDS.map((word) => [word, words.filter(([, one]) => one === word).length]),
    )
    expect(items.map(({ count }) => count)).toEqual([2, 2, 1, 1])
    const away = await store.rollups.awayOfServices([{ project: 'p', service: 'two' }], NOW, onlineWithinMs)
    expect(away).toEqual(new Map([['p/two', { count: 4, names: words.flatMap(([name, word]) => (word === 'Online' ? [] : [name])) }]]))
    await store.close()
  })
})
