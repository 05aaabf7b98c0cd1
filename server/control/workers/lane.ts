// The place of one worker process: it starts the process, gives it jobs, and replaces it when it ended or holds too
// much memory. A job that ignores its deadline ends the process, so that it cannot go on unseen.

import { type Clock, OVER } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import { ChannelEnded, type Handlers, type Reply } from '../../worker/channel/channel.ts'
import type { Method, Orders } from '../../worker/channel/messages.ts'
import { JobCosts } from './job-costs.ts'
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
export type AnyJob = WorkerJob<Method>

export interface LaneDeps {
  /** `name` is `0`, `1`, … or `alone-0`, `alone-1`. */
  start(name: string): Promise<WorkerHandle>
  /** An idle worker with more memory is replaced. */
  idleBytesMax: number
  clock: Clock
  log: Logger
}

/** Time until a job that stopped its worker is retried. */
export const AGAIN_AFTER_MS = 5 * 60_000
/** Time for a job to end after it was cancelled. */
const CANCEL_MS = 10_000

export class WorkerDied extends Error {
  readonly end: WorkerEnd
  constructor(end: WorkerEnd) {
    super(end.detail)
    this.end = end
  }
}

/** The subject of a message: `service default/web: rendering`. */
export const doing = ({ subject, kind }: AnyJob): string => `${subject}: ${kind === 'render' ? 'rendering' : 'reading'}`

/** The caller of a job. The place of a job is taken until the worker has ended the job, which may be later. */
export type Waiter = Pick<PromiseWithResolvers<Reply>, 'resolve' | 'reject'>

interface StartedWorker {
  worker: WorkerHandle
  costs: JobCosts
}

export class Lane {
  private readonly name: string
  private readonly deps: LaneDeps
  private worker: Promise<StartedWorker> | null = null
  private jobs = 0
  private readonly closing = new AbortController()

  constructor(name: string, deps: LaneDeps) {
    this.name = name
    this.deps = deps
  }

  /** Aborts when the lane closes, or when nobody waits for the job any more. */
  signalOf({ signal }: AnyJob): AbortSignal {
    return signal === undefined ? this.closing.signal : AbortSignal.any([signal, this.closing.signal])
  }

  /** Settles `waiter` with the answer, with WorkerDied or an AppError. Resolves when the job holds its place no longer,
   *  with the processor time that it used; null when that is not known. */
  async run(job: AnyJob, deadlineMs: number, waiter: Waiter): Promise<number | null> {
    this.jobs += 1
    const signal = this.signalOf(job)
    try {
      const { worker, costs } = await this.started()
      signal.throwIfAborted()
      const cost = costs.begin()
      await this.ask(worker, job, { deadlineMs, signal, waiter })
      return costs.end(cost)
    } catch (error) {
      waiter.reject(error)
      return null
    } finally {
      this.jobs -= 1
      if (this.jobs === 0) await this.renewIfLarge()
    }
  }

  async close(): Promise<void> {
    this.closing.abort(new AppError('unavailable', { detail: 'the server stops' }))
    const started = await this.worker?.catch(() => null)
    await started?.worker.close()
  }

  private async ask(
    worker: WorkerHandle,
    job: AnyJob,
    { deadlineMs, signal, waiter }: { deadlineMs: number; signal: AbortSignal; waiter: Waiter },
  ): Promise<void> {
    const { clock } = this.deps
    const detail = `${doing(job)} did not end within ${Math.round(deadlineMs / 1_000)} s`
    const late = new AbortController()
    const given = AbortSignal.any([signal, late.signal])
    const done = new AbortController()
    void clock.sleep(deadlineMs, done.signal).then(() => {
      if (!done.signal.aborted) late.abort(new AppError('worker_stopped', { detail, retryAfterMs: AGAIN_AFTER_MS }))
    })
    const onGivenUp = () =>
      void clock.sleep(CANCEL_MS, done.signal).then(() => {
        if (!done.signal.aborted) worker.kill({ why: 'deadline', detail })
      })
    given.addEventListener('abort', onGivenUp, { once: true })
    await new Promise<void>((ended) => {
      const options = { signal: given, ended, ...(job.serve === undefined ? {} : { serve: job.serve }) }
      worker.call(job.method, job.order, options).then(waiter.resolve, async (error: unknown) => {
        waiter.reject(error instanceof ChannelEnded ? new WorkerDied(await worker.ended) : error)
      })
    })
    // The signal lives as long as the lane, and the listener would keep the answer with it.
    given.removeEventListener('abort', onGivenUp)
    done.abort(OVER)
  }

  private started(): Promise<StartedWorker> {
    if (this.worker !== null) return this.worker
    const starting: Promise<StartedWorker> = this.start(() => starting)
    this.worker = starting
    return starting
  }

  private async start(own: () => Promise<StartedWorker>): Promise<StartedWorker> {
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
      return { worker, costs: new JobCosts(() => worker.processorMs()) }
    } catch (error) {
      forget()
      log.error('worker cannot be started', { worker: this.name, error: describeError(error) })
      throw new AppError('unavailable', { detail: `no worker can be started: ${describeError(error)}` }, { cause: error })
    }
  }

  private async renewIfLarge(): Promise<void> {
    const started = await this.worker?.catch(() => null)
    if (started == null || this.jobs > 0 || started.worker.memoryBytes() <= this.deps.idleBytesMax) return
    this.worker = null
    started.worker.kill({ why: 'closed', detail: 'its memory is mostly unused' })
  }
}
