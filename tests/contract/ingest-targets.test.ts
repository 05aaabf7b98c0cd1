// Placements of services that targets, labels, deletions and confirmations change, down to the rows that an agent
// pulls.
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { configMap, confirmationId, createIngestKit, type IngestKit, SHOP } from '../support/ingest-kit.ts'
import { eventually } from '../support/kube-cluster.ts'
import { naming } from '../support/naming.ts'

let kit: IngestKit
let one: ClusterId
let two: ClusterId
beforeEach(async () => {
  kit = await createIngestKit()
  one = await kit.join('1')
  two = await kit.join('2')
  await kit.git.commit(
    { 'shop/a.yaml': configMap('a', '1'), 'shop/b.yaml': configMap('b', '1'), 'other/c.yaml': configMap('c', '1') },
    'first',
  )
  await kit.repository()
  await kit.service()
})
afterEach(() => kit.close())
const A = 'object/default/shop//ConfigMap/shop/a'
const B = 'object/default/shop//ConfigMap/shop/b'
const ROW = 'service/default/shop'

describe('targets', () => {
  test('TG5 a selector that suddenly matches nobody waits with the names; mended, nothing has happened', async () => {
    await kit.pull(one)
    await kit.service({ targets: { selector: { matchLabels: { env: 'prodd' } } } })
    expect([await kit.pull(one), await kit.pull(two)]).toEqual([[], [A, B, ROW]])
    expect(await kit.store.listConfirmations()).toMatchObject([{ kind: 'leave_targets', names: ['cluster-1', 'cluster-2'] }])
    await kit.push({ 'shop/a.yaml': configMap('a', '6') })
    expect(await kit.pull(one)).toEqual([A, ROW])
    await kit.service()
    expect(await kit.store.listConfirmations()).toEqual([])
    expect((await kit.row(one))?.removal).toBeUndefined()
  })

  test('TG3 a fleet that is relabelled cluster by cluster loses five, the others are asked about', async () => {
    for (const digit of ['3', '4', '5', '6', '7', '8']) await kit.join(digit)
    await kit.ingest.clustersChanged()
    for (let n = 1; n <= 8; n++) await kit.relabel(`cluster-${n}`, { env: 'prd' })
    const rows = await kit.store.desiredOfService(SHOP)
    expect(rows.filter(({ doc }) => doc?.removal !== undefined)).toHaveLength(5)
    expect(await kit.store.listConfirmations()).toMatchObject([{ kind: 'leave_targets', names: ['cluster-6', 'cluster-7', 'cluster-8'] }])
  })

  test('TG7 TG8 relabelling moves a service: removal order, report, tombstone', async () => {
    const three = await kit.join('3', { env: 'test' })
    await kit.pull(one)
    await kit.relabel('cluster-1', { env: 'test' })
    await kit.relabel('cluster-3', { env: 'prod' })
    expect(await kit.pull(one)).toEqual([`-${A}`, `-${B}`, ROW])
    expect((await kit.row(one))?.removal).toMatchObject({ policy: 'delete', by: 'skerry' })
    expect(await kit.pull(three)).toEqual([A, B, ROW])
    await kit.reportRemoved(one)
    expect(await kit.pull(one)).toEqual([`-${ROW}`])
    expect(await kit.store.listStatus({ clusterId: one, kind: 'service' })).toEqual([])
  })

  test('TG8 an agent’s answer to an order that was taken back does not end the next one', async () => {
    await kit.relabel('cluster-1', { env: 'test' })
    const before = (await kit.row(one))?.removal?.atMs ?? 0
    await kit.relabel('cluster-1', { env: 'prod' })
    await Bun.sleep(2)
    await kit.relabel('cluster-1', { env: 'test' })
    await kit.report(one, { removed: true, removedOrderMs: before })
    await kit.report(one, { removed: true })
    expect((await kit.row(one))?.removal).toBeDefined()
    await kit.reportRemoved(one)
    expect(await kit.row(one)).toBeNull()
  })

  test('TG11 a deleted service goes by removal orders and is gone when all have reported', async () => {
    expect(await kit.actions.deleteService(SHOP, 'ada')).toEqual({ kind: 'removing', clusters: ['cluster-1', 'cluster-2'] })
    expect((await kit.row(one))?.removal).toMatchObject({ by: 'ada', why: naming('service', 'deleted') })
    await kit.reportRemoved(one)
    expect(await kit.store.getResource({ kind: 'Service', project: 'default', name: 'shop' })).not.toBeNull()
    await kit.reportRemoved(two)
    await kit.ingest.serviceChanged(SHOP)
    expect(await kit.store.getResource({ kind: 'Service', project: 'default', name: 'shop' })).toBeNull()
    expect(await kit.actions.deleteService(SHOP, 'ada')).toEqual({ kind: 'not_found' })
  })

  test('RM1 RM4 names of data that come with a deletion go with the order of their cluster, later ones into the same order', async () => {
    const names = (data: Array<[ClusterId, string[]]>) => new Map([['default/shop', new Map(data)]])
    await kit.actions.deleteService(SHOP, 'ada', names([[one, ['PersistentVolumeClaim shop/data']]]))
    const order = (await kit.row(one))?.removal
    expect([(await kit.row(one))?.confirmed, (await kit.row(two))?.confirmed]).toEqual([['PersistentVolumeClaim shop/data'], undefined])
    expect((await kit.events()).find((event) => event.startsWith('DeletionRequested'))).toContain('data of PersistentVolumeClaim shop/data')
    await kit.actions.deleteService(SHOP, 'ada', names([[one, ['PersistentVolumeClaim shop/more']]]))
    expect(await kit.row(one)).toMatchObject({
      confirmed: ['PersistentVolumeClaim shop/data', 'PersistentVolumeClaim shop/more'],
      removal: { atMs: order?.atMs ?? -1 },
    })
  })

  test('RM4 names count for what follows from the change that they came with, and for nothing later', async () => {
    const confirmed = new Map([['default/shop', new Map([[one, ['PersistentVolumeClaim shop/data']]])]])
    await kit.ingest.dataConfirmed(confirmed)
    await kit.ingest.serviceChanged(SHOP)
    await kit.relabel('cluster-1', { env: 'test' })
    expect(await kit.row(one)).toMatchObject({ removal: { policy: 'delete' } })
    expect((await kit.row(one))?.confirmed).toBeUndefined()
  })

  test('RM4 names that come with a change of labels go with the order; a service that lets go takes none', async () => {
    const confirmed = new Map([['default/shop', new Map([one, two].map((id) => [id, ['PersistentVolumeClaim shop/data']]))]])
    await kit.ingest.dataConfirmed(confirmed)
    await kit.relabel('cluster-1', { env: 'test' })
    expect((await kit.row(one))?.confirmed).toEqual(['PersistentVolumeClaim shop/data'])
    await kit.service({ deletionPolicy: 'orphan' })
    await kit.ingest.dataConfirmed(confirmed)
    await kit.relabel('cluster-2', { env: 'test' })
    expect([(await kit.row(two))?.removal?.policy, (await kit.row(two))?.confirmed]).toEqual(['orphan', undefined])
  })

  test('TG4 a protected service is deleted only after a person confirmed the exact names', async () => {
    await kit.service({ protect: true })
    const outcome = await kit.actions.deleteService(SHOP, 'ada')
    expect(outcome).toMatchObject({ kind: 'waiting', confirmation: { names: ['cluster-1', 'cluster-2'] } })
    expect((await kit.row(one))?.removal).toBeUndefined()
    await kit.actions.confirm(await confirmationId(kit.store), 'grace')
    expect((await kit.row(one))?.removal).toMatchObject({ by: 'grace' })
    expect(await kit.store.listConfirmations()).toEqual([])
  })

  test('DE4 TG4 the question names the services that depend on it, and they stay', async () => {
    await kit.service({ protect: true })
    await kit.service({ dependsOn: [{ name: 'shop' }] }, 'till')
    const outcome = await kit.actions.deleteService(SHOP, 'ada')
    expect(outcome).toMatchObject({
      kind: 'waiting',
      confirmation: { why: expect.stringMatching(/; .*dependents .*: default\/till$/) },
    })
  })

  test('TG14 a deletion that waits is taken back by applying the service again; a yes that comes later is for nothing', async () => {
    await kit.service({ protect: true })
    await kit.actions.deleteService(SHOP, 'ada')
    const id = await confirmationId(kit.store)
    expect(await kit.actions.takeBackDeletion(SHOP, 'grace')).toBe(true)
    await kit.service({ protect: true })
    expect(await kit.store.listConfirmations()).toEqual([])
    expect(await kit.actions.confirm(id, 'ada')).toBeNull()
    await kit.ingest.serviceChanged(SHOP)
    expect([(await kit.row(one))?.removal, (await kit.row(two))?.removal]).toEqual([undefined, undefined])
    expect((await kit.store.getResource({ kind: 'Service', project: 'default', name: 'shop' }))?.deletingMs).toBeNull()
    expect(await kit.events()).toContainEqual(naming('DeletionTakenBack: ', 'grace'))
    // Deleted again it asks again; after the yes there is no way back.
    await kit.actions.deleteService(SHOP, 'ada')
    await kit.actions.confirm(await confirmationId(kit.store), 'ada')
    expect(await kit.actions.takeBackDeletion(SHOP, 'grace')).toBe(false)
  })

  test('TG14 a deletion that is taken back while its last pass runs leaves the service', async () => {
    await kit.service({ protect: true })
    await kit.actions.deleteService(SHOP, 'ada')
    const read = kit.store.confirmationsOfService
    kit.store.confirmationsOfService = async (id) => {
      const questions = await read(id)
      // The pass that finds no cluster any more is the last one, whoever asked for it.
      if ((await kit.store.listClusters()).length === 0) await kit.actions.takeBackDeletion(SHOP, 'grace')
      return questions
    }
    await kit.actions.deleteCluster('cluster-1', 'ada')
    await kit.actions.deleteCluster('cluster-2', 'ada')
    await kit.ingest.serviceChanged(SHOP)
    expect(await kit.store.getResource({ kind: 'Service', project: 'default', name: 'shop' })).toMatchObject({ deletingMs: null })
  })

  test('IN7 a yes to a prune is no new revision to tell of', async () => {
    const published = async () => (await kit.events()).filter((event) => event.startsWith('RevisionPublished')).length
    const before = await published()
    const digest = (await kit.row(one))?.digest ?? ''
    await kit.report(one, { refusal: { digest, names: ['ConfigMap shop/x'], count: 1, ownedCount: 3, why: 'most of it would go' } })
    await kit.actions.confirm(await confirmationId(kit.store), 'ada')
    expect([(await kit.row(one))?.pruneConfirmed, await published()]).toEqual([digest, before])
  })

  test('TG12 a refused prune opens a question with names; a yes puts the digest into that row; the question goes with the refusal', async () => {
    await kit.pull(one)
    const digest = (await kit.row(one))?.digest ?? ''
    await kit.report(one, { refusal: { digest, names: ['ConfigMap shop/x'], count: 1, ownedCount: 3, why: 'most of it would go' } })
    expect(await kit.store.listConfirmations()).toMatchObject([{ kind: 'prune', cluster: 'cluster-1', names: ['ConfigMap shop/x'] }])
    await kit.actions.confirm(await confirmationId(kit.store), 'ada')
    expect(await kit.pull(one)).toEqual([ROW])
    expect([(await kit.row(one))?.pruneConfirmed, (await kit.row(two))?.pruneConfirmed]).toEqual([digest, undefined])
    await kit.report(two, { refusal: { digest, names: ['ConfigMap shop/y'], count: 1, ownedCount: 3, why: 'x' } })
    await kit.report(two, {})
    expect(await kit.store.listConfirmations()).toEqual([])
  })

  test('TG12 an agent that reports of services which its cluster does not have opens no questions, and costs next to nothing', async () => {
    const refusal = { digest: 'a'.repeat(64), names: ['ConfigMap shop/x'], count: 1, ownedCount: 3, why: 'x' }
    const doc = {
      sync: 'Synced',
      health: 'Healthy',
      reason: '',
      message: '',
      sinceMs: 1,
      objectCount: 1,
      healthyCount: 1,
      removed: true,
      refusal,
    }
    const rows = Array.from({ length: 200 }, (_, n) => ({ kind: 'service' as const, key: `default/s${n}`, rev: n + 1, doc }))
    let passes = 0
    let lists = 0
    const { listClusters, getResource } = kit.store
    kit.store.listClusters = () => {
      lists += 1
      return listClusters()
    }
    kit.store.getResource = (key) => {
      passes += 1
      return getResource(key)
    }
    kit.actions.onStatus({ clusterId: one, clusterName: 'cluster-1' }, rows)
    await Bun.sleep(300)
    expect([(await kit.store.listConfirmations()).length, lists, passes]).toEqual([0, 0, 0])
    kit.actions.onStatus({ clusterId: one, clusterName: 'cluster-1' }, [
      { ...rows[0], key: 'default/shop', doc: { ...doc, removed: false } } as never,
    ])
    await eventually('it asks', async () => (await kit.store.listConfirmations()).length > 0)
    expect(await kit.store.listConfirmations()).toMatchObject([{ kind: 'prune', cluster: 'cluster-1', service: 'shop' }])
  })

  test('TG13 a deleted cluster takes its rows along and leaves the others alone', async () => {
    expect(await kit.actions.deleteCluster('cluster-1', 'ada')).toBe(true)
    expect(await kit.actions.deleteCluster('cluster-1', 'ada')).toBe(false)
    expect(await kit.store.desiredInCluster(one)).toEqual([])
    expect(await kit.row(two)).not.toBeNull()
  })
})
