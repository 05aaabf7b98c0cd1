// What ended a worker although it was alone in it: for an hour it is done alone again, and so is all of a project of which that is true of several.
import type { Clock } from '../../../shared/runtime/clock.ts'

const SUSPECTED_MS = 60 * 60_000
/** From so many on it is the whole project. */
const OF_A_PROJECT = 3

export interface Suspect {
  project: string
  subject: string
}

export class Suspects {
  private readonly clock: Pick<Clock, 'monotonicMs'>
  /** By project and subject, until when. */
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
