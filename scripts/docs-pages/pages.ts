// The reference pages that are made from the source. tests/unit/reference-pages.test.ts fails when one of them is out
// of date.
import { join } from 'node:path'
import type { CommandUnknownOpts } from '@commander-js/extra-typings'
import { RUN_OPTIONS } from '../../agent/config.ts'
import { AGENT_METRICS } from '../../agent/metrics.ts'
import { allFields } from '../../server/cli/field-reference.ts'
import { SIGNS } from '../../server/fleet/why/signs.ts'
import { STATES } from '../../server/fleet/why/states.ts'
import { SERVER_METRICS } from '../../server/observe/server-metrics.ts'
import { FLEET_VIEWS } from '../../server/store/sql/views.ts'
import { SERVER_OPTIONS } from '../../server/verbs/server-options.ts'
import { type MetricTable, PROCESS_METRICS } from '../../shared/adapters/metrics.ts'
import { ERRORS } from '../../shared/runtime/error-table.ts'
import { envName, flagName, type OptionTable } from '../../shared/runtime/options.ts'
import { LITERAL_FUNCTIONS, SQL_FUNCTIONS } from '../../shared/sql/dialect.ts'
import { AGENT_CATALOGUE } from './agent-messages.ts'
import { cell, code, table } from './markdown.ts'
import { messageTables, reasonsPage } from './messages.ts'
import { helpOf, PROGRAMS } from './programs.ts'
import { SERVER_CATALOGUE } from './server-messages.ts'
import { SIZES } from './sizes.ts'

const ROOT = join(import.meta.dir, '../..')

export interface Page {
  /** From the root of the repository. */
  path: string
  text: string
}

const MADE = '<!-- Made by `scripts/docs generate` from the source. Do not edit. -->'
const page = (name: string, title: string, intro: string, body: string): Page => ({
  path: `docs/reference/${name}.md`,
  text: `${MADE}\n# ${title}\n\n${intro}\n\n${body.trimEnd()}\n`,
})

const resources = (): Page =>
  page(
    'resources',
    'Resources',
    '`skerry apply -f` takes these kinds. `skerry explain FIELD` prints the same texts. Unknown fields are errors.\n' +
      'A field inside a list or a map has the path of that list or map.',
    allFields()
      .map(
        ({ kind, fields }) =>
          `## ${kind}\n\n${table(
            ['field', 'type', 'meaning'],
            fields.map(({ path, type, description }) => [code(path), code(type), cell(description)]),
          )}`,
      )
      .join('\n'),
  )

const commandPages = (command: CommandUnknownOpts, path: string): string =>
  `## ${path}\n\n\`\`\`text\n${helpOf(command).trimEnd()}\n\`\`\`\n\n${command.commands
    .filter((inner) => inner.name() !== 'help')
    .map((inner) => commandPages(inner, `${path} ${inner.name()}`))
    .join('')}`

const commands = (): Page =>
  page(
    'cli',
    'Command line',
    'The help texts of all commands. `skerry` is the server and its client; `skerry-agent` runs in each cluster.',
    Object.entries(PROGRAMS)
      .map(([name, program]) => commandPages(program, name))
      .join(''),
  )

const optionRows = (options: OptionTable): string =>
  table(
    ['flag', 'environment', 'default', 'meaning'],
    Object.entries(options).map(([name, { help, choices, default: byDefault, required }]) => [
      code(flagName(name)),
      code(envName(name)),
      required === true ? 'required' : byDefault === undefined ? '' : code(byDefault),
      cell(choices === undefined ? help : `${help} One of ${choices.join(', ')}.`),
    ]),
  )

const options = (): Page =>
  page(
    'options',
    'Options of the server and the agent',
    'A flag wins over the environment, which wins over the default. All wrong options are reported together.',
    `## skerry server\n\n${optionRows(SERVER_OPTIONS)}\n## skerry-agent run\n\n${optionRows(RUN_OPTIONS)}`,
  )

const errors = (): Page =>
  page(
    'errors',
    'Errors',
    'Every error of the API is a problem document (RFC 9457) with one of these codes. Commands print the same texts.\n' +
      'A retryable error can pass without a change of the request.',
    table(
      ['code', 'HTTP status', 'retryable', 'cause', 'what to do'],
      Object.entries(ERRORS).map(([name, { status, retryable, cause, remedy }]) => [
        code(name),
        String(status),
        retryable ? 'yes' : 'no',
        cell(cause),
        cell(remedy),
      ]),
    ),
  )

const sizes = (): Page =>
  page(
    'sizes',
    'Sizes and counts',
    'The limits that users can meet. A render program has\n[limits of its own](../security.md#how-are-renderers-isolated). See also [Known limits](limits.md).',
    Object.entries(SIZES)
      .map(([title, rows]) => `## ${title}\n\n${table(['what', 'at most'], rows)}`)
      .join('\n'),
  )

const metricRows = (metrics: MetricTable): string =>
  table(
    ['name', 'type', 'labels', 'meaning'],
    Object.entries(metrics).map(([name, { type, labels = [], help }]) => [code(name), type, labels.map(code).join(', '), cell(help)]),
  )

const metrics = (): Page =>
  page(
    'metrics',
    'Metrics',
    'Both programs serve the OpenMetrics text format. [Monitor a fleet](../how-to/monitor.md) says how to scrape them.',
    `## Server\n\n${metricRows(SERVER_METRICS)}\n## Agent\n\n${metricRows(AGENT_METRICS)}\n## Both\n\n${metricRows(PROCESS_METRICS)}`,
  )

const views = (): Page =>
  page(
    'views',
    'Views of SQL queries',
    '`skerry query` answers SQL over these views. `skerry query --views` prints the same texts.\n' +
      '[How to query the fleet with SQL](../how-to/sql.md) has examples.',
    `${Object.entries(FLEET_VIEWS)
      .map(
        ([name, { about, columns }]) =>
          `## ${name}\n\n${about}\n\n${table(
            ['column', 'type', 'meaning'],
            Object.entries(columns).map(([column, one]) => [code(column), one.type, cell(one.about)]),
          )}`,
      )
      .join('\n')}\n## Functions\n\n${table(
      ['function', 'example', 'result'],
      [...Object.entries(SQL_FUNCTIONS).map(([name, one]) => ({ name, ...one })), ...LITERAL_FUNCTIONS].map((one) => [
        code(one.name),
        code(one.example),
        cell(one.about),
      ]),
    )}`,
  )

/** The parts of a message that a sign quotes have no names here. */
const quoted = (template: string): string =>
  cell(
    template
      .replaceAll(/(?:\$\d)+/g, '…')
      .replaceAll(/ \(…\)/g, '')
      .replaceAll('… …', '…'),
  )

/** A cause of several signs has one row, with what the first one says. */
function causeRows(causes: ReadonlyArray<{ cause: string; summary: string; next: string }>): string {
  const first = causes.filter(({ cause }, index) => causes.findIndex((other) => other.cause === cause) === index)
  const sorted = first.toSorted((a, b) => (a.cause < b.cause ? -1 : 1))
  return table(
    ['cause', 'meaning', 'next step'],
    sorted.map(({ cause, summary, next }) => [code(cause), quoted(summary), quoted(next)]),
  )
}

const causes = (): Page =>
  page(
    'causes',
    'Causes',
    'The causes that `skerry why` names, in the field `cause` of its JSON. [How to find things in the\n' +
      'fleet](../how-to/query-the-fleet.md#why-is-a-service-not-healthy) says how to ask. Where nothing fits, the cause is\n' +
      'the [reason](reasons.md) or the health of the object.',
    `## Objects\n\n${causeRows(SIGNS)}\n## Services and placements\n\n${causeRows(Object.values(STATES))}`,
  )

const agentMessages = (): Page =>
  page(
    'agent-messages',
    'Messages of the agent',
    'The texts that the agent gives to people, with {name} in place of an argument. A next step follows its text after a\n' +
      'semicolon. The part of a code before its dot is the [reason](reasons.md), the state or the error code; the part\n' +
      'after it tells texts of one reason apart. Texts may change; reasons, states and error codes do not.',
    messageTables(AGENT_CATALOGUE),
  )

const serverMessages = (): Page =>
  page(
    'server-messages',
    'Messages of the server',
    'The texts of statuses and Events that the server itself gives to people, with {name} in place of an argument. The\n' +
      'next step of a status is a field of its own; that of an Event follows its text after a semicolon. The part of a\n' +
      'code before its dot is the [reason](reasons.md); the part after it tells texts of one reason apart. Texts may\n' +
      'change; reasons do not. [Errors](errors.md) have their own page, as have the [messages of the\n' +
      'agent](agent-messages.md), which the server shows as they are.',
    messageTables(SERVER_CATALOGUE),
  )

export const referencePages = (): Page[] => [
  resources(),
  commands(),
  options(),
  errors(),
  sizes(),
  metrics(),
  views(),
  causes(),
  agentMessages(),
  serverMessages(),
  reasonsPage(ROOT),
]
