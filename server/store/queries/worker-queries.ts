// The server's side of the Worker of fleet queries: a bounded queue, which a disconnected caller leaves.
import { CHART_LIMIT } from '../../../shared/model/chart.ts'
import { LIST_LIMIT_MAX } from '../../../shared/model/views.ts'
import { AppError, type ErrorCode } from '../../../shared/protocol/error.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Random } from '../../../shared/runtime/random.ts'
import { startWorker } from '../../start-worker.ts'
import { WorkerLine } from '../../worker-line.ts'
import type { FleetAnswer, FleetQueries, FleetQuestion } from './fleet-queries.ts'

export interface QueryRequest {
  path: string
  question: FleetQuestion
}
export type QueryAnswer =
  | { kind: 'answered'; page: FleetAnswer<FleetQuestion> | null }
  | { kind: 'failed'; error: string; refusal: { code: ErrorCode; detail: string | undefined } | undefined }

/** Questions that wait: some seconds' work. */
export const QUERIES_WAITING_MAX = 64
/** One that takes longer is given up, and its Worker with it. */
export const QUERY_MS_MAX = 10_000
const RETRY_AFTER_MS = 2_000
const DOING = 'query the fleet'

interface Waiting {
  question: FleetQuestion
  resolve(page: unknown): void
  reject(error: unknown): void
}

export interface WorkerQueriesOptions {
  /** The store's file. */
  path: string
  clock: Clock
  random: Random
  /** Default: the Worker of `query-worker.ts`. */
  startWorker?: () => Worker
}

export class WorkerQueries implements FleetQueries {
  readonly #options: WorkerQueriesOptions
  readonly #queue: Waiting[] = []
  readonly #line: WorkerLine<QueryRequest, QueryAnswer>
  #closed = false

  constructor(options: WorkerQueriesOptions) {
    this.#options = options
    this.#line = new WorkerLine({
      start: options.startWorker ?? (() => startWorker('store/queries/query-worker')),
      clock: options.clock,
      answerMsMax: QUERY_MS_MAX,
      onDied: (why) => new AppError('unavailable', { doing: DOING, detail: `stopped: ${why}`, retryAfterMs: RETRY_AFTER_MS }),
    })
  }

  async answer<Q extends FleetQuestion>(question: Q, signal?: AbortSignal): Promise<FleetAnswer<Q>> {
    if (this.#closed) throw stopping()
    if (signal?.aborted) throw nobodyWaits()
    if (this.#queue.length >= QUERIES_WAITING_MAX) throw tooMany(this.#options.random)
    return new Promise((resolve, reject) => {
      const mine: Waiting = { question, resolve: resolve as Waiting['resolve'], reject }
      this.#queue.push(mine)
      signal?.addEventListener('abort', () => this.#forget(mine), { once: true })
      this.#next()
    })
  }

  warm(): void {
    this.answer({ kind: 'warm' }).catch(() => {}) // whoever asks next hears of it
  }

  async close(): Promise<void> {
    this.#closed = true
    for (const { reject } of this.#queue.splice(0)) reject(stopping())
    this.#line.end(stopping())
  }

  /** The caller disconnected. A running query is completed: it could only be stopped with the whole Worker. */
  #forget(waiting: Waiting): void {
    const place = this.#queue.indexOf(waiting)
    if (place >= 0) this.#queue.splice(place, 1)
    waiting.reject(nobodyWaits())
  }

  #next(): void {
    if (this.#line.busy || this.#closed) return
    const current = this.#queue.shift()
    if (current === undefined) return
    void this.#line
      .ask({ path: this.#options.path, question: current.question })
      .then((answer) => this.#answered(current, answer), current.reject)
      .finally(() => this.#next())
  }

  #answered({ question, resolve, reject }: Waiting, answer: QueryAnswer): void {
    if (answer.kind === 'failed') {
      const { error, refusal } = answer
      const { detail } = refusal ?? {}
      const told = refusal && new AppError(refusal.code, { doing: DOING, ...(detail === undefined ? {} : { detail }) })
      reject(told ?? new Error(`a fleet query failed: ${error}`))
    } else if (answer.page !== null && lengthOf(answer.page) > (question.kind === 'chart' ? CHART_LIMIT : LIST_LIMIT_MAX))
      reject(new Error('a fleet query has more answers than a page'))
    else resolve(answer.page)
  }
}

const lengthOf = (page: NonNullable<FleetAnswer<FleetQuestion>>): number => ('count' in page ? page.count : page.items.length)

export const nobodyWaits = (): AppError => new AppError('unavailable', { doing: DOING, detail: 'the caller no longer waits' })
export const stopping = (): AppError => new AppError('unavailable', { doing: DOING, detail: 'the server is stopping' })
export const tooMany = (random: Random): AppError =>
  new AppError('unavailable', {
    doing: DOING,
    detail: 'too many queries at once',
    retryAfterMs: Math.round(RETRY_AFTER_MS * (1 + random())),
  })
