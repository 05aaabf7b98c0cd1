// A limited number of jobs at once. Projects that wait share the places by the processor time that they used lately.
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
  private readonly share: FairShare
  /** By project, whose lines are those of its subjects. */
  private readonly waiting = new Map<string, ReturnType<typeof createLines<() => void>>>()

  /** `ofOneMax`: places that one project may have, whoever else is there. */
  constructor(count: number, clock: Pick<Clock, 'monotonicMs'>, ofOneMax = count) {
    this.free = count
    this.clock = clock
    this.share = new FairShare(ofOneMax)
  }

  /** `spent` is told how much processor time the work used; without it, the time from begin to end counts. Throws the
   *  signal's reason when that aborts before the work begins. */
  async run<T>(asker: Asker, work: (spent: (processorMs: number) => void) => Promise<T>, signal?: AbortSignal): Promise<T> {
    await this.enter(asker, signal)
    const sinceMs = this.clock.monotonicMs()
    let spentMs: number | null = null
    try {
      return await work((processorMs) => {
        spentMs = (spentMs ?? 0) + processorMs
      })
    } finally {
      const nowMs = this.clock.monotonicMs()
      this.free += 1
      this.share.left(asker.project, spentMs ?? nowMs - sinceMs, nowMs)
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
