// The Worker of fleet queries from the server's side: one at a time, bounded, replaced when it dies or hangs; and the
// real one on a file.
import { afterEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { fillSqlite } from '../../scripts/benchmarks/store-fleet.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import type { FleetQuestion } from '../../server/store/queries/fleet-queries.ts'
import {
  QUERIES_WAITING_MAX,
  QUERY_MS_MAX,
  type QueryAnswer,
  type QueryRequest,
  WorkerQueries,
} from '../../server/store/queries/worker-queries.ts'
import type { Store } from '../../server/store/store.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { naming } from '../support/naming.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const question: FleetQuestion = { kind: 'objects', query: { sort: 'cluster', limit: 10 } }
const named = (name: string): FleetQuestion => ({ kind: 'objects', query: { sort: 'cluster', limit: 10, name } })

/** Answers when it is told to. */
class FakeWorker extends EventTarget {
  onmessage: ((event: { data: QueryAnswer }) => void) | null = null
  onerror: ((event: { message: string; preventDefault(): void }) => void) | null = null
  readonly asked: QueryRequest[] = []
  isEnded = false

  postMessage(request: QueryRequest): void {
    this.asked.push(request)
  }
  terminate(): void {
    this.isEnded = true
  }
  answer(name: string): void {
    this.onmessage?.({ data: { kind: 'answered', page: { items: [name], next: null } as never } })
  }
}

function setUp() {
  const workers: FakeWorker[] = []
  const time = createVirtualClock(1_000_000)
  const queries = new WorkerQueries({
    ...{ path: '/nowhere', clock: time, random: seededRandom(1) },
    startWorker: () => {
      const worker = new FakeWorker()
      workers.push(worker)
      return worker as unknown as Worker
    },
  })
  return { workers, queries, time }
}
const failure = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'answered',
    (error: unknown) => error,
  )
const code = async (work: Promise<unknown>) => {
  const error = await failure(work)
  return error instanceof AppError ? error.code : error
}

test('QY4 one question at a time, in their order; the queue is bounded', async () => {
  const { workers, queries } = setUp()
  const first = queries.answer(named('a'))
  const others = Array.from({ length: QUERIES_WAITING_MAX }, (_, n) => queries.answer(named(`b${n}`)))
  const tooMany = await failure(queries.answer(named('c')))
  expect(tooMany).toMatchObject({ code: 'unavailable', retryAfterMs: expect.any(Number) })
  const [worker] = workers
  expect(worker?.asked).toHaveLength(1)
  worker?.answer('a')
  expect(await first).toEqual({ items: ['a'], next: null } as never)
  expect(worker?.asked.at(-1)?.question).toEqual(named('b0'))
  expect(workers).toHaveLength(1)
  const ends = others.map(code)
  await queries.close()
  expect(await Promise.all(ends)).toEqual(others.map(() => 'unavailable'))
  expect(worker?.isEnded).toBe(true)
  expect(await code(queries.answer(question))).toBe('unavailable')
})

test('QY4 a question that takes too long is given up with its Worker, and what that one says later is nobody’s answer', async () => {
  const { workers, queries, time } = setUp()
  const slow = code(queries.answer(named('slow')))
  const next = queries.answer(named('next'))
  await time.advance(QUERY_MS_MAX - 1)
  expect(workers).toHaveLength(1)
  await time.advance(1)
  expect(await slow).toBe('unavailable')
  const [dead, alive] = workers
  expect([dead?.isEnded, alive?.asked.map(({ question }) => question)]).toEqual([true, [named('next')]])
  dead?.answer('slow')
  alive?.answer('next')
  expect(await next).toEqual({ items: ['next'], next: null } as never)
  await queries.close()
})

test('QY4 a Worker that dies fails the question that it was at, and the next one gets another', async () => {
  const { workers, queries } = setUp()
  const first = code(queries.answer(named('a')))
  const second = queries.answer(named('b'))
  workers[0]?.onerror?.({ message: 'out of memory', preventDefault: () => {} })
  expect(await first).toBe('unavailable')
  workers[1]?.answer('b')
  expect(await second).toEqual({ items: ['b'], next: null } as never)
  const third = code(queries.answer(named('c')))
  workers[1]?.dispatchEvent(new Event('close'))
  expect(await third).toBe('unavailable')
  await queries.close()
})

test('QY4 nobody is worked for who went', async () => {
  const { workers, queries } = setUp()
  const first = queries.answer(named('a'))
  const gone = new AbortController()
  const second = code(queries.answer(named('b'), gone.signal))
  const third = queries.answer(named('c'))
  gone.abort()
  expect(await second).toBe('unavailable')
  expect(await code(queries.answer(named('d'), gone.signal))).toBe('unavailable')
  workers[0]?.answer('a')
  await first
  expect(workers[0]?.asked.map(({ question }) => question)).toEqual([named('a'), named('c')])
  workers[0]?.answer('c')
  await third
  await queries.close()
})

test('QY4 an answer with more than a page holds is none', async () => {
  const { workers, queries } = setUp()
  const asked = failure(queries.answer(question))
  workers[0]?.onmessage?.({ data: { kind: 'answered', page: { items: Array.from({ length: 501 }, () => 'x'), next: null } as never } })
  expect(await asked).toMatchObject({ message: naming('more answers') })
  await queries.close()
})

let store: Store | null = null
afterEach(async () => {
  await store?.close()
  store = null
})

test('QY4 QY2 the real Worker answers from the file, sees what was committed, and a list goes on after the server was started anew', async () => {
  const path = join(tempDir(), 'fleet.sqlite')
  await fillSqlite(path, { clusters: 8, objects: 40, nowMs: 1_790_000_000_000 })
  const open = async () => openSqliteStore(path, { clock: systemClock, random: seededRandom(1) })
  store = await open()
  const first = await store.queries.answer({ kind: 'objects', query: { sort: 'cluster', limit: 100 } })
  expect(first.items).toHaveLength(100)
  const keysOf = ({ items }: typeof first) => items.map(({ cluster, ref }) => `${cluster.name} ${ref.kind} ${ref.namespace}/${ref.name}`)
  await store.close()
  store = await open()
  const all = new Set(keysOf(first))
  for (let after = first.next; after !== null; ) {
    const page = await store.queries.answer({ kind: 'objects', query: { sort: 'cluster', limit: 100, after } })
    for (const key of keysOf(page)) all.add(key)
    after = page.next
  }
  expect(all.size).toBe(320)
  const [cluster] = await store.listClusters()
  if (cluster === undefined) throw new Error('no cluster')
  const doc = { sync: 'OutOfSync', health: 'Missing', reason: 'Brand-New', message: 'never seen before', sinceMs: 5 }
  const found = () =>
    store?.queries.answer({ kind: 'objects', query: { sort: 'newest', limit: 10, words: ['never', 'brand-new', 'seen', 'fresh'] } })
  expect((await found())?.items).toEqual([])
  await store.upsertStatus(cluster.clusterId, [{ kind: 'object', key: 'shop/fresh//ConfigMap/x/fresh', rev: 2 ** 33, doc }], {
    complete: false,
    nowMs: 1,
  })
  expect((await found())?.items).toMatchObject([
    { cluster: { name: cluster.name }, id: { project: 'shop', service: 'fresh' }, status: doc },
  ])
  await store.deleteCluster(cluster.name)
  expect((await found())?.items).toEqual([])
})
