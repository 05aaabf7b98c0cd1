// What is asked before a first apply, in a fleet of small services.
import { expect, test } from 'bun:test'
import type { ApiResource, Cluster } from '../../agent/cluster/cluster.ts'
import { contactOf, FirstContacts, FRESH_MS, GETS_MAX } from '../../agent/reconcile/snapshot/watch/first-contacts.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { createFakeCluster, type FakeRequest } from '../support/fake-cluster.ts'
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
  for (let second = 0; second < 4; second++) await clock.advance(1_000) // turns pause in between (RC32)
  const asked = cluster.requests.filter(({ verb, ref }) => verb === 'get' && ref?.kind === 'ConfigMap' && ref.name.startsWith('m'))
  expect(asked.length).toBeLessThanOrEqual(GETS_MAX + 8) // the one that the list names, and again; those that were on their way when the list was asked for
  expect(cluster.requests.filter(({ verb, ref }) => verb === 'apply' && ref?.name.startsWith('m')).length).toBe(999)
  expect(kit.service(services[900])?.message).toContain('Argo CD')
  await kit.stop()
}, 60_000)

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

const secretRef = { group: '', kind: 'Secret', namespace: 'default' }

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
  expect(kit.object('/ConfigMap/default/theirs')).toMatchObject({ reason: 'OwnedByOther', message: expect.stringContaining('Argo CD') })
  const live = cluster.object(configMapRef('theirs'))
  expect(live?.['data']).toEqual({ a: value })
  expect(live?.metadata.labels ?? {}).toEqual({})
  expect(Object.keys(live?.metadata.annotations ?? {})).toEqual(['argocd.argoproj.io/tracking-id'])
  expect(cluster.object(configMapRef('r'))?.['data']).toEqual({ a: '1' })
  await kit.stop()
})

const secret = (name: string, data: Record<string, string>): K8sObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: 'default' },
  data,
})
const wholeReads = (requests: readonly FakeRequest[], kind: string) =>
  requests.filter(({ verb, ref, kind: of, metadataOnly }) => {
    return ['get', 'watch'].includes(verb) && (ref?.kind ?? of) === kind && metadataOnly !== true
  })

test.each([
  ['some, one by one', 2],
  ['many, by a list', 30],
])('RC26 no data of Secrets is read before they are adopted from another tool: %s', async (_, count) => {
  const clock = createVirtualClock()
  const cluster = createFakeCluster({ clock })
  const kit = createReconcileKit({ cluster, clock })
  const names = Array.from({ length: count }, (_, n) => `s${n}`)
  for (const name of names) cluster.applyAs('kustomize-controller', secret(name, { password: 'b2xk', stale: 'b2xk' }))
  kit.desire(names.map((name) => secret(name, { password: 'bmV3' })))
  kit.start()
  await clock.advance(1_000)
  expect(kit.service()?.sync).toBe('Synced')
  // What the other tool wrote was taken over and went: its fields were known without the data.
  for (const name of names) expect(cluster.object({ ...secretRef, name })?.['data']).toEqual({ password: 'bmV3' })
  expect(wholeReads(cluster.requests, 'Secret')).toEqual([{ verb: 'watch', kind: 'Secret' }]) // of what carries our label
  await kit.stop()
})

test('RC26 a map of data that is a leaf is empty, whether it was read or not', () => {
  const fields = { 'f:data': { '.': {}, 'f:a': {} }, 'f:binaryData': {} }
  const managedFields = [{ manager: 'helm', operation: 'Update', apiVersion: 'v1', fieldsType: 'FieldsV1', fieldsV1: fields }]
  const { data, ...read }: K8sObject = { ...configMap('m'), metadata: { name: 'm', namespace: 'default', managedFields } }
  const contact = contactOf(read)
  expect(contact).toEqual(contactOf({ ...read, data }))
  expect(contact).toMatchObject({ others: [{ manager: 'helm', fields: JSON.stringify({ 'f:data': { '.': {}, 'f:a': {} } }) }] })
})
