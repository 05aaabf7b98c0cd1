// BK10: the backups that a server makes by itself. Each is a process of its own, `skerry backup create --into`, so that
// reading, packing and encrypting delay no agent. That process writes what became of it into the data folder, where
// metrics, /readyz and the doctor read it.
import { existsSync } from 'node:fs'
import { constants, setPriority } from 'node:os'
import type { Clock } from '../../../shared/runtime/clock.ts'
import type { Logger } from '../../../shared/runtime/logger.ts'
import { dueMs, isLate } from './schedule.ts'
import { removeLeftWork } from './ship.ts'
import { type BackupState, changeBackupState, readBackupState } from './state.ts'

export interface BackupPlan {
  /** As `--backup-schedule` has it, checked. */
  schedule: string
  /** Arguments of `skerry backup create`, without secrets. */
  args: readonly string[]
  env: Readonly<Record<string, string | undefined>>
}

/** Resolves with the exit code and the end of what it said. */
export type RunBackup = (plan: BackupPlan, signal: AbortSignal) => Promise<{ code: number; said: string }>

export interface BackupsDeps {
  dataDir: string
  /** Null means that backups are made by other means. */
  plan: BackupPlan | null
  clock: Clock
  log: Logger
  /** Default: this program. */
  run?: RunBackup
}

export interface Backups {
  loop(signal: AbortSignal): Promise<void>
  state(): BackupState
  /** For /readyz. */
  problems(): string[]
}

const MINUTE_MS = 60_000
/** A server that is started again and again does not begin with a backup each time. */
const FIRST_AFTER_MS = MINUTE_MS
const RETRY_MS = 15 * MINUTE_MS
/** The clock of a machine may be set, and the folder is small to read. */
const LOOK_AGAIN_MS = 10 * MINUTE_MS
/** A storage that hangs. */
const RUN_MS_MAX = 12 * 3_600_000

export function createBackups({ dataDir, plan, clock, log, run = runOwn }: BackupsDeps): Backups {
  let state = readBackupState(dataDir)
  const reread = () => {
    state = readBackupState(dataDir)
    return state
  }
  /** The newest attempt decides when the next one is. */
  const nextMs = (): number => {
    const { attempt } = reread()
    const due = dueMs(state) ?? Number.POSITIVE_INFINITY
    return attempt === null || attempt.error === null ? due : Math.max(due, attempt.atMs + RETRY_MS)
  }

  async function makeOne(wanted: BackupPlan, signal: AbortSignal): Promise<void> {
    const startedMs = clock.nowMs()
    const { code, said } = await run(wanted, signal)
    const { attempt, last } = reread()
    if (signal.aborted) return
    if (code === 0 && last !== null) return log.info('backup stored and read back', { ...last })
    const error =
      attempt !== null && attempt.atMs >= startedMs && attempt.error !== null ? attempt.error : said.trim() || `exit code ${code}`
    // A process that was killed could not say so itself.
    state = changeBackupState(dataDir, { attempt: { atMs: startedMs, error } })
    log.error('backup failed', { error, retryInMs: RETRY_MS })
  }

  return {
    state: () => state,
    problems() {
      const { attempt, last } = state
      const newest = last === null ? 'there is none yet' : `the last complete one is of ${new Date(last.createdMs).toISOString()}`
      if (plan === null) return []
      if (attempt !== null && attempt.error !== null) return [`backup failed: ${attempt.error}; ${newest}`]
      return isLate(state, clock.nowMs()) ? [`backup is late; ${newest}`] : []
    },
    async loop(signal) {
      removeLeftWork(dataDir) // no other process of this folder makes one now
      const schedule = plan?.schedule ?? null
      if (state.schedule !== schedule)
        state = changeBackupState(dataDir, { schedule, scheduledMs: schedule === null ? null : clock.nowMs() })
      await clock.sleep(FIRST_AFTER_MS, signal)
      while (!signal.aborted) {
        const waitMs = nextMs() - clock.nowMs()
        if (plan !== null && waitMs <= 0) await makeOne(plan, signal)
        else await clock.sleep(Math.min(waitMs, LOOK_AGAIN_MS), signal)
      }
    },
  }
}

async function runOwn({ args, env }: BackupPlan, signal: AbortSignal): Promise<{ code: number; said: string }> {
  const isBinary = import.meta.url.includes('$bunfs')
  const self = existsSync('/proc/self/exe') ? '/proc/self/exe' : process.execPath
  const program = isBinary ? [self] : [process.execPath, new URL('../../main.ts', import.meta.url).pathname]
  const child = Bun.spawn([...program, 'backup', 'create', ...args], {
    ...{ env: { ...env }, stdin: 'ignore', stdout: 'ignore', stderr: 'pipe', timeout: RUN_MS_MAX, signal },
  })
  try {
    setPriority(child.pid, constants.priority.PRIORITY_LOW)
  } catch {} // not every machine lets a process do that
  const said = (await new Response(child.stderr).text()).slice(-2_000)
  return { code: await child.exited, said }
}
