// etcd comes back older than it was: objects, their resourceVersions and their UIDs with it. Then what was learned
// before says nothing of what is there.
import { afterEach, describe, expect, test } from 'bun:test'
import { objectPart } from '../../agent/messages/object-messages.ts'
import { setup, stopAll, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const names = ['changed', 'removed', 'made', 'again']

/** A service whose last revision came after the snapshot. */
async function site() {
  const found = setup()
  const { cluster, kit, settle } = found
  kit.desire([configMap('changed', { v: '1' }), configMap('removed'), configMap('again')])
  await found.run()
  cluster.applyAs('kubectl', configMap('theirs', { v: '1' }))
  const snapshot = cluster.snapshot()
  cluster.deleteAs('kubectl', configMapRef('again'))
  await settle()
  kit.desire([configMap('changed', { v: '2' }), configMap('made'), configMap('again')])
  await settle()
  cluster.deleteAs('kubectl', configMapRef('theirs'))
  await settle()
  const there = () => [...names, 'theirs'].filter((name) => cluster.object(configMapRef(name)) !== null)
  expect(there()).toEqual(['changed', 'made', 'again'])
  cluster.requests.splice(0)
  return { ...found, snapshot, there }
}

describe('etcd restored from a snapshot', () => {
  test.each([[false], [true]])(
    'LS3 with a bumped revision %p: the revision is applied again, what it does not name is pruned, others are left alone',
    async (bump) => {
      const { cluster, clock, kit, snapshot, there } = await site()
      cluster.restore(snapshot, { bump })
      await clock.advance(1_000)
      expect(writes(cluster).sort()).toEqual(['apply ConfigMap changed', 'apply ConfigMap made', 'delete ConfigMap removed'])
      expect(there()).toEqual(['changed', 'made', 'again', 'theirs'])
      expect(cluster.object(configMapRef('changed'))).toMatchObject({ data: { v: '2' } })
      expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
      cluster.deleteAs('kubectl', configMapRef('changed'))
      await clock.advance(1_000)
      expect(writes(cluster)).toEqual(['apply ConfigMap changed'])
    },
  )

  test('LS3 answers that were on their way are not believed', async () => {
    const { cluster, clock, kit, snapshot } = await site()
    cluster.lagAnswers(() => 2_000)
    kit.desire([configMap('changed', { v: '3' }), configMap('made'), configMap('again')])
    await clock.advance(500)
    cluster.restore(snapshot)
    cluster.lagAnswers(() => 0)
    await clock.advance(10_000)
    expect(cluster.object(configMapRef('changed'))).toMatchObject({ data: { v: '3' } })
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
  })

  test('LS4 under a running API server, whose lists stay those of before: nothing is concluded from them, and the status says what to do', async () => {
    const { cluster, clock, kit, snapshot } = await site()
    cluster.restore(snapshot, { isRunning: true })
    await clock.advance(60_000)
    kit.desire([configMap('changed', { v: '3' }), configMap('made'), configMap('again')])
    await clock.advance(1_000)
    expect(kit.object(configMapKey('changed'))).toMatchObject({
      health: 'Unknown',
      message: expect.stringContaining(objectPart('stale_watch_cache')),
    })
    cluster.requests.splice(0)
    await clock.advance(3_600_000)
    // Each attempt is one list and one write.
    expect(writes(cluster).length).toBeLessThan(40)
    cluster.restartApiServer()
    await clock.advance(600_000)
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
    expect(cluster.object(configMapRef('changed'))).toMatchObject({ data: { v: '3' } })
    expect(cluster.object(configMapRef('removed'))).toBeNull()
  })
})
