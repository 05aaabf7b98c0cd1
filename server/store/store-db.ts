// The handle that the methods of the store get: reads, and write transactions. A write transaction has the store to
// itself on both engines, so that its work may look first and then write, and numbers that it takes are in the order of
// commits. What changed and what is counted is noted on the transaction and written with it.
import { AsyncLocalStorage } from 'node:async_hooks'
import { type Kysely, sql, type Transaction } from 'kysely'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AuditLog, forgetAuditHead } from './audit/audit-log.ts'
import { callerNow } from './audit/caller.ts'
import { RollupDeltas } from './counts/rollup-deltas.ts'
import type { Engine } from './engines/engine.ts'
import { ChangeLog, type WrittenChanges } from './feed/change-log.ts'
import type { Tables } from './tables.ts'
import { createWriteGroups } from './write-groups.ts'

/** Reading only. A transaction can be read from in the same way. */
export type ReadDb = Pick<Kysely<Tables>, 'selectFrom' | 'with' | 'getExecutor'>

/** One write transaction. All its statements go through `sql`; the other handle is refused while it is open. */
export interface Tx {
  engine: Engine
  sql: Transaction<Tables>
  /** The changes of this transaction, for watchers. */
  changes: ChangeLog
  /** Its changes to the counts. */
  rollups: RollupDeltas
  /** Audit entries of the transaction. */
  audit: AuditLog
}

export interface WriteOptions {
  /**
   * The transaction is not shared: for work that stores its result in memory at the commit, and reads that when it
   * begins.
   */
  alone?: boolean
}

export interface StoreDb {
  readonly engine: Engine
  /** Throws inside of `write`: on the one connection of SQLite it would wait for itself, or read what was there before.
   */
  readonly read: ReadDb
  /** All of `work` or nothing; committed with those that came while it was done. Throws inside of another `write`. */
  write<T>(work: (tx: Tx) => Promise<T>, options?: WriteOptions): Promise<T>
  /** Another number before and after each write transaction: what was read under one number is current as long as it
   *  stays. */
  writeVersion(): number
  /** Changes with a greater number can be read and may be gone after a power loss; infinite: there is none such. */
  settledChange(): number
  /** After each commit that changed something, with the number of its last change; only commits of this process.
   *  Returns what ends it. */
  onCommit(listener: (lastChange: number) => void): () => void
  /** Listens as `Connections` does. */
  listen(onCommit: () => void, signal: AbortSignal): void
  destroy(): Promise<void>
}

export interface Connections {
  engine: Engine
  /** One connection, whose transactions begin with the lock for writing: `begin immediate`, or an advisory lock. */
  writer: Kysely<Tables>
  /** The same as `writer` where there can be only one. */
  reader: Kysely<Tables>
  /** Resolves when what is committed outlives a power loss. Absent means that a commit waits for that itself. */
  settled?(): Promise<void>
  /** Tells of commits of other processes too, perhaps; until the signal aborts. */
  listen?(onCommit: () => void, signal: AbortSignal): void
  /** The number of the last change of this process that is committed. */
  committed?(lastChange: number): void
  close(): Promise<void>
}

export function createStoreDb(
  { engine, writer, reader, settled, listen, committed: onCommitted, close }: Connections,
  clock: Clock,
): StoreDb {
  /** For code that is awaited inside of a transaction; work that continues after its end is outside again. */
  const inside = new AsyncLocalStorage<{ open: boolean }>()
  let version = 0
  const listeners = new Set<(lastChange: number) => void>()
  /** Where the changes of transactions begin that are not known to be durable; in the order of commits. */
  const unsettled = new Set<number>()
  const refuseInside = (): void => {
    if (inside.getStore()?.open) throw new Error('the store was used outside its open transaction')
  }
  const together = createWriteGroups<Transaction<Tables>>({
    begin: (works) => writer.transaction().execute(works),
    savepoint: (trx, statement) => sql.raw(statement).execute(trx),
    ...(settled === undefined ? {} : { settled }),
    clock,
  })
  return {
    engine,
    get read() {
      refuseInside()
      return reader
    },
    write: async (work, options) => {
      refuseInside()
      const transaction = { open: true }
      let changed: WrittenChanges | null = null
      const caller = callerNow() // here: the work is done among that of other callers
      const settledWrite = together(
        (trx) =>
          inside.run(transaction, async () => {
            version += 1
            const tx = { engine, sql: trx, changes: new ChangeLog(), rollups: new RollupDeltas(), audit: new AuditLog(caller) }
            try {
              const result = await work(tx)
              await tx.rollups.write(trx, engine)
              await tx.audit.write(trx, engine, clock.nowMs())
              changed = await tx.changes.write(trx, engine, clock.nowMs())
              if (changed !== null) unsettled.add(changed.first)
              return result
            } catch (error) {
              forgetAuditHead(trx)
              throw error
            } finally {
              transaction.open = false
            }
          }),
        options,
      )
      const result = await settledWrite.finally(() => {
        version += 1
        if (changed !== null) unsettled.delete(changed.first)
      })
      if (changed === null) return result
      const { last } = changed as WrittenChanges
      onCommitted?.(last)
      for (const listener of listeners) listener(last)
      return result
    },
    writeVersion: () => version,
    settledChange: () => {
      const [first] = unsettled
      return first === undefined || settled === undefined ? Number.POSITIVE_INFINITY : first - 1
    },
    onCommit: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    listen: (onCommit, signal) => listen?.(onCommit, signal),
    destroy: close,
  }
}
