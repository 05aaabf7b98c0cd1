// Write transactions that arrive together share one commit, because the cost of a durable commit is the disk's sync.
// Each work is all or nothing by itself, sees the writes of those before it, and its caller is answered only when all
// of it is durable.
import { setImmediate } from 'node:timers/promises'
import type { Clock } from '../../shared/runtime/clock.ts'

/** Works of one transaction: readers wait for it on SQLite, and a failing commit undoes all of them. */
export const GROUP_WORKS_MAX = 64
/** No further work begins in a transaction that is that old. */
export const GROUP_MS_MAX = 10

export interface WriteEngine<T> {
  /** A transaction around `works`: committed if it resolves, undone if it rejects. Others see then what it wrote. */
  begin<R>(works: (transaction: T) => Promise<R>): Promise<R>
  /** Runs a statement about a savepoint. */
  savepoint(transaction: T, statement: string): Promise<unknown>
  /** Resolves when all commits before the call are durable. Absent means that they are durable at the commit. */
  settled?(): Promise<void>
  clock: Pick<Clock, 'nowMs'>
}

type Work<T> = (transaction: T) => Promise<unknown>

interface Waiting<T> {
  work: Work<T>
  alone: boolean
  resolve(result: unknown): void
  reject(error: unknown): void
}

/** Why the first work of a transaction failed, before anybody else was in it. */
class FirstFailed extends Error {}

/** `alone`: its transaction is not shared. */
type Write<T> = <R>(work: (transaction: T) => Promise<R>, options?: { alone?: boolean }) => Promise<R>

export function createWriteGroups<T>(engine: WriteEngine<T>): Write<T> {
  const { begin, savepoint, settled, clock } = engine
  const waiting: Array<Waiting<T>> = []
  let isRunning = false

  async function runGroup(first: Waiting<T>): Promise<void> {
    const group = [first]
    const done: Array<() => void> = []
    try {
      await begin(async (transaction) => {
        const beganMs = clock.nowMs()
        const result = await first.work(transaction).catch((error: unknown) => {
          throw new FirstFailed('the first operation of a transaction', { cause: error })
        })
        done.push(() => first.resolve(result))
        while (
          !first.alone &&
          waiting[0]?.alone === false &&
          group.length < GROUP_WORKS_MAX &&
          Math.abs(clock.nowMs() - beganMs) < GROUP_MS_MAX
        ) {
          const next = waiting.shift()
          if (next === undefined) return
          group.push(next)
          await joined(transaction, next, done)
        }
      })
    } catch (error) {
      const why = error instanceof FirstFailed ? error.cause : error
      for (const { reject } of group) reject(why) // of one that failed before, it is no news
      return
    }
    const told = tell(group, done)
    // Its caller stores the result in memory before the next transaction reads it; other callers wait for the disk
    // while the next one is prepared.
    if (first.alone || settled === undefined) await told
  }

  async function tell(group: ReadonlyArray<Waiting<T>>, done: ReadonlyArray<() => void>): Promise<void> {
    try {
      await settled?.()
    } catch (error) {
      for (const { reject } of group) reject(error)
      return
    }
    for (const resolve of done) resolve()
  }

  async function joined(transaction: T, { work, resolve, reject }: Waiting<T>, done: Array<() => void>): Promise<void> {
    await savepoint(transaction, 'savepoint work')
    try {
      const result = await work(transaction)
      await savepoint(transaction, 'release savepoint work')
      done.push(() => resolve(result))
    } catch (error) {
      await savepoint(transaction, 'rollback to savepoint work') // where even that fails, all of the transaction is undone
      await savepoint(transaction, 'release savepoint work')
      reject(error)
    }
  }

  async function run(): Promise<void> {
    isRunning = true
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      await runGroup(next)
      await setImmediate() // on SQLite nothing else lets others have their turn, and who comes meanwhile shares the next commit
    }
    isRunning = false
  }

  return <R>(work: (transaction: T) => Promise<R>, { alone = false }: { alone?: boolean } = {}) =>
    new Promise<R>((resolve, reject) => {
      waiting.push({ work, alone, resolve: resolve as (result: unknown) => void, reject })
      if (!isRunning) void run()
    })
}
