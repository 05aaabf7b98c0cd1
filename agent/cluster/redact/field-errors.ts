// Errors of the API server that name fields: of a validation (`spec.x: Invalid value: …: must be …`, field.Error in
// apimachinery) and of a merge (`.spec.x: expected string, got …`). Path, kind of error and rule stay. The value stays
// if its field may be shown. Pure.
import { pathAt } from './field-path.ts'
import { type GoValue, stringsIn, valueAt } from './go-value.ts'
import { type Draft, draft, fixed, HOLE_PIECE, type Piece, together } from './pieces.ts'
import { isShown } from './shown-fields.ts'

const WITH_VALUE = ['Invalid value', 'Unsupported value', 'Duplicate value', 'Not found', 'Too many', 'Too few']
const WITHOUT_VALUE = ['Required value', 'Forbidden', 'Too long', 'Internal error']
const TYPES = [...WITH_VALUE, ...WITHOUT_VALUE].join('|')
const TYPE = new RegExp(`^(?:${TYPES})(?=:|$)`)
/** Reported for the whole object when a part of the validation was skipped. */
const INCOMPLETE = 'some validation rules were not checked'

/**
 * One error: its path and the text behind it. `kind` is that of the object, '' if unknown. Null means not useful to a
 * reader.
 */
export function fieldError(path: string, body: string, kind: string): Draft | null {
  if (body.includes(INCOMPLETE)) return null
  const read = path === '' || path === '<nil>' ? null : pathAt(path)
  const place: Piece[] = read === null ? [] : [{ kind: 'path', text: path }, fixed(': ')]
  return together([draft(...place), errorBody(read?.names ?? [], body, kind)])
}

function errorBody(names: readonly string[], body: string, kind: string): Draft {
  const type = TYPE.exec(body)?.[0]
  if (type === undefined) return draft(...ruleOf(body))
  const rest = body.slice(type.length).replace(/^: /, '')
  if (rest === '' || WITHOUT_VALUE.includes(type)) return draft(fixed(rest === '' ? type : `${type}: `), ...ruleOf(rest))
  const value = valueAt(rest, 0)
  const isRead = value.kind !== 'unknown' && (value.end === rest.length || rest.startsWith(': ', value.end))
  if (!isRead) return draft(fixed(`${type}: `), HOLE_PIECE, ...ruleBehind(rest))
  const shown = isShownValue(kind, names, value)
  const literal: Piece = shown ? { kind: 'value', text: rest.slice(0, value.end) } : HOLE_PIECE
  const rule = rest.slice(value.end + 2)
  const pieces = [fixed(`${type}: `), literal, ...(rule === '' ? [] : [fixed(': '), ...ruleOf(rule)])]
  // The rule may quote the value again.
  const inside = value.kind === 'string' ? [value.text] : value.kind === 'composite' ? stringsIn(rest, 0, value.end) : []
  return { pieces, hidden: shown ? [] : inside.filter((text) => text !== '' && !isShown(kind, names, text)) }
}

function isShownValue(kind: string, names: readonly string[], value: GoValue): boolean {
  if (value.kind === 'string') return isShown(kind, names, value.text)
  if (value.kind !== 'scalar') return false
  if (/^[-\d]/.test(value.text)) return isShown(kind, names, Number(value.text))
  return value.text === 'true' || value.text === 'false' ? isShown(kind, names, value.text === 'true') : true
}

/** Rules that are known word for word. They are also found behind a value whose end is not. */
const RULES = ['field is immutable', 'may not change once set', 'cannot change roleRef', 'field is immutable when `immutable` is set']
function ruleBehind(rest: string): Piece[] {
  const rule = RULES.find((text) => rest.endsWith(`: ${text}`))
  return rule === undefined ? [] : [fixed(`: ${rule}`)]
}

/** Examples of valid values, which say nothing about this object. */
const EXAMPLES = [/ \(e\.g\. '[^\n]*?, regex used for validation is '[^\n]*?'\)(?=$|[,;\]])/g, /,? \(e\.g\. [^()\n]{1,80}\)/g]

/** After the first line, API servers print what differs between old and new object, with values. */
function ruleOf(rule: string): Piece[] {
  const line = rule.split('\n')[0]?.trim() ?? ''
  if (RULES.includes(line)) return [fixed(line)]
  const text = EXAMPLES.reduce((shorter, example) => shorter.replace(example, ''), line)
  return text === '' ? [] : [{ kind: 'free', text }]
}

const PATH = '(?:<nil>|[A-Za-z_][^\\s:,"\']*)'
const FIRST = new RegExp(`^(${PATH}): (?=(?:${TYPES})(?::|,|$))`)
const NEXT = new RegExp(`, (${PATH}): (?=(?:${TYPES})(?::|,|\\]|$))`, 'g')

/** `[a: Invalid value: …, b: Required value]` in a message without causes. Null when the text is no such list. */
export function fieldErrors(text: string, kind: string): Draft | null {
  const isList = text.startsWith('[') && text.trimEnd().endsWith(']')
  const list = isList ? text.trimEnd().slice(1, -1) : text
  const first = FIRST.exec(list)
  if (first === null) return null
  const starts = [{ at: 0, path: first[1] ?? '', length: first[0].length }]
  for (const match of list.matchAll(NEXT)) starts.push({ at: match.index, path: match[1] ?? '', length: match[0].length })
  const errors = starts.map(({ at, path, length }, i) => fieldError(path, list.slice(at + length, starts[i + 1]?.at ?? list.length), kind))
  return listOf(errors)
}

/** A message has no room for more. */
const ERRORS_MAX = 50

/** KA52: sorted and each once, because API servers report the members of a map in any order. */
export function listOf(errors: ReadonlyArray<Draft | null>): Draft {
  const byText = new Map(errors.flatMap((error) => (error === null ? [] : [[JSON.stringify(error), error] as const])))
  const sorted = [...byText].sort(([a], [b]) => (a < b ? -1 : 1))
  const all = sorted.slice(0, ERRORS_MAX).map(([, error]) => error)
  return all.length === 1 ? together(all) : together([draft(fixed('[')), together(all, ', '), draft(fixed(']'))])
}

/** Errors of a merge (package typed of structured-merge-diff). A line without one belongs to a value of several
 *  lines. */
const MERGE_RULE =
  /: (?=expected |field not declared in schema|duplicate entries |element \d|associative list |keys |missing |unable |invalid )/

/** The errors of a merge: one, or several below a heading. */
export function mergeErrors(text: string): Draft {
  const heading = /^errors:\s*\n/.exec(text)?.[0] ?? ''
  const [first = '', ...others] = text
    .slice(heading.length)
    .split('\n')
    .map((line) => line.trim())
  const more = heading === '' ? [] : others.filter((line) => line.startsWith('.') && MERGE_RULE.test(line))
  return listOf([first, ...more].map(mergeError))
}

const EXPECTED = /^expected ([a-z]+(?: \([a-z]+(?: [a-z]+)*\))?(?: or [a-z]+)*), got (.*)$/s

function mergeError(line: string): Draft {
  if (!line.startsWith('.')) return draft({ kind: 'free', text: line })
  const at = line.search(MERGE_RULE)
  if (at < 0) return draft(HOLE_PIECE)
  const rule = line.slice(at + 2)
  const lead: Piece[] = [{ kind: 'path', text: line.slice(0, at) }, fixed(': ')]
  const expected = EXPECTED.exec(rule)
  if (expected !== null) return draft(...lead, fixed(`expected ${expected[1]}, got ${typeText(expected[2] ?? '')}`))
  const keyed = /^duplicate entries for key (\[.*\])$/s.exec(rule)
  if (keyed !== null) return draft(...lead, fixed('duplicate entries for key '), { kind: 'path', text: keyed[1] ?? '' })
  return draft(...lead, ...ruleOf(rule))
}

/** The type of a printed value. */
function typeText(printed: string): string {
  const word = /^(?:string|map|list|number|boolean|int|float|null)\b/.exec(printed)?.[0]
  if (word !== undefined) return word
  const value = /^&?value\.\w+\{Value:(.*)$/s.exec(printed)?.[1] ?? ''
  if (value.startsWith('map[')) return 'a map'
  if (value.startsWith('[]')) return 'a list'
  if (/^(?:true|false)\b/.test(value)) return 'a boolean'
  if (/^-?\d/.test(value)) return 'a number'
  return value.startsWith('"') ? 'a string' : 'something else'
}
