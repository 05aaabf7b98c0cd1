// The job that renders one service for one cluster, and the one that says of which version a program is. What programs said before is asked of control, which keeps it.
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { AppError } from '../../shared/protocol/error.ts'
import { SizedCache } from '../sources/sized-cache.ts'
import type { Sources } from '../sources/sources.ts'
import { createInFlight } from '../sources/in-flight.ts'
import { isFailedAnswer } from '../render/program-answer.ts'
import { type PipelineInput, type PipelineOutcome, type PipelineSource, runPipeline } from '../render/pipeline.ts'
import { toolName } from '../render/record/sandbox.ts'
import type { Renderer } from '../render/renderer.ts'
import type { Sandbox } from '../render/sandbox.ts'
import type { RendererName } from '../../shared/model/render.ts'
import type { ConfigLayer } from '../render/config-merge.ts'
import type { Layer, RenderOrder } from './channel/messages.ts'
import { looksToLines, rowsToLines } from './channel/render-lines.ts'
import { toWire } from './channel/wire-error.ts'
import { currentJob } from './current-job.ts'
import type { Jobs } from './worker.ts'

export interface RenderJobsDeps {
  sources: Sources
  sandbox: Sandbox
  renderers: Readonly<Record<RendererName, Renderer>>
}

/** Of what programs said. */
const ANSWERS_BYTES_MAX = 16 * 1024 * 1024

export function createRenderJobs({ sources, sandbox, renderers }: RenderJobsDeps): Pick<Jobs, 'render' | 'tools.version'> {
  const once = createOnce()
  return {
    'tools.version': async ({ program }) => ({ value: { version: await sandbox.version(program) } }),
    'render': async (order, signal) => {
      const tools: Record<string, string | null> = {}
      const asked: Sandbox = {
        run: (run, until) => sandbox.run(run, until),
        async version(program) {
          const version = await sandbox.version(program)
          tools[toolName(program)] ??= version
          return version
        },
      }
      const outcome = await runPipeline({ renderers, sandbox: asked, once, charts: chartsOf(sources), signal }, await inputOf(sources, order))
      return answerOf(outcome, tools)
    },
  }
}

async function inputOf(sources: Sources, order: RenderOrder): Promise<PipelineInput> {
  const { id, namespace, render, cluster, settings, configs } = order
  const opened: PipelineSource[] = []
  for (const { name, label, at, render: own, filesOnly } of order.sources)
    opened.push({ name, label, render: own, filesOnly, opened: await sources.open(at.key).open(at.revision, at.pick) })
  return {
    ...{ id, render, cluster, sources: opened },
    namespace: namespace ?? undefined,
    settings: { ...settings, config: { values: settings.config.values, secrets: new Set(settings.config.secrets) } },
    configs: new Map(configs.map(([name, layer]) => [name, layerOf(layer)])),
  }
}

const layerOf = ({ values, secrets }: Layer): ConfigLayer => ({ values, secrets: new Set(secrets) })

/** Control says which Repository of the project it is; what may be read of it is decided there. */
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

function answerOf({ result, reads, late }: PipelineOutcome, tools: Record<string, string | null>) {
  const looks = looksToLines(reads.looks)
  const places = { looksBytes: looks.byteLength, secret: reads.secret, late, tools }
  if (result instanceof AppError) return { value: { kind: 'error', error: toWire(result), ...places }, data: looks }
  if (result.kind === 'failed') return { value: { ...result, ...places }, data: looks }
  const { digest, hooks, warnings, objects } = result
  return { value: { kind: 'rendered', digest, hooks, warnings, ...places }, data: Buffer.concat([looks, rowsToLines(objects)]) }
}

/** What is kept here spares the way to control; what is run, is run once at a time. */
function createOnce() {
  const kept = new SizedCache<Uint8Array>(ANSWERS_BYTES_MAX, ({ byteLength }) => byteLength)
  const inFlight = createInFlight<Uint8Array>()
  return (parts: readonly string[], run: () => Promise<Uint8Array>, secret: () => boolean): Promise<Uint8Array> => {
    const named = sha256Hex(JSON.stringify(parts))
    return inFlight(named, async () => {
      const held = kept.get(named) ?? (await answerBefore(named))
      const bytes = held ?? (await run())
      kept.set(named, bytes)
      if (held === null && !isFailedAnswer(bytes))
        await currentJob().ask('answer.put', { parts: named, secret: secret() }, Bun.zstdCompressSync(bytes, { level: 1 })) // IC8
      return bytes
    })
  }
}

async function answerBefore(parts: string): Promise<Uint8Array | null> {
  const { value, data } = await currentJob().ask('answer.get', { parts })
  if (!value.found) return null
  try {
    return Bun.zstdDecompressSync(data)
  } catch {
    return null
  }
}
