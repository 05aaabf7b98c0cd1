// Keeps the log of a SQLite file short. SQLite moves it into the file by itself, but on the thread that writes, and it begins the log anew only at a moment when nobody reads: with one
// query after the other that moment never comes, and the log grows for ever. So a Worker moves it, and when it is long all the same, writes wait until it could be begun anew.
import { statSync } from 'node:fs'
import { type Kysely, sql } from 'kysely'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { startWorker } from '../start-worker.ts'
import type { Tables } from './tables.ts'

export interface WalRequest {
  /** Null: close it. */
  path: string | null
  /** Also begins the log anew; nobody may write meanwhile. */
  shorten: boolean
}
export interface WalAnswer {
  /** False: somebody read what is older than the log's end. */
  done: boolean
  error: string | null
}

const LOOK_MS = 250
/** From here on it is moved, some of it at a time. */
export const WAL_MOVED_BYTES = 4 * 1_048_576
/** From here on it is begun anew, which writes wait for. */
export const WAL_LONG_BYTES = 32 * 1_048_576
/** A person should know. */
const WAL_TOLD_BYTES = 512 * 1_048_576
/** After a try that a reader was in the way of, doubled each time. */
const RETRY_MIN_MS = 1_000
const RETRY_MAX_MS = 30_000
/** Pages after which SQLite moves it by itself, if the Worker does not: 64 MiB instead of 4. */
const OWN_PAGES = 16_384
const ANSWER_MS_MAX = 15_000

export interface WalKeeperDeps {
  path: string
  writer: Kysely<Tables>
  clock: Clock
  log: Logger
  /** Default: the Worker of `wal-worker.ts`. */
  startWorker?: () => Worker
}

/** Until the signal. The Worker is started when there is something to do. */
export async function keepWalShort(deps: WalKeeperDeps, signal: AbortSignal): Promise<void> {
  const { path, writer, clock, log } = deps
  let mover: Mover | null = null
  let [retryMs, notBeforeMs, moved, told, broken] = [RETRY_MIN_MS, 0, 0, false, false]
  while (!signal.aborted) {
    await clock.sleep(LOOK_MS, signal)
    const bytes = sizeOf(`${path}-wal`)
    if (signal.aborted || bytes < WAL_MOVED_BYTES || (bytes === moved && bytes < WAL_LONG_BYTES)) continue
    try {
      if (mover === null) {
        mover = createMover(deps)
        await sql`pragma wal_autocheckpoint = ${sql.lit(OWN_PAGES)}`.execute(writer)
      }
      await mover.ask({ path, shorten: false })
      moved = bytes
      if (broken) log.info('the log of the fleet store is moved by its Worker again', {})
      broken = false
      if (bytes < WAL_LONG_BYTES || clock.nowMs() < notBeforeMs) continue
      const { ask } = mover
      // The only connection that writes is ours for so long.
      const { done } = await writer.connection().execute(() => ask({ path, shorten: true }))
      retryMs = done ? RETRY_MIN_MS : Math.min(RETRY_MAX_MS, retryMs * 2)
      notBeforeMs = done ? 0 : clock.nowMs() + retryMs
      if (!done && bytes > WAL_TOLD_BYTES && !told)
        log.warn('the log of the fleet store grows: something reads for very long, such as a copy that is made', { path, bytes })
      told = !done && bytes > WAL_TOLD_BYTES
    } catch (error) {
      if (signal.aborted) break
      if (!broken) log.warn('the log of the fleet store cannot be moved by its Worker: SQLite does it', { error: String(error) })
      broken = true
      await mover?.end()
      mover = null
      await sql`pragma wal_autocheckpoint = 1000`.execute(writer).catch(() => {})
      await clock.sleep(RETRY_MAX_MS, signal)
    }
  }
  await mover?.end()
}

interface Mover {
  ask(request: WalRequest): Promise<WalAnswer>
  /** Its connection is closed then: the last one that closes takes the log away. */
  end(): Promise<void>
}

function createMover({ clock, startWorker: start = () => startWorker('store/wal-worker') }: WalKeeperDeps): Mover {
  const worker = start()
  const ask = async (request: WalRequest): Promise<WalAnswer> => {
    const answered = new AbortController()
    try {
      return await new Promise<WalAnswer>((resolve, reject) => {
        worker.onmessage = ({ data }: MessageEvent<WalAnswer>) => (data.error === null ? resolve(data) : reject(new Error(data.error)))
        worker.onerror = (event) => {
          event.preventDefault()
          reject(new Error(event.message))
        }
        void clock.sleep(ANSWER_MS_MAX, answered.signal).then(() => reject(new Error('it does not answer')))
        worker.postMessage(request)
      })
    } finally {
      answered.abort()
    }
  }
  return {
    ask,
    end: async () => {
      await ask({ path: null, shorten: false }).catch(() => {}) // it may be what is broken
      worker.terminate()
    },
  }
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size
  } catch {
    return 0 // it was closed, or is made with the first write
  }
}
