// PL9: a server that was made anew sends only the buckets that differ; what is kept enters a new file below everything
// that the server may send later.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { forgePage } from '../support/hostile-pages.ts'
import { parsePage } from '../support/page-kit.ts'
import { inSync, position, pull, refetch, serverRows } from '../support/replica-kit.ts'
import { CLUSTER, DB, openTestReplica, openTestShards, revision, WEB } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const objects = (count: number, change: Record<string, string> = {}) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`o${n}`, change[`o${n}`] ?? `value ${n}`]))

/** Clocks of the replica file: what later rows of the server are measured against. */
function clocks(path: string): Array<{ colVersion: number; cl: number }> {
  const db = openSqlite(path, { readonly: true })
  const rows = db.query<{ colVersion: number; cl: number }, []>(`
    SELECT c.col_version AS colVersion, coalesce((SELECT s.col_version FROM desired__crsql_clock s WHERE s.key = c.key AND s.col_name = '-1'), 1) AS cl
    FROM desired__crsql_clock c WHERE c.col_name = 'doc'`)
  const all = rows.all()
  db.close()
  return all
}

test.each([
  [1, 20],
  [16, 300],
  [256, 4_200],
])(
  'PL9 with %d buckets only those that differ travel, and every later row of the server wins',
  async (buckets, count) => {
    const dir = tempDir()
    const { shards: before } = openTestShards(join(dir, 'before'), { shardCount: 1 })
    // Deleted, made again and changed: the clocks of the old file are far above those of a new one.
    for (const [n, rows] of [objects(count), null, objects(count, { o1: 'x' }), objects(count)].entries())
      before.writeRevisions([revision(CLUSTER, WEB, n + 1, rows)])
    before.writeRevisions([revision(CLUSTER, DB, 5, { gone: '1' })])
    const path = join(dir, 'replica.db')
    const replica = openTestReplica(path)
    replica.applyPage(await pull(before, null))
    for (const n of [6, 7]) {
      before.writeRevisions([revision(CLUSTER, WEB, n, n === 6 ? null : objects(count))])
      replica.applyPage(await pull(before, position(replica)))
    }
    expect(clocks(path).some(({ cl }) => cl > 1)).toBe(true)

    const { shards } = openTestShards(join(dir, 'after'), { shardCount: 1, epochOf: () => 2 })
    const news = { o2: 'changed' }
    shards.writeRevisions([revision(CLUSTER, WEB, 1, objects(count, news))])
    expect(replica.bucketSums()).toHaveLength(buckets * 16)
    const page = await refetch(shards, replica)
    const { rows, hello } = parsePage(Buffer.from(page))
    expect(hello.keep).toHaveLength(buckets)
    expect(rows.length < count / 2).toBe(buckets > 1)
    expect(replica.applyPage(page)).toMatchObject({ kind: 'applied', changedServices: [DB, WEB] })
    expect(replica.dump()).toEqual(await serverRows(shards))
    expect(clocks(path).every(({ colVersion, cl }) => colVersion === 1 && cl === 1)).toBe(true)

    const later = [
      objects(count, { ...news, o3: 'a' }), // the first change of a kept row, to a lesser text than it had
      objects(count - 10, news), // deleted
      objects(count, { ...news, [`o${count - 1}`]: 'again' }), // and made again
      null,
      objects(count),
    ]
    for (const [n, rows] of later.entries()) {
      shards.writeRevisions([revision(CLUSTER, WEB, n + 2, rows)])
      expect(replica.applyPage(await pull(shards, position(replica))).kind).toBe('applied')
      expect(replica.dump()).toEqual(await serverRows(shards))
    }
    expect(openTestReplica(path).verified()).toBe(true)
  },
  30_000,
)

test('PL9 with nothing changed no row travels, and nothing is told to have changed', async () => {
  const { replica, shards, dir } = await inSync()
  const { shards: after } = openTestShards(join(dir, 'after'), { shardCount: 1, epochOf: () => 2 })
  after.writeRevisions([revision(CLUSTER, WEB, 1, { a: '1', b: '1' })])
  after.writeRevisions([revision(CLUSTER, DB, 2, { d: '1' })])
  const page = await refetch(after, replica)
  expect(parsePage(Buffer.from(page))).toMatchObject({ rows: [], hello: { keep: '1', from: null } })
  expect(replica.applyPage(page)).toEqual({ kind: 'applied', position: after.head(CLUSTER), changedServices: [] })
  expect(replica.dump()).toEqual(await serverRows(shards))
})

test('PL9 an empty replica shows nothing and keeps nothing', async () => {
  const dir = tempDir()
  const replica = openTestReplica(join(dir, 'replica.db'))
  expect(replica.bucketSums()).toHaveLength(0)
  const { shards } = openTestShards(join(dir, 'shards'), { shardCount: 1 })
  replica.applyPage(await refetch(shards, replica))
  expect([replica.verified(), replica.bucketSums().length]).toEqual([true, 0])
  shards.writeRevisions([revision(CLUSTER, WEB, 1, { a: '1' })])
  expect(replica.applyPage(await refetch(shards, replica)).kind).toBe('applied')
  expect(replica.dump()).toEqual(await serverRows(shards))
})

test('PL9 a page that keeps what is no longer held is refused, and a bootstrap heals', async () => {
  const { replica, shards, path } = await inSync()
  const page = await refetch(shards, replica)
  const rogue = openSqlite(path)
  rogue.run('UPDATE replica_position SET count = count + 1')
  rogue.close()
  expect(replica.applyPage(page)).toMatchObject({ kind: 'refused', why: 'keeps rows of an incomplete replica' })
  expect(replica.bucketSums()).toHaveLength(0)
  expect(replica.applyPage(await refetch(shards, replica)).kind).toBe('applied')
  expect(replica.verified()).toBe(true)
})

test('PL9 PL5 a refused re-base leaves the old file in force, with its position', async () => {
  const { replica, shards } = await inSync()
  const before = [replica.dump(), replica.position(), replica.proof()]
  const to = { ...position(replica), dbId: 'cd'.repeat(16), hash: 'ab'.repeat(16) }
  const forged = forgePage({ clusterId: CLUSTER, from: null, to, count: 5, lines: [], signed: { keep: '1' } })
  expect(replica.applyPage(forged)).toMatchObject({ kind: 'refused', why: 'its rows differ from its hash' })
  expect([replica.dump(), replica.position(), replica.proof()]).toEqual(before)
  shards.writeRevisions([revision(CLUSTER, WEB, 3, { a: '2' })])
  expect(replica.applyPage(await pull(shards, position(replica))).kind).toBe('applied')
})

test('RP2 the proof is of the last page applied, is kept beside a lost file, and is of this cluster only', async () => {
  const { replica, shards, path } = await inSync()
  shards.writeRevisions([revision(CLUSTER, WEB, 3, { a: '2' })])
  const delta = await pull(shards, position(replica))
  replica.applyPage(delta)
  const { hello, checkpoint } = parsePage(Buffer.from(delta))
  expect(replica.proof()).toEqual({ hello, checkpoint })
  replica.close()
  const again = openTestReplica(path)
  expect(again.proof()).toEqual({ hello, checkpoint })
  again.close()
  await Bun.write(path, 'lost')
  const lost = openTestReplica(path)
  expect([lost.verified(), lost.proof()]).toEqual([false, { hello, checkpoint }])
  expect(openTestReplica(path, 'c-00000000000000ff').proof()).toBeNull()
})
