// RP2 where it counts: a whole agent on the fake API server, and a server that is put back to a backup. No object goes because of that.
import { expect, test } from 'bun:test'
import { cpSync, rmSync } from 'node:fs'
import { clusterIdSchema } from '../../shared/model/ids.ts'
import { serviceStatusSchema } from '../../shared/model/status.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
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
  expect(serviceStatusSchema.parse(status?.doc).refusal).toMatchObject({ count: 2, why: expect.stringContaining('restored from a backup') })

  await server.publish(id, WEB, { a: '3', b: '3' })
  await clock.advance(5 * MINUTE)
  expect(values()).toEqual({ a: '3', b: '3', c: undefined, x: '1' })
  site.stopping.abort()
  await site.running
  agent.close()
  await server.kill()
}, 60_000)
