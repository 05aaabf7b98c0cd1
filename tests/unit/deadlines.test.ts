import { expect, test } from 'bun:test'
import { Deadline, Deadlines } from '../../server/desired/deadlines.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

function start() {
  const clock = createVirtualClock()
  let wallMs = 0
  // The wall clock of this test can be set; sleeping goes on by itself.
  const deadlines = new Deadlines({ ...clock, nowMs: () => clock.nowMs() + wallMs })
  const fired: string[] = []
  const add = (name: string, afterMs: number) => {
    const deadline = new (class extends Deadline {
      override due() {
        fired.push(name)
      }
    })()
    deadlines.add(deadline, afterMs)
    return deadline
  }
  const setWall = (ms: number) => {
    wallMs = ms
  }
  return { clock, deadlines, fired, add, setWall }
}

test('each is due at its time, in order, and not before', async () => {
  const { clock, fired, add, deadlines } = start()
  add('b', 20)
  add('a', 10)
  add('c', 30)
  await clock.advance(9)
  expect(fired).toEqual([])
  await clock.advance(1)
  expect(fired).toEqual(['a'])
  await clock.advance(20)
  expect([fired, deadlines.size]).toEqual([['a', 'b', 'c'], 0])
})

test('one that is cancelled is never due, and leaves the others as they were', async () => {
  const random = seededRandom(7)
  const { clock, fired, add, deadlines } = start()
  const all = Array.from({ length: 500 }, (_, n) => ({ name: String(n), ms: 1 + Math.floor(random() * 1_000) })).map((one) => ({
    ...one,
    deadline: add(one.name, one.ms),
  }))
  const kept = all.filter(({ deadline }) => {
    const cancelled = random() < 0.5
    if (cancelled) deadlines.cancel(deadline)
    return !cancelled
  })
  await clock.advance(1_000)
  const msOf = new Map(all.map(({ name, ms }) => [name, ms]))
  expect(fired.map((name) => msOf.get(name))).toEqual(kept.map(({ ms }) => ms).sort((a, b) => a - b))
  expect([...fired].sort()).toEqual(kept.map(({ name }) => name).sort())
})

test.each([-31_536_000_000, -5])('a wall clock that is set by %d ms delays nothing', async (jump) => {
  const { clock, fired, add, setWall } = start()
  add('before', 50)
  setWall(jump)
  add('after', 60)
  await clock.advance(50)
  expect(fired).toContain('before')
  await clock.advance(15)
  expect(fired).toEqual(['before', 'after'])
})

test('nothing is due after close', async () => {
  const { clock, fired, add, deadlines } = start()
  add('a', 10)
  deadlines.close()
  await clock.advance(100)
  expect(fired).toEqual([])
})
