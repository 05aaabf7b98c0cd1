import { describe, expect, test } from 'bun:test'
import { DueQueue } from '../../server/ingest/due-queue.ts'
import { KeyedQueue, type QueueGroups, type QueueOptions } from '../../server/ingest/keyed-queue.ts'
import { publishRank } from '../../server/ingest/publish-order.ts'
import type { Clock } from '../../shared/runtime/clock.ts'

/** A queue whose runs end by hand. */
function byHand(concurrency: number, groups: QueueGroups<string> | null = null, share: QueueOptions<string>['share'] | null = null) {
  const running: Array<{ key: string; end: (error?: Error) => void }> = []
  const begun: string[] = []
  const act = (key: string) => {
    begun.push(key)
    return new Promise<void>((resolve, reject) => running.push({ key, end: (error) => (error === undefined ? resolve() : reject(error)) }))
  }
  const queue = new KeyedQueue<string>(concurrency, act, { ...(groups === null ? {} : { groups }), ...(share === null ? {} : { share }) })
  const end = async (key: string, error?: Error) => {
    const index = running.findIndex((run) => run.key === key)
    running.splice(index, 1)[0]?.end(error)
    await Promise.resolve().then(() => {})
    for (let turn = 0; turn < 10; turn++) await Promise.resolve()
  }
  return { queue, begun, end }
}
const turns = async () => {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
}

describe('keyed queue', () => {
  test('IN13 calls during a run share one further run, which sees what they changed', async () => {
    const { queue, begun, end } = byHand(2)
    const first = queue.run('a')
    await turns()
    const [second, third] = [queue.run('a'), queue.run('a')]
    expect(begun).toEqual(['a'])
    expect(third).toBe(second)
    await end('a')
    await first
    expect(begun).toEqual(['a', 'a'])
    await end('a')
    await second
    await queue.idle()
  })
  test('IN13 calls before a run begins share it', async () => {
    const { queue, begun, end } = byHand(1)
    queue.run('a')
    await turns()
    expect(queue.run('b')).toBe(queue.run('b'))
    await end('a')
    await end('b')
    expect(begun).toEqual(['a', 'b'])
  })
  test('IN13 keys run side by side up to the limit', async () => {
    const { queue, begun, end } = byHand(2)
    for (const key of ['a', 'b', 'c']) queue.run(key)
    await turns()
    expect(begun).toEqual(['a', 'b'])
    await end('b')
    expect(begun).toEqual(['a', 'b', 'c'])
  })
  test('IN13 a failure reaches its caller and stops no other', async () => {
    const { queue, begun, end } = byHand(1)
    const failing = queue.run('a').catch((error: Error) => error.message)
    queue.run('b')
    await turns()
    await end('a', new Error('no'))
    expect(await failing).toBe('no')
    expect(begun).toEqual(['a', 'b'])
  })
  test('IN9a whose group became known while it waited counts there, and gives back what it took', async () => {
    const groups = new Map([['a', 'host']])
    const { queue, begun, end } = byHand(2, { of: (key) => groups.get(key) ?? null, mayStart: (group, running) => !running.has(group) })
    for (const key of ['a', 'x', 'b', 'c']) queue.run(key)
    await turns()
    groups.set('b', 'host').set('c', 'other')
    await end('x')
    expect(begun).toEqual(['a', 'x', 'c'])
    groups.delete('c')
    await end('c')
    groups.set('a', 'other')
    await end('a')
    expect(begun).toEqual(['a', 'x', 'c', 'b'])
    await end('b')
    await queue.idle()
  })
  test('IN9a whose group changed while it waited begins when it is asked for again, if it may now', async () => {
    const groups = new Map([
      ['a', 'host'],
      ['b', 'host'],
    ])
    const { queue, begun, end } = byHand(2, { of: (key) => groups.get(key) ?? null, mayStart: (group, running) => !running.has(group) })
    for (const key of ['a', 'b']) queue.run(key)
    await turns()
    groups.set('b', 'other')
    queue.run('b')
    await turns()
    expect(begun).toEqual(['a', 'b'])
    for (const key of ['a', 'b']) await end(key)
    await queue.idle()
  })
})

describe('projects share the workers of a queue', () => {
  const clock = { nowMs: 0, monotonicMs: () => clock.nowMs }
  const share = { projectOf: (key: string) => key.split('/')[0] ?? '', clock }
  const many = (project: string, count: number) => Array.from({ length: count }, (_, n) => `${project}/${n}`)

  test('IN16 a project with many keys delays another one by the run that ends next, and leaves it a worker from then on', async () => {
    const { queue, begun, end } = byHand(3, null, share)
    for (const key of many('large', 10)) queue.run(key)
    await turns()
    expect(begun).toEqual(many('large', 3))
    clock.nowMs += 1_000
    queue.run('small/0')
    await end('large/0')
    expect(begun.at(-1)).toBe('small/0')
    await end('small/0')
    expect(begun.slice(4)).toEqual([])
    queue.run('small/1')
    await turns()
    expect(begun.at(-1)).toBe('small/1')
  })

  test('IN16 a project that may ask has a worker before it asks', async () => {
    const { queue, begun } = byHand(3, null, share)
    queue.expect('small')
    for (const key of many('large', 10)) queue.run(key)
    await turns()
    expect(begun).toEqual(many('large', 2))
    queue.run('small/0')
    await turns()
    expect(begun.at(-1)).toBe('small/0')
  })

  test('IN16 the only project has all workers', async () => {
    const { queue, begun } = byHand(3, null, share)
    for (const key of many('one', 10)) queue.run(key)
    await turns()
    expect(begun).toHaveLength(3)
  })
})

describe('queue', () => {
  const clock = (): Clock & { at: number; slept: number[] } => {
    const self = {
      at: 0,
      slept: [] as number[],
      nowMs: () => self.at,
      monotonicMs: () => self.at,
      sleep: (ms: number, signal?: AbortSignal) => {
        self.slept.push(ms)
        return new Promise<void>((resolve) => signal?.addEventListener('abort', () => resolve(), { once: true }))
      },
    }
    return self
  }
  test('IN9 takes what is due, once', () => {
    const time = clock()
    const queue = new DueQueue<string>(time)
    queue.set('a', 10)
    queue.soonest('a', 20)
    queue.soonest('b', 11)
    time.at = 10
    expect([queue.takeDue(), queue.takeDue()]).toEqual([['a'], []])
  })
  test('IN9 sleeps until the next time and wakes for something new', async () => {
    const time = clock()
    const queue = new DueQueue<string>(time)
    queue.set('a', 500)
    const waiting = queue.wait(new AbortController().signal)
    expect(time.slept).toEqual([500])
    queue.soonest('b', 0)
    await waiting
    expect(queue.takeDue()).toEqual(['b'])
  })
  test('IN9 a clock that is set back delays what is waited for once more at most, however far that is', () => {
    const time = clock()
    const queue = new DueQueue<string>(time)
    const year = 365 * 86_400_000
    time.at = 10 * year
    queue.set('a', time.at + 500)
    queue.set('b', time.at + 900)
    time.at -= 9 * year // in the midst of a sleep, which is not told
    expect(queue.takeDue()).toEqual([])
    queue.set('c', time.at + 100)
    time.at += 500
    expect(queue.takeDue()).toEqual(['a', 'c'])
    time.at += 400
    expect(queue.takeDue()).toEqual(['b'])
  })
  test('IN9 what is entered after the clock was set back, before anybody looked, is due at its time or sooner', () => {
    const time = clock()
    const queue = new DueQueue<string>(time)
    time.at = 1_000_000
    queue.set('a', 1_000_500)
    time.at = 1_000
    expect(queue.soonest('a', 1_200)).toBe(1_200)
    queue.set('b', 1_300)
    expect(queue.takeDue()).toEqual([])
    time.at = 1_200
    expect(queue.takeDue()).toEqual(['a'])
    time.at = 1_300
    expect(queue.takeDue()).toEqual(['b'])
  })
})

test.each([
  [['a'], ['a'], 0],
  [[], ['a'], 0],
  [['a'], ['a', 'b'], 0],
  [['a', 'b'], ['a', 'c'], 1],
  [['a', 'b'], ['a'], 2],
  [['a'], [], 2],
] as const)('IN7a from %j to %j is rank %d', (held, wanted, rank) =>
  expect(publishRank(new Set<string>(held), new Map<string, string>(wanted.map((id) => [id, '']))) as number).toBe(rank),
)
