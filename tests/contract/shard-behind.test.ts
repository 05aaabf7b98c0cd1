// One shard file that takes nothing, and everything that goes on in the other clusters meanwhile.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { catchUpAll } from '../../server/desired/catch-up.ts'
import { createFleetViews } from '../../server/http/fleet-views.ts'
import type { ClusterView } from '../../shared/model/views.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { configMap, createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'

let kit: IngestKit
let isBroken: boolean
beforeEach(async () => {
  kit = await createIngestKit()
  isBroken = false
})
afterEach(() => kit.close())

/** A cluster whose file can be broken, and one in another file. */
async function joinTwo() {
  const bad = await kit.join('1')
  const { shards } = kit
  const broken = shards.shardOf(bad)
  const write = shards.writeRevisions.bind(shards)
  shards.writeRevisions = (revisions) => {
    if (isBroken && revisions.some(({ clusterId }) => shards.shardOf(clusterId) === broken)) throw new Error('input/output error')
    return write(revisions)
  }
  for (const digit of ['2', '3', '4', '5', '6', '7', '8', '9']) {
    const good = await kit.join(digit)
    if (shards.shardOf(good) !== broken) return { bad, good }
    await kit.store.deleteCluster(`cluster-${digit}`)
  }
  throw new Error('no cluster in another file')
}

test('CU7 a shard file that takes nothing stops no pass, event, confirmation or deletion of others, and its cluster says so', async () => {
  const { bad, good } = await joinTwo()
  await kit.git.commit({ 'shop/a.yaml': configMap('a', '1'), 'kept/a.yaml': configMap('a', '1') }, 'first')
  await kit.repository()
  await kit.service()
  await kit.service({ protect: true }, 'kept')
  await kit.pull(good)
  await kit.pull(bad)

  isBroken = true
  await kit.push({ 'shop/a.yaml': configMap('a', '2') })
  expect([await kit.pull(good), await kit.pull(bad)]).toEqual([['object/default/shop//ConfigMap/shop/a', 'service/default/shop'], []])
  expect((await kit.events()).filter((event) => event.startsWith('RevisionPublished: 1 '))).toHaveLength(3)

  const deleted = await kit.actions.deleteService(SHOP, 'ann')
  expect(deleted).toEqual({ kind: 'removing', clusters: ['cluster-1', expect.any(String)] })
  await kit.reportRemoved(good)
  expect([await kit.row(good), (await kit.row(bad))?.removal?.by]).toEqual([null, 'ann'])
  expect(await kit.events()).toContainEqual(expect.stringMatching(/^ServiceRemoved: /))
  expect(await kit.actions.deleteService({ project: 'default', service: 'kept' }, 'ann')).toMatchObject({ kind: 'waiting' })

  const views = createFleetViews(kit.store, systemClock, { pendingSinceMs: async () => null }, undefined, (id) => kit.shards.behind.of(id))
  const statusOf = async (name: string) => {
    const held = await kit.store.getResource({ kind: 'Cluster', project: '', name })
    const [view] = held === null ? [] : await views.resources([held])
    return (view as ClusterView).status
  }
  await kit.store.markSeen(new Map([[bad, systemClock.nowMs()]]))
  const status = await statusOf('cluster-1')
  expect(status).toMatchObject({ reason: 'ShardBehind', problems: [{ code: 'shard_behind', sinceMs: expect.any(Number) }] })
  expect([status.message.includes('input/output error'), status.next !== '']).toEqual([true, true])

  kit.shards.removeCluster = () => {
    throw new Error('input/output error')
  }
  const gone = (await kit.store.listClusters()).find(({ name }) => name !== 'cluster-1')?.name ?? ''
  expect([await kit.actions.deleteCluster(gone, 'ann'), await kit.store.clusterByName(gone)]).toEqual([true, null])
  expect(await kit.events()).toContainEqual(expect.stringMatching(/^ClusterDeleted: /))

  isBroken = false
  expect(await catchUpAll({ store: kit.store, content: kit.content, shards: kit.shards })).toEqual([])
  expect(await kit.pull(bad)).toEqual(['-object/default/shop//ConfigMap/shop/a', 'service/default/shop'])
  expect((await statusOf('cluster-1')).problems).toEqual([])
})
