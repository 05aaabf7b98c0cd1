// BK5: a data folder from a backup that was verified first. A mark is in the folder from the first byte to the last: a
// crash leaves a folder that no server starts with, and the next restore starts again. Shard files are not restored:
// the server builds them from the fleet store.
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { DataFolder } from '../../shared/adapters/data-folder.ts'
import { syncPath } from '../../shared/adapters/sync-path.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { leapChangesOfFile } from '../store/engines/store-file.ts'
import { namedDiskFull, sumFile, writeSynced } from './copy-file.ts'
import { type BackupDeps, stopIfTold } from './create.ts'
import { CONTENT, KEYS, type Manifest, mayBeMissing, STORE } from './manifest.ts'
import { RESTORE_MARK } from './restore-mark.ts'
import { RESTORED_NOTE, restoredNote } from './restored-note.ts'
import { signingFingerprint } from './signing-file.ts'
import { filesOf, verifyBackup } from './verify.ts'

export interface RestoreOptions {
  folder: string
  dataDir: string
  /** Folder with the keys, for a backup without them. */
  keysFrom: string | null
  /** Without any: the server creates new ones, and every agent joins again. */
  newKeys: boolean
}

export interface RestoreDeps extends BackupDeps {
  /** Makes the folder and takes it for this process alone. */
  openFolder(dataDir: string): DataFolder
}

/** Files that a restore makes, and that an unfinished restore may have left. */
const MADE = [STORE, CONTENT, 'keys', RESTORED_NOTE]

export async function restoreBackup(options: RestoreOptions, deps: RestoreDeps): Promise<Manifest> {
  const { folder, dataDir } = options
  refuseFilled(dataDir)
  const { manifest, problems } = await verifyBackup(folder, deps)
  if (problems.length > 0) {
    const more = problems.length > 5 ? ` and ${problems.length - 5} more` : ''
    throw new AppError('backup_unusable', { doing: 'restore', detail: `${problems.slice(0, 5).join('; ')}${more}` })
  }
  const keys = chooseKeys(manifest, options)
  const data = deps.openFolder(dataDir)
  try {
    refuseFilled(dataDir)
    if (!existsSync(join(dataDir, RESTORE_MARK))) writeSynced(join(dataDir, RESTORE_MARK), Buffer.from(`${folder}\n`))
    syncPath(dataDir)
    try {
      await fill(options, manifest, keys, deps)
      writeSynced(join(dataDir, RESTORED_NOTE), restoredNote(manifest.createdMs, deps.clock.nowMs()))
    } catch (error) {
      clear(dataDir)
      removeMark(dataDir)
      throw namedDiskFull(error, dataDir)
    }
    removeMark(dataDir)
  } finally {
    data.unlock()
  }
  return manifest
}

const isOurs = (name: string): boolean => name.startsWith('lock.sqlite') || name === 'lost+found'

export function refuseFilled(dataDir: string): void {
  if (!existsSync(dataDir)) return
  const names = readdirSync(dataDir).filter((name) => !isOurs(name))
  if (names.length === 0 || names.includes(RESTORE_MARK)) return
  throw new AppError('target_exists', {
    doing: 'restore',
    detail: `${dataDir} is not empty: it holds ${names.slice(0, 5).join(', ')}`,
    remedy: `Stop the server that uses it, move its content (keep it until the restored server runs), and try again: mv ${dataDir} ${dataDir}.before`,
  })
}

/** Where a key comes from, and what it hashes to if that is known. */
interface KeySource {
  from: string
  sha256: string | null
}

/** By the path in the data folder; none: the server makes new ones. */
function chooseKeys({ files }: Manifest, { keysFrom, newKeys, folder }: RestoreOptions): ReadonlyMap<string, KeySource> {
  if (newKeys) return new Map()
  if (keysFrom !== null) return keysElsewhere(keysFrom)
  const included = files.filter(({ path }) => path !== STORE)
  if (included.length > 0) return new Map(included.map(({ path, sha256 }) => [path, { from: join(folder, path), sha256 }]))
  throw new AppError('bad_options', {
    doing: 'restore',
    detail: 'the backup has no keys',
    remedy:
      'Set --keys FOLDER with signing.json, mac.key and secrets.json of the old server; or --new-keys, after which all agents must join again and all secrets of Configs must be written again.',
  })
}

function keysElsewhere(keysFrom: string): ReadonlyMap<string, KeySource> {
  const elsewhere = (path: string) => join(keysFrom, path.slice('keys/'.length))
  const present = KEYS.filter((path) => !mayBeMissing(path) || existsSync(elsewhere(path)))
  const sources = new Map(present.map((path) => [path as string, { from: elsewhere(path), sha256: null }]))
  const signing = sources.get(KEYS[0])?.from ?? ''
  const missing = [...sources.values()].find(({ from }) => !existsSync(from))
  if (missing !== undefined || signingFingerprint(readFileSync(signing, 'utf8')) === null)
    throw new AppError('bad_options', {
      doing: 'restore',
      detail: missing === undefined ? `${signing} has no key` : `${missing.from} does not exist`,
      remedy: 'Set --keys to the folder with signing.json, mac.key and secrets.json of the old server.',
    })
  return sources
}

async function fill(
  { folder, dataDir }: RestoreOptions,
  manifest: Manifest,
  keys: ReadonlyMap<string, KeySource>,
  deps: BackupDeps,
): Promise<void> {
  clear(dataDir)
  const files = [...filesOf(manifest)].filter(([path]) => !path.startsWith('keys/'))
  const sources = new Map<string, KeySource>(files.map(([path, { sha256 }]) => [path, { from: join(folder, path), sha256 }]))
  const folders = new Set<string>()
  let done = 0
  for (const [path, { from, sha256 }] of [...sources, ...keys]) {
    stopIfTold(deps)
    if (done % 16 === 0) deps.progress('writing', done, sources.size + keys.size)
    done++
    const target = join(dataDir, path)
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 })
    folders.add(dirname(target))
    // The verified bytes are the written ones, even if another process changes the backup.
    const read = await sumFile(from, target)
    if (sha256 !== null && read.sha256 !== sha256)
      throw new AppError('backup_unusable', { doing: 'restore', detail: `${path} changed while it was read` })
  }
  stopIfTold(deps)
  if (existsSync(join(dataDir, STORE))) leapChangesOfFile(join(dataDir, STORE), deps.clock.nowMs())
  if (existsSync(join(dataDir, CONTENT))) folders.add(join(dataDir, CONTENT))
  for (const made of folders) syncPath(made)
  syncPath(dataDir)
  stopIfTold(deps)
}

function clear(dataDir: string): void {
  for (const name of MADE) rmSync(join(dataDir, name), { recursive: true, force: true })
}

/** Last, and only when all else is on the disk. */
function removeMark(dataDir: string): void {
  rmSync(join(dataDir, RESTORE_MARK))
  syncPath(dataDir)
}
