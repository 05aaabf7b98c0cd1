// The last answer of discovery. Asked again when a kind is not found and when a CRD becomes Established; no timer asks.
import { backoffMs } from '../../../../shared/runtime/backoff.ts'
import type { Clock } from '../../../../shared/runtime/clock.ts'
import type { Logger } from '../../../../shared/runtime/logger.ts'
import { describeError } from '../../../../shared/runtime/loop.ts'
import type { Random } from '../../../../shared/runtime/random.ts'
import type { ApiResource, Cluster, Discovery } from '../../../cluster/cluster.ts'

export type KindLookup =
  | { kind: 'served'; resource: ApiResource }
  /** Its group's backend does not answer, or discovery was never read: unknown, never gone. */
  | { kind: 'stale' }
  /** `versions`: the served versions of this kind instead, the preferred one first. */
  | { kind: 'unserved'; versions: readonly string[] }

export class ServedKinds {
  readonly #cluster: Cluster
  readonly #onDiscovery: (discovery: Discovery) => void
  #byKind = new Map<string, ApiResource[]>()
  #staleGroups: ReadonlySet<string> = new Set()
  /** `group/version` of each that discovery lists, also of those without a kind. */
  #versions: ReadonlySet<string> = new Set()
  #known = false
  #generation = 0
  /** By group and kind, also of kinds that are not served at the moment. */
  readonly #namespaced = new Map<string, boolean>()
  #scopes = 0
  #running: Promise<void> | null = null
  #askedMs: number | null = null

  /** `onDiscovery`: of each answer. */
  constructor(cluster: Cluster, onDiscovery: (discovery: Discovery) => void = () => {}) {
    this.#cluster = cluster
    this.#onDiscovery = onDiscovery
  }

  find(group: string, version: string, kind: string): KindLookup {
    const served = this.#byKind.get(`${group}/${kind}`) ?? []
    const resource = applicable(served.filter((candidate) => candidate.version === version))
    if (resource !== undefined) return { kind: 'served', resource }
    if (!this.#known || this.#staleGroups.has(group)) return { kind: 'stale' }
    return { kind: 'unserved', versions: [...new Set(served.map((candidate) => candidate.version))] }
  }

  /** In `version` if that is served, else in the version that the server prefers: an object keeps its identity across
   *  versions. */
  findAny(group: string, version: string, kind: string): KindLookup {
    const exact = this.find(group, version, kind)
    const preferred = applicable(this.#byKind.get(`${group}/${kind}`) ?? [])
    return exact.kind === 'unserved' && preferred !== undefined ? { kind: 'served', resource: preferred } : exact
  }

  /** Each kind in the version that the server prefers; of a kind with several plurals each of them. */
  all(): ApiResource[] {
    return [...this.#byKind.values()].flatMap((served) => [...byPlural(served).values()])
  }

  /** Groups that have never answered since this process began: their kinds are unknown. */
  unheard(): string[] {
    const heard = new Set([...this.#byKind.values()].flatMap(([first]) => first?.group ?? []))
    return [...this.#staleGroups].filter((group) => !heard.has(group)).sort()
  }

  /** By plural, as in the name of a CRD. */
  servesPlural(group: string, plural: string): boolean {
    for (const resources of this.#byKind.values()) if (resources.some((r) => r.group === group && r.plural === plural)) return true
    return false
  }

  /** Discovery lists this version, or calls its group Stale, of which `unheard` and each list tell more. */
  answers(group: string, version: string): boolean {
    return this.#versions.has(`${group}/${version}`) || this.#staleGroups.has(group)
  }

  /** A number that changes with the served kinds. */
  generation(): number {
    return this.#generation
  }

  /** A number that changes when a kind gains or loses a namespace. */
  scopes(): number {
    return this.#scopes
  }

  known(): boolean {
    return this.#known
  }

  /** Concurrent callers share one request. Throws AppError `kube_unreachable`. */
  refresh(): Promise<void> {
    this.#running ??= this.#cluster
      .discover()
      .then((discovery) => {
        this.#take(discovery)
        this.#onDiscovery(discovery)
      })
      .finally(() => {
        this.#running = null
      })
    return this.#running
  }

  /** KA60: as `refresh`, unless a request was made less than `pauseMs` ago. */
  async refreshAfter(pauseMs: number, nowMs: number): Promise<void> {
    const sinceMs = nowMs - (this.#askedMs ?? Number.NEGATIVE_INFINITY)
    if (sinceMs >= 0 && sinceMs < pauseMs) return
    this.#askedMs = nowMs
    await this.refresh()
  }

  #take({ resources, staleGroups, versions }: Discovery): void {
    this.#versions = new Set(versions ?? resources.map(({ group, version }) => `${group}/${version}`))
    const stale = new Set(staleGroups)
    const byKind = new Map<string, ApiResource[]>()
    // A stale group is listed without resources: its former ones still count.
    for (const [key, known] of this.#byKind) if (known.some(({ group }) => stale.has(group))) byKind.set(key, known)
    for (const resource of resources) {
      const key = `${resource.group}/${resource.kind}`
      const list = byKind.get(key)
      if (list === undefined || stale.has(resource.group))
        byKind.set(key, [...(list ?? []).filter((r) => r.version !== resource.version || r.plural !== resource.plural), resource])
      else list.push(resource)
    }
    this.#byKind = byKind
    let isMoved = false
    for (const { group, kind, namespaced } of resources) {
      const key = `${group}/${kind}`
      isMoved ||= this.#namespaced.get(key) === !namespaced
      this.#namespaced.set(key, namespaced)
    }
    if (isMoved) this.#scopes += 1
    this.#generation += 1
    this.#staleGroups = stale
    this.#known = true
  }
}

const APPLIED_WITH = ['list', 'watch', 'patch']
/** KA10: the first one that supports apply and watch, else the first: a kind may have a second plural that only
 *  takes requests. */
const applicable = (served: readonly ApiResource[]): ApiResource | undefined =>
  served.find(({ verbs }) => APPLIED_WITH.every((verb) => verbs.includes(verb))) ?? served[0]

/** The last one of a plural in a Map would win, and the first version is the one that the server prefers. */
const byPlural = (served: readonly ApiResource[]): ReadonlyMap<string, ApiResource> =>
  new Map([...served].reverse().map((resource) => [resource.plural, resource]))

/** Between a CRD's Established and its kind in discovery there are some moments. */
const SERVED_BACKOFF = { baseMs: 100, capMs: 5_000 }
const SERVED_ATTEMPTS_MAX = 12

/** Asks a few times until discovery shows the kind of the CRD `<plural>.<group>`; later the retries of its objects
 *  ask. */
export async function learnKind(
  kinds: ServedKinds,
  crdName: string,
  { clock, random, log, signal }: { clock: Clock; random: Random; log: Logger; signal: AbortSignal },
): Promise<void> {
  const dot = crdName.indexOf('.')
  const [plural, group] = [crdName.slice(0, dot), crdName.slice(dot + 1)]
  for (let attempt = 0; attempt < SERVED_ATTEMPTS_MAX && !signal.aborted && !kinds.servesPlural(group, plural); attempt += 1) {
    if (attempt > 0) await clock.sleep(backoffMs(attempt, SERVED_BACKOFF, random), signal)
    await kinds.refresh().catch((error) => log.debug('discovery failed', { error: describeError(error) }))
  }
}
