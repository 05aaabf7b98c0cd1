// Messages are asserted by the values in them, so that their wording can change without a test.
import { expect } from 'bun:test'

const escaped = (text: string) => text.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
/** At a letter or digit a value begins or ends a word: 7 is not in 17. */
const whole = (value: string) => `${/^\w/.test(value) ? '\\b' : ''}${escaped(value)}${/\w$/.test(value) ? '\\b' : ''}`

/** Matches a text that has every one of these names, paths and numbers, in any order and with any words around them. */
export const naming = (...values: readonly (string | number | undefined)[]) =>
  expect.stringMatching(new RegExp(`^${values.map((value) => `(?=[\\s\\S]*${whole(String(value))})`).join('')}`))
