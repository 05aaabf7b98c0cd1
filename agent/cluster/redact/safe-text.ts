// The one boundary between the texts of a cluster and everything that leaves the agent: statuses, events, log lines,
// the local socket. A text is parsed by the grammar of Kubernetes messages. `<redacted>` replaces what the grammar does
// not let through, and every value of the documents that the text may quote. Pure.
import { fieldError, listOf } from './field-errors.ts'
import { KnownValues } from './known-values.ts'
import { safeLines } from './log-lines.ts'
import { clean } from './marks.ts'
import { type Draft, draft, fixed, type Piece, render, together } from './pieces.ts'
import { sentence } from './sentences.ts'
import { quotesObject } from './value-search.ts'

/** A longer text is cut before it is parsed. */
const TEXT_CHARS_MAX = 64 * 1024
/** Longest message for people. A validation of a thousand fields must not fill the status. */
export const MESSAGE_CHARS_MAX = 2_000

/** The subject of a text. */
export interface Context {
  /** Objects that were sent or that the text describes: it may quote their values. */
  documents?: readonly unknown[]
  /** The text is about a Secret, also if no document is at hand. */
  isSecret?: boolean
  /** In place of `documents`, which are read for each text: for many texts about the same ones. */
  known?: KnownValues
}

const knownOf = ({ documents = [], isSecret = false, known }: Context): KnownValues => known ?? new KnownValues(documents, { isSecret })

const kindOf = ({ documents = [], isSecret = false }: Context): string => {
  const [first] = documents
  const kind = first !== null && typeof first === 'object' && 'kind' in first ? first.kind : ''
  return isSecret ? 'Secret' : typeof kind === 'string' ? kind : ''
}

/** A condition, the state of a container, a warning, or an answer that is not a Status. */
export function safeText(text: string, context: Context = {}): string {
  if (text === '') return ''
  return rendered(sentence(clean(text.slice(0, TEXT_CHARS_MAX)), kindOf(context)), context)
}

export interface StatusText {
  message?: string | undefined
  details?:
    | { name?: string | undefined; group?: string | undefined; kind?: string | undefined; causes?: readonly Cause[] | undefined }
    | undefined
}
interface Cause {
  field?: string | undefined
  message?: string | undefined
}

/** A reason is a single word of the API. Null means that it is a text. */
export const safeReason = (reason: string): string | null => (/^[A-Za-z]{0,64}$/.test(reason) ? reason : null)

/** A text of our own rules about an object, such as its health. Most of them quote nothing and cost next to nothing. */
export const safeAbout = (text: string, object: unknown): string =>
  quotesObject(text, object) ? safeText(text, { documents: [object] }) : text

/** The message of a refused request. Causes hold field and error apart, so they are preferred over the message. */
export function safeStatus({ message = '', details = {} }: StatusText, context: Context = {}): string {
  const causes = details.causes ?? []
  const isInvalid = /^\S+ "[^"]*" is invalid/.test(message)
  if (!isInvalid || causes.length === 0 || causes.some(({ field }) => field === undefined)) return safeText(message, context)
  const kind = details.kind ?? kindOf(context)
  const errors = causes.map(({ field = '', message: body = '' }) =>
    fieldError(clean(field.slice(0, TEXT_CHARS_MAX)), clean(body.slice(0, TEXT_CHARS_MAX)), kind),
  )
  return rendered(together([draft(...subject(details)), listOf(errors)]), context)
}

function subject({ kind = '', group = '', name = '' }: NonNullable<StatusText['details']>): Piece[] {
  const full = group === '' ? kind : `${kind}.${group}`
  return [{ kind: 'name', text: full }, fixed(' "'), { kind: 'name', text: name }, fixed('" is invalid: ')]
}

const rendered = (text: Draft, context: Context): string => render(text, knownOf(context)).slice(0, MESSAGE_CHARS_MAX)

/** The last lines of a program's log. */
export const safeLog = (text: string, context: Context = {}): string => safeLines(text.slice(-TEXT_CHARS_MAX), knownOf(context))
