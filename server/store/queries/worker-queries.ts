// The server's side of the Worker of fleet queries: one question at a time, from a bounded line that callers share.
import { CHART_LIMIT } from '../../../shared/model/chart.ts'
import { LIST_LIMIT_MAX } from '../../../shared/model/views.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError, type ErrorCode } from '../../../shared/runtime/error.ts'
import type { Random } from '../../../shared/runtime/random.ts'
import { FairLine } from '../fair-line.ts'
import { startWorker, WorkerLine } from '../worker-line.ts'
import { ATTENTION_MAX, type FleetAnswer, type FleetQueries, type FleetQuestion } from './fleet-queries.ts'

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
  readonly #turns: FairLine
  readonly #line: WorkerLine<QueryRequest, QueryAnswer>
  #closed = false

  constructor(options: WorkerQueriesOptions) {
    const { clock, random } = options
    this.#options = options
    const full = () => tooMany(random)
    this.#turns = new FairLine({ places: 1, waitingMax: QUERIES_WAITING_MAX, clock, full, gone: nobodyWaits })
    this.#line = new WorkerLine({
      start: options.startWorker ?? (() => startWorker('store/queries/query-worker')),
      clock,
      answerMsMax: QUERY_MS_MAX,
      onDied: (why) => new AppError('unavailable', { doing: DOING, detail: `stopped: ${why}`, retryAfterMs: RETRY_AFTER_MS }),
    })
  }

  /** A running query of a caller that went away is completed: it could only be stopped with the whole Worker. */
  async answer<Q extends FleetQuestion>(question: Q, signal?: AbortSignal): Promise<FleetAnswer<Q>> {
    if (this.#closed) throw stopping()
    return this.#turns.run(async () => {
      if (this.#closed) throw stopping()
      return pageOf(question, await this.#line.ask({ path: this.#options.path, question }))
    }, signal)
  }

  warm(): void {
    this.answer({ kind: 'warm' }).catch(() => {}) // whoever asks next hears of it
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#turns.end(stopping)
    this.#line.end(stopping())
  }
}

function pageOf<Q extends FleetQuestion>(question: Q, answer: QueryAnswer): FleetAnswer<Q> {
  if (answer.kind === 'failed') {
    const { error, refusal } = answer
    const { detail } = refusal ?? {}
    throw (
      (refusal && new AppError(refusal.code, { doing: DOING, ...(detail === undefined ? {} : { detail }) })) ??
      new Error(`a fleet query failed: ${error}`)
    )
  }
  if (answer.page !== null && lengthOf(answer.page) > (LIMITS[question.kind] ?? LIST_LIMIT_MAX))
    throw new Error('a fleet query has more answers than a page')
  return answer.page as FleetAnswer<Q>
}

const LIMITS: Partial<Record<FleetQuestion['kind'], number>> = { chart: CHART_LIMIT, attention: ATTENTION_MAX }
const lengthOf = (page: NonNullable<FleetAnswer<FleetQuestion>>): number => ('count' in page ? page.count : page.items.length)

export const nobodyWaits = (): AppError => new AppError('unavailable', { doing: DOING, detail: 'the caller no longer waits' })
export const stopping = (): AppError => new AppError('unavailable', { doing: DOING, detail: 'the server is stopping' })
export const tooMany = (random: Random): AppError =>
  new AppError('unavailable', {
    doing: DOING,
    detail: 'too many queries at once',
    retryAfterMs: Math.round(RETRY_AFTER_MS * (1 + random())),
  })
