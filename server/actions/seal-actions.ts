// `skerry secrets seal --all`: a fleet whose rows were written in clear seals them. Each step can be repeated, and the view says what is left, so that a server that is stopped in between
// goes on when the command is given again.
import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isSealed, isSecretRow, sealMarkOf } from '../../shared/kube/sealed-object.ts'
import { parseRowId } from '../../shared/model/desired.ts'
import { type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import type { SealView } from '../../shared/model/seal-views.ts'
import { AppError } from '../../shared/protocol/error.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Pace } from '../../shared/runtime/pace.ts'
import type { Sealing } from '../access/sealing.ts'
import { decodeRenderedSet } from '../desired/rendered-set.ts'
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
  store: Pick<Store, 'desiredOfService' | 'getResource'>
  sealing: Pick<Sealing, 'current' | 'begin' | 'former' | 'forget'>
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
      const left = await servicesInClear(deps)
      await forgetUnused(deps)
      step = 'finished'
      log.info('rows are sealed', { shards, removed, left: left.length })
    } catch (thrown) {
      step = 'failed'
      error = describeError(thrown)
      log.error('rows cannot be sealed', { error })
    }
  }
  const view = async (): Promise<SealView> => {
    const key = sealing.current()
    const left = key === null || (step !== null && step !== 'finished') ? [] : await servicesInClear(deps)
    const known = key === null ? 'off' : (step ?? 'finished')
    return {
      step: known === 'finished' && left.length > 0 ? 'failed' : known,
      key,
      left,
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

const LEFT = 'some services do not render, and their clusters keep rows in clear: correct them, then seal again'

interface ClearSet {
  path: string
  sha256: string
  service: ServiceId
  /** `certain`: it has a Secret in clear. `possible`: its service may read secrets of Configs. `former`: rows are sealed under an earlier key. */
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

async function servicesInClear(deps: SealActionsDeps): Promise<string[]> {
  const found = new Set<string>()
  for await (const { sha256, service, why } of clearSets(deps)) {
    if (why !== 'certain' || found.has(serviceKey(service))) continue
    if ((await deps.store.desiredOfService(service)).some(({ setSha }) => setSha === sha256)) found.add(serviceKey(service))
  }
  return [...found].sort()
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
