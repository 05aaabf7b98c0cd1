import { expect, test } from 'bun:test'
import {
  BUSY_MS,
  createMemoryRelease,
  RELEASE_EVERY_MS,
  releaseOften,
  WORK_MS,
  WORK_PER_COLLECTION,
} from '../../agent/cli/memory-release.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

test('memory is given back when there was work, and collecting is none', () => {
  let cpuMs = 0
  const done: string[] = []
  const release = createMemoryRelease({
    cpuMs: () => cpuMs,
    collect: () => {
      done.push('collect')
      cpuMs += 2 * WORK_MS
    },
    dropCode: () => void done.push('drop'),
  })
  release()
  cpuMs = WORK_MS - 1
  release()
  expect(done).toEqual([])
  cpuMs = WORK_MS
  release()
  release()
  expect(done).toEqual(['collect', 'drop'])
  cpuMs += WORK_MS
  release()
  expect(done).toHaveLength(4)
})

test('a busy process collects in proportion to what that costs, and at once when it comes to rest', () => {
  const costMs = 50
  let [cpuMs, collections] = [0, 0]
  const collect = () => {
    collections += 1
    cpuMs += costMs
  }
  const release = createMemoryRelease({ cpuMs: () => cpuMs, collect, dropCode: () => {} })
  const work = (ms: number) => {
    cpuMs += ms
    release()
    return collections
  }
  expect(work(BUSY_MS + 1)).toBe(1)
  expect(work(BUSY_MS + 1)).toBe(1)
  expect(work(WORK_PER_COLLECTION * costMs)).toBe(2)
  expect([work(BUSY_MS + 1), work(WORK_MS)]).toEqual([2, 3])
})

test('steady small work is looked at every few seconds, until the end', async () => {
  const clock = createVirtualClock()
  const ended = new AbortController()
  let looks = 0
  const done = releaseOften(() => void looks++, clock, ended.signal)
  await clock.advance(3 * RELEASE_EVERY_MS)
  expect(looks).toBe(3)
  ended.abort()
  await done
  await clock.advance(RELEASE_EVERY_MS)
  expect(looks).toBe(3)
})
