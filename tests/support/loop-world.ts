// The ingest loop alone, on a virtual clock: a store, sources and a renderer that answer at once, or fail as the test
// says. Nothing is ever published in it.

import type { ClusterRecord, RenderState, RepositoryState } from '../../server/fleet/records.ts'
import { createIngest, type IngestDeps } from '../../server/ingest/ingest-loop.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { type Logger, silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { type ContentKit, contentOf } from './local-workers.ts'
import { memoryRendering } from './render-kit.ts'
import { createVirtualClock } from './virtual-clock.ts'

type Raw = ReturnType<typeof memoryRendering>['renderers']['raw']

type Workers = Parameters<NonNullable<ContentKit['around']>>[0]
const stoppable = ({ run }: Workers, world: { stopsWorker: boolean }): Workers => ({
  run: (job) => (job.method === 'render' && world.stopsWorker ? Promise.reject(new AppError('worker_stopped')) : run(job)),
})

/** Of each name one Repository, on one host unless `hostOf` says otherwise, and a Service that takes the folder `shop`
 *  of it; those of `bare` have none, and never change. */
export function loopWorld({
  names = ['apps'],
  bare = [] as string[],
  file = 'a.yaml',
  projectOf = (_name: string): string => 'default',
  hostOf = (_name: string): string => 'git.example',
  sandbox = undefined as Parameters<typeof memoryRendering>[0],
} = {}) {
  const clock = createVirtualClock()
  const startMs = clock.nowMs()
  const now = () => clock.nowMs() - startMs
  const stop = new AbortController()
  const made = memoryRendering(sandbox)
  const repositories = new Map<string, RepositoryState>()
  const renderStates = new Map<string, RenderState>()
  const world = {
    commit: 'c1',
    text: (commit: string) => `apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\ndata: { commit: ${commit} }\n`,
    clusters: [] as ClusterRecord[],
    services: new Set(names),
    /** The content was read and is still there. */
    isHere: true,
    /** Each render stops its worker. */
    stopsWorker: false,
    /** Repositories that were deleted. */
    gone: new Set<string>(),
    /** Thrown once by the store's method of that name. */
    failOnce: new Set<string>(),
    ask: async (_name: string): Promise<void> => {},
    /** What sources do when something left over is to be removed. */
    cleanUp: async (): Promise<void> => {},
    raw: (async (job) => made.renderers.raw(job)) as Raw,
  }
  const polls: Array<{ name: string; atMs: number }> = []
  const passes: Array<{ name: string; atMs: number }> = []
  const renders: Array<{ name: string; atMs: number }> = []
  const warnings: string[] = []
  const forgotten: string[] = []
  const source = (name: string) => {
    const ask = async () => {
      polls.push({ name, atMs: now() })
      await world.ask(name)
      return bare.includes(name) ? 'c1' : world.commit
    }
    return {
      head: ask,
      fetch: ask,
      has: async () => world.isHere,
      open: async (revision: string) => {
        const found = { oid: revision, bytes: new TextEncoder().encode(world.text(revision)) }
        const path = `shop/${file}`
        const tree = {
          id: async (at: string) => (at === '' || at === 'shop' || at === path ? `${at} ${revision}` : null),
          list: async () => [{ name: file, kind: 'file' as const, id: revision }],
          file: async () => found,
          files: async (_: string, wanted: (at: string) => boolean) => new Map(wanted(path) ? [[path, found]] : []),
        }
        return { tree, root: 'shop', version: revision }
      },
    }
  }
  const repository = (name: string) => ({
    kind: 'Repository',
    project: projectOf(name),
    name,
    uid: name,
    spec: JSON.stringify({ git: { url: `https://${hostOf(name)}/a.git`, ref: 'main' } }),
  })
  const service = (name: string) => ({
    ...{ kind: 'Service', project: projectOf(name), name, uid: name, generation: 1, version: 1, deletingMs: null },
    spec: JSON.stringify({ source: { repository: name, path: 'shop' }, targets: { selector: {} }, namespace: 'shop' }),
  })
  const methods = {
    listResources: async (kind: string, { project }: { project?: string } = {}) => {
      const all = kind === 'Repository' ? [...names, ...bare].map(repository) : [...world.services].map(service)
      return { items: all.filter((one) => project === undefined || one.project === project), next: null }
    },
    getResource: async ({ kind, name }: { kind: string; name: string }) => {
      if (kind === 'Project') return null
      if (kind === 'Repository') return world.gone.has(name) ? null : repository(name)
      passes.push({ name, atMs: now() })
      return world.services.has(name) ? service(name) : null
    },
    repositoryState: async (_: string, name: string) => repositories.get(name) ?? { commit: null, fetchedMs: null, tag: null, error: null },
    setRepositoryState: async (_: string, name: string, state: RepositoryState) => void repositories.set(name, state),
    renderState: async ({ service: name }: { service: string }) =>
      renderStates.get(name) ?? { commit: null, generation: 0, digest: null, objectCount: 0, renderedMs: null, error: null },
    setRenderState: async ({ service: name }: { service: string }, state: RenderState) => void renderStates.set(name, state),
    confirmedData: async () => new Map(),
    commitsOf: async () => new Map(),
    listClusters: async () => world.clusters,
    findClusters: async ({ ids }: { ids: readonly string[] }) => world.clusters.filter(({ clusterId }) => ids.includes(clusterId)),
    clustersOfProject: async () => new Set(),
    newestVariants: async () => new Set(),
    addVariants: async () => 0,
    appendEvents: async () => {},
    listStatus: async () => [],
    desiredOfService: async () => [],
    desiredOf: async () => [],
    confirmationsOfService: async () => [],
  }
  const store = new Proxy(methods, {
    get: (target, name: keyof typeof methods) =>
      world.failOnce.delete(name) ? async () => Promise.reject(new Error('connection lost')) : target[name],
  })
  const log: Logger = { ...silentLogger, warn: (message) => void warnings.push(message) }
  const rendering = {
    ...made,
    renderers: {
      ...made.renderers,
      raw: (job: Parameters<Raw>[0]) => {
        renders.push({ name: job.id.service, atMs: now() })
        return world.raw(job)
      },
    },
  }
  const sources = {
    open: ({ uid }: { uid: string }) => source(uid),
    forget: async (uid: string) => void forgotten.push(uid),
    removeOthers: async () => world.cleanUp(),
    removeUnknown: async () => world.cleanUp(),
  }
  const content = { get: async () => null }
  const read = contentOf({
    ...rendering,
    sources,
    store,
    clock,
    around: (workers: Workers) => stoppable(workers, world),
  } as unknown as ContentKit)
  const ingest = createIngest({
    ...{ store, content, shards: {}, ...read, clock, log, random: seededRandom(7), stopping: stop.signal },
  } as unknown as IngestDeps)
  const running = ingest.run()
  const end = async () => {
    stop.abort()
    await clock.advance(0)
    await running
  }
  const cluster = (joinedMs: number) =>
    ({ clusterId: 'c-0000000000000001' as ClusterId, name: 'one', labels: {}, joinedMs }) as ClusterRecord
  return { clock, startMs, world, polls, passes, renders, warnings, forgotten, renderStates, ingest, cluster, end }
}
