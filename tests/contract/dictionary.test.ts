// Names and states of status rows: how many rows refer to each is exact whatever happened, and what is remembered of
// them is what is there.
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import type { KyselyPlugin, Transaction } from 'kysely'
import type { StatusWrite } from '../../server/fleet/records.ts'
import { FleetDictionary } from '../../server/store/queries/fleet-dictionary.ts'
import { RecentMap } from '../../server/store/recent-map.ts'
import { Dictionary } from '../../server/store/status/dictionary.ts'
import { driftState, statusColumns } from '../../server/store/status/status-columns.ts'
import { createStatusStore, deleteStatusOfCluster } from '../../server/store/status/store-status.ts'
import type { StoreDb, Tx } from '../../server/store/store-db.ts'
import type { Tables } from '../../server/store/tables.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { clusterId } from '../support/store-fixtures.ts'
import { openDb, STORES, type StoreKind } from '../support/stores.ts'

/** Two cores, and a database of its own for each test. */
setDefaultTimeout(60_000)

/** `fails`: after everything was written, before the commit. */
async function start(kind: StoreKind, digits = 'a') {
  const db = await openDb(kind)
  const state = { fails: false }
  const write: StoreDb['write'] = (work) =>
    db.write(async (tx: Tx) => {
      const result = await work(tx)
      if (state.fails) throw new Error('cut')
      return result
    })
  const store = createStatusStore({ ...db, read: db.read, write }, { clock: systemClock, random: seededRandom(1) })
  const clusters = [...digits].map(clusterId)
  for (const [index, id] of clusters.entries())
    await db.write(({ sql }) =>
      sql
        .insertInto('clusters')
        .values(newCluster(id, index + 1))
        .execute(),
    )
  return { db, state, store, clusters }
}

const newCluster = (cluster_id: ClusterId, no: number) => ({
  cluster_id,
  no,
  row_count: 0,
  name: cluster_id,
  cluster_uid: '',
  ...{
    epoch: 1,
    ordinal: 0,
    status_rev: 0,
    status_floor: 0,
    sweep_floor: 0,
    event_rev: 0,
    adopted_ordinal: 0,
    settled_epoch: 0,
    joined_ms: 0,
  },
  ...{ sweep_from: null, last_seen_ms: null, wait_s: 0 },
})

async function expectExact(db: StoreDb): Promise<void> {
  const rows = await db.read.selectFrom('status_rows').select(['cluster_no', 'name_id', 'state_id']).execute()
  const count = <K>(keys: readonly K[]) => new Map([...Map.groupBy(keys, (key) => key)].map(([key, some]) => [key, some.length]))
  const names = await db.read.selectFrom('names').select(['id', 'refs']).execute()
  const states = await db.read.selectFrom('states').select(['id', 'refs']).execute()
  const clusters = await db.read.selectFrom('clusters').select(['no', 'row_count']).execute()
  const used = (some: ReadonlyArray<{ id: number; refs: number }>) =>
    new Map(some.filter(({ refs }) => refs !== 0).map(({ id, refs }) => [id, refs]))
  expect(used(names)).toEqual(count(rows.map(({ name_id }) => name_id)))
  expect(used(states)).toEqual(count(rows.flatMap(({ state_id }) => state_id ?? [])))
  const counts = count(rows.map(({ cluster_no }) => cluster_no))
  expect(clusters.map(({ no, row_count }) => [no, row_count])).toEqual(clusters.map(({ no }) => [no, counts.get(no) ?? 0]))
}

const object = (name: string, rev: number, reason = 'r'): StatusWrite => ({
  kind: 'object',
  key: `p/s//Pod/n/${name}`,
  rev,
  doc: { sync: 'Synced', health: 'Healthy', reason, message: '', sinceMs: 1 },
})
const service = (key: string, rev: number): StatusWrite => ({
  kind: 'service',
  key,
  rev,
  doc: { sync: 'Synced', health: 'Healthy', reason: 'r', message: '', sinceMs: 1, objectCount: 1, healthyCount: 1 },
})
const delta = { complete: false, nowMs: 1 }

describe.each(STORES)('on $name', (kind) => {
  test.each([1, 2, 3])('ST19 after history %d each name, state and cluster has as many rows as it says', async (seed) => {
    const { db, store, clusters, state } = await start(kind, 'abc')
    const random = seededRandom(seed)
    const pick = (max: number) => Math.floor(random() * max)
    let rev = 0
    const row = (): StatusWrite => {
      const [key, nextRev] = [`p/s${pick(3)}`, ++rev - pick(4)]
      const doc = { sync: 'Synced', health: 'Healthy', reason: `r${pick(4)}`, message: '', sinceMs: pick(3) }
      if (pick(6) === 0)
        return { kind: 'service', key, rev: nextRev, doc: pick(4) === 0 ? null : { ...doc, objectCount: 1, healthyCount: 1 } }
      if (pick(6) === 0)
        return {
          kind: 'drift',
          key: `${key}//Pod/n/o${pick(9)}`,
          rev: nextRev,
          doc: { action: 'healed', detectedMs: pick(3), paths: [], manager: '', count: 1 },
        }
      return { kind: 'object', key: `${key}//Pod/n/o${pick(9)}`, rev: nextRev, doc: pick(4) === 0 ? null : doc }
    }
    const complete = () =>
      [false, false, true, { after: null, upTo: 'object/p/s1' }, { after: 'object/p/s1', upTo: null }][pick(5)] ?? false
    for (let step = 0; step < 60; step++) {
      const cluster = clusters[pick(3)] ?? clusterId('a')
      state.fails = pick(8) === 0
      const rows = Array.from({ length: pick(12) }, row)
      await Promise.allSettled([
        store.upsertStatus(cluster, rows, { complete: complete(), olderThan: pick(3) === 0 ? rev : 0, nowMs: step }),
        store.upsertStatus(clusters[pick(3)] ?? cluster, [row()], delta),
        ...(pick(5) === 0 ? [store.deleteStatusOfService(cluster, { project: 'p', service: `s${pick(3)}` })] : []),
      ])
      if (step % 20 === 19) await expectExact(db)
    }
    await db.write(async (tx) => {
      await deleteStatusOfCluster(tx, db.engine, 2)
      await tx.sql.deleteFrom('clusters').where('no', '=', 2).execute()
    })
    await expectExact(db)
    await db.destroy()
  })

  test('ST19 what was rolled back is not remembered', async () => {
    const { db, state, store, clusters } = await start(kind)
    const [a = clusterId('a')] = clusters
    state.fails = true
    await expect(store.upsertStatus(a, [object('x', 1)], delta)).rejects.toThrow('cut')
    state.fails = false
    await store.upsertStatus(a, [object('other', 2, 'another'), object('x', 3)], delta)
    expect((await store.listStatus({ kind: 'object' })).map(({ key, doc }) => [key, (doc as { reason: string }).reason])).toEqual([
      ['p/s//Pod/n/other', 'another'],
      ['p/s//Pod/n/x', 'r'],
    ])
    await expectExact(db)
    await db.destroy()
  })

  test('ST19 QY1 long texts that a cluster makes up are kept and shown whole, and fill no memory', async () => {
    const { db, store, clusters } = await start(kind)
    const [a = clusterId('a')] = clusters
    const long = (n: number): StatusWrite => {
      const images = Array.from({ length: 20 }, (_, i) => `${n}-${i}-`.padEnd(512, 'i'))
      const doc = { sync: 'Synced', health: 'Healthy', reason: 'r', message: `first ${n} `.padEnd(4_096, 'm'), sinceMs: 1, images }
      return { kind: 'object', key: `p/s//Pod/n/o${n}`, rev: n, doc }
    }
    const rows = Array.from({ length: 50 }, (_, n) => long(n + 1))
    await store.upsertStatus(a, rows, delta)
    const again = rows.map((row) => ({ ...row, rev: row.rev + 100 }))
    await store.upsertStatus(a, again, delta)
    expect((await store.listStatus({ kind: 'object', key: 'p/s//Pod/n/o7' })).map(({ doc }) => doc)).toEqual([long(7).doc])
    await expectExact(db)
    const asked = new FleetDictionary(systemClock)
    await asked.refresh(db.read)
    const entries = [...asked.states.values()]
    expect(entries.map(({ text }) => text.startsWith('r\nfirst '))).toEqual(rows.map(() => true))
    expect(JSON.stringify(entries).length).toBeLessThan(50 * 3_000)
    const held = new Dictionary(db.engine)
    await db.write(async (tx) => {
      const work = await held.open(tx)
      const states = rows.flatMap(({ kind: of, doc }) => (of === 'event' ? [] : (statusColumns(of, doc).state ?? [])))
      const ids = await work.stateIds([...states, driftState('healed')])
      expect([...(await work.statesOf(ids.slice(0, 50))).values()]).toEqual(states)
      held.keep(work)
    })
    expect([held.states.size, held.statesById.size]).toEqual([1, 1])
    await db.destroy()
  })

  test('ST19 what other clusters call the objects of a service costs a cluster nothing that lets go of it', async () => {
    const { db, clusters } = await start(kind, 'ab')
    const [a = clusterId('a'), b = clusterId('b')] = clusters
    const asked = { n: 0 }
    const counter: KyselyPlugin = {
      transformQuery: ({ node }) => {
        asked.n += 1
        return node
      },
      transformResult: async ({ result }) => result,
    }
    const write: StoreDb['write'] = (work) => db.write((tx) => work({ ...tx, sql: tx.sql.withPlugin(counter) as Tx['sql'] }))
    const read = (db.read as Transaction<Tables>).withPlugin(counter)
    const store = createStatusStore({ ...db, read, write }, { clock: systemClock, random: seededRandom(1) })
    const many = Array.from(
      { length: 3_000 },
      (_, n): StatusWrite => (n % 2 === 0 ? object(`made-up-${n}`, n + 1) : service(`p/s-${n}`, n + 1)),
    )
    await store.upsertStatus(a, many, delta)
    await store.upsertStatus(b, [object('x', 1), { ...object('y', 2), key: 'p/s2//Pod/n/y' }, service('p/s3', 3)], delta)
    asked.n = 0
    for (const [of, prefix, keys] of [
      ['object', 'p/s/', ['p/s//Pod/n/x']],
      ['object', 'p/', ['p/s//Pod/n/x', 'p/s2//Pod/n/y']],
      ['service', undefined, ['p/s3']],
      ['service', 'p/t', []],
    ] as const) {
      const listed = await store.listStatus({ clusterId: b, kind: of, ...(prefix === undefined ? {} : { keyPrefix: prefix }) })
      expect(listed.map(({ key }): string => key)).toEqual([...keys])
    }
    expect(asked.n).toBe(8)
    asked.n = 0
    await store.deleteStatusOfService(b, { project: 'p', service: 's' })
    expect(asked.n).toBeLessThan(12)
    expect((await store.listStatus({ clusterId: b, kind: 'object' })).map(({ key }) => key)).toEqual(['p/s2//Pod/n/y'])
    expect(await store.listStatus({ clusterId: b, kind: 'object', keyPrefix: 'p/s/' })).toEqual([])
    expect(await store.listStatus({ clusterId: a, kind: 'object', keyPrefix: 'p/s/' })).toHaveLength(1_500)
    await expectExact(db)
    await db.destroy()
  })

  test('ST19 what was collected is made anew, by those too who remember it', async () => {
    const { db, store, clusters } = await start(kind)
    const [a = clusterId('a')] = clusters
    await store.upsertStatus(a, [object('x', 1)], delta)
    await store.upsertStatus(a, [], { complete: true, olderThan: 5, nowMs: 1 })
    await db.write(async ({ sql }) => {
      await sql.deleteFrom('names').where('refs', '=', 0).execute()
      await sql.deleteFrom('states').where('refs', '=', 0).execute()
      await sql
        .updateTable('counters')
        .set((eb) => ({ value: eb('value', '+', 1) }))
        .where('name', '=', 'dictionary')
        .execute()
    })
    await store.upsertStatus(a, [object('x', 9)], delta)
    expect((await store.listStatus({ kind: 'object' })).map(({ key, rev }) => [key, rev])).toEqual([['p/s//Pod/n/x', 9]])
    await expectExact(db)
    await db.destroy()
  })
})

test('ST19 what is remembered is bounded, and what is asked for stays', () => {
  const map = new RecentMap<number>(1_000)
  for (let n = 0; n < 10_000; n++) {
    map.set(`k${n}`, n)
    expect(map.get('k0')).toBe(0)
    expect(map.size).toBeLessThanOrEqual(1_000)
  }
  expect([map.get('k9999'), map.get('k1')]).toEqual([9_999, undefined])
  map.clear()
  expect([map.size, map.get('k0')]).toEqual([0, undefined])
})
