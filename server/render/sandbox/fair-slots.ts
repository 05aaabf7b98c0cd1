// A limited number of jobs at once. Projects that wait share the places by the time that they used lately.
// Within a project, each repository and service has one turn after the other.
import type { Clock } from '../../../shared/runtime/clock.ts'
import { FairShare } from '../../../shared/runtime/fair-share.ts'
import { createLines } from './slots.ts'

export interface Asker {
  project: string
  /** Repository or service. */
  subject: string
}

export class FairSlots {
  private free: number
  private readonly clock: Pick<Clock, 'monotonicMs'>
  private readonly share = new FairShare()
  /** By project, whose lines are those of its subjects. */
  private readonly waiting = new Map<string, ReturnType<typeof createLines<() => void>>>()

  constructor(count: number, clock: Pick<Clock, 'monotonicMs'>) {
    this.free = count
    this.clock = clock
  }

  /** Throws the signal's reason when that aborts before the work begins. */
  async run<T>(asker: Asker, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.enter(asker, signal)
    const sinceMs = this.clock.monotonicMs()
    try {
      return await work()
    } finally {
      const nowMs = this.clock.monotonicMs()
      this.free += 1
      this.share.left(asker.project, nowMs - sinceMs, nowMs)
      this.startNext()
    }
  }

  private enter({ project, subject }: Asker, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted()
    this.share.asked(project, this.clock.monotonicMs())
    const lines = this.waiting.get(project) ?? createLines<() => void>()
    this.waiting.set(project, lines)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const go = () => {
      signal?.removeEventListener('abort', leave)
      resolve()
    }
    const leave = () => {
      lines.drop(subject, go)
      if (lines.size === 0) this.waiting.delete(project)
      reject(signal?.reason)
    }
    lines.add(subject, go)
    signal?.addEventListener('abort', leave, { once: true })
    this.startNext()
    return promise
  }

  private startNext(): void {
    for (;;) {
      const nowMs = this.clock.monotonicMs()
      const project = this.share.next(this.waiting.keys(), this.free, nowMs)
      const lines = project === undefined ? undefined : this.waiting.get(project)
      const go = lines?.next()
      if (project === undefined || lines === undefined || go === undefined) return
      this.waiting.delete(project) // behind all others, if there is more of it
      if (lines.size > 0) this.waiting.set(project, lines)
      this.free -= 1
      this.share.entered(project, nowMs)
      go()
    }
  }
}
