// The server's side of the Worker of fleet queries: one question after the other, a bounded queue, and a new Worker after one that died or took too long.
import { LIST_LIMIT_MAX } from '../../../shared/model/views.ts'
import { AppError, type ErrorCode } from '../../../shared/protocol/error.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import type { Random } from '../../../shared/runtime/random.ts'
import { startWorker } from '../../start-worker.ts'
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
const DOING = 'look through the fleet'

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
  #worker: Worker | null = null
  #current: Waiting | null = null
  #watchdog = new AbortController()
  #closed = false

  constructor(options: WorkerQueriesOptions) {
    this.#options = options
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
    this.#end(stopping())
  }

  /** Whoever asked is gone. What is under way is let end: nobody can stop it half-way but with the whole Worker. */
  #forget(waiting: Waiting): void {
    const place = this.#queue.indexOf(waiting)
    if (place >= 0) this.#queue.splice(place, 1)
    waiting.reject(nobodyWaits())
  }

  #next(): void {
    if (this.#current !== null || this.#closed) return
    const current = this.#queue.shift()
    if (current === undefined) return
    this.#current = current
    try {
      this.#worker ??= this.#start()
      this.#worker.postMessage({ path: this.#options.path, question: current.question } satisfies QueryRequest)
    } catch (error) {
      this.#died(describeError(error))
      return
    }
    this.#watchdog = new AbortController()
    const { signal } = this.#watchdog
    void this.#options.clock.sleep(QUERY_MS_MAX, signal).then(() => {
      if (!signal.aborted) this.#died(`it took longer than ${QUERY_MS_MAX / 1_000} s`)
    })
  }

  #start(): Worker {
    const worker = (this.#options.startWorker ?? (() => startWorker('store/queries/query-worker')))()
    worker.onmessage = ({ data }: MessageEvent<QueryAnswer>) => {
      // What one that was given up sends after all is no answer to what is asked now.
      if (this.#worker === worker) this.#answered(data)
    }
    worker.onerror = (event) => {
      event.preventDefault()
      if (this.#worker === worker) this.#died(event.message)
    }
    worker.addEventListener('close', () => {
      if (this.#worker === worker) this.#died('it ended')
    })
    return worker
  }

  #answered(answer: QueryAnswer): void {
    const current = this.#current
    this.#current = null
    this.#watchdog.abort()
    if (answer.kind === 'failed') {
      const { error, refusal } = answer
      const { detail } = refusal ?? {}
      const told = refusal && new AppError(refusal.code, { doing: DOING, ...(detail === undefined ? {} : { detail }) })
      current?.reject(told ?? new Error(`a fleet query failed: ${error}`))
    } else if (answer.page !== null && answer.page.items.length > LIST_LIMIT_MAX)
      current?.reject(new Error('a fleet query has more answers than a page'))
    else current?.resolve(answer.page)
    this.#next()
  }

  /** Fails the question that it was at; the next one gets a new Worker. */
  #died(why: string): void {
    const retryAfterMs = RETRY_AFTER_MS
    this.#end(new AppError('unavailable', { doing: DOING, detail: `it was given up: ${why}`, retryAfterMs }))
    this.#next()
  }

  #end(error: unknown): void {
    this.#watchdog.abort()
    const [worker, current] = [this.#worker, this.#current]
    this.#worker = null
    this.#current = null
    worker?.terminate()
    current?.reject(error)
  }
}

export const nobodyWaits = (): AppError => new AppError('unavailable', { doing: DOING, detail: 'nobody waits for it any more' })
export const stopping = (): AppError => new AppError('unavailable', { doing: DOING, detail: 'the server is stopping' })
export const tooMany = (random: Random): AppError =>
  new AppError('unavailable', {
    doing: DOING,
    detail: 'many others look at the same time',
    retryAfterMs: Math.round(RETRY_AFTER_MS * (1 + random())),
  })
