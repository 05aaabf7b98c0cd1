// Saved queries on the command line: `query --save`, `get saved-queries` and `delete saved-query`.
import { type SavedQueryView, savedQueryViewSchema } from '../../shared/model/saved-queries.ts'
import { path } from './client.ts'
import { ageText, type Column, plainText } from './columns.ts'
import type { Context } from './context.ts'
import { UsageError } from './io.ts'

export const savedQueryColumns = (nowMs: number): Column<SavedQueryView>[] => [
  { title: 'NAME', value: ({ name }) => name },
  { title: 'BY', value: ({ savedBy }) => savedBy },
  { title: 'AGE', value: ({ updatedMs }) => ageText(updatedMs, nowMs) },
  { title: 'SQL', value: ({ sql }) => sql, wide: true },
  { title: 'ABOUT', value: ({ about }) => about },
]

interface Saving {
  name: string
  sql: string | undefined
  about: string | undefined
}

export async function saveQuery(context: Context, { name, sql, about }: Saving): Promise<void> {
  if (sql === undefined) throw new UsageError(`--save needs a SELECT: skerry query --save ${name} "SELECT name FROM clusters"`)
  const body = { sql, ...(about === undefined ? {} : { about }) }
  await context.client().send('PUT', path`/saved-queries/${name}`, savedQueryViewSchema, body)
  context.io.stdout.write(`saved-query/${name} saved\n`)
}

export const savedQueryEffect = ({ name, savedBy, about }: SavedQueryView): string =>
  `Saved query ${name}, saved by ${plainText(savedBy)}${about === '' ? '' : ` (${plainText(about)})`}, will be deleted for everybody.\n`
