// Work that waits for one of a few places. Callers that wait share the places by the time that they used lately, so
// that a caller with many slow requests does not hold up one with a few.
import { AsyncResource } from 'node:async_hooks'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { AppError } from '../../shared/runtime/error.ts'
import { FairShare } from '../../shared/runtime/fair-share.ts'
import { sharerNow } from './audit/caller.ts'

export interface FairLineOptions {
  places: number
  waitingMax: number
  clock: Pick<Clock, 'monotonicMs'>
  /** The refusal of work that finds no room to wait. */
  full(): AppError
  /** The refusal of work whose caller went away. */
  gone(): AppError
}

interface Waiting {
  start(): void
  refuse(error: AppError): void
}

export class FairLine {
  readonly #options: FairLineOptions
  readonly #share = new FairShare()
  /** By caller. */
  readonly #waiting = new Map<string, Waiting[]>()
  #count = 0
  #free: number

  constructor(options: FairLineOptions) {
    this.#options = options
    this.#free = options.places
  }

  /** Runs `work` in its turn. A caller that goes away gets `gone` at once; work that runs keeps its place until it
   *  ends. */
  run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const { gone } = this.#options
    if (signal?.aborted) return Promise.reject(gone())
    const who = sharerNow()
    const { promise, resolve, reject } = Promise.withResolvers<T>()
    // Another caller's end starts it.
    const start = AsyncResource.bind(() => void this.#carryOut(who, work).then(resolve, reject))
    const waiting: Waiting = { start, refuse: reject }
    if (!this.#admit(who, waiting)) return Promise.reject(this.#options.full())
    signal?.addEventListener(
      'abort',
      () => {
        this.#drop(who, waiting)
        reject(gone())
      },
      { once: true },
    )
    this.#next()
    return promise
  }

  /** Refuses all work that waits. */
  end(error: () => AppError): void {
    for (const line of this.#waiting.values()) for (const { refuse } of line) refuse(error())
    this.#waiting.clear()
    this.#count = 0
  }

  /** A full line refuses the last request of the caller with most of them, which may be this one. */
  #admit(who: string, waiting: Waiting): boolean {
    const own = this.#waiting.get(who) ?? []
    if (this.#count >= this.#options.waitingMax) {
      const [longest, line] = [...this.#waiting].reduce((a, b) => (b[1].length > a[1].length ? b : a), [who, own])
      const last = line.at(-1)
      if (last === undefined || line.length <= own.length + 1) return false
      this.#drop(longest, last)
      last.refuse(this.#options.full())
    }
    own.push(waiting)
    this.#waiting.set(who, own)
    this.#count += 1
    this.#share.asked(who, this.#options.clock.monotonicMs())
    return true
  }

  #drop(who: string, waiting: Waiting): void {
    const line = this.#waiting.get(who) ?? []
    const place = line.indexOf(waiting)
    if (place < 0) return
    line.splice(place, 1)
    this.#count -= 1
    if (line.length === 0) this.#waiting.delete(who)
  }

  #next(): void {
    for (;;) {
      const who = this.#share.next(this.#waiting.keys(), this.#free, this.#options.clock.monotonicMs())
      const first = who === undefined ? undefined : this.#waiting.get(who)?.[0]
      if (who === undefined || first === undefined) return
      this.#drop(who, first)
      this.#free -= 1
      this.#share.entered(who, this.#options.clock.monotonicMs())
      first.start()
    }
  }

  async #carryOut<T>(who: string, work: () => Promise<T>): Promise<T> {
    const startMs = this.#options.clock.monotonicMs()
    try {
      return await work()
    } finally {
      const nowMs = this.#options.clock.monotonicMs()
      this.#free += 1
      this.#share.left(who, nowMs - startMs, nowMs)
      this.#next()
    }
  }
}
