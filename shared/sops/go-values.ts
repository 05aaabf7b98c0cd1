// Values as sops, a Go program, reads and writes them: what a plain scalar of YAML is (go.yaml.in/yaml/v3, which
// differs from kubectl's reader), and its bytes in the MAC. Pure.
import type { YamlNode } from '../adapters/yaml.ts'
import type { SopsNode } from './parcel.ts'

const WORDS: ReadonlyMap<string, SopsNode> = new Map<string, SopsNode>([
  ...['true', 'True', 'TRUE'].map((word) => [word, { v: 'True', t: 'bool' }] as const),
  ...['false', 'False', 'FALSE'].map((word) => [word, { v: 'False', t: 'bool' }] as const),
  ...['', '~', 'null', 'Null', 'NULL'].map((word) => [word, null] as const),
])
const INTEGER = /^([-+]?)(0[bB][01]+|0[oO]?[0-7]+|0[xX][0-9a-fA-F]+|0|[1-9][0-9]*)$/
const FLOAT = /^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$/
const INT64 = [-(2n ** 63n), 2n ** 63n - 1n] as const

export function yaml3Scalar({ text, isPlain, tag }: Extract<YamlNode, { kind: 'scalar' }>): SopsNode {
  if (tag === '!!str' || tag === '!' || (tag === '' && !isPlain)) return text
  const word = WORDS.get(text)
  if (word !== undefined) return word
  if (!/^[-+.0-9]/.test(text)) return text
  const time = timeOf(text)
  if (time !== null) return { v: time, t: 'text' }
  const plain = text.replaceAll('_', '')
  const integer = integerOf(plain)
  if (integer !== null && integer >= INT64[0] && integer <= INT64[1]) return { v: integer.toString(), t: 'number' }
  const number = Number(plain)
  return FLOAT.test(plain) && Number.isFinite(number) ? { v: goFloat(number), t: 'number' } : text
}

function integerOf(plain: string): bigint | null {
  const match = INTEGER.exec(plain)
  const digits = match?.[2]
  if (match === null || digits === undefined) return null
  const magnitude = BigInt(/^0[0-7]+$/.test(digits) ? `0o${digits.slice(1)}` : digits)
  return match[1] === '-' ? -magnitude : magnitude
}

/** `strconv.FormatFloat(value, 'f', -1, 64)`: the shortest digits, without an exponent. */
export function goFloat(value: number): string {
  const text = Object.is(value, -0) ? '-0' : String(value)
  const [, sign = '', whole = '', fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:e([-+]?\d+))?$/.exec(text) ?? []
  if (!text.includes('e')) return text
  const digits = whole + fraction
  const point = whole.length + Number(exponent)
  if (point <= 0) return `${sign}0.${'0'.repeat(-point)}${digits}`
  return point >= digits.length
    ? `${sign}${digits}${'0'.repeat(point - digits.length)}`
    : `${sign}${digits.slice(0, point)}.${digits.slice(point)}`
}

const TIME =
  /^(\d{4})-(\d{1,2})-(\d{1,2})(?:(?:[Tt](\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,](\d+))?(Z|[-+]\d\d:\d\d))|(?: (\d{1,2}):(\d{1,2}):(\d{1,2})(?:[.,](\d+))?))?$/

/** RFC 3339 with nanoseconds, as Go marshals a time. Null means yaml.v3 reads no time. */
function timeOf(text: string): string | null {
  const match = TIME.exec(text)
  if (match === null) return null
  const [, year = '', month = '', day = '', h1, m1, s1, f1, zone, h2, m2, s2, f2] = match
  const pad = (value: string | undefined) => (value ?? '0').padStart(2, '0')
  const [hour, minute, second] = [pad(h1 ?? h2), pad(m1 ?? m2), pad(s1 ?? s2)]
  const date = new Date(Date.UTC(Number(year), Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second)))
  const isReal = date.getUTCMonth() === Number(month) - 1 && date.getUTCDate() === Number(day) && Number(hour) < 24
  if (!isReal || Number(minute) > 59 || Number(second) > 59) return null
  const fraction = (f1 ?? f2 ?? '').slice(0, 9).replace(/0+$/, '')
  const offset = zone === undefined || /^(Z|[-+]00:00)$/.test(zone) ? 'Z' : zone
  return `${year}-${pad(month)}-${pad(day)}T${hour}:${minute}:${second}${fraction === '' ? '' : `.${fraction}`}${offset}`
}

/** A time as RFC 3339 without a fraction, which is what sops binds the MAC to. */
export const goTextOf = (at: string): string => (timeOf(at) ?? at).replace(/\.\d+(?=Z|[-+]\d\d:\d\d$)/, '')
