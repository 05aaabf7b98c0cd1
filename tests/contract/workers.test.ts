// Worker processes: what ends one, what becomes of its jobs, and that nobody else is held up.
import { afterEach, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { JobKind } from '../../server/control/workers/lane.ts'
import { createWorkerPool, type WorkerPool } from '../../server/control/workers/pool.ts'
import { ownLaunch, startWorkerProcess, WORKER_LIMITS, type WorkerLaunch } from '../../server/control/workers/worker-process.ts'
import { childrenOf } from '../../server/render/sandbox/tree-size.ts'
import type { Handlers } from '../../server/worker/channel/channel.ts'
import type { Greeting } from '../../server/worker/channel/messages.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { naming } from '../support/naming.ts'

setDefaultTimeout(60_000)
const MIB = 1024 * 1024
const pools: WorkerPool[] = []
afterEach(async () => {
  for (const pool of pools.splice(0)) await pool.close()
})

const ODD: WorkerLaunch = { command: [process.execPath, join(import.meta.dir, '../support/odd-worker.ts')], env: {}, cwd: '/' }
const GREETING = {} as Greeting

function poolOf({
  launch = ODD,
  limits = {} as { silentMs?: number; memoryBytes?: number },
  idleBytesMax = 1024 * MIB,
  count = 1,
  clock = systemClock,
} = {}) {
  const started: string[] = []
  const deps = { clock: systemClock, log: silentLogger, limits: { ...WORKER_LIMITS, silentMs: 1_500, memoryBytes: 700 * MIB, ...limits } }
  const pool = createWorkerPool({
    start: (name) => {
      started.push(name)
      return startWorkerProcess(launch, GREETING, deps)
    },
    ...{ count, idleBytesMax, clock, log: silentLogger },
  })
  pools.push(pool)
  const key = (project: string) => ({ uid: 'u', project, place: { kind: 'helm' as const, spec: { url: 'https://charts.example' } } })
  const has = (
    what: string,
    { project = 'p', subject = what, kind = 'read' as JobKind, signal = undefined as AbortSignal | undefined } = {},
  ) =>
    pool
      .run({
        method: 'source.has',
        order: { key: key(project), revision: what },
        kind,
        project,
        subject,
        ...(signal === undefined ? {} : { signal }),
      })
      .then(({ value }) => (value.has ? 'answered' : 'no'))
      .catch((error: unknown) => (error instanceof AppError ? error.code : String(error)))
  const head = (serve: Handlers) =>
    pool
      .run({ method: 'source.head', order: key('p'), kind: 'fetch', project: 'p', subject: 'apps', serve })
      .then(({ value }) => value.revision)
  const at = { key: key('p'), revision: 'r', pick: { path: '.' } }
  const pid = async (project = 'p') =>
    Number((await pool.run({ method: 'source.open', order: at, kind: 'read', project, subject: 'apps' })).value.version)
  const environment = async () =>
    (await pool.run({ method: 'source.ids', order: { at, paths: [] }, kind: 'read', project: 'p', subject: 'apps' })).value.ids
  return { pool, has, head, pid, environment, started }
}

test.each(['hang', 'grow', 'end', 'babble'])(
  'WK2 a job that makes its worker %s fails with worker_stopped; those beside it do not',
  async (what) => {
    const { has, pid, started } = poolOf()
    const before = await pid()
    const beside = has('wait', { project: 'other' })
    expect(await has(what)).toBe('worker_stopped')
    expect(await beside).toBe('answered')
    expect(await has('answer')).toBe('answered')
    expect(await pid()).not.toBe(before)
    expect(started.slice(0, 2)).toEqual(['0', 'alone-0'])
  },
)

test('WK10 a job past its deadline fails, and its worker is stopped when the job goes on', async () => {
  const clock = { ...systemClock, sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / 600, signal) }
  const { pool, pid } = poolOf({ clock })
  const before = await pid()
  const at = { key: { uid: 'u', project: 'p', place: { kind: 'helm' as const, spec: { url: 'https://charts.example' } } } }
  const late = pool.run({ method: 'source.has', order: { ...at, revision: 'ignore' }, kind: 'read', project: 'p', subject: 'apps' })
  const error = await late.catch((thrown: unknown) => thrown)
  expect(error).toMatchObject({ code: 'worker_stopped', data: { detail: naming('apps:', '120 s') } })
  while ((await pid()) === before) await Bun.sleep(5)
})

test('WK10 a project whose job runs alone and takes long delays no other project that needs a worker alone', async () => {
  const { has } = poolOf()
  await has('end', { subject: 'apps' })
  void has('ignore', { subject: 'apps', kind: 'fetch' })
  expect(await has('end', { project: 'other' })).toBe('worker_stopped')
})

test('WK9 the processor time of a worker is what the kernel counted', async () => {
  const worker = await startWorkerProcess(ODD, GREETING, {
    clock: systemClock,
    log: silentLogger,
    limits: { ...WORKER_LIMITS, memoryBytes: MIB * 700 },
  })
  const spentMs = async (what: string) => {
    const beforeMs = worker.processorMs() ?? 0
    await worker.call('source.has', { revision: what }, {})
    return (worker.processorMs() ?? 0) - beforeMs
  }
  const [waitMs, workMs] = [await spentMs('wait'), await spentMs('work')]
  await worker.close()
  expect(waitMs).toBeLessThan(100)
  expect(workMs).toBeWithin(280, 500)
})

test('WK2 what stopped its worker is alone from then on, and the shared worker stays', async () => {
  const { has, pid } = poolOf()
  await has('end')
  const before = await pid()
  expect(await has('end')).toBe('worker_stopped')
  expect(await pid()).toBe(before)
})

test('WK2 the third of a project takes the whole project apart', async () => {
  const { has, pid } = poolOf()
  for (const subject of ['a', 'b', 'c']) await has('end', { subject })
  const before = await pid('other')
  expect(await has('end', { subject: 'd' })).toBe('worker_stopped')
  expect(await pid('other')).toBe(before)
})

test('WK3 what a worker started ends with it', async () => {
  const { has, pid } = poolOf()
  const worker = await pid()
  const stopped = has('child')
  let children: number[] = []
  while (children.length === 0) {
    children = childrenOf(worker)
    await Bun.sleep(5)
  }
  expect(await stopped).toBe('worker_stopped')
  expect(children.filter((child) => isAlive(child))).toEqual([])
})

test('WK3 a worker that hangs ends with a server that was killed', async () => {
  const parent = Bun.spawn([process.execPath, join(import.meta.dir, '../support/worker-parent.ts')], { stdout: 'pipe' })
  const { value } = await parent.stdout.getReader().read()
  const worker = Number(Buffer.from(value ?? []).toString())
  expect(isAlive(worker)).toBe(true)
  parent.kill('SIGKILL')
  while (isAlive(worker)) await Bun.sleep(5)
})

test('WK4 a worker that holds much is replaced when it is idle', async () => {
  const { pid } = poolOf({ idleBytesMax: 1 })
  expect(await pid()).not.toBe(await pid())
})

test('WK5 a worker asks for what its job needs, and for nothing after it', async () => {
  const { head } = poolOf()
  expect(await head({ credentials: async () => ({ value: { token: 't' } }) })).toBe('{"token":"t"}')
  await expect(head({})).rejects.toThrow('no method credentials')
})

test('WK5 the environment of the server is not the worker’s', async () => {
  const env = { PATH: process.env['PATH'], PGPASSWORD: 'p', SKERRY_STORE: 's', BUN_OPTIONS: '--preload x', AWS_SECRET_ACCESS_KEY: 'a' }
  const { env: passed } = ownLaunch(env, '/')
  expect(Object.keys(passed)).toEqual(['PATH'])
  const { environment } = poolOf({ launch: { ...ODD, env: passed } })
  expect((await environment()).filter((name) => typeof name === 'string' && Object.hasOwn(env, name))).toEqual(['PATH'])
})

test('WK1 a worker that cannot be started is told of, and tried again for the next job', async () => {
  const { has, started } = poolOf({ launch: { ...ODD, command: [process.execPath, '-e', 'process.exit(7)'] } })
  expect([await has('answer'), await has('answer'), started.length]).toEqual(['unavailable', 'unavailable', 2])
})

test('WK1 a job that nobody waits for any more is not waited for', async () => {
  const { has, pid } = poolOf()
  await pid()
  const gone = new AbortController()
  const asked = has('wait', { signal: gone.signal })
  gone.abort(new AppError('unavailable'))
  expect(await asked).toBe('unavailable')
})

test('WK1 this program starts itself as a worker, which refuses another build', async () => {
  const deps = { clock: systemClock, log: silentLogger, limits: { ...WORKER_LIMITS, memoryBytes: 700 * MIB } }
  const refused = startWorkerProcess(ownLaunch(process.env, '/'), { version: 1, build: 'another' } as Greeting, deps)
  await expect(refused).rejects.toThrow('control has another')
})

function isAlive(pid: number): boolean {
  // One that has ended may wait for whoever adopted it to notice.
  return existsSync(`/proc/${pid}/stat`) && !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
}
