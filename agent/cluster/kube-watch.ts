// One watch for as long as its consumer lives: starts with the server's own list, follows, and after every cut goes on from where it was.
// It lists again only when the server says that it no longer remembers the position (410).

import { exhaustive } from '../../shared/runtime/assert.ts'
import { backoffMs } from '../../shared/runtime/backoff.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Random } from '../../shared/runtime/random.ts'
import type { ApiFailure, ApiResource, WatchEvent } from './cluster.ts'
import { collectionPath } from './discovery.ts'
import type { KubeHttp } from './kube-http.ts'
import { listObjects } from './kube-list.ts'
import { LineSplitter, parseWatchLine, type WatchLine } from './watch-stream.ts'

/** API servers send a bookmark a minute; a link silent for longer than two of them is taken for frozen. */
export const SILENCE_MAX_MS = 150_000
/** Silence before the initial events have ended: a server that does not know `sendInitialEvents` never ends them. */
const INITIAL_SILENCE_MAX_MS = 30_000
/** A stream that lived this long was a working one, even if nothing happened in it. */
const WORKING_STREAM_MS = 10_000
/** Streams cut one after the other without a line: from here on the kind counts as unknown. */
const CUTS_MAX = 3
export const WATCH_BACKOFF = { baseMs: 1000, capMs: 30_000 }

export interface WatchDeps {
  http: KubeHttp
  clock: Clock
  random: Random
  log: Logger
}

export interface WatchOptions {
  labelSelector?: string
  fieldSelector?: string
  namespace?: string
  signal: AbortSignal
}

/** How one connection ended. `progressed`: it worked for a while, so that going on at once cannot spin. */
type StreamEnd = { kind: 'cut'; progressed: boolean } | { kind: 'silent' } | { kind: 'expired' } | { kind: 'failed'; failure: ApiFailure }

export function watchResource(deps: WatchDeps, resource: ApiResource, options: WatchOptions): AsyncGenerator<WatchEvent> {
  return new Watch(deps, resource, options).run()
}

class Watch {
  readonly #deps: WatchDeps
  readonly #resource: ApiResource
  readonly #options: WatchOptions
  readonly #log: Logger
  /** resourceVersion to go on from; null: everything has to be sent again. */
  #position: string | null = null
  #canStreamList = true
  /** A `failed` was told and no `synced` since. */
  #unknown = false
  constructor(deps: WatchDeps, resource: ApiResource, options: WatchOptions) {
    this.#deps = deps
    this.#resource = resource
    this.#options = options
    this.#log = deps.log.with({ kind: resource.kind, group: resource.group })
  }

  async *run(): AsyncGenerator<WatchEvent> {
    const { signal } = this.#options
    let attempt = 0
    while (!signal.aborted) {
      const end = yield* this.#position === null ? this.#start() : this.#follow()
      if (signal.aborted) return
      switch (end.kind) {
        case 'expired':
          // KA24: once, and at once, when it was a position that expired; a start that expires waits like any failure.
          if (this.#position !== null) {
            this.#log.info('watch position expired, listing again')
            this.#position = null
            continue
          }
          break
        case 'silent':
          this.#log.info('watch silent for too long, connecting again')
          break
        case 'cut':
          if (end.progressed) {
            attempt = 0
            continue
          }
          if (attempt + 1 >= CUTS_MAX) yield* this.#fail(cutFailure(attempt + 1))
          break
        case 'failed':
          yield* this.#fail(end.failure)
          break
        default:
          exhaustive(end)
      }
      const retryAfterMs = end.kind === 'failed' ? end.failure.retryAfterMs : undefined
      await this.#deps.clock.sleep(backoffMs(attempt, WATCH_BACKOFF, this.#deps.random, retryAfterMs), signal)
      attempt += 1
    }
  }

  *#fail(failure: ApiFailure): Generator<WatchEvent> {
    if (!this.#unknown) this.#log.warn('watch failed', { failure: failure.kind, error: failure.message })
    this.#unknown = true
    yield { kind: 'failed', failure }
  }

  /** KA21: everything, then `synced`. */
  async *#start(): AsyncGenerator<WatchEvent, StreamEnd> {
    if (!this.#canStreamList) return yield* this.#startByList()
    const query = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }
    const end = yield* this.#stream(query, 'initial')
    const refused = end.kind === 'failed' && end.failure.kind === 'invalid'
    if (refused || (end.kind === 'silent' && this.#position === null)) {
      this.#log.info('server does not stream lists, listing by pages')
      this.#canStreamList = false
      return { kind: 'cut', progressed: true }
    }
    return end
  }

  async *#startByList(): AsyncGenerator<WatchEvent, StreamEnd> {
    let begun = false
    for await (const page of listObjects(this.#deps.http, this.#resource, this.#options)) {
      if (page.kind === 'failed') return { kind: 'failed', failure: page.failure }
      if (!begun) yield { kind: 'reset' }
      begun = true
      for (const object of page.objects) yield { kind: 'present', object }
      this.#position = page.last ? page.resourceVersion : null
    }
    yield* this.#synced()
    return { kind: 'cut', progressed: true }
  }

  /** KA22: goes on from the last position; what happened meanwhile comes as ordinary events. */
  async *#follow(): AsyncGenerator<WatchEvent, StreamEnd> {
    return yield* this.#stream({ resourceVersion: this.#position ?? '' }, 'following')
  }

  *#synced(): Generator<WatchEvent> {
    if (this.#unknown) this.#log.info('watch works again')
    this.#unknown = false
    yield { kind: 'synced' }
  }

  async *#stream(query: Record<string, string>, phase: 'initial' | 'following'): AsyncGenerator<WatchEvent, StreamEnd> {
    const { http, clock } = this.#deps
    const abort = new AbortController()
    const onAbort = () => abort.abort()
    this.#options.signal.addEventListener('abort', onAbort, { once: true })
    const answer = await http.stream({ method: 'GET', path: this.#path(query), plural: this.#resource.plural, signal: abort.signal })
    const openedMs = clock.nowMs()
    try {
      if (answer.kind === 'failed') return answer.failure.status === 410 ? { kind: 'expired' } : { kind: 'failed', failure: answer.failure }
      if (phase === 'initial') yield { kind: 'reset' }
      else if (this.#unknown) yield* this.#synced()
      let progressed = false
      const reader = answer.body.getReader()
      const splitter = new LineSplitter()
      while (true) {
        const chunk = await this.#read(reader, this.#position === null ? INITIAL_SILENCE_MAX_MS : SILENCE_MAX_MS)
        if (chunk === 'silent') return { kind: 'silent' }
        if (chunk === 'end') return { kind: 'cut', progressed: progressed || clock.nowMs() - openedMs >= WORKING_STREAM_MS }
        for (const line of splitter.push(chunk)) {
          const parsed = parseWatchLine(line, this.#resource.plural)
          if (parsed.kind === 'expired') return parsed
          if (parsed.kind === 'error') return { kind: 'failed', failure: parsed.failure }
          yield* this.#take(parsed)
          progressed = this.#position !== null
        }
      }
    } finally {
      this.#options.signal.removeEventListener('abort', onAbort)
      abort.abort()
      if (answer.kind === 'stream') answer.release()
    }
  }

  /** The position moves before the event is handed on: a consumer that stops there has seen it. */
  *#take(line: Extract<WatchLine, { kind: 'object' | 'bookmark' }>): Generator<WatchEvent> {
    const initial = this.#position === null
    if (line.kind === 'bookmark') {
      if (initial && !line.initialEventsEnd) return
      this.#position = line.resourceVersion
      if (initial) yield* this.#synced()
      return
    }
    if (initial) {
      // During the initial events nothing has a position to resume from: a cut before their end starts over.
      if (line.type !== 'DELETED') yield { kind: 'present', object: line.object }
      return
    }
    this.#position = line.resourceVersion
    yield { kind: line.type === 'DELETED' ? 'removed' : 'changed', object: line.object }
  }

  async #read(reader: ReadableStreamDefaultReader<Uint8Array>, silenceMaxMs: number): Promise<Uint8Array | 'silent' | 'end'> {
    const timer = new AbortController()
    const silent = this.#deps.clock.sleep(silenceMaxMs, timer.signal).then(() => 'silent' as const)
    const read = reader.read().then(
      ({ done, value }) => (done || value === undefined ? ('end' as const) : value),
      (error: unknown) => {
        this.#log.debug('watch cut', { error: describeError(error) })
        return 'end' as const
      },
    )
    const result = await Promise.race([read, silent])
    timer.abort()
    return result
  }

  #path(query: Record<string, string>): string {
    const { labelSelector, fieldSelector, namespace } = this.#options
    const params = new URLSearchParams({ watch: 'true', allowWatchBookmarks: 'true', ...query })
    if (labelSelector !== undefined) params.set('labelSelector', labelSelector)
    if (fieldSelector !== undefined) params.set('fieldSelector', fieldSelector)
    return `${collectionPath(this.#resource, namespace ?? '')}?${params}`
  }
}

const cutFailure = (cuts: number): ApiFailure => ({
  kind: 'unreachable',
  status: 0,
  reason: 'Cut',
  message: `the watch was cut ${cuts} times in a row as soon as it was open`,
})
