// Revisions of services, and how their words changed in clusters, on both databases.
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { RenderState } from '../../server/fleet/records.ts'
import type { Store } from '../../server/store/store.ts'
import type { ServiceRow } from '../../shared/model/desired.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { joinCluster, publishOne } from '../support/store-fixtures.ts'
import { openIn, STORES } from '../support/stores.ts'

setDefaultTimeout(60_000) // PostgreSQL is started in one of them

const web = { project: 'default', service: 'web' }
const key = { kind: 'Service', project: 'default', name: 'web' } as const
const rendered = (digest: string, change: Partial<RenderState> = {}): RenderState => ({
  commit: `commit-${digest}`,
  generation: 1,
  digest,
  objectCount: 3,
  renderedMs: 10,
  error: null,
  ...change,
})
const doc = (digest: string) => ({ commit: 'c', digest, count: 3, sync: syncOptionsSchema.parse({}), protect: false })

describe.each(STORES)('histories on $name', (kind) => {
  let store: Store
  beforeEach(async () => {
    store = await openIn(kind)
  })
  afterEach(() => store.close())

  const numbers = async () => (await store.revisions(web, { limit: 10 })).map(({ number, digest }) => [number, digest])
  const report = (clusterId: ClusterId, rev: number, health: string, nowMs: number, change: object = {}) => {
    const words = { sync: 'Synced', health, reason: health, message: `at ${nowMs}`, sinceMs: nowMs, objectCount: 1, healthyCount: 1 }
    const row = { kind: 'service' as const, key: 'default/web', rev, doc: { ...words, ...change } }
    return store.upsertStatus(clusterId, [row], { complete: false, nowMs })
  }
  const place = (clusterId: ClusterId, of: ServiceRow | null = doc('d')) =>
    publishOne(store, { ...web, clusterId, doc: of, setSha: null, placedBy: '' })
  const history = async (clusterId: ClusterId) =>
    (await store.statusHistory(clusterId, web, { limit: 10 })).map(({ atMs, health }) => [atMs, health])

  test('RL2 a revision of several variants counts the clusters of each, and tells what those of one have; without it they are gone', async () => {
    await store.applyResource(key, { labels: {}, spec: '{}', nowMs: 1 })
    const clusterIds = await Promise.all(['1', '2', '3'].map((digit) => joinCluster(store, digit)))
    await store.setRenderState(web, rendered('whole'), [
      { digest: 'a', objectCount: 3 },
      { digest: 'b', objectCount: 2 },
    ])
    for (const [index, clusterId] of clusterIds.entries()) {
      const digest = index === 2 ? 'b' : 'a'
      await publishOne(store, { ...web, clusterId, doc: doc(digest), setSha: `set-${digest}`, placedBy: '' })
    }
    expect((await store.revisions(web, { limit: 5 })).map(({ clusters, variants, setSha }) => [clusters, variants, setSha])).toEqual([
      [3, 2, null],
    ])
    expect(await store.variant(web, 'b')).toEqual({ commit: 'commit-whole', objectCount: 2, setSha: 'set-b' })
    expect(await store.variant(web, 'c')).toBeNull()
    expect(await store.referencedContent(['set-a', 'set-b', 'set-c'])).toEqual(new Set(['set-a', 'set-b']))
    // The next one shares a variant with it: clusters that have that get no new set.
    await store.setRenderState(web, rendered('next', { commit: 'commit-2' }), [
      { digest: 'a', objectCount: 3 },
      { digest: 'c', objectCount: 1 },
    ])
    expect(await store.variant(web, 'a')).toEqual({ commit: 'commit-2', objectCount: 3, setSha: 'set-a' })
    expect((await store.revisions(web, { limit: 5 })).map(({ number, clusters }) => [number, clusters])).toEqual([
      [2, 2],
      [1, 3],
    ])
    for (const clusterId of clusterIds) await publishOne(store, { ...web, clusterId, doc: null, setSha: null, placedBy: '' })
    await store.deleteResource(key)
    expect(await store.referencedContent(['set-a', 'set-b'])).toEqual(new Set())
  })

  test('HI1 a render with another digest is the next revision; with the same one, or a failed one, it is none', async () => {
    await store.setRenderState(web, rendered('one'))
    await store.setRenderState(web, rendered('one', { generation: 2, commit: 'later' }))
    await store.setRenderState(web, rendered('one', { error: { code: 'x', message: '', problems: [], sinceMs: 1 } }))
    await store.setRenderState(web, rendered('two', { renderedMs: 20, objectCount: 4 }))
    await store.setRenderState(web, rendered('one', { renderedMs: 30 }))
    expect(await numbers()).toEqual([[3, 'one'], [2, 'two'], [1, 'one']]) // biome-ignore format: a table
    expect(await store.revisions(web, { before: 3, limit: 1 })).toEqual([
      {
        number: 2,
        commit: 'commit-two',
        generation: 1,
        digest: 'two',
        objectCount: 4,
        setSha: null,
        renderedMs: 20,
        clusters: 0,
        variants: 1,
        revisions: {},
      },
    ])
    expect(await store.revisions({ ...web, service: 'other' }, { limit: 10 })).toEqual([])
  })

  test('HI1 a revision of several repositories names what was read of each', async () => {
    const release = { variants: 1, revisions: { charts: 'sha256:1', values: 'commit-2' }, tools: {}, warnings: [] }
    await store.setRenderState(web, rendered('two', { release }))
    await store.setRenderState(web, rendered('one', { release: { ...release, revisions: { charts: 'sha256:1' } } }))
    const revisions = await store.revisions(web, { limit: 10 })
    expect(revisions.map((revision) => revision.revisions)).toEqual([{}, { charts: 'sha256:1', values: 'commit-2' }])
  })

  test('HI1 a render that brought nothing yet is no revision', async () => {
    await store.setRenderState(web, { ...rendered('x'), digest: null, commit: null, renderedMs: null })
    expect(await numbers()).toEqual([])
  })

  test('HI1 a revision knows its set from when a cluster got it, also when its digest comes back, and how many clusters shall have it', async () => {
    const [a, b] = [await joinCluster(store, 'a'), await joinCluster(store, 'b')]
    const publish = (clusterId: ClusterId, digest: string) =>
      publishOne(store, { ...web, clusterId, doc: doc(digest), setSha: `sha-${digest}`, placedBy: '' })
    await store.setRenderState(web, rendered('one'))
    await publish(a, 'one')
    await publish(b, 'one')
    await store.setRenderState(web, rendered('two'))
    await publish(a, 'two')
    await store.setRenderState(web, rendered('one'))
    const held = (await store.revisions(web, { limit: 10 })).map(({ number, setSha, clusters }) => [number, setSha, clusters])
    expect(held).toEqual([[3, 'sha-one', 1], [2, 'sha-two', 1], [1, 'sha-one', 1]]) // biome-ignore format: a table
    expect(await store.referencedContent(['sha-one', 'sha-two', 'sha-none'])).toEqual(new Set(['sha-one', 'sha-two']))
  })

  test('HI1 revisions go with their service, however it goes', async () => {
    await store.applyResource(key, { labels: {}, spec: '{}', nowMs: 1 })
    await store.setRenderState(web, rendered('one'))
    await store.deleteResource(key)
    expect(await numbers()).toEqual([])
    await store.applyResource(key, { labels: {}, spec: '{}', nowMs: 1 })
    await store.setRenderState(web, rendered('two'))
    expect(await numbers()).toEqual([[1, 'two']])
    await store.markDeleting(key, 2, 'ann')
    expect(await store.finishDeletion(key, (await store.getResource(key))?.version ?? 0)).toBe(true)
    expect(await numbers()).toEqual([])
  })

  test('HI2 a change of words is a row, and flaps within ten seconds are one', async () => {
    const a = await joinCluster(store, 'a')
    await place(a)
    const applied = { applied: { commit: 'c1', digest: 'd', atMs: 1 } }
    await report(a, 1, 'Progressing', 1_000, applied)
    await report(a, 2, 'Progressing', 50_000, { ...applied, message: 'only the message' })
    await report(a, 3, 'Healthy', 100_000, applied)
    await report(a, 4, 'Degraded', 104_000, applied)
    await report(a, 5, 'Healthy', 108_000, applied)
    expect(await history(a)).toEqual([[100_000, 'Healthy'], [1_000, 'Progressing']]) // biome-ignore format: a table
    await report(a, 6, 'Degraded', 200_000, applied)
    await report(a, 7, 'Healthy', 205_000, applied) // and it stays so
    expect(await history(a)).toEqual([[100_000, 'Healthy'], [1_000, 'Progressing']]) // biome-ignore format: a table
    await report(a, 8, 'Degraded', 300_000, applied)
    expect(await store.statusHistory(a, web, { limit: 1 })).toEqual([
      { atMs: 300_000, sync: 'Synced', health: 'Degraded', reason: 'Degraded', commit: 'c1' },
    ])
    expect((await store.statusHistory(a, web, { before: 300_000, limit: 1 })).map(({ atMs }) => atMs)).toEqual([100_000])
  })

  test('HI2 a duplicate, an older copy and another cluster change nothing of a history', async () => {
    const [a, b] = [await joinCluster(store, 'a'), await joinCluster(store, 'b')]
    await place(a)
    await place(b)
    await report(a, 5, 'Healthy', 1_000)
    await report(a, 5, 'Degraded', 50_000)
    await report(a, 4, 'Degraded', 90_000)
    await report(b, 1, 'Degraded', 90_000)
    expect(await history(a)).toEqual([[1_000, 'Healthy']])
    expect(await history(b)).toEqual([[90_000, 'Degraded']])
  })

  test('HI2 what a cluster shall not have has no history: an agent could make up services without end', async () => {
    const [a, b] = [await joinCluster(store, 'a'), await joinCluster(store, 'b')]
    await place(b)
    await report(a, 1, 'Healthy', 1_000)
    await report(a, 2, 'Degraded', 50_000)
    expect(await history(a)).toEqual([])
    await place(a)
    await report(a, 3, 'Healthy', 100_000)
    await place(a, null)
    await report(a, 4, 'Degraded', 200_000)
    expect(await history(a)).toEqual([[100_000, 'Healthy']])
  })

  test('ST6 a history goes with its cluster', async () => {
    const a = await joinCluster(store, 'a')
    await place(a)
    await report(a, 1, 'Healthy', 1_000)
    expect(await history(a)).toHaveLength(1)
    await store.deleteCluster('cluster-a')
    expect(await history(a)).toEqual([])
  })
})
