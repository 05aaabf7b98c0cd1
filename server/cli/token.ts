// token exchange: an API token in the place of the first admin token, which expires.
import { readFile } from 'node:fs/promises'
import { exchangedTokenSchema, whoamiAnswerSchema } from '../../shared/model/views.ts'
import type { Context } from './context.ts'
import { UsageError } from './io.ts'

export async function exchangeToken(context: Context, { tokenFile }: { tokenFile?: string | undefined }): Promise<void> {
  const { io } = context
  const given = tokenFile === undefined ? undefined : await readToken(tokenFile)
  const { token } = await context.client(given).send('POST', '/token/exchange', exchangedTokenSchema)
  // The first use of the new token ends the earlier one.
  const { name } = await context.client(token).get('/whoami', whoamiAnswerSchema)
  // The token alone on stdout: SKERRY_TOKEN=$(skerry token exchange …).
  io.stdout.write(`${token}\n`)
  const ended = tokenFile === undefined ? 'the earlier token' : `the token in ${tokenFile}`
  io.stderr.write(`This token of ${name} does not expire and is shown only now; ${ended} is no longer valid.\n`)
}

async function readToken(path: string): Promise<string> {
  try {
    return (await readFile(path, 'utf8')).trim()
  } catch (error) {
    throw new UsageError(`cannot read --token-file ${path}: ${error instanceof Error ? error.message : String(error)}`)
  }
}
