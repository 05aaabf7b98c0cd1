// What a pass over a few clusters asks of the store instead of reading the whole fleet, on both databases.
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { RenderState } from '../../server/fleet/records.ts'
import type { Store } from '../../server/store/store.ts'
import type { ServiceRow } from '../../shared/model/desired.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { clusterId, joinCluster, joinInput, makeToken, publishOne } from '../support/store-fixtures.ts'
import { openIn, STORES } from '../support/stores.ts'

setDefaultTimeout(60_000) // PostgreSQL is started in one of them

const web = { project: 'default', service: 'web' }
const doc = (digest: string): ServiceRow => ({ commit: `c-${digest}`, digest, count: 3, sync: syncOptionsSchema.parse({}), protect: false })
const order: ServiceRow = { ...doc('x'), digest: '', count: 0, removal: { policy: 'delete', by: 'ann', why: 'left', atMs: 5 } }
const state = (digest: string): RenderState => ({ commit: 'c', generation: 1, digest, objectCount: 3, renderedMs: 1, error: null })

describe.each(STORES)('clusters of a pass on $name', (kind) => {
  let store: Store
  let clusters: ClusterId[]
  beforeEach(async () => {
    store = await openIn(kind)
    clusters = []
    for (const digit of ['1', '2', '3', '4']) clusters.push(await joinCluster(store, digit))
  })
  afterEach(() => store.close())

  const place = (digit: number, of: ServiceRow | null, service = web) =>
    publishOne(store, { ...service, clusterId: clusters[digit - 1] ?? clusterId('f'), doc: of, setSha: null, placedBy: '' })
  const variants = (...digests: string[]) => digests.map((digest) => ({ digest, objectCount: 1 }))

  test('IN15 clusters are found by names and by ids; what is not there is left out', async () => {
    const names = (found: Array<{ name: string }>) => found.map(({ name }) => name).sort()
    expect(names(await store.findClusters({ names: ['cluster-3', 'cluster-1', 'none'] }))).toEqual(['cluster-1', 'cluster-3'])
    expect(names(await store.findClusters({ ids: [clusterId('2'), clusterId('f')] }))).toEqual(['cluster-2'])
    expect(await store.findClusters({ names: [] })).toEqual([])
    expect(await store.findClusters({ names: ['cluster-2'] })).toEqual(
      [await store.clusterByName('cluster-2')].filter((one) => one !== null),
    )
  })

  test('IN15 rows of a service in some clusters, and one that has a digest', async () => {
    await place(1, doc('a'))
    await place(2, doc('b'))
    for (const row of [doc('c'), null]) await place(3, row)
    await place(1, doc('z'), { ...web, service: 'other' })
    const rows = await store.desiredOf(web, clusters.slice(1))
    expect(rows.map((row) => [row.clusterId, row.doc?.digest ?? null])).toEqual([
      [clusterId('2'), 'b'],
      [clusterId('3'), null],
    ])
    expect((await store.desiredWith(web, 'a'))?.clusterId).toBe(clusterId('1'))
    expect(await store.desiredWith(web, 'z')).toBeNull()
  })

  test('IN15 TG3 totals of a service count its clusters without removal orders, and tell these orders', async () => {
    expect(await store.placementTotals(web)).toEqual({ holders: 0, orders: [] })
    for (const digit of [1, 2, 3]) await place(digit, doc('a'))
    await place(4, doc('a'), { ...web, service: 'other' })
    expect(await store.placementTotals(web)).toEqual({ holders: 3, orders: [] })
    await place(2, order)
    const { holders, orders } = await store.placementTotals(web)
    expect([holders, orders.map((row) => row.clusterId)]).toEqual([2, [clusterId('2')]])
    await place(2, null)
    expect(await store.placementTotals(web)).toEqual({ holders: 2, orders: [] })
  })

  test('IN15 services of which a question concerns all clusters, asked or answered', async () => {
    const question = { ...web, cluster: null, token: 't', names: ['n'], why: 'w', createdMs: 1 }
    await store.openConfirmation({ ...question, kind: 'prune', subject: 'prune/1', service: 'pruned', cluster: 'cluster-1' })
    expect(await store.askedServices()).toEqual([])
    const { id } = await store.openConfirmation({ ...question, kind: 'remove_service', subject: 'remove/1' })
    await store.openConfirmation({ ...question, kind: 'leave_targets', subject: 'leave/1' })
    expect(await store.askedServices()).toEqual([web])
    const leaving = { kind: 'leave_targets', count: 1, oldestMs: 1 } as const
    const prune = { kind: 'prune', count: 1, oldestMs: 1 } as const
    expect(await store.pendingConfirmations()).toEqual([leaving, prune, { ...leaving, kind: 'remove_service' }])
    await store.confirm(id, 'ann', 2)
    expect(await store.askedServices()).toEqual([web])
    expect(await store.pendingConfirmations()).toEqual([leaving, prune])
  })

  test('HI1 a variant that one more cluster brings belongs to the newest revision', async () => {
    expect(await store.addVariants(web, variants('a'))).toBe(0)
    await store.applyResource({ kind: 'Service', project: 'default', name: 'web' }, { labels: {}, spec: '{}', nowMs: 1 })
    await store.setRenderState(web, state('a'), variants('a'))
    expect(await store.newestVariants(web, ['a', 'b'])).toEqual(new Set(['a']))
    expect(await store.addVariants(web, variants('a'))).toBe(1)
    expect(await store.addVariants(web, variants('a', 'b'))).toBe(2)
    expect(await store.addVariants(web, variants('b', 'c'))).toBe(3)
    expect(await store.newestVariants(web, ['a', 'b', 'c', 'd'])).toEqual(new Set(['a', 'b', 'c']))
    await place(1, doc('b'))
    expect((await store.revisions(web, { limit: 5 })).map(({ number, clusters: held }) => [number, held])).toEqual([[1, 1]])
    await store.setRenderState(web, state('next'), variants('next'))
    expect(await store.newestVariants(web, ['b', 'next'])).toEqual(new Set(['next']))
  })

  test('ST5 the event of a join is written with it, and not again when the join is repeated', async () => {
    await makeToken(store, 't', 2)
    const event = {
      atMs: 1,
      type: 'Normal',
      reason: 'ClusterJoined',
      message: 'm',
      cluster: 'cluster-5',
      project: null,
      service: null,
    } as const
    const input = joinInput('5', { event: { ...event, object: null } })
    await store.join(input)
    await store.join(input)
    await store.join(joinInput('6', { tokenHash: 'hash-none', event: { ...event, object: null } }))
    const events = await store.listEvents({ limit: 10 })
    expect(events.map(({ reason, cluster }) => [reason, cluster])).toEqual([['ClusterJoined', 'cluster-5']])
  })
})
