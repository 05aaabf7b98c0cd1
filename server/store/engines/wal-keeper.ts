// Keeps the log of a SQLite file short. SQLite moves it into the file by itself, but restarts it only at a moment
// without readers: with one query after the other that moment never comes, and the log grows without end. So when it is
// long, writes wait until a Worker has restarted it: later readers do not need it.
import { statSync } from 'node:fs'
import type { Kysely } from 'kysely'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import type { Tables } from '../tables.ts'
import { startWorker, WorkerLine } from '../worker-line.ts'

/** The file whose log is restarted while there is no write. Null means close it. */
export type WalRequest = { path: string | null }
export interface WalAnswer {
  /** False: a reader used a state older than the log's end. */
  done: boolean
  error: string | null
}

const LOOK_MS = 500
/** The log is restarted from here on. Eight times its size without readers. */
export const WAL_LONG_BYTES = 32 * 1_048_576
/** A person should know. */
const WAL_TOLD_BYTES = 512 * 1_048_576
/** After a try that a reader was in the way of, doubled each time. */
const RETRY_MIN_MS = 1_000
const RETRY_MAX_MS = 30_000
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
  let shortener: Shortener | null = null
  let retryMs = RETRY_MIN_MS
  let [told, broken] = [false, false]
  while (!signal.aborted) {
    await clock.sleep(LOOK_MS, signal)
    const bytes = sizeOf(`${path}-wal`)
    if (signal.aborted || bytes < WAL_LONG_BYTES) continue
    try {
      shortener ??= createShortener(deps)
      const { ask } = shortener
      // The only connection that writes is ours for so long.
      const { done } = await writer.connection().execute(() => ask({ path }))
      if (broken) log.info('the log of the fleet store is shortened again', {})
      broken = false
      if (!done && !told && bytes > WAL_TOLD_BYTES)
        log.warn('the log of the fleet store grows because of a long read, such as a backup', { path, bytes })
      told = !done && (told || bytes > WAL_TOLD_BYTES)
      retryMs = done ? RETRY_MIN_MS : Math.min(RETRY_MAX_MS, retryMs * 2)
      if (!done) await clock.sleep(retryMs, signal)
    } catch (error) {
      if (!broken) log.warn('the log of the fleet store cannot be shortened', { error: String(error) })
      broken = true
      await shortener?.end()
      shortener = null
      await clock.sleep(RETRY_MAX_MS, signal)
    }
  }
  await shortener?.end()
}

interface Shortener {
  ask(request: WalRequest): Promise<WalAnswer>
  /** Its connection is closed then: the last one that closes takes the log away. */
  end(): Promise<void>
}

function createShortener({ clock, startWorker: start = () => startWorker('store/engines/wal-worker') }: WalKeeperDeps): Shortener {
  const line = new WorkerLine<WalRequest, WalAnswer>({ start, clock, answerMsMax: ANSWER_MS_MAX, onDied: (why) => new Error(why) })
  const ask = async (request: WalRequest): Promise<WalAnswer> => {
    const answer = await line.ask(request)
    if (answer.error !== null) throw new Error(answer.error)
    return answer
  }
  return {
    ask,
    end: async () => {
      await ask({ path: null }).catch(() => {}) // it may be what is broken
      line.end(null)
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
