// Finds the end of a value in a message of a Go program: `%q`, `%v` and `%#v` of package fmt, and JSON. API servers up
// to Kubernetes 1.33 print Go structs, later ones print JSON. Pure.

/** Index behind the string literal that starts with the quote at `start`, or -1. Only double quotes have escapes. */
export function endOfQuoted(text: string, start: number): number {
  const quote = text[start]
  for (let i = start + 1; i < text.length; i += 1) {
    if (text[i] === '\\' && quote === '"') i += 1
    else if (text[i] === quote) return i + 1
  }
  return -1
}

const OPEN = '{[('
const CLOSE = '}])'

/** Index behind the bracket that closes the one at `start`, or the end of the text. Brackets in strings do not
 *  count. */
export function endOfBrackets(text: string, start: number): number {
  let depth = 0
  for (let i = start; i < text.length; i += 1) {
    const char = text[i] ?? ''
    if (char === '"') {
      const end = endOfQuoted(text, i)
      if (end < 0) return text.length
      i = end - 1
    } else if (OPEN.includes(char)) depth += 1
    else if (CLOSE.includes(char)) {
      depth -= 1
      if (depth === 0) return i + 1
    }
  }
  return text.length
}

export type GoValue =
  /** `text` is without quotes and escapes. */
  | { kind: 'string'; text: string; end: number }
  | { kind: 'scalar'; text: string; end: number }
  | { kind: 'composite'; end: number }
  /** Its end is not known. */
  | { kind: 'unknown' }

const SCALAR = /(?:-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null|nil|<nil>)(?=$|[:,\]})])/y
/** In front of the first bracket of a composite: `core.PodSpec{`, `[]string{`, `map[string]int{`, `&v1.X{`,
 *  `(*int64)(nil)`. */
const TYPE = /[&*]?(?:[A-Za-z_][\w./]*)?(?=[{[(])/y

/** The value that starts at `start`. */
export function valueAt(text: string, start: number): GoValue {
  if (text[start] === '"') {
    const end = endOfQuoted(text, start)
    return end < 0 ? { kind: 'unknown' } : { kind: 'string', text: unquoted(text.slice(start, end)), end }
  }
  SCALAR.lastIndex = start
  const scalar = SCALAR.exec(text)?.[0]
  if (scalar !== undefined) return { kind: 'scalar', text: scalar, end: start + scalar.length }
  TYPE.lastIndex = start
  const type = TYPE.exec(text)?.[0]
  if (type === undefined) return { kind: 'unknown' }
  let end = start + type.length
  // `[]core.Container{…}` and `(*core.X)(nil)` have several brackets, with a name between them.
  for (;;) {
    end = endOfBrackets(text, end)
    TYPE.lastIndex = end
    const next = TYPE.exec(text)?.[0]
    if (next === undefined) return { kind: 'composite', end }
    end += next.length
  }
}

/** The string literals in a composite value, without the keys of maps. */
export function stringsIn(text: string, start: number, end: number): string[] {
  const found = new Set<string>()
  for (let at = text.indexOf('"', start); at >= 0 && at < end; at = text.indexOf('"', at)) {
    const behind = endOfQuoted(text, at)
    if (behind < 0) break
    if (text[behind] !== ':') found.add(unquoted(text.slice(at, behind)))
    at = behind
  }
  return [...found]
}

const ESCAPES: Readonly<Record<string, string>> = { a: '\u0007', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

/** The text of a Go or JSON string literal. */
const unquoted = (literal: string): string =>
  literal.slice(1, -1).replace(/\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))/gs, (_, x, u, long, char: string) => {
    const code = x ?? u ?? long
    if (code === undefined) return ESCAPES[char] ?? char
    const point = Number.parseInt(code, 16)
    return point <= 0x10ffff ? String.fromCodePoint(point) : ''
  })
