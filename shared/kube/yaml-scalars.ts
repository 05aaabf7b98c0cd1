// The meaning of a plain YAML scalar in Kubernetes: the resolver of go.yaml.in/yaml/v2, which kubectl and the API
// server use (`resolve.go`). YAML 1.1 words, octal `0644`, `_` inside numbers; no base-60 numbers, and timestamps stay
// text. Pure; tests/contract/yaml-kubectl.test.ts compares it with kubectl.

export type PlainScalar =
  | { kind: 'value'; value: string | number | boolean | null }
  /** kubectl refuses it, or JavaScript cannot hold it: never a silently different value. */
  | { kind: 'refused'; why: string }

const TRUE = ['y', 'Y', 'yes', 'Yes', 'YES', 'true', 'True', 'TRUE', 'on', 'On', 'ON']
const FALSE = ['n', 'N', 'no', 'No', 'NO', 'false', 'False', 'FALSE', 'off', 'Off', 'OFF']
const NULL = ['', '~', 'null', 'Null', 'NULL']
const WORDS = new Map<string, boolean | null>([
  ...TRUE.map((word) => [word, true] as const),
  ...FALSE.map((word) => [word, false] as const),
  ...NULL.map((word) => [word, null] as const),
])
const NOT_FINITE = /^(\.(nan|NaN|NAN)|[-+]?\.(inf|Inf|INF))$/

const INTEGER = /^([-+]?)(0[bB][01]+|0[oO]?[0-7]+|0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)$/
const FLOAT = /^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/
const DOT_FLOAT = /^\.[0-9]+(_[0-9]+)*([eE][-+]?[0-9]+(_[0-9]+)*)?$/
const INT64_MIN = -(2n ** 63n)
const INT64_MAX = 2n ** 63n - 1n
const UINT64_MAX = 2n ** 64n - 1n

export function resolvePlainScalar(text: string): PlainScalar {
  const word = WORDS.get(text)
  if (word !== undefined) return { kind: 'value', value: word }
  if (NOT_FINITE.test(text)) return { kind: 'refused', why: `JSON cannot represent the number ${text}; quote it if it is text` }
  const first = text.charAt(0)
  // A leading dot goes straight to Go's ParseFloat, which takes underscores between digits only.
  if (first === '.') return DOT_FLOAT.test(text) ? floatOf(text.replaceAll('_', ''), text) : { kind: 'value', value: text }
  if (!/[-+0-9]/.test(first)) return { kind: 'value', value: text }
  const plain = text.replaceAll('_', '')
  const integer = integerOf(plain)
  if (integer !== null) {
    const value = Number(integer)
    if (Number.isSafeInteger(value)) return { kind: 'value', value }
    return { kind: 'refused', why: `the integer ${text} is beyond 2^53 and would lose digits; quote it if it is text` }
  }
  return FLOAT.test(plain) ? floatOf(plain, text) : { kind: 'value', value: text }
}

/** Go's ParseFloat fails where the number overflows, and the scalar stays text. */
function floatOf(plain: string, text: string): PlainScalar {
  const value = Number(plain)
  return { kind: 'value', value: Number.isFinite(value) ? value : text }
}

function integerOf(plain: string): bigint | null {
  const match = INTEGER.exec(plain)
  const digits = match?.[2]
  if (match === null || digits === undefined) return null
  // BigInt reads 0b, 0o and 0x, but not the bare octal of YAML 1.1.
  const magnitude = BigInt(/^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits)
  const value = match[1] === '-' ? -magnitude : magnitude
  if (value < INT64_MIN) return null
  return value <= (match[1] === '' ? UINT64_MAX : INT64_MAX) ? value : null
}

const SHORT_FLOAT = /^-?(0|[1-9][0-9]{0,2})\.[0-9]{0,2}[1-9]$/

/** A key's text as kubectl makes it of the resolved scalar: whole numbers and booleans become strings. Null means that
 *  it is no key, or one that Go would write in a form of its own (`1e6` as "1e+06"). */
export function keyText(value: string | number | boolean | null, text: string): string | null {
  if (value === null) return null
  if (typeof value !== 'number' || INTEGER.test(text.replaceAll('_', ''))) return String(value)
  return SHORT_FLOAT.test(text) ? text : null
}
