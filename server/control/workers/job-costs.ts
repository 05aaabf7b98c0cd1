// Processor time of jobs that share one worker process. The kernel counts it for the process, so time that passes while
// several jobs run is split evenly between them.

/** A job that runs. */
export interface JobCost {
  spentMs: number
}

export class JobCosts {
  /** Processor time of the process since its start, in ms. Null when the kernel does not tell. */
  private readonly read: () => number | null
  private readonly running = new Set<JobCost>()
  private lastMs: number | null

  constructor(read: () => number | null) {
    this.read = read
    this.lastMs = read()
  }

  begin(): JobCost {
    this.share()
    const cost = { spentMs: 0 }
    this.running.add(cost)
    return cost
  }

  /** The processor time of the job; null when it is not known. */
  end(cost: JobCost): number | null {
    this.share()
    this.running.delete(cost)
    return this.lastMs === null ? null : cost.spentMs
  }

  private share(): void {
    const nowMs = this.read()
    // A process that ended tells nothing. Its jobs keep what was counted until then.
    if (nowMs === null) return
    const eachMs = this.running.size === 0 ? 0 : Math.max(0, nowMs - (this.lastMs ?? nowMs)) / this.running.size
    for (const cost of this.running) cost.spentMs += eachMs
    this.lastMs = nowMs
  }
}
