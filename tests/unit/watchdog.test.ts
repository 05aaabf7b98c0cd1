// OB7: work that does not end and a blocked event loop are told in /readyz of server and agent.
import { afterEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { serveLocalApi, socketPath } from '../../agent/local-api.ts'
import { WorkQueue } from '../../agent/reconcile/work-queue.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { createWatchdog } from '../../shared/runtime/watchdog.ts'
import { createTestAdmin } from '../support/admin-app.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const undo: Array<() => unknown> = []
afterEach(async () => {
  for (const step of undo.splice(0).reverse()) await step()
})

function watched() {
  const clock = createVirtualClock()
  const lines: string[] = []
  const log = { ...silentLogger, warn: (message: string) => void lines.push(message), error: (message: string) => void lines.push(message) }
  const stop = new AbortController()
  const watchdog = createWatchdog({ clock, log, stuckAfterMs: 60_000 })
  void watchdog.run(stop.signal)
  undo.push(() => stop.abort())
  return { clock, watchdog, lines }
}

test('OB7 a reconciliation that does not end is named once in the log and for as long as it lasts', async () => {
  const { clock, watchdog, lines } = watched()
  const signal = new AbortController().signal
  const { promise, resolve } = Promise.withResolvers<void>()
  const queue = new WorkQueue({
    clock,
    concurrency: 2,
    reserved: 1,
    signal,
    watch: watchdog.watch,
    mustYield: () => {},
    turn: () => promise,
  })
  queue.setOpen(true)
  queue.wake('default/web')
  await clock.advance(59_000)
  expect(watchdog.problems()).toEqual([])
  await clock.advance(180_000)
  expect(watchdog.problems()).toEqual(['reconciliation of default/web has not ended for 3 min'])
  expect(lines).toEqual(['work does not end'])
  expect(watchdog.stuckCount()).toBe(1)
  resolve()
  await clock.advance(0)
  expect(watchdog.problems()).toEqual([])
})

test('OB7 a loop that works for too long between two sleeps makes no progress; one that sleeps or ended is well', async () => {
  const { clock, watchdog } = watched()
  const own = watchdog.clockOf('store-retention')
  const slow = watchdog.clockOf('backups', 3_600_000)
  const stop = new AbortController()
  const hang = Promise.withResolvers<void>()
  const runs = async (of: typeof own, work: () => Promise<void>) => {
    while (!stop.signal.aborted) {
      await of.sleep(60_000, stop.signal)
      await work()
    }
  }
  const done = Promise.all([runs(own, () => hang.promise), runs(slow, () => hang.promise)])
  await clock.advance(110_000)
  expect(watchdog.problems()).toEqual([])
  await clock.advance(15_000)
  expect(watchdog.problems()).toEqual(['loop store-retention has made no progress for 1 min'])
  stop.abort()
  hang.resolve()
  await done
  // The loop begins anew.
  watchdog.clockOf('store-retention')
  await clock.advance(120_000)
  expect(watchdog.problems()).toEqual([])
})

test('OB7 a blocked event loop is told for five minutes', async () => {
  let nowMs = 0
  const log = { ...silentLogger, warn: (message: string) => void lines.push(message) }
  const lines: string[] = []
  const stop = new AbortController()
  const lateMs = [0, 3_000, 0]
  const sleep = async (ms: number) => {
    nowMs += ms + (lateMs.shift() ?? 0)
    if (lateMs.length === 0) stop.abort()
  }
  const watchdog = createWatchdog({ clock: { nowMs: () => nowMs, monotonicMs: () => nowMs, sleep }, log, stuckAfterMs: 60_000 })
  await watchdog.run(stop.signal)
  expect(watchdog.problems()).toEqual(['the event loop was blocked for 3 s'])
  expect(lines).toEqual(['the event loop was blocked'])
  nowMs += 300_000
  expect(watchdog.problems()).toEqual([])
})

test('OB7 AP30 /readyz of the server and of the agent name it, and their status stays', async () => {
  const problem = 'ingest of service/default/web has not ended for 16 min'
  const admin = await createTestAdmin({ stuck: () => [problem] })
  undo.push(() => admin.store.close())
  expect(await admin.call('GET', '/readyz')).toMatchObject({ status: 200, body: `ok\n${problem}` })
  // AP30: whoever has no credential, or one without the right, learns the number only.
  const { body } = await admin.call('POST', '/api/v1/tokens', { name: 'nobody', role: 'none' })
  for (const token of ['', (body as { token: string }).token]) {
    const answer = await admin.call('GET', '/readyz', undefined, { authorization: `Bearer ${token}` })
    expect([answer.status, answer.body]).toEqual([200, 'ok\n1 problem; a token that may read the server shows what'])
  }
  const folder = mkdtempSync(join(tmpdir(), 'skerry-watchdog-'))
  const report = () => ({ enforcement: { state: 'enforcing', message: '' } }) as never
  const local = serveLocalApi(folder, { report, order: () => ({ kind: 'refused', message: '' }), stuck: () => [problem] })
  undo.push(
    () => rmSync(folder, { recursive: true }),
    () => local.stop(),
  )
  const ready = await fetch('http://agent/readyz', { unix: socketPath(folder) })
  expect([ready.status, await ready.text()]).toEqual([200, `enforcing\n${problem}\n`])
})
