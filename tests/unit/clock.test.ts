import { expect, test } from 'bun:test'
import { systemClock } from '../../shared/runtime/clock.ts'

test.each([
  ['longer than a timer can be', 30 * 86_400_000],
  ['as long as a timer can be', 2 ** 31 - 1],
])('a sleep that is %s does not end at once', async (_, ms) => {
  const stop = new AbortController()
  let ended = false
  const sleeping = systemClock.sleep(ms, stop.signal).then(() => {
    ended = true
  })
  await systemClock.sleep(50)
  expect(ended).toBe(false)
  stop.abort()
  await sleeping
})
