// One service out of files on this machine, by the very pipeline of the server: only where sources, Configs and facts
// come from is another matter.
import { join } from 'node:path'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import type { RendererName } from '../../shared/model/render.ts'
import type { RenderView } from '../../shared/model/render-views.ts'
import { type Applicable, type NamedSource, type ServiceResource, sourcesOf } from '../../shared/model/resources.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { mayShowSecret, whyWithoutContents, withoutContents } from '../render/for-people.ts'
import { isTemplateText } from '../render/name-template.ts'
import type { RenderResult } from '../render/object-rows.ts'
import { settingsFor } from '../render/overrides-of.ts'
import type { JsonMap } from '../render/patch/merge.ts'
import { type PipelineSource, runPipeline } from '../render/pipeline.ts'
import type { Renderer } from '../render/renderer.ts'
import type { Sandbox } from '../render/sandbox.ts'
import { createFolderTree } from '../sources/folder-tree.ts'
import { greatestVersion } from '../sources/range.ts'
import { pathSegments, type SourceTree } from '../sources/source.ts'
import { configLayers, folderOf, type LocalCluster } from './read-job.ts'

export interface LocalRender {
  service: ServiceResource
  resources: readonly Applicable[]
  cluster: LocalCluster | null
  /** `PATH`, or `REPOSITORY=PATH,…`. */
  dirs: string
  /** The version that the sources are taken to have. */
  version: string
}

export interface LocalRenderDeps {
  renderers: Readonly<Record<RendererName, Renderer>>
  sandbox: Sandbox
  signal: AbortSignal
  /** The mark for a text of a Secret. */
  mark(text: string): string
}

/** Without what only a server knows: notes and tools. */
export type LocalView = Pick<RenderView, 'digest' | 'objects' | 'warnings' | 'error' | 'problems'>

/** Throws what is wrong with the folders or this machine; what is wrong with the manifests is in the view. */
export async function renderLocally(deps: LocalRenderDeps, job: LocalRender): Promise<LocalView> {
  const { metadata, spec } = job.service
  const id = { project: metadata.project, service: metadata.name }
  const configs = configLayers(job.resources, id.project)
  const missing = (spec.configFrom ?? []).filter(({ name, optional }) => optional !== true && !configs.has(name))
  if (missing.length > 0)
    throw new AppError('bad_options', {
      detail: `the files have no Config ${missing.map(({ name }) => name).join(', ')} of project ${id.project}`,
      remedy: 'Add it with -f or --config, or mark it optional in spec.configFrom.',
    })
  const layers = (spec.configFrom ?? []).flatMap(({ name }) => configs.get(name) ?? [])
  const { inputs, spec: own } = job.cluster ?? {}
  const settings = settingsFor(id, spec, layers)({ labels: inputs?.labels ?? {}, config: own?.config, overrides: own?.overrides })
  const sources: PipelineSource[] = []
  for (const source of sourcesOf(spec)) sources.push(await openSource(job, source))
  const { sandbox, renderers, signal } = deps
  const pipeline = { sandbox, renderers, signal, once: (_: unknown, run: () => Promise<Uint8Array>) => run() }
  const input = {
    ...{ id, sources, configs, settings, mark: deps.mark },
    ...{ namespace: spec.namespace, render: spec.render ?? {}, cluster: inputs ?? null },
  }
  const { result, reads } = await runPipeline(pipeline, input)
  if (result instanceof AppError) throw result
  if (result.kind === 'failed' || (!reads.secret && ![...result.objects].some(([row, text]) => mayShowSecret(id, row, text))))
    return viewOf(result)
  const { result: marked } = await runPipeline(pipeline, { ...input, forPeople: true })
  if (!(marked instanceof AppError) && marked.kind === 'rendered') return viewOf({ ...result, objects: marked.objects })
  const warning = { path: 'render', message: whyWithoutContents(marked.message) }
  return viewOf({ ...result, objects: withoutContents(result.objects), warnings: [...result.warnings, warning] })
}

function viewOf(result: RenderResult): LocalView {
  if (result.kind === 'failed') return { digest: null, objects: [], warnings: [], error: result.message, problems: result.problems }
  const objects = [...result.objects].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, text]) => JSON.parse(text) as JsonMap)
  return { digest: result.digest, objects, warnings: result.warnings, error: null, problems: [] }
}

async function openSource({ dirs, version }: LocalRender, source: NamedSource): Promise<PipelineSource> {
  const { repository, name, render, filesOnly = false } = source
  const folder = folderOf(dirs, repository)
  if (folder === null)
    throw new AppError('bad_options', {
      detail: `--dir does not name the folder of repository ${repository}`,
      remedy: `Add ${repository}=PATH to --dir.`,
    })
  const tree = createFolderTree(folder)
  const root =
    source.chart === undefined
      ? pathSegments(source.path ?? '.').join('/')
      : await chartRoot(tree, { ...source, chart: source.chart }, folder)
  // RD11: of a template it is known later, for each cluster.
  const there = isTemplateText(root) ? '' : root
  if ((await tree.list(there)) === null)
    throw new AppError('not_found', {
      detail: `folder ${join(folder, there)} does not exist`,
      remedy: 'Correct --dir, or the path of the source.',
    })
  return { name, label: name ?? repository, opened: { tree, root, version }, render, filesOnly }
}

interface ChartPick {
  repository: string
  chart: string
  version?: string | undefined
}

/** A folder of charts, or the chart itself, in a version that the server would take; anything else is no chart. */
async function chartRoot(tree: SourceTree, { repository, chart, version: range }: ChartPick, folder: string): Promise<string> {
  for (const root of [chart, '']) {
    const found = await chartIn(tree, root)
    if (found?.name !== chart) continue
    if (range === undefined || greatestVersion([found.version], range) !== null) return root
    throw new AppError('source_refused', {
      detail: `chart ${chart} of ${repository}: ${join(folder, root)} has ${found.version}, which is not in ${range}`,
      remedy: 'Use the chart in such a version (helm pull --untar --version), or correct the version of the source.',
    })
  }
  throw new AppError('source_refused', {
    detail: `${repository} holds no chart ${chart}: neither ${folder} nor ${join(folder, chart)} has a Chart.yaml of that name`,
    remedy: `Correct --dir ${repository}=PATH: the chart's folder, or the folder that it is in.`,
  })
}

async function chartIn(tree: SourceTree, root: string): Promise<{ name: string; version: string } | null> {
  const file = await tree.file(root === '' ? 'Chart.yaml' : `${root}/Chart.yaml`)
  if (file === null) return null
  const [document] = parseYamlDocuments(new TextDecoder().decode(file.bytes), { file: 'Chart.yaml' }).documents
  const { name, version } = Object(document?.value) as { name?: unknown; version?: unknown }
  return { name: String(name ?? ''), version: String(version ?? '') }
}
