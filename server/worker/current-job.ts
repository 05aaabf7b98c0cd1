// The job that the running code is part of. Jobs share sources, but each credential is asked for as part of one job.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { CallContext } from './channel/channel.ts'
import type { AskedAnswers } from './channel/messages.ts'

export interface CurrentJob {
  /** Projects share slots. */
  project: string
  /** Aborts when control gave the job up. */
  signal: AbortSignal
  ask<Name extends keyof AskedAnswers>(
    name: Name,
    value: unknown,
    data?: Uint8Array,
  ): Promise<{ value: AskedAnswers[Name]; data: Uint8Array }>
}

const jobs = new AsyncLocalStorage<CurrentJob>()

export function asJob<T>(project: string, { ask, signal }: CallContext, act: () => Promise<T>): Promise<T> {
  const job: CurrentJob = {
    project,
    signal,
    ask: async (name, value, data) => {
      const { value: answer, data: bytes } = await ask(name, value, data)
      return { value: answer as AskedAnswers[typeof name], data: bytes }
    },
  }
  return jobs.run(job, act)
}

/** Undefined outside a job. */
export const jobSignal = (): AbortSignal | undefined => jobs.getStore()?.signal

/** Throws outside a job, which is a bug. */
export function currentJob(): CurrentJob {
  const job = jobs.getStore()
  if (job === undefined) throw new Error('no current job')
  return job
}
