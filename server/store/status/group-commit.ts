// Writes that arrive together are committed together: the cost of a durable commit is the disk's sync, and after a
// commit of Git ten thousand agents report within seconds. Each caller learns of its own write, and only after it is
// durable.
import { setImmediate } from 'node:timers/promises'
import { AppError } from '../../../shared/runtime/error.ts'

/** How much one commit takes: this many writes… */
export const GROUP_MAX = 256
/** …and rows, unless one alone has more: the more of them, the more share the pages that they change. */
export const GROUP_ROWS_MAX = 8_000

export interface GroupWriter<I, O> {
  /** About how many rows there are to write. */
  rowsOf(item: I): number
  /** All of them or none; the answers in their order. */
  commit(items: readonly I[]): Promise<O[]>
}

interface Waiting<I, O> {
  item: I
  rows: number
  resolve(answer: O): void
  reject(error: unknown): void
}

export function createGroupCommit<I, O>({ rowsOf, commit }: GroupWriter<I, O>): (item: I) => Promise<O> {
  const waiting: Array<Waiting<I, O>> = []
  let running = false

  async function run(): Promise<void> {
    running = true
    while (waiting.length > 0) {
      await setImmediate() // who comes in this turn of the loop comes along
      await commitGroup(waiting.splice(0, groupLength(waiting)))
    }
    running = false
  }

  async function commitGroup(group: ReadonlyArray<Waiting<I, O>>): Promise<void> {
    try {
      const answers = await commit(group.map(({ item }) => item))
      for (const [index, { resolve }] of group.entries()) resolve(answers[index] as O)
    } catch (error) {
      // All of it was undone: one that fails may fail alone.
      if (group.length === 1 || isOfStore(error)) {
        for (const { reject } of group) reject(error)
        return
      }
      const half = Math.ceil(group.length / 2)
      await commitGroup(group.slice(0, half))
      await commitGroup(group.slice(half))
    }
  }

  return (item) =>
    new Promise<O>((resolve, reject) => {
      waiting.push({ item, rows: rowsOf(item), resolve, reject })
      if (!running) void run()
    })
}

/** It would say the same of each of them, and perhaps only after a while. */
const isOfStore = (error: unknown): boolean =>
  error instanceof AppError && (error.code === 'store_unreachable' || error.code === 'store_in_use' || error.code === 'disk_full')

function groupLength(waiting: ReadonlyArray<{ rows: number }>): number {
  let [length, rows] = [0, 0]
  for (const next of waiting) {
    rows += next.rows
    if (length === GROUP_MAX || (length > 0 && rows > GROUP_ROWS_MAX)) break
    length += 1
  }
  return length
}
