// A safety net: each watched kind is compared with a list of it, at most once an interval. It should never find a
// difference. An object that differs is read again and handled like an event.
import { SERVICE_LABEL } from '../../../../shared/kube/marks.ts'
import { type K8sObject, refKey, refOf } from '../../../../shared/kube/object.ts'
import type { Clock } from '../../../../shared/runtime/clock.ts'
import type { Logger } from '../../../../shared/runtime/logger.ts'
import { describeError } from '../../../../shared/runtime/loop.ts'
import { seededRandom } from '../../../../shared/runtime/random.ts'
import type { ApiFailure, ApiResource } from '../../../cluster/cluster.ts'
import type { List } from '../../requests/placed-cluster.ts'
import type { KindWatch } from './kind-watch.ts'

/** LS6: the interval is counted in this many steps, so that kinds are spread over it and a changed clock moves
 *  nothing. */
const STEPS = 96
/** An event of a listed change may still be on its way. */
const GRACE_MS = 10_000
/** More are not read one by one: the kind is listed again, at most once an interval. */
const READS_MAX = 20
const NAMES_MAX = 10

export interface ResyncDeps {
  list: List
  clusterId: string
  /** Null if no kind is ever compared. */
  intervalMs: number | null
  clock: Clock
  log: Logger
  signal: AbortSignal
  watches(): Iterable<KindWatch>
}

/** Since the agent started. */
export interface ResyncCount {
  /** Lists that were compared. */
  compared: number
  /** Objects whose state had been missed. */
  differences: number
}

export class Resync {
  readonly count: ResyncCount = { compared: 0, differences: 0 }
  readonly #deps: ResyncDeps
  /** Steps to go for each kind. */
  readonly #left = new WeakMap<KindWatch, number>()

  constructor(deps: ResyncDeps) {
    this.#deps = deps
  }

  /** Runs until the signal aborts. One kind at a time. */
  async run(): Promise<void> {
    const { clock, clusterId, intervalMs, log, signal } = this.#deps
    if (intervalMs === null) return
    while (!signal.aborted) {
      await clock.sleep(intervalMs / STEPS, signal)
      for (const watch of [...this.#deps.watches()]) {
        if (signal.aborted) return
        const left = (this.#left.get(watch) ?? firstSteps(clusterId, watch.resource)) - 1
        this.#left.set(watch, left > 0 ? left : STEPS)
        if (left > 0) continue
        await this.#compare(watch).catch((error: unknown) =>
          log.error('resync broke', { kind: watch.resource.kind, group: watch.resource.group, error: describeError(error) }),
        )
      }
    }
  }

  async #compare(watch: KindWatch): Promise<void> {
    const { log, signal } = this.#deps
    const { kind, group } = watch.resource
    let suspects = await this.#suspects(watch, { fromCache: true })
    if (suspects !== null) {
      this.count.compared += 1
      watch.recheckMissing(READS_MAX)
    }
    // The watch cache of an API server may lag behind the one of the watch. A list that bypasses it is expensive, and
    // seldom needed.
    if (suspects !== null && suspects.length > READS_MAX) suspects = await this.#suspects(watch, { fromCache: false })
    if (suspects === null || suspects.length === 0 || signal.aborted) return
    const missed = suspects.length > READS_MAX ? suspects : await watch.readAgain(suspects)
    if (missed.length === 0) return
    this.count.differences += missed.length
    log.warn('objects changed without an event', { kind, group, count: missed.length, objects: missed.slice(0, NAMES_MAX).join(', ') })
    if (suspects.length > READS_MAX) watch.relist()
  }

  /** Keys of the objects that a list shows otherwise than the watch does, before it, after it and a while later. Null
   *  means that there is no list, or the watch failed. */
  async #suspects(watch: KindWatch, source: { fromCache: boolean }): Promise<string[] | null> {
    const { clock, log, signal } = this.#deps
    const { kind, group } = watch.resource
    const before = watch.versions()
    if (before === null) return null
    const listed = new Map<string, Version>()
    const failure = await this.#list(watch.resource, source, listed)
    const after = watch.versions()
    if (failure !== null || after === null) {
      log.info('resync skipped', { kind, group, why: failure?.message ?? 'the watch failed' })
      return null
    }
    const suspects = differences(before, after, listed)
    if (suspects.length === 0) return suspects
    await clock.sleep(GRACE_MS, signal)
    const later = watch.versions()
    return later === null ? [] : differences(after, later, listed).filter((key) => suspects.includes(key))
  }

  #list(resource: ApiResource, { fromCache }: { fromCache: boolean }, listed: Map<string, Version>): Promise<ApiFailure | null> {
    const { list, signal } = this.#deps
    const options = { labelSelector: SERVICE_LABEL, metadataOnly: true, signal, ...(fromCache ? { fromCache } : {}) }
    const take = (object: K8sObject, isThere: boolean) => {
      const key = refKey(refOf(object))
      const { uid = '', resourceVersion = '' } = object.metadata
      if (isThere) listed.set(key, { uid, resourceVersion })
      else listed.delete(key)
    }
    return list(resource, options, take)
  }
}

/** From 1 to STEPS, another number for each cluster and kind: a fleet that was started at once does not list at once.
 */
export function firstSteps(clusterId: string, { group, version, kind }: ApiResource): number {
  const random = seededRandom(Number(Bun.hash.crc32(`${clusterId} ${group}/${version}/${kind}`)))
  return 1 + Math.floor(random() * STEPS)
}

// LS6: which objects a watch knows otherwise than a list shows them. Pure.

export interface Version {
  uid: string
  resourceVersion: string
}

type Versions = ReadonlyMap<string, Version>

/** Sorted keys. `before` and `after`: the state of the watch before the list began and after it ended. A change in
 *  between is known from an event, and the list may show either state. */
export function differences(before: Versions, after: Versions, listed: Versions): string[] {
  const found: string[] = []
  for (const key of new Set([...before.keys(), ...after.keys(), ...listed.keys()])) {
    const known = before.get(key)
    if (isSame(known, after.get(key)) && !isSame(known, listed.get(key))) found.push(key)
  }
  return found.sort()
}

const isSame = (a: Version | undefined, b: Version | undefined): boolean => a?.uid === b?.uid && a?.resourceVersion === b?.resourceVersion
