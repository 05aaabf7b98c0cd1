// The channel between control and a worker, and what control makes of a worker that says whatever it likes.
import { expect, test } from 'bun:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type AnyJob, Lane } from '../../server/control/workers/lane.ts'
import type { JobAnswer } from '../../server/control/workers/pool.ts'
import { createRemoteRenders, type RemoteRendersDeps } from '../../server/control/workers/remote-renders.ts'
import type { WorkerHandle } from '../../server/control/workers/worker-process.ts'
import type { RenderRequest } from '../../server/ingest/content-port.ts'
import { createRenderers } from '../../server/render/renderers.ts'
import type { Sources } from '../../server/sources/sources.ts'
import type { Reply } from '../../server/worker/channel/channel.ts'
import { type ByteStream, Channel, type Handlers } from '../../server/worker/channel/channel.ts'
import { encodeFrame, FrameReader, FrameTooLarge } from '../../server/worker/channel/frames.ts'
import type { RenderOrder } from '../../server/worker/channel/messages.ts'
import { dependenciesToLines, rowsToLines } from '../../server/worker/channel/render-lines.ts'
import { createRenderJobs } from '../../server/worker/render-jobs.ts'
import { setDigest } from '../../shared/kube/canonical.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { memoryTree } from '../support/render-job.ts'

const LIMITS = { headBytes: 200, jsonBytes: 1_000, dataBytes: 100_000 }
const bytes = (text: string) => new TextEncoder().encode(text)

/** Two ends; what one writes waits until the other reads it. */
function streams() {
  const pipe = () => new TransformStream<Uint8Array, Uint8Array>()
  const [there, back] = [pipe(), pipe()]
  const end = (from: typeof there, to: typeof back): ByteStream => {
    const writer = to.writable.getWriter()
    return { incoming: from.readable, write: (chunk) => writer.write(chunk), end: () => void writer.close().catch(() => {}) }
  }
  return [end(there, back), end(back, there)] as const
}

function channels(handlers: Handlers, { callsMax = 10 } = {}) {
  const [one, other] = streams()
  const control = new Channel({ stream: one, handlers: {}, limits: LIMITS, callsMax })
  const worker = new Channel({ stream: other, handlers, limits: LIMITS, callsMax })
  const running = Promise.all([control.run(), worker.run()])
  return { control, worker, running, other }
}
const turn = () => new Promise(setImmediate)
const messageOf = (asked: Promise<unknown>) => asked.then(() => 'answered').catch((error: Error) => error.message)

test('WK8 frames come out as they went in, however the stream is cut; one that is too large ends it', () => {
  const frames = [...encodeFrame('{"a":1}', '"ü"', bytes('data')), ...encodeFrame('{}')]
  const all = Buffer.concat(frames)
  for (const size of [1, 3, 7, all.byteLength]) {
    const reader = new FrameReader(LIMITS)
    const read = []
    for (let from = 0; from < all.byteLength; from += size) read.push(...reader.push(all.subarray(from, from + size)))
    expect(read.map(({ head, json, data }) => [head, json, Buffer.from(data).toString()])).toEqual([
      ['{"a":1}', '"ü"', 'data'],
      ['{}', '', ''],
    ])
  }
  const large = encodeFrame('{}', '', new Uint8Array(LIMITS.dataBytes + 1))[0] as Uint8Array
  expect(() => [...new FrameReader(LIMITS).push(large.subarray(0, 12))]).toThrow(FrameTooLarge)
})

test('WK5 calls are answered with values and bytes; what a job asks is answered by what was given with it', async () => {
  const { control } = channels({
    double: async (value, data, { ask }) => {
      const { value: more } = await ask('more', { of: value })
      return { value: [value, more], data: Buffer.concat([data, data]) }
    },
  })
  const { value, data } = await control.call('double', 2, { data: bytes('ab'), serve: { more: async (asked) => ({ value: asked }) } })
  expect([value, Buffer.from(data).toString()]).toEqual([[2, { of: 2 }], 'abab'])
  expect(await messageOf(control.call('double', 2))).toContain('no method more')
})

test('WK8 an AppError arrives as one, anything else as a text; a call that nobody answers fails', async () => {
  const { control } = channels({
    refuse: () =>
      Promise.reject(new AppError('source_refused', { detail: 'no', problems: [{ path: 'a', message: 'b' }], retryAfterMs: 5 })),
    break: () => Promise.reject(new TypeError('broken')),
  })
  const error = await control.call('refuse', null).catch((thrown: unknown) => thrown)
  expect(error).toBeInstanceOf(AppError)
  expect(error).toMatchObject({ code: 'source_refused', data: { detail: 'no', problems: [{ path: 'a', message: 'b' }], retryAfterMs: 5 } })
  expect(await messageOf(control.call('break', null))).toBe('broken')
  expect(await messageOf(control.call('constructor', null))).toContain('no method constructor')
})

test('WK1 a call that is given up is cancelled on the other side', async () => {
  const cancelled = Promise.withResolvers<void>()
  const { control } = channels({
    wait: (_, __, { signal }) => new Promise((_, reject) => signal.addEventListener('abort', () => reject(cancelled.resolve()))),
  })
  const giving = new AbortController()
  const asked = control.call('wait', null, { signal: giving.signal })
  await turn()
  giving.abort(new Error('given up'))
  expect(await messageOf(asked)).toBe('given up')
  await cancelled.promise
})

test('WK10 a cancelled call counts until the other side has ended it, and gets no more answers', async () => {
  const work = Promise.withResolvers<void>()
  const asking: unknown[] = []
  const { control } = channels({
    slow: async (_, __, { signal, ask }) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve))
      asking.push(await ask('more', 1).catch((error: unknown) => error))
      await work.promise
      return {}
    },
  })
  const giving = new AbortController()
  let isEnded = false
  const ended = () => {
    isEnded = true
  }
  const asked = control.call('slow', null, { signal: giving.signal, ended, serve: { more: async () => ({ value: 'secret' }) } })
  await turn()
  giving.abort(new Error('given up'))
  await messageOf(asked)
  for (let turns = 0; turns < 5; turns++) await turn()
  expect([isEnded, asking.includes('secret')]).toEqual([false, false])
  work.resolve()
  for (let turns = 0; turns < 5; turns++) await turn()
  expect(isEnded).toBe(true)
})

test.each([
  ['no JSON', encodeFrame('no')],
  ['another kind', encodeFrame('{"kind":"eval","id":1}')],
  ['an answer that is no JSON', encodeFrame('{"kind":"done","id":0}', 'no')],
  ['too much', encodeFrame('{"kind":"done","id":0}', `"${'x'.repeat(2_000)}"`)],
  ['more questions than are answered at once', [1, 2, 3].flatMap((id) => encodeFrame(`{"kind":"call","id":${id},"method":"m","of":0}`))],
])('WK8 %s ends the channel and what is open on it', async (_, frames) => {
  const { control, other, running } = channels({ wait: () => new Promise(() => {}) }, { callsMax: 2 })
  const asked = control.call('wait', null, { serve: { m: () => new Promise(() => {}) } })
  await turn()
  for (const frame of frames) void other.write(frame).catch(() => {})
  expect(await messageOf(asked)).not.toBe('answered')
  expect(await messageOf(control.call('wait', null))).not.toBe('answered')
  void running
})

test('WK8 whoever writes waits for whoever reads', async () => {
  const [one, other] = streams()
  const control = new Channel({ stream: one, handlers: {}, limits: LIMITS, callsMax: 1 })
  let isWritten = false
  const write = one.write.bind(one)
  one.write = async (chunk) => {
    await write(chunk)
    isWritten = true
  }
  void control.call('m', null).catch(() => {})
  for (let turns = 0; turns < 5; turns++) await turn()
  expect(isWritten).toBe(false)
  await (other.incoming as ReadableStream<Uint8Array>).getReader().read()
  for (let turns = 0; turns < 5; turns++) await turn()
  expect(isWritten).toBe(true)
})

const REQUEST = {
  id: { project: 'p', service: 's' },
  sources: [],
  settings: { config: { values: {} } },
  configs: new Map(),
} as unknown as RenderRequest
const ROWS = new Map([
  ['object/p/s/a', '{"a":1}'],
  ['object/p/s/b', '{}'],
])

function answerOf({
  rows = ROWS,
  digest = setDigest(ROWS),
  dependencies = dependenciesToLines([{ source: 0, path: 'a' }, ['cluster', 'name']]),
} = {}) {
  const value = {
    kind: 'rendered',
    digest,
    hooks: 0,
    warnings: [],
    dependenciesBytes: dependencies.byteLength,
    secret: false,
    late: false,
    tools: {},
  }
  const answer = { value, data: Buffer.concat([dependencies, rowsToLines(rows)]) } as JobAnswer<'render'>
  const renders = createRemoteRenders({
    workers: { run: async () => answer },
    clock: systemClock,
    macOf: String,
  } as unknown as RemoteRendersDeps)
  return renders.run(REQUEST)
}

test('WK8 rows and dependencies of a render come out as they went in', async () => {
  const { result, reads } = await answerOf()
  expect(result).toMatchObject({ kind: 'rendered', objects: ROWS, count: 2 })
  expect(reads).toMatchObject({ dependencies: [{ source: 0, path: 'a' }, ['cluster', 'name']], inputs: [['cluster', 'name']] })
})

test.each([
  ['of another service', { rows: new Map([['object/p/other/a', '{}']]) }],
  ['out of order', { rows: new Map([...ROWS].reverse()) }],
  ['of another digest', { digest: '0'.repeat(32) }],
  ['with an invalid dependency', { dependencies: bytes('{"cluster":1}\n') }],
  ['with an incomplete dependency', { dependencies: bytes('["cluster"]') }],
])('WK8 a render %s is not taken', async (_, change) => {
  await expect(answerOf(change)).rejects.toThrow()
})

test('WK7 a render past its bound is a failed render that says so', async () => {
  const tree = memoryTree({ 'a.yaml': `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata: { v: ${'x'.repeat(100)} }\n` })
  const sources = { open: () => ({ open: async () => ({ tree, root: '', version: 'v' }) }) } as unknown as Sources
  const sandbox = { run: () => Promise.reject(new Error('no')), version: async () => null }
  const order = {
    ...{ id: { project: 'p', service: 's' }, namespace: 'n', render: {}, cluster: null, configs: [] },
    sources: [{ label: 'a', at: {}, filesOnly: false }],
    settings: { config: { values: {}, secrets: [] }, helmValues: [], patches: [], leavesOut: false },
  } as unknown as RenderOrder
  const kindAt = async (rowsBytesMax: number) => {
    const jobs = createRenderJobs({ sources, sandbox, renderers: createRenderers(), rowsBytesMax })
    return ((await jobs.render(order, new AbortController().signal)).value as { kind: string }).kind
  }
  expect([await kindAt(100), await kindAt(1_000)]).toEqual(['failed', 'rendered'])
})

test('a lane holds no answer of a job that ended', async () => {
  const answers: Array<WeakRef<Uint8Array>> = []
  const worker: WorkerHandle = {
    async call(_method, _value, { ended }) {
      const data = new Uint8Array(100_000)
      answers.push(new WeakRef(data))
      await nextTurn()
      ended?.()
      return { value: { has: true }, data }
    },
    memoryBytes: () => 0,
    processorMs: () => 0,
    kill: () => {},
    close: async () => {},
    ended: new Promise(() => {}),
  }
  const lane = new Lane('0', { start: async () => worker, idleBytesMax: 1, clock: systemClock, log: silentLogger })
  const given = new AbortController()
  const run = async () => {
    const waiter = Promise.withResolvers<Reply>()
    const job = { method: 'tools.version', order: { program: 'helm' }, kind: 'read', project: '', subject: '' } as const
    await lane.run({ ...job, signal: given.signal } as AnyJob, 60_000, waiter)
    await waiter.promise
  }
  for (let n = 0; n < 50; n++) await run()
  await nextTurn()
  Bun.gc(true)
  await nextTurn()
  Bun.gc(true)
  expect(answers.filter((answer) => answer.deref() !== undefined).length).toBeLessThan(10)
})
