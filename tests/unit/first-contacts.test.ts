// What is asked before a first apply, in a fleet of small services.
import { expect, test } from 'bun:test'
import type { ApiResource, Cluster } from '../../agent/cluster/cluster.ts'
import { FirstContacts, FRESH_MS, GETS_MAX } from '../../agent/reconcile/watch/first-contacts.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { configMap, configMapRef, createReconcileKit } from '../support/reconcile-kit.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const CONFIG_MAPS: ApiResource = { group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true, verbs: [] }

test('RC19 a thousand small services cost some looks and one list for each kind, and nothing that is there is adopted unseen', async () => {
  const clock = createVirtualClock()
  const cluster = createFakeCluster({ clock })
  const kit = createReconcileKit({ cluster, clock })
  const foreign = configMap('m0900')
  cluster.applyAs('argocd-controller', {
    ...foreign,
    metadata: { ...foreign.metadata, annotations: { 'argocd.argoproj.io/tracking-id': 'shop:/ConfigMap:default/m0900' } },
  })
  const services = Array.from({ length: 1_000 }, (_, n) => ({ project: 'web', service: `s${String(n).padStart(4, '0')}` }))
  const names = services.map((_, n) => `m${String(n).padStart(4, '0')}`)
  services.forEach((id, n) => void kit.desire([configMap(names[n] ?? '')], {}, id))
  kit.start()
  await clock.advance(1_000)
  const asked = cluster.requests.filter(({ verb, ref }) => verb === 'get' && ref?.kind === 'ConfigMap' && ref.name.startsWith('m'))
  expect(asked.length).toBeLessThanOrEqual(GETS_MAX + 5) // the one that the list names, and again
  expect(cluster.requests.filter(({ verb, ref }) => verb === 'apply' && ref?.name.startsWith('m')).length).toBe(999)
  expect(kit.service(services[900])?.message).toContain('Argo CD')
  await kit.stop()
})

test('RC19 a list is known for five seconds, and one that failed is asked for again', async () => {
  const clock = createVirtualClock()
  const fake = createFakeCluster({ clock })
  let lists = 0
  let fails = true
  const watch: Cluster['watch'] = async function* (resource, options) {
    lists += 1
    if (fails) yield { kind: 'failed', failure: { kind: 'server_error', status: 500, reason: '', message: 'down' } }
    else yield* fake.watch(resource, options)
  }
  const contacts = new FirstContacts({
    cluster: Object.assign(Object.create(fake) as Cluster, { watch }),
    clock,
    signal: new AbortController().signal,
  })
  const many = Array.from({ length: GETS_MAX + 1 }, (_, n) => configMapRef(`n${n}`))
  expect((await contacts.maybeThere(CONFIG_MAPS, many)).kind).toBe('failed')
  fails = false
  expect(await contacts.maybeThere(CONFIG_MAPS, many)).toEqual({ kind: 'refs', refs: [] })
  await contacts.maybeThere(CONFIG_MAPS, many)
  expect(lists).toBe(2)
  fake.applyAs('kubectl', configMap('n3'))
  await clock.advance(FRESH_MS)
  expect(await contacts.maybeThere(CONFIG_MAPS, many)).toEqual({ kind: 'refs', refs: [configMapRef('n3')] })
  expect(lists).toBe(3)
})

const theirs = (value: string) => ({
  ...configMap('theirs', { a: value }),
  metadata: { name: 'theirs', namespace: 'default', annotations: { 'argocd.argoproj.io/tracking-id': 'x:/ConfigMap:default/theirs' } },
})

test.each([
  ['another value', 'theirs'],
  ['the same value', 'ours'],
])('RC3 RC19 somebody made an object after the list, with %s: it is as they made it, and they are named', async (_, value) => {
  const clock = createVirtualClock()
  const cluster = createFakeCluster({ clock })
  const kit = createReconcileKit({ cluster, clock })
  const many = Array.from({ length: GETS_MAX + 1 }, (_, n) => configMap(`n${n}`))
  kit.desire(many)
  kit.start()
  await clock.advance(100)
  expect(kit.service()?.sync).toBe('Synced')
  cluster.applyAs('argocd-controller', theirs(value))
  kit.desire([...many, configMap('theirs', { a: 'ours' }), ...['p', 'q', 'r'].map((name) => configMap(name))])
  await clock.advance(100)
  expect(kit.object('/ConfigMap/default/theirs')).toMatchObject({ reason: 'OwnedBy', message: expect.stringContaining('Argo CD') })
  const live = cluster.object(configMapRef('theirs'))
  expect(live?.['data']).toEqual({ a: value })
  expect(live?.metadata.labels ?? {}).toEqual({})
  expect(Object.keys(live?.metadata.annotations ?? {})).toEqual(['argocd.argoproj.io/tracking-id'])
  expect(cluster.object(configMapRef('r'))?.['data']).toEqual({ a: '1' })
  await kit.stop()
})
