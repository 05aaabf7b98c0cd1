// Writes that come together are committed together: what a durable commit costs is the disk's sync, and after a commit of Git ten thousand agents report within
// seconds. Each caller hears of its own write, and only after it is durable.
import { setImmediate } from 'node:timers/promises'
import type { StoreDb, Tx } from './store-db.ts'

/** One group is one block of the server's only thread: this many writes… */
export const GROUP_MAX = 16
/** …and rows, unless one alone has more. */
export const GROUP_ROWS_MAX = 500

/** `rows`: about how many there are to write. */
export type GroupCommit = <T>(work: (tx: Tx) => Promise<T>, rows: number) => Promise<T>

interface Waiting {
  rows: number
  work(tx: Tx): Promise<unknown>
  resolve(value: unknown): void
  reject(error: unknown): void
}

export function createGroupCommit(db: Pick<StoreDb, 'write'>): GroupCommit {
  const waiting: Waiting[] = []
  let running = false

  async function run(): Promise<void> {
    running = true
    while (waiting.length > 0) {
      await setImmediate() // who comes in this turn of the loop comes along
      await commit(waiting.splice(0, groupLength(waiting)))
    }
    running = false
  }

  async function commit(group: readonly Waiting[]): Promise<void> {
    try {
      const results = await db.write(async (tx) => {
        const done: unknown[] = []
        for (const { work } of group) done.push(await work(tx))
        return done
      })
      for (const [index, { resolve }] of group.entries()) resolve(results[index])
    } catch (error) {
      // All of it was undone: one that fails may fail alone.
      const [only, ...others] = group
      if (others.length === 0) only?.reject(error)
      else for (const one of group) await commit([one])
    }
  }

  return <T>(work: (tx: Tx) => Promise<T>, rows: number) =>
    new Promise<T>((resolve, reject) => {
      waiting.push({ rows, work, resolve: (value) => resolve(value as T), reject })
      if (!running) void run()
    })
}

function groupLength(waiting: readonly Waiting[]): number {
  let [length, rows] = [0, 0]
  for (const next of waiting) {
    rows += next.rows
    if (length === GROUP_MAX || (length > 0 && rows > GROUP_ROWS_MAX)) break
    length += 1
  }
  return length
}
