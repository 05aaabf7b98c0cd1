import { expect, test } from 'bun:test'
import { LARGE_READ_MS_MAX, LARGE_READS_MAX, type LargeRead, LargeReads, type WorkerAnswer } from '../../server/desired/large-reads.ts'
import { EMPTY_HASH } from '../../shared/crdt/row-hash.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

/** A Worker that does what it is told. */
class FakeWorker {
  onmessage: ((event: { data: WorkerAnswer }) => void) | null = null
  onerror: ((event: { message: string; preventDefault(): void }) => void) | null = null
  readonly asked: LargeRead[] = []
  terminated = false
  postMessage(request: LargeRead): void {
    this.asked.push(request)
  }
  terminate(): void {
    this.terminated = true
  }
  addEventListener(): void {}
  answer(): void {
    this.onmessage?.({ data: { kind: 'read', read: { kind: 'nothing_new' } } })
  }
  die(): void {
    this.onerror?.({ message: 'out of memory', preventDefault: () => {} })
  }
}

function start() {
  const workers: FakeWorker[] = []
  const told: string[] = []
  const clock = createVirtualClock()
  const reads = new LargeReads({
    clock,
    random: () => 0.5,
    log: { ...silentLogger, error: (message) => void told.push(message) },
    startWorker: () => {
      const worker = new FakeWorker()
      workers.push(worker)
      return worker as unknown as Worker
    },
  })
  const read = (clusterId: string) =>
    reads
      .read({ path: 'p', dbId: EMPTY_HASH, clusterId, ask: { kind: 'pull', cursor: null }, zstd: true })
      .then(({ kind }) => kind)
      .catch((error: unknown) => (error instanceof AppError ? error.code : String(error)))
  return { workers, told, clock, reads, read, last: () => workers.at(-1) as FakeWorker }
}

test('PL13 one request is with the Worker at a time, in order, and no Worker is there before the first', async () => {
  const { workers, read, last } = start()
  expect(workers).toHaveLength(0)
  const answers = ['a', 'b'].map(read)
  expect(last().asked.map(({ clusterId }) => clusterId)).toEqual(['a'])
  last().answer()
  expect(await answers[0]).toBe('nothing_new')
  expect(last().asked.map(({ clusterId }) => clusterId)).toEqual(['a', 'b'])
  last().answer()
  expect(await answers[1]).toBe('nothing_new')
  expect(workers).toHaveLength(1)
})

test('PL13 a Worker that dies fails the request it was at, is logged, and the next request gets another', async () => {
  const { workers, told, read, last } = start()
  const answers = ['a', 'b'].map(read)
  last().die()
  expect(await answers[0]).toContain('out of memory')
  expect([workers.length, workers[0]?.terminated, told.length]).toEqual([2, true, 1])
  last().answer()
  expect(await answers[1]).toBe('nothing_new')
})

test('PL13 a Worker that hangs is ended', async () => {
  const { clock, read, workers, last } = start()
  const answer = read('a')
  await clock.advance(LARGE_READ_MS_MAX)
  expect(await answer).toContain('did not answer')
  const next = read('b')
  last().answer()
  expect([await next, workers.length]).toEqual(['nothing_new', 2])
})

test('PL7 PL13 what a Worker says after its end is the answer to nobody’s question', async () => {
  const { clock, read, workers, last } = start()
  const [answer, next] = [read('a'), read('b')]
  await clock.advance(LARGE_READ_MS_MAX)
  expect(await answer).toContain('did not answer')
  const settled: string[] = []
  void next.then((kind) => settled.push(kind))
  workers[0]?.answer() // it was on its way when the Worker was ended: rows of the cluster before
  await clock.advance(1)
  expect(settled).toEqual([])
  last().answer()
  expect([await next, workers.length]).toEqual(['nothing_new', 2])
})

test('PL13 a Worker that cannot be started fails that read alone', async () => {
  let refuse = true
  const worker = new FakeWorker()
  const reads = new LargeReads({
    clock: createVirtualClock(),
    random: () => 0.5,
    log: silentLogger,
    startWorker: () => {
      if (refuse) throw new Error('no thread')
      return worker as unknown as Worker
    },
  })
  const read = (clusterId: string) =>
    reads.read({ path: 'p', dbId: EMPTY_HASH, clusterId, ask: { kind: 'pull', cursor: null }, zstd: true }).then(
      ({ kind }) => kind,
      (error: unknown) => String(error),
    )
  expect(await read('a')).toContain('no thread')
  refuse = false
  const next = read('b')
  worker.answer()
  expect(await next).toBe('nothing_new')
})

test('PL13 who comes when the queue is full is told to come back', async () => {
  const { read } = start()
  void read('at the Worker')
  for (let n = 0; n < LARGE_READS_MAX; n++) void read(`c${n}`)
  expect(await read('one more')).toBe('unavailable')
})

test('PL13 a cluster that asks again keeps its place in the queue, and only the newest of its requests is read', async () => {
  const { read, last } = start()
  const first = read('a')
  const [older, other] = [read('b'), read('c')]
  for (let n = 3; n <= LARGE_READS_MAX; n++) void read(`c${n}`)
  const [newer, again] = [read('b'), read('a')]
  expect(await older).toBe('too_many_requests')
  expect(await again).toBe('unavailable') // the first of its own is read already, and the queue is full
  for (const answer of [first, newer, other]) {
    last().answer()
    expect(await answer).toBe('nothing_new')
  }
  expect(
    last()
      .asked.map(({ clusterId }) => clusterId)
      .slice(0, 3),
  ).toEqual(['a', 'b', 'c'])
})

test('PL13 at the end nobody waits for ever', async () => {
  const { reads, read, last } = start()
  const answers = ['a', 'b'].map(read)
  reads.close()
  expect([await answers[0], await answers[1], await read('c'), last().terminated]).toEqual([...Array(3).fill('unavailable'), true])
})

test.each([
  ['throws', 'throw new Error("boom")'],
  ['rejects', 'return Promise.reject(new Error("boom"))'],
  ['ends its thread', 'process.exit(3)'],
])('PL13 a real Worker that %s takes nobody with it', async (_, body) => {
  const sources = [
    `self.onmessage = async () => { ${body} }`,
    'self.onmessage = () => postMessage({ kind: "read", read: { kind: "nothing_new" } })',
  ]
  const reads = new LargeReads({
    clock: createVirtualClock(),
    random: () => 0.5,
    log: silentLogger,
    startWorker: () => new Worker(URL.createObjectURL(new Blob([sources.shift() ?? '']))),
  })
  const read = () => reads.read({ path: 'p', dbId: EMPTY_HASH, clusterId: 'c', ask: { kind: 'pull', cursor: null }, zstd: true })
  await expect(read()).rejects.toThrow('worker stopped')
  expect(await read()).toEqual({ kind: 'nothing_new' })
  reads.close()
})
