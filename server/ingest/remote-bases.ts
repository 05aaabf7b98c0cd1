// Remote bases of kustomizations: the revision of each, and the time of the next request to its host. No service waits
// for them: a missing base is fetched separately, and its services are rendered again. In memory; after a restart the
// revisions come from the published revisions.
import { canonicalJson, sha256Hex } from '../../shared/kube/canonical.ts'
import { type ServiceSpec, sourcesOf } from '../../shared/model/resources.ts'
import { backoffMs } from '../../shared/runtime/backoff.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { refuseSource } from '../fleet/project-rules.ts'
import { baseName, isPinned, parseBaseName, type RemoteBase, shownBase } from '../render/kustomize/remote.ts'
import { BASE_UID_PREFIX } from '../sources/folders.ts'
import type { SourcePlace } from '../sources/source.ts'
import type { SourceKey } from '../sources/sources.ts'
import type { Store } from '../store/store.ts'
import type { BaseState, ContentSources, StateOfBase } from './content-port.ts'
import { KeyedQueue } from './keyed-queue.ts'
import { HANDS, Hosts, hostOf } from './poll-times.ts'
import { readProject } from './projects.ts'

/** The limit for one service with all of its clusters. */
export const BASES_OF_SERVICE_MAX = 200
const RETRY = { baseMs: 2_000, capMs: 60_000 }
/** Until then folders of bases that no service asked for since the start are kept. */
const KEPT_AFTER_START_MS = 3_600_000
/** Part of a poll interval within which a base that several repositories use is not asked for again. */
const LATELY = 0.8

export interface RemoteBasesDeps {
  sources: ContentSources
  store: Pick<Store, 'renderState' | 'getResource'>
  /** SO56: the Config of the project whose secrets go to that URL. Null means none. Absent means none ever. */
  configOf?: ((project: string, configs: readonly string[], url: string) => Promise<string | null>) | undefined
  clock: Pick<Clock, 'nowMs' | 'monotonicMs'>
  random: Random
  log: Logger
  stopping: AbortSignal
  /** Another revision, or the first one, or no first one: the service is to be rendered again. */
  wake(id: ServiceId): void
}

interface Held {
  base: RemoteBase
  key: SourceKey
  revision: string | null
  /** The error of the last read, if that failed. */
  error: AppError | null
  failures: number
  retryAtMs: number
  lookedMs: number
  users: Map<string, ServiceId>
}

/** Remote bases as one reconciliation of a service sees them: each has one revision until it ends. */
export interface BasesOfPass {
  state: StateOfBase
  /** For `['bases', name]`: what there is at that look now. */
  valueOf(name: string): Promise<string>
  /** Something was asked for that is being fetched: nothing that came out counts. */
  isPending(): boolean
  /** When all that was asked for is here, or failed. */
  settled(): Promise<void>
  /** By shown name: the revisions of those reads that exist. */
  revisions(names: Iterable<string>): Record<string, string>
  /** All clusters were rendered, and these were read: others are no longer followed for the service. */
  end(names: Iterable<string>): void
}

export class RemoteBases {
  private readonly deps: RemoteBasesDeps
  private readonly held = new Map<string, Held>()
  /** By service, the repositories of its sources. */
  private readonly repositories = new Map<string, { project: string; names: ReadonlySet<string> }>()
  private readonly heard = new Hosts()
  private readonly queue: KeyedQueue<string>
  private readonly startedMs: number
  private isTidy = false

  constructor(deps: RemoteBasesDeps) {
    this.deps = deps
    this.startedMs = deps.clock.nowMs()
    const groups = {
      of: (key: string) => {
        const held = this.held.get(key)
        return held === undefined ? null : hostOf(held.base.url)
      },
      mayStart: (host: string, asked: ReadonlyMap<string, number>) => this.heard.mayAsk(host, asked),
    }
    const share = { projectOf: (key: string) => this.held.get(key)?.key.project ?? '', clock: deps.clock }
    this.queue = new KeyedQueue<string>(HANDS, (key) => this.look(key), { groups, share })
  }

  /** `at`: revisions that count instead of the newest ones, by shown name; such a reconciliation is not followed. */
  forPass(id: ServiceId, spec: ServiceSpec, at: Readonly<Record<string, string>> | null): BasesOfPass {
    const key = serviceKey(id)
    this.repositories.set(key, { project: id.project, names: new Set(sourcesOf(spec).map(({ repository }) => repository)) })
    const renders = [spec.render, ...sourcesOf(spec).map(({ render }) => render)]
    const configs = [...new Set(renders.flatMap((render) => render?.kustomize?.remoteBaseSecretRefs ?? []))]
    const states = new Map<string, Promise<BaseState>>()
    const known = new Map<string, { shown: string; revision: string }>()
    const waits = new Map<string, Promise<void>>()
    const used = new Map<string, string>()
    let published: Promise<Readonly<Record<string, string>>> | null = null
    const before = (shown: string) => {
      published ??= this.deps.store.renderState(id).then(({ release }) => release?.revisions ?? {})
      return published.then((revisions) => revisions[shown] ?? null)
    }
    const find = async (base: RemoteBase, lost: string | null): Promise<BaseState> => {
      const shown = shownBase(base)
      const pinned = at?.[shown]
      if (pinned !== undefined && lost === pinned) return { kind: 'failed', error: new AppError('git_failed', { detail: `${shown}: ${pinned} is no longer available` }) } // biome-ignore format: one answer
      const boundary = await readProject(this.deps.store, id.project)
      const refusal = boundary === null ? null : refuseSource(boundary, base.url)
      if (refusal !== null) return { kind: 'failed', error: new AppError('project_refused', { detail: `${shown}: ${refusal}` }) }
      const config = (await this.deps.configOf?.(id.project, configs, base.url)) ?? null
      const { name, held } = await this.hold(id.project, base, config, () => before(shown))
      if (pinned !== undefined) return { kind: 'ready', key: held.key, revision: pinned }
      held.users.set(key, id)
      used.set(baseName(base), name)
      if (lost !== null && held.revision === lost) held.revision = null
      const state = this.stateOf(name, held)
      if (lost !== null && state.kind === 'ready') this.deps.wake(id) // the next pass reads the newer revision
      if (lost === null && state.kind !== 'pending') return state
      waits.set(name, state.kind === 'pending' ? this.queue.run(name) : Promise.resolve())
      return { kind: 'pending' }
    }
    const state: StateOfBase = async (base, lost) => {
      const name = baseName(base)
      if (states.size >= BASES_OF_SERVICE_MAX && !states.has(name))
        return { kind: 'failed', error: new AppError('source_refused', { detail: TOO_MANY, remedy: SPLIT }) }
      const found = lost === null ? (states.get(name) ?? find(base, null)) : find(base, lost)
      states.set(name, found)
      const answer = await found
      if (answer.kind === 'ready') known.set(name, { shown: shownBase(base), revision: answer.revision })
      return answer
    }
    return {
      state,
      async valueOf(name) {
        const base = parseBaseName(name)
        const found = base === null ? null : await state(base, null)
        return found?.kind === 'ready' ? found.revision : 'none'
      },
      isPending: () => waits.size > 0,
      settled: async () => {
        await Promise.allSettled(waits.values())
      },
      revisions: (names) =>
        Object.fromEntries([...names].flatMap((name) => known.get(name) ?? []).map(({ shown, revision }) => [shown, revision])),
      end: (names) => this.release(key, new Set([...names].flatMap((name) => used.get(name) ?? []))),
    }
  }

  forget(id: ServiceId): void {
    if (this.repositories.delete(serviceKey(id))) this.release(serviceKey(id), new Set())
  }

  /**
   * SO57. Each read of a repository also reads the bases of its services that may move and those that failed. Waits for
   * nothing.
   */
  follow(project: string, repository: string, pollMs: number): void {
    const nowMs = this.deps.clock.nowMs()
    for (const [text, { base, users, error, revision, lookedMs, retryAtMs }] of this.held) {
      if (isPinned(base) && error === null && revision !== null) continue
      if (lookedMs > nowMs - pollMs * LATELY || retryAtMs > nowMs) continue
      const isUsed = [...users.keys()].some((key) => {
        const of = this.repositories.get(key)
        return of?.project === project && of.names.has(repository)
      })
      if (isUsed) this.queue.run(text).catch(() => {})
    }
    if (this.isTidy || nowMs < this.startedMs + KEPT_AFTER_START_MS) return
    this.isTidy = true
    const bases = new Set([...this.held.values()].map(({ key }) => key.uid))
    void this.deps.sources.removeUnusedBases?.(bases).catch(() => {}) // the next start finds them again
  }

  idle(): Promise<void> {
    return this.queue.idle()
  }

  private async hold(project: string, base: RemoteBase, config: string | null, before: () => Promise<string | null>) {
    const name = canonicalJson([project, config, base])
    const known = this.held.get(name)
    if (known !== undefined) return { name, held: known }
    const revision = await before()
    const key = { uid: `${BASE_UID_PREFIX}${sha256Hex(name).slice(0, 24)}`, project, place: placeOfBase(base, config) }
    const held: Held = this.held.get(name) ?? {
      ...{ base, key, revision, error: null, failures: 0, retryAtMs: 0, lookedMs: 0, users: new Map() },
    }
    this.held.set(name, held)
    return { name, held }
  }

  private stateOf(name: string, { key, revision, error, retryAtMs }: Held): BaseState {
    if (revision !== null) return { kind: 'ready', key, revision }
    if (error === null) return { kind: 'pending' }
    if (retryAtMs <= this.deps.clock.nowMs()) this.queue.run(name).catch(() => {})
    return { kind: 'failed', error }
  }

  private async look(name: string): Promise<void> {
    const held = this.held.get(name)
    if (held === undefined || this.deps.stopping.aborted) return
    const { base, key, revision: before } = held
    const host = hostOf(base.url)
    try {
      const source = this.deps.sources.open(key)
      const isHere = before !== null && (await source.has(before))
      const named = isHere ? await source.head() : null
      const revision = named !== null && named === before ? named : await source.fetch()
      this.heard.note(host, true)
      Object.assign(held, { revision, error: null, failures: 0, retryAtMs: 0, lookedMs: this.deps.clock.nowMs() })
      if (revision === before) return
      this.deps.log.info('remote base read', { project: key.project, base: shownBase(base), revision })
      this.wakeUsers(held)
    } catch (error) {
      if (this.deps.stopping.aborted) return
      const failure =
        error instanceof AppError ? error : new AppError('source_unreachable', { detail: describeError(error) }, { cause: error })
      this.heard.note(host, failure.code !== 'git_unreachable' && failure.code !== 'source_unreachable')
      const isNews = held.error?.message !== failure.message
      const nowMs = this.deps.clock.nowMs()
      const retryAtMs = nowMs + backoffMs(held.failures, RETRY, this.deps.random, failure.data.retryAfterMs)
      Object.assign(held, { error: failure, failures: held.failures + 1, retryAtMs, lookedMs: nowMs })
      if (isNews)
        this.deps.log.warn('remote base cannot be read', {
          ...{ project: key.project, base: shownBase(base), code: failure.code, detail: failure.message },
        })
      if (isNews && held.revision === null) this.wakeUsers(held)
    }
  }

  /** A base that no service uses is forgotten. */
  private release(service: string, used: ReadonlySet<string>): void {
    for (const [name, held] of this.held) {
      if (used.has(name) || !held.users.delete(service) || held.users.size > 0) continue
      this.held.delete(name)
      void this.deps.sources.forget(held.key.uid).catch((error: unknown) => {
        this.deps.log.warn('cannot remove content of a remote base', { base: shownBase(held.base), error: describeError(error) })
      })
    }
  }

  private wakeUsers({ users }: Held): void {
    for (const id of users.values()) this.deps.wake(id)
  }
}

const TOO_MANY = `more than ${BASES_OF_SERVICE_MAX} remote bases in all clusters of a service`
const SPLIT = 'Split the service, or put copies of bases into the repository.'

function placeOfBase(base: RemoteBase, config: string | null): SourcePlace {
  const auth = config === null ? {} : { auth: { secretRef: config } }
  if (base.kind === 'file') return { kind: 'file', spec: { url: base.url, ...auth } }
  return { kind: 'git', spec: { url: base.url, ref: base.ref, ...(base.submodules ? { submodules: true } : {}), ...auth } }
}
