// A backup where it counts: made while the server serves a whole agent on the fake API server, put back into another
// folder, and what that does to the cluster.
import { expect, test } from 'bun:test'
import { mkdirSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { createBackup } from '../../server/backup/create.ts'
import { restoreBackup } from '../../server/backup/restore.ts'
import { verifyBackup } from '../../server/backup/verify.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { clusterIdSchema } from '../../shared/runtime/ids.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { configMapRef } from '../support/reconcile-kit.ts'
import { WEB } from '../support/sync-kit.ts'
import { SyncServer } from '../support/sync-world.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'
import { startWholeSite } from '../support/whole-site.ts'

const MINUTE = 60_000

test('BK1 BK5 RP2 a restored server waits for a person while the agent enforces; after the yes all converge and nothing was deleted', async () => {
  const clock = createVirtualClock()
  const random = seededRandom(7)
  const base = tempDir()
  const [dir, backup, restored] = [join(base, 'data'), join(base, 'backup'), join(base, 'restored')]
  mkdirSync(dir)
  const deps = { clock: systemClock, progress: () => {}, signal: new AbortController().signal }
  let server = new SyncServer({ dir, clock, random })
  await server.open()
  await server.createJoinToken(1)
  let up = true
  const site = startWholeSite({ clock, random, server: () => (up ? server : null), joinToken: server.joinToken })
  const { agent, cluster } = site
  const values = () => site.values('a', 'b', 'c')
  await clock.advance(5_000)
  const id = clusterIdSchema.parse(agent.report().clusterId)
  await server.publish(id, WEB, { a: '1', b: '1' })
  await clock.advance(MINUTE)
  expect(values()).toEqual({ a: '1', b: '1', c: undefined })

  await createBackup({ dataDir: dir, to: backup, withoutKeys: false, postgres: false }, deps) // it runs, and goes on
  expect((await verifyBackup(backup, deps)).problems).toEqual([])
  await server.publish(id, WEB, { a: '2', b: '2', c: '2' })
  await clock.advance(MINUTE)
  expect(values()).toEqual({ a: '2', b: '2', c: '2' })

  up = false
  await server.kill()
  const openFolder = (path: string) => {
    mkdirSync(path, { mode: 0o700 })
    return { path, place: null, unlock: () => {} }
  }
  await restoreBackup({ folder: backup, dataDir: restored, keysFrom: null, newKeys: false }, { ...deps, openFolder })
  expect(readdirSync(restored).sort()).toEqual(['content', 'fleet.sqlite', 'keys', 'restored.json'])
  server = new SyncServer({ dir: restored, clock, random })
  await server.open()
  up = true
  await clock.advance(5 * MINUTE)
  expect([server.restoreGate.pending(), agent.report().link?.state]).toEqual([true, 'restore_pending'])
  cluster.deleteAs('kubectl', configMapRef('b'))
  await clock.advance(5_000)
  expect(values()).toEqual({ a: '2', b: '2', c: '2' }) // enforced as before

  const plan = await server.restore.plan()
  expect(plan.clusters[0]?.services.map(({ service, what }) => `${service} ${what}`)).toEqual(['web change'])
  await server.restore.confirm(plan.token ?? '', 'ann')
  await clock.advance(10 * MINUTE)
  expect(agent.report().link?.state).toBe('following')
  expect(values()).toEqual({ a: '1', b: '1', c: '2' }) // set back, and nothing gone
  await server.publish(id, WEB, { a: '3', b: '3' })
  await clock.advance(5 * MINUTE)
  expect(values()).toEqual({ a: '3', b: '3', c: undefined })
  await site.stop()
  await server.kill()
}, 60_000)
