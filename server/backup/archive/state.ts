// State of the backups of a data folder, a file in it, written by `backup create --into`, read by the server that
// schedules them and by the doctor.
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'

const STATE = 'backup-state.json'

const attemptSchema = z.object({ atMs: z.number(), error: z.string().nullable() })
const stateSchema = z.object({
  /** Where archives go, without credentials. */
  into: z.string().nullable().default(null),
  /** Schedule of the server that runs here, or ran last. Null means that it schedules none. */
  schedule: z.string().nullable().default(null),
  /** When that schedule began. */
  scheduledMs: z.number().nullable().default(null),
  attempt: attemptSchema.nullable().default(null),
  /** Archives that were written, or begun, and never read back whole: they count for no retention. */
  unverified: z.array(z.object({ into: z.string(), name: z.string() })).default([]),
  /** When the archives of the place were made, as of the newest one, the oldest first. Null means not known. */
  keptMs: z.array(z.number()).nullable().default(null),
  /** The newest that was read back whole. */
  last: z
    .object({
      name: z.string(),
      createdMs: z.number(),
      tookMs: z.number(),
      bytes: z.number(),
      encrypted: z.boolean(),
      /** How many archives the place holds, after the retention. */
      kept: z.number(),
    })
    .nullable()
    .default(null),
})
export type BackupState = z.infer<typeof stateSchema>

const NONE: BackupState = stateSchema.parse({})

/** A damaged file counts as none: the next backup writes it. */
export function readBackupState(dataDir: string): BackupState {
  const path = join(dataDir, STATE)
  if (!existsSync(path)) return NONE
  try {
    return stateSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    return NONE
  }
}

export function changeBackupState(dataDir: string, changes: Partial<BackupState>): BackupState {
  const state = { ...readBackupState(dataDir), ...changes }
  const path = join(dataDir, STATE)
  writeFileSync(`${path}.new`, `${JSON.stringify(state, null, 2)}\n`, { mode: 0o600 })
  renameSync(`${path}.new`, path)
  return state
}
