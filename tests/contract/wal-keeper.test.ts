// The log of the fleet store's file stays short while somebody always reads, and while somebody reads for long it is
// only not begun anew.
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test'
import { statSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { keepWalShort, WAL_LONG_BYTES, type WalAnswer } from '../../server/store/engines/wal-keeper.ts'
import type { Store } from '../../server/store/store.ts'
import { type Clock, systemClock } from '../../shared/runtime/clock.ts'
import { type Logger, silentLogger } from '../../shared/runtime/logger.ts'
import { SQLITE } from '../support/stores.ts'

setDefaultTimeout(60_000)

const stops: Array<() => Promise<unknown>> = []
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop()
})

async function readFor(path: string, ms: number): Promise<() => Promise<unknown>> {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, '../support/read-without-end.ts'), path, String(ms)], { stdout: 'pipe' })
  const stop = () => {
    child.kill('SIGKILL')
    return child.exited
  }
  stops.push(stop)
  await child.stdout.getReader().read()
  return stop
}

/** Two megabytes of log. */
const writeSome = (store: Store) => {
  const event = {
    atMs: 1,
    type: 'Normal' as const,
    reason: 'R',
    message: 'x'.repeat(4_000),
    cluster: null,
    project: null,
    service: null,
    object: null,
  }
  return store.appendEvents(Array.from({ length: 500 }, () => event))
}

async function open(log: Logger = silentLogger) {
  const { at, open } = await SQLITE.place()
  const store = await open()
  const stop = new AbortController()
  const attending = store.upkeep.attend(log, stop.signal)
  stops.push(async () => {
    stop.abort()
    await attending
    await store.close()
  })
  await writeSome(store)
  return { at, store, walBytes: () => statSync(`${at}-wal`).size }
}

test('UK5 with one read after the other the log is begun anew again and again', async () => {
  const { at, store, walBytes } = await open()
  await readFor(at, 60)
  await readFor(at, 45)
  let longest = 0
  let shortened = 0
  for (let before = 0, round = 0; round < 120; round++) {
    await writeSome(store)
    await systemClock.sleep(60)
    const bytes = walBytes()
    longest = Math.max(longest, bytes)
    if (bytes < before) shortened += 1
    before = bytes
  }
  expect(longest).toBeLessThan(4 * WAL_LONG_BYTES) // of 240 MiB that were written
  expect(shortened).toBeGreaterThanOrEqual(2)
})

test('UK5 a read that is long lets writes go on, and after it the log is short again', async () => {
  const { at, store, walBytes } = await open()
  const end = await readFor(at, 600_000)
  const slowest: number[] = []
  while (walBytes() < 1.5 * WAL_LONG_BYTES) {
    const startMs = performance.now()
    await writeSome(store)
    slowest.push(performance.now() - startMs)
    await systemClock.sleep(10)
  }
  expect(Math.max(...slowest)).toBeLessThan(5_000)
  await end()
  const deadline = Date.now() + 30_000
  while (walBytes() >= WAL_LONG_BYTES && Date.now() < deadline) await systemClock.sleep(50)
  expect(walBytes()).toBeLessThan(WAL_LONG_BYTES)
  await writeSome(store)
})

test('UK5 a Worker that does not work is told once and started anew', async () => {
  const connections = await (await SQLITE.place()).connect()
  const { writer } = connections
  const path = (await sql<{ file: string }>`select file from pragma_database_list`.execute(writer)).rows[0]?.file ?? ''
  await sql`pragma wal_autocheckpoint = 0`.execute(writer)
  await sql`create table much (bytes blob)`.execute(writer)
  for (let i = 0; i < 33; i++) await sql`insert into much values (zeroblob(1048576))`.execute(writer)
  const stop = new AbortController()
  const told: string[] = []
  let sleeps = 0
  const clock: Clock = {
    ...systemClock,
    sleep: async () => {
      sleeps += 1
      if (sleeps > 6) stop.abort()
    },
  }
  const broken = {
    onmessage: (_: { data: WalAnswer }) => {},
    postMessage: () => broken.onmessage({ data: { done: false, error: 'broken' } }),
    addEventListener: () => {},
    terminate: () => void told.push('ended'),
  }
  const log = { ...silentLogger, warn: (message: string) => void told.push(message) }
  await keepWalShort({ path, writer, clock, log, startWorker: () => broken as unknown as Worker }, stop.signal)
  expect(told).toEqual(['the log of the fleet store cannot be shortened', 'ended', 'ended'])
  await connections.close()
})
