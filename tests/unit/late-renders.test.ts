// When renders that ran out of time are tried again.
import { expect, test } from 'bun:test'
import { LateRenders } from '../../server/ingest/render/late-renders.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const of = (...keys: string[]) => new Set(keys)
const NONE = of()

test('IC14 what is late while another one waits for its time takes nothing from it: each has its own', () => {
  const lates = new LateRenders()
  lates.note('shop', of('a'), NONE, 0)
  lates.note('shop', of('b'), NONE, 10 * SECOND)
  lates.note('shop', NONE, NONE, 20 * SECOND)
  expect([lates.againMs('shop'), lates.due('shop', MINUTE - 1)]).toEqual([MINUTE, NONE])
  expect(lates.due('shop', MINUTE)).toEqual(of('a'))
  lates.note('shop', NONE, of('a'), MINUTE)
  expect([lates.againMs('shop'), lates.due('shop', 2 * MINUTE)]).toEqual([70 * SECOND, of('b')])
  lates.note('shop', NONE, of('b'), 2 * MINUTE)
  expect(lates.againMs('shop')).toBeNull()
})

test('IC14 what is late again waits twice as long, an hour at most, also if it has another key now', () => {
  const lates = new LateRenders()
  let nowMs = 0
  lates.note('shop', of('0'), NONE, nowMs)
  const waits: number[] = []
  for (let n = 1; n < 9; n++) {
    const againMs = lates.againMs('shop') ?? 0
    waits.push((againMs - nowMs) / MINUTE)
    nowMs = againMs
    lates.note('shop', of(n % 3 === 0 ? `${n}` : '0', 'known'), lates.due('shop', nowMs), nowMs)
  }
  expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60])
})

test('IC14 what never was late, and what is forgotten, has no time', () => {
  const lates = new LateRenders()
  lates.note('shop', NONE, NONE, 0)
  expect(lates.againMs('shop')).toBeNull()
  lates.note('shop', of('a'), NONE, 0)
  lates.forget('shop')
  expect([lates.againMs('shop'), lates.due('shop', MINUTE)]).toEqual([null, NONE])
})
