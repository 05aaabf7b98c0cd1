// Runs this many at once and no more; the others wait, and a cancelled one leaves the queue. Users with many requests
// do not delay those with few: waiting users take turns, in the order of arrival.

export interface Slots {
  /** `whose`: all requests with the same value take one turn, then others. Absent means no particular user. */
  run<T>(work: () => Promise<T>, signal?: AbortSignal, whose?: string): Promise<T>
}

/** At most `count` pieces of work at a time; of those that wait, each asker has one turn after the other. */
export function createSlots(count: number): Slots {
  let free = Math.max(1, count)
  const lines = createLines<() => void>()
  const enter = (signal: AbortSignal | undefined, whose: string): Promise<void> | undefined => {
    signal?.throwIfAborted()
    if (free > 0) {
      free -= 1
      return undefined
    }
    return new Promise((resolve, reject) => {
      const leave = () => {
        lines.drop(whose, go)
        reject(signal?.reason)
      }
      const go = () => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      lines.add(whose, go)
      signal?.addEventListener('abort', leave, { once: true })
    })
  }
  const leave = () => {
    const next = lines.next()
    if (next === undefined) free += 1
    else next() // it has the place now
  }
  return {
    async run(work, signal, whose = '') {
      await enter(signal, whose)
      try {
        return await work()
      } finally {
        leave()
      }
    },
  }
}

/** Sets and maps keep the order in which things came: the first of the first is next, and what is left of its line goes
 *  behind all others. */
export function createLines<One>() {
  const lines = new Map<string, Set<One>>()
  return {
    get size(): number {
      return lines.size
    },
    add(whose: string, one: One): void {
      const line = lines.get(whose) ?? new Set()
      lines.set(whose, line.add(one))
    },
    drop(whose: string, one: One): void {
      const line = lines.get(whose)
      if (line?.delete(one) === true && line.size === 0) lines.delete(whose)
    },
    next(): One | undefined {
      for (const [whose, line] of lines) {
        lines.delete(whose)
        for (const one of line) {
          line.delete(one)
          if (line.size > 0) lines.set(whose, line)
          return one
        }
      }
      return undefined
    },
  }
}
