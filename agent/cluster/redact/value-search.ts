// Finds values of documents in a text, in each form in which programs print them, and cut off. Pure.
import { clean } from './marks.ts'
import { isPlainWord } from './words.ts'

/** Shorter values would be found in half of all words. */
const SHORT_MIN = 3
/** So many characters in common are no accident. */
const COMMON_MIN = 12
/** Each common part of `COMMON_MIN` characters holds a gram of the value at a multiple of `STRIDE`. */
const GRAM = 6
const STRIDE = COMMON_MIN - GRAM + 1
/** A more frequent gram, such as spaces or zeros, is taken out without a comparison of what surrounds it. */
const PLACES_MAX = 64
/** Longer values are searched for without other encodings. */
const ENCODED_CHARS_MAX = 100_000
const PIECE_MIN = 6

/** The forms of values, folded: ASCII letters in lower case, every space a blank. */
export class SearchedValues {
  readonly short: Set<string>
  readonly long: Set<string>

  constructor(short: Iterable<string> = [], long: Iterable<string> = []) {
    this.short = new Set(short)
    this.long = new Set(long)
  }

  copy = (): SearchedValues => new SearchedValues(this.short, this.long)
  isEmpty = (): boolean => this.short.size === 0 && this.long.size === 0

  /** `isStrong`: the words of the value count as well. `names` stay. */
  add(value: string, isStrong: boolean, names: ReadonlySet<string>): void {
    for (const form of formsOf(value, isStrong)) {
      if (names.has(form)) continue
      const text = fold(form).trim()
      this.#take(text)
      if (text.includes('  ')) this.#take(text.replace(/ +/g, ' '))
    }
  }

  #take(text: string): void {
    if (text.length >= COMMON_MIN) this.long.add(text)
    else if (text.length >= SHORT_MIN && !isPlainWord(text)) this.short.add(text)
  }
}

/** Keeps the length of the text, which `toLowerCase` does only for ASCII. */
const fold = (text: string): string =>
  PLAIN_ASCII.test(text) ? text.toLowerCase() : text.replace(/[A-Z]/g, (char) => char.toLowerCase()).replace(/\s/g, ' ')
const PLAIN_ASCII = /^[ -~]*$/

/** The value, its lines, its literals in JSON and Go, base64, URL encoding, and its words. */
function* formsOf(value: string, isStrong: boolean): Generator<string> {
  yield value
  const isPlain = PLAIN_ASCII.test(value)
  if (!isPlain) yield clean(value)
  if (/[\r\n]/.test(value)) yield* value.split(/[\r\n]+/).filter((line) => line.trim().length > SHORT_MIN)
  if (value.length > ENCODED_CHARS_MAX) return
  if (!isPlain || /[\\"<>&]/.test(value)) yield* literalsOf(value)
  if (!isStrong) return
  yield Buffer.from(value).toString('base64').replace(/=+$/, '')
  if (/^[\w.~-]*$/.test(value)) return
  if (value.isWellFormed()) yield encodeURIComponent(value)
  for (const piece of value.split(/[\s=:@,;&?#|/"'<>(){}[\]\\]+/)) if (piece.length >= PIECE_MIN) yield piece
}

/** JSON; JSON of Go, which escapes characters of HTML; and `strconv.Quote`, which has other escapes. */
function* literalsOf(value: string): Generator<string> {
  const json = JSON.stringify(value).slice(1, -1)
  yield json
  yield json.replace(/[<>&\u2028\u2029]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
  yield json.replace(/\\u00([0-9a-f]{2})|\x7f/g, (_, code: string | undefined) => GO_ESCAPES[code ?? '7f'] ?? `\\x${code ?? '7f'}`)
}

const GO_ESCAPES: Readonly<Record<string, string>> = { '07': '\\a', '0b': '\\v' }

const isLetter = (char: string | undefined): boolean => char !== undefined && /[\p{L}\p{N}]/u.test(char)
const isTokenChar = (char: string | undefined): boolean => char !== undefined && /[\p{L}\p{N}+/_~=-]/u.test(char)

/** Ranges of the text that hold values, in order. A word is taken as a whole if a part of it was found. */
export function foundIn(text: string, { short, long }: SearchedValues): Array<[start: number, end: number]> {
  const folded = fold(text)
  const taken = new Uint8Array(folded.length)
  if (short.size > 0) takeShort(folded, short, taken)
  if (long.size > 0) takeLong(folded, long, taken)
  const found: Array<[number, number]> = []
  for (let i = 0, from = 0; i < text.length; i += 1) {
    if (taken[i] === 0) continue
    let [start, end] = [i, i + 1]
    while (start > from && isTokenChar(text[start]) && isTokenChar(text[start - 1])) start -= 1
    while (end < text.length && (taken[end] === 1 || (isTokenChar(text[end - 1]) && isTokenChar(text[end])))) end += 1
    i = end - 1
    while (start < end - 1 && folded[start] === ' ') start += 1
    while (end - 1 > start && folded[end - 1] === ' ') end -= 1
    from = end
    found.push([start, end])
  }
  return found
}

/** Whole words only. */
function takeShort(text: string, values: ReadonlySet<string>, taken: Uint8Array): void {
  for (let start = 0; start < text.length; start += 1) {
    if (isLetter(text[start]) && isLetter(text[start - 1])) continue
    for (let length = SHORT_MIN; length < COMMON_MIN && start + length <= text.length; length += 1) {
      if (isLetter(text[start + length - 1]) && isLetter(text[start + length])) continue
      if (values.has(text.slice(start, start + length))) taken.fill(1, start, start + length)
    }
  }
}

function takeLong(text: string, values: ReadonlySet<string>, taken: Uint8Array): void {
  const places = new Map<string, number[]>()
  for (let i = 0; i + GRAM <= text.length; i += 1) {
    const gram = text.slice(i, i + GRAM)
    const known = places.get(gram)
    if (known === undefined) places.set(gram, [i])
    else known.push(i)
  }
  // A part that occurs several times in a value is compared once.
  const compared = new Set<string>()
  for (const value of values) {
    for (let offset = 0; offset + GRAM <= value.length; offset += STRIDE) {
      const gram = value.slice(offset, offset + GRAM)
      const found = places.get(gram)
      if (found === undefined) continue
      const around = `${Math.min(offset, COMMON_MIN)} ${value.slice(Math.max(0, offset - COMMON_MIN), offset + GRAM + COMMON_MIN)}`
      if (compared.has(around)) continue
      compared.add(around)
      for (const place of found.slice(0, PLACES_MAX)) takeCommon(text, place, value, offset, taken)
      if (found.length <= PLACES_MAX || compared.has(gram)) continue
      compared.add(gram)
      for (const place of found.slice(PLACES_MAX)) taken.fill(1, place, place + STRIDE)
    }
  }
}

/** Takes the common part around a gram, as far as the next grams, from which the search continues. */
function takeCommon(text: string, place: number, value: string, offset: number, taken: Uint8Array): void {
  let before = 0
  const beforeMax = Math.min(place, offset, COMMON_MIN)
  while (before < beforeMax && text[place - before - 1] === value[offset - before - 1]) before += 1
  let after = GRAM
  const afterMax = Math.min(text.length - place, value.length - offset, GRAM + COMMON_MIN)
  while (after < afterMax && text[place + after] === value[offset + after]) after += 1
  if (before + after >= COMMON_MIN) taken.fill(1, place - before, place + after)
}

/** True if the text has anything in common with a value of the object: a cheap test for texts of our own rules, which
 *  rarely quote. */
export function quotesObject(text: string, object: unknown): boolean {
  const folded = fold(text)
  const grams = new Set<string>()
  for (let i = 0; i + GRAM <= folded.length; i += 1) grams.add(folded.slice(i, i + GRAM))
  return hasCommon(folded, grams, object)
}

function hasCommon(text: string, grams: ReadonlySet<string>, value: unknown): boolean {
  if (Array.isArray(value)) return value.some((item) => hasCommon(text, grams, item))
  if (value !== null && typeof value === 'object') {
    for (const [key, member] of Object.entries(value)) if (key !== 'managedFields' && hasCommon(text, grams, member)) return true
    return false
  }
  if (typeof value !== 'string' && typeof value !== 'number') return false
  const leaf = fold(String(value))
  if (leaf.length < GRAM) return leaf.length >= SHORT_MIN && text.includes(leaf)
  for (let offset = 0; offset + GRAM <= leaf.length; offset += STRIDE) if (grams.has(leaf.slice(offset, offset + GRAM))) return true
  return false
}
