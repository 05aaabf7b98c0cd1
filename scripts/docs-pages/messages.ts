// The pages of what agent and server say, from their catalogues: the texts with the name in place of each argument, and
// the tables of reasons and events, which stand between markers in a page that is written by hand.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { OBJECT } from '../../agent/messages/object-messages.ts'
import * as agent from '../../agent/messages/reasons.ts'
import { SERVICE as AGENT_SERVICE } from '../../agent/messages/service-messages.ts'
import * as server from '../../server/messages/reasons.ts'
import { CLUSTER, PLACEMENT, REPOSITORY, SERVICE } from '../../server/messages/status-messages.ts'
import { type Entry, reasonOf, type Table, wordsOf } from '../../shared/runtime/messages.ts'
import { cell, code, table } from './markdown.ts'

const ANY = new Proxy({}, { get: (_, name) => `{${String(name)}}` })
const textIn = (text: Entry['text']): string => cell(wordsOf(text, ANY))
/** A step that an error gives has no text of its own. */
const nextIn = ({ next }: Entry): string => (next === undefined ? '' : textIn(next).replace(/^\{remedy\}$/, REMEDY))
const REMEDY = 'the remedy of the [error](errors.md)'

/** A section for each table of a catalogue. */
export const messageTables = (catalogue: Readonly<Record<string, Table>>): string =>
  Object.entries(catalogue)
    .map(
      ([title, entries]) =>
        `## ${title}\n\n${table(
          ['code', 'text', 'next step'],
          Object.entries(entries).map(([name, entry]) => [code(name), textIn(entry.text), nextIn(entry)]),
        )}`,
    )
    .join('\n')

/** A reason whose texts have several next steps refers to them. */
function reasonTable(meanings: Readonly<Record<string, string>>, messages: Table, place: 'in the message' | 'in the status'): string {
  const nextOf = (reason: string): string => {
    const entries = Object.entries(messages).filter(([name]) => reasonOf(name) === reason)
    const steps = new Set(entries.map(([, entry]) => nextIn(entry)))
    return steps.size > 1 ? place : [...steps].join('')
  }
  return table(
    ['reason', 'meaning', 'next step'],
    Object.entries(meanings).map(([reason, meaning]) => [code(reason), cell(meaning), nextOf(reason)]),
  )
}

const eventTable = (meanings: Readonly<Record<string, string>>): string =>
  table(
    ['event', 'meaning'],
    Object.entries(meanings).map(([name, meaning]) => [code(name), cell(meaning)]),
  )

const REGIONS: Readonly<Record<string, () => string>> = {
  'reasons of services': () => reasonTable(agent.SERVICE_REASONS, AGENT_SERVICE, 'in the message'),
  'reasons of services by the server': () => reasonTable(server.SERVICE_REASONS, { ...CLUSTER, ...PLACEMENT, ...SERVICE }, 'in the status'),
  'reasons of objects': () => reasonTable(agent.OBJECT_REASONS, OBJECT, 'in the message'),
  'reasons of clusters': () => reasonTable(server.CLUSTER_REASONS, CLUSTER, 'in the status'),
  'reasons of repositories': () => reasonTable(server.REPOSITORY_REASONS, REPOSITORY, 'in the status'),
  'events of the server': () => eventTable(server.EVENTS),
  'events of the agent': () => eventTable(agent.EVENTS),
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
