// Which services need a turn. It says *which*, never *what happened*: a turn looks at everything that its service has become meanwhile.
import type { Clock } from '../../shared/runtime/clock.ts'

export interface WorkQueueOptions {
  clock: Clock
  /** Services that have their turn at the same time. */
  concurrency: number
  signal: AbortSignal
  /** Must not throw: its failures are its own to report. */
  turn(key: string): Promise<void>
}

/** RC10: one turn for each service at a time; what wakes it during its turn gives it exactly one more. */
export class WorkQueue {
  readonly #options: WorkQueueOptions
  readonly #ready = new Set<string>()
  readonly #running = new Map<string, Promise<void>>()
  readonly #deadlines = new Map<string, { atMs: number; cancel: AbortController }>()
  #open = false

  constructor(options: WorkQueueOptions) {
    this.#options = options
    options.signal.addEventListener('abort', () => this.#stop(), { once: true })
  }

  /** Until it is opened, wakes are only collected: nothing is enforced before the claim is held. */
  setOpen(open: boolean): void {
    this.#open = open
    this.#start()
  }

  isOpen(): boolean {
    return this.#open
  }

  wake(key: string): void {
    this.#ready.add(key)
    this.#start()
  }

  /** The earliest deadline counts; a turn that still wants one asks for it again. */
  wakeAt(key: string, atMs: number): void {
    const known = this.#deadlines.get(key)
    if (known !== undefined && known.atMs <= atMs) return
    known?.cancel.abort()
    const cancel = new AbortController()
    this.#deadlines.set(key, { atMs, cancel })
    const { clock } = this.#options
    void clock.sleep(Math.max(0, atMs - clock.nowMs()), cancel.signal).then(() => {
      if (cancel.signal.aborted) return
      this.#deadlines.delete(key)
      this.wake(key)
    })
  }

  /** Resolves when no turn is running any more. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running.values())
  }

  #start(): void {
    if (!this.#open || this.#options.signal.aborted) return
    for (const key of this.#ready) {
      if (this.#running.size >= this.#options.concurrency) return
      if (this.#running.has(key)) continue
      this.#ready.delete(key)
      // Begun a moment later: a turn that wakes its own service must find itself running.
      const turn = Promise.resolve()
        .then(() => this.#options.turn(key))
        .finally(() => {
          this.#running.delete(key)
          this.#start()
        })
      this.#running.set(key, turn)
    }
  }

  #stop(): void {
    for (const { cancel } of this.#deadlines.values()) cancel.abort()
    this.#deadlines.clear()
    this.#ready.clear()
  }
}
