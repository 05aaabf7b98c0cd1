// Failure catalogue: kinds and namespaces that go away under the agent, APIs without a backend, and deletions that
// something holds. With the controllers that a cluster has, because they are what hangs.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { objectPart, objectText } from '../../agent/messages/object-messages.ts'
import { servicePart } from '../../agent/messages/service-messages.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { type CatalogueSite, startCatalogueSite } from '../support/catalogue-site.ts'
import { crd, deadApiService } from '../support/contract-kit.ts'
import { CLUSTER_START_TIMEOUT_MS } from '../support/kube-cluster.ts'
import { configMap, configMapKey } from '../support/reconcile-kit.ts'
import { SOME, said } from '../support/said.ts'
import { until } from '../support/watch-probe.ts'

let site: CatalogueSite
beforeAll(async () => {
  site = await startCatalogueSite('kinds', { controllers: true, kwok: false })
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => site.stop(), CLUSTER_START_TIMEOUT_MS)

const boat = (group: string, name: string, metadata: Record<string, unknown> = {}): K8sObject => ({
  apiVersion: `${group}/v1`,
  kind: 'Boat',
  metadata: { name, namespace: 'default', ...metadata },
  spec: { oars: 2 },
})
const serve = async (group: string) => {
  await site.apply(crd(group))
  await site.server.kubectl(['wait', '--for=condition=Established', `crd/boats.${group}`, '--timeout=20s'])
}
const release = (kind: string, name: string, namespace: string) =>
  site.server.kubectl(['patch', kind, name, '-n', namespace, '--type=merge', '-p', '{"metadata":{"finalizers":null}}'])

test('RC5 RC16 somebody’s CRD is deleted while objects of it exist: said with what to do, nothing forgotten, made again when it is back', async () => {
  await serve('lost.example')
  const agent = await site.agent('lost')
  agent.start()
  agent.desire([configMap('lost-a'), boat('lost.example', 'skiff'), boat('lost.example', 'raft')])
  await agent.well()
  await site.remove('crd', 'boats.lost.example')
  const message = objectText('UnknownKind', { apiVersion: 'lost.example/v1', kind: 'Boat' })
  await agent.says(said(servicePart('first_of', { object: 'Boat default/raft', message, more: 1 })))
  await site.remove('configmap', 'lost-a')
  await until('the healed ConfigMap', () => site.live('configmap', 'lost-a'))
  expect(agent.inventory()).toEqual(['Boat/raft', 'Boat/skiff', 'ConfigMap/lost-a'])
  await serve('lost.example')
  // 30 s is the longest wait of a watch.
  expect(await agent.well('it is well again')).toBeLessThan(40_000)
  expect(await site.live('boats.lost.example', 'skiff')).not.toBeNull()
}, 120_000)

test('RC16 PR6 a service whose CRD somebody deleted can be removed: what nobody serves cannot be there', async () => {
  await serve('wreck.example')
  const agent = await site.agent('wreck')
  agent.start()
  agent.desire([configMap('wreck-a'), boat('wreck.example', 'skiff')])
  await agent.well()
  await site.remove('crd', 'boats.wreck.example')
  await agent.says(said(objectText('UnknownKind', { apiVersion: SOME, kind: 'Boat' })))
  agent.removeService('prune')
  await until('all is gone', () => agent.inventory().length === 0, 40_000)
  expect(await site.live('configmap', 'wreck-a')).toBeNull()
}, 120_000)

test('RC5 RC16 OR1 our own CRD is deleted by somebody: it and its objects are made again', async () => {
  const agent = await site.agent('own')
  agent.start()
  agent.desire([crd('own.example'), boat('own.example', 'skiff')])
  await agent.well()
  const before = await site.live('boats.own.example', 'skiff')
  await site.remove('crd', 'boats.own.example')
  await until(
    'another skiff',
    async () => {
      const now = await site.live('boats.own.example', 'skiff').catch(() => null)
      return now !== null && now.metadata.uid !== before?.metadata.uid
    },
    60_000,
  )
  expect(await agent.well('it is well again')).toBeLessThan(40_000)
}, 120_000)

test('KA11 RC5 RC23 an APIService without a backend: its kind is unknown and said; deletions of namespaces hang and are not ours to give up', async () => {
  await site.apply(deadApiService('dead.example'))
  await site.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'dying' } })
  await until('a stale group', async () => (await site.server.kubectl(['get', 'apiservice', 'v1.dead.example'])).includes('False'))
  const agent = await site.agent('stale')
  agent.start()
  agent.desire([configMap('stale-a'), configMap('stale-d', { a: '1' }, 'dying'), boat('dead.example', 'ghost')])
  await agent.says(said(`Boat default/ghost: ${objectText('UnknownKind.silent', { apiVersion: 'dead.example/v1' })}`))
  expect((await site.live('configmap', 'stale-d', 'dying'))?.['data']).toEqual({ a: '1' })

  // Somebody deletes a namespace of the service meanwhile: it hangs for as long as discovery is not whole.
  await site.remove('namespace', 'dying')
  const waiting = await agent.objectSays(
    configMapKey('stale-d', 'dying'),
    /namespace: .*[Dd]iscovery failed.*dead\.example.*delete its APIService/,
  )
  expect(waiting.sync).toBe('OutOfSync')
  expect(agent.inventory()).toEqual(['Boat/ghost', 'ConfigMap/stale-a', 'ConfigMap/stale-d'])

  await site.remove('apiservice', 'v1.dead.example')
  await serve('dead.example')
  await until('the namespace is gone', async () => (await site.live('namespace', 'dying', '')) === null, 60_000)
  await site.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'dying' } })
  await agent.well('it is well again')
  expect(await site.live('boats.dead.example', 'ghost')).not.toBeNull()
  expect(await site.live('configmap', 'stale-d', 'dying')).not.toBeNull()
}, 180_000)

test('PR6 OR2 an operator outlives its custom resources: they are waited for while it, its role and its CRD are there', async () => {
  const agent = await site.agent('operator')
  const finalizer = { finalizers: ['sea.example/dock'] }
  const operator = {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'dockmaster', namespace: 'default' },
    spec: {
      replicas: 0,
      selector: { matchLabels: { app: 'dockmaster' } },
      template: { metadata: { labels: { app: 'dockmaster' } }, spec: { containers: [{ name: 'c', image: 'dockmaster:1' }] } },
    },
  } as unknown as K8sObject
  agent.start()
  agent.desire([crd('docks.example'), operator, boat('docks.example', 'ferry', finalizer), configMap('operator-a')])
  await agent.well()
  const mark = site.server.auditMark()
  agent.removeService('prune')
  await agent.says(/Boat default\/ferry: .*being deleted.*sea\.example\/dock/)
  expect(agent.deletes(mark)).toEqual(['boats/ferry'])
  expect(await site.live('deployment', 'dockmaster')).not.toBeNull()
  await release('boats.docks.example', 'ferry', 'default')
  await until('all is gone', () => agent.inventory().length === 0, 40_000)
  expect(agent.deletes(mark)[0]).toBe('boats/ferry')
  expect(agent.deletes(mark).at(-1)).toBe('customresourcedefinitions/boats.docks.example')
  expect([await site.live('deployment', 'dockmaster'), await site.live('configmap', 'operator-a')]).toEqual([null, null])
}, 120_000)

test('KA2 RC8 RC23 a namespace is stuck terminating: its objects wait, the others go on, and all of it is made again when it is gone', async () => {
  await site.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'stuck' } })
  await site.apply({
    ...configMap('anchor', {}, 'stuck'),
    metadata: { name: 'anchor', namespace: 'stuck', finalizers: ['example.com/anchor'] },
  })
  const agent = await site.agent('stuck')
  agent.start()
  agent.desire([configMap('stuck-a'), configMap('stuck-b', { a: '1' }, 'stuck')], { namespace: 'stuck' })
  await agent.well()
  const mark = site.server.auditMark()
  await site.remove('namespace', 'stuck')
  const status = await agent.objectSays(
    configMapKey('stuck-b', 'stuck'),
    said(
      objectText('NamespaceTerminating', { failure: objectPart('namespace_held', { failure: SOME, deleting: `${SOME}anchor${SOME}` }) }),
    ),
  )
  expect(status.sync).toBe('OutOfSync')
  agent.desire([configMap('stuck-a', { a: '2' }), configMap('stuck-b', { a: '2' }, 'stuck')], { namespace: 'stuck' })
  await until('the other object', async () => ((await site.live('configmap', 'stuck-a'))?.['data'] as { a?: string })?.a === '2')
  expect(agent.inventory()).toContain('ConfigMap/stuck-b')
  await release('configmap', 'anchor', 'stuck')
  expect(await agent.well('it is well again')).toBeLessThan(60_000)
  expect((await site.live('configmap', 'stuck-b', 'stuck'))?.['data']).toEqual({ a: '2' })
  expect(agent.deletes(mark)).toEqual([])
}, 120_000)

test('KA17 IV2 a finalizer that nobody removes: it is named, the object stays in the inventory, and its end is noticed at once', async () => {
  const agent = await site.agent('finalizer')
  const gone = { ...configMap('finalizer-f'), metadata: { name: 'finalizer-f', namespace: 'default', finalizers: ['example.com/never'] } }
  agent.start()
  agent.desire([configMap('finalizer-a'), gone])
  await agent.well()
  agent.desire([configMap('finalizer-a', { a: '2' })])
  await agent.says(/ConfigMap default\/finalizer-f/)
  const status = await agent.objectSays(configMapKey('finalizer-f'), /example\.com\/never/)
  expect(status.message).toContain('being deleted')
  expect(agent.inventory()).toEqual(['ConfigMap/finalizer-a', 'ConfigMap/finalizer-f'])
  expect((await site.live('configmap', 'finalizer-a'))?.['data']).toEqual({ a: '2' })
  // Wanted again while it goes: it is made anew, and not taken for the old one.
  agent.desire([configMap('finalizer-a', { a: '2' }), configMap('finalizer-f', { a: '3' })])
  await agent.says(/recreated after that|finalizer-f/)
  await release('configmap', 'finalizer-f', 'default')
  expect(await agent.well('it is well again')).toBeLessThan(5_000)
  expect((await site.live('configmap', 'finalizer-f'))?.['data']).toEqual({ a: '3' })
}, 120_000)
