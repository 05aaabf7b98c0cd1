// The one place where an answer to a question is made, so that nothing leaves the site beside the redaction boundary
// (AK9, AK11). `AnswerSink` takes only lines of this file: a text of the cluster becomes a line here or nowhere. Pure.
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import type { AnswerLine, AnswerLineOf } from '../../shared/protocol/ask.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { ApiFailure } from '../cluster/cluster.ts'
import { MARK } from '../cluster/redact/marks.ts'
import { safeReason, safeText } from '../cluster/redact/safe-text.ts'
import { AMOUNT } from '../cluster/redact/shown-fields.ts'
import { answerNote } from '../messages/question-messages.ts'
import type { Hiding } from './hiding.ts'
import { masked } from './masked.ts'
import type { FieldDifference } from './object-differences.ts'

declare const isSafe: unique symbol
export type SafeLine = AnswerLine & { readonly [isSafe]: true }
const line = (made: AnswerLine): SafeLine => made as SafeLine

/** The subject of a text of the cluster. */
export interface Subject {
  hiding: Hiding
  /** Objects whose values the text may quote. */
  documents: readonly unknown[]
  isSecret?: boolean
}

function shownText(text: string, { hiding, documents, isSecret = false }: Subject): string {
  if (text === '') return ''
  return hiding === 'hidden' ? MARK : safeText(text, { documents, isSecret: isSecret || hiding === 'sealed' })
}

const shownReason = (reason: string, subject: Subject): string => safeReason(reason) ?? shownText(reason, subject)

export const objectLine = (live: K8sObject, options: { hiding: Hiding; managedFields: boolean }): SafeLine =>
  line({ t: 'object', ...masked(live, options) })

export function childLine(
  child: { ref: ObjectRef; uid: string; parent: string | null; health: string; reason: string; message: string },
  subject: Subject,
): SafeLine {
  const { reason, message } = child
  return line({ t: 'child', ...child, reason: shownReason(reason, subject), message: shownText(message, subject) })
}

export function eventLine(event: Omit<AnswerLineOf<'event'>, 't'>, subject: Subject): SafeLine {
  const { type, reason, message, count, at, source } = event
  return line({
    t: 'event',
    type: shownReason(String(type), subject),
    reason: shownReason(String(reason), subject),
    message: shownText(String(message), subject),
    count: Number(count),
    at: String(at),
    source: /^[-\w./]{0,253}$/.test(String(source)) ? String(source) : MARK,
  })
}

/** Logs are what a program chose to write: the right `logs:read` is separate for this reason. */
export const logLine = (pod: string, container: string, text: string): SafeLine => line({ t: 'log', pod, container, text })

export const restartedLine = (ref: ObjectRef, at: string): SafeLine => line({ t: 'restarted', ref, at })

/** Words of this program, or the answer of the API server, which passed the boundary with the object that was sent. */
export type Said = { own: string } | { failure: Pick<ApiFailure, 'message'> }
const saidText = (said: Said, hiding: Hiding): string => ('own' in said ? said.own : hiding === 'hidden' ? MARK : said.failure.message)

export const diffLine = (ref: ObjectRef, fields: FieldDifference[]): SafeLine =>
  line({ t: 'diff', ref, state: fields.length === 0 ? 'same' : 'changed', fields })
export const missingLine = (ref: ObjectRef): SafeLine => line({ t: 'diff', ref, state: 'missing', fields: [] })
export const unreadableLine = (ref: ObjectRef, said: Said, hiding: Hiding): SafeLine =>
  line({ t: 'diff', ref, state: 'unreadable', fields: [], message: saidText(said, hiding) })

/** `fields`: null means that the object does not exist yet. */
export const triedLine = (ref: ObjectRef, fields: FieldDifference[] | null): SafeLine =>
  fields === null
    ? line({ t: 'dryRun', ref, result: 'created' })
    : line({ t: 'dryRun', ref, result: fields.length === 0 ? 'unchanged' : 'changed', fields })
export const refusedLine = (ref: ObjectRef, said: Said, hiding: Hiding): SafeLine =>
  line({ t: 'dryRun', ref, result: 'refused', message: saidText(said, hiding) })

export interface NodeFacts {
  node: K8sObject
  isReady: boolean
  version: string
  capacity: Record<string, string>
  allocatable: Record<string, string>
  requested: Record<string, number>
  pods: number
  isUnschedulable: boolean
  conditions: ReadonlyArray<{ type: string; status: string; reason?: string; message?: string }>
}
const PROBLEM_CHARS_MAX = 300

export function nodeLine({ node, isReady, isUnschedulable, conditions, version, capacity, allocatable, ...counts }: NodeFacts): SafeLine {
  const subject: Subject = { hiding: 'nothing', documents: [node] }
  const problems = conditions.map(({ type, status, reason = '', message = '' }) =>
    `${shownReason(type, subject)}=${shownReason(status, subject)} ${shownReason(reason, subject)}: ${shownText(message, subject)}`.slice(
      0,
      PROBLEM_CHARS_MAX,
    ),
  )
  return line({
    t: 'node',
    name: node.metadata.name ?? '',
    ready: isReady,
    version: /^[-+.\w]{0,64}$/.test(version) ? version : MARK,
    capacity: amounts(capacity),
    allocatable: amounts(allocatable),
    ...counts,
    problems: [...(isUnschedulable ? ['Unschedulable'] : []), ...problems],
  })
}

const amounts = (given: Record<string, string>): Record<string, string> =>
  Object.fromEntries(Object.entries(given).map(([name, amount]) => [name, AMOUNT.test(amount) ? amount : MARK]))

/** `own`: words of this program. */
export const noteLine = (own: string): SafeLine => line({ t: 'note', message: own })
export const cutOffLine = (what: string, error: unknown): SafeLine =>
  line({ t: 'note', message: answerNote('cut_off', { what, failure: safeText(describeError(error)) }) })

/** `message` and `remedy` are words of this program. */
export const failedLine = (code: string, message: string, remedy?: string): SafeLine =>
  line({ t: 'failed', code, message, ...(remedy === undefined ? {} : { remedy }) })
export const endLine = (truncated?: 'bytes' | 'time'): SafeLine => line({ t: 'end', ...(truncated === undefined ? {} : { truncated }) })
