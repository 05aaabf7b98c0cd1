// A hook and an object of its name that none of its runs made: another service's, somebody's, an earlier ordinary
// object.
import { afterEach, expect, test } from 'bun:test'
import { listOnce } from '../../agent/cluster/list-once.ts'
import { objectText } from '../../agent/messages/object-messages.ts'
import { dropDeleted } from '../../agent/reconcile/apply/remember.ts'
import type { List } from '../../agent/reconcile/requests/placed-cluster.ts'
import { Resync } from '../../agent/reconcile/snapshot/watch/resync.ts'
import { Watches } from '../../agent/reconcile/snapshot/watch/watches.ts'
import { type K8sObject, refKey, refOf } from '../../shared/kube/object.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { deployment, hook, hooked, job, jobRef, POLICY, succeed } from '../support/hook-fixtures.ts'
import { setup, stopAll, writes } from '../support/reconcile-fixtures.ts'
import { configMap, configMapRef } from '../support/reconcile-kit.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

afterEach(stopAll)

const OTHER = { project: 'web', service: 'other' } as ServiceId

test.each<[string, K8sObject, K8sObject]>([
  ['Job and a hook Job', job('migrate', {}), hook('migrate', 'pre-sync')],
  ['hook Job and a hook Job', hook('migrate', 'pre-sync'), hook('migrate', 'pre-sync')],
  ['Deployment', deployment('web'), hooked(deployment('web'), 'pre-sync')],
  ['ConfigMap', configMap('settings', { from: 'other' }), hooked(configMap('settings', { from: 'hook' }), 'pre-sync')],
])('HK11 a hook deletes no object of another service: %s', async (_, theirs, ours) => {
  const { cluster, kit, run, clock } = setup()
  const ref = refOf(theirs)
  // The same set: the ids of both runs are equal.
  kit.desire([theirs, configMap('x')], {}, OTHER)
  await run()
  const uid = cluster.object(ref)?.metadata.uid
  writes(cluster)
  kit.desire([ours, configMap('x')])
  await clock.advance(600_000)
  expect(writes(cluster)).toEqual([])
  expect(cluster.object(ref)?.metadata.uid).toBe(uid as string)
  expect(kit.service()).toMatchObject({ reason: 'WaitingForHook' })
  expect(kit.service()?.message).toContain('service web/other')
})

test('HK11 a Job that carries our label only is kept, and the hook says what to do', async () => {
  const { cluster, kit, run, clock } = setup()
  kit.desire([configMap('x'), job('seed', {})])
  await run()
  const { labels, annotations } = cluster.object(jobRef('seed'))?.metadata ?? {}
  const copy = job('migrate', {})
  cluster.applyAs('kubectl', {
    ...copy,
    metadata: { ...copy.metadata, ...(labels ? { labels } : {}), ...(annotations ? { annotations } : {}) },
  })
  await clock.advance(1_000)
  writes(cluster)
  kit.desire([configMap('x'), job('seed', {}), hook('migrate', 'pre-sync')])
  await clock.advance(60_000)
  expect(writes(cluster)).toEqual([])
  expect(kit.service()?.message).toContain(objectText('AlreadyExists'))
})

test('HK11 a Job of the service that became a hook is made anew', async () => {
  const { cluster, kit, run, settle } = setup()
  kit.desire([job('migrate', {}), configMap('x')])
  await run()
  writes(cluster)
  kit.desire([hook('migrate', 'pre-sync'), configMap('x')])
  await settle()
  expect(writes(cluster)).toEqual(['delete Job migrate', 'apply Job migrate'])
})

/** Watches of an inventory with one ConfigMap, which this agent deleted for somebody else. */
async function dropped() {
  const clock = createVirtualClock()
  const cluster = createFakeCluster({ clock })
  const [resource] = (await cluster.discover()).resources.filter(({ kind }) => kind === 'ConfigMap')
  if (resource === undefined) throw new Error('the fake serves ConfigMaps')
  const { signal } = new AbortController()
  const told: string[] = []
  const sink = {
    met: () => {},
    turned: () => {},
    unserved: () => {},
    doubted: () => {},
    changed: (key: string, live: unknown) => void (live ?? told.push(key)),
  }
  const ref = configMapRef('a')
  const owned = { expected: () => [ref], expects: () => true, misses: () => false, minds: () => false }
  const common = { clock, random: seededRandom(1), log: silentLogger, signal }
  const watches = new Watches({ ...common, cluster, owned, sink })
  const marked = { ...configMap('a'), metadata: { ...configMap('a').metadata, labels: { 'skerry.dev/service': 'web.shop' } } }
  const uid = cluster.applyAs('skerry', marked).metadata.uid ?? ''
  watches.follow(new Map([['/v1/ConfigMap', resource]]))
  await clock.advance(10)
  const step = { kind: 'delete', key: refKey(ref), ref, resource, uid, resourceVersion: '1', permit: {} as never } as const
  const drop = async (work: () => void) => {
    cluster.withoutEvents(() => cluster.deleteAs('skerry', ref))
    work()
    await clock.advance(10)
  }
  return { ...common, cluster, watches, told, step, drop }
}

test('HK12 the owner of an object is told that it was deleted for another service', async () => {
  const { watches, step, drop } = await dropped()
  const marked: string[] = []
  const woken: string[] = []
  const other = { key: 'web/other', queue: { mark: (key: string) => void marked.push(key) } }
  const deps = { watches, owners: new Map([[step.key, OTHER]]), modelOf: () => other as never, wake: (key: string) => void woken.push(key) }
  await drop(() => dropDeleted({ key: 'web/shop' } as never, deps, step))
  expect([marked, woken]).toEqual([[step.key], ['web/other']])
})

test('LS6 an object of an inventory that is gone without its service knowing is told to it', async () => {
  const { cluster, clock, log, watches, told, step, drop } = await dropped()
  await drop(() => watches.drop(step.resource, step.key))
  expect(told).toEqual([])
  const list: List = (resource, options, take) => listOnce(cluster, resource, options, take)
  const stop = new AbortController()
  const resync = new Resync({
    list,
    clusterId: 'c-1',
    intervalMs: 3_600_000,
    clock,
    log,
    signal: stop.signal,
    watches: () => watches.kinds(),
  })
  void resync.run()
  await clock.advance(3_700_000)
  stop.abort()
  expect(told).toEqual([step.key])
})

test.each([
  ['the object of the previous run', {}, '2'],
  ['an object that goes by its policy', { [POLICY]: 'hook-succeeded' }, '1'],
])('PR12 a keep mark that came a moment before counts: %s', async (_, policy, value) => {
  const { cluster, kit, run, clock } = setup()
  kit.desire([hook('migrate', 'pre-sync', policy), configMap('x', { v: '1' })])
  await run()
  const uid = cluster.object(jobRef('migrate'))?.metadata.uid
  const mark = { metadata: { annotations: { 'skerry.dev/prune': 'disabled' } } }
  cluster.fail(({ verb, ref }) => {
    if (
      verb === 'delete' &&
      ref?.name === 'migrate' &&
      cluster.object(jobRef('migrate'))?.metadata.annotations?.['skerry.dev/prune'] === undefined
    )
      cluster.patchAs('kubectl', jobRef('migrate'), mark)
    return null
  })
  succeed(cluster, 'migrate')
  await clock.advance(1_000)
  kit.desire([hook('migrate', 'pre-sync', policy), configMap('x', { v: value })])
  await clock.advance(60_000)
  expect(cluster.object(jobRef('migrate'))?.metadata.uid).toBe(uid as string)
})

const claim = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'moved', namespace: 'default' }, spec: {} } as K8sObject

test.each<[string, K8sObject, boolean]>([
  ['ConfigMap', configMap('moved'), true],
  ['PersistentVolumeClaim', claim, true],
  ['Job', job('moved', {}), false],
])('HK13 a %s that becomes a hook of another service in one commit, in both orders', async (_, object, stays) => {
  for (const takerIsFirst of [true, false]) {
    const { cluster, kit, run, clock } = setup()
    kit.desire([configMap('own'), object])
    const after = kit.desire([configMap('own-other')], {}, OTHER)
    await run()
    const uid = cluster.object(refOf(object))?.metadata.uid
    const give = () => kit.desire([configMap('own')], { handover: [{ object: refKey(refOf(object)), ...OTHER, after }] })
    const take = () => kit.desire([configMap('own-other'), hooked(object, 'pre-sync')], {}, OTHER)
    for (const turn of takerIsFirst ? [take, give] : [give, take]) {
      turn()
      await clock.advance(5_000)
    }
    const found = cluster.object(refOf(object))
    expect([found === null, found?.metadata.uid === uid]).toEqual([false, stays])
    expect(found?.metadata.labels?.['skerry.dev/service']).toBe('web.other')
    expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
    await stopAll()
  }
})
