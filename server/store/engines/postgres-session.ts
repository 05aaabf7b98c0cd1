// One server for one database: its writing connection holds an advisory lock of the session, so that nothing can be
// written without it after any failure. A second server is refused with the name of the holder. A mark in the store
// tells a server that returns after an outage whether another one used the store meanwhile, and the number of its last
// change whether the store is the same.

import type { Clock } from '../../../shared/runtime/clock.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { OnConnect } from './postgres-dialect.ts'

/** Any number that is ours alone among the advisory locks of a database; WRITE_LOCK is its neighbour. */
const SERVER_LOCK = 7_205_759_402
/** In `meta`: the last server. */
export const SERVER_KEY = 'server'
/** A server that was killed a moment ago still holds it for that moment. */
const RETRY_MS = 250

interface Holder {
  pid: number
  name: string
  address: string
  since: string
}

export interface SessionOptions {
  /** Unlike that of any other process: it is how we know our own dead connections. */
  applicationName: string
  /** How long the first one waits for the lock. */
  patienceMs: number
  clock: Clock
}

export interface ServerSession {
  onConnect: OnConnect
  /** From now on another name in the store means that another server was here. */
  marked(): void
  /** The number of the last change that is committed. */
  committed(lastChange: number): void
}

export function createServerSession({ applicationName, patienceMs, clock }: SessionOptions): ServerSession {
  let isMarked = false
  let committed = 0
  return {
    committed: (lastChange) => {
      committed = lastChange
    },
    marked: () => {
      isMarked = true
    },
    onConnect: async (query) => {
      for (let waitedMs = 0; ; waitedMs += RETRY_MS) {
        const [row] = await query(`select pg_try_advisory_lock(${SERVER_LOCK}) as taken`)
        if (row?.['taken'] === true) break
        const holder = await holderOf(query)
        // Our own of before, whose end the database did not notice yet.
        if (holder?.name === applicationName) await query('select pg_terminate_backend($1)', [holder.pid])
        else if (holder !== null && (isMarked || waitedMs >= patienceMs)) throw inUse(holder)
        await clock.sleep(RETRY_MS)
      }
      if (!isMarked) return
      const [mark] = await query('select value from meta where key = $1', [SERVER_KEY])
      if (mark?.['value'] !== applicationName) {
        throw new AppError('store_in_use', {
          doing: 'use the fleet store',
          detail: `another server (${mark?.['value'] ?? 'unknown'}) used the database while it was unreachable`,
        })
      }
      const [held] = await query(`select value from counters where name = 'change'`)
      const change = Number(held?.['value'] ?? 0)
      if (change < committed) throw setBack(change, committed)
    },
  }
}

async function holderOf(query: Parameters<OnConnect>[0]): Promise<Holder | null> {
  const [row] = await query(
    `select a.pid, a.application_name as name, coalesce(host(a.client_addr), 'a socket') as address,
            to_char(a.backend_start at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') as since
       from pg_locks l join pg_stat_activity a on a.pid = l.pid
      where l.locktype = 'advisory' and l.granted and l.objsubid = 1
        and l.database = (select oid from pg_database where datname = current_database())
        and (l.classid::bigint << 32 | l.objid::bigint) = ${SERVER_LOCK}`,
  )
  if (row === undefined) return null
  return { pid: Number(row['pid']), name: String(row['name'] ?? ''), address: String(row['address']), since: String(row['since']) }
}

/** A standby that had not everything yet, or a backup: what this process remembers of the store is of a time that is
 *  gone, and its shard files are ahead. */
function setBack(change: number, committed: number): AppError {
  return new AppError('restore_pending', {
    doing: 'use the fleet store',
    detail: `the database came back at change ${change}, not ${committed}: commits are lost`,
    remedy:
      'Start the server again: it detects the lost commits, and waits for a confirmation (`skerry restore`) if the state of agents is newer.',
  })
}

function inUse({ name, address, pid, since }: Holder): AppError {
  const who = name === '' ? 'a connection of another user' : name
  return new AppError('store_in_use', { doing: 'use the fleet store', detail: `${who}, from ${address}, since ${since} (backend ${pid})` })
}
