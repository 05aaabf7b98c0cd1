// Workers without a process: their own jobs, with everything that goes to them and comes from them as it would be on
// the channel.

import { NO_SOPS_KEYS } from '../../server/access/sops-keys.ts'
import type { WorkerPool } from '../../server/control/workers/pool.ts'
import { createRemoteRenders } from '../../server/control/workers/remote-renders.ts'
import { createRemoteSources } from '../../server/control/workers/remote-sources.ts'
import { createFindChart } from '../../server/ingest/chart-supply.ts'
import type { ContentSources } from '../../server/ingest/content-port.ts'
import type { ServiceRendererDeps } from '../../server/ingest/render/service-render.ts'
import type { Sources } from '../../server/sources/sources.ts'
import type { Store } from '../../server/store/store.ts'
import type { CallContext, Handlers } from '../../server/worker/channel/channel.ts'
import { ANSWERS } from '../../server/worker/channel/messages.ts'
import { fromWire, toWire } from '../../server/worker/channel/wire-error.ts'
import { asJob } from '../../server/worker/current-job.ts'
import { createRenderJobs, type RenderJobsDeps } from '../../server/worker/render-jobs.ts'
import { createSourceJobs } from '../../server/worker/source-jobs.ts'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { type Clock, systemClock } from '../../shared/runtime/clock.ts'

export function localWorkers(deps: RenderJobsDeps): Pick<WorkerPool, 'run'> {
  const jobs = { ...createSourceJobs(deps.sources), ...createRenderJobs(deps) }
  return {
    async run({ method, order, project, serve = {}, signal = new AbortController().signal }) {
      if (method === 'greet') throw new Error('there is nobody to greet')
      const job = jobs[method as keyof typeof jobs] as (
        given: unknown,
        signal: AbortSignal,
      ) => Promise<{ value?: unknown; data?: Uint8Array }>
      const { value, data = new Uint8Array() } = await overWire(() =>
        asJob(project, asking(serve, signal), () => job(clone(order), signal)),
      )
      return { value: ANSWERS[method].parse(clone(value)) as never, data }
    },
  }
}

const clone = (value: unknown): unknown => (value === undefined ? undefined : JSON.parse(JSON.stringify(value)))

async function overWire<T>(act: () => Promise<T>): Promise<T> {
  try {
    return await act()
  } catch (error) {
    throw fromWire(toWire(error))
  }
}

function asking(serve: Handlers, signal: AbortSignal): CallContext {
  const context: CallContext = {
    signal,
    async ask(name, value, more = new Uint8Array()) {
      const { value: answer, data = new Uint8Array() } = await overWire(async () => {
        const handler = serve[name]
        if (handler === undefined) throw new Error(`no method ${name}`)
        return handler(clone(value), more, context)
      })
      return { value: clone(answer), data }
    },
  }
  return context
}

export interface ContentKit extends Omit<RenderJobsDeps, 'sources'>, Pick<ServiceRendererDeps, 'cache' | 'config' | 'build'> {
  sources: Sources
  store: Pick<Store, 'listResources' | 'getResource' | 'raiseWatermark'>
  credentials?: (project: string, secretRef: string) => Promise<Readonly<Record<string, string>>>
  clock?: Pick<Clock, 'nowMs'>
  /** For workers that do otherwise. */
  around?: (workers: Pick<WorkerPool, 'run'>) => Pick<WorkerPool, 'run'>
}

/** What ingest is given of them. */
export function contentOf({
  sources,
  renderers,
  sandbox,
  store,
  cache,
  config,
  build,
  credentials = async () => ({}),
  clock = systemClock,
  around = (workers) => workers,
}: ContentKit) {
  const workers = around(localWorkers({ sources, renderers, sandbox }))
  const remote: ContentSources = createRemoteSources({
    ...{ workers, root: '/none', credentials },
    raiseWatermark: (ref, signed) => store.raiseWatermark(ref, signed, clock.nowMs()),
  })
  if (sources.removeUnknown !== undefined) remote.removeUnknown = sources.removeUnknown.bind(sources)
  const findChart = createFindChart(store)
  const macOf = (text: string) => sha256Hex(text)
  const renders = createRemoteRenders({ workers, answers: cache.answers, credentials, findChart, sopsKeys: NO_SOPS_KEYS, macOf, clock })
  return { sources: remote, rendering: { cache, config, build, renders } }
}
