// Jobs that render a service for one cluster, tell the version of a program, and check patches.
// Control keeps earlier answers of programs; a render asks it for them.

import type { RendererName } from '../../shared/model/render.ts'
import { AppError, type Problem } from '../../shared/runtime/error.ts'
import type { ConfigLayer } from '../render/config-merge.ts'
import { markBy, markPlacesBy } from '../render/for-people.ts'
import type { RemoteBase } from '../render/kustomize/remote.ts'
import { renderMessage } from '../render/liquid/message.ts'
import { checkPatchesHere } from '../render/patch/patches.ts'
import {
  explainCharts,
  type OpenSopsKey,
  type PipelineInput,
  type PipelineOutcome,
  type PipelineSource,
  runPipeline,
} from '../render/pipeline.ts'
import { toolName } from '../render/record/sandbox.ts'
import type { OpenedBase, Renderer } from '../render/renderer.ts'
import type { Sandbox } from '../render/sandbox.ts'
import type { Sources } from '../sources/sources.ts'
import {
  EXPLAINED_MAX,
  type Layer,
  LOOKS_BYTES_MAX,
  MESSAGE_MAX,
  PROBLEM_TEXT_MAX,
  PROBLEMS_MAX,
  type RenderOrder,
  ROWS_BYTES_MAX,
} from './channel/messages.ts'
import { dependenciesToLines, rowsToLines } from './channel/render-lines.ts'
import { fromWire, toWire } from './channel/wire-error.ts'
import { currentJob } from './current-job.ts'
import { createOnce } from './once.ts'
import type { Jobs } from './worker.ts'

export interface RenderJobsDeps {
  sources: Sources
  sandbox: Sandbox
  renderers: Readonly<Record<RendererName, Renderer>>
  /** WK7. Default: ROWS_BYTES_MAX. */
  rowsBytesMax?: number
}

const MIB = 1024 * 1024

export function createRenderJobs({
  sources,
  sandbox,
  renderers,
  rowsBytesMax = ROWS_BYTES_MAX,
}: RenderJobsDeps): Pick<Jobs, 'render' | 'helm.values' | 'object.origin' | 'tools.version' | 'patches.check' | 'texts.render'> {
  const once = createOnce({ get: answerBefore, put: keepAnswer })
  return {
    'tools.version': async ({ program }) => ({ value: { version: await sandbox.version(program) } }),
    'patches.check': async ({ project, sets }) => ({ value: { problems: bounded(await checkPatchesHere(project, sets)) } }),
    'texts.render': async ({ templates, message }) => ({ value: renderMessage(templates, message) }),
    'helm.values': async (order, signal) => {
      const deps = { renderers, sandbox, once, charts: chartsOf(sources), bases: basesOf(sources), openSops, signal }
      const values = await explainCharts(deps, await inputOf(sources, order))
      return { value: {}, data: new TextEncoder().encode(JSON.stringify(values.slice(0, EXPLAINED_MAX))) }
    },
    'object.origin': async ({ render, row }, signal) => {
      const deps = { renderers, sandbox, once, charts: chartsOf(sources), bases: basesOf(sources), openSops, signal }
      const { result } = await runPipeline(deps, { ...(await inputOf(sources, render)), wantsFiles: true })
      if (result instanceof AppError) throw result
      if (result.kind === 'failed') return { value: { origin: null, failed: result.message.slice(0, MESSAGE_MAX) } }
      const found = result.origins?.get(row)
      const origin = found === undefined ? null : { ...found, file: found.file?.slice(0, PROBLEM_TEXT_MAX) ?? null }
      return { value: { origin, failed: null } }
    },
    render: async (order, signal) => {
      const tools: Record<string, string | null> = {}
      const asked: Sandbox = {
        run: (run, until) => sandbox.run(run, until),
        async version(program) {
          const version = await sandbox.version(program)
          tools[toolName(program)] ??= version
          return version
        },
      }
      const outcome = await runPipeline(
        { renderers, sandbox: asked, once, charts: chartsOf(sources), bases: basesOf(sources), openSops, signal },
        await inputOf(sources, order),
      )
      return answerOf(outcome, tools, rowsBytesMax)
    },
  }
}

async function inputOf(sources: Sources, order: RenderOrder): Promise<PipelineInput> {
  const { id, namespace, render, cluster, settings, configs, seal, forPeople } = order
  const opened: PipelineSource[] = []
  for (const { name, label, at, render: own, filesOnly } of order.sources)
    opened.push({ name, label, render: own, filesOnly, opened: await sources.open(at.key).open(at.revision, at.pick) })
  return {
    ...{ id, render, cluster, sources: opened, forPeople: forPeople !== null },
    mark: (forPeople === 'compare' ? markPlacesBy : markBy)(order.mark),
    namespace: namespace ?? undefined,
    settings: { ...settings, config: { values: settings.config.values, secrets: new Set(settings.config.secrets) } },
    configs: new Map(configs.map(([name, layer]) => [name, layerOf(layer)])),
    seal: seal && { id: seal.id, mac: Buffer.from(seal.mac, 'base64url'), box: Buffer.from(seal.box, 'base64url') },
  }
}

/** Control has the keys, and answers with the data key of this file. */
const openSops: OpenSopsKey = async ({ age }) => {
  const { key, recipients } = (await currentJob().ask('sops.key', { age })).value
  return { key: key === null ? null : Buffer.from(key, 'base64'), recipients }
}

const layerOf = ({ values, secrets }: Layer): ConfigLayer => ({ values, secrets: new Set(secrets) })

/** Control chooses the Repository of the project that has the chart, and decides what may be read of it. */
function chartsOf(sources: Sources) {
  return async (repository: string, name: string, version: string): Promise<ReadonlyMap<string, Uint8Array>> => {
    const { value: key } = await currentJob().ask('chart', { repository, name, version })
    const source = sources.open(key)
    if (source.chart === undefined)
      throw new AppError('source_refused', { detail: `the chart ${name} ${version} of ${repository}: that Repository has no charts` })
    const { tree, root } = await source.chart(repository, name, version)
    return new Map([...(await tree.files(root, () => true))].map(([path, { bytes }]) => [path, bytes]))
  }
}

/** Control says which revision counts for this render, and fetches what is not here. */
function basesOf(sources: Sources) {
  const ask = async (base: RemoteBase, lost: string | null) => (await currentJob().ask('base', { base, lost })).value
  return async (base: RemoteBase): Promise<OpenedBase> => {
    const first = await ask(base, null)
    const isLost = first.kind === 'ready' && !(await sources.open(first.key).has(first.revision))
    const answer = isLost ? await ask(base, first.revision) : first
    if (answer.kind === 'pending') return answer
    if (answer.kind === 'failed') {
      const error = fromWire(answer.error)
      if (!(error instanceof AppError)) throw error
      return { kind: 'failed', error }
    }
    const { tree } = await sources.open(answer.key).open(answer.revision, { path: '.' })
    return { kind: 'ready', tree, revision: answer.revision }
  }
}

function answerOf({ result, reads, late }: PipelineOutcome, tools: Record<string, string | null>, rowsBytesMax: number) {
  const dependencies = dependenciesToLines(reads.dependencies)
  if (dependencies.byteLength > LOOKS_BYTES_MAX)
    throw new AppError('source_refused', {
      detail: `the render has ${reads.dependencies.length} dependencies, more than the limit; split the service`,
    })
  const places = { dependenciesBytes: dependencies.byteLength, secret: reads.secret, late, tools }
  if (result instanceof AppError) return { value: { kind: 'error', error: toWire(result), ...places }, data: dependencies }
  if (result.kind === 'failed')
    return {
      value: { ...result, message: result.message.slice(0, MESSAGE_MAX), problems: bounded(result.problems), ...places },
      data: dependencies,
    }
  const { digest, hooks, warnings, objects } = result
  const rows = rowsToLines(objects)
  if (rows.byteLength > rowsBytesMax) {
    const message = `its output has ${Math.ceil(rows.byteLength / MIB)} MiB of objects, more than ${Math.ceil(rowsBytesMax / MIB)}; split the service`
    return { value: { kind: 'failed', code: 'render_failed', message, problems: [], ...places }, data: dependencies }
  }
  return { value: { kind: 'rendered', digest, hooks, warnings: bounded(warnings), ...places }, data: Buffer.concat([dependencies, rows]) }
}

/** Content can make thousands of problems, and long texts in each. */
const bounded = (problems: readonly Problem[]): Problem[] =>
  problems.slice(0, PROBLEMS_MAX).map(({ path, message, ...rest }) => ({
    ...rest,
    ...{ path: path.slice(0, PROBLEM_TEXT_MAX), message: message.slice(0, PROBLEM_TEXT_MAX) },
  }))

async function answerBefore(parts: string): Promise<Uint8Array | null> {
  const { value, data } = await currentJob().ask('answer.get', { parts })
  return value.found ? data : null
}

async function keepAnswer(parts: string, answer: Uint8Array, secret: boolean): Promise<undefined> {
  return (await currentJob().ask('answer.put', { parts, secret }, answer)).value
}
