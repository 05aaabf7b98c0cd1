import { afterEach, expect, test } from 'bun:test'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import { denied, requests, setup, stopAll } from '../support/reconcile-fixtures.ts'
import { configMap, configMapRef } from '../support/reconcile-kit.ts'

afterEach(stopAll)

const REF: ObjectRef = { group: '', kind: 'PersistentVolumeClaim', namespace: 'default', name: 'data' }
const KEY = '/PersistentVolumeClaim/default/data'
const claim = (spec: Record<string, unknown> = {}) =>
  ({ apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name: 'data', namespace: 'default' }, spec }) as unknown as K8sObject
/** In the wave after the claim. */
const consumer = (() => {
  const { metadata, ...rest } = configMap('consumer')
  return { ...rest, metadata: { ...metadata, annotations: { 'skerry.dev/wave': '1' } } } as K8sObject
})()
const classRef = (name: string): ObjectRef => ({ group: 'storage.k8s.io', kind: 'StorageClass', namespace: '', name })
const IS_DEFAULT = { 'storageclass.kubernetes.io/is-default-class': 'true' }
const LATE = 'WaitForFirstConsumer'

function site(classes: Record<string, { mode: string; annotations?: Record<string, string> }>) {
  const parts = setup()
  const { cluster, kit } = parts
  const setClass = (name: string, { mode, annotations = {} }: { mode: string; annotations?: Record<string, string> }) =>
    cluster.editAs('kubectl', classRef(name), (object) => {
      Object.assign(object, { provisioner: 'rancher.io/local-path', volumeBindingMode: mode })
      Object.assign(object.metadata, { annotations })
    })
  for (const [name, what] of Object.entries(classes)) setClass(name, what)
  const status = () => kit.object(KEY)
  const hasConsumer = () => cluster.object(configMapRef('consumer')) !== null
  const classWatches = () => requests(cluster).filter((line) => line === 'watch StorageClass').length
  return { ...parts, setClass, status, hasConsumer, classWatches }
}

test('HE20 a claim that is bound at first use is Healthy, and the wave of its consumer goes on', async () => {
  const { kit, run, status, hasConsumer } = site({ 'local-path': { mode: LATE } })
  kit.desire([claim({ storageClassName: 'local-path' }), consumer])
  await run()
  expect(status()).toMatchObject({ health: 'Healthy', reason: 'WaitForFirstConsumer', message: expect.stringContaining('first consumer') })
  expect(hasConsumer()).toBe(true)
  expect(kit.service()).toMatchObject({ sync: 'Synced', health: 'Healthy' })
})

test('HE20 a claim without a class follows the default one, the newest of several', async () => {
  const { run, kit, status, setClass, clock } = site({ old: { mode: 'Immediate', annotations: IS_DEFAULT } })
  await clock.advance(2_000)
  setClass('new', { mode: LATE, annotations: IS_DEFAULT })
  kit.desire([claim()])
  await run()
  expect(status()?.health).toBe('Healthy')
})

test('HE20 a claim that is bound at once holds its wave, and so does one whose consumer was scheduled already', async () => {
  const { cluster, kit, run, settle, status, hasConsumer } = site({ now: { mode: 'Immediate' }, late: { mode: LATE } })
  kit.desire([claim({ storageClassName: 'now' }), consumer])
  await run()
  expect(status()).toMatchObject({ health: 'Progressing', reason: 'NotBound' })
  expect(hasConsumer()).toBe(false)
  kit.desire([claim({ storageClassName: 'late' })])
  cluster.deleteAs('kubectl', REF)
  await settle()
  expect(status()?.health).toBe('Healthy')
  cluster.editAs('kube-scheduler', REF, ({ metadata }) =>
    Object.assign(metadata, { annotations: { ...metadata.annotations, 'volume.kubernetes.io/selected-node': 'n1' } }),
  )
  await settle()
  expect(status()).toMatchObject({ health: 'Progressing', reason: 'NotBound' })
})

test('HE20 StorageClasses are watched while a claim is Pending and not otherwise', async () => {
  const { cluster, kit, run, settle, classWatches, status } = site({ late: { mode: LATE } })
  kit.desire([claim({ storageClassName: 'late' })])
  await run()
  expect([classWatches(), status()?.health]).toEqual([1, 'Healthy'])
  cluster.setStatus(REF, { phase: 'Bound' })
  await settle()
  cluster.cutWatches()
  await settle()
  expect([classWatches(), status()]).toMatchObject([0, { health: 'Healthy', message: '' }])
  cluster.deleteAs('kubectl', REF)
  await settle()
  expect(classWatches()).toBe(1)
})

test('HE20 a restart says nothing new of a claim that waits', async () => {
  const { kit, run, clock, status } = site({ late: { mode: LATE } })
  kit.desire([claim({ storageClassName: 'late' })])
  await run()
  await kit.stop()
  const before = [status(), kit.service()]
  const rev = kit.state.lastRev()
  await clock.advance(5_000)
  await run()
  expect([status(), kit.service()]).toEqual(before)
  expect(kit.state.lastRev()).toBe(rev)
})

test('HE20 a class that comes later, or changes its mode, is noticed', async () => {
  const { run, kit, settle, status, setClass } = site({})
  kit.desire([claim({ storageClassName: 'late' })])
  await run()
  expect(status()?.health).toBe('Progressing')
  setClass('late', { mode: LATE })
  await settle()
  expect(status()?.health).toBe('Healthy')
  setClass('late', { mode: 'Immediate' })
  await settle()
  expect(status()).toMatchObject({ health: 'Progressing', reason: 'NotBound' })
})

test('HE20 where StorageClasses may not be read, the Events of the claim say whether it waits', async () => {
  const { cluster, kit, run, clock, status } = site({ late: { mode: LATE } })
  cluster.fail(({ verb, kind }) => (verb === 'watch' && kind === 'StorageClass' ? denied : null))
  kit.desire([claim({ storageClassName: 'late' })])
  await run()
  expect(status()?.health).toBe('Progressing')
  const uid = cluster.object(REF)?.metadata.uid
  cluster.editAs('persistentvolume-controller', { group: '', kind: 'Event', namespace: 'default', name: 'data.1' }, (event) =>
    Object.assign(event, { involvedObject: { kind: 'PersistentVolumeClaim', uid }, type: 'Normal', reason: 'WaitForFirstConsumer' }),
  )
  await clock.advance(5_000)
  expect(status()?.health).toBe('Healthy')
})

test('HE20 a claim that names its volume, or asks for none of a class, waits for no consumer', async () => {
  for (const spec of [{ storageClassName: 'late', volumeName: 'disk-1' }, { storageClassName: '' }]) {
    const { kit, run, status } = site({ late: { mode: LATE, annotations: IS_DEFAULT } })
    kit.desire([claim(spec)])
    await run()
    expect(status()).toMatchObject({ health: 'Progressing', reason: 'NotBound' })
  }
})
