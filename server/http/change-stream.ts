// Changes as server-sent events. A reader that is slow is not read ahead for: what it misses meanwhile it gets from the
// store, and one that takes nothing at all is cut by the idle timeout of its connection.
import { READY_EVENT, RESET_EVENT } from '../../shared/model/change.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Change, ChangeFeed, FollowOptions } from '../store/feed/change-feed.ts'

export const STREAMS_MAX = 1_000
/** A dashboard takes one for each tab. */
export const STREAMS_OF_CALLER_MAX = 100
/** Below the idle timeouts of this server (30 s) and of proxies on the way. */
export const HEARTBEAT_MS = 15_000
const RETRY_AFTER_MS = 10_000
/** The time after which a browser reconnects. */
const RECONNECT_MS = 2_000
/** Handed to the connection at once. */
const CHUNK_BYTES = 64 * 1_024

type Sight = (items: readonly Change[]) => Promise<((change: Change) => Change | null) | null>

export interface ChangeStreams {
  /** Throws `too_many_requests` beyond STREAMS_MAX. Without `after`: from now on. */
  /** `ended` aborts when the caller's token is revoked. */
  /** `sight`: the changes that the caller may see; computed again for each batch; null ends the stream. */
  /** `caller`: whose streams count together. */
  open(
    request: Request,
    after: number | undefined,
    topics: FollowOptions['topics'],
    ended?: AbortSignal,
    sight?: Sight,
    caller?: string,
  ): Promise<Response>
}

/** `stopping`: of the server. */
export function createChangeStreams(feed: ChangeFeed, stopping: AbortSignal): ChangeStreams {
  let open = 0
  const ofCallers = new Map<string, number>()
  const count = (caller: string | undefined, by: 1 | -1) => {
    open += by
    if (caller === undefined) return
    const own = (ofCallers.get(caller) ?? 0) + by
    if (own === 0) ofCallers.delete(caller)
    else ofCallers.set(caller, own)
  }
  return {
    async open(request, after, topics, ended, sight, caller) {
      if (stopping.aborted) throw new AppError('unavailable', { detail: 'the server is stopping', retryAfterMs: RETRY_AFTER_MS })
      if (open >= STREAMS_MAX) {
        const detail = `at most ${STREAMS_MAX} streams at once`
        throw new AppError('too_many_requests', { doing: 'follow changes', detail, retryAfterMs: RETRY_AFTER_MS })
      }
      if (caller !== undefined && (ofCallers.get(caller) ?? 0) >= STREAMS_OF_CALLER_MAX) {
        const detail = `at most ${STREAMS_OF_CALLER_MAX} streams of one caller at once`
        throw new AppError('too_many_requests', { doing: 'follow changes', detail, retryAfterMs: RETRY_AFTER_MS })
      }
      count(caller, 1)
      const from =
        after ??
        (await feed.position().catch((error: unknown) => {
          count(caller, -1)
          throw error
        }))
      const ending = new AbortController()
      const chunks = frames(feed, from, { signal: ending.signal, idleMs: HEARTBEAT_MS, ...(topics === undefined ? {} : { topics }) }, sight)
      const end = () => {
        if (ending.signal.aborted) return
        count(caller, -1)
        ending.abort()
        stopping.removeEventListener('abort', end)
        request.signal.removeEventListener('abort', end)
        ended?.removeEventListener('abort', end)
        void chunks.return(undefined) // it may be where nobody asks it for more
      }
      stopping.addEventListener('abort', end)
      request.signal.addEventListener('abort', end)
      ended?.addEventListener('abort', end)
      if (request.signal.aborted || ended?.aborted === true || stopping.aborted) end()
      return new Response(streamOf(chunks, end), { headers: HEADERS })
    },
  }
}

const HEADERS = { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-store', 'x-accel-buffering': 'no' }

/** Asked for the next chunk only when the connection took the one before. */
function streamOf(chunks: AsyncGenerator<Uint8Array<ArrayBuffer>>, end: () => void): ReadableStream<Uint8Array<ArrayBuffer>> {
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        const next = await chunks.next().catch(() => null) // the store cannot be read: who follows comes back
        if (next !== null && next.done !== true) return controller.enqueue(next.value)
        end()
        controller.close()
      },
      cancel: end,
    },
    { highWaterMark: 0 },
  )
}

async function* frames(feed: ChangeFeed, from: number, options: FollowOptions, sight?: Sight): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  yield bytes(`retry: ${RECONNECT_MS}\n${eventText(from, READY_EVENT, { position: from })}`)
  for await (const step of feed.follow(from, options)) {
    const see = await sight?.(step.kind === 'changes' ? step.items : [])
    if (see === null) return
    if (step.kind === 'changes') {
      const items = see === undefined ? step.items : seen(step.items, see)
      if (items.length > 0) yield* chunksOf(items)
    }
    // A comment line keeps the connection open and carries the number to resume from, which watchers of few topics
    // would otherwise never get.
    else if (step.kind === 'idle') yield bytes(`:\nid: ${step.next}\n\n`)
    else yield bytes(eventText(step.newest, RESET_EVENT, { position: step.newest }))
  }
}

export const seen = (items: readonly Change[], sight: (change: Change) => Change | null): Change[] =>
  items.flatMap((change) => sight(change) ?? [])

function* chunksOf(items: readonly Change[]): Generator<Uint8Array<ArrayBuffer>> {
  let chunk: Uint8Array[] = []
  let size = 0
  for (const change of items) {
    const frame = frameOf(change)
    if (size > 0 && size + frame.length > CHUNK_BYTES) {
      yield Buffer.concat(chunk)
      chunk = []
      size = 0
    }
    chunk.push(frame)
    size += frame.length
  }
  yield Buffer.concat(chunk)
}

/** All watchers get the same objects, so each is serialized once. */
const framesByChange = new WeakMap<Change, Uint8Array>()
function frameOf(change: Change): Uint8Array {
  const held = framesByChange.get(change) ?? bytes(eventText(change.id, change.topic, change))
  framesByChange.set(change, held)
  return held
}

const eventText = (id: number, event: string, data: object): string => `id: ${id}\nevent: ${event}\ndata: ${JSON.stringify(data)}\n\n`
const encoder = new TextEncoder()
const bytes = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text)
