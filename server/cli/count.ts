// count: how many of what, by one question; what a person looks at first when the fleet is too large for lists.

import type { Query } from '../../client/client.ts'
import {
  COUNT_BY,
  COUNTED,
  type CountBy,
  type CountOf,
  type CountRow,
  type CountsView,
  countsViewSchema,
} from '../../shared/model/counts.ts'
import { LIST_LIMIT_MAX } from '../../shared/model/views.ts'
import { nearest } from '../../shared/runtime/edit-distance.ts'
import { type Column, countText, renderTable } from './columns.ts'
import { type Context, type Output, usesColour } from './context.ts'
import { UsageError } from './io.ts'
import { customColumns, documentText } from './printing/documents.ts'

export interface CountOptions {
  by?: string | undefined
  of?: CountOf | undefined
  top?: number | undefined
  output?: Output
  headers?: boolean
}

export async function count(context: Context, options: CountOptions): Promise<void> {
  const { io } = context
  const { by, key } = parseBy(options.by)
  const of = countedOf(by, options.of)
  const filter: Query = { by, of, key, ...(options.top === undefined ? { limit: LIST_LIMIT_MAX } : { sort: 'count', limit: options.top }) }
  const view = await everyPage((query) => context.client().get('/counts', countsViewSchema, { ...filter, ...query }))
  const document = documentText(view, options.output)
  if (document !== null) io.stdout.write(document)
  else if (options.output === 'name') io.stdout.write(view.items.map((row) => `${row.key}\n`).join(''))
  else {
    const style = { wide: options.output === 'wide', headers: options.headers !== false, colours: usesColour(io) }
    if (view.items.length === 0) io.stderr.write(`nothing to count by ${options.by}\n`)
    else io.stdout.write(renderTable(customColumns<CountRow>(options.output) ?? columnsOf(by, of), view.items, style))
    if (view.rest !== null && view.rest.keys > 0) io.stderr.write(`and ${countText(view.rest.count, one(of))} of ${view.rest.keys} more\n`)
  }
}

/** Some are asked about a part of their keys: `label=env`, `image=registry.example/shop/`. */
const PREFIXES: Readonly<Partial<Record<CountBy, (of: string) => string>>> = {
  label: (key) => `${key}=`,
  service: (project) => `${project}/`,
  version: (program) => `${program}/`,
  image: (beginning) => beginning,
}

const ASKED = `By: ${COUNT_BY.join(', ')}; label=KEY, service=PROJECT, version=agent, image=PREFIX`

function parseBy(text: string | undefined): { by: CountBy; key: string | undefined } {
  if (text === undefined) throw new UsageError(`--by is missing; for example --by health\n${ASKED}`)
  const equals = text.indexOf('=')
  const word = equals < 0 ? text : text.slice(0, equals)
  const by = COUNT_BY.find((known) => known === word)
  if (by === undefined) {
    const near = nearest(word, COUNT_BY)
    throw new UsageError(`cannot count by "${word}"${near === null ? '' : `; did you mean "${near}"?`}\n${ASKED}`)
  }
  if (equals < 0) return { by, key: undefined }
  const prefix = PREFIXES[by]
  if (prefix === undefined) throw new UsageError(`--by ${by} takes no value after "=": --by ${by}`)
  return { by, key: prefix(text.slice(equals + 1)) }
}

function countedOf(by: CountBy, of: CountOf | undefined): CountOf {
  const can = COUNTED[by]
  if (of === undefined) return can[0]
  if (!can.includes(of)) throw new UsageError(`counts by ${by} are of ${can.join(' or ')}, not of ${of}`)
  return of
}

async function everyPage(read: (query: Query) => Promise<CountsView>): Promise<CountsView> {
  const first = await read({})
  const items = [...first.items]
  for (let next = first.continue; next !== null; ) {
    const page = await read({ continue: next })
    items.push(...page.items)
    next = page.continue
  }
  return { ...first, items, continue: null }
}

const one = (of: CountOf): string => (of === 'placements' ? 'placement' : of === 'objects' ? 'object' : 'cluster')

const KEY_TITLES: Readonly<Record<CountBy, string>> = {
  state: 'STATE',
  sync: 'SYNC',
  health: 'HEALTH',
  service: 'SERVICE',
  label: 'LABEL',
  image: 'IMAGE',
  'drift-age': 'AGE',
  version: 'VERSION',
  liveness: 'LIVENESS',
}

function columnsOf(by: CountBy, of: CountOf): Array<Column<CountRow>> {
  const key: Column<CountRow> = {
    title: KEY_TITLES[by],
    value: (row) => row.key,
    colour: by === 'sync' || by === 'health' || by === 'liveness',
  }
  const all: Column<CountRow> = { title: of.toUpperCase(), value: (row) => row.count }
  const having = (title: string, has: (part: string) => boolean): Column<CountRow> => ({ title, value: (row) => partsSum(row, has) })
  const word = (title: string, text: string) => having(title, (part) => part.split('/').includes(text))
  switch (by) {
    case 'label':
      return [key, { title: 'CLUSTERS', value: (row) => row.clusters ?? 0 }, all, word('SYNCED', 'Synced'), word('HEALTHY', 'Healthy')]
    case 'service':
      return [key, all, word('SYNCED', 'Synced'), word('HEALTHY', 'Healthy'), word('DEGRADED', 'Degraded')]
    case 'drift-age':
      return [key, all, ...['reported', 'contested', 'failed'].map((action) => word(action.toUpperCase(), action))]
    default:
      return [key, all]
  }
}

const partsSum = ({ parts }: CountRow, has: (part: string) => boolean): number =>
  Object.entries(parts).reduce((all, [part, n]) => (has(part) ? all + n : all), 0)
