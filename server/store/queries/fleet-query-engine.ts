// Answers fleet queries on a connection: one snapshot for each, the dictionary looked after first. In a Worker on
// SQLite, in the server itself on PostgreSQL.
import { type Kysely, sql } from 'kysely'
import { OBJECT_SORTS } from '../../../shared/model/views.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Engine } from '../engines/engine.ts'
import type { ReadDb } from '../store-db.ts'
import type { Tables } from '../tables.ts'
import { ChartWords } from './chart-words.ts'
import { readAttention } from './fleet-attention.ts'
import { readChart } from './fleet-chart.ts'
import { findClusters } from './fleet-clusters.ts'
import { FleetDictionary } from './fleet-dictionary.ts'
import { ObjectReader } from './fleet-objects.ts'
import { PlacementReader } from './fleet-placements.ts'
import type { FleetAnswer, FleetQuestion } from './fleet-queries.ts'
import { type Costs, POSTGRES_COSTS, SQLITE_COSTS } from './fleet-query-plan.ts'
import { StatusRows } from './fleet-query-sql.ts'
import { RenderFailures } from './fleet-unrendered.ts'

export class FleetQueryEngine {
  readonly #db: Kysely<Tables>
  readonly #engine: Engine
  readonly #clock: Clock
  readonly #costs: Costs
  #dictionary: FleetDictionary
  readonly #failures = new RenderFailures()
  readonly #words: ChartWords
  /** Looking after the dictionary: one at a time. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(db: Kysely<Tables>, engine: Engine, clock: Clock, costs: Costs = engine === 'sqlite' ? SQLITE_COSTS : POSTGRES_COSTS) {
    this.#costs = costs
    this.#db = db
    this.#engine = engine
    this.#clock = clock
    this.#dictionary = new FleetDictionary(clock)
    this.#words = new ChartWords(engine, clock)
  }

  answer<Q extends FleetQuestion>(question: Q): Promise<FleetAnswer<Q>> {
    return this.#inSnapshot((db, dictionary) => this.#answer(question, db, dictionary)) as Promise<FleetAnswer<Q>>
  }

  async #answer(question: FleetQuestion, db: ReadDb, dictionary: FleetDictionary): Promise<FleetAnswer<FleetQuestion>> {
    const [engine, costs, statuses] = [this.#engine, this.#costs, new StatusRows(db, this.#engine)]
    switch (question.kind) {
      case 'objects':
        return new ObjectReader(db, dictionary, statuses, costs, question.query).page()
      case 'placements':
        return new PlacementReader(
          { db, engine, dictionary, costs, statuses, failures: await this.#failures.at(db) },
          question.query,
        ).page()
      case 'clusters':
        return findClusters({ db, engine, dictionary, statuses }, question.query)
      case 'chart':
        return readChart({ db, engine, dictionary, words: this.#words }, question.query)
      case 'attention':
        return readAttention(db, dictionary, question.query)
      case 'warm':
        // Loads what the first requests would wait for: statements, sorted names, the pages where each order begins.
        for (const sort of OBJECT_SORTS) await new ObjectReader(db, dictionary, statuses, costs, { sort, limit: 1 }).page()
        await this.#words.at(db, dictionary.clustersById)
        return null
    }
  }

  async #inSnapshot<T>(work: (db: ReadDb, dictionary: FleetDictionary) => Promise<T>): Promise<T> {
    return this.#db.connection().execute(async (db) => {
      // The one transaction on SQLite that may not begin by taking the store for itself.
      const begin = this.#engine === 'sqlite' ? 'begin deferred' : 'begin transaction isolation level repeatable read, read only'
      await sql.raw(begin).execute(db)
      try {
        return await work(db, await this.#refreshed(db))
      } finally {
        await sql`commit`.execute(db)
      }
    })
  }

  async #refreshed(db: ReadDb): Promise<FleetDictionary> {
    const mine = this.#turn.then(async () => {
      if (await this.#dictionary.refresh(db)) return this.#dictionary
      const other = new FleetDictionary(this.#clock)
      await other.refresh(db)
      this.#dictionary = other
      return other
    })
    this.#turn = mine.catch(() => {})
    return mine
  }
}
