// diff: what a folder, a branch or another spec would change, before anything is committed or applied.
import { unifiedDiff } from '../../shared/adapters/text-diff.ts'
import { toYaml } from '../../shared/adapters/yaml.ts'
import { type DiffObject, type DiffRequest, type DiffView, diffViewSchema } from '../../shared/model/diff-views.ts'
import { type Applicable, type ServiceResource, sourcesOf } from '../../shared/model/resources.ts'
import { serviceViewSchema } from '../../shared/model/views.ts'
import { path } from './client.ts'
import { countText, plainText } from './columns.ts'
import { type Context, errorText, usesColour } from './context.ts'
import { readAll, UsageError } from './io.ts'
import type { DIFF_OUTPUTS } from './outputs.ts'
import { parseResources, readResourceFiles } from './resource-files.ts'
import { shownProblem } from './shown-problem.ts'

export interface DiffOptions {
  project: string
  dir?: string | undefined
  ref?: string | undefined
  filename?: string | undefined
  cluster?: string | undefined
  selector?: string | undefined
  output?: (typeof DIFF_OUTPUTS)[number] | undefined
}

/** Exit codes of `diff`, as kubectl and flux have them. */
const [SAME, DIFFERS, FAILED] = [0, 1, 2]

/** Resolves with the exit code. `pack`: base64 of an archive of a folder. */
export async function diff(
  context: Context,
  name: string | undefined,
  options: DiffOptions,
  pack: (folder: string) => Promise<string>,
): Promise<number> {
  try {
    const { project, request, service } = await diffRequestOf(context, name, options, pack)
    const view = await context.client().send('POST', path`/projects/${project}/services/${service}/diff`, diffViewSchema, request)
    return print(context, view, options)
  } catch (error) {
    if (error instanceof UsageError) throw error
    context.io.stderr.write(errorText(error))
    return FAILED
  }
}

/** The body of a comparison. Throws UsageError when nothing is proposed. */
export async function diffRequestOf(
  context: Context,
  typed: string | undefined,
  { project: given, dir, ref, filename, cluster, selector }: DiffOptions,
  pack: (folder: string) => Promise<string>,
): Promise<{ project: string; service: string; request: DiffRequest }> {
  if (dir === undefined && ref === undefined && filename === undefined)
    throw new UsageError('nothing to compare with: set --dir FOLDER, --ref BRANCH, or -f FILE with the Service')
  const wanted = typed?.replace(/^(svc|services?)\//, '')
  const proposed = filename === undefined ? null : await readService(context, filename, wanted)
  const service = proposed?.metadata.name ?? wanted
  if (service === undefined) throw new UsageError('service missing: give its name, or -f FILE with the Service')
  const project = proposed?.metadata.project ?? given
  const spec =
    proposed?.spec ??
    (dir === undefined && ref === undefined
      ? undefined
      : (await context.client().get(path`/projects/${project}/services/${service}`, serviceViewSchema)).spec)
  const repositories = spec === undefined ? [] : [...new Set(sourcesOf(spec).map(({ repository }) => repository))]
  const content: NonNullable<DiffRequest['content']> = {}
  for (const [repository, folder] of byRepository('--dir', dir, repositories)) content[repository] = { archive: await pack(folder) }
  for (const [repository, name] of byRepository('--ref', ref, repositories)) {
    if (content[repository] !== undefined) throw new UsageError(`--dir and --ref both name repository ${repository}`)
    content[repository] = { ref: name }
  }
  const request: DiffRequest = {
    ...(cluster === undefined ? {} : { cluster }),
    ...(selector === undefined ? {} : { selector }),
    ...(Object.keys(content).length === 0 ? {} : { content }),
    ...(proposed === null ? {} : { service: proposed }),
  }
  return { project, service, request }
}

/** `VALUE` for the only repository, or `REPOSITORY=VALUE,…`. */
function byRepository(flag: string, text: string | undefined, repositories: readonly string[]): Array<[string, string]> {
  if (text === undefined) return []
  const parts = text.split(',').map((part) => /^([a-z0-9-]+)=(.+)$/s.exec(part))
  if (parts.every((part) => part !== null)) return parts.map((part) => [part[1] ?? '', part[2] ?? ''])
  const [only] = repositories
  if (only === undefined || repositories.length > 1)
    throw new UsageError(`the service reads ${repositories.join(', ')}; say which with ${flag} REPOSITORY=VALUE`)
  return [[only, text]]
}

async function readService(context: Context, filename: string, wanted: string | undefined): Promise<ServiceResource> {
  const files = await readResourceFiles([filename], false, () => readAll(context.io))
  const { read, problems } = parseResources(files)
  if (problems.length > 0) throw new UsageError(`the file is wrong\n${problems.map(shownProblem).join('')}`.trimEnd())
  const isService = (resource: Applicable): resource is ServiceResource => resource.kind === 'Service'
  const found = read.map(({ resource }) => resource).filter(isService)
  const services = found.filter(({ metadata }) => wanted === undefined || metadata.name === wanted)
  const [service] = services
  if (service === undefined || services.length > 1)
    throw new UsageError(`which service? ${filename} has ${found.map(({ metadata }) => metadata.name).join(', ') || 'none'}`)
  return service
}

function print(context: Context, view: DiffView, { output = 'diff' }: DiffOptions): number {
  const { stdout, stderr } = context.io
  if (output === 'json') stdout.write(`${JSON.stringify(view, null, 2)}\n`)
  else {
    for (const note of view.notes) stderr.write(`note: ${plainText(note)}\n`)
    for (const warning of view.warnings) stderr.write(`warning: ${shownProblem(warning)}`)
    for (const group of view.groups) {
      stdout.write(`# ${clustersText(group.clusters)}${PLACEMENTS[group.placement]}\n`)
      for (const object of group.objects) stdout.write(objectText(object, output, usesColour(context.io)))
    }
    stdout.write(`${summaryText(view)}\n`)
  }
  for (const { clusters, error, problems } of view.failing)
    stderr.write(`error: does not render for ${clustersText(clusters)}\n  ${plainText(error)}\n${problems.map(shownProblem).join('')}`)
  if (view.failing.length > 0) return FAILED
  return view.groups.length > 0 ? DIFFERS : SAME
}

const PLACEMENTS = { kept: '', added: ' (the service is added)', removed: ' (the service is removed)' } as const
const SIGNS = { create: '+', change: '~', delete: '-' } as const

function clustersText({ count, first }: { count: number; first: readonly string[] }): string {
  const more = count - first.length
  return `${countText(count, 'cluster')}: ${first.map(plainText).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

/** `12 change, 3 create, 1 delete in 240 of 1000 clusters`. */
export function summaryText({ clusters, objects }: Pick<DiffView, 'clusters' | 'objects'>): string {
  const failing = clusters.failing === 0 ? '' : `; does not render for ${clusters.failing}`
  const parts = (['change', 'create', 'delete'] as const).filter((action) => objects[action] > 0)
  if (parts.length === 0) return `no differences in ${countText(clusters.compared - clusters.failing, 'cluster')}${failing}`
  const counts = parts.map((action) => `${objects[action]} ${action}`).join(', ')
  return `${counts} in ${clusters.differing} of ${countText(clusters.compared, 'cluster')}${failing}`
}

function objectText({ action, name, before, after }: DiffObject, output: string, colours: boolean): string {
  const line = `${SIGNS[action]} ${plainText(name)}\n`
  if (output === 'summary' || (before === null && after === null)) return line
  const text = (object: DiffObject['before']) => (object === null ? '' : toYaml(object))
  const shown = (part: string) => plainText(part)
  const patch = unifiedDiff(text(before), text(after), before === null ? '/dev/null' : name, after === null ? '/dev/null' : name)
  const lines = patch.split('\n').map((part) => (colours ? coloured(shown(part)) : shown(part)))
  return lines.join('\n')
}

function coloured(line: string): string {
  const colour = line.startsWith('+') ? 32 : line.startsWith('-') ? 31 : line.startsWith('@@') ? 36 : null
  return colour === null ? line : `\u001b[${colour}m${line}\u001b[0m`
}
