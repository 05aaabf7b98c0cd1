// join-token: what a new cluster shows once.

import { createdJoinTokenSchema } from '../../shared/model/views.ts'
import type { Context, Output } from './context.ts'
import { UsageError } from './io.ts'
import { documentText } from './printing/documents.ts'

export interface JoinTokenOptions {
  expires: string
  uses: number
  label: string[]
  output?: Output
}

export async function createJoinToken(context: Context, { expires, uses, label, output }: JoinTokenOptions): Promise<void> {
  const { io } = context
  const client = context.client()
  const labels = Object.fromEntries(label.map(parseLabel))
  const created = await client.send('POST', '/join-tokens', createdJoinTokenSchema, { expires, uses, labels })
  const document = documentText(created, output)
  if (document !== null) io.stdout.write(document)
  else if (output === 'name') io.stdout.write(`join-token/${created.id}\n`)
  else {
    // The token alone on stdout: TOKEN=$(skerry join-token create).
    io.stdout.write(`${created.token}\n`)
    io.stderr.write(`\n${created.id}: valid for ${uses} cluster${uses === 1 ? '' : 's'} within ${expires}; shown only once.\n`)
    io.stderr.write(`On the cluster: skerry-agent run --server ${client.url} --join-token TOKEN --cluster NAME\n`)
  }
}

export function parseLabel(text: string): [string, string] {
  const equals = text.indexOf('=')
  if (equals < 1) throw new UsageError(`expected --label key=value, not "${text}"`)
  return [text.slice(0, equals), text.slice(equals + 1)]
}
