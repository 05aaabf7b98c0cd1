import { expect, test } from 'bun:test'
import { closeSync, existsSync, fstatSync, openSync, readFileSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { raiseEpochs } from '../../server/desired/epochs.ts'
import { type MaintenanceDeps, maintainShard, maintainShards } from '../../server/desired/maintenance.ts'
import { publishRevisions } from '../../server/desired/publisher.ts'
import { replayShards } from '../../server/desired/replay.ts'
import { compactionDue, examineShard, TOMBSTONES_MAX, TOMBSTONES_MIN, VERSIONS_MAX } from '../../server/desired/shard-report.ts'
import { discardStale } from '../../server/desired/stale-shards.ts'
import { createFileContentStore } from '../../server/store/content/file-content-store.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { joinCluster } from '../support/store-fixtures.ts'
import { DB, newId, objectRows, openTestShards, serviceDoc, WEB } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

test.each([
  ['nothing', 0, 0, 0, false],
  ['half of the rows', 2 * (TOMBSTONES_MIN + 1), TOMBSTONES_MIN + 1, 0, false],
  ['more than half', 2 * (TOMBSTONES_MIN + 1) - 1, TOMBSTONES_MIN + 1, 0, true],
  ['more than half, but few', 0, TOMBSTONES_MIN, 0, false],
  ['many, but few beside the rows', 1_000_000, TOMBSTONES_MAX, 0, false],
  ['too many, whatever the rows are', 1_000_000, TOMBSTONES_MAX + 1, 0, true],
  ['a log at its limit', 1_000_000, 0, VERSIONS_MAX, false],
  ['a log past it', 1_000_000, 0, VERSIONS_MAX + 1, true],
])('RP3 compaction with %s', (_, rows, tombstones, versions, due) => {
  expect(compactionDue({ rows, tombstones, versions })).toBe(due)
})

const open = async (dir: string) => ({
  store: await openSqliteStore(join(dir, 'fleet.sqlite'), { clock: systemClock, random: seededRandom(1) }),
  content: createFileContentStore(join(dir, 'content'), systemClock),
  opened: openTestShards(join(dir, 'shards'), { shardCount: 1 }),
})
type Parts = Awaited<ReturnType<typeof open>>

/** What a server does at its start. */
async function begin({ store, opened, content }: Parts): Promise<ClusterId[]> {
  await discardStale({ store, opened, log: silentLogger })
  const raised = await raiseEpochs({ store, opened, log: silentLogger })
  await replayShards({ store, content, shards: opened.shards, log: silentLogger })
  return raised
}

async function start() {
  const dir = tempDir()
  const parts = await open(dir)
  const [one, two] = [await joinCluster(parts.store, '1'), await joinCluster(parts.store, '2')]
  await begin(parts)
  const publish = (clusterId: ClusterId, service: typeof WEB, objects: Record<string, string>) => {
    const rows = objectRows(service, objects)
    const doc = serviceRowSchema.parse(JSON.parse(serviceDoc(rows)))
    return publishRevisions({ ...parts, shards: parts.opened.shards }, [{ ...service, clusterId, placedBy: '{}', doc, objects: rows }])
  }
  const many = Object.fromEntries(Array.from({ length: TOMBSTONES_MIN + 200 }, (_, n) => [`o${n}`, '1']))
  const deps: MaintenanceDeps = {
    ...parts,
    newId,
    shardCount: 1,
    pace: () => undefined,
    onEpochsRaised: async () => {},
    examine: async (path) => examineShard(path),
    clock: systemClock,
    random: seededRandom(1),
    log: silentLogger,
  }
  const epoch = async (clusterId: ClusterId) => (await parts.store.listAgents()).find((agent) => agent.clusterId === clusterId)?.epoch
  return { dir, ...parts, shards: parts.opened.shards, one, two, publish, many, deps, epoch, path: parts.opened.pathOf(0) }
}
const RUNNING = new AbortController().signal
const report = (path: string) => examineShard(path)

test('RP3 a shard that is mostly history is rewritten: another dbId, no tombstones, equal rows, greater epochs', async () => {
  const { one, two, publish, many, deps, epoch, shards, path, store } = await start()
  await publish(two, WEB, { a: '1' })
  await publish(one, WEB, many)
  const cursor = shards.head(one)
  await publish(one, WEB, { a: '2' })
  const before = { one: shards.head(one), two: shards.head(two), epoch: (await epoch(one)) ?? 0, ordinal: shards.ordinal(one) }
  expect(report(path)).toEqual({ damage: null, rows: 4, tombstones: TOMBSTONES_MIN + 200, versions: 3 })
  const woken = shards.waitForChange(two, before.two, 60_000, new AbortController().signal)
  expect(await maintainShard(deps, 0, RUNNING)).toBe('compacted')
  await woken

  expect(report(path)).toEqual({ damage: null, rows: 4, tombstones: 0, versions: 2 })
  expect([shards.head(one).hash, shards.head(two).hash]).toEqual([before.one.hash, before.two.hash])
  expect([shards.head(one).dbId === cursor.dbId, shards.ordinal(one), await epoch(one)]).toEqual([false, before.ordinal, before.epoch + 1])
  expect(await shards.pull(one, cursor, { zstd: false })).toEqual({ kind: 'refetch', reason: 'compacted' })
  expect(await maintainShard(deps, 0, RUNNING)).toBe('whole')
  expect(existsSync(`${path}.new`)).toBe(false)

  await publish(one, WEB, { a: '3' })
  expect(await replayShards({ ...deps, shards })).toBe(0)
  expect((await shards.pull(one, shards.head(one), { zstd: false })).kind).toBe('nothing_new')
  shards.close()
  await store.close()
})

test('RP3 CU7 what is published, placed and deleted while a shard is compacted is in the new file as the fleet store has it', async () => {
  const { one, two, publish, many, deps, shards, path, store, opened } = await start()
  await publish(one, WEB, many)
  await publish(one, WEB, { a: '1' })
  await publish(two, WEB, { a: '1' })
  const during: Array<() => Promise<unknown>> = [
    () => publish(one, DB, { d: '1' }),
    () => publish(two, WEB, { a: '2' }),
    async () => {
      await store.deleteCluster('cluster-2')
      shards.removeCluster(two)
    },
    () => publish(one, WEB, { a: '4', b: '4' }),
  ]
  const pending: Array<Promise<unknown>> = []
  const pace = () => {
    const next = during.shift()
    if (next === undefined) return undefined
    pending.push(next())
    return Bun.sleep(5)
  }
  expect(await maintainShard({ ...deps, pace }, 0, RUNNING)).toBe('compacted')
  await Promise.all(pending)
  while (during.length > 0) await during.shift()?.()
  expect(report(path).damage).toBeNull()
  expect(opened.held()).toEqual([one])
  expect(shards.ordinal(one)).toBe((await store.clusterOrdinals()).get(one) ?? 0)
  const { shards: anew } = openTestShards(join(tempDir(), 'anew'))
  await replayShards({ ...deps, shards: anew })
  expect(shards.head(one).hash).toBe(anew.head(one).hash)
  shards.close()
  await store.close()
})

test('RP3 CU5 a crash at any step of a compaction leaves one whole file, and a new one is never served under an old epoch', async () => {
  const { dir, one, publish, many, deps, epoch, shards, store, opened, content } = await start()
  await publish(one, WEB, many)
  await publish(one, WEB, { a: '1' })
  const { hash } = shards.head(one)
  const steps: Array<[string, Partial<MaintenanceDeps>, boolean]> = [
    ['copied', { store: { ...store, adoptShards: () => Promise.reject(new Error('crash')) } }, false],
    ['raised', { onEpochsRaised: () => Promise.reject(new Error('crash')) }, true],
  ]
  for (const [step, broken, raised] of steps) {
    const before = (await epoch(one)) ?? 0
    await expect(maintainShard({ ...deps, ...broken }, 0, RUNNING)).rejects.toThrow('crash')
    expect([step, shards.head(one).hash, await epoch(one)]).toEqual([step, hash, before + (raised ? 1 : 0)])
  }
  writeFileSync(`${opened.pathOf(0)}.new`, 'half of a file')
  shards.close()
  const again = openTestShards(join(dir, 'shards'), { shardCount: 1 })
  const before = (await epoch(one)) ?? 0
  expect(await begin({ store, content, opened: again })).toContain(one)
  expect([await epoch(one), again.shards.head(one).hash, existsSync(`${opened.pathOf(0)}.new`)]).toEqual([before + 1, hash, false])
  again.shards.close()
  await store.close()
})

test('CU2 CU5 a byte that flips in a file that is served is found, and the file made anew from the fleet store while the server runs', async () => {
  const { one, publish, deps, epoch, shards, path, store } = await start()
  await publish(one, WEB, { a: 'the value that flips' })
  await publish(one, DB, { d: '1' })
  const cursor = shards.head(one)
  const before = (await epoch(one)) ?? 0
  flip(path, 'the value that flips')
  expect(report(path).damage).toContain('differ from its log')
  expect(await maintainShard(deps, 0, RUNNING)).toBe('rebuilt')
  expect([report(path).damage, shards.head(one).hash, await epoch(one)]).toEqual([null, cursor.hash, before + 1])
  expect(await shards.pull(one, cursor, { zstd: false })).toEqual({ kind: 'refetch', reason: 'restored' })
  await publish(one, WEB, { a: '2' })
  expect((await shards.pull(one, null, { zstd: false })).kind).toBe('page')
  shards.close()
  await store.close()
})

test('CU2 CU5 a file that SQLite cannot read any more is made anew while the server runs, in a look by a Worker', async () => {
  const { one, publish, deps, shards, path, store } = await start()
  await publish(one, WEB, { a: '1' })
  const { hash } = shards.head(one)
  const { examine: _, ...inWorker } = deps
  expect(await maintainShard(inWorker, 0, RUNNING)).toBe('whole')
  settle(path)
  const file = openSync(path, 'r+')
  const { size } = fstatSync(file)
  writeSync(file, Buffer.alloc(size - 4_096, 0x55), 0, size - 4_096, 4_096)
  closeSync(file)
  // Whoever meets it first sets off a look: nobody waits for the hour.
  const { log, healed } = healedLog()
  const stopping = new AbortController()
  const care = maintainShards({ ...inWorker, log }, stopping.signal)
  await expect(shards.refetch(one, new Uint8Array(), { zstd: false })).rejects.toThrow()
  await healed
  stopping.abort()
  await care
  expect([shards.head(one).hash, report(path).damage]).toEqual([hash, null])
  expect((await shards.refetch(one, new Uint8Array(), { zstd: false })).kind).toBe('page')
  shards.close()
  await store.close()
})

test('CU5 a file that a Worker cannot read sets off a look as well', async () => {
  const { one, publish, many, opened, shards, path, store } = await start()
  await publish(one, WEB, many)
  settle(path)
  const file = openSync(path, 'r+')
  const { size } = fstatSync(file)
  writeSync(file, Buffer.alloc(size - 65_536, 0x55), 0, size - 65_536, 65_536)
  closeSync(file)
  const troubled: number[] = []
  opened.onTrouble((index) => troubled.push(index))
  const reading = shards.refetch(one, new Uint8Array(), { zstd: false })
  expect(troubled).toEqual([]) // to the main thread it is merely large
  await expect(reading).rejects.toThrow('large read failed')
  expect(troubled).toEqual([0])
  shards.close()
  await store.close()
})

test('CU5 a file that gives trouble though it is whole is opened anew, once a minute at most', async () => {
  const { one, publish, deps, shards, store, opened } = await start()
  await publish(one, WEB, { a: '1' })
  let trouble = (_: number) => {}
  const reopened: number[] = []
  const clock = createVirtualClock()
  const watched = {
    shards,
    indexOf: opened.indexOf,
    pathOf: opened.pathOf,
    held: opened.held,
    onTrouble: (listener: (index: number) => void) => {
      trouble = listener
    },
    reopen: (index: number, whileClosed: (path: string) => void) => {
      reopened.push(index)
      opened.reopen(index, whileClosed)
    },
  }
  const stopping = new AbortController()
  const care = maintainShards({ ...deps, opened: watched, clock }, stopping.signal)
  for (const expected of [1, 1, 2]) {
    trouble(0)
    await clock.settle()
    expect(reopened.length).toBe(expected)
    await clock.advance(31_000)
  }
  expect((await shards.pull(one, null, { zstd: false })).kind).toBe('page')
  stopping.abort()
  await care
  shards.close()
  await store.close()
})

/** Resolves when a file was made anew. */
function healedLog() {
  const { promise: healed, resolve } = Promise.withResolvers<void>()
  const info = (message: string) => (message === 'shard file rebuilt' ? resolve() : undefined)
  return { log: { ...silentLogger, info }, healed }
}

/** Everything out of the log and into the file, where a disk could damage it. */
function settle(path: string): void {
  const db = openSqlite(path)
  db.run('PRAGMA wal_checkpoint(TRUNCATE)')
  db.close()
}

function flip(path: string, text: string): void {
  settle(path)
  const bytes = readFileSync(path)
  const at = bytes.indexOf(text)
  expect(at).toBeGreaterThan(0)
  bytes[at] = (bytes[at] ?? 0) ^ 1
  const file = openSync(path, 'r+')
  writeSync(file, bytes, at, 1, at)
  closeSync(file)
}
