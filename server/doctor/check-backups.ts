// Whether the backups that the server schedules are made. A folder whose backups others make has no schedule, and
// nothing is found.
import type { Clock } from '../../shared/runtime/clock.ts'
import { isLate } from '../backup/archive/schedule.ts'
import { readBackupState } from '../backup/archive/state.ts'
import type { Findings } from './findings.ts'

export function checkBackups(dataDir: string, findings: Findings, clock: Clock): void {
  const state = readBackupState(dataDir)
  const { last, attempt, into } = state
  if (last !== null) {
    findings.fact('lastBackup', new Date(last.createdMs).toISOString())
    findings.fact('lastBackupBytes', last.bytes)
  }
  const newest = last === null ? 'there is no complete one' : `the last complete one is of ${new Date(last.createdMs).toISOString()}`
  if (attempt !== null && attempt.error !== null) findings.tell('backup_failed', `${into ?? 'unknown place'}: ${attempt.error}; ${newest}`)
  else if (isLate(state, clock.nowMs())) findings.tell('backup_late', `${into ?? state.schedule ?? ''}: ${newest}`)
}
