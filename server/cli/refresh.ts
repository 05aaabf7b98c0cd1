// refresh: a repository is read now instead of at its next poll; waits until it was, and says what was found.
import { durationMs, durationSchema } from '../../shared/model/resources.ts'
import { shortRevision } from '../../shared/model/revision-text.ts'
import { type RepositoryView, refreshAnswerSchema, repositoryViewSchema } from '../../shared/model/views.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { path } from './client.ts'
import { type Context, type Output, printItems } from './context.ts'
import { UsageError } from './io.ts'
import { parseTarget } from './kinds.ts'
import { repositoryColumns } from './tables.ts'

const POLL_MS = 250

export interface RefreshOptions {
  project: string
  wait: boolean
  timeout: string
  output?: Output
}

export async function refresh(context: Context, kindText: string, nameText: string | undefined, options: RefreshOptions): Promise<void> {
  const { name } = parseTarget(kindText, nameText, ['repositories'])
  if (name === undefined) throw new UsageError('name missing: `skerry get repositories` lists the names')
  if (!durationSchema.safeParse(options.timeout).success)
    throw new UsageError(`expected a duration such as 30s or 2m in --timeout, not "${options.timeout}"`)
  const { io } = context
  const client = context.client()
  const address = path`/projects/${options.project}/repositories/${name}`
  const before = await client.get(address, repositoryViewSchema)
  const { requestedMs } = await client.send('POST', `${address}/refresh`, refreshAnswerSchema)
  if (!options.wait) {
    io.stderr.write(`repository/${name} will be read now\n`)
    return
  }
  const endMs = io.clock.nowMs() + durationMs(options.timeout)
  let view = await client.get(address, repositoryViewSchema)
  while (!wasRead(view, requestedMs)) {
    if (io.clock.nowMs() >= endMs)
      throw new AppError('source_unreachable', {
        detail: `repository ${name} was not read within ${options.timeout}`,
        remedy: `\`skerry describe repository ${name} -p ${options.project}\` shows the time of the next read; --timeout waits longer.`,
      })
    await io.clock.sleep(POLL_MS, io.signal)
    view = await client.get(address, repositoryViewSchema)
  }
  if (!view.status.ready)
    throw new AppError('source_unreachable', { detail: `repository ${name}: ${view.status.message}`, remedy: view.status.next })
  if (options.output !== undefined) {
    const what = { columns: repositoryColumns(io.clock.nowMs(), false), nameOf: () => `repository/${name}`, single: true, none: '' }
    printItems(context, [view], what, options)
    return
  }
  io.stdout.write(`repository/${name} ${foundText(before, view)}\n`)
}

/** A read that was running when the refresh was requested leaves the next read due. */
const wasRead = ({ status: { lastReadMs, nextReadMs } }: RepositoryView, requestedMs: number): boolean =>
  lastReadMs !== null && lastReadMs >= requestedMs && nextReadMs !== null && nextReadMs > lastReadMs

function foundText(before: RepositoryView, { status: { commit } }: RepositoryView): string {
  const now = commit === null ? '-' : shortRevision(commit, 12)
  const was = before.status.commit
  if (was === commit) return `unchanged at ${now}`
  return was === null ? `read at ${now}` : `read at ${now} (was ${shortRevision(was, 12)})`
}
