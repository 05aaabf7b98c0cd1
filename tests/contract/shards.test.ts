import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { checkRows, decodeRenderedSet, encodeRenderedSet } from '../../server/desired/rendered-set.ts'
import { type RowLines, UNBOUNDED } from '../../server/desired/row-lines.ts'
import { shardOf } from '../../server/desired/shard-files.ts'
import { openShardReader, refetchReason } from '../../server/desired/shard-reader.ts'
import { openCrdtDb } from '../../shared/adapters/crdt-db.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import type { Position } from '../../shared/crdt/position.ts'
import { EMPTY_HASH, hashOfRows } from '../../shared/crdt/row-hash.ts'
import { serviceRowId } from '../../shared/model/desired.ts'
import { parseRowLine, type Row } from '../../shared/protocol/frames.ts'
import { ROW_DOC_BYTES_MAX, ROW_ID_BYTES_MAX } from '../../shared/protocol/routes.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { IDENTITY, pullPage as page } from '../support/page-kit.ts'
import { CLUSTER, clusterNumber, DB, NEIGHBOUR, newId, objectRows, openTestShards, revision, WEB } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const parsed = ({ bytes, rows }: RowLines): Row[] => {
  const lines = bytes.toString().split('\n').slice(0, -1).map(parseRowLine)
  expect(lines).toHaveLength(rows)
  return lines.filter((row) => typeof row !== 'string')
}

const open = () => openTestShards(tempDir()).shards

test('CU1 CU7 a cluster without rows is at a valid position that later deltas continue', async () => {
  const shards = open()
  const start = await page(shards, CLUSTER, null)
  expect(start.hello.to).toMatchObject({ dv: 0, hash: EMPTY_HASH })
  expect(start.checkpoint.count).toBe(0)
  expect(await shards.pull(CLUSTER, start.hello.to, IDENTITY)).toEqual({ kind: 'nothing_new' })
  shards.writeRevisions([revision(CLUSTER, WEB, 1, { a: '1' })])
  expect((await page(shards, CLUSTER, start.hello.to)).rows.map(({ id }) => id)).toEqual([
    'object/shop/web//ConfigMap/default/a',
    'service/shop/web',
  ])
  shards.close()
})

test('CU2 the head carries the sum over the live rows, kept row by row', async () => {
  const shards = open()
  shards.writeRevisions([revision(CLUSTER, WEB, 1, { a: '1', b: '2' })])
  shards.writeRevisions([revision(CLUSTER, DB, 2, { a: '1' })])
  shards.writeRevisions([revision(CLUSTER, WEB, 3, { b: '3' })])
  shards.writeRevisions([revision(NEIGHBOUR, WEB, 1, { a: '9' })])
  const all = await page(shards, CLUSTER, null)
  expect(all.hello.to.hash).toBe(hashOfRows(all.rows.map(({ id, doc }) => [id, doc ?? ''])))
  expect(all.checkpoint.count).toBe(4)
  shards.close()
})

test('CU6 RV2 a revision is one db_version of one cluster, also between writes to a neighbour in the same file', async () => {
  const { shards } = openTestShards(tempDir(), { shardCount: 1 })
  const dvs = [
    [CLUSTER, 1, '1'],
    [NEIGHBOUR, 1, '1'],
    [CLUSTER, 2, '2'],
  ] as const
  const seen = dvs.map(([cluster, ordinal, value]) => {
    shards.writeRevisions([revision(cluster, WEB, ordinal, { a: value, b: value })])
    return shards.head(cluster).dv
  })
  expect(seen).toEqual([1, 2, 3])
  expect((await page(shards, CLUSTER, null)).hello.to.dv).toBe(3)
  shards.close()
})

test('CU6 RV4 writing the same revision again changes no row, no version and no log, and a restart hands no version out twice', async () => {
  const dir = tempDir()
  const first = openTestShards(dir).shards
  expect(first.writeRevisions([revision(CLUSTER, WEB, 1, { a: '1' })])).toEqual([{ changed: true }])
  const head = first.head(CLUSTER)
  expect(first.writeRevisions([revision(CLUSTER, WEB, 2, { a: '1' })])).toEqual([{ changed: false }])
  expect(first.head(CLUSTER)).toEqual(head)
  first.close()
  const second = openTestShards(dir).shards
  expect(second.head(CLUSTER)).toEqual(head)
  second.writeRevisions([revision(CLUSTER, WEB, 3, { a: '2' })])
  expect(second.head(CLUSTER).dv).toBe(head.dv + 1)
  expect((await page(second, CLUSTER, head)).rows).toHaveLength(2)
  second.close()
})

test('CU7 the ordinal is remembered, also of a revision that changed no row', () => {
  const dir = tempDir()
  const first = openTestShards(dir).shards
  expect(first.ordinal(CLUSTER)).toBe(0)
  first.writeRevisions([revision(CLUSTER, WEB, 3, { a: '1' })])
  first.writeRevisions([revision(CLUSTER, WEB, 4, { a: '1' })])
  first.close()
  const second = openTestShards(dir).shards
  expect(second.ordinal(CLUSTER)).toBe(4)
  expect(second.ordinal(NEIGHBOUR)).toBe(0)
  second.close()
})

test('PL2 the join on clock, keys and base says of every row what crsql_changes says', () => {
  const dir = tempDir()
  const { shards } = openTestShards(dir, { shardCount: 1 })
  const steps: Array<[ClusterId, Record<string, string> | null]> = [
    [CLUSTER, { a: '1', b: '1', c: '1' }],
    [NEIGHBOUR, { a: 'theirs' }],
    [CLUSTER, { a: '2', c: '1' }], // b deleted
    [CLUSTER, { a: '2', b: '2', c: '1' }], // b inserted again
    [CLUSTER, { a: '2', b: '3' }], // and updated; c deleted
    [NEIGHBOUR, null],
    [CLUSTER, { a: '2', b: '3', d: '' }],
  ]
  const cursors: Position[] = [shards.head(CLUSTER)]
  steps.forEach(([cluster, objects], index) => {
    shards.writeRevisions([revision(cluster, WEB, index + 1, objects)])
    cursors.push(shards.head(CLUSTER))
  })
  shards.close()

  const path = join(dir, 'shard-00.db')
  const oracle = openCrdtDb(path)
  const reader = openShardReader(path)
  for (const cursor of cursors) {
    const read = reader.read(CLUSTER, { kind: 'pull', cursor }, UNBOUNDED)
    const rows = read.kind === 'rows' ? parsed(read.lines) : []
    // Whole-row events of live rows say nothing that the cell does not.
    const expected = oracle.db
      .query<{ id: string; val: string | null; cv: number; cl: number }, [string, number]>(
        `SELECT p.id AS id, x.val AS val, x.col_version AS cv, x.cl AS cl
         FROM crsql_changes x JOIN desired__crsql_pks p ON crsql_pack_columns(p.cluster, p.id) = x.pk
         WHERE p.cluster = ? AND x.db_version > ? AND (x.cid = 'doc' OR x.cl % 2 = 0) ORDER BY x.db_version, x.seq`,
      )
      .all(CLUSTER, cursor.dv)
    expect(rows.map(({ id, doc, colVersion, cl }) => ({ id, val: doc, cv: colVersion, cl }))).toEqual(expected)
  }
  reader.close()
  oracle.close()
})

test('PL1 a cursor is answered by a delta only if it once was a head of this very file', async () => {
  const shards = open()
  shards.writeRevisions([revision(CLUSTER, WEB, 1, { a: '1' })])
  const early = shards.head(CLUSTER)
  shards.writeRevisions([revision(CLUSTER, WEB, 2, { a: '2' })])
  const head = shards.head(CLUSTER)
  const answer = async (cursor: Position) => {
    const pulled = await shards.pull(CLUSTER, cursor, IDENTITY)
    expect(shards.refusal(CLUSTER, cursor)).toBe(pulled.kind === 'refetch' ? pulled.reason : null)
    return pulled.kind === 'refetch' ? pulled.reason : pulled.kind
  }
  expect(await answer(early)).toBe('page')
  expect(await answer(head)).toBe('nothing_new')
  expect(await answer({ ...head, dv: head.dv + 1 })).toBe('restored')
  expect(await answer({ ...head, term: 2 })).toBe('forked')
  expect(await answer({ ...head, hash: early.hash })).toBe('diverged')
  expect(await answer({ ...early, hash: head.hash })).toBe('diverged')
  expect(await answer({ ...head, dbId: newId() })).toBe('unknown')
  expect(await answer({ ...head, dv: 0 })).toBe('diverged')
  shards.close()
})

const cursor = { dbId: 'd', term: 1, dv: 5, hash: 'h' }
const shard = { dbId: 'd', origin: 'created', headDv: 9, known: { term: 1, hash: 'h' } } as const
test.each([
  ['PL1 known', {}, null],
  ['PL1 another file', { dbId: 'e' }, 'unknown'],
  ['PL1 another file, because this one was made anew', { dbId: 'e', origin: 'rebuilt' }, 'restored'],
  ['PL1 another file, because this one was compacted', { dbId: 'e', origin: 'compacted' }, 'compacted'],
  ['PL1 exactly the head', { headDv: 5 }, null],
  ['PL1 one past the head', { headDv: 4 }, 'restored'],
  ['PL1 never a head of this cluster', { known: null }, 'unknown'],
  ['PL1 another writer', { known: { term: 2, hash: 'h' } }, 'forked'],
  ['PL1 other rows', { known: { term: 1, hash: 'i' } }, 'diverged'],
] as const)('%s', (_, change, expected) => expect(refetchReason(cursor, { ...shard, ...change })).toBe(expected))

test('PL7 a page holds rows of its cluster only', async () => {
  const { shards } = openTestShards(tempDir(), { shardCount: 1 })
  const start = shards.head(CLUSTER)
  shards.writeRevisions([revision(CLUSTER, WEB, 1, { mine: 'mine' })])
  shards.writeRevisions([revision(NEIGHBOUR, WEB, 1, { theirs: 'theirs' })])
  shards.writeRevisions([revision(NEIGHBOUR, WEB, 2, null)])
  for (const from of [null, start]) {
    expect((await page(shards, CLUSTER, from)).text).not.toContain('theirs')
    expect((await page(shards, CLUSTER, from)).rows).toHaveLength(2)
  }
  shards.close()
})

test('PL7 a neighbour’s row stays out even if it came to bear a version of this cluster', () => {
  const dir = tempDir()
  openTestShards(dir, { shardCount: 1 }).shards.close()
  const path = join(dir, 'shard-00.db')
  const wrong = openCrdtDb(path)
  wrong.db.transaction(() => {
    const dv = wrong.nextDbVersion()
    for (const cluster of [CLUSTER, NEIGHBOUR])
      wrong.db.query('INSERT INTO desired VALUES (?, ?, ?)').run(cluster, `service/${cluster}/x`, '{}')
    wrong.db.query('INSERT INTO tx_log VALUES (?, ?, 1, 1, ?, 1)').run(dv, CLUSTER, EMPTY_HASH)
  })()
  const reader = openShardReader(path)
  const { dbId } = wrong.db.query<{ dbId: string }, []>('SELECT db_id AS dbId FROM meta').get() ?? { dbId: '' }
  for (const from of [null, { dbId, term: 1, dv: 0, hash: EMPTY_HASH }]) {
    const read = reader.read(CLUSTER, { kind: 'pull', cursor: from }, UNBOUNDED)
    expect(read.kind === 'rows' && parsed(read.lines).map(({ id }) => id)).toEqual([`service/${CLUSTER}/x`])
  }
  reader.close()
  wrong.close()
})

test('PL10 a write wakes the waiters of its cluster and no others', async () => {
  const shards = open()
  const woken: string[] = []
  const give = new AbortController()
  const wait = (cluster: ClusterId, name: string) =>
    shards.waitForChange(cluster, shards.head(cluster), 60_000, give.signal).then(() => woken.push(name))
  const waits = [wait(CLUSTER, 'mine'), wait(CLUSTER, 'mine too'), wait(NEIGHBOUR, 'theirs')]
  const stale = shards.head(CLUSTER)
  shards.writeRevisions([revision(CLUSTER, WEB, 1, { a: '1' })])
  await Promise.all(waits.slice(0, 2))
  expect(woken.sort()).toEqual(['mine', 'mine too'])
  await shards.waitForChange(CLUSTER, stale, 60_000, give.signal) // changed before it began to wait
  give.abort()
  await waits[2]
  expect(woken).toContain('theirs')
  shards.close()
})

test('CU5 after a clean stop a file is trusted and keeps its dbId', () => {
  const dir = tempDir()
  const first = openTestShards(dir).shards
  const { dbId } = first.head(CLUSTER)
  expect(existsSync(join(dir, 'in-use'))).toBe(true)
  first.close()
  expect(existsSync(join(dir, 'in-use'))).toBe(false)
  const { shards } = openTestShards(dir)
  expect(shards.head(CLUSTER).dbId).toBe(dbId)
  shards.close()
})

test('CU5 after an unclean stop a whole file is kept, a damaged one is made anew under another dbId, alone', async () => {
  const dir = tempDir()
  const first = openTestShards(dir).shards
  const [inFirst, inSecond] = [0, 1].map((shard) =>
    Array.from({ length: 50 }, (_, n) => clusterNumber(n)).find((id) => shardOf(id, 2) === shard),
  )
  if (inFirst === undefined || inSecond === undefined) throw new Error('both shards have clusters')
  first.writeRevisions([revision(inFirst, WEB, 1, { a: '1' })])
  first.writeRevisions([revision(inSecond, WEB, 1, { a: '1' })])
  const [firstHead, secondHead] = [first.head(inFirst), first.head(inSecond)]
  first.close()
  writeFileSync(join(dir, 'in-use'), '') // as a killed process leaves it
  const rogue = openCrdtDb(join(dir, 'shard-00.db'))
  rogue.db.run("UPDATE desired SET doc = 'rogue'")
  rogue.close()

  const { shards, dbIds, indexOf } = openTestShards(dir)
  expect([dbIds[indexOf(inFirst)] === firstHead.dbId, dbIds[indexOf(inSecond)] === secondHead.dbId]).toEqual([false, true])
  expect(shards.head(inSecond)).toEqual(secondHead)
  expect(shards.head(inFirst)).toMatchObject({ dv: 0, hash: EMPTY_HASH })
  expect(shards.ordinal(inFirst)).toBe(0)
  expect(await shards.pull(inFirst, firstHead, IDENTITY)).toEqual({ kind: 'refetch', reason: 'restored' })
  shards.close()
})

test.each([
  ['CU5 a lost clock row', 'DELETE FROM desired__crsql_clock'],
  ['CU5 a lost log', 'DELETE FROM tx_log'],
  ['CU5 a log that says more', 'UPDATE tx_log SET count = count + 1'],
  ['CU5 no identity', 'DELETE FROM meta'],
  ['CU5 a missing table', 'DROP TABLE cluster_ordinal'],
  ['CU5 bytes of another kind', null],
])('%s is found after an unclean stop', (_, sql) => {
  const dir = tempDir()
  const first = openTestShards(dir, { shardCount: 1 }).shards
  first.writeRevisions([revision(CLUSTER, WEB, 1, { a: '1' })])
  const { dbId } = first.head(CLUSTER)
  first.close()
  writeFileSync(join(dir, 'in-use'), '')
  if (sql === null) writeFileSync(join(dir, 'shard-00.db'), 'not a database')
  else {
    const db = openSqlite(join(dir, 'shard-00.db'))
    db.run(sql)
    db.close()
  }
  const { shards } = openTestShards(dir, { shardCount: 1 })
  expect(shards.head(CLUSTER).dbId).not.toBe(dbId)
  shards.close()
})

test('CU9 a shard file that is cut off while it is created never has its name', () => {
  const dir = tempDir()
  const cutOff = () => {
    throw new Error('killed')
  }
  expect(() => openTestShards(dir, { shardCount: 1, newId: cutOff })).toThrow('killed')
  expect(existsSync(join(dir, 'shard-00.db'))).toBe(false)
  openTestShards(dir, { shardCount: 1 }).shards.close()
  expect(readdirSync(dir).filter((name) => name.includes('.db'))).toEqual(['shard-00.db'])
})

test('CU9 a shard file that the host does not let it open is named, and kept', () => {
  const dir = tempDir()
  mkdirSync(join(dir, 'shard-00.db'))
  expect(() => openTestShards(dir, { shardCount: 1 })).toThrow(
    expect.objectContaining({ code: 'data_unusable', data: expect.objectContaining({ doing: `open ${join(dir, 'shard-00.db')}` }) }),
  )
  expect(existsSync(join(dir, 'shard-00.db'))).toBe(true)
})

test('CU7 a revision that the file could not take, at no try, is not remembered as taken', () => {
  const dir = tempDir()
  const { shards } = openTestShards(dir, { shardCount: 1 })
  const one = revision(CLUSTER, WEB, 1, { a: '1' })
  shards.writeRevisions([one])
  const head = shards.head(CLUSTER)
  const broken = openCrdtDb(join(dir, 'shard-00.db'))
  broken.db.run("DELETE FROM desired WHERE id LIKE 'object/%'")
  broken.db.run("CREATE TRIGGER broken BEFORE INSERT ON tx_log BEGIN SELECT RAISE(ABORT, 'broken'); END")
  broken.close()
  const two = { ...revision(CLUSTER, WEB, 2, {}), before: one } // deletes a row that is not there
  expect(() => shards.writeRevisions([two])).toThrow('broken')
  expect([shards.ordinal(CLUSTER), shards.head(CLUSTER)]).toEqual([1, head])
  shards.close()
})

test('CU5 CU7 of a file that lost some of its pages in a crash only what its log says counts as taken', () => {
  const dir = tempDir()
  const first = openTestShards(dir, { shardCount: 1 }).shards
  first.writeRevisions([revision(CLUSTER, WEB, 1, { a: '1' })])
  const head = first.head(CLUSTER)
  first.close()
  // The page of the ordinals reached the disk, those of the rows and of the log did not: nothing in the file
  // contradicts it.
  const db = openSqlite(join(dir, 'shard-00.db'))
  db.run('UPDATE cluster_ordinal SET ordinal = 3')
  db.close()
  const trusted = openTestShards(dir, { shardCount: 1 }).shards
  expect(trusted.ordinal(CLUSTER)).toBe(3)
  trusted.close()
  writeFileSync(join(dir, 'in-use'), '')
  const { shards } = openTestShards(dir, { shardCount: 1 })
  expect([shards.head(CLUSTER), shards.ordinal(CLUSTER)]).toEqual([head, 1])
  shards.close()
})

test('RP5 a removed cluster leaves nothing, and the file stays good for its neighbours', async () => {
  const dir = tempDir()
  const { shards } = openTestShards(dir, { shardCount: 1 })
  shards.writeRevisions([revision(CLUSTER, WEB, 1, { a: '1' })])
  shards.writeRevisions([revision(NEIGHBOUR, WEB, 1, { a: '1' })])
  const head = shards.head(NEIGHBOUR)
  shards.removeCluster(CLUSTER)
  expect(shards.ordinal(CLUSTER)).toBe(0)
  expect((await page(shards, CLUSTER, null)).rows).toEqual([])
  shards.writeRevisions([revision(NEIGHBOUR, WEB, 2, { a: '2' })])
  expect((await page(shards, NEIGHBOUR, head)).rows).toHaveLength(2)
  shards.close()
  writeFileSync(join(dir, 'in-use'), '')
  const again = openTestShards(dir, { shardCount: 1 })
  expect(again.dbIds).toEqual([head.dbId])
  again.shards.close()
})

test('a rendered set comes out of the content store as it went in', () => {
  const objects = objectRows(WEB, { b: 'ü\n"', a: '' })
  expect([...decodeRenderedSet(encodeRenderedSet(objects))].sort()).toEqual([...objects].sort())
  expect(encodeRenderedSet(objects)).toEqual(encodeRenderedSet(new Map([...objects].reverse())))
})

test.each([
  ['at the limits', 'i'.repeat(ROW_ID_BYTES_MAX), 'd'.repeat(ROW_DOC_BYTES_MAX), false],
  ['an id one byte past', 'i'.repeat(ROW_ID_BYTES_MAX + 1), '', true],
  ['a document one byte past', 'i', `ü${'d'.repeat(ROW_DOC_BYTES_MAX - 1)}`, true],
])('PL5 rows are held to the limits before they are published: %s', (_, id, doc, refused) => {
  const check = () => checkRows([[id, doc]])
  if (refused) expect(check).toThrow('longer than')
  else expect(check).not.toThrow()
})

test('a service whose name begins like another keeps its rows', async () => {
  const shards = open()
  const longer = { project: 'shop', service: 'web-2' }
  shards.writeRevisions([revision(CLUSTER, longer, 1, { a: '1' })])
  shards.writeRevisions([revision(CLUSTER, WEB, 2, { a: '1' })])
  shards.writeRevisions([revision(CLUSTER, WEB, 3, null)])
  expect((await page(shards, CLUSTER, null)).rows.map(({ id }) => id)).toContain(serviceRowId(longer))
  expect((await page(shards, CLUSTER, null)).rows).toHaveLength(2)
  shards.close()
})
