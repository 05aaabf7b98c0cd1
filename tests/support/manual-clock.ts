// A clock that moves when the test says so.
import type { Clock } from '../../shared/runtime/clock.ts'

interface Sleeper {
  untilMs: number
  wake: () => void
}

export class ManualClock implements Clock {
  /** Lengths of all sleeps that were asked for, in order. */
  readonly asked: number[] = []
  #nowMs = Date.UTC(2026, 0, 1)
  #sleepers = new Set<Sleeper>()

  nowMs = (): number => this.#nowMs

  sleep = (ms: number, signal?: AbortSignal): Promise<void> =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve()
      this.asked.push(ms)
      const wake = () => {
        this.#sleepers.delete(sleeper)
        signal?.removeEventListener('abort', wake)
        resolve()
      }
      const sleeper: Sleeper = { untilMs: this.#nowMs + ms, wake }
      this.#sleepers.add(sleeper)
      signal?.addEventListener('abort', wake, { once: true })
    })

  /** Wakes the sleepers whose time comes, in its order, and lets each go on before the next. */
  async advance(ms: number): Promise<void> {
    const endMs = this.#nowMs + ms
    while (true) {
      await settle()
      const next = [...this.#sleepers].sort((a, b) => a.untilMs - b.untilMs)[0]
      if (next === undefined || next.untilMs > endMs) break
      this.#nowMs = Math.max(this.#nowMs, next.untilMs)
      next.wake()
    }
    this.#nowMs = endMs
    await settle()
  }
}

/** Lets everything run that needs no more time. A macrotask, because streams take several turns. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < 5; turn += 1) await new Promise<void>((resolve) => setImmediate(resolve))
}
