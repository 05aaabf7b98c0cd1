// Failure catalogue: one object and two services that want it. Whoever asks when, in one commit or in two, the object
// is never deleted while anybody wants it, has one owner at a time, and who has to wait says for whom.
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import type { Cluster } from '../../agent/cluster/cluster.ts'
import { TRACKING_ANNOTATION } from '../../shared/kube/marks.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { CLUSTER_START_TIMEOUT_MS, type KubeCluster } from '../support/kube-cluster.ts'
import { type RealCluster, startRealCluster } from '../support/real-cluster.ts'
import { configMap, createReconcileKit, type ReconcileKit } from '../support/reconcile-kit.ts'
import { until } from '../support/watch-probe.ts'

let server: KubeCluster
let kit: ReconcileKit
let real: RealCluster
let deletes: string[] = []
let n = 0
let ns = ''
/** Of this test only: what an earlier one left behind belongs to others. */
let a: ServiceId = { project: 'web', service: 'a' }
let b: ServiceId = { project: 'web', service: 'b' }

beforeAll(async () => {
  real = await startRealCluster({ name: 'services', userAgent: 'skerry-agent/services' })
  server = real.server
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => real?.stop(), CLUSTER_START_TIMEOUT_MS)
afterEach(() => kit.stop())

/** A fresh agent in a namespace of its own. */
async function begin(): Promise<void> {
  n += 1
  ns = `move-${n}`
  deletes = []
  a = { project: 'web', service: `a${n}` }
  b = { project: 'web', service: `b${n}` }
  await server.kubectl(['create', 'namespace', ns])
  const watched: Cluster = {
    ...real.cluster,
    delete: (...args) => {
      deletes.push(args[1].name)
      return real.cluster.delete(...args)
    },
  }
  kit = createReconcileKit({ cluster: watched, clock: systemClock, incarnation: n })
  kit.start()
}

const map = (name: string, value = '1') => configMap(name, { v: value }, ns)
const read = async (name: string): Promise<K8sObject | null> => {
  const text = await server.kubectl(['get', 'configmap', name, '-n', ns, '-o', 'json', '--ignore-not-found'])
  return text.trim() === '' ? null : (JSON.parse(text) as K8sObject)
}
const key = (name: string) => `/ConfigMap/${ns}/${name}`
const owns = (id: ServiceId) =>
  kit.state
    .inventory(id)
    .map(({ ref }) => ref.name)
    .sort()
/** At what was asked for last: a word of before counts nothing. */
const isSynced = (id: ServiceId): boolean => {
  const [status, read] = [kit.service(id), kit.replica.reads.get(serviceKey(id))]
  return status?.reason === 'Synced' && read?.kind === 'complete' && status.applied?.digest === read.revision.row.digest
}
const synced = (...ids: ServiceId[]) => until(`${ids.map(({ service }) => service).join(' and ')} are synced`, () => ids.every(isSynced))
const trackedBy = async (name: string) => (await read(name))?.metadata.annotations?.[TRACKING_ANNOTATION]?.split('/')[2]?.split(':')[0]

/** It is the same object as before, and `id` owns it alone. */
async function isMoved(name: string, id: ServiceId, uid: string | undefined, value: string): Promise<void> {
  const live = await read(name)
  expect(live?.metadata.uid).toBe(uid)
  expect(live?.['data']).toEqual({ v: value })
  expect(await trackedBy(name)).toBe(id.service)
  expect(kit.state.ownerOf(key(name))).toEqual(id)
}

test('RC3 two services want one object: the first keeps it, the second names who has it, and gets it when the first lets go', async () => {
  await begin()
  kit.desire([map('same', 'a'), map('a-own')], {}, a)
  await synced(a)
  kit.desire([map('same', 'b'), map('b-own')], {}, b)
  await until('the second says who has it', () => kit.object(key('same'), b)?.message.includes(`web/${a.service}`) === true)
  expect(kit.object(key('same'), b)?.reason).toBe('OwnedByOther')
  expect((await read('same'))?.['data']).toEqual({ v: 'a' })
  expect(owns(b)).toEqual(['b-own'])
  const uid = (await read('same'))?.metadata.uid
  kit.desire([map('a-own')], {}, a)
  await synced(a, b)
  await isMoved('same', b, uid, 'b')
  expect(deletes).toEqual([])
}, 60_000)

test('RC3 moved in one commit: both revisions come at once, in either order', async () => {
  await begin()
  for (const [giver, taker] of [
    [a, b],
    [b, a],
  ] as const) {
    const name = `from-${giver.service}`
    kit.desire([map(`${giver.service}-own`), map(name)], {}, giver)
    kit.desire([map(`${taker.service}-own`)], {}, taker)
    await synced(a, b)
    const uid = (await read(name))?.metadata.uid
    expect(uid).toBeDefined()
    kit.desire([map(`${giver.service}-own`)], {}, giver)
    kit.desire([map(`${taker.service}-own`), map(name, '2')], {}, taker)
    await until('moved', () => owns(taker).includes(name) && isSynced(taker))
    await synced(a, b)
    await isMoved(name, taker, uid, '2')
    expect(deletes).toEqual([])
    kit.desire([map(`${taker.service}-own`)], {}, taker)
    await until('pruned', async () => (await read(name)) === null)
    deletes = []
  }
}, 60_000)

/** `a` has `moves` (its uid is the answer), and `b` wants it. */
async function beginWithWaitingTaker(): Promise<string | undefined> {
  await begin()
  kit.desire([map('a-own'), map('moves')], {}, a)
  await synced(a)
  const uid = (await read('moves'))?.metadata.uid
  kit.desire([map('b-own'), map('moves', '2')], {}, b)
  await until('the taker waits', () => kit.object(key('moves'), b)?.reason === 'OwnedByOther')
  return uid
}

test('RC3 moved in two commits, the taker first: it waits, and takes over without a gap', async () => {
  const uid = await beginWithWaitingTaker()
  kit.desire([map('a-own')], {}, a)
  await synced(a, b)
  await isMoved('moves', b, uid, '2')
  expect(deletes).toEqual([])
}, 60_000)

test('PR8 moved in two commits, the giver first: the server says whose it will be, so nothing is deleted in between', async () => {
  await begin()
  kit.desire([map('a-own'), map('moves')], {}, a)
  const after = kit.desire([map('b-own')], {}, b)
  await synced(a, b)
  const uid = (await read('moves'))?.metadata.uid
  kit.desire([map('a-own')], { handover: [{ object: key('moves'), ...b, after }] }, a)
  await until('the giver says for whom it keeps it', () => kit.service(a)?.message.includes(`web/${b.service}`) === true)
  expect(kit.service(a)?.message).toContain(`ConfigMap ${ns}/moves`)
  kit.desire([map('b-own'), map('moves', '2')], {}, b)
  await until('moved', () => owns(b).includes('moves') && isSynced(b))
  await isMoved('moves', b, uid, '2')
  expect(deletes).toEqual([])
}, 60_000)

test('RC3 two services swap an object each', async () => {
  await begin()
  kit.desire([map('a-own'), map('x', 'a')], {}, a)
  kit.desire([map('b-own'), map('y', 'b')], {}, b)
  await synced(a, b)
  const [x, y] = [(await read('x'))?.metadata.uid, (await read('y'))?.metadata.uid]
  kit.desire([map('a-own'), map('y', 'a')], {}, a)
  kit.desire([map('b-own'), map('x', 'b')], {}, b)
  await until('swapped', () => owns(a).join() === 'a-own,y' && owns(b).join() === 'b-own,x')
  await synced(a, b)
  await isMoved('y', a, y, 'a')
  await isMoved('x', b, x, 'b')
  expect(deletes).toEqual([])
}, 60_000)

test('RC3 the giver is removed while the taker waits: the object stays', async () => {
  const uid = await beginWithWaitingTaker()
  kit.remove('prune', a, systemClock.nowMs())
  await until('the giver is gone', () => kit.service(a)?.removed === true)
  await synced(b)
  await isMoved('moves', b, uid, '2')
  expect(deletes).toEqual(['a-own'])
}, 60_000)
