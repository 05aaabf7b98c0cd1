// An object that was to go from one service to another, and that the other gave up before it had it: it is nobody's on
// paper and carries our mark.
import { afterEach, expect, test } from 'bun:test'
import { type K8sObject, refOf } from '../../shared/kube/object.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMap, configMapRef } from '../support/reconcile-kit.ts'

afterEach(stopAll)

test('IV3, IV8 what the next service gave up before it had it goes back to the service whose mark it carries, and is pruned', async () => {
  const taker: ServiceId = { project: 'web', service: 'taker' }
  const { cluster, kit, clock, run } = setup()
  const apply = cluster.apply.bind(cluster)
  let down = false
  cluster.apply = async (resource, object, options) =>
    down && object.metadata.name === 'moved'
      ? { kind: 'failed', failure: { kind: 'server_error', status: 500, reason: '', message: 'down' } }
      : apply(resource, object, options)
  kit.desire([configMap('own'), configMap('moved')])
  kit.desire([configMap('other')], {}, taker)
  await run()
  down = true
  kit.desire([configMap('other'), configMap('moved')], {}, taker)
  await clock.advance(50)
  kit.desire([configMap('own')])
  await clock.advance(50)
  expect(cluster.object(configMapRef('moved'))).not.toBeNull()
  kit.desire([configMap('other')], {}, taker)
  await clock.advance(600_000)
  expect(cluster.object(configMapRef('moved'))).toBeNull()
  expect([kit.service()?.reason, kit.service(taker)?.reason]).toEqual(['Synced', 'Synced'])
})

test('IV11 what the next service drops before its first turn with it is pruned', async () => {
  const taker: ServiceId = { project: 'web', service: 'taker' }
  const { cluster, kit, clock, run } = setup()
  const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'moved', namespace: 'default' }, data: {} } as K8sObject
  kit.desire([configMap('own'), secret])
  kit.desire([configMap('other')], {}, taker)
  await run()
  const narrow = kit.state.narrowInventory
  let drops = 0
  kit.state.narrowInventory = (...args) => {
    narrow(...args)
    // The giver has let go of the only Secret; the taker has had no turn since.
    if (drops++ === 0) kit.desire([configMap('other')], {}, taker)
  }
  kit.desire([configMap('other'), secret], {}, taker)
  kit.desire([configMap('own')])
  await clock.advance(50)
  expect(drops).toBeGreaterThan(0)
  await clock.advance(600_000)
  expect(cluster.object(refOf(secret))).toBeNull()
  expect([kit.service()?.reason, kit.service(taker)?.reason]).toEqual(['Synced', 'Synced'])
})
