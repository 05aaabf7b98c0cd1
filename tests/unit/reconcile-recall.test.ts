// Removal orders on the fake API server: what they find where the inventory was lost and only the marks are left to go
// by, and how they are answered.
import { afterEach, describe, expect, test } from 'bun:test'
import type { ApiFailure } from '../../agent/cluster/cluster.ts'
import { SERVICE_LABEL, TRACKING_ANNOTATION } from '../../shared/kube/marks.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { crd, denied, isClaim, setup, stopAll, thing, track, writes } from '../support/reconcile-fixtures.ts'
import { CLUSTER_ID, configMap, configMapRef, createReconcileKit, SHOP } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const OTHER = { project: 'web', service: 'other' }
const marked = (name: string, tracking: string): K8sObject => {
  const object = configMap(name)
  Object.assign(object.metadata, { labels: { [SERVICE_LABEL]: 'web.shop' }, annotations: { [TRACKING_ANNOTATION]: tracking } })
  return object
}

/** The shop of an agent whose disk is gone, beside what only looks like it; and an agent that knows nothing. */
async function lost() {
  const { cluster, clock, kit, run } = setup()
  kit.desire([crd, thing('t'), configMap('a'), configMap('b')])
  kit.desire([configMap('theirs')], {}, OTHER)
  await run()
  await clock.advance(5_000)
  await kit.stop()
  cluster.applyAs('somebody', marked('elsewhere', `c-anothercluster00/web/shop:/ConfigMap/default/elsewhere`))
  cluster.applyAs('controller', marked('copied', `${CLUSTER_ID}/web/shop:/ConfigMap/default/a`))
  writes(cluster)
  const second = createReconcileKit({ cluster, clock })
  track(second)
  return { cluster, clock, kit: second }
}
const apiService = (group: string): K8sObject => ({
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  metadata: { name: `v1.${group}` },
  spec: { group, version: 'v1', service: { name: 'api', namespace: 'default' }, groupPriorityMinimum: 1_000, versionPriority: 10 },
})
const OURS = ['delete Thing t', 'delete ConfigMap a', 'delete ConfigMap b', 'delete CustomResourceDefinition things.example.com']
const lists = (requests: ReadonlyArray<{ verb: string; kind?: string }>, kind: string) =>
  requests.filter((request) => request.verb === 'watch' && request.kind === kind).length

describe('a removal order', () => {
  test('IV6 exactly what is marked as the service’s goes, and then the service is reported removed', async () => {
    const { cluster, clock, kit } = await lost()
    kit.remove('prune')
    kit.start()
    await clock.advance(5_000)
    expect(writes(cluster)).toEqual(OURS)
    expect(kit.service()).toMatchObject({ removed: true, reason: 'Removed' })
    expect(kit.events().filter(({ reason }) => reason === 'Removed')).toHaveLength(1)
    for (const name of ['elsewhere', 'copied', 'theirs']) expect(cluster.object(configMapRef(name))).not.toBeNull()
  })

  test('IV6, IV10 a custom kind that discovery leaves out, although its CRD is Established, is waited for', async () => {
    const { cluster, clock, kit } = await lost()
    cluster.serveAllBut(['example.com'])
    kit.remove('prune')
    kit.start()
    await clock.advance(3_600_000)
    expect(writes(cluster)).toEqual([])
    expect(kit.service()?.removed).toBeUndefined()
    expect(kit.service()?.message).toContain('CustomResourceDefinition things.example.com')
    cluster.serveAllBut([])
    await clock.advance(600_000)
    expect(writes(cluster)).toEqual(OURS)
    expect(kit.service()).toMatchObject({ removed: true })
  })

  test('IV10 an agent that may not list CRDs searches the kinds that discovery lists', async () => {
    const { cluster, clock, kit } = await lost()
    cluster.fail(({ verb, kind }) => (verb === 'watch' && kind === 'CustomResourceDefinition' ? denied : null))
    kit.remove('prune')
    kit.start()
    await clock.advance(5_000)
    expect(writes(cluster)).toEqual(OURS.slice(0, 3))
  })

  test('IV6 what is being deleted already is waited for: its finalizer may need the rest', async () => {
    const { cluster, clock, kit } = await lost()
    const ref = { group: 'example.com', kind: 'Thing', namespace: '', name: 't' }
    cluster.editAs('controller', ref, (object) => Object.assign(object.metadata, { finalizers: ['example.com/cleanup'] }))
    cluster.deleteAs('somebody', ref)
    kit.remove('prune')
    kit.start()
    await clock.advance(5_000)
    expect(writes(cluster)).toEqual([])
    expect(kit.service()).toMatchObject({ sync: 'OutOfSync', reason: 'Removing', message: expect.stringContaining('example.com/cleanup') })
    cluster.editAs('controller', ref, (object) => Object.assign(object.metadata, { finalizers: [] }))
    await clock.advance(60_000)
    expect(writes(cluster)).toEqual(OURS.slice(1))
    expect(kit.service()).toMatchObject({ removed: true })
  })

  test('IV3 PR6 after a lost disk a prune waits for what is being deleted already', async () => {
    const { cluster, clock, kit } = await lost()
    const ref = { group: 'example.com', kind: 'Thing', namespace: '', name: 't' }
    cluster.editAs('controller', ref, (object) => Object.assign(object.metadata, { finalizers: ['example.com/cleanup'] }))
    cluster.deleteAs('somebody', ref)
    kit.desire([crd, configMap('a'), configMap('b'), thing('other')])
    kit.start()
    await clock.advance(5_000)
    writes(cluster)
    const digest = kit.desire([configMap('a'), configMap('b')])
    kit.desire([configMap('a'), configMap('b')], { pruneConfirmed: digest })
    await clock.advance(60_000)
    expect(writes(cluster)).toEqual(['delete Thing other'])
    cluster.editAs('controller', ref, (object) => Object.assign(object.metadata, { finalizers: [] }))
    await clock.advance(60_000)
    expect(writes(cluster)).toEqual(['delete CustomResourceDefinition things.example.com'])
  })

  test('IV6 an orphaning order lets the same objects go', async () => {
    const { cluster, clock, kit } = await lost()
    kit.remove('orphan')
    kit.start()
    await clock.advance(5_000)
    expect(writes(cluster).sort()).toEqual(OURS.map((line) => line.replace('delete', 'patch')).sort())
    expect(cluster.object(configMapRef('a'))?.metadata.labels?.[SERVICE_LABEL]).toBeUndefined()
  })

  test('IV6 while one kind gives no answer nothing goes and nothing is called removed', async () => {
    const { cluster, clock, kit } = await lost()
    const down: ApiFailure = { kind: 'server_error', status: 503, reason: 'ServiceUnavailable', message: 'etcd has no leader' }
    cluster.fail(({ verb, kind }) => (verb === 'watch' && kind === 'Secret' ? down : null))
    kit.remove('prune')
    kit.start()
    await clock.advance(60_000)
    expect(writes(cluster)).toEqual([])
    expect(kit.service()).toMatchObject({ sync: 'OutOfSync', reason: 'Removing' })
    expect(kit.service()?.message).toContain('etcd has no leader')
    cluster.fail(() => null)
    await clock.advance(300_000)
    expect(writes(cluster)).toEqual(OURS)
    expect(kit.service()).toMatchObject({ removed: true })
  })

  test.each([
    ['waits for a group that has not answered since the start', 'sea.example', false],
    ['does not wait for metrics, which nobody stores', 'metrics.k8s.io', true],
  ])('IV6 %s', async (_, group, removed) => {
    const { cluster, clock, kit } = await lost()
    cluster.applyAs('somebody', apiService(group))
    kit.remove('prune')
    kit.start()
    await clock.advance(600_000)
    expect(kit.service()?.removed === true).toBe(removed)
    if (removed) return
    expect(writes(cluster)).toEqual([])
    expect(kit.service()?.message).toContain(group)
    const boats = {
      group,
      version: 'v1',
      kind: 'Boat',
      plural: 'boats',
      namespaced: true,
      verbs: ['list', 'watch', 'get', 'patch', 'delete'],
    }
    cluster.serveAggregated(boats)
    const tracking = { [TRACKING_ANNOTATION]: `${CLUSTER_ID}/web/shop:${group}/Boat/default/b` }
    const metadata = { name: 'b', namespace: 'default', labels: { [SERVICE_LABEL]: 'web.shop' }, annotations: tracking }
    cluster.applyAs('skerry', { apiVersion: `${group}/v1`, kind: 'Boat', metadata })
    await clock.advance(600_000)
    expect(writes(cluster).sort()).toEqual(['delete Boat b', ...OURS].sort())
    expect(kit.service()).toMatchObject({ removed: true })
  })

  test('IV6 a kind that the agent may not see holds nothing of its', async () => {
    const { cluster, clock, kit } = await lost()
    cluster.fail(({ verb, kind }) => (verb === 'watch' && kind === 'Secret' ? denied : null))
    kit.remove('prune')
    kit.start()
    await clock.advance(5_000)
    expect(writes(cluster)).toEqual(OURS)
  })

  test('IV6 a cluster that never had the service is looked at once, with no write', async () => {
    const { cluster, clock, kit, run } = setup()
    kit.remove('prune')
    await run()
    expect(kit.service()).toMatchObject({ removed: true })
    expect(lists(cluster.requests, 'Secret')).toBe(1)
    kit.remove('prune')
    await clock.advance(3_600_000)
    expect(writes(cluster)).toEqual([])
    expect(lists(cluster.requests, 'Secret')).toBe(0)
  })

  test('IV6 an order looks in every kind once, also with an inventory, and leaves what it knows as it was', async () => {
    const { cluster, clock, kit, run } = setup()
    kit.desire([configMap('a'), configMap('b')])
    await run()
    cluster.requests.splice(0)
    kit.remove('prune')
    await clock.advance(3_600_000)
    expect(lists(cluster.requests, 'Secret')).toBe(1)
    expect(writes(cluster)).toEqual(['delete ConfigMap a', 'delete ConfigMap b'])
    expect(kit.service()).toMatchObject({ removed: true })
  })

  test('IV6 a kind that the revision named no more when the disk was lost is found by the order', async () => {
    const { cluster, clock, kit, run } = setup()
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'default' }, data: {} } as K8sObject
    kit.desire([configMap('a'), secret])
    await run()
    await kit.stop()
    const second = createReconcileKit({ cluster, clock, incarnation: 2 })
    track(second)
    second.desire([configMap('a')])
    second.start()
    await clock.advance(60_000)
    writes(cluster)
    second.remove('prune')
    await clock.advance(60_000)
    expect(writes(cluster)).toEqual(['delete ConfigMap a', 'delete Secret s'])
    expect(second.service()).toMatchObject({ removed: true })
  })

  test('IV7 an answer names its order; the next order is answered anew, also when no revision came between the two', async () => {
    const { cluster, clock, kit, run } = setup()
    kit.desire([configMap('a')])
    await run()
    kit.remove('prune', SHOP, 100)
    await clock.advance(5_000)
    expect(kit.service()).toMatchObject({ removed: true, removedOrderMs: 100 })
    kit.state.acknowledge(Number.MAX_SAFE_INTEGER)
    kit.remove('prune', SHOP, 200)
    await clock.advance(60_000)
    const said = () => kit.state.outbox(1_000).flatMap(({ kind, doc }) => (kind === 'service' ? [doc] : []))
    expect(said()).toMatchObject([{ removed: true, removedOrderMs: 200 }])
    await kit.stop()
    kit.remove('prune', SHOP, 300)
    kit.start()
    cluster.requests.splice(0)
    await clock.advance(60_000)
    expect(lists(cluster.requests, 'Secret')).toBe(1)
    expect(said()).toMatchObject([{ removed: true, removedOrderMs: 300 }])
  })

  test('IV7 that it was removed is said until the server has read it, also after restarts, and only once as an event', async () => {
    const { cluster, clock, kit, run } = setup()
    kit.desire([configMap('a')])
    await run()
    kit.remove('prune')
    await clock.advance(5_000)
    const waiting = () =>
      kit.state.outbox(1_000).filter(({ kind, doc }) => kind === 'service' && (doc as { removed?: boolean })?.removed === true)
    const [said] = waiting()
    expect(said).toBeDefined()
    for (let restart = 0; restart < 3; restart += 1) {
      await kit.stop()
      kit.start()
      await clock.advance(60_000)
    }
    expect(waiting()).toEqual(said === undefined ? [] : [said])
    expect(kit.events().filter(({ reason }) => reason === 'Removed')).toHaveLength(1)
    expect(lists(cluster.requests, 'Secret')).toBe(1)
    kit.state.acknowledge(said?.rev ?? 0)
    expect(waiting()).toEqual([])
  })

  test('IV6 RC5 fifty services cost one search of the kinds that are not watched, one delete for each object, and no read', async () => {
    const { cluster, clock, kit, run } = setup()
    const ids = Array.from({ length: 50 }, (_, n) => ({ project: 'web', service: `s${n}` }))
    for (const id of ids) kit.desire([configMap(`${id.service}-a`), configMap(`${id.service}-b`)], {}, id)
    await run()
    await clock.advance(5_000)
    cluster.requests.splice(0)
    for (const id of ids) kit.remove('delete', id)
    await clock.advance(60_000)
    const asked = cluster.requests.splice(0).filter((request) => !isClaim(request))
    const count = (verb: string) => asked.filter((request) => request.verb === verb).length
    expect([count('delete'), count('get'), count('patch')]).toEqual([100, 0, 0])
    const listed = asked.flatMap(({ verb, kind, metadataOnly }) => (verb === 'watch' ? [`${kind} ${metadataOnly}`] : []))
    expect(listed.length).toBeGreaterThan(5)
    const again = listed.filter((line, at) => listed.indexOf(line) !== at)
    // What exists of CRDs and APIServices is held against discovery once, whoever marked it.
    expect(again.sort()).toEqual(['APIService true', 'CustomResourceDefinition true'])
    expect(listed.some((line) => line.startsWith('ConfigMap '))).toBe(false)
    for (const id of ids) expect(kit.service(id)).toMatchObject({ removed: true })
  })

  test('IV6 one search counts for ten minutes; a kind that is served since is looked at for the next order', async () => {
    const { cluster, clock, kit } = await lost()
    kit.desire([configMap('x')], {}, OTHER)
    kit.remove('delete')
    kit.start()
    await clock.advance(5_000)
    expect(lists(cluster.requests.splice(0), 'Secret')).toBe(1)
    const remove = async (atMs: number) => {
      kit.remove('delete', OTHER, atMs)
      await clock.advance(5_000)
      return cluster.requests.splice(0)
    }
    cluster.applyAs('somebody', crd)
    await clock.advance(30_000)
    cluster.requests.splice(0)
    expect(lists(await remove(100), 'Secret')).toBe(0)
    await clock.advance(600_000)
    kit.desire([configMap('x')], {}, OTHER)
    await clock.advance(5_000)
    expect(lists(await remove(200), 'Secret')).toBe(1)
  })

  test('RC5 a delete that was not carried out is no end: what DELETED said meanwhile is read', async () => {
    const { cluster, clock, kit, run } = setup()
    kit.desire([configMap('a')])
    await run()
    cluster.requests.splice(0)
    const lostAnswer: ApiFailure = { kind: 'unreachable', status: 0, reason: 'ECONNRESET', message: 'cut' }
    cluster.fail(({ verb }) => (verb === 'delete' ? lostAnswer : null))
    kit.remove('delete')
    await clock.advance(1_000)
    cluster.deleteAs('somebody', configMapRef('a'))
    cluster.fail(() => null)
    await clock.advance(60_000)
    expect(kit.service()).toMatchObject({ removed: true })
  })
})
