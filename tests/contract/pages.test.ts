// What a pull yields beyond a small delta: parts, re-bases by buckets, large reads in a Worker, frames that clusters
// share.
import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { WirePage } from '../../server/desired/page.ts'
import type { OpenedShards } from '../../server/desired/shard-files.ts'
import type { Accept } from '../../server/desired/shards.ts'
import { Transfers } from '../../server/desired/transfers.ts'
import { addHash, hashText, rowHash } from '../../shared/crdt/row-hash.ts'
import { checkpointBytes } from '../../shared/protocol/frames.ts'
import { BUCKET_COUNTS, BucketSums, bucketOf } from '../../shared/protocol/refetch.ts'
import { PART_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { SLICE_BYTES_MIN, TRANSFER_MS } from '../../shared/protocol/transfer.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { verifyBytes } from '../../shared/runtime/keys.ts'
import { IDENTITY, type ParsedPage, parsePage, pullPage, refetchPage, wholePage, ZSTD } from '../support/page-kit.ts'
import {
  CLUSTER,
  clusterNumber,
  DB,
  NEIGHBOUR,
  newId,
  openTestReplica,
  openTestShards,
  revision,
  SERVER_KEY,
  WEB,
} from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

async function until(condition: () => boolean): Promise<void> {
  for (let n = 0; n < 500 && !condition(); n++) await Bun.sleep(2)
  expect(condition()).toBe(true)
}

/** Objects that do not compress. */
const noise = (count: number, bytes: number) =>
  Object.fromEntries(
    Array.from({ length: count }, (_, n) => [`o${n}`, Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString('base64')]),
  )

function openWith(options: Parameters<typeof openTestShards>[1] = {}) {
  const dir = tempDir()
  return { dir, ...openTestShards(dir, { shardCount: 1, ...options }) }
}

async function paged(shards: OpenedShards['shards'], cluster: ClusterId = CLUSTER, accept: Accept = ZSTD) {
  const pulled = await shards.pull(cluster, null, accept)
  if (pulled.kind !== 'page' || pulled.transfer === null) throw new Error('expected a page in parts')
  return { ...pulled, transfer: pulled.transfer }
}

const signed = ({ hello: { t: _, ...hello }, checkpoint }: ParsedPage, cluster: ClusterId) =>
  verifyBytes(SERVER_KEY.publicKey, checkpointBytes(cluster, hello, checkpoint), checkpoint.signature)

test.each([
  ['zstd', ZSTD],
  ['as it is', IDENTITY],
] as const)(
  'PL3 a page that is too large for one answer travels in parts of its bytes, %s, each of which can be asked for again',
  async (_, accept) => {
    const { shards } = openWith()
    shards.writeRevisions([revision(CLUSTER, WEB, 1, noise(100, 9_000))])
    const page = await paged(shards, CLUSTER, accept)
    const { id, parts, bytes } = page.transfer
    expect(parts).toBe(Math.ceil(bytes / PART_BYTES_MAX))
    expect(page.bytes.length).toBe(PART_BYTES_MAX)
    const part = (n: number) => {
      const got = shards.part(CLUSTER, id, n)
      return got.kind === 'part' ? Buffer.from(got.bytes).toString('base64') : got.kind
    }
    expect(part(0)).toBe(Buffer.from(page.bytes).toString('base64'))
    expect(part(parts - 1)).toBe(part(parts - 1))
    expect([part(parts), part(-1)]).toEqual(['gone', 'gone'])
    const whole = await pullPage(shards, CLUSTER, null, accept)
    expect(wholePage(shards, CLUSTER, await paged(shards, CLUSTER, accept)).equals(whole.frames)).toBe(true)
    expect([whole.rows.length, signed(whole, CLUSTER), signed(whole, NEIGHBOUR)]).toEqual([101, true, false])
    shards.close()
  },
)

test('PL3 an agent on a bad link gets smaller parts, also of a page that would travel whole', async () => {
  const { shards } = openWith()
  shards.writeRevisions([revision(CLUSTER, WEB, 1, noise(10, 6_000))])
  const whole = await shards.pull(CLUSTER, null, ZSTD)
  expect(whole.kind === 'page' && whole.transfer).toBeNull()
  const sliced = await paged(shards, CLUSTER, { zstd: true, sliceBytes: SLICE_BYTES_MIN })
  expect([sliced.bytes.length, sliced.transfer.parts]).toEqual([SLICE_BYTES_MIN, Math.ceil(sliced.transfer.bytes / SLICE_BYTES_MIN)])
  expect(wholePage(shards, CLUSTER, sliced).toString()).toContain('ConfigMap/default/o9')
  shards.close()
})

test('PL3 a part is there for ten minutes by the server’s clock after the last new one was asked for, and not a moment longer', async () => {
  const clock = createVirtualClock()
  const { shards } = openWith({ clock, withoutThreads: true })
  shards.writeRevisions([revision(CLUSTER, WEB, 1, noise(100, 9_000))])
  const { transfer } = await paged(shards)
  await clock.advance(TRANSFER_MS - 1)
  expect(shards.part(CLUSTER, transfer.id, 1).kind).toBe('part')
  await clock.advance(1)
  expect(shards.part(CLUSTER, transfer.id, 1).kind).toBe('part')
  await clock.advance(TRANSFER_MS - 2)
  expect(shards.part(CLUSTER, transfer.id, 1).kind).toBe('part')
  expect(shards.part(CLUSTER, transfer.id, 0).kind).toBe('part')
  await clock.advance(1)
  expect(shards.part(CLUSTER, transfer.id, 1).kind).toBe('gone')
  shards.close()
})

test('PL7 a part may only be had by the cluster that it was made for', async () => {
  const { shards } = openWith()
  for (const cluster of [CLUSTER, NEIGHBOUR]) shards.writeRevisions([revision(cluster, WEB, 1, noise(100, 9_000))])
  const [mine, theirs] = [await paged(shards), await paged(shards, NEIGHBOUR)]
  expect(shards.part(CLUSTER, theirs.transfer.id, 1)).toEqual({ kind: 'gone' })
  expect(shards.part(CLUSTER, mine.transfer.id, 1).kind).toBe('part')
  expect(shards.part(CLUSTER, newId().slice(0, 22), 1)).toEqual({ kind: 'gone' })
  shards.close()
})

test('PL3 a large page lies in a file that no crash leaves behind, and is shared by the clusters that get it', async () => {
  const { shards, dir } = openWith()
  const objects = noise(100, 30_000)
  for (const cluster of [CLUSTER, NEIGHBOUR]) shards.writeRevisions([revision(cluster, WEB, 1, objects)])
  const [mine, theirs] = [await paged(shards), await paged(shards, NEIGHBOUR)]
  expect(mine.transfer.bytes).toBeGreaterThan(1_024 * 1_024)
  expect(readdirSync(join(dir, 'spool'))).toHaveLength(1)
  shards.endTransfers(CLUSTER)
  expect(shards.part(CLUSTER, mine.transfer.id, 1).kind).toBe('gone')
  expect(wholePage(shards, NEIGHBOUR, theirs).toString()).toContain('ConfigMap/default/o99')
  writeFileSync(join(dir, 'spool', 'left'), 'by a crash')
  shards.endTransfers(NEIGHBOUR)
  await until(() => readdirSync(join(dir, 'spool')).length === 1)
  shards.close()
  expect(existsSync(join(dir, 'spool'))).toBe(false)
  mkdirSync(join(dir, 'spool'))
  writeFileSync(join(dir, 'spool', 'left'), 'by a crash')
  openTestShards(dir, { shardCount: 1 }).shards.close()
  expect(existsSync(join(dir, 'spool', 'left'))).toBe(false)
})

test('PL3 of a page whose rows lie in a file, or are another cluster’s too, memory keeps none', async () => {
  const transfers = new Transfers({
    dir: join(tempDir(), 'spool'),
    clock: createVirtualClock(),
    random: () => 0.5,
    newTransferId: () => newId().slice(0, 22),
  })
  const before = memory()
  const shared = pageOf(4_000_000).body.sha256
  for (let n = 0; n < 50; n++) {
    const page = pageOf(4_000_000)
    await transfers.open(
      clusterNumber(n),
      { ...page, body: { ...page.body, sha256: n % 2 === 0 ? page.body.sha256 : shared } },
      PART_BYTES_MAX,
    )
  }
  expect(memory() - before).toBeLessThan(50_000_000)
  transfers.close()
})

/** Bytes of what is still used. */
function memory(): number {
  Bun.gc(true)
  return process.memoryUsage().external
}

const pageOf = (bytes: number): WirePage => {
  const body = {
    sha256: newId(),
    bytes: crypto.getRandomValues(new Uint8Array(bytes)),
    packed: true,
    common: false,
    sealed: [],
    bounded: 0,
    sops: 0,
  }
  return { head: new Uint8Array(10), body, tail: new Uint8Array(10), zstd: true }
}

test('PL3 the spool is bounded: what was fetched to its end goes first, then newcomers wait', async () => {
  const dir = join(tempDir(), 'spool')
  const options = { dir, clock: createVirtualClock(), random: () => 0.5, newTransferId: () => newId().slice(0, 22) }
  const transfers = new Transfers({ ...options, spoolBytesMax: 250_000 })
  const [one, two] = [
    await transfers.open(clusterNumber(1), pageOf(60_000), 32_768),
    await transfers.open(clusterNumber(2), pageOf(60_000), 32_768),
  ]
  await transfers.open(clusterNumber(3), pageOf(60_000), 32_768)
  await transfers.open(clusterNumber(4), pageOf(60_000), 32_768)
  const fifth = () => transfers.open(clusterNumber(5), pageOf(60_000), 32_768)
  await expect(fifth()).rejects.toThrow('large pages')
  const { id, parts } = two.transfer
  expect(transfers.part(clusterNumber(2), id, parts - 1)).not.toBeNull()
  await fifth()
  expect([transfers.part(clusterNumber(2), id, 1), transfers.part(clusterNumber(1), one.transfer.id, 1) === null]).toEqual([null, false])
  transfers.close()
})

test('PL3 a spool that cannot be written says so, and the next page may', async () => {
  const dir = join(tempDir(), 'spool')
  const transfers = new Transfers({ dir, clock: createVirtualClock(), random: () => 0.5, newTransferId: () => newId().slice(0, 22) })
  rmSync(dir, { recursive: true })
  await expect(transfers.open(CLUSTER, pageOf(2_000_000), 32_768)).rejects.toThrow('ENOENT')
  mkdirSync(dir)
  symlinkSync('/dev/full', join(dir, '1')) // where the next one will be written
  await expect(transfers.open(CLUSTER, pageOf(2_000_000), 32_768)).rejects.toThrow('no space left')
  const page = pageOf(2_000_000)
  const { transfer } = await transfers.open(CLUSTER, page, 32_768)
  const parts = Array.from({ length: transfer.parts }, (_, n) => transfers.part(CLUSTER, transfer.id, n) ?? new Uint8Array())
  expect(Buffer.concat(parts).equals(Buffer.concat([page.head, page.body.bytes, page.tail]))).toBe(true)
  transfers.close()
})

test.each([
  ['a tombstone', (o: OpenedShards) => o.shards.writeRevisions([revision(CLUSTER, DB, 3, null)]), 'gone'],
  ['a removal order', (o: OpenedShards) => o.shards.writeRevisions([revision(CLUSTER, DB, 3, {})]), 'gone'],
  [
    'a withdrawn revision',
    (o: OpenedShards) => o.shards.writeRevisions([{ ...revision(CLUSTER, DB, 3, { d: '2' }), withdraw: true }]),
    'gone',
  ],
  ['the cluster’s removal', (o: OpenedShards) => o.shards.removeCluster(CLUSTER), 'gone'],
  [
    'an ordinary commit, else a bad link would never finish',
    (o: OpenedShards) => o.shards.writeRevisions([revision(CLUSTER, DB, 3, { d: '2' })]),
    'part',
  ],
  ['a tombstone of another cluster', (o: OpenedShards) => o.shards.writeRevisions([revision(NEIGHBOUR, DB, 3, null)]), 'part'],
] as const)('RV3 after %s an open transfer is as it should be', async (_, change, expected) => {
  const opened = openWith()
  opened.shards.writeRevisions([revision(CLUSTER, WEB, 1, noise(100, 9_000))])
  for (const cluster of [CLUSTER, NEIGHBOUR]) opened.shards.writeRevisions([revision(cluster, DB, 2, { d: '1' })])
  const { transfer } = await paged(opened.shards)
  change(opened)
  expect(opened.shards.part(CLUSTER, transfer.id, 1).kind).toBe(expected)
  opened.shards.close()
})

test('RV3 a revision that is withdrawn while a Worker reads it is not in the page', async () => {
  const { shards } = openWith()
  shards.writeRevisions([revision(CLUSTER, WEB, 1, Object.fromEntries(Array.from({ length: 400 }, (_, n) => [`o${n}`, 'withdrawn'])))])
  const reading = pullPage(shards, CLUSTER, null)
  shards.writeRevisions([{ ...revision(CLUSTER, WEB, 2, { o0: 'good' }), withdraw: true }])
  expect((await reading).text).not.toContain('withdrawn')
  shards.close()
})

test('PL2 a page of a Worker is that of the main thread, byte for byte, and the Worker sees each commit at once', async () => {
  const { dir, shards } = openWith()
  const objects = noise(300, 500)
  shards.writeRevisions([revision(CLUSTER, WEB, 1, objects)])
  const before = shards.head(CLUSTER)
  shards.writeRevisions([revision(CLUSTER, WEB, 2, { ...noise(280, 500), o0: 'last' })])
  const pages = [await pullPage(shards, CLUSTER, null, ZSTD), await pullPage(shards, CLUSTER, before, ZSTD)]
  const buckets = await refetchPage(shards, CLUSTER, new Uint8Array(256 * 16))
  shards.close()
  const alone = openTestShards(dir, { shardCount: 1, withoutThreads: true }).shards
  expect((await pullPage(alone, CLUSTER, null, ZSTD)).text).toBe(pages[0]?.text ?? '')
  expect((await pullPage(alone, CLUSTER, before, ZSTD)).text).toBe(pages[1]?.text ?? '')
  expect((await refetchPage(alone, CLUSTER, new Uint8Array(256 * 16))).text).toBe(buckets.text)
  expect(pages[1]?.rows.filter(({ doc }) => doc === null)).toHaveLength(20)
  alone.close()
})

test.each(['the last write', 'several writes'])('PL13 to the main thread a large delta costs next to nothing: %s', async (since) => {
  const { shards } = openWith()
  shards.writeRevisions([revision(CLUSTER, DB, 1, { d: '1' })])
  const cursor = shards.head(CLUSTER)
  const doc = 'x'.repeat(1_500)
  shards.writeRevisions([revision(CLUSTER, WEB, 2, Object.fromEntries(Array.from({ length: 10_000 }, (_, n) => [`o${n}`, doc + n])))])
  if (since === 'several writes') shards.writeRevisions([revision(CLUSTER, DB, 3, { d: '2' })])
  const blocked: number[] = []
  for (let n = 0; n < 3; n++) {
    const startedMs = performance.now()
    const pulling = shards.pull(CLUSTER, cursor, ZSTD)
    blocked.push(performance.now() - startedMs)
    expect(parsePage(wholePage(shards, CLUSTER, await pulling)).rows.length).toBeGreaterThan(10_000)
  }
  expect(Math.min(...blocked)).toBeLessThan(20) // to read and sort them takes longer
  shards.close()
})

test('PL13 an error in the Worker fails that read alone', async () => {
  const { shards, dir } = openWith()
  shards.writeRevisions([revision(CLUSTER, WEB, 1, noise(300, 50))])
  renameSync(join(dir, 'shard-00.db'), join(dir, 'away.db'))
  await expect(shards.pull(CLUSTER, null, ZSTD)).rejects.toThrow('large read failed')
  renameSync(join(dir, 'away.db'), join(dir, 'shard-00.db'))
  expect((await pullPage(shards, CLUSTER, null)).rows).toHaveLength(301)
  shards.close()
})

test('PL1 a file that was put in the place of another is served by main thread and Worker from then on', async () => {
  const { dir, shards, reopen, dbIds } = openWith()
  shards.writeRevisions([revision(CLUSTER, WEB, 1, noise(300, 50))])
  const old = (await pullPage(shards, CLUSTER, null)).hello.to
  const other = openTestShards(join(dir, 'other'), { shardCount: 1 })
  other.shards.writeRevisions([revision(CLUSTER, WEB, 1, { ...noise(300, 50), mark: 'new' })])
  other.shards.close()
  const waiting = shards.waitForChange(CLUSTER, shards.head(CLUSTER), 600_000, new AbortController().signal)
  reopen(0, (path) => renameSync(join(dir, 'other', 'shard-00.db'), path))
  await waiting
  const page = await pullPage(shards, CLUSTER, null)
  expect([page.text.includes('"mark"'), page.hello.to.dbId === old.dbId, dbIds.length]).toEqual([true, false, 1])
  expect(await shards.pull(CLUSTER, old, ZSTD)).toEqual({ kind: 'refetch', reason: 'unknown' })
  shards.close()
})

test('PL13 equal pages of a thousand clusters are compressed once, also when their histories differ', async () => {
  const opened = openWith({ shardCount: 4 })
  const { shards } = opened
  const clusters = Array.from({ length: 1_000 }, (_, n) => clusterNumber(n))
  const [old, now] = [1, 2].map((n) => Object.fromEntries(Array.from({ length: 20 }, (_, o) => [`o${o}`, `${n} ${'x'.repeat(400)}`])))
  const cursors = clusters.map((cluster, n) => {
    if (n % 2 === 0) shards.writeRevisions([revision(cluster, WEB, 1, { before: 'only here' })]) // an object more in its past
    shards.writeRevisions([revision(cluster, WEB, 2, old ?? {})])
    const cursor = shards.head(cluster)
    shards.writeRevisions([revision(cluster, WEB, 3, now ?? {})])
    return cursor
  })
  const sizes = new Set<number>()
  for (const cluster of clusters) {
    const pulled = await shards.pull(cluster, null, ZSTD)
    if (pulled.kind === 'page') sizes.add(Math.round(pulled.bytes.length / 100))
  }
  expect(opened.compressions()).toBe(1)
  for (const [n, cluster] of clusters.entries()) await shards.pull(cluster, cursors[n] ?? null, ZSTD)
  // A delta says the column versions, so that the service row differs by the past of its cluster.
  expect(opened.compressions()).toBe(3)
  expect(sizes.size).toBeLessThan(4)
  shards.close()
}, 60_000)

test('PL13 the small pages of a commit are compressed once, and are the pages that an agent without zstd gets', async () => {
  const opened = openWith()
  const { shards } = opened
  const clusters = Array.from({ length: 20 }, (_, n) => clusterNumber(n))
  const commit = (n: number) =>
    shards.writeRevisions(clusters.map((cluster) => revision(cluster, WEB, n, { a: `${n} ${'x'.repeat(600)}`, b: 'stays' })))
  commit(1)
  const cursors = clusters.map((cluster) => shards.head(cluster))
  commit(2)
  for (const [n, cluster] of clusters.entries()) {
    const page = await pullPage(shards, cluster, cursors[n] ?? null, ZSTD)
    expect(page.text).toBe((await pullPage(shards, cluster, cursors[n] ?? null, IDENTITY)).text)
    expect([page.rows.length, signed(page, cluster)]).toEqual([2, true])
  }
  expect(opened.compressions()).toBe(1)
  shards.close()
})

test('PL2 an agent fifty versions behind gets each row once, and merges to what the server holds', async () => {
  const { shards, dir } = openWith()
  const state = (n: number) => Object.fromEntries(Array.from({ length: 12 }, (_, o) => [`o${(n + o) % 15}`, `${n}`]))
  shards.writeRevisions([revision(CLUSTER, WEB, 1, state(0))])
  shards.writeRevisions([revision(CLUSTER, DB, 2, { d: '0' })])
  const replica = openTestReplica(join(dir, 'replica.db'))
  expect(replica.applyPage((await pullPage(shards, CLUSTER, null)).frames).kind).toBe('applied')
  const cursor = replica.position()
  for (let n = 1; n <= 50; n++) shards.writeRevisions([revision(CLUSTER, n % 7 === 0 ? DB : WEB, n + 2, state(n))]) // objects go and come back
  const page = await pullPage(shards, CLUSTER, cursor)
  expect(new Set(page.rows.map(({ id }) => id)).size).toBe(page.rows.length)
  expect(page.rows.some(({ doc }) => doc === null)).toBe(true)
  expect(replica.applyPage(page.frames).kind).toBe('applied')
  const fresh = openTestReplica(join(dir, 'fresh.db'))
  expect(fresh.applyPage((await pullPage(shards, CLUSTER, null)).frames).kind).toBe('applied')
  expect(replica.dump()).toEqual(fresh.dump())
  expect(replica.position()).toEqual(shards.head(CLUSTER))
  for (const held of [replica, fresh]) held.close()
  shards.close()
})

// PL9: pages that become a new file.

/** What an agent that holds these rows would send. */
function sumsOf(rows: ReadonlyArray<{ id: string; doc: string | null }>, count: (typeof BUCKET_COUNTS)[number]): Uint8Array {
  const sums = new BucketSums(count)
  for (const { id, doc } of rows) sums.add(rowHash(id, doc ?? ''))
  return sums.bytes()
}

test.each(BUCKET_COUNTS)(
  'PL9 by %d sums, rows of buckets that are equal do not travel, and what travels and what is kept is everything',
  async (count) => {
    const { shards } = openWith()
    shards.writeRevisions([revision(CLUSTER, WEB, 1, noise(500, 20))])
    const held = (await pullPage(shards, CLUSTER, null)).rows
    shards.writeRevisions([revision(CLUSTER, DB, 2, { d: '1' })]) // two rows more
    const page = await refetchPage(shards, CLUSTER, sumsOf(held, count))
    const { keep } = page.hello
    expect([page.hello.from, keep?.length ?? 0, signed(page, CLUSTER)]).toEqual([null, count, true])
    if (count === 256) expect([...(keep ?? '')].filter((digit) => digit === '0').length).toBeLessThanOrEqual(2)
    const kept = held.filter(({ id, doc }) => keep?.[bucketOf(rowHash(id, doc ?? ''), count)] === '1')
    const all = [...kept, ...page.rows]
    expect([all.length, page.checkpoint.count]).toEqual([503, 503])
    expect(hashText(all.reduce((sum, { id, doc }) => addHash(sum, rowHash(id, doc ?? '')), 0n))).toBe(page.hello.to.hash)
    expect(all.every(({ colVersion, cl }) => colVersion === 1 && cl === 1)).toBe(true)
    shards.close()
  },
)

test('PL9 an agent that has it all gets no row', async () => {
  const { shards } = openWith()
  shards.writeRevisions([revision(CLUSTER, WEB, 1, noise(500, 20))])
  const { rows } = await pullPage(shards, CLUSTER, null)
  const page = await refetchPage(shards, CLUSTER, sumsOf(rows, 256))
  expect([page.rows, page.hello.keep, page.checkpoint.count]).toEqual([[], '1'.repeat(256), 501])
  shards.close()
})

test('PL9 an empty cluster answers any sums', async () => {
  const { shards } = openWith()
  for (const count of BUCKET_COUNTS) {
    const page = await refetchPage(shards, CLUSTER, new Uint8Array(count * 16).fill(7))
    expect([page.rows, page.checkpoint.count, page.hello.keep ?? '']).toEqual([[], 0, '0'.repeat(count)])
  }
  shards.close()
})
