// render: what a service renders to on the server. Rendering on this machine is a verb of its own.
import { type RenderOutput, renderText } from '../../shared/adapters/render-text.ts'
import { type ExplainedValue, renderViewSchema, type VariantsView, variantsViewSchema } from '../../shared/model/render-views.ts'
import { path } from './client.ts'
import { countText, plainText } from './columns.ts'
import type { Context } from './context.ts'
import { UsageError } from './io.ts'
import { shownProblem } from './shown-problem.ts'

export interface RenderOptions {
  project: string
  cluster?: string | undefined
  allClusters?: true | undefined
  explain?: true | undefined
  output?: RenderOutput | undefined
}

/** Resolves with the exit code. */
export async function render(context: Context, name: string | undefined, options: RenderOptions): Promise<number> {
  if (name === undefined) throw new UsageError('service missing: give its name, or -f FILE --dir PATH to render on this machine')
  const { project, cluster, allClusters, explain, output = 'yaml' } = options
  if (explain && allClusters) throw new UsageError('give --explain or --all-clusters')
  if (allClusters && cluster !== undefined) throw new UsageError('give --cluster or --all-clusters')
  const { stdout, stderr } = context.io
  const address = path`/projects/${project}/services/${name.replace(/^(svc|services?)\//, '')}`
  if (allClusters) {
    const view = await context.client().get(`${address}/variants`, variantsViewSchema)
    stdout.write(output === 'json' ? `${JSON.stringify(view, null, 2)}\n` : variantsText(view))
    return view.failing.length > 0 ? 1 : 0
  }
  const query = new URLSearchParams({ ...(cluster === undefined ? {} : { cluster }), ...(explain ? { explain: 'true' } : {}) })
  const view = await context.client().get(`${address}/render${query.size === 0 ? '' : `?${query}`}`, renderViewSchema)
  if (view.note !== null) stderr.write(`note: ${plainText(view.note)}\n`)
  for (const warning of view.warnings) stderr.write(`warning: ${shownProblem(warning)}`)
  stdout.write(explain ? valuesText(view.values ?? [], output) : renderText(view, output))
  if (view.error === null) return 0
  stderr.write(`error: ${plainText(view.error)}\n${view.problems.map(shownProblem).join('')}`)
  return 1
}

function valuesText(values: readonly ExplainedValue[], output: RenderOutput): string {
  if (output === 'json') return `${JSON.stringify(values, null, 2)}\n`
  if (output === 'name') return values.map(({ path: at }) => `${at}\n`).join('')
  if (values.length === 0) return 'No variables.\n'
  const titled = [...Map.groupBy(values, ({ helm }) => helm)].map(([helm, of]) => {
    const title = helm === undefined ? '' : `${values[0]?.helm === undefined ? '\n' : ''}Helm values of ${plainText(helm)}:\n`
    return title + valueLines(of)
  })
  return titled.join('')
}

function valueLines(values: readonly ExplainedValue[]): string {
  const shown = values.map(({ path: at, value, from, over }) => [
    plainText(at),
    plainText(JSON.stringify(value)),
    plainText(from),
    over.length === 0 ? '' : `over ${over.toReversed().map(plainText).join(', ')}`,
  ])
  const width = (column: number) => Math.max(0, ...shown.map((row) => Bun.stringWidth(row[column] ?? '')))
  const widths = [width(0), width(1), width(2)]
  const line = (row: string[]) =>
    row.map((text, at) => text + ' '.repeat(Math.max(0, (widths[at] ?? 0) - Bun.stringWidth(text)))).join('  ')
  return shown.map((row) => `${line(row).trimEnd()}\n`).join('')
}

const CLUSTERS_NAMED_MAX = 10

function variantsText({ variants, failing }: VariantsView): string {
  if (variants.length + failing.length === 0) return 'The service is not placed in any cluster.\n'
  const named = (clusters: readonly string[]) => {
    const more = clusters.length - CLUSTERS_NAMED_MAX
    return `${clusters.slice(0, CLUSTERS_NAMED_MAX).map(plainText).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
  }
  const lines = variants.map(
    ({ digest, objects, clusters }) =>
      `${digest.slice(0, 12)}  ${countText(objects, 'object')} in ${countText(clusters.length, 'cluster')}: ${named(clusters)}\n`,
  )
  const failed = failing.map(
    ({ error, clusters, problems }) =>
      `does not render for ${countText(clusters.length, 'cluster')}: ${named(clusters)}\n  ${plainText(error)}\n${problems.map(shownProblem).join('')}`,
  )
  return `${variants.length === 1 ? 'One render for all of them' : `${variants.length} different renders`}:\n${[...lines, ...failed].join('')}`
}
