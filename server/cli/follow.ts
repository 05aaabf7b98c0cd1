// Changes at the server from now on: a stream of hints, each of which says what to read again. It resumes where it was
// cut.

import { readEventStream, type StreamEvent } from '../../client/events.ts'
import { type ChangeTopic, type ChangeView, changeViewSchema, positionSchema, READY_EVENT, RESET_EVENT } from '../../shared/model/change.ts'
import { AppError } from '../../shared/protocol/error.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Context } from './context.ts'

export type FollowStep =
  /** From here on nothing is missed: what is listed now is kept up to date by what follows. */
  | { kind: 'ready' }
  /** Something was missed: list again. */
  | { kind: 'reset' }
  | { kind: 'change'; change: ChangeView }

const RETRY_MS_MIN = 500
const RETRY_MS_MAX = 10_000

/** Ends with the signal. Throws errors of the start, and those that no retry solves. */
export async function* follow({ io, client }: Context, topics: readonly ChangeTopic[], signal: AbortSignal): AsyncGenerator<FollowStep> {
  let last: string | null = null
  let failures = 0
  while (!signal.aborted) {
    try {
      const body = await client().stream('/changes', { topic: topics.join(',') }, last, signal)
      for await (const event of readEventStream(body)) {
        failures = 0
        const step = stepOf(event)
        if (step?.kind === 'ready' ? last === null : step !== null) yield step as FollowStep
        last = event.id ?? last
      }
      if (signal.aborted) return
    } catch (error) {
      if (signal.aborted) return
      if (last === null || !isPassing(error)) throw error
      failures += 1
      if (failures === 2) io.stderr.write('connection lost; retrying\n')
      const retryMs = error instanceof AppError ? (error.retryAfterMs ?? 0) : 0
      await io.clock.sleep(Math.max(retryMs, Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** failures)), signal)
      continue
    }
    await io.clock.sleep(RETRY_MS_MIN, signal) // it ended in order: the server stops
  }
}

/** No answer, a server that stops or has too much to do; a connection that breaks is no AppError. */
const isPassing = (error: unknown): boolean =>
  !(error instanceof AppError) || ['server_unreachable', 'unavailable', 'too_many_requests', 'store_unreachable'].includes(error.code)

/** Again and again while the server is away; what ends it is an answer, another error, or the signal. */
export async function patiently<T>({ io }: Context, signal: AbortSignal, read: () => Promise<T>): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await read()
    } catch (error) {
      if (signal.aborted || !(error instanceof AppError) || !isPassing(error)) throw error
      await io.clock.sleep(Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** failures), signal)
    }
  }
}

/** Null if only the position moved, or it is an event of a newer server. */
function stepOf({ event, data }: StreamEvent): FollowStep | null {
  if (event === '') return null
  const parsed: unknown = JSON.parse(data)
  if (event === READY_EVENT || event === RESET_EVENT) {
    positionSchema.parse(parsed)
    return { kind: event }
  }
  const change = changeViewSchema.safeParse(parsed)
  return change.success ? { kind: 'change', change: change.data } : null
}

/** Items that come within this time of the first are returned together, so that they are read once. */
export async function* gathered<T>(items: AsyncIterable<T>, gatherMs: number, clock: Clock): AsyncGenerator<T[]> {
  const iterator = items[Symbol.asyncIterator]()
  let pending = iterator.next()
  for (;;) {
    const first = await pending
    if (first.done === true) return
    const batch = [first.value]
    pending = iterator.next()
    const over = clock.sleep(gatherMs).then(() => null)
    for (;;) {
      const next = await Promise.race([pending, over])
      if (next === null || next.done === true) break
      batch.push(next.value)
      pending = iterator.next()
    }
    yield batch
  }
}
