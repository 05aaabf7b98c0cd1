// Polls that wait for a change of their cluster. A wake-up is a hint (PL10): the poll then reads for itself.

import type { Clock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { Deadline, Deadlines } from './deadlines.ts'

/**
 * An agent has one; the server does not notice an interrupted one at once. The oldest of more ends, so that dead ones
 * cannot fill the server.
 */
export const WAITS_OF_CLUSTER_MAX = 8

class Wait extends Deadline {
  /** The next wait of the same cluster. */
  next: Wait | null
  readonly #resolve: () => void
  readonly #ended: (wait: Wait) => void
  constructor(next: Wait | null, resolve: () => void, ended: (wait: Wait) => void) {
    super()
    this.next = next
    this.#resolve = resolve
    this.#ended = ended
  }
  end(): void {
    this.#resolve()
  }
  override due(): void {
    this.#ended(this)
    this.#resolve()
  }
}

export class Waits {
  readonly #deadlines: Deadlines
  readonly #first = new Map<ClusterId, Wait>()

  constructor(clock: Clock) {
    this.#deadlines = new Deadlines(clock)
  }

  get size(): number {
    return this.#deadlines.size
  }

  /** Until the cluster is woken, the time is over, or the signal aborts. */
  wait(clusterId: ClusterId, waitMs: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const wait = new Wait(this.#first.get(clusterId) ?? null, resolve, (ended) => this.#remove(clusterId, ended))
      this.#first.set(clusterId, wait)
      this.#deadlines.add(wait, waitMs)
      this.#endOldest(wait)
      signal.addEventListener(
        'abort',
        () => {
          if (wait.place < 0) return
          this.#deadlines.cancel(wait)
          wait.due()
        },
        { once: true },
      )
    })
  }

  wake(clusterId: ClusterId): void {
    let wait = this.#first.get(clusterId) ?? null
    this.#first.delete(clusterId)
    for (; wait !== null; wait = wait.next) {
      this.#deadlines.cancel(wait)
      wait.end()
    }
  }

  wakeAll(): void {
    for (const clusterId of [...this.#first.keys()]) this.wake(clusterId)
  }

  #endOldest(newest: Wait): void {
    let kept = newest
    for (let n = 1; n < WAITS_OF_CLUSTER_MAX && kept.next !== null; n++) kept = kept.next
    const oldest = kept.next
    if (oldest === null) return
    kept.next = null
    this.#deadlines.cancel(oldest)
    oldest.end()
  }

  #remove(clusterId: ClusterId, gone: Wait): void {
    const first = this.#first.get(clusterId) ?? null
    if (first === gone) {
      if (gone.next === null) this.#first.delete(clusterId)
      else this.#first.set(clusterId, gone.next)
      return
    }
    for (let wait = first; wait !== null; wait = wait.next) if (wait.next === gone) wait.next = gone.next
  }
}
