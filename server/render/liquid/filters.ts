// The filters that chart authors type, as they know them from Helm, and which of Liquid's own are kept: none that reads
// a clock, throws dice, or parses templates at run time. Values come from recorded inputs: a filter takes no more of
// them than it needs.
import { createHash } from 'node:crypto'
import { parseYamlDocuments, toYaml } from '../../../shared/adapters/yaml.ts'
import { TEMPLATE_OUTPUT_BYTES_MAX, TemplateRefusal } from './limits.ts'

/** Those of the library that are left in. */
export const LIQUID_FILTERS: ReadonlySet<string> = new Set(
  `escape unescape abs at_least at_most ceil divided_by floor minus plus modulo times round url_decode url_encode slugify join last first reverse sort
   sort_natural size map sum compact concat push unshift pop shift slice where reject group_by has find_index find uniq append prepend lstrip downcase upcase
   remove remove_first remove_last rstrip split strip strip_newlines squish capitalize replace replace_first replace_last truncate truncatewords
   base64_encode base64_decode sha256 json to_integer`.split(/\s+/),
)
/** Filters among them whose work grows with the value and with the searched text. */
export const SEARCHING_FILTERS: ReadonlySet<string> = new Set([
  'split',
  'remove',
  'remove_first',
  'remove_last',
  'replace',
  'replace_first',
  'replace_last',
  'where',
  'reject',
  'has',
  'find',
  'find_index',
])
/** Those that take a value with all that is in it: steps for each member or 16 characters. */
export const WHOLE_FILTERS: Readonly<Record<string, number>> = { toYaml: 6, toJson: 2, json: 4, fromYaml: 6, fromJson: 6 }
/** Name → why there is none of that name here. */
export const DROPPED_FILTERS: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ['date', 'date_to_xmlschema', 'date_to_rfc822', 'date_to_string', 'date_to_long_string'].map((name) => [
      name,
      'a date would change the render of the same commit; set the value in config',
    ]),
  ),
  sample: 'random values would change the render of the same commit',
  raw: 'output is never escaped; remove the filter',
}

/** First in a chain, they take what is not there for null. */
export const LENIENT_FILTERS: ReadonlySet<string> = new Set(['default', 'required', 'coalesce', 'hasKey', 'ternary', 'dig'])

type Filter = (value: unknown, ...args: unknown[]) => unknown

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

/** Also when it is not there, the look is one at this member and no other. */
export function ownMember(object: object, key: string): unknown {
  const value: unknown = Reflect.get(object, key)
  return Object.hasOwn(object, key) ? value : undefined
}

function textOf(value: unknown): string {
  if (value === null || value === undefined) return ''
  if (typeof value === 'object') throw new TemplateRefusal('expected text, not a mapping or a list; convert it with toJson or toYaml')
  return String(value)
}

function jsonOf(value: unknown): string {
  const text = JSON.stringify(value ?? null)
  if (text.length > TEMPLATE_OUTPUT_BYTES_MAX) throw new TemplateRefusal('the value is too large to write')
  return text
}

function countOf(value: unknown, what: string, max: number): number {
  const count = typeof value === 'number' ? value : Number.NaN
  if (!Number.isInteger(count) || Math.abs(count) > max) throw new TemplateRefusal(`${what} expects a whole number up to ${max}`)
  return count
}

function indent(value: unknown, width: unknown): string {
  const pad = ' '.repeat(Math.max(0, countOf(width, 'indent', 100)))
  return textOf(value)
    .split('\n')
    .map((line) => pad + line)
    .join('\n')
}

const isEmpty = (value: unknown): boolean =>
  value === null || value === undefined || value === '' || (Array.isArray(value) && value.length === 0)

function decodeBase64(value: unknown): string {
  const text = textOf(value).replace(/\s/g, '')
  const refusal = new TemplateRefusal('b64dec expects base64 of UTF-8 text')
  if (!/^[A-Za-z0-9+/]*={0,2}$/.test(text) || text.replace(/=+$/, '').length % 4 === 1) throw refusal
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(Buffer.from(text, 'base64'))
  } catch {
    throw refusal
  }
}

function fromYaml(value: unknown): unknown {
  const { documents, problems } = parseYamlDocuments(textOf(value), { file: '' })
  if (problems.length > 0) throw new TemplateRefusal('fromYaml expects the text of one YAML document')
  if (documents.length > 1) throw new TemplateRefusal('fromYaml expects one document')
  return documents[0]?.value ?? null
}

function dig(value: unknown, ...rest: unknown[]): unknown {
  if (rest.length < 2) throw new TemplateRefusal("dig expects names and a default as the last argument: config | dig: 'a', 'b', 'none'")
  const names = rest.slice(0, -1)
  let here: unknown = value
  for (const name of names) {
    here = isObject(here) ? ownMember(here, textOf(name)) : undefined
    if (here === undefined || here === null) return rest.at(-1)
  }
  return here
}

function trunc(value: unknown, length: unknown): string {
  const count = countOf(length, 'trunc', 1_000_000)
  const letters = [...textOf(value)]
  return (count < 0 ? letters.slice(count) : letters.slice(0, count)).join('')
}

const withoutEnd = (text: string, end: string): string => (end !== '' && text.endsWith(end) ? text.slice(0, -end.length) : text)
const withoutStart = (text: string, start: string): string => (start !== '' && text.startsWith(start) ? text.slice(start.length) : text)

function mappingOf(value: unknown, name: string): Record<string, unknown> {
  if (!isObject(value)) throw new TemplateRefusal(`${name} takes a mapping`)
  return value
}

function wholeNumber(value: unknown): number {
  const number = typeof value === 'number' ? value : Number(textOf(value).trim() || 'none')
  if (!Number.isFinite(number)) throw new TemplateRefusal('int expects a number')
  return Math.trunc(number)
}

/** `required` and `semverCompare` are the engine's: the one says its own message, the other has a library. */
export const OWN_FILTERS: Readonly<Record<string, Filter>> = {
  toYaml: (value) => toYaml(value).replace(/\n$/, ''),
  fromYaml,
  toJson: jsonOf,
  fromJson: fromYaml,
  indent,
  nindent: (value, width) => `\n${indent(value, width)}`,
  b64enc: (value) => Buffer.from(textOf(value)).toString('base64'),
  b64dec: decodeBase64,
  // Unlike Liquid's own, false stays: `enabled: false` is an answer.
  default: (value, otherwise) => (isEmpty(value) ? otherwise : value),
  coalesce: (...values) => values.find((value) => !isEmpty(value)) ?? null,
  // JSON's escapes are YAML's.
  quote: (value) => jsonOf(textOf(value)),
  squote: (value) => `'${textOf(value).replaceAll("'", "''")}'`,
  dig,
  hasKey: (value, name) => isObject(value) && ownMember(value, textOf(name)) !== undefined,
  keys: (value) => Object.keys(mappingOf(value, 'keys')).sort(),
  values: (value) => {
    const mapping = mappingOf(value, 'values')
    return Object.keys(mapping)
      .sort()
      .map((name) => mapping[name])
  },
  ternary: (value, yes, no) => (value === true ? yes : value === false || value === null || value === undefined ? no : yes),
  sha256sum: (value) => createHash('sha256').update(textOf(value)).digest('hex'),
  trunc,
  trimSuffix: (value, end) => withoutEnd(textOf(value), textOf(end)),
  trimPrefix: (value, start) => withoutStart(textOf(value), textOf(start)),
  trim: (value) => textOf(value).trim(),
  lower: (value) => textOf(value).toLowerCase(),
  upper: (value) => textOf(value).toUpperCase(),
  hasPrefix: (value, start) => textOf(value).startsWith(textOf(start)),
  hasSuffix: (value, end) => textOf(value).endsWith(textOf(end)),
  toString: textOf,
  int: wholeNumber,
}
