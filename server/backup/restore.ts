// BK5: a data folder out of a backup that was verified first. A mark lies in the folder from the first byte to the last: a crash leaves what no server starts
// with, and the next restore begins anew. Shard files are not brought: the server makes them from the fleet store.
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { DataFolder } from '../../shared/adapters/data-folder.ts'
import { syncPath } from '../../shared/adapters/sync-path.ts'
import { AppError } from '../../shared/protocol/error.ts'
import { namedDiskFull, sumFile, writeSynced } from './copy-file.ts'
import { type BackupDeps, stopIfTold } from './create.ts'
import { CONTENT, KEYS, type Manifest, STORE } from './manifest.ts'
import { RESTORE_MARK } from './restore-mark.ts'
import { filesOf, verifyBackup } from './verify.ts'

export interface RestoreOptions {
  folder: string
  dataDir: string
  /** Folder with the keys, for a backup without them. */
  keysFrom: string | null
  /** Without any: the server makes new ones, and every agent joins anew. */
  newKeys: boolean
}

export interface RestoreDeps extends BackupDeps {
  /** Makes the folder and takes it for this process alone. */
  openFolder(dataDir: string): DataFolder
}

/** What a restore makes, and an unfinished one may have left. */
const MADE = [STORE, CONTENT, 'keys']

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

function refuseFilled(dataDir: string): void {
  if (!existsSync(dataDir)) return
  const names = readdirSync(dataDir).filter((name) => !isOurs(name))
  if (names.length === 0 || names.includes(RESTORE_MARK)) return
  throw new AppError('target_exists', {
    doing: 'restore',
    detail: `${dataDir} is not empty: it holds ${names.slice(0, 5).join(', ')}`,
    remedy: `Stop the server that uses it, move its content away (keep it until the restored server runs), and try again: mv ${dataDir} ${dataDir}.before`,
  })
}

/** Of each key where it comes from; null: none is brought. */
function chooseKeys({ files }: Manifest, { keysFrom, newKeys, folder }: RestoreOptions): ReadonlyMap<string, string> | null {
  const included = files.some(({ path }) => path !== STORE)
  if (included && keysFrom === null && !newKeys) return new Map(KEYS.map((path) => [path, join(folder, path)]))
  if (keysFrom !== null) return new Map(KEYS.map((path) => [path, join(keysFrom, path.slice('keys/'.length))]))
  if (newKeys) return null
  throw new AppError('bad_options', {
    doing: 'restore',
    detail: 'the keys are not in this backup',
    remedy:
      'Give --keys FOLDER, where signing.json and mac.key of the old server are; or --new-keys, after which every agent has to join anew.',
  })
}

async function fill(
  { folder, dataDir }: RestoreOptions,
  manifest: Manifest,
  keys: ReadonlyMap<string, string> | null,
  deps: BackupDeps,
): Promise<void> {
  clear(dataDir)
  const expected = [...filesOf(manifest)].filter(([path]) => !path.startsWith('keys/'))
  const folders = new Set<string>()
  for (const [done, [path, sum]] of expected.entries()) {
    stopIfTold(deps)
    if (done % 16 === 0) deps.progress('writing', done, expected.length)
    const target = join(dataDir, path)
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 })
    folders.add(dirname(target))
    const read = await sumFile(join(folder, path), target)
    if (read.sha256 !== sum.sha256) throw new AppError('backup_unusable', { doing: 'restore', detail: `${path} changed while it was read` })
  }
  if (keys !== null) {
    mkdirSync(join(dataDir, 'keys'), { mode: 0o700 })
    folders.add(join(dataDir, 'keys'))
    for (const [path, from] of keys) {
      stopIfTold(deps)
      await sumFile(from, join(dataDir, path))
    }
  }
  if (existsSync(join(dataDir, CONTENT))) folders.add(join(dataDir, CONTENT))
  stopIfTold(deps)
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
