// Inventory objects that a complete list of their kind did not show. Each is unknown by itself until a read of it is
// answered, and does not affect the rest of its kind.
import type { ApiFailure } from '../../../cluster/cluster.ts'
import type { LiveView } from './live-object.ts'

interface Doubt {
  /** The failure of the last read. Null if no read was answered yet. */
  failure: ApiFailure | null
  /** A later list did not show the object either: the pending answer may be older than that list. */
  again: boolean
}

/** Reads the object until the API server answers, and tells each failure. */
type Confirm = (onFailure: (failure: ApiFailure) => void) => Promise<void>

export class Doubts {
  readonly #open = new Map<string, Doubt>()

  has(key: string): boolean {
    return this.#open.has(key)
  }

  /** Null if the object is not in doubt. */
  view(key: string): LiveView | null {
    const doubt = this.#open.get(key)
    if (doubt === undefined) return null
    return doubt.failure === null ? { kind: 'unknown' } : { kind: 'unknown', failure: doubt.failure }
  }

  /** Other evidence about the object arrived. True: it was in doubt. */
  settle(key: string): boolean {
    return this.#open.delete(key)
  }

  /** True: a read ended the doubt. False: something else did, or it is asked about since an earlier list. `onCause`:
   *  the reason of the doubt is known, or another. */
  async ask(key: string, confirm: Confirm, onCause: () => void): Promise<boolean> {
    const open = this.#open.get(key)
    if (open !== undefined) {
      open.again = true
      return false
    }
    const doubt: Doubt = { failure: null, again: true }
    this.#open.set(key, doubt)
    const isOpen = () => this.#open.get(key) === doubt
    const fail = (failure: ApiFailure) => {
      const isNews = doubt.failure?.kind !== failure.kind
      doubt.failure = failure
      if (isNews && isOpen()) onCause()
    }
    while (doubt.again && isOpen()) {
      doubt.again = false
      await confirm(fail)
    }
    return isOpen() && this.#open.delete(key)
  }
}
