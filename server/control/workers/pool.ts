// The workers of this server. Each project has one worker, so that the folder of a source has one writer. A worker that
// ends is replaced. Each of its jobs runs once more, alone in another worker. A job that ends that worker, too, is the
// cause: it fails with the reason, and runs alone for an hour.

import type { z } from 'zod'
import { AppError } from '../../../shared/runtime/error.ts'
import { FairSlots } from '../../render/sandbox/fair-slots.ts'
import type { Reply } from '../../worker/channel/channel.ts'
import { ANSWERS, type Method } from '../../worker/channel/messages.ts'
import { AGAIN_AFTER_MS, type AnyJob, doing, type JobKind, Lane, type LaneDeps, WorkerDied, type WorkerJob } from './lane.ts'
import { Suspects } from './suspects.ts'
import type { WorkerEnd } from './worker-process.ts'

export type JobAnswer<Name extends Method> = { value: z.infer<(typeof ANSWERS)[Name]>; data: Uint8Array }

export interface WorkerPool {
  /** Throws what the job threw, `worker_stopped` for a job that ended its worker or took too long, and `unavailable`
   *  when no worker can be started. */
  run<Name extends Method>(job: WorkerJob<Name>): Promise<JobAnswer<Name>>
  close(): Promise<void>
}

export interface WorkerPoolDeps extends LaneDeps {
  /** Workers that share the projects, besides those for jobs that run alone. */
  count: number
}

/** Most jobs at the same time in one worker, and the deadline of each. */
const KINDS: Readonly<Record<JobKind, { atOnce: number; deadlineMs: number }>> = {
  read: { atOnce: 16, deadlineMs: 2 * 60_000 },
  fetch: { atOnce: 8, deadlineMs: 30 * 60_000 },
  render: { atOnce: 4, deadlineMs: 5 * 60_000 },
}
/** Workers for jobs that run alone. A project has one of them at a time, so that its sources have one writer there. */
const ALONE_COUNT = 2
/** A slow Git server must not keep others out of those for as long as a fetch may take. */
const ALONE_DEADLINE_MS = 5 * 60_000

export function createWorkerPool(deps: WorkerPoolDeps): WorkerPool {
  return new Pool(deps)
}

/** A worker that takes jobs of several projects side by side. */
interface SharedLane {
  lane: Lane
  slots: Readonly<Record<JobKind, FairSlots>>
}

class Pool implements WorkerPool {
  private readonly deps: WorkerPoolDeps
  private readonly shared: readonly SharedLane[]
  private readonly alone: readonly Lane[]
  private readonly idleAlone: Lane[]
  private readonly aloneSlots: FairSlots
  private readonly suspects: Suspects
  private closed = false

  constructor(deps: WorkerPoolDeps) {
    this.deps = deps
    const slotsOf = (kind: JobKind) => new FairSlots(KINDS[kind].atOnce, deps.clock)
    this.shared = Array.from({ length: deps.count }, (_, index) => ({
      lane: new Lane(String(index), deps),
      slots: { read: slotsOf('read'), fetch: slotsOf('fetch'), render: slotsOf('render') },
    }))
    this.alone = Array.from({ length: ALONE_COUNT }, (_, index) => new Lane(`alone-${index}`, deps))
    this.idleAlone = [...this.alone].reverse()
    this.aloneSlots = new FairSlots(ALONE_COUNT, deps.clock, 1)
    this.suspects = new Suspects(deps.clock)
  }

  async run<Name extends Method>(job: WorkerJob<Name>): Promise<JobAnswer<Name>> {
    const { value, data } = await this.runSomewhere(job as unknown as AnyJob)
    const read = ANSWERS[job.method].safeParse(value)
    if (!read.success) throw new Error(`a worker sent an invalid answer to ${job.method}`)
    return { value: read.data as JobAnswer<Name>['value'], data }
  }

  async close(): Promise<void> {
    this.closed = true
    await Promise.all([...this.shared.map(({ lane }) => lane), ...this.alone].map((lane) => lane.close()))
  }

  private async runSomewhere(job: AnyJob): Promise<Reply> {
    if (!this.suspects.has(job)) {
      try {
        return await this.runShared(job)
      } catch (error) {
        if (!(error instanceof WorkerDied)) throw error
        this.unlessClosed()
      }
    }
    try {
      return await this.runAlone(job)
    } catch (error) {
      if (!(error instanceof WorkerDied)) throw error
      this.unlessClosed()
      this.suspects.add(job)
      const { method, project, subject } = job
      const { why, detail } = error.end
      this.deps.log.warn('job stopped its worker', { job: method, project, subject, why, detail })
      throw new AppError('worker_stopped', { detail: reasonOf(job, error.end), retryAfterMs: AGAIN_AFTER_MS })
    }
  }

  private runShared(job: AnyJob): Promise<Reply> {
    const { lane, slots } = this.sharedOf(job.project)
    return inPlace(slots[job.kind], job, lane.signalOf(job), (waiter) => lane.run(job, KINDS[job.kind].deadlineMs, waiter))
  }

  private runAlone(job: AnyJob): Promise<Reply> {
    const [first] = this.alone
    const deadlineMs = Math.min(KINDS[job.kind].deadlineMs, ALONE_DEADLINE_MS)
    return inPlace(this.aloneSlots, job, first?.signalOf(job), async (waiter) => {
      const lane = this.idleAlone.pop()
      if (lane === undefined) throw new Error('more jobs run alone than there are workers for them')
      return lane.run(job, deadlineMs, waiter).finally(() => this.idleAlone.push(lane))
    })
  }

  private unlessClosed(): void {
    if (this.closed) throw new AppError('unavailable', { detail: 'the server stops' })
  }

  private sharedOf(project: string): SharedLane {
    const lane = this.shared[Number(BigInt(Bun.hash(project)) % BigInt(this.shared.length))]
    if (lane === undefined) throw new Error('no worker processes')
    return lane
  }
}

/** The caller gets its answer when the waiter is settled. The place is free when `work` ends, with the processor time
 *  that it used. */
function inPlace(
  slots: FairSlots,
  job: AnyJob,
  signal: AbortSignal | undefined,
  work: (waiter: PromiseWithResolvers<Reply>) => Promise<number | null>,
): Promise<Reply> {
  const waiter = Promise.withResolvers<Reply>()
  const occupy = async (spent: (processorMs: number) => void) => {
    const processorMs = await work(waiter)
    if (processorMs !== null) spent(processorMs)
  }
  slots.run(job, occupy, signal).catch(waiter.reject)
  return waiter.promise
}

const reasonOf = (job: AnyJob, { why, detail }: WorkerEnd): string =>
  why === 'memory' || why === 'silent'
    ? `${doing(job)} ${detail}, so its worker process was stopped`
    : `${doing(job)} ended its worker process: ${detail}`
