// Keeps one watch until its consumer stops: it starts with the list of the server, follows the events, and resumes
// after each cut. It lists again only when the server no longer remembers the position (410), or has not reached it
// because etcd was restored from a snapshot.

import { exhaustive } from '../../shared/runtime/assert.ts'
import { backoffMs } from '../../shared/runtime/backoff.ts'
import { type Clock, OVER } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { failureSays } from '../messages/object-messages.ts'
import type { ApiFailure, ApiResource, Extent, WatchEvent, WatchScope } from './cluster.ts'
import { collectionPath } from './discovery.ts'
import { EventTail } from './event-tail.ts'
import type { KubeHttp } from './kube-http.ts'
import { listObjects, listVersion } from './kube-list.ts'
import { isBehind, type Positions } from './resource-version.ts'
import { LineSplitter, METADATA_ACCEPT, parseWatchLine, type WatchLine } from './watch-stream.ts'

/** API servers send a bookmark each minute. A longer silence means a frozen link. */
export const SILENCE_MAX_MS = 150_000
/** Silence before the end of the initial events. A server without `sendInitialEvents` never ends them. */
const INITIAL_SILENCE_MAX_MS = 30_000
/** A stream of this age worked, also without events. */
const WORKING_STREAM_MS = 10_000
/** After so many streams in a row without a line, the kind counts as unknown. */
const CUTS_MAX = 3
export const WATCH_BACKOFF = { baseMs: 1000, capMs: 30_000 }
/** After such an answer the position cannot be checked, and the watch resumes unchecked. */
const UNCHECKED: ReadonlySet<ApiFailure['kind']> = new Set(['forbidden', 'invalid'])

export interface WatchDeps {
  http: KubeHttp
  /** The positions of all watches of this API server. */
  positions: Positions
  clock: Clock
  random: Random
  log: Logger
}

export type WatchOptions = WatchScope & Extent

/** How one connection ended. `progressed`: it worked for a while, so that it may resume at once. */
type StreamEnd =
  | { kind: 'cut'; progressed: boolean }
  | { kind: 'silent' }
  | { kind: 'expired' }
  /** The server has not reached the position: etcd was restored. */
  | { kind: 'rolled_back' }
  /** Ended by the agent, to check the position. */
  | { kind: 'doubted' }
  | { kind: 'failed'; failure: ApiFailure }

export function watchResource(deps: WatchDeps, resource: ApiResource, options: WatchOptions): AsyncGenerator<WatchEvent> {
  return new Watch(deps, resource, options).run()
}

class Watch {
  readonly #deps: WatchDeps
  readonly #resource: ApiResource
  readonly #options: WatchOptions
  readonly #log: Logger
  /** The resourceVersion to resume from. Null when the watch has to start over. */
  #position: string | null = null
  #canStreamList = true
  /** The position is checked before it is resumed. */
  #doubted = false
  #stream: AbortController | null = null
  /** KA41: a list of one object costs the server no more than a watch that resumes, and says at which resourceVersion
   *  the server is. */
  readonly #isOfOne: boolean
  /** Its resourceVersions are those of the main etcd: kinds of an aggregated API and Events may have an etcd of their
   *  own. */
  readonly #teaches: boolean
  /** A `failed` was reported, and no `synced` since. */
  #unknown = false
  constructor(deps: WatchDeps, resource: ApiResource, options: WatchOptions) {
    this.#deps = deps
    this.#resource = resource
    this.#options = options
    this.#isOfOne = options.fieldSelector?.startsWith('metadata.name=') ?? false
    this.#teaches = resource.group === '' && resource.plural !== 'events'
    this.#log = deps.log.with({ kind: resource.kind, group: resource.group })
  }

  async *run(): AsyncGenerator<WatchEvent> {
    const leave = this.#deps.positions.join({ position: () => this.#position, doubt: () => this.#doubt() })
    try {
      yield* this.#run()
    } finally {
      leave()
    }
  }

  #doubt(): void {
    this.#doubted = true
    this.#stream?.abort()
  }

  async *#run(): AsyncGenerator<WatchEvent> {
    const { signal } = this.#options
    let attempt = 0
    while (!signal.aborted) {
      const end = yield* this.#next()
      if (signal.aborted) return
      switch (end.kind) {
        case 'expired':
          // KA24: an expired position starts over at once; a start that expires waits like any failure.
          if (this.#position !== null) {
            this.#log.info('the position of the watch expired, listing again')
            this.#position = null
            continue
          }
          break
        case 'rolled_back':
          this.#log.warn('etcd was restored: the API server has not reached the position of the watch, listing again', {
            position: this.#position,
          })
          this.#position = null
          continue
        case 'doubted':
          continue
        case 'silent':
          this.#log.info('the watch is silent for too long, connecting again')
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
    this.#doubted = true
    yield { kind: 'failed', failure }
  }

  async *#next(): AsyncGenerator<WatchEvent, StreamEnd> {
    if (this.#position === null || this.#isOfOne) return yield* this.#start()
    const end = this.#doubted ? await this.#checkPosition(this.#position) : null
    if (end !== null) return end
    this.#doubted = false
    return yield* this.#follow()
  }

  /** KA40: a consistent read that asks for no object, so that an API server whose watch cache lags answers the
   *  revision of etcd. Null means that etcd has reached the position, or the server does not say. */
  async #checkPosition(position: string): Promise<StreamEnd | null> {
    const { http } = this.#deps
    const { namespaced, plural } = this.#resource
    const namespace = this.#options.namespace ?? (namespaced ? 'default' : '')
    const path = `${collectionPath(this.#resource, namespace)}?${new URLSearchParams({ fieldSelector: 'metadata.name=skerry-position' })}`
    const answer = await http.request({ method: 'GET', path, plural, signal: this.#options.signal })
    if (answer.kind === 'failed') return UNCHECKED.has(answer.failure.kind) ? null : { kind: 'failed', failure: answer.failure }
    return isBehind(listVersion(answer.body), position) ? { kind: 'rolled_back' } : null
  }

  /** KA21: all objects, then `synced`. */
  async *#start(): AsyncGenerator<WatchEvent, StreamEnd> {
    this.#position = null
    this.#doubted = false
    const learn = this.#teaches ? this.#deps.positions.beforeRead() : () => {}
    if (!this.#canStreamList) return yield* this.#startByList(learn)
    const query = { sendInitialEvents: 'true', resourceVersionMatch: 'NotOlderThan' }
    const end = yield* this.#read(query, learn)
    const refused = end.kind === 'failed' && end.failure.kind === 'invalid'
    if (refused || (end.kind === 'silent' && this.#position === null)) {
      this.#log.info('the server does not stream lists, listing by pages')
      this.#canStreamList = false
      return { kind: 'cut', progressed: true }
    }
    return end
  }

  async *#startByList(learn: (resourceVersion: string) => void): AsyncGenerator<WatchEvent, StreamEnd> {
    let begun = false
    let listed = ''
    let tail: EventTail<StreamEnd> | null = null
    let isComplete = false
    const listing = new AbortController()
    try {
      for await (const page of listObjects(this.#deps.http, this.#resource, this.#options)) {
        if (page.kind === 'failed') return { kind: 'failed', failure: page.failure }
        if (!begun) yield { kind: 'reset' }
        begun = true
        for (const object of page.objects) yield { kind: 'present', object }
        listed = page.resourceVersion
        // KA42: pages may come from later versions than this one, and the server may have forgotten it by the time of
        // the last page.
        if (page.last || tail !== null || this.#options.isList) continue
        this.#position = listed
        tail = new EventTail(this.#followDuring(listing.signal))
      }
      if (!this.#options.fromCache && listed !== '') learn(listed)
      this.#position ??= listed
      isComplete = true
      listing.abort()
      yield* this.#synced()
      return yield* tail?.events() ?? this.#follow()
    } finally {
      listing.abort()
      if (tail !== null) {
        this.#stream?.abort()
        await tail.stop()
      }
      if (!isComplete) this.#position = null
    }
  }

  /** A stream that is interrupted during the list is resumed, so that the server does not forget its position. */
  async *#followDuring(listing: AbortSignal): AsyncGenerator<WatchEvent, StreamEnd> {
    const { clock, random } = this.#deps
    for (let attempt = 0; ; attempt += 1) {
      const end = yield* this.#follow()
      const stops = AbortSignal.any([listing, this.#options.signal])
      if (end.kind === 'cut' && !stops.aborted) await clock.sleep(backoffMs(end.progressed ? 0 : attempt, WATCH_BACKOFF, random), stops)
      if (end.kind !== 'cut' || stops.aborted) return end
    }
  }

  /** KA22: resumes from the last position; events since then come as usual. */
  async *#follow(): AsyncGenerator<WatchEvent, StreamEnd> {
    return yield* this.#read({ resourceVersion: this.#position ?? '' }, null)
  }

  *#synced(): Generator<WatchEvent> {
    if (this.#unknown) this.#log.info('watch works again')
    this.#unknown = false
    yield { kind: 'synced' }
  }

  /** `learn`: called with the resourceVersion at the end of a stream of initial events. */
  async *#read(query: Record<string, string>, learn: ((resourceVersion: string) => void) | null): AsyncGenerator<WatchEvent, StreamEnd> {
    const { http, clock } = this.#deps
    const abort = new AbortController()
    this.#stream = abort
    const onAbort = () => abort.abort()
    this.#options.signal.addEventListener('abort', onAbort, { once: true })
    const accept = this.#options.metadataOnly ? { accept: METADATA_ACCEPT } : {}
    const isList = this.#options.isList === true
    const path = this.#path(query)
    const answer = await http.stream({ method: 'GET', path, plural: this.#resource.plural, signal: abort.signal, isList, ...accept })
    const openedMs = clock.monotonicMs()
    try {
      if (answer.kind === 'failed') {
        if (this.#doubted) return { kind: 'doubted' }
        return answer.failure.status === 410 ? { kind: 'expired' } : { kind: 'failed', failure: answer.failure }
      }
      if (learn !== null) yield { kind: 'reset' }
      else if (this.#unknown) yield* this.#synced()
      let progressed = false
      const reader = answer.body.getReader()
      const splitter = new LineSplitter()
      while (true) {
        const chunk = await this.#chunk(reader, this.#position === null ? INITIAL_SILENCE_MAX_MS : SILENCE_MAX_MS)
        if (this.#doubted) return { kind: 'doubted' }
        if (chunk === 'silent') return { kind: 'silent' }
        if (chunk === 'end') return { kind: 'cut', progressed: progressed || clock.monotonicMs() - openedMs >= WORKING_STREAM_MS }
        for (const line of splitter.push(chunk)) {
          const parsed = parseWatchLine(line, this.#resource)
          if (parsed.kind === 'expired') return parsed
          if (parsed.kind === 'error') return { kind: 'failed', failure: parsed.failure }
          const isInitial = this.#position === null
          if (parsed.kind === 'bookmark' && parsed.initialEventsEnd && isInitial) learn?.(parsed.resourceVersion)
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

  /** Moves the position before it yields the event: a consumer that stops there has seen the event. */
  *#take(line: Extract<WatchLine, { kind: 'object' | 'bookmark' }>): Generator<WatchEvent> {
    const initial = this.#position === null
    if (line.kind === 'bookmark') {
      if (initial && !line.initialEventsEnd) return
      this.#position = line.resourceVersion
      if (initial) yield* this.#synced()
      return
    }
    if (initial) {
      // Initial events have no position to resume from: a cut before their end starts over.
      if (line.type !== 'DELETED') yield { kind: 'present', object: line.object }
      return
    }
    this.#position = line.resourceVersion
    yield { kind: line.type === 'DELETED' ? 'removed' : 'changed', object: line.object }
  }

  async #chunk(reader: ReadableStreamDefaultReader<Uint8Array>, silenceMaxMs: number): Promise<Uint8Array | 'silent' | 'end'> {
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
    timer.abort(OVER)
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
  ...failureSays('Cut', { cuts }),
})
