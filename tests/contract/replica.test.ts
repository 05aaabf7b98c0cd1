import { expect, test } from 'bun:test'
import { existsSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { CheckedReplica } from '../../agent/replica/crdt-replica.ts'
import type { Shards } from '../../server/desired/shards.ts'
import { openCrdtDb } from '../../shared/adapters/crdt-db.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { INTEGER_BOUND, type Position } from '../../shared/crdt/position.ts'
import { hashOfRows } from '../../shared/crdt/row-hash.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { serviceRowId } from '../../shared/model/desired.ts'
import type { ClusterId } from '../../shared/model/ids.ts'
import { ROW_DOC_BYTES_MAX, ROW_ID_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { forgePage } from '../support/hostile-pages.ts'
import {
  CLUSTER,
  DB,
  NEIGHBOUR,
  OTHER_KEY,
  objectRows,
  openTestReplica,
  openTestShards,
  revision,
  serviceDoc,
  WEB,
} from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const pull = (shards: Shards, cursor: Position | null, cluster: ClusterId = CLUSTER): Uint8Array => {
  const pulled = shards.pull(cluster, cursor)
  if (pulled.kind !== 'page') throw new Error(`expected a page, got ${pulled.kind}`)
  return pulled.frames
}
/** What the server would send of everything, by id. */
const serverRows = (shards: Shards): Array<[string, string]> =>
  Buffer.from(pull(shards, null))
    .toString()
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
    .filter((frame) => Array.isArray(frame))
    .map((frame): [string, string] => [frame[0], frame[1]])
    .sort(([a], [b]) => (a < b ? -1 : 1))

/** A server with two services, and a replica that holds them. */
function inSync() {
  const dir = tempDir()
  const { shards } = openTestShards(join(dir, 'shards'), { shardCount: 1 })
  shards.writeRevision(revision(CLUSTER, WEB, 1, { a: '1', b: '1' }))
  shards.writeRevision(revision(CLUSTER, DB, 2, { d: '1' }))
  const path = join(dir, 'replica.db')
  const replica = openTestReplica(path)
  expect(replica.applyPage(pull(shards, null)).kind).toBe('applied')
  return { shards, replica, path, dir }
}

const position = (replica: CheckedReplica): Position => {
  const held = replica.position()
  if (held === null) throw new Error('it holds a position')
  return held
}

test('PL8 a bootstrap brings every row and the position that a delta continues', () => {
  const { shards, replica, path } = inSync()
  expect(replica.dump()).toEqual(serverRows(shards))
  expect(replica.position()).toEqual(shards.head(CLUSTER))
  expect(existsSync(`${path}.new`)).toBe(false)
  shards.writeRevision(revision(CLUSTER, WEB, 3, { a: '2', b: '1' }))
  const applied = replica.applyPage(pull(shards, position(replica)))
  expect(applied).toEqual({ kind: 'applied', position: shards.head(CLUSTER), changedServices: [WEB] })
  expect(replica.dump()).toEqual(serverRows(shards))
})

test('PL8 a bootstrap over a held replica says which services differ', () => {
  const { shards, replica } = inSync()
  expect(replica.applyPage(pull(shards, null))).toMatchObject({ kind: 'applied', changedServices: [] })
  shards.writeRevision(revision(CLUSTER, DB, 3, null))
  expect(replica.applyPage(pull(shards, null))).toMatchObject({ kind: 'applied', changedServices: [DB] })
  expect(replica.dump()).toEqual(serverRows(shards))
})

test('CU7 PL8 an empty cluster is a replica that verifies', () => {
  const dir = tempDir()
  const { shards } = openTestShards(join(dir, 'shards'))
  const replica = openTestReplica(join(dir, 'replica.db'))
  expect([replica.position(), replica.verified(), replica.services()]).toEqual([null, false, []])
  expect(replica.applyPage(pull(shards, null)).kind).toBe('applied')
  expect([replica.position(), replica.verified()]).toEqual([shards.head(CLUSTER), true])
})

test('PL2 rows deleted, inserted again, updated and deleted again arrive as the server has them', () => {
  const { shards, replica } = inSync()
  const steps: Array<Record<string, string> | null> = [
    { a: '1' },
    { a: '1', b: '9' },
    { a: '1', b: '0' },
    {},
    null,
    { b: 'again' },
    { b: 'once more' },
  ]
  steps.forEach((objects, index) => {
    shards.writeRevision(revision(CLUSTER, WEB, index + 3, objects))
    expect(replica.applyPage(pull(shards, position(replica))).kind).toBe('applied')
    expect(replica.dump()).toEqual(serverRows(shards))
  })
})

test('PL2 a delta over many versions equals the same versions one by one, and a bootstrap', () => {
  const { shards, replica, dir } = inSync()
  const late = openTestReplica(join(dir, 'late.db'))
  late.applyPage(pull(shards, null))
  for (let n = 0; n < 30; n++) {
    const objects = Object.fromEntries(Array.from({ length: 5 }, (_, i) => [`o${(n * i) % 7}`, String(n % 3)]))
    shards.writeRevision(revision(CLUSTER, n % 2 ? WEB : DB, n + 3, n % 11 === 10 ? null : objects))
    replica.applyPage(pull(shards, position(replica)))
  }
  late.applyPage(pull(shards, position(late)))
  const fresh = openTestReplica(join(dir, 'fresh.db'))
  fresh.applyPage(pull(shards, null))
  expect(replica.dump()).toEqual(serverRows(shards))
  expect(late.dump()).toEqual(serverRows(shards))
  expect(fresh.dump()).toEqual(serverRows(shards))
})

test('PL6 applying the same page twice changes nothing', () => {
  const { shards, replica } = inSync()
  shards.writeRevision(revision(CLUSTER, WEB, 3, { a: '2' }))
  const page = pull(shards, position(replica))
  replica.applyPage(page)
  const once = [replica.dump(), replica.position()]
  expect(replica.applyPage(page)).toEqual({ kind: 'discarded' })
  expect([replica.dump(), replica.position()]).toEqual(once)
})

test('PL6 an answer to an older cursor that arrives late is discarded', () => {
  const { shards, replica } = inSync()
  const start = position(replica)
  shards.writeRevision(revision(CLUSTER, WEB, 3, { a: '2' }))
  const early = pull(shards, start)
  shards.writeRevision(revision(CLUSTER, WEB, 4, { a: '3' }))
  replica.applyPage(pull(shards, start))
  expect(replica.applyPage(early)).toEqual({ kind: 'discarded' })
  expect(replica.position()).toEqual(shards.head(CLUSTER))
})

test('CU3 PL1 a page from another file is never merged into this one', () => {
  const { replica } = inSync()
  const { shards: other } = openTestShards(tempDir(), { shardCount: 1 })
  const start = other.head(CLUSTER)
  other.writeRevision(revision(CLUSTER, WEB, 1, { a: 'other' }))
  expect(replica.applyPage(pull(other, start))).toEqual({ kind: 'discarded' })
})

test('CU4 rows and cursor survive a restart together', () => {
  const { shards, replica, path } = inSync()
  const before = [replica.dump(), replica.position(), replica.epoch()]
  replica.close()
  const again = openTestReplica(path)
  expect([again.dump(), again.position(), again.epoch()]).toEqual(before)
  expect(again.verified()).toBe(true)
  shards.writeRevision(revision(CLUSTER, WEB, 3, { a: '2' }))
  expect(again.applyPage(pull(shards, position(again))).kind).toBe('applied')
})

test('CU2a a lower epoch is refused, also after the replica file was lost', () => {
  const dir = tempDir()
  let epoch = 2
  const { shards } = openTestShards(join(dir, 'shards'), { epochOf: () => epoch })
  const path = join(dir, 'replica.db')
  const replica = openTestReplica(path)
  replica.applyPage(pull(shards, null))
  epoch = 1
  expect(replica.applyPage(pull(shards, null))).toMatchObject({ kind: 'refused', why: 'epoch 1 is older than 2' })
  replica.close()
  writeFileSync(path, 'lost')
  const again = openTestReplica(path)
  expect(again.applyPage(pull(shards, null)).kind).toBe('refused')
  epoch = 3
  expect(again.applyPage(pull(shards, null)).kind).toBe('applied')
  expect(again.epoch()).toBe(3)
})

const ROW_A = 'object/shop/web//ConfigMap/default/a'
const brokenText = Buffer.concat([Buffer.from(`["${ROW_A}","`), Buffer.from([0xff, 0xfe]), Buffer.from('",2,1,0]')])
/** The rows of `inSync` with one document changed: the sum that a forged page needs, so that each case is refused for its own reason only. */
const rowsWithA = (doc: string) => {
  const [web, db] = [objectRows(WEB, { a: '1', b: '1' }), objectRows(DB, { d: '1' })]
  const services: Array<[string, string]> = [
    [serviceRowId(WEB), serviceDoc(web)],
    [serviceRowId(DB), serviceDoc(db)],
  ]
  return new Map([...web, ...db, ...services, [ROW_A, doc] as const])
}
const next = (from: Position, change: Partial<Position> = {}): Position => ({
  ...from,
  dv: from.dv + 1,
  hash: hashOfRows(rowsWithA('{}')),
  ...change,
})
const oneRow = (row: unknown) => [{ t: 'tx', dv: 3, n: 1 }, row]
/** What a server that signs what it wants could send after version 2. `null`: not a forged page but other bytes. */
const HOSTILE: Array<[name: string, forge: (from: Position) => Parameters<typeof forgePage>[0] | Uint8Array]> = [
  ['no bytes', () => new Uint8Array()],
  ['only a line feed', () => Buffer.from('\n')],
  ['not JSON', () => Buffer.from('{"t":\n{"t":\n')],
  ['no checkpoint', (from) => Buffer.from(`${JSON.stringify({ t: 'hello', from })}\n`)],
  ['an HTML page of a proxy', () => Buffer.from('<html>\n<body>login</body>\n')],
  ['another key', (from) => ({ ...base(from), privateKey: OTHER_KEY.privateKey })],
  ['signed for another cluster', (from) => ({ ...base(from), clusterId: NEIGHBOUR })],
  ['a hash that does not come out', (from) => ({ ...base(from), to: next(from, { hash: 'ab'.repeat(16) }) })],
  ['a count that does not come out', (from) => ({ ...base(from), count: 6 })],
  ['a digest of other bytes', (from) => ({ ...base(from), checkpoint: { sha256: 'ab'.repeat(32) } })],
  ['a position that the signature does not cover', (from) => ({ ...base(from), checkpoint: { to: next(from, { dv: 9 }) } })],
  ['hello and checkpoint disagree', (from) => ({ ...base(from), hello: { to: next(from, { dv: 8 }) } })],
  ['an epoch that the signature does not cover', (from) => ({ ...base(from), hello: { epoch: 2 } })],
  ['epoch 0', (from) => ({ ...base(from), epoch: 0 })],
  ['rows of a future layout', (from) => ({ ...base(from), hello: { schema: 2 } })],
  ['a delta into another file', (from) => ({ ...base(from), to: next(from, { dbId: 'cd'.repeat(16) }) })],
  ['an unknown frame', (from) => ({ ...base(from), lines: [{ t: 'ask', id: 1 }] })],
  ['a row without its version', (from) => ({ ...base(from), lines: [[ROW_A, '{}', 1, 1, 0]] })],
  ['fewer rows than it says', (from) => ({ ...base(from), lines: [{ t: 'tx', dv: 3, n: 2 }, [ROW_A, '{}', 1, 1, 0]] })],
  [
    'more rows than it says',
    (from) => ({ ...base(from), lines: [{ t: 'tx', dv: 3, n: 1 }, [ROW_A, '{}', 2, 1, 0], [ROW_A, '{}', 2, 1, 0]] }),
  ],
  ['no rows in a version', (from) => ({ ...base(from), lines: [{ t: 'tx', dv: 3, n: 0 }] })],
  ['version 0', (from) => ({ ...base(from), lines: [{ t: 'tx', dv: 0, n: 1 }, [ROW_A, '{}', 2, 1, 0]] })],
  ['a version at the cursor', (from) => ({ ...base(from), lines: [{ t: 'tx', dv: 2, n: 1 }, [ROW_A, '{}', 2, 1, 0]] })],
  ['a version past the head', (from) => ({ ...base(from), lines: [{ t: 'tx', dv: 4, n: 1 }, [ROW_A, '{}', 2, 1, 0]] })],
  ['a negative version', (from) => ({ ...base(from), lines: [{ t: 'tx', dv: -1, n: 1 }, [ROW_A, '{}', 2, 1, 0]] })],
  ['version 2^63-1', (from) => ({ ...base(from), lines: ['{"t":"tx","dv":9223372036854775807,"n":1}', [ROW_A, '{}', 2, 1, 0]] })],
  ['column version 2^63-1', (from) => ({ ...base(from), lines: oneRow(`["${ROW_A}","{}",9223372036854775807,1,0]`) })],
  ['column version 2^53', (from) => ({ ...base(from), lines: oneRow([ROW_A, '{}', INTEGER_BOUND + 1, 1, 0]) })],
  ['column version 0', (from) => ({ ...base(from), lines: oneRow([ROW_A, '{}', 0, 1, 0]) })],
  ['column version 1.5', (from) => ({ ...base(from), lines: oneRow([ROW_A, '{}', 1.5, 1, 0]) })],
  ['causal length 2^53', (from) => ({ ...base(from), lines: oneRow([ROW_A, '{}', 1, INTEGER_BOUND + 1, 0]) })],
  ['causal length 0', (from) => ({ ...base(from), lines: oneRow([ROW_A, null, 1, 0, 0]) })],
  ['an even causal length of a live row', (from) => ({ ...base(from), lines: oneRow([ROW_A, '{}', 5, 2, 0]) })],
  ['an odd causal length of a deleted row', (from) => ({ ...base(from), lines: oneRow([ROW_A, null, 3, 3, 0]) })],
  ['a negative seq', (from) => ({ ...base(from), lines: oneRow([ROW_A, '{}', 2, 1, -1]) })],
  ['an empty id', (from) => ({ ...base(from), lines: oneRow(['', '{}', 1, 1, 0]) })],
  ['an id that is a number', (from) => ({ ...base(from), lines: oneRow([7, '{}', 1, 1, 0]) })],
  ['an id that is null', (from) => ({ ...base(from), lines: oneRow([null, '{}', 1, 1, 0]) })],
  ['an id that is a packed key', (from) => ({ ...base(from), lines: oneRow([{ 0: 2, 1: 11 }, '{}', 1, 1, 0]) })],
  ['an id past its limit', (from) => ({ ...base(from), lines: oneRow(['i'.repeat(ROW_ID_BYTES_MAX + 1), '{}', 1, 1, 0]) })],
  ['a document that is an object', (from) => ({ ...base(from), lines: oneRow([ROW_A, {}, 1, 1, 0]) })],
  ['a document past its limit', (from) => ({ ...base(from), lines: oneRow([ROW_A, 'd'.repeat(ROW_DOC_BYTES_MAX + 1), 2, 1, 0]) })],
  ['a row with a further cell', (from) => ({ ...base(from), lines: oneRow([ROW_A, '{}', 2, 1, 0, 'doc']) })],
  ['a row with a cell too few', (from) => ({ ...base(from), lines: oneRow([ROW_A, '{}', 2, 1]) })],
  [
    'bytes that are no UTF-8',
    (from) => Buffer.from(Buffer.from(forgePage({ ...base(from), lines: oneRow(brokenText) })).toString(), 'latin1'),
  ],
  ['__proto__ as a frame', (from) => ({ ...base(from), lines: ['{"__proto__":{"t":"tx","dv":3,"n":1}}'] })],
  ['a site id of 17 bytes', (from) => ({ ...base(from), hello: { siteId: 'ab'.repeat(17) } })],
  ['a site id of none', (from) => ({ ...base(from), hello: { siteId: null } })],
  [
    'a row that the held one outranks, with the sum it would have had',
    (from) => ({ ...base(from), to: next(from, { hash: hashOfRows(rowsWithA('')) }), lines: oneRow([ROW_A, '', 1, 1, 0]) }),
  ],
  ['a row that outranks and is worth nothing', (from) => ({ ...base(from), lines: oneRow([ROW_A, 'not what the hash says', 99, 1, 0]) })],
]
const base = (from: Position) => ({
  clusterId: CLUSTER,
  from,
  to: next(from),
  count: 5,
  lines: oneRow([ROW_A, '{}', 2, 1, 0]) as readonly unknown[],
})

test.each(HOSTILE)('PL5 refused, and the last good rows stay in force: %s', (_, forge) => {
  const { shards, replica } = inSync()
  const before = [replica.dump(), replica.position(), replica.epoch()]
  const forged = forge(position(replica))
  expect(replica.applyPage(forged instanceof Uint8Array ? forged : forgePage(forged)).kind).toBe('refused')
  expect([replica.dump(), replica.position(), replica.epoch()]).toEqual(before)
  expect(replica.verified()).toBe(true)
  shards.writeRevision(revision(CLUSTER, WEB, 3, { a: '2' }))
  expect(replica.applyPage(pull(shards, position(replica))).kind).toBe('applied')
})

test('PL5 the forger forges well: the page that all cases are bent from is taken', () => {
  const { replica } = inSync()
  expect(replica.applyPage(forgePage(base(position(replica)))).kind).toBe('applied')
  expect(new Map(replica.dump())).toEqual(rowsWithA('{}'))
})

test('PL5 every cut and every flipped byte of a page is refused', () => {
  const { shards, replica } = inSync()
  shards.writeRevision(revision(CLUSTER, WEB, 3, { a: '2' }))
  const page = pull(shards, position(replica))
  const before = [replica.dump(), replica.position()]
  for (let at = 0; at < page.length; at += 7) {
    expect(replica.applyPage(page.subarray(0, at)).kind).toBe('refused')
    const flipped = Uint8Array.from(page)
    flipped[at] = (flipped[at] ?? 0) ^ 4
    expect(replica.applyPage(flipped).kind).toBe('refused')
  }
  expect([replica.dump(), replica.position()]).toEqual(before)
})

test('PL5 rows at the limits are taken', () => {
  const { replica } = inSync()
  const from = position(replica)
  const [id, doc] = ['i'.repeat(ROW_ID_BYTES_MAX), 'd'.repeat(ROW_DOC_BYTES_MAX)]
  const to = next(from, { hash: hashOfRows([...replica.dump(), [id, doc]]) })
  const applied = replica.applyPage(forgePage({ ...base(from), to, count: 6, lines: oneRow([id, doc, 1, 1, 0]) }))
  expect(applied.kind).toBe('applied')
})

test('PL7 RP1 a file with a row of another cluster does not verify', () => {
  const { replica, path } = inSync()
  replica.close()
  const rogue = openCrdtDb(path)
  rogue.db.query('INSERT INTO desired VALUES (?, ?, ?)').run(NEIGHBOUR, 'service/x/y', '{}')
  rogue.close()
  expect(openTestReplica(path).verified()).toBe(false)
})

const DAMAGE: Array<[string, (path: string) => void]> = [
  ['a rogue edit', (path) => withCrdt(path, (db) => db.run("UPDATE desired SET doc = 'rogue'"))],
  ['a rogue delete', (path) => withCrdt(path, (db) => db.run('DELETE FROM desired'))],
  ['a rogue insert', (path) => withCrdt(path, (db) => db.query('INSERT INTO desired VALUES (?, ?, ?)').run(CLUSTER, 'service/x/y', '{}'))],
  ['a lost position', (path) => withCrdt(path, (db) => db.run('DELETE FROM replica_position'))],
  ['a position of another cluster', (path) => withCrdt(path, (db) => db.query('UPDATE replica_position SET cluster = ?').run(NEIGHBOUR))],
  ['bytes of another kind', (path) => writeFileSync(path, 'not a database')],
  ['an empty file', (path) => writeFileSync(path, '')],
  ['half a file', (path) => truncateSync(path, 16_384)],
  ['flipped bytes', (path) => flipBytes(path)],
]
function withCrdt(path: string, work: (db: ReturnType<typeof openCrdtDb>['db']) => unknown): void {
  const crdt = openCrdtDb(path)
  work(crdt.db)
  crdt.close()
}
function flipBytes(path: string): void {
  const bytes = readFileSync(path)
  const at = bytes.indexOf('"ConfigMap"')
  bytes.write('"ConfigMop"', at)
  writeFileSync(path, bytes)
}

test.each(DAMAGE)('RP1 %s while the agent was down is found at opening and healed by a bootstrap', (_, damage) => {
  const { shards, replica, path } = inSync()
  replica.close()
  damage(path)
  const again = openTestReplica(path)
  expect([again.verified(), again.position(), again.services()]).toEqual([false, null, []])
  expect(again.read(WEB).kind).toBe('incomplete')
  expect(again.applyPage(pull(shards, null)).kind).toBe('applied')
  expect(again.verified()).toBe(true)
  expect(again.dump()).toEqual(serverRows(shards))
  again.close()
  expect(openTestReplica(path).verified()).toBe(true)
})

test('RP1 a rogue edit under the running agent is seen at the next reading, before anything is enforced from it', () => {
  const { shards, replica, path } = inSync()
  expect(replica.read(WEB).kind).toBe('complete')
  withCrdt(path, (db) => db.query('UPDATE desired SET doc = ? WHERE id = ?').run('rogue', ROW_A))
  expect(replica.read(WEB).kind).toBe('incomplete')
  expect(replica.verified()).toBe(false)
  shards.writeRevision(revision(CLUSTER, WEB, 3, { a: '2' }))
  expect(replica.applyPage(pull(shards, null)).kind).toBe('applied')
  expect(replica.verified()).toBe(true)
  expect(replica.dump()).toEqual(serverRows(shards))
})

test('RP1 a recheck finds what changed without a trace', () => {
  const { replica, path } = inSync()
  expect(replica.recheck()).toBe(true)
  const plain = openSqlite(path)
  plain.run('UPDATE replica_position SET count = count + 1')
  plain.close()
  expect(replica.recheck()).toBe(false)
})

test('PL8 what a killed bootstrap left behind is in nobody’s way', () => {
  const { shards, replica, path } = inSync()
  replica.close()
  for (const suffix of ['.new', '.new-wal', '.new-shm']) writeFileSync(path + suffix, 'half')
  const again = openTestReplica(path)
  expect(again.verified()).toBe(true)
  expect(again.applyPage(pull(shards, null)).kind).toBe('applied')
  expect(again.dump()).toEqual(serverRows(shards))
})

test('PL8 the log of the old file is never played into the new one, whoever else has it open', () => {
  const { shards, replica, path } = inSync()
  const reader = openSqlite(path, { readonly: true }) // a backup, a curious person: it keeps the log from being folded in and removed
  reader.query('SELECT count(*) FROM desired').get()
  shards.writeRevision(revision(CLUSTER, WEB, 3, Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`o${n}`, 'x'.repeat(500)]))))
  replica.applyPage(pull(shards, position(replica)))
  shards.writeRevision(revision(CLUSTER, WEB, 4, { a: 'small' }))
  replica.applyPage(pull(shards, null))
  expect(replica.recheck()).toBe(true)
  reader.close()
  replica.close()
  const again = openTestReplica(path)
  expect(again.verified()).toBe(true)
  expect(again.dump()).toEqual(serverRows(shards))
})

test('RV1 a service is complete only if its objects hash to the digest of its row', () => {
  const { shards, replica } = inSync()
  const read = replica.read(WEB)
  expect(read.kind === 'complete' && [...read.revision.objects]).toEqual([...objectRows(WEB, { a: '1', b: '1' })])
  expect(replica.services()).toEqual([DB, WEB])
  expect(replica.read({ project: 'shop', service: 'none' })).toEqual({ kind: 'absent' })

  const objects = objectRows(WEB, { a: '1' })
  const cases: Array<[string | null, ReadonlyMap<string, string>, string]> = [
    [serviceDoc(objectRows(WEB, { a: '1', b: '1' })), objects, '1 of 2 objects'],
    [serviceDoc(objectRows(WEB, { a: '2' })), objects, 'its objects differ from its digest'],
    ['{"digest":7}', objects, 'this version cannot read the service row: upgrade the agent'],
    ['not JSON', objects, 'this version cannot read the service row: upgrade the agent'],
    [removal(), objects, 'a removal order with 1 objects'],
  ]
  cases.forEach(([doc, rows, why], index) => {
    shards.writeRevision({ clusterId: CLUSTER, ...WEB, ordinal: index + 3, serviceDoc: doc, objects: rows })
    replica.applyPage(pull(shards, position(replica)))
    expect(replica.read(WEB)).toEqual({ kind: 'incomplete', why })
    expect(replica.read(DB).kind).toBe('complete')
  })
  shards.writeRevision({ clusterId: CLUSTER, ...WEB, ordinal: 10, serviceDoc: removal(), objects: new Map() })
  replica.applyPage(pull(shards, position(replica)))
  expect(replica.read(WEB).kind).toBe('complete')
})

const removal = () => canonicalJson({ ...JSON.parse(serviceDoc(new Map())), removal: { policy: 'prune', by: 'a', atMs: 1, why: 'w' } })

test('RP1 a file that breaks under the running agent stops serving and is healed, whatever is asked of it first', () => {
  const asks: Array<(replica: CheckedReplica, page: Uint8Array) => unknown> = [
    (replica) => replica.services(),
    (replica) => replica.read(WEB),
    (replica, page) => replica.applyPage(page),
  ]
  for (const ask of asks) {
    const { shards, replica, path } = inSync()
    // More than SQLite keeps in memory, and all of it in the file itself.
    const objects = Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`o${n}`, 'x'.repeat(2_000)]))
    shards.writeRevision(revision(CLUSTER, WEB, 3, objects))
    replica.applyPage(pull(shards, null))
    shards.writeRevision(revision(CLUSTER, WEB, 4, { ...objects, o1: '2' }))
    const page = pull(shards, position(replica))
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.fill(0xa5, 4_096 * 30), { flag: 'r+' })
    ask(replica, page)
    expect(replica.recheck()).toBe(false)
    expect([replica.verified(), replica.services(), replica.read(WEB).kind]).toEqual([false, [], 'incomplete'])
    expect(replica.applyPage(page)).toEqual({ kind: 'discarded' })
    expect(replica.applyPage(pull(shards, null)).kind).toBe('applied')
    expect(replica.dump()).toEqual(serverRows(shards))
    replica.close()
  }
})
