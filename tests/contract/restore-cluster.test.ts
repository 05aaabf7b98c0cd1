// RP2 where it counts: a whole agent on the fake API server, and a server that is put back to a backup. No object goes
// because of that.
import { expect, test } from 'bun:test'
import { cpSync, rmSync } from 'node:fs'
import { agentFiles } from '../../agent/agent.ts'
import { deletionText } from '../../agent/messages/deletion-messages.ts'
import { serviceStatusSchema } from '../../shared/model/status.ts'
import { clusterIdSchema } from '../../shared/runtime/ids.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import type { FakeCluster } from '../support/fake-cluster.ts'
import { configMapRef } from '../support/reconcile-kit.ts'
import { WEB } from '../support/sync-kit.ts'
import { SyncServer } from '../support/sync-world.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'
import { startWholeSite } from '../support/whole-site.ts'

const LATE = { project: 'shop', service: 'late' }
const MINUTE = 60_000

test('RP2 nothing is deleted in a cluster by a restore: what the backup does not name stays, drift is healed, and the next commit goes its usual way', async () => {
  const clock = createVirtualClock()
  const random = seededRandom(7)
  const [dir, backup] = [tempDir(), tempDir()]
  const server = new SyncServer({ dir, clock, random })
  await server.open()
  await server.createJoinToken(1)
  let up = true
  const site = startWholeSite({ clock, random, server: () => (up ? server : null), joinToken: server.joinToken })
  const { agent, cluster } = site
  const restart = async (between: () => void) => {
    up = false
    await server.kill()
    between()
    await server.open()
    up = true
    await clock.advance(2 * MINUTE)
  }
  const values = () => site.values('a', 'b', 'c', 'x')
  await clock.advance(5_000)
  const id = clusterIdSchema.parse(agent.report().clusterId)

  await server.publish(id, WEB, { a: '1' })
  await clock.advance(MINUTE)
  await restart(() => cpSync(dir, backup, { recursive: true }))
  await server.publish(id, WEB, { a: '2', b: '2', c: '2' })
  await server.publish(id, LATE, { x: '1' })
  await clock.advance(2 * MINUTE)
  expect(values()).toEqual({ a: '2', b: '2', c: '2', x: '1' })

  await restart(() => {
    rmSync(dir, { recursive: true })
    cpSync(backup, dir, { recursive: true })
  })
  await clock.advance(5 * MINUTE)
  expect([server.restoreGate.pending(), agent.report().link?.state]).toEqual([true, 'restore_pending'])
  cluster.deleteAs('kubectl', configMapRef('b'))
  await clock.advance(5_000)
  expect(values()).toEqual({ a: '2', b: '2', c: '2', x: '1' }) // enforced as before

  const plan = await server.restore.plan()
  expect(plan.clusters[0]?.services.map(({ service, what }) => `${service} ${what}`)).toEqual(['late unclaimed', 'web change'])
  await server.restore.confirm(plan.token ?? '', 'ann')
  await clock.advance(10 * MINUTE)
  expect(agent.report().link?.state).toBe('following')
  expect(values()).toEqual({ a: '1', b: '2', c: '2', x: '1' }) // set back, and nothing gone
  const [status] = await server.store.listStatus({ clusterId: id, kind: 'service', key: 'shop/web' })
  expect(serviceStatusSchema.parse(status?.doc).refusal).toMatchObject({ count: 2, why: expect.stringContaining(deletionText('restored')) })

  await server.publish(id, WEB, { a: '3', b: '3' })
  await clock.advance(5 * MINUTE)
  expect(values()).toEqual({ a: '3', b: '3', c: undefined, x: '1' })
  await site.stop()
  await server.kill()
}, 60_000)

// Found by the simulation (seed 362988242 of its time): the agent holds the revision of the backup again, and reports
// that it has the same one as the server.
test('RP2 RP8 nothing is deleted when the replica of an agent lost the same revisions as the server', async () => {
  const clock = createVirtualClock()
  const random = seededRandom(7)
  const [dir, backup, dataDir] = [tempDir(), tempDir(), tempDir()]
  const server = new SyncServer({ dir, clock, random })
  await server.open()
  await server.createJoinToken(1)
  const start = (cluster?: FakeCluster) =>
    startWholeSite({
      clock,
      random,
      server: () => server,
      joinToken: server.joinToken,
      dataDir,
      ...(cluster === undefined ? {} : { cluster }),
    })
  const first = start()
  const { cluster } = first
  await clock.advance(5_000)
  const id = clusterIdSchema.parse(first.agent.report().clusterId)
  await server.publish(id, WEB, { a: '1' })
  await clock.advance(MINUTE)
  const { replica } = agentFiles(dataDir)
  const lost = tempDir()
  for (const suffix of ['', '-wal']) cpSync(replica + suffix, `${lost}/replica${suffix}`)
  await server.kill()
  cpSync(dir, backup, { recursive: true })
  await server.open()
  await server.publish(id, WEB, { a: '2', b: '2' })
  await clock.advance(2 * MINUTE)
  expect(first.values('a', 'b')).toEqual({ a: '2', b: '2' })

  // A power cut: the log of the replica loses its end, the state of the agent does not (synchronous=FULL).
  await first.stop()
  for (const suffix of ['', '-wal', '-shm']) rmSync(replica + suffix, { force: true })
  for (const suffix of ['', '-wal']) cpSync(`${lost}/replica${suffix}`, replica + suffix)
  await server.kill()
  rmSync(dir, { recursive: true })
  cpSync(backup, dir, { recursive: true })
  await server.open()
  const second = start(cluster)
  await clock.advance(5 * MINUTE)
  expect(second.agent.report().link?.state).toBe('restore_pending')

  const plan = await server.restore.plan()
  expect(plan.clusters[0]).toMatchObject({ same: 1, services: [] })
  await server.restore.confirm(plan.token ?? '', 'ann')
  await clock.advance(10 * MINUTE)
  expect(second.agent.report().link?.state).toBe('following')
  expect(second.values('a', 'b')).toEqual({ a: '1', b: '2' })
  await second.stop()
  await server.kill()
}, 60_000)
