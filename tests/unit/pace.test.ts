import { expect, test } from 'bun:test'
import { atOnce, createPace, inSteps, type Pace, paced, SLICE_MS, type Steps } from '../../shared/runtime/pace.ts'

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

test('steps give the same result at once and paced, with a pause between pieces', async () => {
  function* sum(): Steps<number> {
    let total = 0
    yield* inSteps(
      Array.from({ length: 1_000 }, (_, n) => n),
      (n) => {
        total += n
      },
    )
    return total
  }
  let pauses = 0
  const pace: Pace = () => {
    pauses += 1
    return undefined
  }
  expect([atOnce(sum()), await paced(sum(), pace), pauses]).toEqual([499_500, 499_500, 4])
})
