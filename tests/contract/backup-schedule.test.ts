// BK10: when the server makes its backups, what it says of those that fail, and that each is made by a process of its
// own.
import { afterEach, expect, test } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type BackupPlan, createBackups, type RunBackup } from '../../server/backup/archive/backups.ts'
import { planBackups } from '../../server/backup/archive/options.ts'
import { dueMs, parseSchedule } from '../../server/backup/archive/schedule.ts'
import { changeBackupState, readBackupState } from '../../server/backup/archive/state.ts'
import { checkBackups } from '../../server/doctor/check-backups.ts'
import { createFindings } from '../../server/doctor/findings.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { fillDataFolder } from '../support/data-folder-kit.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts'

const [MINUTE_MS, HOUR_MS] = [60_000, 3_600_000]
const started: Array<{ stop: AbortController; clock: VirtualClock; ended: Promise<void> }> = []
afterEach(async () => {
  for (const { stop, clock, ended } of started.splice(0)) {
    stop.abort()
    clock.jump(HOUR_MS)
    await ended
  }
})

/** A server's backups in virtual time. `fails`: what the next ones say in place of succeeding. */
function begin(
  schedule: string | null,
  { dataDir = tempDir(), clock = createVirtualClock(), run }: { dataDir?: string; clock?: VirtualClock; run?: RunBackup } = {},
) {
  const site = { dataDir, clock, fails: null as string | null, killed: false, runs: [] as number[] }
  const pretend: RunBackup = async () => {
    const atMs = clock.nowMs()
    site.runs.push(atMs)
    if (site.killed) return { code: 137, said: '' }
    if (site.fails !== null) {
      changeBackupState(dataDir, { into: '/backups', attempt: { atMs, error: site.fails } })
      return { code: 1, said: 'x' }
    }
    const last = { name: 'a', createdMs: atMs, tookMs: 5, bytes: 9, encrypted: true, kept: 1 }
    changeBackupState(dataDir, { into: '/backups', attempt: { atMs, error: null }, last })
    return { code: 0, said: '' }
  }
  const plan: BackupPlan | null = schedule === null ? null : { schedule, args: [], env: {} }
  const backups = createBackups({ dataDir, plan, clock, log: silentLogger, run: run ?? pretend })
  const stop = new AbortController()
  started.push({ stop, clock, ended: backups.loop(stop.signal) })
  return { ...backups, site, stop }
}
const found = (dataDir: string, clock: VirtualClock) => {
  const findings = createFindings()
  checkBackups(dataDir, findings, clock)
  return findings.list().map(({ code }) => code)
}

test('BK10 the first backup is made soon after the start, the next ones an interval later, across restarts', async () => {
  const { site, state, stop } = begin('6h')
  await site.clock.advance(2 * MINUTE_MS)
  expect(site.runs).toHaveLength(1)
  await site.clock.advance(6 * HOUR_MS)
  expect(site.runs).toHaveLength(2)
  expect((site.runs[1] ?? 0) - (site.runs[0] ?? 0)).toBe(6 * HOUR_MS)
  expect(dueMs(state())).toBe((site.runs[1] ?? 0) + 6 * HOUR_MS)
  stop.abort()
  const again = begin('6h', { dataDir: site.dataDir, clock: site.clock })
  await site.clock.advance(5 * HOUR_MS)
  expect(again.site.runs).toHaveLength(0)
  await site.clock.advance(2 * HOUR_MS)
  expect(again.site.runs).toHaveLength(1)
})

test('BK10 a failed backup is told in /readyz and by the doctor until one succeeds, and is tried again every 15 minutes', async () => {
  const { site, problems } = begin('1d')
  site.fails = 'AccessDenied'
  await site.clock.advance(2 * MINUTE_MS)
  expect(problems()).toEqual([expect.stringMatching(/backup failed: AccessDenied; there is none yet/)])
  expect(found(site.dataDir, site.clock)).toEqual(['backup_failed'])
  await site.clock.advance(46 * MINUTE_MS)
  expect(site.runs).toHaveLength(4)
  site.fails = null
  await site.clock.advance(15 * MINUTE_MS)
  expect([problems(), found(site.dataDir, site.clock)]).toEqual([[], []])
  await site.clock.advance(23 * HOUR_MS)
  expect(site.runs).toHaveLength(5)
})

test('BK10 a process that is killed counts as a failure, though it said nothing', async () => {
  const { site, problems } = begin('1d')
  site.killed = true
  await site.clock.advance(2 * MINUTE_MS)
  expect(problems()).toEqual([expect.stringContaining('exit code 137')])
})

test('BK10 a backup that does not end is late for the doctor and /readyz', async () => {
  const { site, problems } = begin('1h', {
    run: (_, signal) => new Promise((resolve) => signal.addEventListener('abort', () => resolve({ code: 1, said: '' }))),
  })
  await site.clock.advance(HOUR_MS)
  expect(problems()).toEqual([])
  await site.clock.advance(2 * HOUR_MS)
  expect(problems()).toEqual([expect.stringContaining('backup is late')])
  expect(found(site.dataDir, site.clock)).toEqual(['backup_late'])
})

test('BK10 without a schedule nothing is made and nothing is late', async () => {
  const dataDir = tempDir()
  changeBackupState(dataDir, { schedule: '1h', scheduledMs: 0 })
  const { site, problems } = begin(null, { dataDir })
  await site.clock.advance(50 * HOUR_MS)
  expect([site.runs, problems(), found(dataDir, site.clock)]).toEqual([[], [], []])
})

test.each([
  ['0 3 * * *', '2026-03-01T02:59:00Z', '2026-03-01T03:00:00.000Z'],
  ['30 */6 * * *', '2026-03-01T06:31:00Z', '2026-03-01T12:30:00.000Z'],
  ['12h', '2026-03-01T00:00:00Z', '2026-03-01T12:00:00.000Z'],
])('BK10 after %j and a backup at %s the next is due at %s', (schedule, last, due) => {
  const state = { ...readBackupState(tempDir()), schedule, scheduledMs: 0 }
  const made = { name: 'a', createdMs: Date.parse(last), tookMs: 1, bytes: 1, encrypted: true, kept: 1 }
  expect(new Date(dueMs({ ...state, last: made }) ?? 0).toISOString()).toBe(due)
})

test.each(['1m', '0 3 * *', '0 3 31 2 *', 'daily', ''])('BK10 %j is no schedule', (text) => {
  expect(parseSchedule(text)).toBeNull()
})

test('BK10 the server starts its own program, which stores an archive and says so in the data folder', async () => {
  const [dataDir, into] = [tempDir(), tempDir()]
  await fillDataFolder(dataDir)
  const options = { backupInto: into, backupSchedule: '24h', backupRecipients: undefined, backupKeep: 3, backupUnencrypted: false }
  const plan = planBackups(options, { dataDir, place: null }, { ...process.env, SKERRY_STORE: 'nonsense' })
  const clock = createVirtualClock(Date.now())
  const backups = createBackups({ dataDir, plan, clock, log: silentLogger })
  const stop = new AbortController()
  started.push({ stop, clock, ended: backups.loop(stop.signal) })
  await clock.advance(MINUTE_MS)
  for (let n = 0; n < 200 && readBackupState(dataDir).attempt === null; n++) await Bun.sleep(50)
  await clock.settle()
  const { attempt, last } = readBackupState(dataDir)
  expect(attempt?.error).toBeNull()
  expect(readdirSync(into)).toEqual([last?.name ?? ''])
}, 30_000)

test('BK10 a state file that somebody damaged counts as none', () => {
  const dataDir = tempDir()
  writeFileSync(join(dataDir, 'backup-state.json'), '{"last": 3')
  expect(readBackupState(dataDir).last).toBeNull()
})
