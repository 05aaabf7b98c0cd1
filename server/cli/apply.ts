// apply: resources from files to the server, all or none.
import { nearest } from '../../shared/model/explain.ts'
import { type Applicable, DEFAULT_PROJECT } from '../../shared/model/resources.ts'
import { type ApplyAnswer, applyAnswerSchema, serviceViewSchema } from '../../shared/model/views.ts'
import { AppError } from '../../shared/protocol/error.ts'
import type { Client } from './client.ts'
import { countText, plainText } from './columns.ts'
import { type Context, type Output, printItems } from './context.ts'
import { readAll, UsageError } from './io.ts'
import { parseResources, readResourceFiles } from './resource-files.ts'

type Result = ApplyAnswer['results'][number]

export async function apply(
  context: Context,
  options: { filename: string[]; recursive?: true | undefined; dryRun?: true | undefined; output?: Output },
): Promise<void> {
  if (options.filename.length === 0) throw new UsageError('nothing to apply: give -f FILE, -f DIR or -f -')
  const { io } = context
  const files = await readResourceFiles(options.filename, options.recursive === true, () => readAll(io))
  const { read, problems } = parseResources(files)
  if (problems.length > 0)
    throw new AppError('invalid_resource', { detail: `${countText(problems.length, 'problem')}; nothing was changed`, problems })
  if (read.length === 0) throw new UsageError(`there is no resource in ${options.filename.join(', ')}`)
  const body = { resources: read.map(({ document }) => document), dryRun: options.dryRun === true }
  const answer = await context
    .client()
    .send('POST', '/apply', applyAnswerSchema, body)
    .catch((error: unknown) => {
      throw placed(
        error,
        read.map(({ placeOf }) => placeOf),
      )
    })
  const warnings = await overrideWarnings(
    context.client(),
    read.map(({ resource }) => resource),
  )
  for (const warning of warnings) io.stderr.write(`warning: ${plainText(warning)}\n`)
  if (options.output === 'json' || options.output === 'yaml') {
    printItems(context, [answer], { columns: [], nameOf: () => '', single: true, none: '' }, options)
    return
  }
  const note = answer.dryRun ? ' (dry run)' : ''
  for (const result of answer.results)
    io.stdout.write(options.output === 'name' ? `${resultName(result)}\n` : `${resultName(result)} ${result.action}${note}\n`)
}

/** The service may come later: that is no error. A slip of the pen would never be found otherwise. */
async function overrideWarnings(client: Client, resources: readonly Applicable[]): Promise<string[]> {
  const named = resources.flatMap((resource) =>
    resource.kind !== 'Cluster'
      ? []
      : (resource.spec.overrides ?? []).map(({ service, project = DEFAULT_PROJECT }, index) => ({
          place: `cluster/${resource.metadata.name}: spec.overrides[${index}]`,
          project,
          service,
        })),
  )
  const known = new Map<string, string[]>()
  for (const project of new Set(named.map(({ project }) => project))) {
    // What was applied is applied, also when nobody may list services.
    const there = await client.list('/services', serviceViewSchema, { project }).catch(() => null)
    if (there === null) continue
    const coming = resources.filter(({ kind, metadata }) => kind === 'Service' && 'project' in metadata && metadata.project === project)
    known.set(
      project,
      [...there, ...coming].map(({ metadata }) => metadata.name),
    )
  }
  return named.flatMap(({ place, project, service }) => {
    const names = known.get(project)
    if (names === undefined || names.includes(service)) return []
    const near = nearest(service, names)
    return [
      `${place} is for service ${service} of project ${project}, which does not exist${near === null ? '' : `; did you mean "${near}"?`}`,
    ]
  })
}

const resultName = ({ kind, project, name }: Result): string =>
  `${kind.toLowerCase()}/${name}${project === '' || project === 'default' ? '' : ` (project ${project})`}`

/** The server counts resources; people count lines. */
function placed(error: unknown, places: ReadonlyArray<(path: string) => string>): unknown {
  if (!(error instanceof AppError) || error.data.problems === undefined) return error
  const problems = error.data.problems.map((problem) => {
    const match = /^resources\[(\d+)\]\.?(.*)$/.exec(problem.path)
    const placeOf = match === null ? undefined : places[Number(match[1])]
    if (placeOf === undefined || match === null) return problem
    const [, , path = ''] = match
    return { path: placeOf(path), message: path === '' ? problem.message : `${path}: ${problem.message}` }
  })
  return new AppError(error.code, { ...error.data, problems }, { cause: error })
}
