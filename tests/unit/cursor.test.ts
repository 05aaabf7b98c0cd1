import { expect, test } from 'bun:test'
import { cursorText, parseCursor, positionSchema } from '../../shared/crdt/position.ts'

const ID = '0123456789abcdef0123456789abcdef'
const HASH = 'f'.repeat(32)

test.each([
  [`${ID}.1.0.${HASH}`, true],
  [`${ID}.1.9007199254740991.${HASH}`, true],
  [`${ID}.1.9007199254740992.${HASH}`, false],
  [`${ID}.9999999999999999.1.${HASH}`, false],
  [`${ID}.1.-1.${HASH}`, false],
  [`${ID}.1.1e3.${HASH}`, false],
  [`${ID}.1..${HASH}`, false],
  [`${ID}.1.1.${HASH}.1`, false],
  [`${ID}.1.1.${HASH}\n`, false],
  [`${ID.toUpperCase()}.1.1.${HASH}`, false],
  [`${ID}0.1.1.${HASH}`, false],
  ['', false],
])('CU1 the text %j is a cursor: %p', (text, isCursor) => {
  const position = parseCursor(text)
  expect(position !== null).toBe(isCursor)
  if (position === null) return
  expect(positionSchema.parse(position)).toEqual(position)
  expect(cursorText(position)).toBe(text)
})
