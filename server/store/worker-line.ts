// A Worker that does one thing after the other: started at the first request, watched while it is at one, and replaced
// by a new one after it died, hung or ended.
import type { Clock } from '../../shared/runtime/clock.ts'
import { describeError } from '../../shared/runtime/loop.ts'

export interface WorkerLineOptions {
  start(): Worker
  clock: Clock
  /** A Worker that is at one request for longer hangs. */
  answerMsMax: number
  /** The error for the request that was running. */
  onDied(why: string): Error
}

export class WorkerLine<Request, Answer> {
  readonly #options: WorkerLineOptions
  #worker: Worker | null = null
  #current: { resolve(answer: Answer): void; reject(error: unknown): void } | null = null
  #watchdog = new AbortController()

  constructor(options: WorkerLineOptions) {
    this.#options = options
  }

  /** Whether it is at a request: the next one waits until that has its answer. */
  get busy(): boolean {
    return this.#current !== null
  }

  /** Only while it is not busy. */
  ask(request: Request): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#current = { resolve, reject }
      const { clock, answerMsMax } = this.#options
      const watchdog = new AbortController()
      this.#watchdog = watchdog
      void clock.sleep(answerMsMax, watchdog.signal).then(() => {
        if (!watchdog.signal.aborted) this.#died(`it did not answer within ${answerMsMax / 1_000} s`)
      })
      try {
        this.#worker ??= this.#start()
        this.#worker.postMessage(request)
      } catch (error) {
        this.#died(describeError(error))
      }
    })
  }

  /** Fails the request that it is at; the next one gets a new Worker. */
  end(error: unknown): void {
    this.#watchdog.abort()
    const [worker, current] = [this.#worker, this.#current]
    this.#worker = null
    this.#current = null
    worker?.terminate()
    current?.reject(error)
  }

  #start(): Worker {
    const worker = this.#options.start()
    worker.onmessage = ({ data }: MessageEvent<Answer>) => {
      // An answer of a worker that was stopped must not answer the present request: it may hold another cluster's rows
      // (PL7).
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

  #answered(answer: Answer): void {
    const current = this.#current
    this.#current = null
    this.#watchdog.abort()
    current?.resolve(answer)
  }

  #died(why: string): void {
    this.end(this.#options.onDied(why))
  }
}

/** Entry points of their own in the compiled binary (scripts/build), found by their path below the program's root. */
export type WorkerName = 'desired/page-worker' | 'desired/check-worker' | 'store/queries/query-worker' | 'store/engines/wal-worker'

export const startWorker = (name: WorkerName): Worker =>
  new Worker(import.meta.url.includes('$bunfs') ? `/$bunfs/root/${name}.js` : new URL(`../${name}.ts`, import.meta.url).href)
