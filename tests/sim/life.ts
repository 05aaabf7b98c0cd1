// One life of a process. Until it ends its ports work; from then on nothing that it waits for ever happens, as after
// kill -9: no handler runs, no file is closed, and what was asked may have been done.
import type { Cluster } from '../../agent/cluster/cluster.ts'

const never = <T>(): Promise<T> => new Promise<T>(() => {})

export class Life {
  readonly #onEnd = new Set<() => void>()
  readonly #over = new AbortController()
  #callsLeft = Number.POSITIVE_INFINITY
  #lastIsBegun = false

  get ended(): boolean {
    return this.#over.signal.aborted
  }
  /** For what works on behalf of the process and has to be cleared away behind it. */
  get signal(): AbortSignal {
    return this.#over.signal
  }

  end(): void {
    if (this.ended) return
    this.#over.abort()
    for (const listener of [...this.#onEnd]) listener()
    this.#onEnd.clear()
  }

  /** Returns how to take it back. */
  onEnd(listener: () => void): () => void {
    if (this.ended) listener()
    this.#onEnd.add(listener)
    return () => this.#onEnd.delete(listener)
  }

  /** It ends at the `calls`th call of a port from now on, before or after what that call asks for is begun. */
  endAfter(calls: number, begun: boolean): void {
    this.#callsLeft = calls
    this.#lastIsBegun = begun
  }

  /** A call of a port. */
  call<T>(work: () => Promise<T>): Promise<T> {
    if (this.ended) return never()
    this.#callsLeft -= 1
    if (this.#callsLeft === 0) {
      if (this.#lastIsBegun) void work().catch(() => {})
      this.end()
      return never()
    }
    return work().then(
      (value) => (this.ended ? never<T>() : value),
      (error: unknown) => (this.ended ? never<T>() : Promise.reject(error)),
    )
  }

  /** Every method that returns a promise is a call of a port. */
  wrap<T extends object>(port: T): T {
    return new Proxy(port, {
      get: (target, name, receiver) => {
        const member: unknown = Reflect.get(target, name, receiver)
        if (typeof member !== 'function') return member
        return (...args: unknown[]) => this.call(() => Promise.resolve(Reflect.apply(member, target, args)))
      },
    })
  }

  /** Watches end silently with the process. */
  wrapWatch(cluster: Cluster): Cluster['watch'] {
    const life = this
    return async function* (resource, options) {
      const signal = AbortSignal.any([options.signal, life.signal])
      for await (const event of cluster.watch(resource, { ...options, signal })) {
        if (life.ended) await never()
        yield event
      }
      if (life.ended) await never()
    }
  }
}
