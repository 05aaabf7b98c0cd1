// BK8 BK9: one backup into a place of archives: made in the data folder, verified there, packed, encrypted and stored,
// then read back from the place whole. Only then old archives go.
import { existsSync, mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createAgeWriter } from '../../../shared/adapters/age-streams.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import { type BackupDeps, type CreateOptions, createBackup, stopIfTold } from '../create.ts'
import type { Manifest } from '../manifest.ts'
import { verifyBackup } from '../verify.ts'
import { packBackup, readArchive } from './archive.ts'
import { changeBackupState, readBackupState } from './state.ts'
import { archiveMs, archiveName, type BackupPlace } from './stored.ts'

/** A folder of the data folder; a server that starts removes it. */
const WORK = 'backup-work'

export interface ShipOptions extends Omit<CreateOptions, 'to'> {
  place: BackupPlace
  /** None: the archive is not encrypted. */
  recipients: readonly string[]
  /** Archives that stay, this one among them; 0: all. */
  keep: number
}

export interface Shipped {
  manifest: Manifest
  name: string
  bytes: number
  removed: string[]
  kept: number
  /** Their names, the oldest first. */
  names: string[]
}

export async function shipBackup(options: ShipOptions, deps: BackupDeps): Promise<Shipped> {
  const { dataDir, place } = options
  const startedMs = deps.clock.nowMs()
  const encrypted = options.recipients.length > 0
  try {
    const shipped = await ship(options, deps)
    const { name, bytes, kept, names } = shipped
    const tookMs = Math.max(0, deps.clock.nowMs() - startedMs)
    changeBackupState(dataDir, {
      into: place.text,
      attempt: { atMs: startedMs, error: null },
      last: { name, createdMs: shipped.manifest.createdMs, tookMs, bytes, encrypted, kept },
      keptMs: names.slice(0, KEPT_MAX).flatMap((one) => archiveMs(one) ?? []),
    })
    return shipped
  } catch (error) {
    if (existsSync(dataDir)) changeBackupState(dataDir, { into: place.text, attempt: { atMs: startedMs, error: describeError(error) } })
    throw error
  }
}

async function ship({ place, recipients, keep, ...create }: ShipOptions, deps: BackupDeps): Promise<Shipped> {
  const work = join(create.dataDir, WORK)
  const folder = join(work, 'backup')
  claimWork(create.dataDir, work)
  try {
    const manifest = await createBackup({ ...create, to: folder }, deps)
    const { problems } = await verifyBackup(folder, deps)
    if (problems.length > 0) throw new AppError('backup_unusable', { doing: 'back up', detail: problems.slice(0, 5).join('; ') })
    const age = recipients.length === 0 ? null : await createAgeWriter(recipients)
    const name = archiveName(manifest.createdMs, age !== null)
    stopIfTold(deps)
    const bad = await clearUnverified(place, create.dataDir)
    // Before the write, so that an archive of a killed process does not count for the retention.
    noteUnverified(create.dataDir, place, [...bad, name])
    deps.progress('storing the archive', 0, 0)
    const plain = packBackup(folder, manifest)
    const bytes = await place.write(name, withStop(age === null ? plain : await age.encrypt(plain), deps))
    deps.progress('reading the archive back', 0, 0)
    await readBack(place, name, age?.decrypt ?? (async (stream) => stream), manifest, deps).catch(async (error: unknown) => {
      await clearUnverified(place, create.dataDir).catch(() => {}) // the next backup tries it again
      throw error
    })
    noteUnverified(create.dataDir, place, bad)
    const { removed, names } = await removeOld({ place, newest: name, keep, bad })
    return { manifest, name, bytes, removed, names, kept: names.length }
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

/** One backup at a time; one that was killed left its folder, which a stopped server's next start removes. */
function claimWork(dataDir: string, work: string): void {
  if (!existsSync(dataDir))
    throw new AppError('not_found', {
      doing: 'back up',
      detail: `${dataDir} does not exist`,
      remedy: 'Set --data to the data folder of the server.',
    })
  try {
    mkdirSync(work, { mode: 0o700 })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    throw new AppError('target_exists', {
      doing: 'back up',
      detail: `${work} exists: a backup is running, or one was interrupted`,
      remedy: 'If no backup is running, remove the folder and try again.',
    })
  }
}

/** Archives whose times are remembered, the oldest first. */
const KEPT_MAX = 1_000

export const removeLeftWork = (dataDir: string): void => rmSync(join(dataDir, WORK), { recursive: true, force: true })

type Bytes = ReadableStream<Uint8Array>

async function* withStop(stream: Bytes, deps: BackupDeps): AsyncGenerator<Uint8Array> {
  for await (const chunk of stream) {
    stopIfTold(deps)
    yield chunk
  }
}

/** Checks what the place holds, and not what was sent: every byte of it, through decryption, against the manifest. */
async function readBack(
  place: BackupPlace,
  name: string,
  open: (stream: Bytes) => Promise<Bytes>,
  expected: Manifest,
  deps: BackupDeps,
): Promise<void> {
  try {
    const manifest = await readArchive(await open(await place.read(name)), null)
    if (JSON.stringify(manifest) !== JSON.stringify(expected)) throw new AppError('backup_unusable', { detail: 'it is another backup' })
  } catch (error) {
    stopIfTold(deps)
    throw new AppError(
      'backup_unusable',
      {
        doing: 'read the backup back',
        detail: `${place.text}: ${name}: ${describeError(error)}`,
        remedy: 'Check the storage. Earlier backups were kept; `skerry backup verify` checks them.',
      },
      { cause: error },
    )
  }
}

/** Archives that failed the read and cannot be removed. Above it, no more are stored. */
const UNVERIFIED_MAX = 8

const noteUnverified = (dataDir: string, { text: into }: BackupPlace, names: readonly string[]): void =>
  void changeBackupState(dataDir, { unverified: names.map((name) => ({ into, name })) })

/** Removes archives that were never read back whole. Answers those that the place keeps. */
async function clearUnverified(place: BackupPlace, dataDir: string): Promise<string[]> {
  const noted = readBackupState(dataDir).unverified.filter(({ into }) => into === place.text)
  if (noted.length === 0) return []
  const present = new Set((await place.list()).map(({ name }) => name))
  const left: string[] = []
  for (const { name } of noted) if (present.has(name)) await place.remove(name).catch(() => left.push(name))
  noteUnverified(dataDir, place, left)
  if (left.length < UNVERIFIED_MAX) return left
  throw new AppError('unavailable', {
    doing: 'back up',
    detail: `${place.text} has ${left.length} archives that could not be read back and cannot be removed, such as ${left[0]}`,
    remedy: 'Check the storage and the right to delete, and remove these archives. Earlier backups were kept.',
  })
}

async function removeOld({ place, newest, keep, bad }: { place: BackupPlace; newest: string; keep: number; bad: readonly string[] }) {
  const good = (await place.list()).filter(({ name }) => !bad.includes(name))
  const old = keep === 0 ? [] : good.filter(({ name }) => name < newest).slice(0, Math.max(0, good.length - keep))
  for (const { name } of old) await place.remove(name)
  return { removed: old.map(({ name }) => name), names: good.slice(old.length).map(({ name }) => name) }
}
