// How often a caller may make the server do something: guesses of strangers, work for them, and new credentials.

import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { networkOf } from './caller-address.ts'

export interface Attempts {
  /** Runs `work`; throws `too_many_requests` for a caller that failed too often. Success costs nothing, unless `costs`
   *  says so. `who`: an address, or another name. */
  guard<T>(who: string | null, work: () => Promise<T>, costs?: 'failure' | 'always'): Promise<T>
}

export interface AttemptLimits {
  /** At once. */
  burst: number
  /** Until one is forgiven. */
  forgivenMs: number
  doing: string
  detail: string
}
/** Failed sign-ins. */
const SIGN_IN: AttemptLimits = { burst: 60, forgivenMs: 1_000, doing: 'sign in', detail: 'too many failed attempts' }
const NETWORKS_MAX = 20_000

export function createAttempts(clock: Pick<Clock, 'nowMs'>, { burst, forgivenMs, doing, detail }: AttemptLimits = SIGN_IN): Attempts {
  const spent = new Map<string, { count: number; atMs: number }>()
  const countOf = (network: string, nowMs: number): number => {
    const held = spent.get(network)
    return held === undefined ? 0 : Math.max(0, held.count - Math.max(0, nowMs - held.atMs) / forgivenMs)
  }
  const add = (network: string, count: number) => {
    const nowMs = clock.nowMs()
    const left = countOf(network, nowMs) + count
    spent.delete(network)
    if (left <= 0) return
    for (const oldest of spent.keys()) {
      if (spent.size < NETWORKS_MAX) break
      spent.delete(oldest)
    }
    spent.set(network, { count: left, atMs: nowMs })
  }
  return {
    async guard(who, work, costs = 'failure') {
      const network = networkOf(who ?? '')
      if (countOf(network, clock.nowMs()) >= burst) throw new AppError('too_many_requests', { doing, detail, retryAfterMs: forgivenMs })
      add(network, 1) // taken first, so that attempts at the same time count
      try {
        const response = await work()
        if (costs === 'failure') add(network, -1)
        return response
      } catch (error) {
        if (error instanceof AppError && error.code === 'sign_in_pending') add(network, -1)
        throw error
      }
    },
  }
}
