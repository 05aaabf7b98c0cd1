import { expect, test } from 'bun:test'
import { createPace, SLICE_MS } from '../../shared/runtime/pace.ts'

test('long work gives others their turn after each slice, when told to, and when the clock was set back', async () => {
  let nowMs = 1_000
  const pace = createPace({ nowMs: () => nowMs })
  expect(pace()).toBeUndefined()
  nowMs += SLICE_MS - 1
  expect(pace()).toBeUndefined()
  nowMs += 1
  let others = false
  setImmediate(() => {
    others = true
  })
  await pace()
  expect([others, pace()]).toEqual([true, undefined])
  expect(pace(true)).toBeInstanceOf(Promise)
  nowMs -= 500
  expect(pace()).toBeInstanceOf(Promise)
})
