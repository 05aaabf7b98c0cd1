import { expect, test } from 'bun:test'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { servicePart } from '../../agent/messages/service-messages.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { HEALTH_RULES } from '../../shared/model/desired.ts'
import { SUSPENSIONS } from '../../shared/model/suspension.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { inSync, position, pull, serverRows } from '../support/replica-kit.ts'
import { CLUSTER, DB, objectRows, openTestReplica, openTestShards, revision, serviceDoc, WEB } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

test('PL8 a bootstrap brings every row and the position that a delta continues', async () => {
  const { shards, replica, path } = await inSync()
  expect(replica.dump()).toEqual(await serverRows(shards))
  expect(replica.position()).toEqual(shards.head(CLUSTER))
  expect(existsSync(`${path}.new`)).toBe(false)
  shards.writeRevisions([revision(CLUSTER, WEB, 3, { a: '2', b: '1' })])
  const applied = replica.applyPage(await pull(shards, position(replica)))
  expect(applied).toEqual({ kind: 'applied', position: shards.head(CLUSTER), changedServices: [WEB] })
  expect(replica.dump()).toEqual(await serverRows(shards))
})

test('PL8 a bootstrap over a held replica says which services differ', async () => {
  const { shards, replica } = await inSync()
  expect(replica.applyPage(await pull(shards, null))).toMatchObject({ kind: 'applied', changedServices: [] })
  shards.writeRevisions([revision(CLUSTER, DB, 3, null)])
  expect(replica.applyPage(await pull(shards, null))).toMatchObject({ kind: 'applied', changedServices: [DB] })
  expect(replica.dump()).toEqual(await serverRows(shards))
})

test('CU7 PL8 an empty cluster is a replica that verifies', async () => {
  const dir = tempDir()
  const { shards } = openTestShards(join(dir, 'shards'))
  const replica = openTestReplica(join(dir, 'replica.db'))
  expect([replica.position(), replica.verified(), replica.services()]).toEqual([null, false, []])
  expect(replica.applyPage(await pull(shards, null)).kind).toBe('applied')
  expect([replica.position(), replica.verified()]).toEqual([shards.head(CLUSTER), true])
})

test('PL2 rows deleted, inserted again, updated and deleted again arrive as the server has them', async () => {
  const { shards, replica } = await inSync()
  const steps: Array<Record<string, string> | null> = [
    { a: '1' },
    { a: '1', b: '9' },
    { a: '1', b: '0' },
    {},
    null,
    { b: 'again' },
    { b: 'once more' },
  ]
  for (const [index, objects] of steps.entries()) {
    shards.writeRevisions([revision(CLUSTER, WEB, index + 3, objects)])
    expect(replica.applyPage(await pull(shards, position(replica))).kind).toBe('applied')
    expect(replica.dump()).toEqual(await serverRows(shards))
  }
})

test('PL2 a delta over many versions equals the same versions one by one, and a bootstrap', async () => {
  const { shards, replica, dir } = await inSync()
  const late = openTestReplica(join(dir, 'late.db'))
  late.applyPage(await pull(shards, null))
  for (let n = 0; n < 30; n++) {
    const objects = Object.fromEntries(Array.from({ length: 5 }, (_, i) => [`o${(n * i) % 7}`, String(n % 3)]))
    shards.writeRevisions([revision(CLUSTER, n % 2 ? WEB : DB, n + 3, n % 11 === 10 ? null : objects)])
    replica.applyPage(await pull(shards, position(replica)))
  }
  late.applyPage(await pull(shards, position(late)))
  const fresh = openTestReplica(join(dir, 'fresh.db'))
  fresh.applyPage(await pull(shards, null))
  expect(replica.dump()).toEqual(await serverRows(shards))
  expect(late.dump()).toEqual(await serverRows(shards))
  expect(fresh.dump()).toEqual(await serverRows(shards))
})

test('PL6 applying the same page twice changes nothing', async () => {
  const { shards, replica } = await inSync()
  shards.writeRevisions([revision(CLUSTER, WEB, 3, { a: '2' })])
  const page = await pull(shards, position(replica))
  replica.applyPage(page)
  const once = [replica.dump(), replica.position()]
  expect(replica.applyPage(page)).toEqual({ kind: 'discarded' })
  expect([replica.dump(), replica.position()]).toEqual(once)
})

test('PL6 an answer to an older cursor that arrives late is discarded', async () => {
  const { shards, replica } = await inSync()
  const start = position(replica)
  shards.writeRevisions([revision(CLUSTER, WEB, 3, { a: '2' })])
  const early = await pull(shards, start)
  shards.writeRevisions([revision(CLUSTER, WEB, 4, { a: '3' })])
  replica.applyPage(await pull(shards, start))
  expect(replica.applyPage(early)).toEqual({ kind: 'discarded' })
  expect(replica.position()).toEqual(shards.head(CLUSTER))
})

test('CU3 PL1 a page from another file is never merged into this one', async () => {
  const { replica } = await inSync()
  const { shards: other } = openTestShards(tempDir(), { shardCount: 1 })
  const start = other.head(CLUSTER)
  other.writeRevisions([revision(CLUSTER, WEB, 1, { a: 'other' })])
  expect(replica.applyPage(await pull(other, start))).toEqual({ kind: 'discarded' })
})

test('CU4 rows and cursor survive a restart together', async () => {
  const { shards, replica, path } = await inSync()
  const before = [replica.dump(), replica.position(), replica.epoch()]
  replica.close()
  const again = openTestReplica(path)
  expect([again.dump(), again.position(), again.epoch()]).toEqual(before)
  expect(again.verified()).toBe(true)
  shards.writeRevisions([revision(CLUSTER, WEB, 3, { a: '2' })])
  expect(again.applyPage(await pull(shards, position(again))).kind).toBe('applied')
})

test('CU2a a lower epoch is refused, also after the replica file was lost', async () => {
  const dir = tempDir()
  let epoch = 2
  const { shards } = openTestShards(join(dir, 'shards'), { epochOf: () => epoch })
  const path = join(dir, 'replica.db')
  const replica = openTestReplica(path)
  replica.applyPage(await pull(shards, null))
  epoch = 1
  expect(replica.applyPage(await pull(shards, null))).toMatchObject({ kind: 'refused', why: 'epoch 1 is older than 2' })
  replica.close()
  writeFileSync(path, 'lost')
  const again = openTestReplica(path)
  expect(again.applyPage(await pull(shards, null)).kind).toBe('refused')
  epoch = 3
  expect(again.applyPage(await pull(shards, null)).kind).toBe('applied')
  expect(again.epoch()).toBe(3)
})

test('RV1 a service is complete only if its objects hash to the digest of its row', async () => {
  const { shards, replica } = await inSync()
  const read = replica.read(WEB)
  expect(read.kind === 'complete' && [...read.revision.objects]).toEqual([...objectRows(WEB, { a: '1', b: '1' })])
  expect(replica.services()).toEqual([DB, WEB])
  expect(replica.read({ project: 'shop', service: 'none' })).toEqual({ kind: 'absent' })

  const objects = objectRows(WEB, { a: '1' })
  const cases: Array<[string | null, ReadonlyMap<string, string>, string]> = [
    [serviceDoc(objectRows(WEB, { a: '1', b: '1' })), objects, servicePart('objects_missing', { have: 1, count: 2 })],
    [serviceDoc(objectRows(WEB, { a: '2' })), objects, servicePart('objects_differ')],
    ['{"digest":7}', objects, servicePart('fields_unreadable', { fields: 'commit, count, digest, sync' })],
    ['not JSON', objects, servicePart('row_unreadable')],
    [removal(), objects, servicePart('removal_with_objects', { count: 1 })],
  ]
  for (const [index, [doc, rows, why]] of cases.entries()) {
    shards.writeRevisions([{ clusterId: CLUSTER, ...WEB, ordinal: index + 3, serviceDoc: doc, objects: rows }])
    replica.applyPage(await pull(shards, position(replica)))
    expect(replica.read(WEB)).toEqual({ kind: 'incomplete', why })
    expect(replica.read(DB).kind).toBe('complete')
  }
  shards.writeRevisions([{ clusterId: CLUSTER, ...WEB, ordinal: 10, serviceDoc: removal(), objects: new Map() }])
  replica.applyPage(await pull(shards, position(replica)))
  expect(replica.read(WEB).kind).toBe('complete')
})

const removal = () => canonicalJson({ ...JSON.parse(serviceDoc(new Map())), removal: { policy: 'prune', by: 'a', atMs: 1, why: 'w' } })

test('RC34 a service leaves when its row is a removal order or gone, and not while its row cannot be read', async () => {
  const { shards, replica } = await inSync()
  const leaves = async (ordinal: number, doc: string | null) => {
    shards.writeRevisions([{ clusterId: CLUSTER, ...WEB, ordinal, serviceDoc: doc, objects: new Map() }])
    replica.applyPage(await pull(shards, position(replica)))
    return replica.isLeaving(WEB)
  }
  expect(replica.isLeaving(WEB)).toBe(false)
  expect([await leaves(3, 'not JSON'), await leaves(4, removal()), await leaves(5, null)]).toEqual([false, true, true])
})

test('SU1 rows of suspensions arrive beside those of health rules, change no service, and are read by themselves', async () => {
  const { shards, replica } = await inSync()
  const write = (service: ServiceId, objects: ReadonlyArray<[string, string]>) => {
    const ordinal = shards.ordinal(CLUSTER) + 1
    shards.writeRevisions([{ clusterId: CLUSTER, ...service, ordinal, serviceDoc: null, objects: new Map(objects) }])
  }
  write(HEALTH_RULES, [['healthrule//a', '{"n":1}']])
  for (const rows of [['suspension/all', 'suspension/services/web/shop'], ['suspension/cluster/ship-7'], []]) {
    write(
      SUSPENSIONS,
      rows.map((id) => [id, '{"n":2}']),
    )
    expect(replica.applyPage(await pull(shards, position(replica)))).toMatchObject({ kind: 'applied', changedServices: [] })
    expect([replica.suspensions(), replica.healthRules()]).toEqual([rows.map((id) => [id, '{"n":2}']), [['healthrule//a', '{"n":1}']]])
    expect(replica.dump()).toEqual(await serverRows(shards))
  }
})

test('HR6 rows of health rules arrive like all others, change no service, and are read by themselves', async () => {
  const { shards, replica } = await inSync()
  expect(replica.healthRules()).toEqual([])
  const rules = (objects: Record<string, string>) => ({
    ...{ clusterId: CLUSTER, ...HEALTH_RULES, serviceDoc: null },
    ordinal: shards.ordinal(CLUSTER) + 1,
    objects: new Map(Object.entries(objects)),
  })
  const steps: Array<Record<string, string>> = [
    { 'healthrule//a': '{"n":1}', 'healthrule/shop/a': '{"n":2}' },
    { 'healthrule//a': '{"n":3}' },
    {},
  ]
  for (const objects of steps) {
    shards.writeRevisions([rules(objects)])
    expect(replica.applyPage(await pull(shards, position(replica)))).toMatchObject({ kind: 'applied', changedServices: [] })
    expect(replica.healthRules()).toEqual(Object.entries(objects))
    expect(replica.dump()).toEqual(await serverRows(shards))
  }
})
