// Inventory objects that the labelled watch of their kind does not show: their label was removed, or they are gone, and
// a drift policy, a hold, a window or a failure prevents the correction. Each is followed by its name until the watch
// shows it again or it leaves the inventory.
import { type ObjectRef, refKey } from '../../../../shared/kube/object.ts'
import type { Clock } from '../../../../shared/runtime/clock.ts'
import type { Logger } from '../../../../shared/runtime/logger.ts'
import { describeError } from '../../../../shared/runtime/loop.ts'
import type { Random } from '../../../../shared/runtime/random.ts'
import type { ApiResource, Cluster, WatchEvent } from '../../../cluster/cluster.ts'
import { BROKEN_WATCH_WAIT_MS, watchLoop } from '../../../cluster/watch-loop.ts'

/** Most objects are corrected before this has passed, and cost no request. */
export const FOLLOW_AFTER_MS = 5_000
/** LS2: objects without our label that have a watch of their own; others, and objects that are gone, are read in
 *  turn. */
export const NAME_WATCHES_MAX = 50
/** LS2: how often each of them is read, and the least time between two reads of any. */
const READ_EVERY_MS = 300_000
const READ_GAP_MS = 1_000

/** How long to wait before the next read when `count` objects are read in turn. */
export const readGapMs = (count: number, jitter: number): number => Math.max(READ_GAP_MS, (READ_EVERY_MS / count) * (0.75 + jitter / 2))

export interface FollowUpSink {
  /** 'present': it is there without our label; 'absent': it is not there; 'settled': it need not be followed. */
  standing(resource: ApiResource, key: string): 'present' | 'absent' | 'settled'
  /** `isListed`: it is the present state, whatever its resourceVersion. */
  seen(resource: ApiResource, event: Extract<WatchEvent, { kind: 'present' | 'changed' }>): void
  /** It may be gone. */
  missed(resource: ApiResource, ref: ObjectRef): void
  /** Reads it once. False: there was no answer. */
  read(resource: ApiResource, ref: ObjectRef): Promise<boolean>
  /** Its state became uncertain, or certain again. */
  turned(resource: ApiResource): void
}

export interface FollowUpsDeps {
  cluster: Pick<Cluster, 'watch'>
  clock: Clock
  random: Random
  log: Logger
  signal: AbortSignal
  sink: FollowUpSink
}

export interface FollowUp {
  readonly resource: ApiResource
  readonly ref: ObjectRef
  source: 'soon' | 'name' | 'turn'
  /** Until then no conclusion about the object is allowed. */
  isCertain: boolean
  readonly stop: AbortController
}

export class FollowUps {
  readonly #deps: FollowUpsDeps
  readonly #byId = new Map<string, FollowUp>()
  /** The wait for the next read in turn. Null means that there is none. */
  #wait: { gapMs: number; isShortened: AbortController } | null = null

  constructor(deps: FollowUpsDeps) {
    this.#deps = deps
  }

  get(resource: ApiResource, key: string): FollowUp | null {
    return this.#byId.get(idOf(resource, key)) ?? null
  }

  begin(resource: ApiResource, ref: ObjectRef): void {
    const id = idOf(resource, refKey(ref))
    if (this.#byId.has(id)) return
    const stop = new AbortController()
    const followUp: FollowUp = { resource, ref, source: 'soon', isCertain: true, stop }
    this.#byId.set(id, followUp)
    const signal = AbortSignal.any([stop.signal, this.#deps.signal])
    void this.#deps.clock.sleep(FOLLOW_AFTER_MS, signal).then(() => {
      if (!signal.aborted) this.#open(followUp)
    })
  }

  end(resource: ApiResource, key: string): void {
    const id = idOf(resource, key)
    this.#byId.get(id)?.stop.abort()
    this.#byId.delete(id)
  }

  /** The kind is no longer watched. */
  endAll(resource: ApiResource): void {
    for (const followUp of [...this.#byId.values()])
      if (idOf(followUp.resource, '') === idOf(resource, '')) this.end(resource, refKey(followUp.ref))
  }

  #open(followUp: FollowUp): void {
    const { resource, ref } = followUp
    const standing = this.#deps.sink.standing(resource, refKey(ref))
    if (standing === 'settled') {
      this.end(resource, refKey(ref))
      return
    }
    let watched = 0
    for (const { source } of this.#byId.values()) if (source === 'name') watched += 1
    if (standing === 'present' && watched < NAME_WATCHES_MAX) {
      followUp.source = 'name'
      void this.#watch(followUp)
    } else {
      followUp.source = 'turn'
      if (this.#wait === null) void this.#readInTurn()
      else if (readGapMs(this.#turns().length, 1) < this.#wait.gapMs / 2) this.#wait.isShortened.abort()
    }
  }

  #watch(followUp: FollowUp): Promise<void> {
    const { resource, ref, stop } = followUp
    const { sink } = this.#deps
    const signal = AbortSignal.any([stop.signal, this.#deps.signal])
    const options = { ...(ref.namespace === '' ? {} : { namespace: ref.namespace }), fieldSelector: selectorOf(ref), signal }
    let isListed = true
    const take = (event: WatchEvent) => {
      switch (event.kind) {
        case 'reset':
          isListed = false
          return
        case 'present':
        case 'changed':
          isListed = true
          sink.seen(resource, event)
          return
        case 'removed':
          sink.missed(resource, ref)
          return
        case 'synced':
          if (!isListed) sink.missed(resource, ref)
          isListed = true
          this.#setCertain(followUp, true)
          return
        case 'failed':
          this.#setCertain(followUp, false)
      }
    }
    return watchLoop(this.#deps, resource, options, { take, broke: () => this.#setCertain(followUp, false) })
  }

  /** One loop for all: in the order in which they were read last. */
  async #readInTurn(): Promise<void> {
    const { clock, log, random, signal } = this.#deps
    for (let turns = this.#turns(); turns.length > 0 && !signal.aborted; turns = this.#turns()) {
      const isShortened = new AbortController()
      this.#wait = { gapMs: readGapMs(turns.length, random()), isShortened }
      await clock.sleep(this.#wait.gapMs, AbortSignal.any([signal, isShortened.signal]))
      const [next] = this.#turns()
      if (isShortened.signal.aborted || next === undefined) continue
      await this.#read(next).catch((error: unknown) => {
        log.error('cannot watch the object', { object: refKey(next.ref), error: describeError(error) })
        return clock.sleep(BROKEN_WATCH_WAIT_MS, signal)
      })
    }
    this.#wait = null
  }

  async #read(followUp: FollowUp): Promise<void> {
    const { resource, ref, stop } = followUp
    const isOver = () => stop.signal.aborted || this.#deps.signal.aborted
    if (isOver()) return
    const id = idOf(resource, refKey(ref))
    this.#byId.delete(id)
    this.#byId.set(id, followUp)
    const isCertain = await this.#deps.sink.read(resource, ref)
    if (!isOver()) this.#setCertain(followUp, isCertain)
  }

  #turns = (): FollowUp[] => [...this.#byId.values()].filter(({ source }) => source === 'turn')

  #setCertain(followUp: FollowUp, isCertain: boolean): void {
    if (followUp.isCertain === isCertain) return
    followUp.isCertain = isCertain
    this.#deps.sink.turned(followUp.resource)
  }
}

/** Names of RBAC may have the characters of a selector in them. */
const selectorOf = ({ name }: ObjectRef): string => `metadata.name=${name.replace(/[\\,=]/g, '\\$&')}`

const idOf = ({ group, version, kind }: ApiResource, key: string): string => `${group}/${version}/${kind} ${key}`
