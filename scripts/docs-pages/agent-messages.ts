// The pages of what the agent says, from its catalogue: the texts with the name in place of each argument, and the
// tables of reasons and events, which stand between markers in a page that is written by hand.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DELETION } from '../../agent/messages/deletion-messages.ts'
import { NEWS, WARNINGS } from '../../agent/messages/event-messages.ts'
import { EXPLANATIONS, JOB_ENDS } from '../../agent/messages/explanation-messages.ts'
import { FAILURES } from '../../agent/messages/failure-messages.ts'
import { OBJECT, OBJECT_PARTS } from '../../agent/messages/object-messages.ts'
import { ANSWER_NOTES, QUESTION_REFUSALS } from '../../agent/messages/question-messages.ts'
import { EVENTS, OBJECT_REASONS, SERVICE_REASONS } from '../../agent/messages/reasons.ts'
import { ORDER, SERVICE, SERVICE_PARTS } from '../../agent/messages/service-messages.ts'
import { ENFORCEMENT, ORDER_REFUSALS, PROBLEMS, SITE_PARTS, TAKEOVERS } from '../../agent/messages/site-messages.ts'
import { STATUS_WARNINGS, STATUS_WORDS } from '../../agent/messages/status-messages.ts'
import { type Entry, reasonOf, type Table, wordsOf } from '../../shared/runtime/messages.ts'
import { cell, code, table } from './markdown.ts'

/** Every table of the catalogue, by the heading of its section. */
export const CATALOGUE: Readonly<Record<string, Table>> = {
  'Statuses of objects': OBJECT,
  'Parts of statuses of objects': OBJECT_PARTS,
  'Failed requests to the API server': FAILURES,
  'Explanations of objects that are not healthy': EXPLANATIONS,
  'Ends of Jobs': JOB_ENDS,
  'Statuses of services': SERVICE,
  'Hooks, phases and waves': ORDER,
  'Parts of statuses of services': SERVICE_PARTS,
  Deletions: DELETION,
  'Events of type Normal': NEWS,
  'Events of type Warning': WARNINGS,
  'State of enforcement': ENFORCEMENT,
  'Problems of an agent': PROBLEMS,
  'Warnings of `skerry-agent status`': STATUS_WARNINGS,
  'Lines of `skerry-agent status`': STATUS_WORDS,
  'Refusals of local commands': ORDER_REFUSALS,
  'Answers to a takeover': TAKEOVERS,
  'Parts of these texts': SITE_PARTS,
  'Refusals of questions': QUESTION_REFUSALS,
  'Notes in answers to questions': ANSWER_NOTES,
}

const ANY = new Proxy({}, { get: (_, name) => `{${String(name)}}` })
const textIn = (text: Entry['text']): string => cell(wordsOf(text, ANY))
const nextIn = ({ next }: Entry): string => (next === undefined ? '' : textIn(next))

export const messageTables = (): string =>
  Object.entries(CATALOGUE)
    .map(
      ([title, entries]) =>
        `## ${title}\n\n${table(
          ['code', 'text', 'next step'],
          Object.entries(entries).map(([name, entry]) => [code(name), textIn(entry.text), nextIn(entry)]),
        )}`,
    )
    .join('\n')

/** A reason whose texts have several next steps refers to them. */
function reasonTable(head: string, meanings: Readonly<Record<string, string>>, messages: Table): string {
  const nextOf = (reason: string): string => {
    const entries = Object.entries(messages).filter(([name]) => reasonOf(name) === reason)
    const steps = new Set(entries.map(([, entry]) => nextIn(entry)))
    return steps.size > 1 ? 'in the message' : [...steps].join('')
  }
  return table(
    [head, 'meaning', 'next step'],
    Object.entries(meanings).map(([reason, meaning]) => [code(reason), cell(meaning), nextOf(reason)]),
  )
}

const REGIONS: Readonly<Record<string, () => string>> = {
  'reasons of services': () => reasonTable('reason', SERVICE_REASONS, SERVICE),
  'reasons of objects': () => reasonTable('reason', OBJECT_REASONS, OBJECT),
  'events of the agent': () =>
    table(
      ['event', 'meaning'],
      Object.entries(EVENTS).map(([name, meaning]) => [code(name), cell(meaning)]),
    ),
}

/** The page with the tables between its markers made again. */
export function reasonsPage(root: string): { path: string; text: string } {
  const path = 'docs/reference/reasons.md'
  let text = readFileSync(join(root, path), 'utf8')
  for (const [name, make] of Object.entries(REGIONS)) {
    const begin = `<!-- ${name}: made by \`scripts/docs generate\` -->\n`
    const from = text.indexOf(begin) + begin.length
    const to = text.indexOf('<!-- end -->', from)
    if (from < begin.length || to < 0) throw new Error(`${path}: no markers of ${name}`)
    text = `${text.slice(0, from)}\n${make()}\n${text.slice(to)}`
  }
  return { path, text }
}
