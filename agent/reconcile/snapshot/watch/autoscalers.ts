// Which autoscaler has which workload: an HPA (also the one that KEDA makes) may target a workload of ours without
// being ours, and carries no label of ours. So their kinds are watched whole, by one stream each, and only while some
// manifest names replicas; kept are names alone.
import { type K8sObject, type ObjectRef, refKey, refOf } from '../../../../shared/kube/object.ts'
import type { Clock } from '../../../../shared/runtime/clock.ts'
import type { Logger } from '../../../../shared/runtime/logger.ts'
import type { ApiResource, Cluster, WatchEvent } from '../../../cluster/cluster.ts'
import { watchLoop } from '../../../cluster/watch-loop.ts'
import { objectPart } from '../../../messages/object-messages.ts'
import type { Scaled } from '../fields/ignore.ts'
import type { OtherFields } from '../fields/other-fields.ts'
import type { KindLookup } from './served-kinds.ts'

export interface AutoscalersDeps {
  cluster: Pick<Cluster, 'watch'>
  clock: Clock
  find(group: string, version: string, kind: string): KindLookup
  log: Logger
  signal: AbortSignal
  /** The autoscalers of these objects (keys) may have changed. Null means of any. */
  changed(targets: readonly string[] | null): void
}

export interface Autoscaler {
  part: Scaled
  /** `HorizontalPodAutoscaler web`. */
  name: string
}

/** A VerticalPodAutoscaler never writes the workload: it changes Pods. */
const KINDS: ReadonlyArray<{ part: Scaled; group: string; versions: readonly string[]; kind: string; target: string }> = [
  { part: 'replicas', group: 'autoscaling', versions: ['v2', 'v1'], kind: 'HorizontalPodAutoscaler', target: 'scaleTargetRef' },
]
/** Writers of the `scale` subresource that are autoscalers. A person's `kubectl scale` is drift. */
const SCALERS: ReadonlySet<string> = new Set(['kube-controller-manager', 'horizontal-pod-autoscaler', 'keda-operator', 'keda'])

interface Stream {
  part: Scaled
  kind: string
  target: string
  stop: AbortController
  synced: boolean
  /** Once was, or may not be. */
  known: boolean
  /** Target by autoscaler, both keys. */
  targets: Map<string, string>
  /** The other way round: names, sorted. */
  names: Map<string, string[]>
  listed: Set<string> | null
}

export class Autoscalers {
  readonly #deps: AutoscalersDeps
  readonly #streams = new Map<Scaled, Stream>()
  #wanted: ReadonlySet<Scaled> = new Set()

  constructor(deps: AutoscalersDeps) {
    this.#deps = deps
  }

  /** `parts`: the named fields of all services' manifests. Also called when discovery knows more. */
  follow(parts: ReadonlySet<Scaled>): void {
    this.#wanted = parts
    for (const { part, group, versions, kind, target } of KINDS) {
      const stream = this.#streams.get(part)
      if (!parts.has(part)) {
        stream?.stop.abort()
        this.#streams.delete(part)
        continue
      }
      if (stream !== undefined) continue
      const resource = versions.map((version) => this.#deps.find(group, version, kind)).find((found) => found.kind === 'served')
      if (resource?.kind !== 'served') continue
      const started = {
        part,
        kind,
        target,
        stop: new AbortController(),
        synced: false,
        known: false,
        targets: new Map(),
        names: new Map(),
        listed: null,
      }
      this.#streams.set(part, started)
      void this.#run(started, resource.resource)
    }
  }

  /**
   * DR10. While the autoscalers are unknown, an entry of the `scale` subresource from one of them counts as an
   * autoscaler.
   */
  of(key: string, others: readonly OtherFields[] | null): Autoscaler[] {
    const found: Autoscaler[] = []
    for (const part of this.#wanted) {
      const stream = this.#streams.get(part)
      const names = stream?.names.get(key)
      if (names !== undefined) found.push({ part, name: names.join(', ') })
      else if (part === 'replicas' && stream !== undefined && !stream.synced && others?.some(isScaler)) {
        found.push({ part, name: objectPart('some_autoscaler') })
      }
    }
    return found
  }

  /** DR10: it was scaled, and it is still unknown whether an autoscaler exists. */
  isUncertain(scaled: readonly Scaled[], others: readonly OtherFields[] | null): boolean {
    return scaled.includes('replicas') && this.#streams.get('replicas')?.known === false && (others?.some(isScaled) ?? false)
  }

  #run(stream: Stream, resource: ApiResource): Promise<void> {
    const signal = AbortSignal.any([stream.stop.signal, this.#deps.signal])
    return watchLoop(
      this.#deps,
      resource,
      { signal },
      {
        take: (event) => this.#take(stream, event),
        broke: () => {
          stream.synced = false
        },
      },
    )
  }

  #take(stream: Stream, event: WatchEvent): void {
    switch (event.kind) {
      case 'reset':
        stream.listed = new Set()
        return
      case 'present':
      case 'changed': {
        const key = refKey(refOf(event.object))
        stream.listed?.add(key)
        this.#put(stream, key, targetOf(event.object, stream.target))
        return
      }
      case 'removed':
        this.#put(stream, refKey(refOf(event.object)), null)
        return
      case 'synced': {
        const { listed, synced } = stream
        stream.listed = null
        for (const key of listed === null ? [] : [...stream.targets.keys()]) if (!listed?.has(key)) this.#put(stream, key, null)
        stream.synced = true
        stream.known = true
        if (!synced) this.#deps.changed(null)
        return
      }
      case 'failed':
        // The last state stays in use; only autoscalers that it does not name are uncertain.
        stream.synced = false
        // It stays unreadable for a while, or for ever: the known state is used.
        if (!stream.known && event.failure.kind === 'forbidden') {
          stream.known = true
          this.#deps.changed(null)
        }
    }
  }

  #put(stream: Stream, key: string, target: string | null): void {
    const before = stream.targets.get(key) ?? null
    if (before === target) return
    if (target === null) stream.targets.delete(key)
    else stream.targets.set(key, target)
    const name = `${stream.kind} ${key.slice(key.lastIndexOf('/') + 1)}`
    if (before !== null) {
      const left = stream.names.get(before)?.filter((other) => other !== name) ?? []
      if (left.length === 0) stream.names.delete(before)
      else stream.names.set(before, left)
    }
    if (target !== null) stream.names.set(target, [...(stream.names.get(target) ?? []), name].sort())
    if (stream.synced) this.#deps.changed([before, target].filter((changed) => changed !== null))
  }
}

const isScaled = ({ subresource }: OtherFields): boolean => subresource === 'scale'
const isScaler = ({ manager, subresource }: OtherFields): boolean => subresource === 'scale' && SCALERS.has(manager)

/** In its own namespace. */
function targetOf(object: K8sObject, member: string): string | null {
  const spec = object['spec']
  const target = spec !== null && typeof spec === 'object' ? (spec as Record<string, unknown>)[member] : undefined
  if (target === null || typeof target !== 'object') return null
  const { apiVersion, kind, name } = target as Record<string, unknown>
  if (typeof kind !== 'string' || typeof name !== 'string') return null
  const slash = typeof apiVersion === 'string' ? apiVersion.indexOf('/') : -1
  const group = typeof apiVersion === 'string' && slash > 0 ? apiVersion.slice(0, slash) : ''
  const ref: ObjectRef = { group, kind, namespace: object.metadata.namespace ?? '', name }
  return refKey(ref)
}
