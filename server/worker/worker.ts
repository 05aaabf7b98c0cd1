// Reads content of tenants: Git packs, archives, YAML, templates, patches and imports, and runs the programs that
// render. Its process may be killed at any time. It may use the folders of sources and renders, the network of sources,
// and what it asks control for as part of a job. It has no store and no keys, knows no cluster but that of its job, and
// answers control only.

import { COMMIT, VERSION } from '../../shared/runtime/build-info.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { createRenderers } from '../render/renderers.ts'
import { createSandbox } from '../render/sandbox/runs.ts'
import { createAddressGuard } from '../sources/address/guard.ts'
import { outboundProxy } from '../sources/address/proxy.ts'
import { parseRanges } from '../sources/address/range.ts'
import { systemResolver } from '../sources/address/resolve.ts'
import { createSources } from '../sources/sources.ts'
import type { CallContext, Handlers } from './channel/channel.ts'
import { CHANNEL_VERSION, type Greeting, type Method, type Orders } from './channel/messages.ts'
import { asJob, currentJob, jobSignal } from './current-job.ts'
import { createRenderJobs } from './render-jobs.ts'
import { createSourceJobs, type SourceJobs } from './source-jobs.ts'

export const BUILD = `${VERSION} ${COMMIT}`

/** Time for open jobs to end their programs and remove folders with keys after control is gone. */
const CLOSE_MS = 2_000

/** Does one order. */
export type Job<Name extends Method> = (order: Orders[Name], signal: AbortSignal) => Promise<{ value?: unknown; data?: Uint8Array }>
export type Jobs = { [Name in Exclude<Method, 'greet'>]: Job<Name> }

/** Refuses every call before the greeting. */
export function createWorker({ clock }: { clock: Clock }): { handlers: Handlers; close(): Promise<void> } {
  const stopping = new AbortController()
  let room: Room | null = null
  const underWay = new Set<Promise<unknown>>()
  const handle = <Name extends keyof Jobs>(name: Name, projectOf: (order: Orders[Name]) => string) => {
    return async (value: unknown, _: Uint8Array, context: CallContext) => {
      if (room === null) throw new Error('a job before the greeting')
      const order = value as Orders[Name]
      const job = room.jobs[name] as Job<Name>
      const done = asJob(projectOf(order), context, () => job(order, AbortSignal.any([context.signal, stopping.signal])))
      underWay.add(done)
      return done.finally(() => underWay.delete(done))
    }
  }
  const handlers: Handlers = {
    greet: async (value) => {
      const greeting = value as Greeting
      if (greeting.version !== CHANNEL_VERSION || greeting.build !== BUILD)
        throw new Error(
          `this worker has build ${BUILD}, channel ${CHANNEL_VERSION}; control has ${greeting.build}, channel ${greeting.version}`,
        )
      room ??= openRoom(greeting, clock, stopping.signal)
      return { value: { build: BUILD } }
    },
    'source.head': handle('source.head', ({ project }) => project),
    'source.fetch': handle('source.fetch', ({ project }) => project),
    'source.has': handle('source.has', ({ key }) => key.project),
    'source.open': handle('source.open', ({ key }) => key.project),
    'source.note': handle('source.note', ({ key }) => key.project),
    'source.put': handle('source.put', ({ key }) => key.project),
    'source.ids': handle('source.ids', ({ at }) => at.key.project),
    'sources.removeOthers': handle('sources.removeOthers', ({ project }) => project),
    'sources.forget': handle('sources.forget', () => ''),
    'tools.version': handle('tools.version', () => ''),
    'patches.check': handle('patches.check', ({ project }) => project),
    'texts.render': handle('texts.render', ({ project }) => project),
    'helm.values': handle('helm.values', ({ id }) => id.project),
    'object.origin': handle('object.origin', ({ render }) => render.id.project),
    render: handle('render', ({ id }) => id.project),
  }
  const close = async () => {
    stopping.abort()
    await Promise.race([Promise.allSettled([...underWay]), clock.sleep(CLOSE_MS)])
    await room?.close()
  }
  return { handlers, close }
}

interface Room {
  jobs: Jobs
  close(): Promise<void>
}

function openRoom(greeting: Greeting, clock: Clock, stopping: AbortSignal): Room {
  const { name, sourcesDir, renderDir, sourceAddresses, proxies, rendering, slots } = greeting
  const cutShort = (signal: AbortSignal | null | undefined) =>
    AbortSignal.any([signal, jobSignal(), stopping].filter((one): one is AbortSignal => one != null))
  const sources = createSources({
    root: sourcesDir,
    owner: name,
    addresses: createAddressGuard({
      allowed: parseRanges(sourceAddresses).ranges,
      resolve: systemResolver,
      fetcher: (to, init) => fetch(to, { ...init, signal: cutShort(init.signal) }),
      proxyFor: outboundProxy(proxies),
    }),
    credentials: async (_, secretRef, use) => (await currentJob().ask('credentials', { secretRef, ...use })).value,
    clock,
    stopping,
    cancelled: jobSignal,
    raiseWatermark: async (signed) => (await currentJob().ask('verified', signed)).value.newer,
  })
  const { renderers, ...programs } = rendering.programs
  const sandbox = createSandbox(
    {
      mode: rendering.mode,
      programs: { ...programs, renderers: new Map(renderers) },
      ...{ ownBinary: process.execPath, bunVersion: Bun.version, folder: renderDir, slots, whose: () => currentJob().project },
    },
    clock,
  )
  const sourceJobs: SourceJobs = createSourceJobs(sources)
  const jobs = { ...sourceJobs, ...createRenderJobs({ sources, sandbox, renderers: createRenderers() }) }
  return { jobs, close: () => sandbox.close() }
}
