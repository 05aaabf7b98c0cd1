// Fleet queries without a Worker: on a database that is asked over a socket, and on a store in memory, which no second
// connection can see.
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Random } from '../../../shared/runtime/random.ts'
import { FairLine } from '../fair-line.ts'
import type { FleetAnswer, FleetQueries, FleetQuestion } from './fleet-queries.ts'
import type { FleetQueryEngine } from './fleet-query-engine.ts'
import { nobodyWaits, QUERIES_WAITING_MAX, stopping, tooMany } from './worker-queries.ts'

/** At the same time: others need connections, too. */
const AT_ONCE = 3

export class LocalQueries implements FleetQueries {
  readonly #engine: FleetQueryEngine
  readonly #turns: FairLine
  #closed = false

  constructor(engine: FleetQueryEngine, { clock, random }: { clock: Clock; random: Random }) {
    this.#engine = engine
    const full = () => tooMany(random)
    this.#turns = new FairLine({ places: AT_ONCE, waitingMax: QUERIES_WAITING_MAX, clock, full, gone: nobodyWaits })
  }

  async answer<Q extends FleetQuestion>(question: Q, signal?: AbortSignal): Promise<FleetAnswer<Q>> {
    if (this.#closed) throw stopping()
    return this.#turns.run(() => this.#engine.answer(question), signal)
  }

  warm(): void {}

  async close(): Promise<void> {
    this.#closed = true
    this.#turns.end(stopping)
  }
}
