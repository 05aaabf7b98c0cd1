// Fleet queries without a Worker: on a database that is asked over a socket, and on a store in memory, which no second connection can see.
import type { Random } from '../../../shared/runtime/random.ts'
import type { FleetAnswer, FleetQueries, FleetQuestion } from './fleet-queries.ts'
import type { FleetQueryEngine } from './fleet-query-engine.ts'
import { nobodyWaits, QUERIES_WAITING_MAX, stopping, tooMany } from './worker-queries.ts'

/** At the same time: others need connections, too. */
const AT_ONCE = 3

export class LocalQueries implements FleetQueries {
  readonly #engine: FleetQueryEngine
  readonly #random: Random
  readonly #waiting: Array<() => void> = []
  #running = 0
  #closed = false

  constructor(engine: FleetQueryEngine, random: Random) {
    this.#engine = engine
    this.#random = random
  }

  async answer<Q extends FleetQuestion>(question: Q, signal?: AbortSignal): Promise<FleetAnswer<Q>> {
    if (this.#closed) throw stopping()
    if (this.#waiting.length >= QUERIES_WAITING_MAX) throw tooMany(this.#random)
    if (this.#running >= AT_ONCE) await new Promise<void>((resolve) => this.#waiting.push(resolve))
    else this.#running += 1
    try {
      if (this.#closed) throw stopping()
      if (signal?.aborted) throw nobodyWaits()
      return await this.#engine.answer(question)
    } finally {
      // The next waiting query takes the place.
      const next = this.#waiting.shift()
      if (next === undefined) this.#running -= 1
      else next()
    }
  }

  warm(): void {}

  async close(): Promise<void> {
    this.#closed = true
    for (const next of this.#waiting.splice(0)) next()
  }
}
