// auth: which rights a caller has, and why.

import { canIAnswerSchema, type RightSource, whoCanAnswerSchema } from '../../../shared/model/access-views.ts'
import { ACCESS_KINDS, ACCESS_VERBS } from '../../../shared/model/access-words.ts'
import { selectorText } from '../../../shared/model/labels.ts'
import { whoamiAnswerSchema } from '../../../shared/model/views.ts'
import { nearest } from '../../../shared/runtime/edit-distance.ts'
import { type Column, plainText, renderTable } from '../columns.ts'
import type { Context } from '../context.ts'
import { UsageError } from '../io.ts'

interface Question {
  project?: string | undefined
  cluster?: string | undefined
  output?: 'json' | undefined
}
interface CanI extends Question {
  as?: string | undefined
  asGroup?: readonly string[] | undefined
  asToken?: string | undefined
}

export async function canI(context: Context, verb: string, target: string, options: CanI): Promise<number> {
  const { as: asUser, asGroup = [], asToken } = options
  const query = new URLSearchParams({ ...question(verb, target, options), ...given({ asUser, asToken }) })
  for (const group of asGroup) query.append('asGroup', group)
  const answer = await context.client().get(`/auth/can-i?${query}`, canIAnswerSchema)
  const { stdout } = context.io
  if (options.output === 'json') stdout.write(`${JSON.stringify(answer, null, 2)}\n`)
  else stdout.write(`${answer.allowed ? 'yes' : 'no'}: ${plainText(answer.detail)}\n`)
  return answer.allowed ? 0 : 1
}

export async function whoCan(context: Context, verb: string, target: string, options: Question): Promise<void> {
  const query = new URLSearchParams(question(verb, target, options))
  const { items, hidden } = await context.client().get(`/auth/who-can?${query}`, whoCanAnswerSchema)
  const { stdout, stderr } = context.io
  if (options.output === 'json') return void stdout.write(`${JSON.stringify({ items, hidden }, null, 2)}\n`)
  stdout.write(items.length === 0 ? 'no caller that you may read\n' : renderTable([SUBJECT, ...SOURCES], items, TABLE))
  if (hidden > 0) stderr.write(`${hidden} more through role bindings that you may not read\n`)
}

export async function authWhoami(context: Context, { output }: { output?: 'json' | undefined }): Promise<void> {
  const who = await context.client().get('/whoami', whoamiAnswerSchema)
  const { stdout } = context.io
  if (output === 'json') return void stdout.write(`${JSON.stringify(who, null, 2)}\n`)
  const { kind, name, provider, groups, projects } = who
  const lines = [
    `${kind} ${name}${provider === null ? '' : ` of ${provider}`}`,
    ...(groups.length === 0 ? [] : [`groups: ${groups.join(', ')}`]),
    ...(projects === null ? [] : [`limited to projects: ${projects.join(', ')}`]),
  ]
  stdout.write(`${lines.map(plainText).join('\n')}\n\n`)
  stdout.write(who.roles.length === 0 ? 'no roles\n' : renderTable(SOURCES, who.roles, TABLE))
}

const TABLE = { wide: false, headers: true, colours: false }
const SUBJECT: Column<RightSource & { subject: string }> = { title: 'SUBJECT', value: ({ subject }) => subject }
const SOURCES: Column<RightSource>[] = [
  { title: 'ROLE', value: ({ role }) => role },
  {
    title: 'BINDING',
    value: ({ binding }) => (binding === null ? '(token)' : `${binding.project === '' ? '' : `${binding.project}/`}${binding.name}`),
  },
  { title: 'PROJECTS', value: ({ projects }) => projects?.join(',') ?? '*' },
  { title: 'SERVICES', value: ({ services }) => services?.join(',') ?? '*' },
  { title: 'CLUSTERS', value: ({ clusters }) => (clusters === null ? '*' : selectorText(clusters)) },
]

function question(verb: string, target: string, { project, cluster }: Question): Record<string, string> {
  const [kindText = '', name] = target.split('/')
  return { verb: wordOf(verb, ACCESS_VERBS, 'verb'), kind: kindOf(kindText), ...given({ name, project, cluster }) }
}

const given = (values: Record<string, string | undefined>): Record<string, string> =>
  Object.fromEntries(Object.entries(values).flatMap(([key, value]) => (value === undefined ? [] : [[key, value]])))

/** `service`, `services`, `Service`, `role-binding`. */
function kindOf(text: string): string {
  const plain = (word: string) => word.toLowerCase().replaceAll('-', '')
  const wanted = plain(text)
  const found = ACCESS_KINDS.find((kind) => [plain(kind), `${plain(kind)}s`, plain(kind).replace(/y$/, 'ies')].includes(wanted))
  return found ?? wordOf(text, ACCESS_KINDS, 'kind')
}

function wordOf(text: string, among: readonly string[], what: string): string {
  if (among.includes(text)) return text
  const near = nearest(text, among)
  throw new UsageError(`unknown ${what} "${text}"${near === null ? '' : `; did you mean "${near}"?`}\nKnown: ${among.join(', ')}`)
}
