// Numbers with their nouns, and the units and places of English. A translation replaces this file and the other two of
// its folder.

/** Dates are written as in the texts around them; the zone is the reader's. */
export const LOCALE = 'en-GB'

/** Between groups of digits. A formatter of the browser would cost 40 ms of the opening of a list. */
const GROUPS = /\B(?=(?:\d{3})+$)/g
export const number = (value: number): string => {
  const [whole = '', rest] = String(Math.round(value * 1_000) / 1_000).split('.')
  return whole.replace(GROUPS, ',') + (rest === undefined ? '' : `.${rest}`)
}
export const count = (n: number, noun: string, plural = `${noun}s`): string => `${number(n)} ${n === 1 ? noun : plural}`

/** Ages. */
export const units = {
  now: 'now',
  seconds: (n: number): string => `${n} s`,
  minutes: (n: number): string => `${n} min`,
  hours: (n: number): string => `${n} h`,
  days: (n: number): string => `${n} d`,
} as const

/** The first names of many. */
export const namesAndMore = (first: string, more: number): string => (more > 0 ? `${first} and ${number(more)} more` : first)
