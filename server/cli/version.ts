// version: of this program, and of the server when one is known.
import type { Context, Output } from './context.ts'

/** Members as `versionInfo` has them; printed as they are. */
export interface OwnVersion {
  info: Record<string, unknown> & { version: string }
  text: string
}

export async function version(
  context: Context,
  own: OwnVersion,
  options: { client?: true | undefined; output?: Output; known: boolean },
): Promise<void> {
  const { io } = context
  if (options.client === true || !options.known) {
    await print(context, options.output, own.info, own.text)
    return
  }
  const { versionAnswerSchema } = await import('../../shared/model/views.ts')
  const server = await context.client().get('/version', versionAnswerSchema)
  await print(context, options.output, { ...own.info, server }, `${own.text}\nserver ${server.version} at ${context.client().url}`)
  if (server.version !== own.info.version && options.output === undefined)
    io.stderr.write('note: the versions of command line and server differ\n')
}

async function print({ io }: Context, output: Output, info: unknown, text: string): Promise<void> {
  // Most ask for the line alone: what prints documents is not loaded for it.
  const document = output === undefined ? null : (await import('./printing/documents.ts')).documentText(info, output)
  io.stdout.write(document ?? `${text}\n`)
}
