// Clusters whose shard file could not take what the fleet store holds: a full disk, a damaged file, lost content.
// Agents of these clusters are served what the file has.

import type { Clock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { describeError } from '../../shared/runtime/loop.ts'

export interface Behind {
  sinceMs: number
  /** Why the last attempt failed. */
  error: string
}

export class BehindClusters {
  readonly #clock: Pick<Clock, 'nowMs'>
  readonly #clusters = new Map<ClusterId, Behind>()
  #onFailed: () => void = () => {}

  constructor(clock: Pick<Clock, 'nowMs'>) {
    this.#clock = clock
  }

  get size(): number {
    return this.#clusters.size
  }

  /** Null if the shard file has everything, as far as is known. */
  of(clusterId: ClusterId): Behind | null {
    return this.#clusters.get(clusterId) ?? null
  }

  /** The cluster whose last attempt is the longest ago comes first. */
  list(): ClusterId[] {
    return [...this.#clusters.keys()]
  }

  failed(clusterId: ClusterId, error: unknown): void {
    const sinceMs = this.#clusters.get(clusterId)?.sinceMs ?? this.#clock.nowMs()
    this.#clusters.delete(clusterId)
    this.#clusters.set(clusterId, { sinceMs, error: describeError(error) })
    this.#onFailed()
  }

  caughtUp(clusterId: ClusterId): void {
    this.#clusters.delete(clusterId)
  }

  /** One listener, called after each failed attempt. */
  onFailed(listener: () => void): void {
    this.#onFailed = listener
  }
}
