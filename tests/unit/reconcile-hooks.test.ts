// Hooks of a revision on the fake API server: who waits for whom, what runs once, what survives a restart.
import { afterEach, describe, expect, test } from 'bun:test'
import { objectText } from '../../agent/messages/object-messages.ts'
import { orderText } from '../../agent/messages/service-messages.ts'
import { type K8sObject, refKey } from '../../shared/kube/object.ts'
import {
  annotated,
  deployment,
  deploymentRef,
  fail,
  hook,
  hooked,
  job,
  jobKey,
  jobRef,
  jobs,
  POLICY,
  ready,
  succeed,
  WAVE,
  waved,
} from '../support/hook-fixtures.ts'
import { namespace, setup, stopAll, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapKey, configMapRef, SHOP } from '../support/reconcile-kit.ts'
import { SOME, said } from '../support/said.ts'

afterEach(stopAll)

const inNamespace = (object: K8sObject, name: string): K8sObject => ({ ...object, metadata: { ...object.metadata, namespace: name } })

describe('phases', () => {
  test('HK2, HK3 pre-sync before any change, post-sync after health, each once', async () => {
    const { cluster, kit, run, settle, clock } = setup()
    const objects = [hook('before', 'pre-sync'), hook('after', 'post-sync'), deployment('web')]
    kit.desire(objects)
    await run()
    expect(writes(cluster)).toEqual(['apply Job before'])
    const web = refKey(deploymentRef('web'))
    expect(kit.object(web)).toMatchObject({ reason: 'WaitingForHook' })
    expect(kit.object(web)?.message).toMatch(
      said(orderText('hook_running', { what: orderText('hook', { phase: 'pre-sync', object: 'Job default/before' }), since: SOME })),
    )
    expect(kit.service()).toMatchObject({ sync: 'OutOfSync', reason: 'WaitingForHook', objectCount: 1 })
    succeed(cluster, 'before')
    await settle()
    expect(writes(cluster)).toEqual(['apply Deployment web'])
    expect(kit.service()?.applied).toBeDefined()
    ready(cluster, 'web')
    await settle()
    expect(writes(cluster)).toEqual(['apply Job after'])
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Progressing', reason: 'WaitingForHook' })
    expect(kit.service()?.healthy).toBeUndefined()
    succeed(cluster, 'after')
    await settle()
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy', reason: 'Synced', objectCount: 1, healthyCount: 1 })
    expect(kit.service()?.healthy).toBeDefined()
    kit.desire(objects)
    await settle()
    await kit.stop()
    await run()
    await clock.advance(3_600_000)
    expect(writes(cluster)).toEqual([])
  })

  test('HK2 another revision runs them again, each with a new object', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([hook('before', 'pre-sync'), configMap('a', { v: '1' })])
    await run()
    const first = cluster.object(jobRef('before'))?.metadata.uid
    succeed(cluster, 'before')
    await settle()
    writes(cluster)
    kit.desire([hook('before', 'pre-sync'), configMap('a', { v: '2' })])
    await settle()
    expect(writes(cluster)).toEqual(['delete Job before', 'apply Job before'])
    expect(cluster.object(jobRef('before'))?.metadata.uid).not.toBe(first)
    expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ v: '1' })
    succeed(cluster, 'before')
    await settle()
    expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ v: '2' })
  })

  test('HK2 a revision that comes back runs its hooks again, also after a restart in the middle', async () => {
    const { cluster, kit, run, settle } = setup()
    const revision = (image: string) => [deployment('web', image), hook('after', 'post-sync')]
    kit.desire(revision('a:1'))
    await run()
    for (const next of ['a:2', 'a:1']) {
      ready(cluster, 'web')
      await settle()
      succeed(cluster, 'after')
      await settle()
      kit.desire(revision(next))
      await settle()
    }
    await kit.stop()
    await run()
    writes(cluster)
    ready(cluster, 'web')
    await settle()
    expect(writes(cluster)).toEqual(['delete Job after', 'apply Job after'])
  })

  test('HK4, DR6 a failed pre-sync keeps what is applied in force, heals it, and runs sync-fail', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([configMap('a', { v: '1' })])
    await run()
    kit.desire([hook('before', 'pre-sync'), hook('rescue', 'sync-fail'), configMap('a', { v: '2' }), configMap('b')])
    await settle()
    writes(cluster)
    fail(cluster, 'before')
    await settle()
    expect(writes(cluster)).toEqual(['apply Job rescue'])
    expect(kit.service()).toMatchObject({ sync: 'OutOfSync', health: 'Degraded', reason: 'HookFailed' })
    expect(kit.service()?.message).toMatch(
      said(
        orderText('hook_failed', {
          what: orderText('hook', { phase: 'pre-sync', object: 'Job default/before' }),
          since: SOME,
          why: `${SOME}it has no database`,
        }),
      ),
    )
    cluster.editAs('kubectl-edit', configMapRef('a'), (object) => Object.assign(object, { data: { v: 'edited' } }))
    await settle()
    expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ v: '1' })
    expect(cluster.object(configMapRef('b'))).toBeNull()
    await kit.stop()
    await run()
    expect(writes(cluster).filter((write) => write.includes('Job'))).toEqual([])
    expect(kit.service()).toMatchObject({ reason: 'HookFailed', health: 'Degraded' })
  })

  test('HK3, HK4 a failed post-sync leaves the service Degraded, applied and not healthy', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([hook('after', 'post-sync', { [POLICY]: 'hook-failed' }), configMap('a')])
    await run()
    fail(cluster, 'after')
    await settle()
    expect(cluster.object(jobRef('after'))).toBeNull()
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Degraded', reason: 'HookFailed' })
    expect(kit.service()?.message).toContain('it has no database')
    expect(kit.service()?.applied).toBeDefined()
    expect(kit.service()?.healthy).toBeUndefined()
  })

  test('HK4 sync-fail runs when an object of the sync phase is Degraded past its deadline', async () => {
    const { cluster, kit, run, clock } = setup()
    kit.desire([hook('rescue', 'sync-fail'), deployment('web')], { sync: { healthDeadline: '1m' } })
    await run()
    expect(writes(cluster)).toEqual(['apply Deployment web'])
    await clock.advance(61_000)
    expect(writes(cluster)).toEqual(['apply Job rescue'])
    await clock.advance(3_600_000)
    expect(writes(cluster)).toEqual([])
  })

  test('HK2, HK4 hooks of a phase go by waves, those of one wave at once, and a failure begins no more', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([hook('a', 'pre-sync'), hook('b', 'pre-sync'), hook('c', 'pre-sync', { [WAVE]: '1' }), configMap('x')])
    await run()
    expect(writes(cluster).sort()).toEqual(['apply Job a', 'apply Job b'])
    succeed(cluster, 'a')
    await settle()
    expect(writes(cluster)).toEqual([])
    fail(cluster, 'b')
    await settle()
    expect(writes(cluster)).toEqual([])
    expect(kit.service()?.reason).toBe('HookFailed')
  })

  test('HK3, OR4 sync hooks run beside the objects of their wave, and later waves wait for them', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([hook('seed', 'sync'), configMap('x'), waved(configMap('late'), 1)])
    await run()
    expect(writes(cluster).sort()).toEqual(['apply ConfigMap x', 'apply Job seed'])
    expect(kit.object(configMapKey('late'))).toMatchObject({ reason: 'WaitingForHook' })
    expect(kit.service()?.applied).toBeUndefined()
    succeed(cluster, 'seed')
    await settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap late'])
  })

  test('HK3 a kind without health is done when it is applied, a Pod when it has succeeded', async () => {
    const { cluster, kit, run, settle } = setup()
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p', namespace: 'default' },
      spec: { containers: [{ name: 'a', image: 'a' }] },
    }
    const ref = { group: '', kind: 'Pod', namespace: 'default', name: 'p' }
    kit.desire([
      hooked(configMap('settings'), 'pre-sync', { [WAVE]: '-1' }),
      hooked(pod as unknown as K8sObject, 'pre-sync'),
      configMap('x'),
    ])
    await run()
    expect(writes(cluster)).toEqual(['apply ConfigMap settings', 'apply Pod p'])
    cluster.setStatus(ref, { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] })
    await settle()
    expect(writes(cluster)).toEqual([])
    cluster.setStatus(ref, { phase: 'Succeeded', conditions: [{ type: 'Ready', status: 'False', reason: 'PodCompleted' }] })
    await settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap x'])
  })

  test('RC11, OR3 the namespaces that hooks live in come before them', async () => {
    const { cluster, kit, run } = setup()
    const hooks = [inNamespace(hook('before', 'pre-sync'), 'shop'), inNamespace(hook('more', 'pre-sync'), 'made')]
    kit.desire([...hooks, namespace('made'), configMap('a', {}, 'shop')], { namespace: 'shop' })
    await run()
    expect(writes(cluster).sort()).toEqual(['apply Job before', 'apply Job more', 'apply Namespace made', 'apply Namespace shop'])
  })

  test('HK1 what is skipped is neither applied nor deleted, and not missed', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([configMap('a'), configMap('b')])
    await run()
    writes(cluster)
    const off = annotated(configMap('a', { v: 'new' }), { 'argocd.argoproj.io/hook': 'Skip' })
    kit.desire([off, configMap('b'), job('t', { 'helm.sh/hook': 'test' })])
    await settle()
    expect(writes(cluster)).toEqual([])
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy', objectCount: 1 })
  })
})

describe('objects of hooks', () => {
  test('HK7 a finished Job that its TTL took is done: not healed, not run again, out of the inventory', async () => {
    const { cluster, kit, run, settle, clock } = setup()
    kit.desire([hook('before', 'pre-sync'), configMap('a')])
    await run()
    succeed(cluster, 'before')
    // Before anybody had a turn.
    cluster.deleteAs('ttl', jobRef('before'))
    await settle()
    expect(cluster.object(configMapRef('a'))).not.toBeNull()
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
    expect(kit.object(jobKey('before'))).toBeNull()
    writes(cluster)
    await kit.stop()
    await run()
    await clock.advance(600_000)
    expect(writes(cluster)).toEqual([])
    expect(kit.state.inventory(SHOP).map(({ ref }) => ref.name)).toEqual(['a'])
  })

  test('HK7 one that ended and went while its service was busy is done', async () => {
    const { cluster, kit, run, settle, clock } = setup()
    const apply = cluster.apply.bind(cluster)
    cluster.apply = async (resource, object, options) => {
      if (object.metadata.name === 'slow') await clock.sleep(5_000)
      return apply(resource, object, options)
    }
    kit.desire([hook('first', 'sync')])
    await run()
    succeed(cluster, 'first')
    await settle()
    writes(cluster)
    kit.desire([hook('seed', 'sync'), configMap('slow')]) // Jobs are watched by now
    await settle()
    succeed(cluster, 'seed')
    await settle()
    cluster.deleteAs('ttl', jobRef('seed'))
    await settle()
    expect(cluster.object(configMapRef('slow'))).toBeNull()
    await clock.advance(10_000)
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
    expect(writes(cluster)).toEqual(['apply Job seed', 'apply ConfigMap slow', 'delete Job first'])
  })

  test('HK7 drift of a hook is left alone while it runs, and a finished one does not come back', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([hook('before', 'pre-sync'), configMap('a')])
    await run()
    writes(cluster)
    cluster.editAs('kubectl-label', jobRef('before'), (object) => Object.assign(object.metadata.annotations ?? {}, { [POLICY]: 'x' }))
    await settle()
    succeed(cluster, 'before')
    await settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap a'])
    cluster.deleteAs('kubectl', jobRef('before'))
    await settle()
    expect(writes(cluster)).toEqual([])
    expect(cluster.object(jobRef('before'))).toBeNull()
  })

  test('HK4 a hook that somebody deletes before it ended has failed', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([hook('before', 'pre-sync'), configMap('a')])
    await run()
    cluster.deleteAs('kubectl', jobRef('before'))
    await settle()
    expect(kit.service()).toMatchObject({ reason: 'HookFailed' })
    expect(kit.service()?.message).toContain(orderText('run_deleted'))
    expect(cluster.object(configMapRef('a'))).toBeNull()
  })

  test.each([
    ['hook-succeeded', 'succeed', false],
    ['hook-succeeded', 'fail', true],
    ['hook-failed', 'succeed', true],
    ['hook-failed', 'fail', false],
    ['before-hook-creation', 'succeed', true],
    ['hook-succeeded,hook-failed', 'fail', false],
  ] as const)('HK6 policy %s after %s: kept %p', async (policy, end, kept) => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([hook('before', 'pre-sync', { [POLICY]: policy }), configMap('a')])
    await run()
    if (end === 'succeed') succeed(cluster, 'before')
    else fail(cluster, 'before')
    await settle()
    expect(cluster.object(jobRef('before')) !== null).toBe(kept)
    expect(kit.state.inventory(SHOP).some(({ ref }) => ref.kind === 'Job')).toBe(kept)
    expect(cluster.object(configMapRef('a')) !== null).toBe(end === 'succeed')
  })

  test('HK6 what hook-succeeded deletes stays until its phase is over: the account that the Job runs as', async () => {
    const { cluster, kit, run, settle } = setup()
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'sa', namespace: 'default' } } as unknown as K8sObject
    const policy = { [POLICY]: 'hook-succeeded' }
    kit.desire([hooked(account, 'pre-sync', { [WAVE]: '-5', ...policy }), hook('before', 'pre-sync', policy), configMap('a')])
    await run()
    expect(writes(cluster)).toEqual(['apply ServiceAccount sa', 'apply Job before'])
    succeed(cluster, 'before')
    await settle()
    expect(writes(cluster).sort()).toEqual(['apply ConfigMap a', 'delete Job before', 'delete ServiceAccount sa'])
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
  })

  test('HK6 what holds data is applied over and never deleted by a policy', async () => {
    const { cluster, kit, run, settle } = setup()
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'data', namespace: 'default' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
    } as unknown as K8sObject
    const ref = { group: '', kind: 'PersistentVolumeClaim', namespace: 'default', name: 'data' }
    const objects = (v: string) => [hooked(claim, 'pre-sync', { [POLICY]: 'before-hook-creation,hook-succeeded' }), configMap('a', { v })]
    kit.desire(objects('1'))
    await run()
    cluster.setStatus(ref, { phase: 'Bound' })
    await settle()
    kit.desire(objects('2'))
    await settle()
    expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ v: '2' })
    expect(writes(cluster).filter((write) => write.startsWith('delete'))).toEqual([])
  })

  test('HK8 a hook that left Git goes when it has ended', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([hook('before', 'pre-sync'), configMap('a')])
    await run()
    succeed(cluster, 'before')
    await settle()
    writes(cluster)
    kit.desire([configMap('a')])
    await settle()
    expect(writes(cluster)).toEqual(['delete Job before'])
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
    expect(kit.state.facts(SHOP, 'hook/').size).toBe(0)
  })

  test('HK9 generateName: a name for each run, the same after a restart; the one before goes', async () => {
    const { cluster, kit, run, settle } = setup()
    const { name: _, ...metadata } = hook('', 'pre-sync').metadata
    const generated = { ...hook('', 'pre-sync'), metadata: { ...metadata, generateName: 'migrate-' } } as K8sObject
    kit.desire([generated, configMap('a', { v: '1' })])
    await run()
    const [first = ''] = jobs(cluster)
    expect(first).toMatch(/^migrate-[0-9a-f]{10}$/)
    await kit.stop()
    await run()
    expect(jobs(cluster)).toEqual([first])
    succeed(cluster, first)
    await settle()
    kit.desire([generated, configMap('a', { v: '2' })])
    await settle()
    const [second = '', ...more] = jobs(cluster)
    expect(more).toEqual([])
    expect(second).not.toBe(first)
    succeed(cluster, second)
    await settle()
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
    expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ v: '2' })
  })

  test('RC3 an object of somebody else under the name of a hook is neither deleted nor taken', async () => {
    const { cluster, kit, run, settle, clock } = setup()
    cluster.applyAs('kubectl', job('before', {}))
    kit.desire([hook('before', 'pre-sync'), configMap('a')])
    await run()
    expect(writes(cluster)).toEqual([])
    expect(kit.service()?.message).toContain(objectText('AlreadyExists'))
    cluster.deleteAs('kubectl', jobRef('before'))
    await settle()
    await clock.advance(300_000)
    expect(writes(cluster)).toEqual(['apply Job before'])
  })

  test('RC8, HK4 a refused request for a hook is repeated; one that is refused for good fails the hook', async () => {
    const { cluster, kit, run, clock } = setup()
    const refusal = { kind: 'server_error', status: 500, reason: '', message: 'no' } as const
    cluster.fail(({ verb, ref }) => (verb === 'apply' && ref?.kind === 'Job' ? refusal : null))
    kit.desire([hook('before', 'pre-sync'), configMap('a')])
    await run()
    await clock.advance(60_000)
    const attempts = writes(cluster).length
    expect(attempts).toBeGreaterThan(2)
    expect(attempts).toBeLessThan(30)
    const invalid = { kind: 'invalid', status: 422, reason: 'Invalid', message: 'no such field' } as const
    cluster.fail(({ verb, ref }) => (verb === 'apply' && ref?.kind === 'Job' ? invalid : null))
    await clock.advance(300_000)
    expect(kit.service()).toMatchObject({ reason: 'HookFailed', health: 'Degraded' })
    expect(kit.service()?.message).toContain('no such field')
    writes(cluster)
    await clock.advance(3_600_000)
    expect(writes(cluster)).toEqual([])
  })
})

describe('a newer revision', () => {
  test('HK5, RC14 deletes the running hook of the older one', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([hook('before', 'pre-sync'), configMap('a', { v: '1' })])
    await run()
    writes(cluster)
    kit.desire([hook('before', 'pre-sync'), configMap('a', { v: '2' })])
    await settle()
    expect(writes(cluster)).toEqual(['delete Job before', 'apply Job before'])
    succeed(cluster, 'before')
    await settle()
    expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ v: '2' })
  })

  test('HK5 lets it end first where before-hook-creation is not among its policies', async () => {
    const { cluster, kit, run, settle } = setup()
    const policy = { [POLICY]: 'hook-succeeded' }
    kit.desire([hook('before', 'pre-sync', policy), configMap('a', { v: '1' })])
    await run()
    writes(cluster)
    kit.desire([hook('before', 'pre-sync', policy), configMap('a', { v: '2' })])
    await settle()
    expect(writes(cluster)).toEqual([])
    fail(cluster, 'before')
    await settle()
    expect(writes(cluster)).toEqual(['delete Job before', 'apply Job before'])
  })

  test('HK5, HK8 one that leaves Git while it runs is left to end', async () => {
    const { cluster, kit, run, settle } = setup()
    kit.desire([hook('before', 'pre-sync'), configMap('a', { v: '1' })])
    await run()
    writes(cluster)
    kit.desire([configMap('a', { v: '2' })])
    await settle()
    expect(writes(cluster)).toEqual(['apply ConfigMap a'])
    succeed(cluster, 'before')
    await settle()
    expect(writes(cluster)).toEqual(['delete Job before'])
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
  })
})

test('RC20, HK3 what begins to go while it is applied over is made again when it is gone', async () => {
  const { clock, cluster, kit, run, settle } = setup()
  const revision = (v: string) => [hooked(configMap('before'), 'pre-sync', { [POLICY]: 'hook-failed' }), configMap('a', { v })]
  kit.desire(revision('1'))
  await run()
  cluster.editAs('somebody', configMapRef('before'), (object) => Object.assign(object.metadata, { finalizers: ['example.com/hold'] }))
  await settle()
  let once = true
  cluster.fail(({ verb, ref }) => {
    if (verb === 'apply' && ref?.name === 'before' && once) {
      once = false
      cluster.deleteAs('somebody', configMapRef('before'))
    }
    return null
  })
  kit.desire(revision('2'))
  await settle()
  expect(cluster.object(configMapRef('a'))).toMatchObject({ data: { v: '1' } })
  cluster.editAs('somebody', configMapRef('before'), (object) => Object.assign(object.metadata, { finalizers: [] }))
  await clock.advance(600_000)
  expect(cluster.object(configMapRef('before'))?.metadata.deletionTimestamp).toBeUndefined()
  expect(cluster.object(configMapRef('a'))).toMatchObject({ data: { v: '2' } })
  expect(kit.service()).toMatchObject({ reason: 'Synced' })
})
