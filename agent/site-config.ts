// SC1, SC2: watches the ConfigMaps that the rows of this cluster name, and reports the named keys when they change.
import { canonicalJson } from '../shared/kube/canonical.ts'
import { allowsNamespace } from '../shared/model/bounds.ts'
import { SITE_CONFIG_PREFIX, SITE_MAPS_MAX, siteConfigRowSchema, siteStatusSchema } from '../shared/model/site-config.ts'
import type { Clock } from '../shared/runtime/clock.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import { describeError } from '../shared/runtime/loop.ts'
import type { ApiResource, Cluster } from './cluster/cluster.ts'
import { SiteBook, type SiteLook } from './cluster/site-book.ts'
import { sitePart } from './messages/site-messages.ts'
import type { SitePolicy } from './reconcile/snapshot/permits.ts'
import type { Replica } from './replica/replica.ts'
import type { AgentState } from './state/agent-state.ts'

export interface SiteConfigKeeperDeps {
  replica: Pick<Replica, 'siteConfigs'>
  cluster: Pick<Cluster, 'watch'>
  state: Pick<AgentState, 'report' | 'lastReported'>
  policy(): SitePolicy | null
  clock: Clock
  log: Logger
}

const CONFIG_MAPS: ApiResource = {
  ...{ group: '', version: 'v1', kind: 'ConfigMap', plural: 'configmaps', namespaced: true },
  verbs: ['get', 'list', 'watch'],
}
/** After a report that could not be saved. */
const SOON_MS = 60_000

interface Wanted {
  keys: readonly string[]
  text: string
}

export class SiteConfigKeeper {
  readonly #deps: SiteConfigKeeperDeps
  readonly #book: SiteBook
  readonly #watches = new Map<string, { text: string; stop: AbortController; found: SiteLook | null; keys: readonly string[] }>()
  #reported: string
  #againAtMs: number | null = null
  #bell = new AbortController()

  constructor(deps: SiteConfigKeeperDeps) {
    this.#deps = { ...deps, log: deps.log.with({ part: 'site-config' }) }
    const held = siteStatusSchema.safeParse(deps.state.lastReported('site', 'cluster')).data ?? null
    this.#book = new SiteBook(held)
    this.#reported = held === null ? '' : canonicalJson(held)
  }

  /** Rows came, or another policy is in force. */
  changed(): void {
    this.#bell.abort()
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#deps
    while (!signal.aborted) {
      this.#bell = new AbortController()
      const wanted = this.#wanted()
      if (wanted !== null) this.#follow(wanted, signal)
      this.#lookAgain()
      this.#report()
      const waitMs = this.#againAtMs === null ? 86_400_000 : Math.max(0, this.#againAtMs - clock.monotonicMs())
      await clock.sleep(waitMs, AbortSignal.any([signal, this.#bell.signal]))
    }
    for (const { stop } of this.#watches.values()) stop.abort()
  }

  /** By `namespace/name`. Null means that the rows cannot be read now. */
  #wanted(): Map<string, Wanted> | null {
    const rows = this.#deps.replica.siteConfigs()
    if (rows === null) return null
    const wanted = new Map<string, Wanted>()
    for (const [id, doc] of rows) {
      const read = siteConfigRowSchema.safeParse(parsed(doc)).data
      if (read !== undefined) wanted.set(id.slice(SITE_CONFIG_PREFIX.length), { keys: read.keys, text: canonicalJson(read.keys) })
    }
    return wanted
  }

  #follow(wanted: ReadonlyMap<string, Wanted>, signal: AbortSignal): void {
    const policy = this.#deps.policy()
    for (const [id, { stop, text }] of this.#watches) {
      if (wanted.get(id)?.text === text && refusedBy(policy, id) === null) continue
      stop.abort()
      this.#watches.delete(id)
    }
    this.#book.keepOnly(new Set(wanted.keys()))
    for (const [index, [id, { keys, text }]] of [...wanted].entries()) {
      if (this.#watches.has(id)) continue
      const refused = index < SITE_MAPS_MAX ? refusedBy(policy, id) : sitePart('too_many_maps', { most: SITE_MAPS_MAX })
      const stop = new AbortController()
      this.#watches.set(id, { text, stop, keys, found: refused === null ? null : { kind: 'unreadable', why: refused } })
      if (refused === null) void this.#watch(id, AbortSignal.any([signal, stop.signal]))
    }
  }

  async #watch(id: string, signal: AbortSignal): Promise<void> {
    const [namespace = '', name = ''] = id.split('/')
    let isHere = false
    const took = (found: SiteLook) => {
      const watch = this.#watches.get(id)
      if (watch === undefined || signal.aborted) return
      watch.found = found
      this.#bell.abort()
    }
    try {
      for await (const event of this.#deps.cluster.watch(CONFIG_MAPS, { namespace, fieldSelector: `metadata.name=${name}`, signal })) {
        if (event.kind === 'reset') isHere = false
        else if (event.kind === 'present' || event.kind === 'changed') {
          isHere = true
          took({ kind: 'data', data: dataOf(event.object) })
        } else if (event.kind === 'failed') took({ kind: 'unreadable', why: event.failure.message })
        else if (event.kind === 'removed' || !isHere) {
          isHere = false
          took({ kind: 'absent' })
        }
      }
    } catch (error) {
      took({ kind: 'unreadable', why: describeError(error) })
    }
  }

  #lookAgain(): void {
    const nowMs = this.#deps.clock.monotonicMs()
    this.#againAtMs = null
    for (const [id, { keys, found }] of this.#watches) {
      if (found === null) continue
      const again = this.#book.look(id, keys, found, nowMs)
      if (again !== null) this.#againAtMs = Math.min(this.#againAtMs ?? Number.POSITIVE_INFINITY, again)
    }
  }

  #report(): void {
    const { state, clock, log } = this.#deps
    const status = this.#book.status()
    const isNone = Object.keys(status.maps).length === 0
    const text = isNone ? '' : canonicalJson(status)
    if (text === this.#reported) return
    try {
      state.report([{ kind: 'site', key: 'cluster', doc: isNone ? null : status }])
      this.#reported = text
      log.info('values of the site', { configMaps: Object.keys(status.maps).length })
    } catch (error) {
      log.warn('cannot save the values of the site', { error: describeError(error) })
      this.#againAtMs = clock.monotonicMs() + SOON_MS
    }
  }
}

/** SC4: the local policy decides which namespaces the server may learn of. */
function refusedBy(policy: SitePolicy | null, id: string): string | null {
  if (policy === null) return null
  const [namespace = ''] = id.split('/')
  if (policy.deny?.includes('site-config') === true) return sitePart('site_config_denied')
  return allowsNamespace(policy, namespace) ? null : sitePart('namespace_denied', { namespace })
}

/** Texts only: `binaryData` is none. */
function dataOf(object: object): Record<string, string> {
  const { data } = object as { data?: unknown }
  if (typeof data !== 'object' || data === null) return {}
  return Object.fromEntries(Object.entries(data).flatMap(([key, value]) => (typeof value === 'string' ? [[key, value]] : [])))
}

function parsed(doc: string): unknown {
  try {
    return JSON.parse(doc)
  } catch {
    return null
  }
}
