// What a lying server, a proxy or a broken link can hand to the replica: nothing of it is taken, and each is refused
// for its own reason.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { INTEGER_BOUND, type Position } from '../../shared/crdt/position.ts'
import { hashOfRows } from '../../shared/crdt/row-hash.ts'
import { serviceRowId } from '../../shared/model/desired.ts'
import { PAGE_ROWS_MAX, ROW_DOC_BYTES_MAX, ROW_ID_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { type ForgedPage, forgePage } from '../support/hostile-pages.ts'
import { inSync, position, pull } from '../support/replica-kit.ts'
import { CLUSTER, DB, NEIGHBOUR, OTHER_KEY, objectRows, openTestShards, revision, serviceDoc, WEB } from '../support/sync-kit.ts'

const ROW_A = 'object/shop/web//ConfigMap/default/a'
/** The rows of `inSync` with one document changed: the sum that a forged page needs, so that each case is refused for
 *  its own reason only. */
const rowsWithA = (doc: string | null) => {
  const [web, db] = [objectRows(WEB, { a: '1', b: '1' }), objectRows(DB, { d: '1' })]
  const services: Array<[string, string]> = [
    [serviceRowId(WEB), serviceDoc(web)],
    [serviceRowId(DB), serviceDoc(db)],
  ]
  const rows = new Map([...web, ...db, ...services])
  if (doc === null) rows.delete(ROW_A)
  else rows.set(ROW_A, doc)
  return rows
}
const next = (from: Position, change: Partial<Position> = {}): Position => ({
  ...from,
  dv: from.dv + 1,
  hash: hashOfRows(rowsWithA('{}')),
  ...change,
})
const row = (id: unknown, colVersion: unknown, cl: unknown, doc?: unknown) =>
  [id, colVersion, cl, ...(doc === undefined ? [] : [doc])].map(String).join('\t')
const GOOD = row(ROW_A, 2, 1, '{}')
const base = (from: Position): ForgedPage => ({ clusterId: CLUSTER, from, to: next(from), count: 5, lines: [GOOD] })
const whole = (from: Position): ForgedPage => ({
  ...base(from),
  from: null,
  lines: [...rowsWithA('{}')].map(([id, doc]) => row(id, 1, 1, doc)),
})

type Bend = (from: Position) => Partial<ForgedPage> | Uint8Array
const lines =
  (...rows: Array<string | Uint8Array>): Bend =>
  () => ({ lines: rows })
const signed =
  (members: Record<string, unknown>): Bend =>
  () => ({ signed: members })
const manyTombstones = () => Array.from({ length: PAGE_ROWS_MAX + 1 }, (_, n) => row(`x${n}`, 2, 2))

/** What a server that signs what it wants could send after version 2. */
const HOSTILE: Array<[name: string, why: RegExp, bend: Bend]> = [
  ['no bytes', /cut short/, () => new Uint8Array()],
  ['only a line feed', /hello: not JSON/, () => Buffer.from('\n')],
  ['not JSON', /hello: not JSON/, () => Buffer.from('{"t":\n{"t":\n')],
  ['no checkpoint', /cut short/, (from) => Buffer.from(`${JSON.stringify({ t: 'hello', from })}\n`)],
  ['an HTML page of a proxy', /hello: not JSON/, () => Buffer.from('<html>\n<body>login</body>\n')],
  ['a hello that is no UTF-8', /hello: not JSON/, () => Buffer.from([0xff, 10, 0xff, 10])],
  ['a hello of a megabyte', /hello: longer/, signed({ more: 'x'.repeat(1_048_576) })],
  ['another key', /not signed/, () => ({ privateKey: OTHER_KEY.privateKey })],
  ['signed for another cluster', /not signed/, () => ({ clusterId: NEIGHBOUR })],
  ['a hash that does not come out', /the hash of the rows after the page/, (from) => ({ to: next(from, { hash: 'ab'.repeat(16) }) })],
  ['a count that does not come out', /5 rows after the page/, () => ({ count: 6 })],
  ['a digest of other bytes', /digest/, () => ({ checkpoint: { rows: 'ab'.repeat(32) } })],
  ['a count that the signature does not cover', /not signed/, () => ({ checkpoint: { count: 6 } })],
  ['a position that the signature does not cover', /not signed/, (from) => ({ hello: { to: next(from, { dv: 8 }) } })],
  ['an epoch that the signature does not cover', /not signed/, () => ({ hello: { epoch: 2 } })],
  ['an ordinal that the signature does not cover', /not signed/, () => ({ hello: { ordinal: 4 } })],
  ['a keep that the signature does not cover', /not signed/, () => ({ hello: { keep: '1' } })],
  ['a signature that is none', /checkpoint: signature/, () => ({ checkpoint: { signature: 'x' } })],
  ['epoch 0', /hello: epoch/, signed({ epoch: 0 })],
  ['epoch 2^53', /hello: epoch/, signed({ epoch: INTEGER_BOUND + 1 })],
  ['a negative ordinal', /hello: ordinal/, signed({ ordinal: -1 })],
  ['ordinal 2^53', /hello: ordinal/, signed({ ordinal: INTEGER_BOUND + 1 })],
  ['an ordinal that is text', /hello: ordinal/, signed({ ordinal: '3' })],
  ['rows of a future layout', /schema 2/, signed({ schema: 2 })],
  ['a site id of 17 bytes', /hello: siteId/, signed({ siteId: 'ab'.repeat(17) })],
  ['a site id of none', /hello: siteId/, signed({ siteId: null })],
  ['a keep of a wrong length', /hello: keep/, signed({ keep: '10' })],
  ['a keep of other digits', /hello: keep/, signed({ keep: '2' })],
  ['a keep in a delta', /a delta with kept/, signed({ keep: '1' })],
  ['a delta into another file', /without a target position/, (from) => ({ to: next(from, { dbId: 'cd'.repeat(16) }) })],
  ['a delta that goes back', /without a target position/, (from) => ({ to: next(from, { dv: from.dv }) })],
  ['version 2^53', /hello: to.dv/, (from) => ({ to: next(from, { dv: INTEGER_BOUND + 1 }) })],
  ['a negative version', /hello: to.dv/, (from) => ({ to: next(from, { dv: -1 }) })],
  ['version 1.5', /hello: to.dv/, (from) => ({ to: next(from, { dv: 1.5 }) })],
  ['rows at version 0', /version 0/, (from) => ({ ...whole(from), to: next(from, { dv: 0 }) })],
  ['column version 2^63-1', /version that is not a counter/, lines(row(ROW_A, '9223372036854775807', 1, '{}'))],
  ['column version 2^53', /version that is not a counter/, lines(row(ROW_A, INTEGER_BOUND + 1, 1, '{}'))],
  ['column version 0', /version that is not a counter/, lines(row(ROW_A, 0, 1, '{}'))],
  ['column version 1.5', /version that is not a counter/, lines(row(ROW_A, 1.5, 1, '{}'))],
  ['column version 0x2', /version that is not a counter/, lines(row(ROW_A, '0x2', 1, '{}'))],
  ['column version 2e0', /version that is not a counter/, lines(row(ROW_A, '2e0', 1, '{}'))],
  ['unknown column version', /version that is not a counter/, lines(row(ROW_A, '', 1, '{}'))],
  ['causal length 2^53', /version that is not a counter/, lines(row(ROW_A, 1, INTEGER_BOUND + 1, '{}'))],
  ['causal length 0', /version that is not a counter/, lines(row(ROW_A, 1, 0))],
  ['a negative causal length', /version that is not a counter/, lines(row(ROW_A, 2, -1, '{}'))],
  ['an even causal length of a live row', /causal length that does not match/, lines(row(ROW_A, 5, 2, '{}'))],
  ['an odd causal length of a deleted row', /causal length that does not match/, lines(row(ROW_A, 3, 3))],
  ['an empty id', /empty id/, lines(row('', 1, 1, '{}'))],
  ['an id past its limit', /id longer/, lines(row('i'.repeat(ROW_ID_BYTES_MAX + 1), 1, 1, '{}'))],
  ['an id past its limit in bytes, not in letters', /id longer/, lines(row('ä'.repeat(ROW_ID_BYTES_MAX / 2 + 1), 1, 1, '{}'))],
  ['an id with NUL', /control/, lines(row('object/a\0b', 1, 1, '{}'))],
  ['an id with a carriage return', /control/, lines(row('object/a\r', 1, 1, '{}'))],
  ['an id with DEL', /control/, lines(row('object/a\x7f', 1, 1, '{}'))],
  ['an id with a TAB', /version that is not a counter/, lines(row('object/a\tb', 2, 1, '{}'))],
  ['a document past its limit', /document longer/, lines(row(ROW_A, 2, 1, 'd'.repeat(ROW_DOC_BYTES_MAX + 1)))],
  ['a row with a cell too few', /fewer than three/, lines(`${ROW_A}\t2`)],
  ['a row of one word', /fewer than three/, lines('rows')],
  ['an empty line', /fewer than three/, lines(GOOD, '')],
  ['a million rows of nothing', /fewer than three/, () => ({ lines: [Buffer.alloc(1_000_000, 10)] })],
  ['more tombstones than a page may have', /more than 250000 rows/, () => ({ lines: manyTombstones() })],
  ['a row twice', /a row twice/, lines(GOOD, GOOD)],
  ['a row of the frames before', /fewer than three/, lines(JSON.stringify([ROW_A, '{}', 2, 1, 0]))],
  ['bytes that are no UTF-8', /not UTF-8/, lines(Buffer.concat([Buffer.from(`${ROW_A}\t2\t1\t`), Buffer.from([0xff, 0xfe])]))],
  [
    'a row that the held one outranks, with the sum it would have had',
    /the hash of the rows after the page/,
    (from) => ({ to: next(from, { hash: hashOfRows(rowsWithA('')) }), lines: [row(ROW_A, 1, 1, '')] }),
  ],
  ['a row that outranks and is worth nothing', /the hash of the rows after the page/, lines(row(ROW_A, 99, 1, 'not what the hash says'))],
  ['a tombstone in a whole page', /tombstone/, (from) => ({ ...whole(from), lines: [...whole(from).lines, row('object/x', 2, 2)] })],
  ['a row twice in a whole page', /a row twice/, (from) => ({ ...whole(from), lines: [...whole(from).lines, GOOD] })],
  ['a whole page that lacks a row', /differ from its hash/, (from) => ({ ...whole(from), lines: whole(from).lines.slice(1) })],
  ['a whole page of nothing that says five', /differ from its hash/, (from) => ({ ...whole(from), lines: [] })],
  [
    'a keep of more buckets than were shown',
    /lists 256 kept buckets of 1/,
    (from) => ({ ...whole(from), signed: { keep: '1'.repeat(256) } }),
  ],
  ['a keep of rows that differ', /differ from its hash/, (from) => ({ ...whole(from), lines: [], signed: { keep: '1' } })],
]

test.each(HOSTILE)('PL5 refused, and the last good rows stay in force: %s', async (_, why, bend) => {
  const { shards, replica } = await inSync()
  const before = [replica.dump(), replica.position(), replica.epoch(), replica.proof()]
  const from = position(replica)
  const bent = bend(from)
  const refused = replica.applyPage(bent instanceof Uint8Array ? bent : forgePage({ ...base(from), ...bent }))
  expect(refused).toMatchObject({ kind: 'refused', why: expect.stringMatching(why) })
  expect([replica.dump(), replica.position(), replica.epoch(), replica.proof()]).toEqual(before)
  expect(replica.verified()).toBe(true)
  shards.writeRevisions([revision(CLUSTER, WEB, 3, { a: '2' })])
  expect(replica.applyPage(await pull(shards, position(replica))).kind).toBe('applied')
})

test('PL5 the forger forges well: the pages that all cases are bent from are taken', async () => {
  const { replica } = await inSync()
  const from = position(replica)
  expect(replica.applyPage(forgePage(base(from))).kind).toBe('applied')
  expect(new Map(replica.dump())).toEqual(rowsWithA('{}'))
  expect(replica.applyPage(forgePage(whole(from))).kind).toBe('applied')
  expect(new Map(replica.dump())).toEqual(rowsWithA('{}'))
})

test('PL5 the greatest numbers are taken, and the next page from another file heals what they leave behind', async () => {
  const { replica, dir } = await inSync()
  const { shards } = openTestShards(join(dir, 'raised'), { epochOf: () => 2 })
  shards.writeRevisions([revision(CLUSTER, WEB, 1, { a: '1' })])
  const from = position(replica)
  const to = next(from, { dv: INTEGER_BOUND })
  const giant = row(ROW_A, INTEGER_BOUND, INTEGER_BOUND, '{}')
  expect(replica.applyPage(forgePage({ ...base(from), to, lines: [giant], signed: { ordinal: INTEGER_BOUND } })).kind).toBe('applied')
  expect(replica.recheck()).toBe(true)
  expect(replica.applyPage(forgePage({ ...base(to), to: { ...to, dv: to.dv } })).kind).toBe('refused')
  expect(replica.applyPage(await pull(shards, null)).kind).toBe('applied')
  shards.writeRevisions([revision(CLUSTER, WEB, 3, { a: '2' })])
  expect(replica.applyPage(await pull(shards, position(replica))).kind).toBe('applied')
})

test('PL5 every cut and every flipped byte of a page is refused', async () => {
  const { shards, replica } = await inSync()
  shards.writeRevisions([revision(CLUSTER, WEB, 3, { a: '2' })])
  for (const page of [await pull(shards, position(replica)), await pull(shards, null)]) {
    const before = [replica.dump(), replica.position()]
    for (let at = 0; at < page.length; at += 7) {
      expect(replica.applyPage(page.subarray(0, at)).kind).toBe('refused')
      const flipped = Uint8Array.from(page)
      flipped[at] = (flipped[at] ?? 0) ^ 4
      expect(replica.applyPage(flipped).kind).toBe('refused')
    }
    expect([replica.dump(), replica.position()]).toEqual(before)
  }
})

test('PL4 PL5 rows at the limits are taken, and letters of every width, which a packed key may be made of, are only letters', async () => {
  const { replica } = await inSync()
  const more: Array<[string, string]> = [
    ['i'.repeat(ROW_ID_BYTES_MAX), 'd'.repeat(ROW_DOC_BYTES_MAX)],
    ['\u{ffff}', '\u{feff}ä\u{10ffff}'],
    ['\u{10000}', ''],
    ['\u{feff}x', '\t\r\0'],
  ]
  const from = position(replica)
  const to = next(from, { hash: hashOfRows([...replica.dump(), ...more]) })
  const page = { ...base(from), to, count: 9, lines: more.map(([id, doc]) => row(id, 1, 1, doc)) }
  expect(replica.applyPage(forgePage(page))).toMatchObject({ kind: 'applied' })
  expect(replica.recheck()).toBe(true)
  const rows = replica.dump()
  for (const [id, doc] of more) expect(rows.find(([one]) => one === id)?.[1]).toBe(doc)
})
