// The one retry policy: every loop of server and agent runs in runLoop, so waiting, backing off and stopping are
// written once.

import { type BackoffLimits, backoffMs } from './backoff.ts'
import type { Clock } from './clock.ts'
import { AppError } from './error.ts'
import type { Logger } from './logger.ts'
import type { Random } from './random.ts'

export interface LoopOptions {
  name: string
  /** One turn. Resolves to continue at once; the turn itself waits for work. Throws to be retried after a backoff. */
  turn: (signal: AbortSignal) => Promise<void>
  /**
   * Called for every failure before the wait, so that a visible state can contain it. `null` after a successful turn.
   */
  onFailure?: (failure: { error: unknown; attempt: number; retryInMs: number } | null) => void
  backoff: BackoffLimits
  clock: Clock
  random: Random
  log: Logger
  signal: AbortSignal
}

/** The only retry policy in Skerry: full jitter, capped, reset by success, ended by the signal. A short blip is logged
 *  at debug level, an outage at warn once for each cause: a log says what changed, and a night without network is no
 *  change. */
export async function runLoop(options: LoopOptions): Promise<void> {
  const { name, turn, onFailure, backoff, clock, random, log, signal } = options
  let attempt = 0
  let told = ''
  while (!signal.aborted) {
    try {
      await turn(signal)
      if (attempt > 0) log.info('loop recovered', { loop: name, attempts: attempt })
      attempt = 0
      told = ''
      onFailure?.(null)
    } catch (error) {
      if (signal.aborted) return
      const retryAfterMs = error instanceof AppError ? error.retryAfterMs : undefined
      const retryInMs = backoffMs(attempt, backoff, random, retryAfterMs)
      const fields = { loop: name, attempt, retryInMs, error: describeError(error) }
      if ((retryInMs < 1000 && attempt < 3) || fields.error === told) log.debug('loop iteration failed', fields)
      else {
        log.warn('loop iteration failed', fields)
        told = fields.error
      }
      onFailure?.({ error, attempt, retryInMs })
      attempt += 1
      await clock.sleep(retryInMs, signal)
    }
  }
}

/** One line for logs and states: the message, and the causes behind it. A SyntaxError quotes the text that it could not
 *  parse, which may hold a secret: the quotation is left out. */
export function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const message = error instanceof SyntaxError ? error.message.replace(/["'`].*/s, '').trim() : error.message
  const cause = error.cause === undefined ? '' : ` (${describeError(error.cause)})`
  return `${message}${cause}`
}
