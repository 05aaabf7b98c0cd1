// One service for one cluster, or for none: its sources at their revisions → its objects, and all dependencies of the
// result. Knows no store and no clusters but the given one, so that the server and `skerry render` on a person's
// machine run the same code.
import type { K8sObject } from '../../shared/kube/object.ts'
import type { Patch, RendererName, RenderSpec } from '../../shared/model/render.ts'
import type { ExplainedValue } from '../../shared/model/render-views.ts'
import type { SealingKeys } from '../../shared/model/sealed-object.ts'
import { AppError, type Problem } from '../../shared/runtime/error.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import type { SopsParcel } from '../../shared/sops/parcel.ts'
import { type OpenedSource, pathSegments } from '../sources/source.ts'
import type { ConfigLayer, MergedConfig } from './config-merge.ts'
import { type ExcerptSource, withExcerpts } from './excerpts.ts'
import { dependsOnCluster, doubted } from './for-nobody.ts'
import { readChart } from './helm/chart.ts'
import { explainHelmValues } from './helm/explain.ts'
import { gatherValues } from './helm/layers.ts'
import type { ClusterInputs, InputRead, Reads, RenderInputs } from './inputs.ts'
import { baseName, type RemoteBase } from './kustomize/remote.ts'
import { Meter } from './liquid/limits.ts'
import { type Manifest, type Manifests, readManifests } from './manifests.ts'
import { type Mark, markedMapping, markedObject, markedValue, onceMarked, PLAIN_MARK, withMarks } from './marks.ts'
import { failedRender, noManifests, type RenderResult, rowsOf, versionText } from './object-rows.ts'
import { withOrigins } from './origins.ts'
import type { RenderSettings } from './overrides-of.ts'
import { applyPatches } from './patch/patches.ts'
import { ProgramStopped } from './program-answer.ts'
import { recordedInputs } from './record/inputs.ts'
import { boundedRead, createRecorder, type Recorder } from './record/reads.ts'
import { recordedSandbox } from './record/sandbox.ts'
import { recordedTree } from './record/tree.ts'
import { type RenderBounds, refusedRenderer } from './render-bounds.ts'
import type { JobSource, OpenedBase, Renderer, RendererResult, RenderJob } from './renderer.ts'
import { type ChosenRenderer, chooseRenderer, missingFolder, unheardOptions, unheardOverrides } from './renderer-of.ts'
import { hasTexts, retold } from './retold.ts'
import { mayPassLater, type Sandbox } from './sandbox.ts'
import { openParcel } from './sops/clear-file.ts'
import { sopsFilesOf, sopsRows } from './sops/documents.ts'
import { placeSources } from './source-roots.ts'

export interface PipelineSource {
  /** By which others name it. */
  name: string | undefined
  /** For messages, where there are several: its name or that of its repository. */
  label: string
  opened: OpenedSource
  /** Absent means of the service. */
  render: RenderSpec | undefined
  /** Nothing is rendered of it. */
  filesOnly: boolean
}

export interface PipelineInput {
  id: ServiceId
  namespace: string | undefined
  /** The service's render options. */
  render: RenderSpec
  sources: readonly PipelineSource[]
  /** Null for a render without a cluster. */
  cluster: ClusterInputs | null
  settings: RenderSettings
  /** The project's Configs that the service names. */
  configs: ReadonlyMap<string, ConfigLayer>
  /** Seals the rows that hold secrets. Absent means that rows stay in clear, as on somebody's desk. */
  seal?: SealingKeys | undefined
  /** Stands for secrets in texts and in renders for people. Absent means one mark for all. */
  mark?: Mark | undefined
  /** The result is shown: it is rendered with marks in place of all secrets. */
  forPeople?: boolean | undefined
  /** The result says of which file each object is made. */
  wantsFiles?: boolean | undefined
}

export interface PipelineDeps {
  renderers: Readonly<Record<RendererName, Renderer>>
  sandbox: Sandbox
  /** `secret`: asked when it is done, whether a secret may be in it. */
  once(parts: readonly string[], run: () => Promise<Uint8Array>, secret: () => boolean): Promise<Uint8Array>
  charts?: RenderJob['charts']
  bases?: RenderJob['bases']
  /** Data key of a SOPS file. Absent means that there are no keys here. */
  openSops?: OpenSopsKey
  signal: AbortSignal
}

/** `recipients`: of the keys that are here, for messages. */
export type OpenSopsKey = (parcel: SopsParcel) => Promise<{ key: Uint8Array | null; recipients: string[] }>

export interface PipelineOutcome {
  /** An error: what is wrong with this server, or with reading a source. */
  result: RenderResult | AppError
  /** Until it ended, however it ended. */
  reads: Reads
  /** A program ran out of time, or was ended from outside. */
  late: boolean
}

/** Renders one service for one cluster. What is wrong with its files or with this server is the outcome's result, never
 *  thrown; `reads` has every look until then, also of a render that failed. Throws only what no part of it expects. */
export async function runPipeline(deps: PipelineDeps, input: PipelineInput): Promise<PipelineOutcome> {
  const recorder = createRecorder()
  const result = await attempt(deps, input, recorder)
  const isSecret = recorder.hasSecret() && input.forPeople !== true && hasTexts(result)
  // CG2: what the texts would say without the secrets.
  const said = isSecret ? retold(result, await attempt(deps, { ...input, forPeople: true }, createRecorder())) : result
  return { result: said, reads: recorder.reads(), late: recorder.wasLate() }
}

async function attempt(deps: PipelineDeps, input: PipelineInput, recorder: Recorder): Promise<RenderResult | AppError> {
  try {
    return await renderSources(deps, input.forPeople === true ? marked(input) : input, recorder)
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    return error
  }
}

const markOf = ({ mark = PLAIN_MARK }: PipelineInput): Mark => mark

function marked(input: PipelineInput): PipelineInput {
  const { settings } = input
  const mark = onceMarked(markOf(input))
  return { ...input, mark, settings: { ...settings, config: withMarks(settings.config, mark) }, seal: undefined }
}

/** A chart or a remote base that could not be had leaves nothing to know the render by: it is no result, but an error
 *  that is not kept. */
async function renderSources(deps: PipelineDeps, input: PipelineInput, recorder: Recorder): Promise<RenderResult> {
  const { charts, bases } = deps
  const lacking: AppError[] = []
  const noted = async (...asked: Parameters<NonNullable<typeof charts>>) => {
    try {
      return (await charts?.(...asked)) ?? new Map<string, Uint8Array>()
    } catch (error) {
      if (error instanceof AppError) lacking.push(error)
      throw error
    }
  }
  const notedBase = async (base: RemoteBase): Promise<OpenedBase> => {
    recorder.input(['bases', baseName(base)])
    const opened = (await bases?.(base)) ?? { kind: 'pending' }
    if (opened.kind === 'pending') lacking.push(new AppError('source_unreachable', PENDING))
    if (opened.kind === 'failed') lacking.push(new AppError(opened.error.code, { ...opened.error.data, remedy: BASE_REMEDY }))
    return opened
  }
  const asked = { ...deps, ...(charts === undefined ? {} : { charts: noted }), ...(bases === undefined ? {} : { bases: notedBase }) }
  const result = await renderParts(asked, input, recorder)
  const [first] = lacking
  if (first === undefined || result.kind !== 'failed') return result
  throw new AppError(first.code, { ...first.data, problems: result.problems }, { cause: first })
}

const BASE_REMEDY =
  'Correct the address of the remote base in the kustomization, or name a Config that is bound to its host in render.kustomize.remoteBaseSecretRefs.'
const PENDING = { detail: 'a remote base is being fetched', remedy: 'No action needed: it is rendered again when the base is available.' }

/**
 * Values of each chart of a service, for people (CG9): read with marks in place of secrets, so that not even the name
 * of a values file shows one. What is wrong with them, the render tells.
 */
export async function explainCharts(deps: PipelineDeps, given: PipelineInput): Promise<ExplainedValue[]> {
  const unplaced = marked({ ...given, forPeople: true })
  const recorder = createRecorder()
  const place = placeSources(unplaced.sources, (index) => inputsOf(unplaced, index))
  if (place.kind === 'refused') return []
  const input = { ...unplaced, sources: place.sources }
  const jobs = place.sources.map(({ opened: { tree, root } }): JobSource => ({ tree, root }))
  const named = new Map(
    place.sources.flatMap(({ name }, index) => (name === undefined || jobs[index] === undefined ? [] : [[name, jobs[index]]])),
  )
  const found: ExplainedValue[] = []
  for (const [index, source] of place.sources.entries()) {
    const job = jobs[index]
    const spec = source.render ?? input.render
    if (source.filesOnly || job === undefined || (await chooseRenderer(spec, job)).renderer !== 'helm') continue
    const chartJob = jobOf(deps, input, { index, job, named, spec, recorder })
    const [chart, values] = [await readChart(chartJob), await gatherValues(chartJob)]
    if (chart.kind === 'chart' && values.kind === 'values') found.push(...explainHelmValues(chart.chart, values.layers, source.label))
  }
  return found
}

async function renderParts(deps: PipelineDeps, unplaced: PipelineInput, recorder: Recorder): Promise<RenderResult> {
  const place = placeSources(unplaced.sources, (index) =>
    recordedInputs(inputsOf(unplaced, index), (path) => noteInput(recorder, unplaced.settings.config, index, path)),
  )
  if (place.kind === 'refused') return failedRender(isForNobody(unplaced, recorder) ? doubted(place.problems) : place.problems)
  const { sources } = place
  const input = { ...unplaced, sources }
  const jobs = sources.map(({ opened: { tree, root } }, index): JobSource => ({ tree: recordedTree(tree, index, recorder.file), root }))
  const named = new Map<string, JobSource>()
  for (const [index, { name }] of sources.entries()) if (name !== undefined && jobs[index] !== undefined) named.set(name, jobs[index])
  const parts: Part[] = []
  const chosen: Array<{ source: PipelineSource; index: number; renderer: ChosenRenderer }> = []
  for (const [index, source] of sources.entries()) {
    const job = jobs[index]
    if (source.filesOnly || job === undefined) continue
    const spec = source.render ?? input.render
    const renderer = await chooseRenderer(spec, job)
    chosen.push({ source, index, renderer })
    const rendered =
      refused(renderer) ??
      refusedByProject(boundsOf(input, recorder), renderer) ??
      (await deps.renderers[renderer.renderer](jobOf(deps, input, { index, job, named, spec, recorder })))
    const isDoubtful = isForNobody(input, recorder)
    const part = partOf(source, sources, rendered, { ofInputs: isDoubtful, ofTexts: isDoubtful && renderer.renderer !== 'raw' })
    if (input.wantsFiles === true && rendered.kind === 'rendered')
      part.found = await withOrigins(part.found, { label: source.label, prefix: prefixOf(source, sources), tree: job.tree }, rendered)
    const missing = part.found.length > 0 ? null : await missingFolder(job, versionText(source.opened.version))
    if (missing !== null && sources.length === 1) return { kind: 'failed', code: 'no_manifests', message: missing, problems: [] }
    // RD6: of several sources one that lost its files would take its objects with it.
    const isBare = renderer.renderer === 'raw' && sources.length > 1 && part.found.length === 0 && part.problems.length === 0
    const empty = missing ?? (isBare ? noManifests(job.root === '' ? '.' : job.root, source.opened.version) : null)
    parts.push(empty === null ? part : { ...part, problems: [{ path: `${source.label}/${job.root}`, message: empty }] })
  }
  const result = finish(input, parts, unheard(input, chosen, recorder), recorder)
  const texts = sources.flatMap((source, index): ExcerptSource[] => {
    const files = parts.find((part) => part.source === source)?.files ?? new Map<string, Uint8Array>()
    return jobs[index] === undefined ? [] : [{ prefix: prefixOf(source, sources), source: jobs[index], files }]
  })
  return result.kind === 'failed'
    ? { ...result, problems: await withExcerpts(result.problems, texts) }
    : { ...result, warnings: await withExcerpts(result.warnings, texts) }
}

/** RD1: null if the renderer may run. */
function refused({ refusal, folder, file }: ChosenRenderer): RendererResult | null {
  if (refusal === undefined) return null
  return { kind: 'failed', problems: [{ path: [...pathSegments(folder), file ?? ''].join('/'), message: refusal }] }
}

/** PJ6: namespace metadata needs v1/Namespace. */
function refusedByProject(bounds: RenderBounds | undefined, { renderer, folder, file }: ChosenRenderer): RendererResult | null {
  const message = bounds === undefined ? null : refusedRenderer(bounds, renderer)
  return message === null ? null : { kind: 'failed', problems: [{ path: [...pathSegments(folder), file ?? ''].join('/'), message }] }
}

/** A render in a project with a boundary always looks at it. */
function boundsOf({ settings: { bounds } }: PipelineInput, recorder: Recorder): RenderBounds | undefined {
  if (bounds !== undefined) recorder.input(['bounds'])
  return bounds
}

/** RD5: options that no source is rendered by are an error. */
function unheard(
  { render, settings }: PipelineInput,
  chosen: ReadonlyArray<{ source: PipelineSource; index: number; renderer: ChosenRenderer }>,
  recorder: Recorder,
): Problem[] {
  const shared = chosen.filter(({ source }) => source.render === undefined).map(({ renderer }) => renderer)
  const problems = unheardOptions(render, 'render', shared)
  for (const { source, index, renderer } of chosen)
    if (source.render !== undefined) problems.push(...unheardOptions(source.render, `sources[${index}].render`, [renderer]))
  const all = chosen.map(({ renderer }) => renderer)
  if (all.some(({ renderer }) => renderer === 'helm')) return problems
  recorder.input(['values'])
  return [...problems, ...unheardOverrides(settings.helmValues, all)]
}

interface JobParts {
  index: number
  job: JobSource
  named: ReadonlyMap<string, JobSource>
  spec: RenderSpec
  recorder: Recorder
}

function jobOf({ sandbox, once, charts, bases, openSops, signal }: PipelineDeps, input: PipelineInput, parts: JobParts): RenderJob {
  const { id, namespace, settings, configs } = input
  let secretReads = 0
  const { index } = parts
  const recorder: Recorder = {
    ...parts.recorder,
    secret() {
      secretReads++
      parts.recorder.secret()
    },
  }
  const plainInputs = inputsOf(input, index)
  const note = (path: InputRead) => noteInput(recorder, settings.config, index, path)
  return {
    ...{ id, namespace, spec: parts.spec, source: parts.job, named: parts.named, signal, plainInputs },
    wantsFiles: input.wantsFiles === true,
    once: (names, run) =>
      once(names, run, recorder.hasSecret).catch((error: unknown) => {
        // Another render may have been the one that ran it.
        if (error instanceof ProgramStopped && mayPassLater(error.stop)) recorder.late()
        throw error
      }),
    inputs: recordedInputs(plainInputs, note),
    meter: new Meter(),
    recordInput: note,
    secretReads: () => secretReads,
    get values() {
      recorder.input(['values'])
      return settings.helmValues
    },
    configValue(name, key, isMapping = false) {
      recorder.input(['configs', name, key])
      const config = configs.get(name)
      if (config === undefined || !Object.hasOwn(config.values, key)) return undefined
      const value = config.values[key]
      if (config.secrets?.has(key) !== true) return value
      recorder.secret()
      if (input.forPeople !== true) return value
      return (isMapping && typeof value === 'string' ? markedMapping(value, markOf(input)) : null) ?? markedValue(value, markOf(input))
    },
    async openSops(parcel) {
      recorder.input(['sops'])
      const { key, recipients } = (await openSops?.(parcel)) ?? { key: null, recipients: [] }
      if (key === null) return { kind: 'closed', recipients }
      recorder.secret()
      return openParcel(
        parcel,
        key,
        input.forPeople === true ? (value, path) => markOf(input)(String(value), `sops/${path.join('/')}`) : undefined,
      )
    },
    sandbox: recordedSandbox(sandbox, (tool) => recorder.input(['tools', tool]), recorder.late),
    ...(charts === undefined ? {} : { charts }),
    ...(bases === undefined ? {} : { bases }),
  }
}

const inputsOf = ({ id, namespace, cluster, settings, sources }: PipelineInput, index: number): RenderInputs => ({
  cluster,
  config: settings.config.values,
  service: { name: id.service, project: id.project, namespace: namespace ?? null },
  source: { version: sources[index]?.opened.version ?? '' },
})

/**
 * An input that every render of the service shares (its own name) is no dependency; inputs of a source are separated by
 * its number.
 */
function noteInput(recorder: Recorder, config: MergedConfig, source: number, unbounded: InputRead): void {
  const path = boundedRead(unbounded)
  const [first, second] = path
  if (first === undefined) for (const member of ['cluster', 'config', 'source']) noteInput(recorder, config, source, [member])
  else if (first === 'source') recorder.input(['source', String(source), ...path.slice(1)])
  else if (first !== 'service') recorder.input(path)
  const isSecret = second === undefined ? config.secrets.size > 0 : config.secrets.has(second)
  if (first === 'config' && isSecret) recorder.secret()
}

/** The result of one source. */
interface Part extends Manifests {
  source: PipelineSource
  files: ReadonlyMap<string, Uint8Array>
}

const prefixOf = ({ label }: PipelineSource, all: readonly PipelineSource[]): string => (all.length > 1 ? `${label}/` : '')

/** RD10: whether a cluster may bring what is missing. */
const isForNobody = ({ cluster, settings }: PipelineInput, recorder: Recorder): boolean =>
  cluster === null && dependsOnCluster(recorder.reads().inputs, settings.leavesOut === true)

/** RD10: whether what is wrong may be so for want of a cluster, in a program's words and in what it wrote. */
interface Doubts {
  ofInputs: boolean
  ofTexts: boolean
}

function partOf(source: PipelineSource, all: readonly PipelineSource[], result: RendererResult, doubts: Doubts): Part {
  const prefixed = (path: string) => prefixOf(source, all) + path
  /** A file of another source (`$NAME/…`) is that one's. */
  const placed = (path: string) =>
    all.some(({ name }) => name !== undefined && path.startsWith(`$${name}/`)) ? path.slice(1) : prefixed(path)
  const originals = result.kind === 'rendered' ? result.originals : undefined
  const read = readManifests(result.files ?? new Map(), prefixed, originals === undefined ? undefined : sopsFilesOf(originals))
  const own = (problems: readonly Problem[]) => problems.map((problem) => ({ ...problem, path: placed(problem.path) }))
  const problems = [
    ...own(result.kind === 'failed' ? toldFor(result, doubts.ofInputs) : []),
    ...(doubts.ofTexts ? doubted(read.problems) : read.problems),
  ]
  const warnings = [...(result.kind === 'rendered' ? own(result.warnings) : []), ...read.warnings]
  return { source, files: result.files ?? new Map(), found: read.found, problems, warnings }
}

function toldFor({ problems, ofInputs = [] }: Extract<RendererResult, { kind: 'failed' }>, isDoubtful: boolean): Problem[] {
  const some = new Set(isDoubtful ? ofInputs : [])
  return problems.flatMap((problem) => (some.has(problem) ? doubted([problem]) : [problem]))
}

/** With the render spec that its labels come from. */
interface Owned extends Manifest {
  render: RenderSpec
}

/** RD3: patches of a source of its own, then the service's for all that have none, then those of the overrides for
 *  everything; last of all common labels. */
function finish(input: PipelineInput, parts: readonly Part[], unheard: readonly Problem[], recorder: Recorder): RenderResult {
  recorder.input(['patches'])
  const problems = [...unheard, ...parts.flatMap((part) => part.problems)]
  const patched = (found: readonly Owned[], from: string, patches: readonly Patch[]): readonly Owned[] => {
    // An object that is missing because of another error is no error of a patch.
    if (patches.length === 0 || problems.length > 0) return found
    const result = applyPatches(found, patches, from, input.namespace)
    if (result.kind === 'patched') return result.found
    problems.push(...result.problems)
    return found
  }
  const owned = ({ source, found }: Part): Owned[] => found.map((one) => ({ ...one, render: source.render ?? input.render }))
  const shared = parts.filter(({ source }) => source.render === undefined).flatMap(owned)
  let found = patched(shared, 'render.patches', input.render.patches ?? [])
  for (const part of parts)
    if (part.source.render !== undefined)
      found = [...found, ...patched(owned(part), `render.patches of ${part.source.label}`, part.source.render.patches ?? [])]
  for (const { from, patches } of input.settings.patches) found = patched(found, `${from}.patches`, patches)
  const { root = '', version = '' } = input.sources[0]?.opened ?? {}
  const about = {
    ...input.id,
    namespace: input.namespace,
    path: root === '' ? '.' : root,
    commit: version,
    isDoubtful: isForNobody(input, recorder),
    bounds: boundsOf(input, recorder),
    seal: input.seal === undefined ? undefined : { keys: input.seal, all: recorder.hasSecret() },
  }
  const rows = sopsRows(found.map(withCommon), problems)
  const shown = input.forPeople === true ? rows.map((row) => ({ ...row, object: markedObject(row.object, markOf(input)) })) : rows
  return rowsOf(about, { found: shown, problems, warnings: parts.flatMap(({ warnings }) => warnings) })
}

/** RD4: as kustomize has it, what is common wins. */
function withCommon({ render, ...manifest }: Owned): Manifest {
  const { commonLabels, commonAnnotations } = render
  if (commonLabels === undefined && commonAnnotations === undefined) return manifest
  const { object } = manifest
  const metadata: K8sObject['metadata'] = { ...object.metadata }
  if (commonLabels !== undefined) metadata.labels = { ...metadata.labels, ...commonLabels }
  if (commonAnnotations !== undefined) metadata.annotations = { ...metadata.annotations, ...commonAnnotations }
  return { ...manifest, object: { ...object, metadata } }
}
