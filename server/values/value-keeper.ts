// Reads the external sources of Configs (CG13): at the start, when a Config changes, and at the interval of each.
// Values that differ make the Config another generation. A source that fails leaves its last value, and the state says
// so.
import { z } from 'zod'
import type { ValueSource } from '../../shared/model/render.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Random } from '../../shared/runtime/random.ts'
import type { ConfigId, ConfigKeys } from '../access/config-keys.ts'
import { type FetchedValue, keepFetched, shownFetched, sourcesIn } from '../access/config-secrets.ts'
import { fleetEvent } from '../fleet/fleet-event.ts'
import type { ResourceKey, StoredResource } from '../fleet/records.ts'
import { DueQueue } from '../ingest/due-queue.ts'
import { news, warning } from '../messages/event-messages.ts'
import type { Store } from '../store/store.ts'
import { type ReadValues, sourceText, ValueError, type ValueReader } from './value-source.ts'

export interface ValueReaders {
  vault: ValueReader
  /** Absent (null) without `--value-secrets`. */
  kubernetesSecret: ValueReader | null
  /** Absent (null) without `--value-files`. */
  file: ValueReader | null
}

export interface ValueKeeperDeps {
  store: Pick<Store, 'listResources' | 'getResource' | 'applyResource' | 'resealConfig' | 'configState' | 'setConfigState' | 'appendEvents'>
  keys: ConfigKeys
  readers: ValueReaders
  /** Values of a Config differ: what uses it is rendered again. */
  onChanged(key: ResourceKey): void
  clock: Clock
  random: Random
  log: Logger
}

export interface ValueKeeper {
  run(signal: AbortSignal): Promise<void>
  /** Configs that were written: their sources are read at once. */
  changed(keys: readonly ResourceKey[]): void
}

const PAGE = 200
/** After a failure, at most. */
const RETRY_MS_MAX = 60_000
/** Configs that are read beside each other. */
const AT_ONCE = 8
/** Another writer changed the Config meanwhile, each time. */
const TRIES_MAX = 5

/** By the name of the source. */
const stateSchema = z.record(z.string(), z.object({ isOk: z.boolean(), message: z.string(), sinceMs: z.number() }))
export type SourceStates = z.infer<typeof stateSchema>
export const readStates = (doc: string | null): SourceStates => stateSchema.safeParse(JSON.parse(doc ?? '{}')).data ?? {}

type Key = `${string}/${string}`

export function createValueKeeper(deps: ValueKeeperDeps): ValueKeeper {
  const { store, clock, random, log } = deps
  const due = new DueQueue<Key>(clock)
  /** By Config: the Configs with the credentials of its sources. */
  const credentials = new Map<Key, ReadonlySet<string>>()
  const noteSources = (project: string, name: string, sources: readonly ValueSource[]): void => {
    const named = sources.flatMap(({ vault }) => (vault === undefined ? [] : [vault.secretRef]))
    if (named.length === 0) credentials.delete(`${project}/${name}`)
    else credentials.set(`${project}/${name}`, new Set(named))
  }
  const refresh = async (key: Key): Promise<void> => {
    const [project = '', name = ''] = key.split('/')
    try {
      const next = await refreshConfig(deps, { project, name }, (sources) => noteSources(project, name, sources))
      if (next !== null) due.soonest(key, clock.nowMs() + next * (0.9 + random() * 0.2)) // not all at the same time
    } catch (error) {
      log.warn('sources of a Config cannot be read', { config: key, error: describeError(error) })
      due.soonest(key, clock.nowMs() + RETRY_MS_MAX)
    }
  }
  /** Configs whose sources need the credential in this one. */
  const dueWith = (project: string, name: string): void => {
    for (const [user, named] of credentials) if (named.has(name) && user.startsWith(`${project}/`)) due.set(user, clock.nowMs())
  }
  return {
    changed(keys) {
      for (const { kind, project, name } of keys)
        if (kind === 'Config') {
          due.set(`${project}/${name}`, clock.nowMs())
          dueWith(project, name)
        }
    },
    async run(signal) {
      for (let after: string | undefined; ; ) {
        const page = await store.listResources('Config', { limit: PAGE, ...(after === undefined ? {} : { after }) })
        for (const { project, name, spec } of page.items) {
          const { sources } = sourcesIn(spec)
          noteSources(project, name, sources)
          if (sources.length > 0) due.soonest(`${project}/${name}`, clock.nowMs())
        }
        if (page.next === null) break
        after = page.next
      }
      while (!signal.aborted) {
        const keys = due.takeDue()
        for (let at = 0; at < keys.length && !signal.aborted; at += AT_ONCE) await Promise.all(keys.slice(at, at + AT_ONCE).map(refresh))
        if (keys.length === 0) await due.wait(signal)
      }
    },
  }
}

/** Milliseconds until the next read. Null means that the Config is gone, or has no sources. */
async function refreshConfig(
  deps: ValueKeeperDeps,
  id: ConfigId,
  noteSources: (sources: readonly ValueSource[]) => void,
): Promise<number | null> {
  const { store, clock } = deps
  const key = { kind: 'Config', ...id } as const
  const first = await store.getResource(key)
  const { sources, refreshMs } = first === null ? { sources: [], refreshMs: 0 } : sourcesIn(first.spec)
  noteSources(sources)
  if (first === null || sources.length === 0) return null
  const read = await readAll(deps.readers, id, sources)
  const isChanged = await deps.keys.using(() => keep(deps, id, first, read))
  await noteStates(deps, id, sources, read)
  if (isChanged) {
    const names = sources.filter(({ name }) => isValue(read.get(name))).map(({ name }) => name)
    await store.appendEvents([
      fleetEvent(clock.nowMs(), news('ConfigValuesChanged', { config: id.name, names: names.join(', ') }), {
        project: id.project,
      }),
    ])
    deps.onChanged(key)
  }
  const failed = sources.some(({ name }) => !isValue(read.get(name)))
  return failed ? Math.min(refreshMs, RETRY_MS_MAX) : refreshMs
}

const isValue = (found: FetchedValue | ValueError | undefined): found is FetchedValue =>
  found !== undefined && !(found instanceof ValueError)

async function readAll(readers: ValueReaders, id: ConfigId, sources: readonly ValueSource[]): Promise<ReadValues> {
  const read = new Map<string, FetchedValue | ValueError>()
  const of = async (reader: ValueReader | null, mine: readonly ValueSource[], off: string) => {
    if (mine.length === 0) return
    if (reader === null) for (const { name } of mine) read.set(name, new ValueError(off))
    else for (const [name, found] of await reader.read(id, mine)) read.set(name, found)
  }
  await Promise.all([
    of(
      readers.vault,
      sources.filter(({ vault }) => vault !== undefined),
      '',
    ),
    of(
      readers.kubernetesSecret,
      sources.filter(({ kubernetesSecret }) => kubernetesSecret !== undefined),
      SECRETS_OFF,
    ),
    of(
      readers.file,
      sources.filter(({ file }) => file !== undefined),
      FILES_OFF,
    ),
  ])
  return read
}
const SECRETS_OFF = 'this server reads no Secrets: start it in a cluster with --value-secrets'
const FILES_OFF = 'this server reads no files: start it with --value-files'

/** Whether a value differs from the one before. */
async function keep({ store, keys, clock }: ValueKeeperDeps, id: ConfigId, first: StoredResource, read: ReadValues): Promise<boolean> {
  const key = { kind: 'Config', ...id } as const
  let held: StoredResource | null = first
  for (let tries = 0; tries < TRIES_MAX && held !== null; tries++) {
    const values = new Map([...read].flatMap(([name, found]): Array<[string, FetchedValue]> => (isValue(found) ? [[name, found]] : [])))
    const { sources } = sourcesIn(held.spec)
    // A source that somebody changed meanwhile is read anew: the write makes it due.
    for (const name of [...values.keys()]) if (!isSameSource(sourcesIn(first.spec).sources, sources, name)) values.delete(name)
    const made = await keepFetched(keys, id, held.spec, values, clock.nowMs())
    if (made === null) return false
    if (!made.isChanged) {
      if (await store.resealConfig(key, held.version, made.spec)) return false
    } else {
      const change = { labels: held.labels, spec: made.spec, ifVersion: held.version, nowMs: clock.nowMs() }
      if ((await store.applyResource(key, change)).kind !== 'conflict') return true
    }
    held = await store.getResource(key)
  }
  return false
}

const isSameSource = (before: readonly ValueSource[], now: readonly ValueSource[], name: string): boolean => {
  const find = (all: readonly ValueSource[]) => JSON.stringify(all.find((source) => source.name === name))
  return find(before) === find(now)
}

/** Tells the store and the events of what turned. */
async function noteStates(
  { store, clock, log }: ValueKeeperDeps,
  id: ConfigId,
  sources: readonly ValueSource[],
  read: ReadValues,
): Promise<void> {
  const nowMs = clock.nowMs()
  const held = await store.getResource({ kind: 'Config', ...id })
  if (held === null) return
  const before = readStates(await store.configState(id.project, id.name))
  const hasValue = shownFetched(held.spec)
  const states: SourceStates = {}
  for (const source of sources) {
    const { name } = source
    const found = read.get(name)
    const isOk = isValue(found)
    const last = before[name]
    const message = found instanceof ValueError ? found.message : ''
    states[name] = { isOk, message, sinceMs: last !== undefined && last.isOk === isOk ? last.sinceMs : nowMs }
    if (isOk === (last?.isOk ?? true)) continue
    const what = { config: id.name, name, source: sourceText(source) }
    const failed = Object.hasOwn(hasValue, name) ? 'ValueSourceFailed' : 'ValueSourceFailed.first'
    log.info('a source of a Config turned', { config: `${id.project}/${id.name}`, source: name, isOk })
    const said = isOk ? news('ValueSourceRecovered', what) : warning(failed, { ...what, failure: message })
    await store.appendEvents([fleetEvent(nowMs, said, { project: id.project })])
  }
  await store.setConfigState(id.project, id.name, JSON.stringify(states))
}
