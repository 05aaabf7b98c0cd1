// The main thread's side of the Worker: one request after the other, a bounded queue, and a new Worker after one that died.
import { AppError } from '../../shared/protocol/error.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { startWorker } from '../start-worker.ts'
import type { SourceResult } from './page-source.ts'
import type { Ask } from './shard-reader.ts'

export interface LargeRead {
  path: string
  /** Of the file as the main thread knows it. */
  dbId: string
  clusterId: string
  ask: Ask
  zstd: boolean
}
export type WorkerAnswer =
  | { kind: 'read'; read: SourceResult | { kind: 'large' }; compressions?: number }
  | { kind: 'failed'; error: string }

/** Clusters whose requests wait for the Worker: some ten seconds' work, since proxies cut who waits for thirty. More are told to come back. */
export const LARGE_READS_MAX = 32
/** A Worker that is busy for longer hangs. */
export const LARGE_READ_MS_MAX = 120_000
const RETRY_AFTER_MS = 2_000

export interface LargeReadsOptions {
  clock: Clock
  random: Random
  log: Logger
  /** Default: the Worker of `page-worker.ts`. */
  startWorker?: () => Worker
}

interface Waiting {
  request: LargeRead
  resolve(read: SourceResult): void
  reject(error: unknown): void
}

export class LargeReads {
  readonly #options: LargeReadsOptions
  readonly #queue: Waiting[] = []
  #worker: Worker | null = null
  #current: Waiting | null = null
  #watchdog = new AbortController()
  #closed = false
  /** How often the Worker compressed something: equal pages once. */
  compressions = 0

  constructor(options: LargeReadsOptions) {
    this.#options = options
  }

  async read(request: LargeRead): Promise<SourceResult> {
    // One waits for each cluster, so that nobody fills the queue alone. Who asks again was cut on the way: it takes the place of the one that nobody waits for.
    const place = this.#queue.findIndex((waiting) => waiting.request.clusterId === request.clusterId)
    if (this.#closed || (place < 0 && this.#queue.length >= LARGE_READS_MAX))
      throw new AppError('unavailable', {
        doing: 'read a large page',
        detail: 'many agents fetch everything at once',
        retryAfterMs: Math.round(RETRY_AFTER_MS * (1 + 4 * this.#options.random())),
      })
    return new Promise((resolve, reject) => {
      const mine = { request, resolve, reject }
      if (place < 0) this.#queue.push(mine)
      else {
        const [older] = this.#queue.splice(place, 1, mine)
        older?.reject(new AppError('too_many_requests', { doing: 'read a large page', retryAfterMs: RETRY_AFTER_MS }))
      }
      this.#next()
    })
  }

  close(): void {
    this.#closed = true
    const ended = new AppError('unavailable', { doing: 'read a large page', detail: 'the server is stopping' })
    for (const { reject } of this.#queue.splice(0)) reject(ended)
    this.#end(ended)
  }

  #next(): void {
    if (this.#current !== null) return
    const current = this.#queue.shift()
    if (current === undefined) return
    this.#current = current
    try {
      this.#worker ??= this.#start()
      this.#worker.postMessage(current.request)
    } catch (error) {
      this.#died(describeError(error))
      return
    }
    this.#watchdog = new AbortController()
    const { signal } = this.#watchdog
    void this.#options.clock.sleep(LARGE_READ_MS_MAX, signal).then(() => {
      if (!signal.aborted) this.#died('it did not answer')
    })
  }

  #start(): Worker {
    const worker = (this.#options.startWorker ?? (() => startWorker('desired/page-worker')))()
    worker.onmessage = ({ data }: MessageEvent<WorkerAnswer>) => {
      // What one that was ended had sent already would be another cluster's rows to whoever is asking now (PL7).
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

  #answered(answer: WorkerAnswer): void {
    const current = this.#current
    this.#current = null
    this.#watchdog.abort()
    if (answer.kind === 'read' && answer.read.kind !== 'large') {
      this.compressions = answer.compressions ?? this.compressions
      current?.resolve(answer.read)
    } else {
      const detail = answer.kind === 'failed' ? answer.error : 'there is no bound in the Worker'
      current?.reject(new Error(`a large read failed: ${detail}`))
    }
    this.#next()
  }

  /** Fails the request that it was at; the next one gets a new Worker. */
  #died(why: string): void {
    this.#options.log.error('the worker of large reads died; the next read starts another', { error: why })
    this.#end(new Error(`a large read failed: its worker died: ${why}`))
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
