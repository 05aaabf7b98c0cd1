// The workers of this server. Each project has one worker, so that the folder of a source has one writer. A worker that ends
// is replaced. Each of its jobs runs once more, alone in another worker. A job that ends that worker, too, is the cause: it
// fails with the reason, and runs alone for an hour.

import type { z } from 'zod'
import { AppError } from '../../../shared/protocol/error.ts'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import { FairSlots } from '../../render/sandbox/fair-slots.ts'
import { ChannelEnded, type Handlers, type Reply } from '../../worker/channel/channel.ts'
import { ANSWERS, type Method, type Orders } from '../../worker/channel/messages.ts'
import { Suspects } from './suspects.ts'
import type { WorkerEnd, WorkerHandle } from './worker-process.ts'

/** `read` needs local files only. `fetch` waits for other machines, `render` for programs. */
export type JobKind = 'read' | 'fetch' | 'render'

export interface WorkerJob<Name extends Method> {
  method: Name
  order: Orders[Name]
  kind: JobKind
  project: string
  /** The repository or service, for messages. */
  subject: string
  /** Answers questions of the worker as part of this job. */
  serve?: Handlers
  signal?: AbortSignal
}

export type JobAnswer<Name extends Method> = { value: z.infer<(typeof ANSWERS)[Name]>; data: Uint8Array }

export interface WorkerPool {
  /** Throws what the job threw, `worker_stopped` for a job that ended its worker or took too long, and `unavailable` when no
   *  worker can be started. */
  run<Name extends Method>(job: WorkerJob<Name>): Promise<JobAnswer<Name>>
  close(): Promise<void>
}

export interface WorkerPoolDeps {
  /** `name` is `0`, `1`, … or `alone`. */
  start(name: string): Promise<WorkerHandle>
  /** Workers that share the projects, besides the one for jobs that run alone. */
  count: number
  /** An idle worker with more memory is replaced. */
  idleBytesMax: number
  clock: Clock
  log: Logger
}

/** Most jobs at the same time in one worker, and the deadline of each. */
const KINDS: Readonly<Record<JobKind, { atOnce: number; deadlineMs: number }>> = {
  read: { atOnce: 16, deadlineMs: 2 * 60_000 },
  fetch: { atOnce: 8, deadlineMs: 30 * 60_000 },
  render: { atOnce: 4, deadlineMs: 5 * 60_000 },
}
const ALONE = 'alone'
/** Time until a job that stopped its worker is retried. */
const AGAIN_AFTER_MS = 5 * 60_000

export function createWorkerPool(deps: WorkerPoolDeps): WorkerPool {
  return new Pool(deps)
}

type AnyJob = WorkerJob<Method>

class Pool implements WorkerPool {
  private readonly deps: WorkerPoolDeps
  private readonly lanes: readonly Lane[]
  private readonly alone: Lane
  private readonly suspects: Suspects
  private closed = false

  constructor(deps: WorkerPoolDeps) {
    this.deps = deps
    const slots = (atOnce: (kind: JobKind) => number) =>
      Object.fromEntries((Object.keys(KINDS) as JobKind[]).map((kind) => [kind, new FairSlots(atOnce(kind), deps.clock)])) as Slots
    this.lanes = Array.from(
      { length: deps.count },
      (_, index) =>
        new Lane(
          String(index),
          slots((kind) => KINDS[kind].atOnce),
          deps,
        ),
    )
    const one = new FairSlots(1, deps.clock)
    this.alone = new Lane(ALONE, { read: one, fetch: one, render: one }, deps)
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
    await Promise.all([...this.lanes, this.alone].map((lane) => lane.close()))
  }

  private async runSomewhere(job: AnyJob): Promise<Reply> {
    if (!this.suspects.has(job)) {
      try {
        return await this.laneOf(job.project).run(job)
      } catch (error) {
        if (!(error instanceof WorkerDied)) throw error
        this.unlessClosed()
      }
    }
    try {
      return await this.alone.run(job)
    } catch (error) {
      if (!(error instanceof WorkerDied)) throw error
      this.unlessClosed()
      this.suspects.add(job)
      this.deps.log.warn('job stopped its worker', {
        job: job.method,
        project: job.project,
        subject: job.subject,
        why: error.end.why,
        detail: error.end.detail,
      })
      throw new AppError('worker_stopped', { detail: `${job.subject}: ${textOf(error.end)}`, retryAfterMs: AGAIN_AFTER_MS })
    }
  }

  private unlessClosed(): void {
    if (this.closed) throw new AppError('unavailable', { detail: 'the server stops' })
  }

  private laneOf(project: string): Lane {
    const lane = this.lanes[Number(BigInt(Bun.hash(project)) % BigInt(this.lanes.length))]
    if (lane === undefined) throw new Error('no worker processes')
    return lane
  }
}

const textOf = ({ why, detail }: WorkerEnd): string =>
  why === 'silent' ? `reading it ${detail}` : why === 'memory' ? `reading it ${detail}` : `its worker process stopped: ${detail}`

class WorkerDied extends Error {
  readonly end: WorkerEnd
  constructor(end: WorkerEnd) {
    super(end.detail)
    this.end = end
  }
}

type Slots = Readonly<Record<JobKind, FairSlots>>

/** The place of one worker: it starts, replaces and ends the process. */
class Lane {
  private readonly name: string
  private readonly slots: Slots
  private readonly deps: WorkerPoolDeps
  private worker: Promise<WorkerHandle> | null = null
  private jobs = 0
  private closing = new AbortController()

  constructor(name: string, slots: Slots, deps: WorkerPoolDeps) {
    this.name = name
    this.slots = slots
    this.deps = deps
  }

  run(job: AnyJob): Promise<Reply> {
    const signal = job.signal === undefined ? this.closing.signal : AbortSignal.any([job.signal, this.closing.signal])
    return this.slots[job.kind].run(job, () => this.runNow(job, signal), signal)
  }

  async close(): Promise<void> {
    this.closing.abort(new AppError('unavailable', { detail: 'the server stops' }))
    const worker = await this.worker?.catch(() => null)
    await worker?.close()
  }

  private async runNow(job: AnyJob, signal: AbortSignal): Promise<Reply> {
    this.jobs += 1
    try {
      const worker = await this.started()
      signal.throwIfAborted()
      return await this.ask(worker, job, signal)
    } finally {
      this.jobs -= 1
      if (this.jobs === 0) await this.renewIfLarge()
    }
  }

  private async ask(worker: WorkerHandle, { method, order, kind, subject, serve }: AnyJob, signal: AbortSignal): Promise<Reply> {
    const { deadlineMs } = KINDS[kind]
    const late = new AbortController()
    const done = new AbortController()
    void this.deps.clock.sleep(deadlineMs, done.signal).then(() => {
      if (!done.signal.aborted)
        late.abort(
          new AppError('worker_stopped', {
            detail: `${subject}: did not end within ${deadlineMs / 1_000} s`,
            retryAfterMs: AGAIN_AFTER_MS,
          }),
        )
    })
    try {
      return await worker.call(method, order, { signal: AbortSignal.any([signal, late.signal]), ...(serve === undefined ? {} : { serve }) })
    } catch (error) {
      if (error instanceof ChannelEnded) throw new WorkerDied(await worker.ended)
      throw error
    } finally {
      done.abort()
    }
  }

  private started(): Promise<WorkerHandle> {
    if (this.worker !== null) return this.worker
    const starting: Promise<WorkerHandle> = this.start(() => starting)
    this.worker = starting
    return starting
  }

  private async start(own: () => Promise<WorkerHandle>): Promise<WorkerHandle> {
    const { start, log } = this.deps
    const forget = () => {
      if (this.worker === own()) this.worker = null
    }
    try {
      const worker = await start(this.name)
      void worker.ended.then((end) => {
        forget()
        if (end.why !== 'closed') log.warn('worker ended', { worker: this.name, jobs: this.jobs, why: end.why, detail: end.detail })
      })
      return worker
    } catch (error) {
      forget()
      log.error('worker cannot be started', { worker: this.name, error: describeError(error) })
      throw new AppError('unavailable', { detail: `no worker can be started: ${describeError(error)}` }, { cause: error })
    }
  }

  private async renewIfLarge(): Promise<void> {
    const worker = await this.worker?.catch(() => null)
    if (worker == null || this.jobs > 0 || worker.memoryBytes() <= this.deps.idleBytesMax) return
    this.worker = null
    worker.kill({ why: 'closed', detail: 'its memory is mostly unused' })
  }
}
