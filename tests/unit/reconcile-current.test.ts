// A disk that came back older, by a power cut or a snapshot, holds revisions that never heard of what came later.
import { expect, test } from 'bun:test'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { configMap, configMapRef, createReconcileKit } from '../support/reconcile-kit.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

function start() {
  const clock = createVirtualClock()
  const cluster = createFakeCluster({ clock })
  let current = true
  const kit = createReconcileKit({ cluster, clock, isCurrent: () => current })
  const restart = async () => {
    await kit.stop()
    current = false
    kit.start()
  }
  const contact = () => {
    current = true
    kit.reconciler.becameCurrent()
  }
  kit.start()
  return { clock, cluster, kit, restart, contact }
}

test('PR7 after a start an older revision deletes nothing that a newer one brought, until the server was heard', async () => {
  const { clock, cluster, kit, restart, contact } = start()
  kit.desire([configMap('a'), configMap('newer')])
  await clock.advance(10_000)
  kit.desire([configMap('a')])
  await restart()
  cluster.deleteAs('kubectl', configMapRef('a'))
  await clock.advance(600_000)
  expect(cluster.object(configMapRef('newer'))).not.toBeNull()
  expect(kit.service()?.message).toContain('first contact with the server')
  expect(cluster.object(configMapRef('a'))).not.toBeNull() // all else goes on
  contact()
  await clock.advance(10_000)
  expect(cluster.object(configMapRef('newer'))).toBeNull()
  await kit.stop()
})

test('PR7 nor does an older removal order', async () => {
  const { clock, cluster, kit, restart, contact } = start()
  kit.desire([configMap('a')])
  await clock.advance(10_000)
  await restart()
  kit.remove('prune')
  await clock.advance(600_000)
  expect(cluster.object(configMapRef('a'))).not.toBeNull()
  contact()
  await clock.advance(10_000)
  expect(cluster.object(configMapRef('a'))).toBeNull()
  expect(kit.service()?.removed).toBe(true)
  await kit.stop()
})
