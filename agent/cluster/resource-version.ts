// Compares resourceVersions. A server with a lower resourceVersion than a position that it gave out was set back: its
// etcd was restored from a snapshot. A watch from such a position gets nothing until the server has passed it, and
// misses all events before.

/** RC6: resourceVersions of one etcd are decimal numbers that only grow (promised since Kubernetes 1.35, and so in
 *  earlier versions with etcd). */
export function isNewer(resourceVersion: string, than: string): boolean {
  return resourceVersion.length === than.length ? resourceVersion > than : resourceVersion.length > than.length
}

const DECIMAL = /^\d+$/

/** False also if one of both is not a number: unknown values prove nothing. */
export function isBehind(resourceVersion: string, position: string): boolean {
  return DECIMAL.test(resourceVersion) && DECIMAL.test(position) && isNewer(position, resourceVersion)
}

interface Standing {
  /** Null if the watch has to start over anyway. */
  position(): string | null
  /** The server may have returned to a time before the position. */
  doubt(): void
}

/** Where the watches of one API server stand. */
export class Positions {
  readonly #watches = new Set<Standing>()

  join(watch: Standing): () => void {
    this.#watches.add(watch)
    return () => this.#watches.delete(watch)
  }

  /** Called before a consistent read is sent; the returned function takes the resourceVersion of the answer.
   *  Positions that watches reach in between prove nothing. */
  beforeRead(): (resourceVersion: string) => void {
    const before = [...this.#watches].map((watch) => ({ watch, position: watch.position() }))
    return (resourceVersion) => {
      for (const { watch, position } of before) if (position !== null && isBehind(resourceVersion, position)) watch.doubt()
    }
  }
}
