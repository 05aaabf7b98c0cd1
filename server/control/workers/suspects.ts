// Repositories and services that ended a worker while alone in it. They run alone for an hour. A project with several
// of them runs alone as a whole.
import type { Clock } from '../../../shared/runtime/clock.ts'

const SUSPECTED_MS = 60 * 60_000
/** So many suspects make the whole project run alone. */
const OF_A_PROJECT = 3

export interface Suspect {
  project: string
  subject: string
}

export class Suspects {
  private readonly clock: Pick<Clock, 'monotonicMs'>
  /** End of the hour by project and subject, ms of the monotonic clock. */
  private readonly untilMs = new Map<string, Map<string, number>>()

  constructor(clock: Pick<Clock, 'monotonicMs'>) {
    this.clock = clock
  }

  add({ project, subject }: Suspect): void {
    const ofProject = this.untilMs.get(project) ?? new Map<string, number>()
    this.untilMs.set(project, ofProject.set(subject, this.clock.monotonicMs() + SUSPECTED_MS))
  }

  has({ project, subject }: Suspect): boolean {
    const ofProject = this.untilMs.get(project)
    if (ofProject === undefined) return false
    const nowMs = this.clock.monotonicMs()
    for (const [one, untilMs] of ofProject) if (untilMs <= nowMs) ofProject.delete(one)
    if (ofProject.size === 0) this.untilMs.delete(project)
    return ofProject.has(subject) || ofProject.size >= OF_A_PROJECT
  }
}
