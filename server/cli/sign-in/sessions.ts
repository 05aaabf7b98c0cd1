// session: the signed-in people, and the end of a session.
import { type SessionView, sessionViewSchema } from '../../../shared/model/sign-in.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { noContent, path } from '../client.ts'
import type { Column } from '../columns.ts'
import { type Context, type Output, printItems } from '../context.ts'
import { consent } from '../delete.ts'

const time = (ms: number): string => new Date(ms).toISOString().replace(/\.\d+Z$/, 'Z')

const COLUMNS: ReadonlyArray<Column<SessionView>> = [
  { title: 'ID', value: ({ id }) => id },
  { title: 'NAME', value: ({ name }) => name },
  { title: 'PROVIDER', value: ({ provider }) => provider },
  { title: 'KIND', value: ({ kind }) => kind },
  { title: 'LAST-USED', value: ({ lastUsedMs }) => time(lastUsedMs) },
  { title: 'FROM', value: ({ lastUsedFrom }) => lastUsedFrom },
  { title: 'EXPIRES', value: ({ expiresMs }) => time(expiresMs) },
  { title: 'GROUPS', value: ({ groups }) => groups.join(','), wide: true },
]

export async function listSessions(context: Context, options: { output?: Output; headers?: boolean }): Promise<void> {
  const sessions = await context.client().list('/sessions', sessionViewSchema)
  const what = { columns: COLUMNS, nameOf: ({ id }: SessionView) => `session/${id}`, single: false, none: 'no sessions' }
  printItems(context, sessions, what, options)
}

export async function revokeSession(context: Context, id: string, { yes }: { yes?: true | undefined }): Promise<void> {
  const client = context.client()
  const session = (await client.list('/sessions', sessionViewSchema)).find((one) => one.id === id)
  if (session === undefined)
    throw new AppError('not_found', { detail: `session ${id} does not exist`, remedy: 'List them with `skerry session list`.' })
  await consent(context, `Revoke the session ${id} of ${session.name} (${session.provider})?`, yes === true)
  await client.send('DELETE', path`/sessions/${id}`, noContent)
  context.io.stdout.write(`session/${id} revoked\n`)
}
