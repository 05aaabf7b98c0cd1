// `skerry secrets seal --all`: a fleet whose rows were written in clear seals them. Each step can be repeated, and the
// view says what is left, so that a server that is stopped in between goes on when the command is given again.
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { parseRowId } from '../../shared/model/desired.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { isSealed, isSecretRow, sealMarkOf } from '../../shared/model/sealed-object.ts'
import type { SealView } from '../../shared/model/sealing-views.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Pace } from '../../shared/runtime/pace.ts'
import type { Sealing } from '../access/sealing.ts'
import { decodeRenderedSet } from '../desired/rendered-set.ts'
import type { Shards } from '../desired/shards.ts'
import type { ContentFiles } from '../store/content/content-files.ts'
import { isContentFolder, readContentName } from '../store/content/content-names.ts'
import type { Store } from '../store/store.ts'

export interface SealActions {
  view(): Promise<SealView>
  /** Answers when the fleet seals; the rest goes on behind it. */
  begin(newKey?: boolean): Promise<SealView>
  /** Resolves when nothing is under way. */
  settled(): Promise<void>
}

export interface SealActionsDeps {
  store: Pick<Store, 'desiredOfService' | 'getResource' | 'listClusters'>
  sealing: Pick<Sealing, 'current' | 'begin' | 'former' | 'forget' | 'cleanMs' | 'isClean'>
  shards: Pick<Shards, 'hasFetched'>
  /** When the archives that the server knows of were made. */
  backupsMs(): readonly number[]
  files: ContentFiles
  /** Folder of kept renders. */
  rendersDir: string
  /** Renders every service, and publishes what changed. */
  renderAll(): Promise<void>
  /** Makes each shard file anew; agents replace their replicas then. */
  rewriteShards(each: () => void): Promise<void>
  clock: Pick<Clock, 'nowMs'>
  pace: Pace
  log: Logger
}

export function createSealActions(deps: SealActionsDeps): SealActions {
  const { sealing, log } = deps
  let step: SealView['step'] | null = null
  let [removed, shards] = [0, 0]
  let error: string | null = null
  let running: Promise<void> | null = null

  const run = async () => {
    try {
      step = 'rendering'
      await deps.renderAll()
      step = 'rewriting'
      shards = 0
      await deps.rewriteShards(() => shards++)
      step = 'cleaning'
      removed = await removeClear(deps)
      const { left } = await clear.read(true)
      await forgetUnused(deps)
      if (left.length === 0) sealing.isClean(deps.clock.nowMs())
      step = 'finished'
      log.info('rows are sealed', { shards, removed, left: left.length })
    } catch (thrown) {
      step = 'failed'
      error = describeError(thrown)
      log.error('rows cannot be sealed', { error })
    }
  }
  const clear = rarely(() => lookForClear(deps), deps.clock)
  /** From then on nothing can be written in clear, and nothing needs to be read to know it. */
  const leftNow = async (): Promise<string[]> => {
    if (sealing.current() === null || sealing.cleanMs() !== null || (step !== null && step !== 'finished')) return []
    const { left, isAny } = await clear.read()
    if (!isAny && step === null) sealing.isClean(deps.clock.nowMs())
    return left
  }
  const view = async (): Promise<SealView> => {
    const key = sealing.current()
    const left = await leftNow()
    const known = key === null ? 'off' : (step ?? 'finished')
    const now = known === 'finished' && left.length > 0 ? 'failed' : known
    const replicas = key === null ? NO_REPLICAS : await replicasBehind(deps)
    const backups = backupsBefore(deps.backupsMs(), key === null ? null : sealing.cleanMs())
    return {
      step: now,
      done: now === 'finished' && replicas.count === 0 && backups.count === 0,
      key,
      left,
      replicas,
      backups,
      formerKeys: sealing.former(),
      removed,
      shards,
      error: left.length > 0 ? LEFT : error,
    }
  }
  return {
    view,
    async begin(newKey = false) {
      if (running !== null && newKey)
        throw new AppError('conflict', {
          doing: 'seal with a new key',
          detail: 'the rows are being sealed',
          remedy: 'Repeat it when `skerry secrets status` says finished.',
        })
      sealing.begin(newKey)
      error = null
      running ??= run().finally(() => {
        running = null
      })
      return view()
    },
    settled: async () => void (await running),
  }
}

const NO_REPLICAS = { count: 0, first: [] }
/** Clusters that are named. */
const NAMED = 10

async function replicasBehind({ store, shards }: SealActionsDeps): Promise<SealView['replicas']> {
  const behind = (await store.listClusters()).filter(({ clusterId }) => !shards.hasFetched(clusterId)).map(({ name }) => name)
  return { count: behind.length, first: behind.sort().slice(0, NAMED) }
}

function backupsBefore(madeMs: readonly number[], cleanMs: number | null): SealView['backups'] {
  const before = cleanMs === null ? madeMs : madeMs.filter((atMs) => atMs < cleanMs)
  return { count: before.length, newestMs: before.length === 0 ? null : Math.max(...before) }
}

/** Reading the whole content store is work: one at a time, and its answer counts for a while. */
const READ_AGAIN_MS = 60_000
function rarely<T>(work: () => Promise<T>, clock: Pick<Clock, 'nowMs'>): { read(anew?: boolean): Promise<T> } {
  let held: { atMs: number; answer: Promise<T> } | null = null
  return {
    read(anew = false) {
      const nowMs = clock.nowMs()
      if (anew || held === null || nowMs - held.atMs >= READ_AGAIN_MS || nowMs < held.atMs) {
        const answer = work()
        held = { atMs: nowMs, answer }
        answer.catch(() => {
          if (held?.answer === answer) held = null
        })
      }
      return held.answer
    },
  }
}

const LEFT = 'some services do not render, and their clusters keep rows in clear: correct them, then seal again'

interface ClearSet {
  path: string
  sha256: string
  service: ServiceId
  /** `certain`: it has a Secret in clear. `possible`: its service may read secrets of Configs. `former`: rows are
   *  sealed under an earlier key. */
  why: 'certain' | 'possible' | 'former'
}

/** Sets with clear text that nobody shall have any more, with what was kept of renders. */
async function removeClear(deps: SealActionsDeps): Promise<number> {
  const { files, rendersDir, clock } = deps
  const begunMs = clock.nowMs()
  let removed = 0
  for await (const { path, sha256, service } of clearSets(deps)) {
    if ((await deps.store.desiredOfService(service)).some(({ setSha }) => setSha === sha256)) continue
    await files.remove(path)
    removed++
  }
  // A cache: what is removed is rendered again when it is asked for.
  for (const name of await readdir(rendersDir).catch(() => [])) {
    const path = join(rendersDir, name)
    const found = await stat(path).catch(() => null)
    if (found !== null && found.mtimeMs < begunMs) await rm(path, { recursive: true, force: true })
  }
  return removed
}

/** Earlier keys stay while a service in force is sealed under one of them. */
async function forgetUnused(deps: SealActionsDeps): Promise<void> {
  for await (const { why } of clearSets(deps)) if (why === 'former') return
  deps.sealing.forget(deps.sealing.former())
}

/** `left`: services in force with a Secret in clear. `isAny`: there is such a set, perhaps of a past revision. */
async function lookForClear(deps: SealActionsDeps): Promise<{ left: string[]; isAny: boolean }> {
  const found = new Set<string>()
  let isAny = false
  for await (const { sha256, service, why } of clearSets(deps)) {
    if (why !== 'certain') continue
    isAny = true
    if (found.has(serviceKey(service))) continue
    if ((await deps.store.desiredOfService(service)).some(({ setSha }) => setSha === sha256)) found.add(serviceKey(service))
  }
  return { left: [...found].sort(), isAny }
}

/** Sets with clear text, or under an earlier key. */
async function* clearSets({ files, store, sealing, pace }: SealActionsDeps): AsyncGenerator<ClearSet> {
  const former = new Set(sealing.former())
  const readsSecrets = new Map<string, boolean>()
  for (const folder of (await files.list('')).filter(isContentFolder)) {
    for (const name of await files.list(folder)) {
      const read = readContentName(folder, name)
      if (read.kind !== 'content' && read.kind !== 'aside') continue
      await pace()
      const path = `${folder}/${name}`
      const rows = rowsOf(await files.read(path))
      const [first] = rows ?? []
      const row = first === undefined ? null : parseRowId(first[0])
      if (rows === null || row?.kind !== 'object') continue
      const service = row.id
      const certain = [...rows].some(([id, doc]) => isSecretRow(service, id) && !isSealed(doc))
      const known = readsSecrets.get(serviceKey(service)) ?? (await mayReadSecrets(store, service))
      readsSecrets.set(serviceKey(service), known)
      const isFormer = [...rows.values()].some((doc) => former.has(sealMarkOf(doc)?.key ?? ''))
      const isPossible = known && [...rows.values()].some((doc) => !isSealed(doc))
      if (certain || isFormer || isPossible)
        yield { path, sha256: read.sha256, service, why: certain ? 'certain' : isFormer ? 'former' : 'possible' }
    }
  }
}

function rowsOf(bytes: Uint8Array | null): Map<string, string> | null {
  try {
    return bytes === null ? null : decodeRenderedSet(bytes)
  } catch {
    return null // not a set
  }
}

/** A service that is gone may have. */
async function mayReadSecrets(store: SealActionsDeps['store'], { project, service }: ServiceId): Promise<boolean> {
  const held = await store.getResource({ kind: 'Service', project, name: service })
  return held === null || (serviceSpecSchema.parse(JSON.parse(held.spec)).configFrom ?? []).length > 0
}
