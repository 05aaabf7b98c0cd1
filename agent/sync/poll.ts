// One pull: from a cursor, or for everything, to the event that it ends in. The wait of a poll adapts to what lies between agent and server.
import { cursorText } from '../../shared/crdt/position.ts'
import { AppError } from '../../shared/protocol/error.ts'
import { PAGE_BYTES_MAX, ROUTES } from '../../shared/protocol/routes.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { ApplyPageResult, Replica } from '../replica/replica.ts'
import { TIMED_OUT } from './server-client.ts'
import { CALL_TIMEOUT_MS, type SessionKeeper } from './session-keeper.ts'

/** A poll that lived this long and was then cut was cut by a proxy that dislikes silence: nothing new, and a shorter wait. */
export const CUT_AFTER_MS = 5_000
const WAIT_SECONDS_MIN = 5
/** An empty answer long before its time is followed by a pause, lest a server or proxy that does not wait gets a thousand polls a second. */
export const EMPTY_POLL_MS_MIN = 20_000

export type PullResult = ApplyPageResult | { kind: 'nothing_new'; pauseMs: number } | { kind: 'must_refetch'; reason: string }

export interface Poll {
  /** `patient`: waits for news; else the answer comes at once. */
  follow(replica: Replica, options: { patient: boolean; outboxDepth: number }, signal: AbortSignal): Promise<PullResult>
  bootstrap(replica: Replica, signal: AbortSignal): Promise<PullResult>
}

export function createPoll(session: SessionKeeper, clock: Clock, waitSecondsMax: number): Poll {
  let waitSeconds = waitSecondsMax

  const pull = async (
    replica: Replica,
    query: Record<string, string>,
    timeoutMs: number,
    signal: AbortSignal,
  ): Promise<PullResult | null> => {
    const call = { doing: 'pull', method: 'GET', path: ROUTES.desired, query, answerBytesMax: PAGE_BYTES_MAX, timeoutMs, signal } as const
    try {
      const { status, body } = await session.call(call)
      return status === 204 ? null : replica.applyPage(body)
    } catch (error) {
      if (!(error instanceof AppError && error.code === 'must_refetch')) throw error
      return { kind: 'must_refetch', reason: String(error.data.extra?.['reason'] ?? 'unknown') }
    }
  }

  return {
    async bootstrap(replica, signal) {
      return (await pull(replica, {}, BOOTSTRAP_TIMEOUT_MS, signal)) ?? { kind: 'nothing_new', pauseMs: 0 }
    },
    async follow(replica, { patient, outboxDepth }, signal) {
      const position = replica.position()
      if (position === null) throw new AppError('internal', { doing: 'pull', detail: 'there is no cursor' })
      const query: Record<string, string> = { cursor: cursorText(position), wait: patient ? String(waitSeconds) : '0' }
      if (outboxDepth > 0) query['outbox'] = String(outboxDepth)
      const startMs = clock.nowMs()
      try {
        const result = await pull(replica, query, waitSeconds * 1000 + CALL_TIMEOUT_MS, signal)
        const tookMs = clock.nowMs() - startMs
        if (result !== null) return result
        if (!patient) return { kind: 'nothing_new', pauseMs: 0 }
        const pauseMs = Math.max(0, Math.min(EMPTY_POLL_MS_MIN, waitSeconds * 1000) - tookMs)
        waitSeconds = Math.min(waitSecondsMax, waitSeconds + 1)
        return { kind: 'nothing_new', pauseMs }
      } catch (error) {
        const tookMs = clock.nowMs() - startMs
        if (!isCut(error) || tookMs < CUT_AFTER_MS || signal.aborted) throw error
        waitSeconds = Math.max(WAIT_SECONDS_MIN, Math.min(waitSeconds, Math.floor((tookMs / 1000) * 0.8)))
        return { kind: 'nothing_new', pauseMs: 0 }
      }
    },
  }
}

/** Ten minutes: a bootstrap over a bad link is worth waiting for. */
const BOOTSTRAP_TIMEOUT_MS = 600_000

const isCut = (error: unknown): boolean =>
  error instanceof AppError && error.code === 'server_unreachable' && error.data.detail !== TIMED_OUT
