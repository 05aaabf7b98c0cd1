// Entry point of the Worker that restarts the log of the fleet store's file: it waits for readers and for the disk,
// outside of the server's own thread.
import { type Database, openSqlite } from '../../../shared/adapters/sqlite.ts'
import type { WalAnswer, WalRequest } from './wal-keeper.ts'

/** How long to wait for readers of a state older than the log's end. */
const READERS_MS = 250

let db: Database | null = null

self.onmessage = ({ data: { path } }: MessageEvent<WalRequest>) => {
  try {
    if (path === null) {
      db?.close()
      self.postMessage({ done: true, error: null } satisfies WalAnswer)
      return
    }
    db ??= openSqlite(path, { synchronous: 'FULL', cacheKiB: 256 })
    db.run(`PRAGMA busy_timeout=${READERS_MS}`)
    const row = db.query<{ busy: number }, []>('PRAGMA wal_checkpoint(TRUNCATE)').get()
    self.postMessage({ done: row?.busy === 0, error: null } satisfies WalAnswer)
  } catch (error) {
    self.postMessage({ done: false, error: String(error) } satisfies WalAnswer)
  }
}
