// A disk that came back older, by a power cut or a snapshot, holds revisions that never heard of what came later.
import { expect, test } from 'bun:test'
import { deletionText } from '../../agent/messages/deletion-messages.ts'
import { CLAIM_NAME, CLAIM_NAMESPACE } from '../../agent/reconcile/claim/claim.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { configMap, configMapRef, createReconcileKit } from '../support/reconcile-kit.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const CLAIM = { group: '', kind: 'ConfigMap', namespace: CLAIM_NAMESPACE, name: CLAIM_NAME }

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
  expect(kit.service()?.message).toContain(deletionText('pruned_when_current'))
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

const HOUR_MS = 3_600_000
test.each([
  ['half an hour back', -HOUR_MS / 2],
  ['an hour back', -HOUR_MS],
  ['three years back', -26_280 * HOUR_MS],
  ['three years ahead', 26_280 * HOUR_MS],
])('RC17 a clock that is set %s makes no retry and no correction wait', async (_, setByMs) => {
  const time = createVirtualClock()
  const clock = time.process(0)
  const cluster = createFakeCluster({ clock: time })
  const kit = createReconcileKit({ cluster, clock })
  let refuses = true
  const refusal = { kind: 'server_error', status: 500, reason: 'Sim', message: 'sim' } as const
  cluster.fail(({ verb, ref }) => (refuses && verb === 'apply' && ref?.name === 'a' ? refusal : null))
  kit.start()
  kit.desire([configMap('a'), configMap('b')])
  await time.advance(60_000)
  for (let fight = 0; fight < 8; fight += 1) {
    cluster.editAs('rival', configMapRef('b'), (object) => Object.assign(object, { data: { a: 'theirs' } }))
    await time.advance(100)
  }
  refuses = false
  clock.setBy(setByMs)
  await time.advance(900_000)
  expect(cluster.object(configMapRef('a'))).not.toBeNull()
  expect(cluster.object(configMapRef('b'))?.['data']).toEqual({ a: '1' })
  await kit.stop()
})

test('IV3 what an earlier life applied is found again when another service brings its kind, though the revision names nothing', async () => {
  const { clock, cluster, kit } = start()
  kit.desire([configMap('a')])
  await clock.advance(10_000)
  await kit.stop()
  const forgetful = createReconcileKit({ cluster, clock })
  forgetful.desire([])
  forgetful.start()
  await clock.advance(10_000)
  forgetful.desire([configMap('other')], {}, { project: 'web', service: 'other' })
  await clock.advance(10_000)
  expect(forgetful.service()?.refusal?.names).toEqual(['ConfigMap default/a'])
  await forgetful.stop()
})

test('CM3 a cluster that was set back to before this start does not end enforcement', async () => {
  const { clock, cluster, kit } = start()
  kit.desire([configMap('a')])
  await clock.advance(10_000)
  await kit.stop()
  const before = { agent: 'a-1', incarnation: '1', instance: 'an earlier start' }
  cluster.editAs('skerry', CLAIM, (object) => Object.assign(object, { data: before }))
  kit.start()
  await clock.advance(10_000)
  expect(cluster.object(CLAIM)?.['data']).not.toEqual(before)
  cluster.editAs('etcdctl', CLAIM, (object) => Object.assign(object, { data: before }))
  await clock.advance(10_000)
  cluster.deleteAs('kubectl', configMapRef('a'))
  await clock.advance(10_000)
  expect([kit.claims.at(-1), cluster.object(configMapRef('a')) !== null]).toEqual([{ kind: 'held' }, true])
  await kit.stop()
})
