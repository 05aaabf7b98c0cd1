// Renders as jobs of workers. A job that stopped its worker or took too long is a failed render that depends on all
// files of its sources: the next commit is rendered again, and so is this one after a while (IC14).
import { z } from 'zod'
import { objectRowPrefix } from '../../../shared/model/desired.ts'
import { explainedValueSchema } from '../../../shared/model/render-views.ts'
import { isSealed, isSecretRow, type SealingKeys } from '../../../shared/model/sealed-object.ts'
import { ROW_DOC_BYTES_MAX, ROW_ID_BYTES_MAX } from '../../../shared/protocol/routes.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError, type Problem, plainProblem } from '../../../shared/runtime/error.ts'
import { serviceKey } from '../../../shared/runtime/ids.ts'
import { createPace } from '../../../shared/runtime/pace.ts'
import type { Sealing } from '../../access/sealing.ts'
import type { ServerSopsKeys } from '../../access/sops-keys.ts'
import type { FindChart } from '../../ingest/chart-supply.ts'
import type { RenderAnswer, RenderRequest, Renders } from '../../ingest/content-port.ts'
import type { RenderAnswers } from '../../render/cache/renders.ts'
import type { ConfigLayer } from '../../render/config-merge.ts'
import { markKeyOf } from '../../render/for-people.ts'
import type { Dependency, Reads } from '../../render/inputs.ts'
import type { RenderResult } from '../../render/object-rows.ts'
import { leastReads } from '../../render/record/reads.ts'
import type { Handlers } from '../../worker/channel/channel.ts'
import { ASKED, type AskedAnswers, EXPLAINED_MAX, type Layer, type RenderOrder } from '../../worker/channel/messages.ts'
import { dependenciesFromLines, rowsFromLines } from '../../worker/channel/render-lines.ts'
import { fromWire, toWire } from '../../worker/channel/wire-error.ts'
import type { JobAnswer, WorkerPool } from './pool.ts'
import { credentialsOf, type RemoteSourcesDeps } from './remote-sources.ts'

export interface RemoteRendersDeps extends Pick<RemoteSourcesDeps, 'credentials'> {
  workers: Pick<WorkerPool, 'run'>
  /** Earlier answers of programs. */
  answers: RenderAnswers
  findChart: FindChart
  /** Default: rows stay in clear. */
  sealing?: Pick<Sealing, 'keysFor'> | undefined
  /** Age keys for SOPS files that programs need in clear. */
  sopsKeys: ServerSopsKeys
  /** Keyed digest in hex. */
  macOf(text: string): string
  /** Renders have marks in place of all secrets. `compare`: for comparisons of proposed content. */
  forPeople?: NonNullable<RenderOrder['forPeople']>
  clock: Pick<Clock, 'nowMs'>
}

export function createRemoteRenders(deps: RemoteRendersDeps): Renders {
  return {
    async run(request) {
      const { id } = request
      const seal = deps.sealing?.keysFor(id) ?? null
      try {
        const answer = await deps.workers.run({
          ...{
            method: 'render',
            order: orderOf(deps, request, seal),
            kind: 'render',
            project: id.project,
            subject: `service ${serviceKey(id)}`,
          },
          serve: serving(deps, request),
        })
        return await answerOf(request, answer, seal, deps.clock)
      } catch (error) {
        if (!(error instanceof AppError)) throw error
        return error.code === 'worker_stopped' ? stopped(request, error) : { result: error, ...NOTHING_READ }
      }
    },
    async helmValues(request) {
      const { id } = request
      const order = orderOf(deps, request, null)
      const job = { method: 'helm.values', order, kind: 'render', project: id.project, subject: `service ${serviceKey(id)}` } as const
      const { data } = await deps.workers.run({ ...job, serve: serving(deps, request) })
      return z
        .array(explainedValueSchema)
        .max(EXPLAINED_MAX)
        .parse(JSON.parse(new TextDecoder().decode(data)))
    },
    async originOf(request, row) {
      const { id } = request
      // With marks in place of secrets: what is asked for does not depend on them.
      const order = { render: orderOf({ ...deps, forPeople: 'view' }, request, null), row }
      const job = { method: 'object.origin', order, kind: 'render', project: id.project, subject: `service ${serviceKey(id)}` } as const
      try {
        return (await deps.workers.run({ ...job, serve: serving(deps, request) })).value
      } catch (error) {
        if (!(error instanceof AppError)) throw error
        return { origin: null, failed: error.message }
      }
    },
    async version(program) {
      const job = { method: 'tools.version', order: { program }, kind: 'read', project: '', subject: 'programs' } as const
      return (await deps.workers.run(job)).value.version
    },
  }
}

const NO_READS: Reads = { dependencies: [], files: [], inputs: [], secret: false }
const NOTHING_READ = { reads: NO_READS, late: false, tools: {} }

function stopped({ sources }: RenderRequest, error: AppError): RenderAnswer {
  const result: RenderResult = { kind: 'failed', code: 'render_failed', message: error.message, problems: [] }
  const dependencies = sources.map((_, source) => ({ source, path: '' }))
  return {
    result,
    reads: { ...NO_READS, dependencies, files: dependencies.map((dependency) => ({ ...dependency, id: null })) },
    late: true,
    tools: {},
  }
}

function orderOf(
  { macOf, forPeople }: RemoteRendersDeps,
  { id, namespace, render, sources, cluster, settings, configs }: RenderRequest,
  seal: SealingKeys | null,
): RenderOrder {
  const { config, helmValues, patches, leavesOut = false, bounds } = settings
  return {
    ...{ id, render, cluster, forPeople: forPeople ?? null },
    mark: markKeyOf(macOf, id),
    namespace: namespace ?? null,
    sources: sources.map(({ name, label, key, revision, pick, render: own, filesOnly }) => ({
      ...{ label, at: { key, revision, pick }, filesOnly },
      ...(name === undefined ? {} : { name }),
      ...(own === undefined ? {} : { render: own }),
    })),
    settings: { config: layerOf(config), helmValues, patches, leavesOut, ...(bounds === undefined ? {} : { bounds }) },
    configs: [...configs].map(([name, layer]) => [name, layerOf(layer)] as const),
    ...(seal === null
      ? {}
      : { seal: { id: seal.id, mac: Buffer.from(seal.mac).toString('base64url'), box: Buffer.from(seal.box).toString('base64url') } }),
  }
}

const layerOf = ({ values, secrets }: ConfigLayer): Layer => ({ values, secrets: [...(secrets ?? [])] })

/** A render may ask for credentials of its own repositories, charts and remote bases of its own project, and earlier
 *  answers of programs. */
function serving(deps: RemoteRendersDeps, { id, sources, base: stateOf }: RenderRequest): Handlers {
  const credentials = credentialsOf(
    deps,
    sources.map(({ key }) => key),
  )
  const { answers, findChart } = deps
  const asked = <Name extends keyof typeof ASKED>(
    name: Name,
    answer: (order: z.infer<(typeof ASKED)[Name]>, data: Uint8Array) => Promise<{ value: AskedAnswers[Name]; data?: Uint8Array }>,
  ): Handlers => ({ [name]: (value, data) => answer(ASKED[name].parse(value) as z.infer<(typeof ASKED)[Name]>, data) })
  return {
    ...asked('credentials', async (wanted) => ({ value: await credentials.read(wanted) })),
    ...asked('chart', async ({ repository, name, version }) => {
      const key = await findChart(id.project, repository, name, version)
      credentials.allow(key)
      return { value: key }
    }),
    ...asked('base', async ({ base, lost }) => {
      const state = (await stateOf?.(base, lost)) ?? { kind: 'failed', error: new AppError('source_refused', NO_BASES) }
      if (state.kind === 'ready') credentials.allow(state.key)
      return { value: state.kind === 'failed' ? { kind: 'failed', error: toWire(state.error) } : state }
    }),
    ...asked('sops.key', async ({ age }) => {
      const key = await deps.sopsKeys.dataKey(id.project, age)
      return { value: { key: key === null ? null : Buffer.from(key).toString('base64'), recipients: deps.sopsKeys.recipients(id.project) } }
    }),
    ...asked('answer.get', async ({ parts }) => {
      const data = await answers.get(parts)
      return data === null ? { value: { found: false } } : { value: { found: true }, data }
    }),
    ...asked('answer.put', async ({ parts, secret }, data) => ({ value: await answers.put(parts, data, secret) })),
  }
}

const NO_BASES = { detail: 'remote bases are not fetched for this render' }

async function answerOf(
  { id }: RenderRequest,
  { value, data }: JobAnswer<'render'>,
  seal: SealingKeys | null,
  clock: Pick<Clock, 'nowMs'>,
): Promise<RenderAnswer> {
  const pace = createPace(clock)
  const { dependenciesBytes, secret, late, tools } = value
  const reads = readsOf(await dependenciesFromLines(data.subarray(0, dependenciesBytes), pace), secret)
  if (value.kind === 'error') {
    const error = fromWire(value.error)
    if (!(error instanceof AppError)) throw error
    return { result: error, reads, late, tools }
  }
  if (value.kind === 'failed') {
    const { kind, code, message, problems } = value
    return { result: { kind, code, message, problems: plainProblems(problems) }, reads, late, tools }
  }
  const { kind, digest, hooks, warnings } = value
  const prefix = objectRowPrefix(id)
  const isRow = (row: string, doc: string) =>
    row.startsWith(prefix) &&
    row.length <= ROW_ID_BYTES_MAX &&
    doc.length <= ROW_DOC_BYTES_MAX &&
    (seal === null || isSealed(doc) || !(value.secret || isSecretRow(id, row)))
  const objects = await rowsFromLines(data.subarray(dependenciesBytes), digest, pace, isRow)
  return { result: { kind, objects, digest, count: objects.size, hooks, warnings: plainProblems(warnings) }, reads, late, tools }
}

type Problems = JobAnswer<'patches.check'>['value']['problems']
/** Leaves out fields that are undefined. */
export const plainProblems = (problems: Problems): Problem[] => problems.map(plainProblem)

function readsOf(dependencies: readonly Dependency[], secret: boolean): Reads {
  const files = dependencies.flatMap((dependency) =>
    'path' in dependency ? [{ source: dependency.source, path: dependency.path, id: null }] : [],
  )
  files.sort((a, b) => a.source - b.source || (a.path < b.path ? -1 : a.path > b.path ? 1 : 0))
  return {
    dependencies,
    files,
    inputs: leastReads(dependencies.flatMap((dependency) => ('path' in dependency ? [] : [dependency]))),
    secret,
  }
}
