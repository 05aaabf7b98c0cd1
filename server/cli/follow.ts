// Changes at the server from now on: a stream of hints, each of which says what to read again.

import type { StreamEvent } from '../../client/events.ts'
import { type ChangeTopic, type ChangeView, changeViewSchema, positionSchema, READY_EVENT, RESET_EVENT } from '../../shared/model/change.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
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
  const onLost = (tries: number) => {
    if (tries === 2) io.stderr.write('connection lost; retrying\n')
  }
  let isReady = false
  for await (const event of client().follow({ topics, signal, onLost })) {
    const step = stepOf(event)
    if (step !== null && !(step.kind === 'ready' && isReady)) yield step
    isReady ||= step?.kind === 'ready'
  }
}

/** No answer, or a server that stops or has too much to do. */
const isPassing = (error: AppError): boolean =>
  ['server_unreachable', 'unavailable', 'too_many_requests', 'store_unreachable'].includes(error.code)

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
