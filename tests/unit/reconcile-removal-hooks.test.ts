// Hooks of a removal, and hooks across crashes, on the fake API server.
import { afterEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import type { Cluster } from '../../agent/cluster/cluster.ts'
import type { FakeCluster } from '../support/fake-cluster.ts'
import { fail, hook, jobRef, jobs, POLICY, succeed, waved } from '../support/hook-fixtures.ts'
import { setup, stopAll, track, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapRef, createReconcileKit, type ReconcileKit, SHOP } from '../support/reconcile-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

afterEach(stopAll)

const REMOVAL_HOOKS = () => [hook('first', 'pre-delete'), hook('last', 'post-delete'), configMap('a')]

describe('a removal', () => {
  test('HK10 runs pre-delete before anything goes and post-delete after, also after a restart, then nothing is left', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire(REMOVAL_HOOKS())
    await run()
    expect(writes(cluster)).toEqual(['apply ConfigMap a'])
    await kit.stop()
    kit.remove('prune', SHOP, 5)
    await run()
    expect(writes(cluster)).toEqual(['apply Job first'])
    expect(kit.service()).toMatchObject({ reason: 'Removing' })
    await kit.stop()
    await run()
    expect(writes(cluster)).toEqual([])
    succeed(cluster, 'first')
    await settle()
    expect(writes(cluster)).toEqual(['delete ConfigMap a', 'apply Job last'])
    expect(kit.service()?.removed).toBeUndefined()
    await kit.stop()
    await run()
    expect(writes(cluster)).toEqual([])
    succeed(cluster, 'last')
    await settle()
    expect(jobs(cluster)).toEqual([])
    expect(kit.service()).toMatchObject({ removed: true, removedOrderMs: 5 })
    expect(kit.state.facts(SHOP, '').size).toBe(0)
  })

  test('HK10 a failed pre-delete stops it and says so; another order runs it again', async () => {
    const { cluster, kit, run, settle, clock } = setup()
    kit.desire(REMOVAL_HOOKS())
    await run()
    kit.remove('prune', SHOP, 5)
    await settle()
    fail(cluster, 'first')
    await settle()
    expect(kit.service()).toMatchObject({ reason: 'Removing', health: 'Degraded' })
    await clock.advance(3_600_000)
    expect(cluster.object(configMapRef('a'))).not.toBeNull()
    writes(cluster)
    kit.remove('prune', SHOP, 6)
    await settle()
    expect(writes(cluster)).toEqual(['delete Job first', 'apply Job first'])
    succeed(cluster, 'first')
    await settle()
    succeed(cluster, 'last')
    await settle()
    expect(kit.service()).toMatchObject({ removed: true, removedOrderMs: 6 })
  })

  test('HK10 a failed post-delete stops nothing, and is an event', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire(REMOVAL_HOOKS())
    await run()
    kit.remove('prune')
    await settle()
    succeed(cluster, 'first')
    await settle()
    fail(cluster, 'last')
    await settle()
    expect(kit.service()).toMatchObject({ removed: true })
    expect(jobs(cluster)).toEqual([])
    expect(
      kit.events().some(({ reason, message }) => reason === 'HookFailed' && message.includes('post-delete hook Job default/last')),
    ).toBeTrue()
  })

  test('HK10 letting go runs none', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire(REMOVAL_HOOKS())
    await run()
    writes(cluster)
    kit.remove('orphan')
    await settle()
    expect(writes(cluster)).toEqual(['patch ConfigMap a'])
    expect(kit.service()).toMatchObject({ removed: true })
  })

  test('HK10, PR7 none runs before the server confirmed the replica', async () => {
    let current = true
    const { cluster, kit, run, settle } = setup({ isCurrent: () => current })
    kit.desire(REMOVAL_HOOKS())
    await run()
    writes(cluster)
    current = false
    kit.remove('prune')
    await settle()
    expect(writes(cluster)).toEqual([])
    current = true
    kit.reconciler.becameCurrent()
    await settle()
    expect(writes(cluster)).toEqual(['apply Job first'])
  })

  test('HK10 a removal that is taken back goes on as before', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire(REMOVAL_HOOKS())
    await run()
    kit.remove('prune')
    await settle()
    kit.desire([hook('first', 'pre-delete'), hook('last', 'post-delete'), configMap('a', { v: 'new' })])
    await settle()
    expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ v: 'new' })
    succeed(cluster, 'first')
    await settle()
    expect(cluster.object(configMapRef('a'))).not.toBeNull()
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
  })

  test('OR5 a removal goes through the waves backwards', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([configMap('a'), waved(configMap('b'), 1), waved(configMap('c'), -1)])
    await run()
    writes(cluster)
    kit.remove('prune')
    await settle()
    expect(writes(cluster)).toEqual(['delete ConfigMap b', 'delete ConfigMap a', 'delete ConfigMap c'])
  })
})

/** What the disk held at a moment, and a new process that finds it so. */
async function crash(kit: ReconcileKit, cluster: FakeCluster, clock: Parameters<typeof createReconcileKit>[0]['clock'], statePath: string) {
  await kit.stop()
  kit.state.close()
  const next = createReconcileKit({ cluster, clock, statePath })
  for (const [key, read] of kit.replica.reads) next.replica.reads.set(key, read)
  track(next)
  next.start()
  return next
}

describe('a crash', () => {
  test.each(['before the request arrived', 'after the object was made', 'after it had ended', 'after it had ended and was gone'] as const)(
    'HK2 %s: the hook runs once',
    async (moment) => {
      const statePath = join(tempDir(), 'agent.sqlite')
      const { cluster, clock, settle, kit } = setup({ statePath })
      // The answer to the request is lost, and with it all that the process knew.
      let isDown = moment === 'before the request arrived'
      cluster.fail(({ verb, ref }) =>
        isDown && verb === 'apply' && ref?.kind === 'Job' ? { kind: 'unreachable', status: 0, reason: '', message: 'cut' } : null,
      )
      kit.desire([hook('before', 'pre-sync', { [POLICY]: 'hook-failed' }), configMap('a')])
      kit.start()
      await settle()
      if (moment.startsWith('after it had ended')) succeed(cluster, 'before')
      if (moment.startsWith('after it had ended')) await settle()
      if (moment.endsWith('gone')) cluster.deleteAs('ttl', jobRef('before'))
      isDown = false
      const next = await crash(kit, cluster, clock, statePath)
      await clock.advance(400_000)
      const made = jobs(cluster)
      expect(made).toEqual(moment.endsWith('gone') ? [] : ['before'])
      if (moment === 'before the request arrived' || moment === 'after the object was made') succeed(cluster, 'before')
      await settle()
      expect(next.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
      const applied = cluster.requests.filter(({ verb, ref }) => verb === 'apply' && ref?.kind === 'Job').length
      expect(applied).toBe(moment === 'before the request arrived' ? applied : 1)
      expect(cluster.object(configMapRef('a'))).not.toBeNull()
    },
  )

  test('HK2 between the object and its record: it is met again, not made again, also after a lost disk', async () => {
    const { cluster, clock, settle, kit } = setup()
    kit.desire([hook('before', 'pre-sync'), configMap('a')])
    kit.start()
    await settle()
    const { uid } = cluster.object(jobRef('before'))?.metadata ?? {}
    await kit.stop()
    const next = createReconcileKit({ cluster, clock })
    for (const [key, read] of kit.replica.reads) next.replica.reads.set(key, read)
    track(next)
    writes(cluster)
    next.start()
    await settle()
    expect(writes(cluster)).toEqual([])
    succeed(cluster, 'before')
    await settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap a'])
    expect(cluster.object(jobRef('before'))?.metadata.uid).toBe(uid as string)
  })

  test('HK2 killed at each request, before and after it: each run has one object, and all ends well', async () => {
    const failed: string[] = []
    for (let at = 1; at <= 14; at += 1) for (const when of ['before', 'after'] as const) failed.push(...(await killedAt(at, when)))
    expect(failed).toEqual([])
  }, 60_000)
})

/** Dies at its nth request: what it had not written by then is lost, and nothing that it waits for ever comes. */
async function killedAt(nth: number, when: 'before' | 'after'): Promise<string[]> {
  const statePath = join(tempDir(), 'agent.sqlite')
  const { cluster, clock, settle } = setup()
  let count = 0
  let isDead = false
  const never = new Promise<never>(() => {})
  const mortal = new Proxy(cluster, {
    get(target, name) {
      const value = Reflect.get(target, name)
      if (!['apply', 'get', 'delete', 'mergePatch'].includes(String(name)) || typeof value !== 'function') {
        return typeof value === 'function' ? value.bind(target) : value
      }
      return async (...args: unknown[]) => {
        count += 1
        if (isDead) return never
        if (count < nth) return value.apply(target, args)
        isDead = true
        const answer = when === 'after' ? value.apply(target, args) : null
        kit.state.close()
        await answer
        return never
      }
    },
  }) as Cluster
  const kit = createReconcileKit({ cluster: mortal, clock, statePath })
  const runs = new Map<string, Set<string>>()
  const controller = async () => {
    for (let i = 0; i < 12; i += 1) {
      await settle()
      for (const { kind, metadata, ...job } of cluster.objects()) {
        if (kind !== 'Job' || metadata.name === undefined) continue
        const run = metadata.annotations?.['skerry.dev/hook-run'] ?? ''
        runs.set(run, (runs.get(run) ?? new Set()).add(metadata.uid ?? ''))
        if (!('status' in job)) succeed(cluster, metadata.name)
      }
    }
  }
  const objects = (v: string) => [
    hook('before', 'pre-sync'),
    hook('after', 'post-sync', { [POLICY]: 'hook-succeeded' }),
    configMap('a', { v }),
  ]
  kit.desire(objects('1'))
  kit.start()
  await controller()
  if (!isDead) kit.desire(objects('2'))
  await controller()
  if (!isDead) return [`${nth} ${when}: never got there (${count})`]
  const next = createReconcileKit({ cluster, clock, statePath })
  track(next)
  next.desire(objects('2'))
  next.start()
  await controller()
  await clock.advance(400_000)
  await controller()
  const doubled = [...runs].flatMap(([run, uids]) => (uids.size === 1 ? [] : [`${nth} ${when}: run ${run} had ${uids.size} objects`]))
  const status = next.service()
  return status?.sync === 'Synced' && status.health === 'Healthy' ? doubled : [...doubled, `${nth} ${when}: ${JSON.stringify(status)}`]
}
