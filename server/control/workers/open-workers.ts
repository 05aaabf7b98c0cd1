// The workers of a server: the folders, programs and addresses that they get, and the ports that control uses.

import { COMMIT, VERSION } from '../../../shared/runtime/build-info.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { createFindChart } from '../../ingest/chart-supply.ts'
import type { ContentSources, Renders } from '../../ingest/content-port.ts'
import type { RenderTexts } from '../../notify/message.ts'
import type { RenderAnswers } from '../../render/cache/renders.ts'
import type { CheckPatches } from '../../render/patch/patches.ts'
import type { Store } from '../../store/store.ts'
import { CHANNEL_VERSION, type Greeting } from '../../worker/channel/messages.ts'
import type { RenderPlace } from '../render-place.ts'
import { createWorkerPool, type WorkerPool } from './pool.ts'
import { createRemoteRenders, plainProblems, type RemoteRendersDeps } from './remote-renders.ts'
import { createRemoteSources, type RemoteSourcesDeps } from './remote-sources.ts'
import { ownLaunch, startWorkerProcess, WORKER_LIMITS } from './worker-process.ts'

/** The Git library reads 96 MiB of a repository at once, which takes five times that memory. */
export const WORKER_MEMORY_MIB_DEFAULT = 1_024
const MIB = 1024 * 1024

export interface WorkersOptions {
  sourcesDir: string
  renderDir: string
  /** Most programs at the same time, in each worker. */
  slots: number
  place: RenderPlace
  sourceAddresses: string
  count: number
  memoryMib: number
  /** Environment of the server; a worker gets no secret of it. */
  env: Readonly<Record<string, string | undefined>>
}

export interface WorkersDeps extends Pick<RemoteSourcesDeps, 'credentials'> {
  store: Pick<Store, 'listResources' | 'getResource' | 'raiseWatermark'>
  answers: RenderAnswers
  /** Counts the jobs. */
  measured(pool: WorkerPool): WorkerPool
  /** Default: rows stay in clear. */
  sealing?: RemoteRendersDeps['sealing']
  sopsKeys: RemoteRendersDeps['sopsKeys']
  macOf: RemoteRendersDeps['macOf']
  clock: Clock
  log: Logger
}

export interface Workers {
  workers: WorkerPool
  sources: ContentSources
  renders: Renders
  /** Rows in clear with marks in place of all secrets: for people, and for comparisons of proposed content. */
  rendersForPeople: Renders
  rendersToCompare: Renders
  checkPatches: CheckPatches
  renderTexts: RenderTexts
}

/** Starts no worker before the first job. */
export function openWorkers(
  options: WorkersOptions,
  { store, answers, credentials, measured, sealing, sopsKeys, macOf, clock, log }: WorkersDeps,
): Workers {
  const { sourcesDir, renderDir, slots, place, sourceAddresses, count, memoryMib, env } = options
  const launch = ownLaunch(env, '/')
  const { renderers, ...programs } = place.programs
  const greeting = {
    ...{ version: CHANNEL_VERSION, build: `${VERSION} ${COMMIT}`, sourcesDir, sourceAddresses, slots, proxies: proxiesIn(env) },
    rendering: { mode: place.mode, programs: { ...programs, renderers: [...renderers] } },
  }
  const limits = { ...WORKER_LIMITS, memoryBytes: memoryMib * MIB }
  const pool = createWorkerPool({
    start: (name) => {
      const own: Greeting = { ...greeting, name, renderDir: `${renderDir}/${name}` }
      return startWorkerProcess(launch, own, { clock, log, limits })
    },
    ...{ count, idleBytesMax: limits.memoryBytes / 2, clock, log },
  })
  const workers = measured(pool)
  const rendering = { workers, answers, credentials, findChart: createFindChart(store), sopsKeys, macOf, clock }
  return {
    workers,
    sources: createRemoteSources({
      ...{ workers, root: sourcesDir, credentials },
      raiseWatermark: (ref, signed) => store.raiseWatermark(ref, signed, clock.nowMs()),
    }),
    async checkPatches(project, sets) {
      const job = { method: 'patches.check', order: { project, sets }, kind: 'read', project, subject: 'patches of a spec' } as const
      return plainProblems((await workers.run(job)).value.problems)
    },
    async renderTexts(project, templates, message) {
      const job = {
        method: 'texts.render',
        order: { project, templates, message },
        kind: 'read',
        project,
        subject: 'template of a notification',
      } as const
      const { texts, problems } = (await workers.run(job)).value
      const [first] = problems
      return first === undefined ? { texts } : { problem: `${first.path}: ${first.message}`, problems: plainProblems(problems) }
    },
    renders: createRemoteRenders({ ...rendering, sealing }),
    rendersForPeople: createRemoteRenders({ ...rendering, forPeople: 'view' }),
    rendersToCompare: createRemoteRenders({ ...rendering, forPeople: 'compare' }),
  }
}

const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY']

const proxiesIn = (env: Readonly<Record<string, string | undefined>>): Record<string, string> =>
  Object.fromEntries(
    [...PROXIES, ...PROXIES.map((name) => name.toLowerCase())].flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])),
  )
