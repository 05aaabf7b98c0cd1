// How often callers without a credential may fail: guesses, and work that a stranger makes the server do.
import { AppError } from '../../shared/protocol/error.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { networkOf } from './caller-address.ts'

export interface Attempts {
  /** Runs `work`; throws `too_many_requests` for an address that failed too often. Success costs nothing, unless `costs` says so. */
  guard(address: string | null, work: () => Promise<Response>, costs?: 'failure' | 'always'): Promise<Response>
}

/** Failures at once, and how fast they are forgiven. */
const BURST = 60
const FORGIVEN_PER_MS = 1 / 1_000
const NETWORKS_MAX = 20_000

export function createAttempts(clock: Clock, burst = BURST): Attempts {
  const spent = new Map<string, { count: number; atMs: number }>()
  const countOf = (network: string, nowMs: number): number => {
    const held = spent.get(network)
    return held === undefined ? 0 : Math.max(0, held.count - Math.max(0, nowMs - held.atMs) * FORGIVEN_PER_MS)
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
    async guard(address, work, costs = 'failure') {
      const network = networkOf(address ?? '')
      if (countOf(network, clock.nowMs()) >= burst)
        throw new AppError('too_many_requests', { doing: 'sign in', detail: 'too many failed attempts', retryAfterMs: 1 / FORGIVEN_PER_MS })
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
