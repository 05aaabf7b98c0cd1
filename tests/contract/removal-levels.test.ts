// A deletion is level-triggered: who deleted, and what is left to do, is in the store. A server that is killed between
// any two steps goes on at its next start.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { collectTombstones } from '../../server/desired/tombstones.ts'
import { configMap, createIngestKit, SHOP } from '../support/ingest-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

test.each([
  ['before the removal order', 'publish', 1],
  ['before the tombstone', 'publish', 2],
  ['before the status rows go', 'deleteStatusOfService', 1],
  ['before the service goes', 'finishDeletion', 1],
] as const)('TG11 UK7 kill -9 in a deletion, %s: the next start ends it, and it is by who deleted', async (_, method, count) => {
  const dir = tempDir()
  const script = join(import.meta.dir, '../support/removal-until-killed.ts')
  const env = { ...process.env, REMOVAL: JSON.stringify({ dir, deadly: method, count }) }
  const child = Bun.spawn([process.execPath, 'test', script], { env, stdout: 'ignore', stderr: 'ignore' })
  await child.exited
  expect(child.signalCode).toBe('SIGKILL')

  const kit = await createIngestKit({ dir })
  const [cluster] = await kit.store.listClusters()
  if (cluster === undefined) throw new Error('no cluster')
  const { clusterId } = cluster
  await kit.ingest.serviceChanged(SHOP)
  const order = (await kit.row(clusterId))?.removal
  if (count === 1 && method === 'publish') expect(order?.by).toBe('ann')
  if (order !== undefined) await kit.reportRemoved(clusterId)

  expect(await kit.store.getResource({ kind: 'Service', project: 'default', name: 'shop' })).toBeNull()
  await collectTombstones(kit, new Map())
  expect(await kit.store.listStatus({ kind: 'object' })).toEqual([])
  expect(await kit.store.listStatus({ kind: 'service' })).toEqual([])
  expect(await kit.store.tombstones({ limit: 9 })).toMatchObject([{ service: 'shop', hasStatus: false }])
  await kit.close()
})

test('TG7 a deletion that is asked for while a pass runs is by who asked', async () => {
  const kit = await createIngestKit()
  const clusterId = await kit.join('1')
  await kit.git.commit({ 'shop/a.yaml': configMap('a', '1') }, 'first')
  await kit.repository()
  await kit.service()
  const [publishing, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const publish = kit.store.publish
  kit.store.publish = async (rows) => {
    publishing.resolve()
    await released.promise
    return publish(rows)
  }
  const pass = kit.push({ 'shop/a.yaml': configMap('a', '2') })
  await publishing.promise
  const deletion = kit.actions.deleteService(SHOP, 'ann')
  while ((await kit.store.getResource({ kind: 'Service', project: 'default', name: 'shop' }))?.deletingMs === null) await Bun.sleep(1)
  released.resolve()
  await Promise.all([pass, deletion])
  expect((await kit.row(clusterId))?.removal?.by).toBe('ann')
  await kit.close()
})

test('UK7 a tombstone goes in the round after one that found it in its shard file, unless it is the newest row of its cluster', async () => {
  const kit = await createIngestKit()
  const clusterId = await kit.join('1')
  await kit.git.commit({ 'shop/a.yaml': configMap('a', '1'), 'kept/a.yaml': configMap('a', '1') }, 'first')
  await kit.repository()
  await kit.service()
  await kit.actions.deleteService(SHOP, 'ann')
  await kit.reportRemoved(clusterId)
  const found = async () => (await kit.store.tombstones({ limit: 9 })).map(({ service }) => service)

  const write = kit.shards.writeRevisions
  kit.shards.writeRevisions = () => {
    throw new Error('input/output error')
  }
  await kit.service({}, 'kept')
  let round = await collectTombstones(kit, new Map())
  const { ordinal } = kit.shards
  kit.shards.ordinal = () => 1 // its file lacks the tombstone
  const behind = await collectTombstones(kit, new Map())
  expect((await collectTombstones(kit, behind.reached)).removed).toBe(0)
  kit.shards.ordinal = ordinal
  kit.shards.writeRevisions = write
  expect([round.removed, await found()]).toEqual([0, ['shop']])
  round = await collectTombstones(kit, round.reached)
  expect([round.removed, await found()]).toEqual([1, []])

  // Placed again, removed again: as the first time.
  await kit.service()
  expect(await kit.pull(clusterId)).toContain('service/default/shop')
  await kit.actions.deleteService(SHOP, 'bob')
  await kit.reportRemoved(clusterId)
  for (let rounds = 0; rounds < 3; rounds++) round = await collectTombstones(kit, round.reached)
  expect([round.removed, await found()]).toEqual([0, ['shop']])
  await kit.close()
})

test('RM4 names survive a restart of the server between the change and its orders, and are used once', async () => {
  const kit = await createIngestKit()
  const one = await kit.join('1')
  await kit.git.commit({ 'shop/a.yaml': configMap('a', '1') }, 'first')
  await kit.repository()
  await kit.service()
  await kit.store.noteConfirmedData(new Map([['default/shop', new Map([[one, ['PersistentVolumeClaim shop/data']]])]]))
  await kit.store.applyResource(
    { kind: 'Cluster', project: '', name: 'cluster-1' },
    { labels: { env: 'test' }, spec: '{"revoked":false}', nowMs: 1 },
  )
  const stop = new AbortController()
  const running = kit.restarted(stop.signal).run()
  for (let wait = 0; wait < 200 && (await kit.store.confirmedData()).size > 0; wait += 1) await Bun.sleep(10)
  stop.abort()
  await running
  expect((await kit.row(one))?.confirmed).toEqual(['PersistentVolumeClaim shop/data'])
  expect((await kit.store.confirmedData()).size).toBe(0)
  await kit.close()
})
