// Writes that come together are committed together: what a durable commit costs is the disk's sync, and after a commit of Git ten thousand agents report within
// seconds. Each caller hears of its own write, and only after it is durable.
import { setImmediate } from 'node:timers/promises'
import type { Tx } from './store-db.ts'

/** One group is one block of the server's only thread: this many writes… */
export const GROUP_MAX = 16
/** …and rows, unless one alone has more. */
export const GROUP_ROWS_MAX = 500

/** `rows`: about how many there are to write. */
export type GroupCommit<C = Tx> = <T>(work: (context: C) => Promise<T>, rows: number) => Promise<T>

/** What a write transaction is to those who write together. */
export interface GroupWriter<C> {
  write<T>(work: (context: C) => Promise<T>): Promise<T>
}

interface Waiting<C> {
  rows: number
  work(context: C): Promise<unknown>
  resolve(value: unknown): void
  reject(error: unknown): void
}

export function createGroupCommit<C = Tx>(db: GroupWriter<C>): GroupCommit<C> {
  const waiting: Waiting<C>[] = []
  let running = false

  async function run(): Promise<void> {
    running = true
    while (waiting.length > 0) {
      await setImmediate() // who comes in this turn of the loop comes along
      await commit(waiting.splice(0, groupLength(waiting)))
    }
    running = false
  }

  async function commit(group: ReadonlyArray<Waiting<C>>): Promise<void> {
    try {
      const results = await db.write(async (context) => {
        const done: unknown[] = []
        for (const { work } of group) done.push(await work(context))
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

  return <T>(work: (context: C) => Promise<T>, rows: number) =>
    new Promise<T>((resolve, reject) => {
      waiting.push({ rows, work, resolve: (value) => resolve(value as T), reject })
      if (!running) void run()
    })
}

function groupLength(waiting: ReadonlyArray<{ rows: number }>): number {
  let [length, rows] = [0, 0]
  for (const next of waiting) {
    rows += next.rows
    if (length === GROUP_MAX || (length > 0 && rows > GROUP_ROWS_MAX)) break
    length += 1
  }
  return length
}
