// One search for the objects of all services, by their marks, in every served kind: the basis of removal orders besides
// the inventory. A watched kind is not listed, since its watch shows all marked objects of it; any other kind is listed
// once for all orders within some minutes.
import { SERVICE_LABEL } from '../../../shared/kube/marks.ts'
import { type K8sObject, type ObjectRef, refOf } from '../../../shared/kube/object.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { serviceKey } from '../../../shared/runtime/ids.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import type { ApiFailure, ApiResource } from '../../cluster/cluster.ts'
import { objectPart } from '../../messages/object-messages.ts'
import { isOurs } from '../plan/plan.ts'
import type { Asking } from '../requests/placed-cluster.ts'
import type { ServiceModel } from '../snapshot/service-model.ts'
import { type LiveObject, ownerOf, type Registrations } from '../snapshot/watch/live-object.ts'
import type { ServedKinds } from '../snapshot/watch/served-kinds.ts'
import { findGap, storesObjects } from './discovery-gaps.ts'

export interface MarkedSearchDeps extends Registrations {
  /** RC9: each request waits for its place. */
  asking: Pick<Asking, 'get' | 'list'>
  kinds: Pick<ServedKinds, 'all' | 'findAny' | 'unheard' | 'refresh' | 'servesPlural' | 'answers'>
  /** The watch of the kind shows all its marked objects now. */
  isWatched(resource: ApiResource): boolean
  clock: Clock
  log: Logger
  signal: AbortSignal
}

export interface MarkedObject {
  ref: ObjectRef
  apiVersion: string
  uid: string
  owner: LiveObject['owner']
}

/** Kinds that are listed at the same time. */
const LISTS_MAX = 4
/** How long a list counts for other orders: objects that this process applied since are in an inventory, and those
 *  of others are their own responsibility. */
const LISTED_MS = 600_000
/** A kind that the agent may not list now is tried again for orders after this time. */
const REFUSED_MS = 60_000
/** Discovery is asked again for a search that begins later than this after the last one. */
const DISCOVERED_MS = 60_000
/** An agent that may not list a kind cannot have applied objects of it, and could not delete them. */
const NOT_OURS: ReadonlySet<ApiFailure['kind']> = new Set(['forbidden', 'not_found', 'invalid'])

const HALTED: ApiFailure = { kind: 'server_error', status: 0, reason: 'Halted', message: objectPart('search_interrupted') }

const silent = (groups: readonly string[]): ApiFailure => ({
  kind: 'server_error',
  status: 503,
  reason: 'NoDiscovery',
  message: objectPart('groups_silent', { groups: groups.join(', ') }),
})

interface Listed {
  atMs: number
  /** By service key. */
  objects: ReadonlyMap<string, readonly MarkedObject[]>
}
const NONE: readonly MarkedObject[] = []
const keyOf = ({ group, plural }: ApiResource): string => `${plural}.${group}`

export class MarkedSearch {
  readonly #deps: MarkedSearchDeps
  readonly #listed = new Map<string, Listed>()
  #discoveredMs = Number.NEGATIVE_INFINITY
  #running: Promise<ApiFailure | null> | null = null

  constructor(deps: MarkedSearchDeps) {
    this.#deps = deps
  }

  /**
   * IV6: null means that every kind was searched. Of several failures any one. Services that ask at the same time share
   * one search. `isHalted`: begin nothing more.
   */
  look(isHalted: () => boolean): Promise<ApiFailure | null> {
    this.#running ??= this.#search(isHalted).finally(() => {
      this.#running = null
    })
    return this.#running
  }

  /** Those from lists; those from watches are known without a search. */
  of({ id }: Pick<ServiceModel, 'id'>): MarkedObject[] {
    const { clusterId, former } = this.#deps
    const key = serviceKey(id)
    const found = [...this.#listed.values()].flatMap(({ objects }) => objects.get(key) ?? NONE)
    return found.filter(({ owner }) => isOurs({ id, clusterId, former }, { owner }))
  }

  async #search(isHalted: () => boolean): Promise<ApiFailure | null> {
    const { kinds, log, clock } = this.#deps
    const unheard = kinds.unheard().filter(storesObjects)
    if (unheard.length > 0) {
      // Asked again before the next search; the answer may have new kinds.
      await kinds.refresh().catch((error: unknown) => log.debug('discovery failed', { error: describeError(error) }))
      return silent(unheard)
    }
    const nowMs = clock.monotonicMs()
    for (const [key, { atMs }] of this.#listed) if (nowMs - atMs >= LISTED_MS) this.#listed.delete(key)
    if (nowMs - this.#discoveredMs >= DISCOVERED_MS) {
      const unasked = (await this.#discover()) ?? (await this.#gap())
      if (unasked !== null) return unasked
      this.#discoveredMs = nowMs
    }
    // Until nothing is left: a kind may be watched when the search begins, and not any more when it ends.
    for (;;) {
      const open = kinds.all().filter((resource) => this.#isToList(resource))
      if (open.length === 0) return null
      let failed: ApiFailure | null = null
      const worker = async () => {
        while (failed === null && !isHalted()) {
          const resource = open.pop()
          if (resource === undefined) return
          failed = (await this.#list(resource)) ?? failed
        }
      }
      await Promise.all(Array.from({ length: LISTS_MAX }, worker))
      if (failed !== null) return failed
      if (open.length > 0) return HALTED
    }
  }

  async #discover(): Promise<ApiFailure | null> {
    try {
      await this.#deps.kinds.refresh()
      return null
    } catch (error) {
      return { kind: 'server_error', status: 0, reason: 'NoDiscovery', message: describeError(error) }
    }
  }

  /** An agent that may not read CRDs or APIServices knows the kinds of discovery alone. */
  async #gap(): Promise<ApiFailure | null> {
    const { asking, kinds, log, signal } = this.#deps
    try {
      const failure = await findGap({ kinds, ...asking, signal })
      if (failure?.kind !== 'forbidden') return failure
      log.info('discovery not compared with the definitions of kinds', { why: failure.message })
      return null
    } catch (error) {
      return { kind: 'server_error', status: 0, reason: 'NoDiscovery', message: describeError(error) }
    }
  }

  #isToList(resource: ApiResource): boolean {
    const canHold = ['list', 'watch', 'patch', 'delete'].every((verb) => resource.verbs.includes(verb))
    return canHold && !this.#listed.has(keyOf(resource)) && !this.#deps.isWatched(resource)
  }

  async #list(resource: ApiResource): Promise<ApiFailure | null> {
    const { asking, clock, log, signal } = this.#deps
    const objects = new Map<string, MarkedObject[]>()
    const atMs = clock.monotonicMs()
    const take = (object: K8sObject) => {
      const owner = ownerOf(object)
      if (owner.kind !== 'service') return
      const key = serviceKey({ project: owner.project, service: owner.service } as ServiceModel['id'])
      const of = objects.get(key) ?? []
      objects.set(key, of)
      of.push({ ref: refOf(object), apiVersion: object.apiVersion, uid: object.metadata.uid ?? '', owner })
    }
    // Also objects that are being deleted: their finalizers may need objects that would be deleted with them, and no
    // existing object counts as removed.
    const options = { labelSelector: SERVICE_LABEL, metadataOnly: true, signal }
    const failure = await asking.list(resource, options, (object, isThere) => void (isThere && take(object)))
    if (failure !== null && !NOT_OURS.has(failure.kind)) return failure
    if (failure !== null) {
      const { group, version, kind } = resource
      // A 404 of a served kind proves nothing: another version of it may be served now.
      if (failure.kind === 'not_found') {
        const unasked = await this.#discover()
        if (unasked !== null) return unasked
        if (this.#deps.kinds.findAny(group, version, kind).kind !== 'unserved') return failure
      }
      log.info('kind skipped', { kind, group, why: failure.message })
    }
    this.#listed.set(keyOf(resource), { atMs: failure === null ? atMs : atMs - LISTED_MS + REFUSED_MS, objects })
    return null
  }
}
