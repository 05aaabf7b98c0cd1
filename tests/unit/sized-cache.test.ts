// IN: what a Git source remembers between two passes.
import { expect, test } from 'bun:test'
import { SizedCache } from '../../server/sources/sized-cache.ts'

const held = (cache: SizedCache<number>, keys: string) => [...keys].filter((key) => cache.get(key) !== undefined).join('')

test.each([
  ['all that fits', [3, 3, 4], 'abc'],
  ['one more than fits, and the oldest goes', [3, 3, 4, 1], 'bcd'],
  ['a large one that takes the place of several', [3, 3, 4, 7], 'd'],
  ['one that is larger than all of it', [3, 3, 11], ''],
] as const)('what was read lately is bounded by its size: %s', (_, sizes, left) => {
  const cache = new SizedCache<number>(10, (size) => size)
  sizes.forEach((size, n) => void cache.set('abcd'[n] ?? '', size))
  expect(held(cache, 'abcd')).toBe(left)
})

test('what is read again is not the oldest, and is counted once', () => {
  const cache = new SizedCache<number>(10, (size) => size)
  for (const key of ['a', 'b', 'a']) cache.set(key, 4)
  cache.set('c', 4)
  expect(held(cache, 'abc')).toBe('ac')
})
