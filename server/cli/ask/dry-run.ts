// `skerry diff --live` with a proposed revision: the server renders it for each cluster, and the agent there tries the
// objects that differ, by server-side dry run. Admission, quotas and immutable fields of the real cluster decide.
import { diffViewSchema } from '../../../shared/model/diff-views.ts'
import type { AnswerLineOf } from '../../../shared/protocol/ask.ts'
import { path } from '../client.ts'
import { countText, plainText } from '../columns.ts'
import { type Context, errorText } from '../context.ts'
import { type DiffOptions, diffRequestOf } from '../diff.ts'
import { UsageError } from '../io.ts'
import { askClusters, inClusters, targetsOf } from './fan-out.ts'
import { fieldText, note, refText } from './live.ts'

const [SAME, DIFFERS, FAILED] = [0, 1, 2]
/** The server renders the proposal for each cluster. */
const RENDERS_AT_ONCE = 4

/** `pack`: base64 of an archive of a folder. Exit codes as those of `diff`; an object that a cluster refuses is a
 *  failure. */
export async function dryRunLive(
  context: Context,
  name: string | undefined,
  options: DiffOptions,
  pack: (folder: string) => Promise<string>,
): Promise<number> {
  try {
    const client = context.client()
    const clusters = await targetsOf(client, options)
    const { project, request, service } = await diffRequestOf(context, name, { ...options, selector: undefined }, pack)
    let worst = SAME
    const { failed } = await inClusters(
      context,
      clusters,
      async (cluster, heard) => {
        worst = Math.max(worst, await tryIn(context, { project, service, cluster, request, heard }, options))
      },
      { atOnce: RENDERS_AT_ONCE },
    )
    return failed > 0 ? FAILED : worst
  } catch (error) {
    if (error instanceof UsageError) throw error
    context.io.stderr.write(errorText(error))
    return FAILED
  }
}

interface Trial {
  project: string
  service: string
  cluster: string
  request: object
  /** Something of it is printed. */
  heard(): void
}

async function tryIn(context: Context, { project, service, cluster, request, heard }: Trial, { output }: DiffOptions): Promise<number> {
  const client = context.client()
  const { stdout, stderr } = context.io
  const view = await client.send('POST', path`/projects/${project}/services/${service}/diff`, diffViewSchema, { ...request, cluster })
  heard()
  for (const { error } of view.failing) stderr.write(`${cluster}: does not render: ${plainText(error)}\n`)
  if (view.failing.length > 0) return FAILED
  const changed = view.groups.flatMap(({ objects }) => objects).filter(({ action }) => action !== 'delete')
  // The server shows masked values of Secrets, which no dry run can try.
  const objects = changed.flatMap(({ after }) => (after === null || after['kind'] === 'Secret' ? [] : [after]))
  if (objects.length < changed.length) stderr.write(`${cluster}: ${countText(changed.length - objects.length, 'Secret')} not tried\n`)
  if (objects.length === 0) return changed.length === 0 ? SAME : DIFFERS
  const id = { project, service }
  let isRefused = false
  const question = { kind: 'dryRun', service: id, objects } as Parameters<typeof askClusters>[3]['question']
  const { failed } = await askClusters(context, client, [cluster], { question, within: id }, (_, line) => {
    if (line.t !== 'dryRun') return note(context, cluster, false, line)
    isRefused ||= line.result === 'refused'
    stdout.write(output === 'json' ? `${JSON.stringify({ cluster, ...line })}\n` : trialText(line, cluster))
  })
  return failed > 0 || isRefused ? FAILED : DIFFERS
}

function trialText({ ref, result, message, fields = [] }: AnswerLineOf<'dryRun'>, cluster: string): string {
  const why = message === undefined ? '' : `: ${plainText(message)}`
  return `${cluster}: ${refText(ref)}  ${result}${why}\n${fields.map((field) => `${fieldText(field)}\n`).join('')}`
}
