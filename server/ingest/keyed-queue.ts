// Work by key: at most one run of a key at a time, calls that arrive meanwhile share one further run, different keys
// run side by side up to a limit. A call resolves with a run that began after it, so a caller that changed something
// and then waits knows that the change was seen. Groups have a number of workers each.

interface Lane {
  /** The group of a running entry, as of its start. */
  group: string | null
  running: boolean
  /** Its run has one of the hands. */
  handed: boolean
  waiting: { promise: Promise<void>; start: () => void } | null
}

export interface QueueGroups<K extends string> {
  /** Null if it belongs to none. */
  of(key: K): string | null
  /** Whether a further run of that group may begin beside those that have a hand, counted by group. */
  mayStart(group: string, running: ReadonlyMap<string, number>): boolean
}

/** `release`: gives the hand back before the end, for work that needs none. */
type Act<K extends string> = (key: K, release: () => void) => Promise<void>

export class KeyedQueue<K extends string> {
  private readonly lanes = new Map<K, Lane>()
  private readonly ready: Array<{ key: K; lane: Lane; start: () => void }> = []
  private readonly inGroups = new Map<string, number>()
  private readonly idleWaiters: Array<() => void> = []
  private readonly hands: number
  private free: number
  private readonly act: Act<K>
  private readonly groups: QueueGroups<K> | null

  constructor(concurrency: number, act: Act<K>, groups: QueueGroups<K> | null = null) {
    this.hands = concurrency
    this.free = concurrency
    this.act = act
    this.groups = groups
  }

  run(key: K): Promise<void> {
    const lane = this.lanes.get(key) ?? { group: null, running: false, handed: false, waiting: null }
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
    this.ready.push({ key, lane, start })
    this.startNext()
  }

  private startNext(): void {
    while (this.free > 0) {
      const index = this.ready.findIndex(({ key }) => this.mayStart(key))
      const [next] = index < 0 ? [] : this.ready.splice(index, 1)
      if (next === undefined) return
      this.free -= 1
      next.lane.handed = true
      const group = this.groups?.of(next.key) ?? null // now: while it waited it may have become known, or another one
      next.lane.group = group
      if (group !== null) this.inGroups.set(group, (this.inGroups.get(group) ?? 0) + 1)
      next.start()
    }
  }

  private mayStart(key: K): boolean {
    const group = this.groups?.of(key) ?? null
    return group === null || this.groups === null || this.groups.mayStart(group, this.inGroups)
  }

  private release(lane: Lane): void {
    if (!lane.handed) return
    lane.handed = false
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
}
