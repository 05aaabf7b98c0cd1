// token: API tokens for people and programs, and one in the place of the first admin token, which expires.
import { readFile } from 'node:fs/promises'
import type { TokenRole } from '../../shared/model/access.ts'

import {
  type ApiTokenView,
  apiTokenViewSchema,
  createdApiTokenSchema,
  exchangedTokenSchema,
  whoamiAnswerSchema,
} from '../../shared/model/views.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { noContent, path } from './client.ts'
import type { Context, Output } from './context.ts'
import { consent } from './delete.ts'
import { UsageError } from './io.ts'
import { documentText } from './printing/documents.ts'

export async function exchangeToken(context: Context, { tokenFile }: { tokenFile?: string | undefined }): Promise<void> {
  const { io } = context
  const given = tokenFile === undefined ? undefined : await readToken(tokenFile)
  const { token } = await context.client(given).send('POST', '/token/exchange', exchangedTokenSchema)
  // The first use of the new token ends the earlier one.
  const { name } = await context.client(token).get('/whoami', whoamiAnswerSchema)
  // The token alone on stdout: SKERRY_TOKEN=$(skerry token exchange …).
  io.stdout.write(`${token}\n`)
  const ended = tokenFile === undefined ? 'the earlier token' : `the token in ${tokenFile}`
  io.stderr.write(`This token of ${name} is shown only once; ${ended} is no longer valid.\n`)
}

export interface TokenOptions {
  role: TokenRole
  project?: readonly string[] | undefined
  expires: string
  output?: Output
}

export async function createToken(context: Context, name: string, { role, project, expires, output }: TokenOptions): Promise<void> {
  const { io } = context
  const created = await context.client().send('POST', '/tokens', createdApiTokenSchema, { name, role, expires, projects: project })
  const document = documentText(created, output)
  if (document !== null) io.stdout.write(document)
  else if (output === 'name') io.stdout.write(`token/${created.id}\n`)
  else {
    // The token alone on stdout: SKERRY_TOKEN=$(skerry token create …).
    io.stdout.write(`${created.token}\n`)
    const until = expires === 'never' ? 'does not expire' : `expires in ${expires}`
    io.stderr.write(`\n${created.id}: token of ${name}, role ${role}; it ${until}; shown only once\n`)
    io.stderr.write(`revoke it with: skerry token revoke ${created.id}\n`)
  }
}

export async function revokeToken(context: Context, id: string, { yes }: { yes?: true | undefined }): Promise<void> {
  const client = context.client()
  const tokens = await client.list('/tokens', apiTokenViewSchema)
  const token = tokens.find((one) => one.id === id)
  if (token === undefined)
    throw new AppError('not_found', { detail: `API token ${id} does not exist`, remedy: 'List them with `skerry token list`.' })
  const isLast = isAdmin(token) && !tokens.some((one) => one.id !== id && isAdmin(one))
  if (isLast)
    context.io.stderr.write('This is the last valid admin token: the server creates a new one, in a file, only at its next start.\n')
  await consent(context, `Revoke the token ${id} of ${token.name} (role ${token.role})?`, yes === true)
  await client.send('DELETE', path`/tokens/${id}`, noContent)
  context.io.stdout.write(`token/${id} revoked\n`)
}

/** A role of the whole fleet; `admin` is the earlier name of fleet-admin. */
const isAdmin = ({ role, projects, state }: ApiTokenView): boolean =>
  (role === 'admin' || role === 'fleet-admin') && projects === null && state === 'valid'

async function readToken(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (error) {
    throw new UsageError(`cannot read --token-file ${path}: ${error instanceof Error ? error.message : String(error)}`)
  }
}
