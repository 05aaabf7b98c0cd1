// So many at once and no more; the others wait in the order in which they came, and who gives up leaves the line.

export interface Slots {
  run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>
}

export function createSlots(count: number): Slots {
  let free = Math.max(1, count)
  const waiting: Array<() => void> = []
  const enter = (signal?: AbortSignal): Promise<void> | undefined => {
    signal?.throwIfAborted()
    if (free > 0) {
      free -= 1
      return undefined
    }
    return new Promise((resolve, reject) => {
      const leave = () => {
        waiting.splice(waiting.indexOf(go), 1)
        reject(signal?.reason)
      }
      const go = () => {
        signal?.removeEventListener('abort', leave)
        resolve()
      }
      waiting.push(go)
      signal?.addEventListener('abort', leave, { once: true })
    })
  }
  const leave = () => {
    const next = waiting.shift()
    if (next === undefined) free += 1
    else next() // it has the place now
  }
  return {
    async run(work, signal) {
      await enter(signal)
      try {
        return await work()
      } finally {
        leave()
      }
    },
  }
}
