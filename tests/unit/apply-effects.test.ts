// TG20: what a dry run says of the objects of a service where it stays.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { objectEffects } from '../../server/fleet/object-effects.ts'
import { type K8sObject, refKey, refOf } from '../../shared/kube/object.ts'
import { objectRowId, serviceRowSchema } from '../../shared/model/desired.ts'
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { joinCluster } from '../support/store-fixtures.ts'

const WEB: ServiceId = { project: 'default', service: 'web' }
const object = (apiVersion: string, kind: string, namespace: string, name: string, spec: object = {}): K8sObject =>
  ({ apiVersion, kind, metadata: { name, namespace }, spec }) as unknown as K8sObject
const rows = (...objects: K8sObject[]) => new Map(objects.map((one) => [objectRowId(WEB, refOf(one)), JSON.stringify(one)] as const))
const deployment = (replicas: number | undefined, namespace = 'web') =>
  object('apps/v1', 'Deployment', namespace, 'app', replicas === undefined ? {} : { replicas })
const claim = (namespace = 'web') => object('v1', 'PersistentVolumeClaim', namespace, 'data')

test('TG20 objects by name: deleted, recreated, created and changed, data and replicas', () => {
  const gone = object('v1', 'PersistentVolumeClaim', 'web', 'old')
  const effects = objectEffects(
    rows(deployment(3), claim(), gone, object('v1', 'Service', 'web', 'app')),
    rows(
      deployment(1, 'shop'),
      claim('shop'),
      object('v1', 'Service', 'web', 'app', { type: 'NodePort' }),
      object('v1', 'Secret', 'web', 's'),
    ),
  )
  expect(effects).toEqual({
    deleted: { count: 1, first: ['PersistentVolumeClaim web/old'] },
    recreated: {
      count: 2,
      first: [
        { from: 'PersistentVolumeClaim web/data', to: 'PersistentVolumeClaim shop/data' },
        { from: 'Deployment web/app', to: 'Deployment shop/app' },
      ],
    },
    created: { count: 1, first: ['Secret web/s'] },
    changed: { count: 1, first: ['Service web/app'] },
    data: { count: 2, first: ['PersistentVolumeClaim web/data', 'PersistentVolumeClaim web/old'] },
    replicas: [{ name: 'Deployment shop/app', from: 3, to: 1 }],
  })
  expect(objectEffects(rows(claim()), rows(claim()))).toBeNull()
  expect(objectEffects(rows(deployment(3)), rows(deployment(undefined)))?.replicas).toEqual([
    { name: 'Deployment web/app', from: 3, to: null },
  ])
})

test('TG21 objects of other owners are told apart: neither deleted, with data given up, nor created', () => {
  const [a, b] = [object('v1', 'Secret', 'web', 'a'), object('v1', 'Secret', 'web', 'b')]
  const owners = {
    taker: (key: string) => (key === refKey(refOf(claim())) ? 'default/other' : null),
    holder: (key: string) => (key === refKey(refOf(a)) ? 'default/holder' : null),
  }
  const effects = objectEffects(rows(claim(), deployment(1)), rows(claim('shop'), a, b), owners)
  expect(effects).toMatchObject({
    deleted: { first: ['Deployment web/app'] },
    recreated: { count: 0 },
    created: { first: ['PersistentVolumeClaim shop/data', 'Secret web/b'] },
    data: { count: 0 },
    takenOver: { count: 1, first: [{ name: 'PersistentVolumeClaim web/data', by: 'default/other' }] },
    takesOver: { count: 1, first: [{ name: 'Secret web/a', by: 'default/holder' }] },
  })
})

let admin: TestAdmin
let owned: Record<'takers' | 'holders', string[]>
let rendered: string[]
/** Whether renders are faster than the time that a write spends on its effects. */
let isInTime: boolean
beforeEach(async () => {
  rendered = []
  isInTime = true
  owned = { takers: [], holders: [] }
  admin = await createTestAdmin(({ clock }) => ({
    owners: {
      takersOfAll: async () => () => new Map(),
      takersOf: async () => new Map(owned.takers.map((key) => [key, { project: 'default', service: 'other' }])),
      holdersOf: async (_, clusters) => {
        const holder = { by: { project: 'default', service: 'holder' }, clusters: clusters.map(({ name }) => name) }
        return owned.holders.length === 0 ? [] : [{ ...holder, objects: new Set(owned.holders) }]
      },
    },
    clock: {
      ...clock,
      sleep: async (_, signal) => (isInTime ? new Promise((ended) => signal?.addEventListener('abort', () => ended())) : undefined),
    },
    renders: {
      render: async () => null,
      variants: async () => null,
      origin: async () => null,
      objects: async (_, { namespace = 'none' }, { name, labels }) => {
        rendered.push(name)
        if (namespace === 'broken') return { kind: 'failed', message: 'no such value' }
        return { kind: 'rendered', objects: rows(deployment(labels['region'] === 'eu' ? 3 : 1, namespace), claim(namespace)) }
      },
    },
  }))
  await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps'), service('web')] })
  for (const digit of ['a', 'b', 'c', 'd']) {
    const clusterId = await joinCluster(admin.store, digit, { env: 'prod', region: 'eu' })
    const doc = serviceRowSchema.parse({ commit: 'c', digest: 'd', count: 0, sync: {} })
    await admin.store.publish([{ clusterId, ...WEB, doc, setSha: null, placedBy: '' }])
  }
  rendered = []
})
afterEach(() => admin.store.close())

const web = serviceDoc('web')
const service = (namespace: string) => ({ ...web, spec: { ...web.spec, namespace } })
const dryRun = async (document: unknown) =>
  (await runTestCli(admin, ['apply', '-f', '-', '--dry-run'], { stdin: JSON.stringify(document) })).out

test('TG20 a relabelled cluster: the lost override is told by what it does', async () => {
  const metadata = { name: 'cluster-a', labels: { env: 'prod' } }
  const told = await dryRun({ apiVersion: 'skerry.dev/v1', kind: 'Cluster', metadata, spec: {} })
  expect(told).toContain('  default/web in cluster-a:\n')
  expect(told).toContain('Deployment web/app: 3 replicas to 1 replica\n')
  expect(rendered).toEqual(['cluster-a', 'cluster-a'])
})

test('TG20 a namespace move names data; clusters that have the same are rendered once', async () => {
  const told = await dryRun(service('shop'))
  expect(told).toContain('default/web in cluster-a, cluster-b, cluster-c, cluster-d:\n')
  expect(told).toContain('1 object with data would be given up: PersistentVolumeClaim web/data')
  expect(told).toContain('Deployment web/app as Deployment shop/app')
  expect(rendered).toHaveLength(2)
  expect(await dryRun(service('broken'))).toMatch(/not render: no such value/)
  rendered = []
  await dryRun(service('web'))
  expect(rendered).toEqual([])
})

test('TG20 a write names its effects, too, and does not wait for a slow render', async () => {
  const write = (document: unknown) => runTestCli(admin, ['apply', '-f', '-'], { stdin: JSON.stringify(document) })
  isInTime = false
  expect((await write(service('shop'))).out).not.toContain('will be recreated')
  isInTime = true
  const { out } = await write(service('third'))
  expect(out).toContain('2 objects will be recreated: PersistentVolumeClaim shop/data as PersistentVolumeClaim third/data')
  expect(out).toContain('1 object with data will be given up')
  rendered = []
  await admin.call('POST', '/api/v1/apply', { resources: [service('fourth')] })
  expect(rendered).toEqual([])
})

test('TG21 a namespace move names the services that take over objects, and those that manage them now', async () => {
  owned = { takers: ['/PersistentVolumeClaim/web/data'], holders: ['apps/Deployment/shop/app'] }
  const told = await dryRun(service('shop'))
  expect(told).toContain('    1 object would be taken over: PersistentVolumeClaim web/data by default/other\n')
  expect(told).toContain(
    '    1 object is managed by another service, taken over when that service no longer names them: Deployment shop/app by default/holder\n',
  )
  expect(told).not.toContain('given up')
})

test('TG21 a new service names the objects of another one that it names, too, and nothing else', async () => {
  const renamed = { ...web, metadata: { ...web.metadata, name: 'web2' } }
  expect(await dryRun(renamed)).not.toContain('managed')
  owned.holders = ['apps/Deployment/none/app', '/PersistentVolumeClaim/none/data']
  const told = await dryRun(renamed)
  expect(told).toContain('  default/web2 in cluster-a, cluster-b, cluster-c, cluster-d:\n')
  expect(told).toContain('2 objects are managed by another service')
  expect(told).not.toContain('created:')
})

test('TG20 an answer says that it is cut: more renders than are looked at, and more resources', async () => {
  const call = async (resources: unknown[]) =>
    (await admin.call('POST', '/api/v1/apply', { dryRun: true, resources })).body as { effects?: unknown[]; effectsLeft?: number }
  const publish = async (clusterId: string, setSha: string) => {
    const doc = serviceRowSchema.parse({ commit: 'c', digest: setSha, count: 1, sync: {} })
    await admin.store.publish([{ clusterId: clusterId as ClusterId, ...WEB, doc, setSha, placedBy: '' }])
  }
  expect((await call([service('shop')])).effectsLeft).toBeUndefined()
  for (const [index, { clusterId }] of (await admin.store.listClusters()).entries()) await publish(clusterId, `${index}`.repeat(64))
  expect(await call([service('shop')])).toMatchObject({ effects: [{}, {}, {}], effectsLeft: 1 })
  const told = await runTestCli(admin, ['apply', '-f', '-', '--dry-run'], { stdin: JSON.stringify(service('shop')) })
  expect(told.err).toContain('note: effects on objects are not shown')
  const relabelled = ['a', 'b', 'c', 'd'].map((digit) => {
    const metadata = { name: `cluster-${digit}`, labels: { env: 'prod' } }
    return { apiVersion: 'skerry.dev/v1', kind: 'Cluster', metadata, spec: {} }
  })
  expect((await call(relabelled)).effectsLeft).toBeUndefined()
  const others = Array.from({ length: 9 }, (_, n) => serviceDoc(`web${n}`))
  await admin.call('POST', '/api/v1/apply', { resources: others })
  for (const { metadata } of others)
    for (const { clusterId } of await admin.store.listClusters()) {
      const doc = serviceRowSchema.parse({ commit: 'c', digest: 'd', count: 1, sync: {} })
      await admin.store.publish([{ clusterId, project: 'default', service: metadata.name, doc, setSha: null, placedBy: '' }])
    }
  expect(await call(relabelled)).toMatchObject({ effectsLeft: 3 }) // ten services of one cluster are looked at
})
