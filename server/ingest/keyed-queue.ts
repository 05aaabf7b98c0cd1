// Work by key: at most one run of a key at a time, calls that arrive meanwhile share one further run, different keys run side by side up to a limit. A call
// resolves with a run that began after it, so whoever changed something and then waits knows that the change was seen.

interface Lane {
  running: boolean
  waiting: { promise: Promise<void>; start: () => void } | null
}

export class KeyedQueue<K extends string> {
  private readonly lanes = new Map<K, Lane>()
  private readonly ready: Array<() => void> = []
  private readonly idleWaiters: Array<() => void> = []
  private free: number
  private readonly act: (key: K) => Promise<void>

  constructor(concurrency: number, act: (key: K) => Promise<void>) {
    this.free = concurrency
    this.act = act
  }

  run(key: K): Promise<void> {
    const lane = this.lanes.get(key) ?? { running: false, waiting: null }
    this.lanes.set(key, lane)
    if (lane.waiting !== null) return lane.waiting.promise
    const { promise: turn, resolve: start } = Promise.withResolvers<void>()
    const promise = turn.then(() => this.act(key))
    lane.waiting = { promise, start }
    promise.catch(() => {}).finally(() => this.finished(key, lane)) // the caller hears of a failure
    if (!lane.running) this.enqueue(lane)
    return promise
  }

  /** Resolves when nothing runs or waits. */
  idle(): Promise<void> {
    if (this.lanes.size === 0) return Promise.resolve()
    return new Promise((resolve) => this.idleWaiters.push(resolve))
  }

  private enqueue(lane: Lane): void {
    lane.running = true
    this.ready.push(() => {
      const { waiting } = lane
      lane.waiting = null
      waiting?.start()
    })
    this.startNext()
  }

  private startNext(): void {
    while (this.free > 0) {
      const start = this.ready.shift()
      if (start === undefined) return
      this.free -= 1
      start()
    }
  }

  private finished(key: K, lane: Lane): void {
    this.free += 1
    lane.running = false
    if (lane.waiting !== null) this.enqueue(lane)
    else this.lanes.delete(key)
    this.startNext()
    if (this.lanes.size === 0) for (const resolve of this.idleWaiters.splice(0)) resolve()
  }
}
