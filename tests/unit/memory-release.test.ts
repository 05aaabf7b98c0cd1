import { expect, test } from 'bun:test'
import { createMemoryRelease, WORK_MS } from '../../agent/cli/memory-release.ts'

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
