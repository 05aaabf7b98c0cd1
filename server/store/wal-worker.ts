// Entry point of the Worker that moves the log of the fleet store's file into the file: the syncs of a disk, which the server's own thread does not wait for.
import { type Database, openSqlite } from '../../shared/adapters/sqlite.ts'
import type { WalAnswer, WalRequest } from './wal-keeper.ts'

/** How long the log's end is waited for while nobody writes: what is being read then is from before it. */
const READERS_MS = 250

let db: Database | null = null

self.onmessage = ({ data: { path, shorten } }: MessageEvent<WalRequest>) => {
  try {
    if (path === null) {
      db?.close()
      self.postMessage({ done: true, error: null } satisfies WalAnswer)
      return
    }
    db ??= openSqlite(path, { synchronous: 'FULL', cacheKiB: 256 })
    db.run(`PRAGMA busy_timeout=${shorten ? READERS_MS : 0}`)
    const row = db.query<{ busy: number }, []>(`PRAGMA wal_checkpoint(${shorten ? 'TRUNCATE' : 'PASSIVE'})`).get()
    self.postMessage({ done: row?.busy === 0, error: null } satisfies WalAnswer)
  } catch (error) {
    self.postMessage({ done: false, error: String(error) } satisfies WalAnswer)
  }
}
