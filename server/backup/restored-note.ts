// The note that a restore leaves in the data folder. The next start of the server makes an entry of the audit log of
// it: the log in a backup ends before the restore, and a restored store may need a migration before anything can be
// written into it.
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { z } from 'zod'
import { syncPath } from '../../shared/adapters/sync-path.ts'
import type { Store } from '../store/store.ts'

export const RESTORED_NOTE = 'restored.json'

const noteSchema = z.object({ backupMs: z.number(), restoredMs: z.number(), by: z.string().max(200) })

export const restoredNote = (backupMs: number, restoredMs: number): Buffer =>
  Buffer.from(JSON.stringify({ backupMs, restoredMs, by: userName() }))

/** A process in a container may run as a user without a name. */
function userName(): string {
  try {
    return userInfo().username
  } catch {
    return `uid ${process.getuid?.() ?? 'unknown'}`
  }
}

/** A crash before the note is removed makes a second entry, never none. */
export async function recordRestore(dataDir: string, { audit }: Pick<Store, 'audit'>): Promise<void> {
  const path = join(dataDir, RESTORED_NOTE)
  if (!existsSync(path)) return
  const { backupMs, restoredMs, by } = readNote(path)
  const detail = `backup of ${new Date(backupMs).toISOString()}, restored ${new Date(restoredMs).toISOString()}`
  await audit.append([{ verb: 'restore', kind: 'FleetStore', actor: { kind: 'local', id: by, name: by, verified: false }, detail }])
  rmSync(path)
  syncPath(dataDir)
}

function readNote(path: string): z.infer<typeof noteSchema> {
  try {
    return noteSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    return { backupMs: 0, restoredMs: 0, by: 'unknown' }
  }
}
