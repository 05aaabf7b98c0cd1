// The main thread's side of the Worker of large pages: a bounded queue, one place for each cluster.

import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { startWorker, WorkerLine } from '../store/worker-line.ts'
import type { SourceResult } from './page-source.ts'
import type { Ask } from './shard-reader.ts'

export interface LargeRead {
  path: string
  /** The id of the file as the main thread knows it. */
  dbId: string
  clusterId: string
  ask: Ask
  zstd: boolean
}
export type WorkerAnswer =
  | { kind: 'read'; read: SourceResult | { kind: 'large' }; compressions?: number }
  | { kind: 'failed'; error: string }

/**
 * Clusters whose requests wait for the Worker: some ten seconds' work, since proxies end requests that wait for thirty.
 * More are refused with a time.
 */
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
  readonly #line: WorkerLine<LargeRead, WorkerAnswer>
  #closed = false
  /** How often the Worker compressed something: equal pages once. */
  compressions = 0

  constructor(options: LargeReadsOptions) {
    this.#options = options
    const { clock, log } = options
    this.#line = new WorkerLine({
      start: options.startWorker ?? (() => startWorker('desired/page-worker')),
      clock,
      answerMsMax: LARGE_READ_MS_MAX,
      onDied: (why) => {
        log.error('the worker of large reads stopped; the next read starts another', { error: why })
        return new Error(`a large read failed: its worker stopped: ${why}`)
      },
    })
  }

  async read(request: LargeRead): Promise<SourceResult> {
    // One waits for each cluster, so that none fills the queue alone. A repeated request replaces its interrupted
    // predecessor.
    const place = this.#queue.findIndex((waiting) => waiting.request.clusterId === request.clusterId)
    if (this.#closed || (place < 0 && this.#queue.length >= LARGE_READS_MAX))
      throw new AppError('unavailable', {
        doing: 'read a large page',
        detail: 'too many agents fetch everything at once',
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
    this.#line.end(ended)
  }

  #next(): void {
    if (this.#line.busy) return
    const current = this.#queue.shift()
    if (current === undefined) return
    void this.#line
      .ask(current.request)
      .then((answer) => this.#answered(current, answer), current.reject)
      .finally(() => this.#next())
  }

  #answered({ resolve, reject }: Waiting, answer: WorkerAnswer): void {
    if (answer.kind === 'read' && answer.read.kind !== 'large') {
      this.compressions = answer.compressions ?? this.compressions
      resolve(answer.read)
    } else {
      const detail = answer.kind === 'failed' ? answer.error : 'the Worker has no limit'
      reject(new Error(`a large read failed: ${detail}`))
    }
  }
}
