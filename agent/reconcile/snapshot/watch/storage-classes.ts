// The binding modes of StorageClasses, for our Pending volume claims: watched only while there is such a claim. An
// agent that may not read StorageClasses reads the Events of the claim instead, where Kubernetes reports the same.
import { type BindsAtFirstUse, bindingIn, classFactsOf } from '../../../../shared/kube/claim-binding.ts'
import { type K8sObject, parseRefKey } from '../../../../shared/kube/object.ts'
import type { Clock } from '../../../../shared/runtime/clock.ts'
import type { Logger } from '../../../../shared/runtime/logger.ts'
import { describeError } from '../../../../shared/runtime/loop.ts'
import type { Cluster, WatchEvent } from '../../../cluster/cluster.ts'
import { watchLoop } from '../../../cluster/watch-loop.ts'
import type { List } from '../../requests/placed-cluster.ts'
import type { LiveObject } from './live-object.ts'
import type { KindLookup } from './served-kinds.ts'

export interface StorageClassesDeps {
  cluster: Cluster
  /** RC9: waits for a place. */
  list: List
  find(group: string, version: string, kind: string): KindLookup
  clock: Clock
  log: Logger
  signal: AbortSignal
  /** Claims may be judged otherwise now. */
  changed(): void
}

/** When the Events of a claim are read, counted from the moment that it is met; Kubernetes writes one within seconds.
 */
const EVENTS_READ_AFTER_MS = [5_000, 60_000, 300_000]
const WAITS_FOR_CONSUMER: ReadonlySet<unknown> = new Set(['WaitForFirstConsumer', 'WaitForPodScheduled'])

interface PendingClaim {
  uid: string
  className: string | null
}

export class StorageClasses {
  readonly #deps: StorageClassesDeps
  readonly #claims = new Map<string, PendingClaim>()
  /** Classes whose claims say in their Events that they wait, where classes cannot be read; null is the default class.
   */
  readonly #told = new Set<string | null>()
  readonly #classes = new Map<string, ReturnType<typeof classFactsOf>>()
  #stop: AbortController | null = null
  #synced = false
  #isForbidden = false

  constructor(deps: StorageClassesDeps) {
    this.#deps = deps
  }

  readonly binds: BindsAtFirstUse = (className) => {
    if (this.#isForbidden) return this.#told.has(className)
    return this.#synced ? bindingIn(this.#classes)(className) : null
  }

  /** `live`: the present state of a claim; null means that it is gone. */
  note(key: string, live: Pick<LiveObject, 'uid' | 'pendingClass'> | null): void {
    if (live?.pendingClass === undefined) {
      if (this.#claims.delete(key) && this.#claims.size === 0) this.#forget()
      return
    }
    const known = this.#claims.get(key)
    if (known?.uid === live.uid && known.className === live.pendingClass) return
    const claim = { uid: live.uid, className: live.pendingClass }
    this.#claims.set(key, claim)
    if (this.#stop === null) this.#begin()
    else if (this.#isForbidden) void this.#askEvents(key, claim)
  }

  #begin(): void {
    const lookup = this.#deps.find('storage.k8s.io', 'v1', 'StorageClass')
    if (lookup.kind !== 'served') return
    this.#stop = new AbortController()
    const signal = AbortSignal.any([this.#stop.signal, this.#deps.signal])
    // The known classes stay while their watch is broken: they hardly ever change.
    const consumer = { take: (event: WatchEvent) => this.#take(event), broke: () => {} }
    void watchLoop(this.#deps, lookup.resource, { signal }, consumer)
  }

  #forget(): void {
    this.#stop?.abort()
    this.#stop = null
    this.#synced = false
    this.#isForbidden = false
    this.#classes.clear()
    this.#told.clear()
  }

  #take(event: WatchEvent): void {
    switch (event.kind) {
      case 'reset':
        this.#synced = false
        this.#classes.clear()
        return
      case 'present':
      case 'changed':
        this.#classes.set(event.object.metadata.name ?? '', classFactsOf(event.object))
        break
      case 'removed':
        this.#classes.delete(event.object.metadata.name ?? '')
        break
      case 'synced':
        this.#synced = true
        this.#isForbidden = false
        break
      case 'failed':
        if (event.failure.kind !== 'forbidden' || this.#synced || this.#isForbidden) return
        this.#isForbidden = true
        this.#deps.changed()
        for (const [key, claim] of this.#claims) void this.#askEvents(key, claim)
        return
    }
    if (this.#synced) this.#deps.changed()
  }

  async #askEvents(key: string, claim: PendingClaim): Promise<void> {
    const { clock, find, list, log, signal } = this.#deps
    let waitedMs = 0
    for (const atMs of EVENTS_READ_AFTER_MS) {
      await clock.sleep(atMs - waitedMs, signal)
      waitedMs = atMs
      const events = find('', 'v1', 'Event')
      if (signal.aborted || !this.#isForbidden || this.#claims.get(key) !== claim || events.kind !== 'served') return
      if (this.#told.has(claim.className)) return
      const options = { namespace: parseRefKey(key)?.namespace ?? '', fieldSelector: `involvedObject.uid=${claim.uid}`, signal }
      let waits = false
      const take = (event: K8sObject) => {
        waits ||= WAITS_FOR_CONSUMER.has(event['reason'])
      }
      const failure = await list(events.resource, options, take).catch((error: unknown) => {
        log.error('events cannot be read', { object: key, error: describeError(error) })
        return null
      })
      if (failure?.kind === 'forbidden') return
      if (!waits || !this.#isForbidden) continue
      this.#told.add(claim.className)
      this.#deps.changed()
      return
    }
  }
}
