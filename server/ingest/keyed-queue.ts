// Work by key: at most one run of a key at a time, calls that arrive meanwhile share one further run, different keys
// run side by side up to a limit. A call resolves with a run that began after it, so a caller that changed something
// and then waits knows that the change was seen. Groups have a number of workers each. Projects share all of them: the
// one that held workers for the least time lately is next, and none has the last one while others are about.
import type { Clock } from '../../shared/runtime/clock.ts'
import { FairShare } from '../../shared/runtime/fair-share.ts'

interface Lane {
  /** The project of a running entry, as of when it began to wait. */
  project: string
  /** The group of a running entry, as of its start. */
  group: string | null
  running: boolean
  /** Its run has one of the hands since this time. */
  handedMs: number | null
  waiting: { promise: Promise<void>; start: () => void } | null
}

interface Ready<K> {
  key: K
  lane: Lane
  start: () => void
}

export interface QueueGroups<K extends string> {
  /** Null if it belongs to none. */
  of(key: K): string | null
  /** Whether a further run of that group may begin beside those that have a hand, counted by group. */
  mayStart(group: string, running: ReadonlyMap<string, number>): boolean
}

export interface QueueOptions<K extends string> {
  groups?: QueueGroups<K>
  /** Absent means that keys have their turns in the order in which they came. */
  share?: { projectOf(key: K): string; clock: Pick<Clock, 'monotonicMs'> }
}

/** `release`: gives the hand back before the end, for work that needs none. */
type Act<K extends string> = (key: K, release: () => void) => Promise<void>

export class KeyedQueue<K extends string> {
  private readonly lanes = new Map<K, Lane>()
  /** By project; without shares, all of them under one name. */
  private readonly ready = new Map<string, Array<Ready<K>>>()
  private readonly inGroups = new Map<string, number>()
  private readonly idleWaiters: Array<() => void> = []
  private readonly hands: number
  private free: number
  private readonly act: Act<K>
  private readonly options: QueueOptions<K>
  private readonly share: FairShare

  constructor(concurrency: number, act: Act<K>, options: QueueOptions<K> = {}) {
    this.hands = concurrency
    this.free = concurrency
    this.act = act
    this.options = options
    this.share = new FairShare(concurrency)
  }

  run(key: K): Promise<void> {
    const lane = this.lanes.get(key) ?? { project: '', group: null, running: false, handedMs: null, waiting: null }
    this.lanes.set(key, lane)
    if (lane.waiting !== null) {
      const { promise } = lane.waiting
      this.startNext() // of another group by now, it may have a hand at once
      return promise
    }
    const { promise: turn, resolve: start } = Promise.withResolvers<void>()
    const promise = turn.then(() => this.act(key, () => this.release(lane)))
    lane.waiting = { promise, start }
    promise.catch(() => {}).finally(() => this.finished(key, lane)) // the caller hears of a failure
    if (!lane.running) this.enqueue(key, lane)
    return promise
  }

  /** This project may ask soon: from now on no other one gets the last hand. */
  expect(project: string): void {
    this.share.asked(project, this.nowMs())
  }

  /** Runs that have a hand. */
  handed(): number {
    return this.hands - this.free
  }

  /** Resolves when nothing runs or waits. */
  idle(): Promise<void> {
    if (this.lanes.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.idleWaiters.push(resolve))
  }

  private enqueue(key: K, lane: Lane): void {
    lane.running = true
    const start = () => {
      const { waiting } = lane
      lane.waiting = null
      waiting?.start()
    }
    const project = this.options.share?.projectOf(key) ?? ''
    lane.project = project
    const ready = this.ready.get(project) ?? []
    this.ready.set(project, ready)
    ready.push({ key, lane, start })
    this.share.asked(project, this.nowMs())
    this.startNext()
  }

  private startNext(): void {
    while (this.free > 0) {
      const next = this.takeNext()
      if (next === null) return
      this.free -= 1
      next.lane.handedMs = this.nowMs()
      const group = this.options.groups?.of(next.key) ?? null // now: while it waited it may have become known, or another one
      next.lane.group = group
      if (group !== null) this.inGroups.set(group, (this.inGroups.get(group) ?? 0) + 1)
      this.share.entered(next.lane.project, this.nowMs())
      next.start()
    }
  }

  private takeNext(): Ready<K> | null {
    const places = new Map<string, number>()
    for (const [project, ready] of this.ready) {
      const index = ready.findIndex(({ key }) => this.mayStart(key))
      if (index >= 0) places.set(project, index)
    }
    const isShared = this.options.share !== undefined
    const project = isShared ? this.share.next(places.keys(), this.free, this.nowMs()) : places.keys().next().value
    const ready = project === undefined ? undefined : this.ready.get(project)
    const [next] = ready?.splice(places.get(project ?? '') ?? 0, 1) ?? []
    if (project !== undefined && ready?.length === 0) this.ready.delete(project)
    return next ?? null
  }

  private mayStart(key: K): boolean {
    const { groups } = this.options
    const group = groups?.of(key) ?? null
    return group === null || groups === undefined || groups.mayStart(group, this.inGroups)
  }

  private release(lane: Lane): void {
    if (lane.handedMs === null) return
    const nowMs = this.nowMs()
    this.share.left(lane.project, nowMs - lane.handedMs, nowMs)
    lane.handedMs = null
    this.free += 1
    const { group } = lane
    const left = group === null ? 0 : (this.inGroups.get(group) ?? 0) - 1
    if (group !== null && left > 0) this.inGroups.set(group, left)
    else if (group !== null) this.inGroups.delete(group)
    this.startNext()
  }

  private finished(key: K, lane: Lane): void {
    this.release(lane)
    lane.running = false
    if (lane.waiting !== null) this.enqueue(key, lane)
    else this.lanes.delete(key)
    if (this.lanes.size === 0) for (const resolve of this.idleWaiters.splice(0)) resolve()
  }

  private nowMs(): number {
    return this.options.share?.clock.monotonicMs() ?? 0
  }
}
