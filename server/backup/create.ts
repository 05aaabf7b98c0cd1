// BK1: a backup of a server that runs or does not: one state of the fleet store, the keys, then the content that this
// state refers to (ST12 keeps it for a day). Nothing has the backup's name before all of it is on the disk.
import { chmodSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { syncPath } from '../../shared/adapters/sync-path.ts'
import { VERSION } from '../../shared/runtime/build-info.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { fileKeysOf } from '../access/config-secrets.ts'
import { secretKeyIds } from '../access/secret-box.ts'
import { contentFilesIn } from '../store/content/content-files.ts'
import { contentPath, isContentFolder, readContentName } from '../store/content/content-names.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import { createFileContentStore } from '../store/content/file-content-store.ts'
import { copyStoreFile, openStoreFile } from '../store/engines/store-file.ts'
import { namedDiskFull, sumFile, writeSynced } from './copy-file.ts'
import { CONTENT, FORMAT, KEYS, MANIFEST, type Manifest, manifestText, mayBeMissing, STORE } from './manifest.ts'
import { refuseUnfinishedRestore } from './restore-mark.ts'
import { signingFingerprint } from './signing-file.ts'

export interface CreateOptions {
  dataDir: string
  to: string
  withoutKeys: boolean
  /** The fleet store is a database: it is dumped by its own tool. */
  postgres: boolean
}

export interface BackupDeps {
  clock: Clock
  /** `of` 0: it cannot be counted. */
  progress(what: string, done: number, of: number): void
  signal: AbortSignal
}

/** Files of content that are copied beside each other: most of the time is waiting for the disk. */
const COPIES = 16

export async function createBackup(options: CreateOptions, deps: BackupDeps): Promise<Manifest> {
  const { dataDir, to } = options
  const partial = `${to}.partial`
  refuseUnfinishedRestore(dataDir)
  if (!options.postgres && !existsSync(join(dataDir, STORE)))
    throw new AppError('not_found', {
      doing: 'back up',
      detail: `${dataDir} has no fleet store`,
      remedy: 'Set --data to the data folder of the server; with PostgreSQL, also set --store.',
    })
  if (existsSync(to)) throw new AppError('target_exists', { doing: 'back up', detail: `${to} exists` })
  makeFolder(partial)
  try {
    const manifest = await fill(partial, options, deps)
    renameSync(partial, to)
    syncPath(dirname(to))
    return manifest
  } catch (error) {
    rmSync(partial, { recursive: true, force: true })
    throw namedDiskFull(error, to)
  }
}

/** 0700: it will hold keys, and what every cluster runs. */
function makeFolder(partial: string): void {
  mkdirSync(dirname(partial), { recursive: true })
  try {
    mkdirSync(partial, { mode: 0o700 })
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error
    throw new AppError('target_exists', {
      doing: 'back up',
      detail: `${partial} exists: a backup is running there, or one was interrupted`,
      remedy: 'If no backup is running, remove it and try again.',
    })
  }
}

async function fill(partial: string, options: CreateOptions, deps: BackupDeps): Promise<Manifest> {
  const { dataDir, postgres } = options
  const createdMs = deps.clock.nowMs()
  const { store, keys, unopened } = await copyStoreAndKeys(partial, options, deps)
  const names = store?.references.map(({ sha256 }) => sha256) ?? (await allContent(dataDir, deps))
  const content = await copyContent(dataDir, partial, names, deps)
  const held = new Set(content.map(([sha256]) => sha256))
  const needed = store?.references.filter(({ sha256, desired }) => desired && !held.has(sha256)) ?? []
  if (needed.length > 0) throw contentLost(needed.map(({ of }) => of))
  const manifest: Manifest = {
    format: FORMAT,
    skerry: VERSION,
    store: postgres ? 'postgres' : 'sqlite',
    schema: store?.schema ?? null,
    createdMs,
    fingerprint: keys?.fingerprint ?? null,
    counts: { ...store?.counts, content: content.length },
    files: [...(store === null ? [] : [store.file]), ...(keys?.files ?? [])],
    content,
    missing: names.filter((sha256) => !held.has(sha256)).sort(),
    unopened,
  }
  stopIfTold(deps)
  writeSynced(join(partial, MANIFEST), Buffer.from(manifestText(manifest)))
  for (const folder of [join(partial, CONTENT), join(partial, 'keys'), partial]) if (existsSync(folder)) syncPath(folder)
  return manifest
}

/** CG7: a rotation of the keys of secrets between the one and the other would leave a backup whose keys open nothing;
 *  then both are copied again. */
async function copyStoreAndKeys(partial: string, { dataDir, withoutKeys, postgres }: CreateOptions, deps: BackupDeps) {
  for (let tries = 1; ; tries++) {
    const store = postgres ? null : await copyStore(dataDir, partial, deps)
    const keys = withoutKeys ? null : await copyKeys(dataDir, partial)
    const unopened = store === null || keys === null ? 0 : unopenedIn(partial, store.sealingKeys)
    if (unopened === 0 || tries === TRIES) return { store, keys, unopened }
    rmSync(join(partial, STORE))
    rmSync(join(partial, 'keys'), { recursive: true })
  }
}

/** Secrets whose key is not among those of the copied keys. */
function unopenedIn(partial: string, sealingKeys: readonly string[]): number {
  const path = join(partial, 'keys', 'secrets.json')
  const held = new Set(existsSync(path) ? (secretKeyIds(readFileSync(path, 'utf8')) ?? []) : [])
  return sealingKeys.filter((id) => !held.has(id)).length
}

async function copyStore(dataDir: string, partial: string, deps: BackupDeps) {
  deps.progress('copying the fleet store', 0, 0)
  const path = join(partial, STORE)
  copyStoreFile(join(dataDir, STORE), path)
  chmodSync(path, 0o600)
  stopIfTold(deps)
  const file = openStoreFile(path, { whole: false })
  try {
    const facts = {
      schema: file.schema,
      counts: file.counts(),
      references: file.references(),
      sealingKeys: file.configs().flatMap(fileKeysOf),
    }
    syncPath(path) // SQLite does not, for a copy
    return { ...facts, file: { path: STORE, ...(await sumFile(path, null)) } as const }
  } finally {
    file.close()
  }
}

/** All content, set aside or not: only the database knows what the dump refers to. */
async function allContent(dataDir: string, { clock }: BackupDeps): Promise<string[]> {
  const files = contentFilesIn(join(dataDir, CONTENT), clock)
  const names = new Set<string>()
  for (const folder of (await files.list('')).filter(isContentFolder)) {
    for (const name of await files.list(folder)) {
      const read = readContentName(folder, name)
      if (read.kind === 'content' || read.kind === 'aside') names.add(read.sha256)
    }
  }
  return [...names]
}

/** Those that are there and whole, sorted. */
async function copyContent(
  dataDir: string,
  partial: string,
  names: readonly string[],
  deps: BackupDeps,
): Promise<Array<[sha256: string, bytes: number]>> {
  const content: ContentStore = createFileContentStore(join(dataDir, CONTENT), deps.clock)
  const files = contentFilesIn(join(partial, CONTENT), deps.clock)
  const sorted = [...names].sort()
  const copied: Array<[string, number]> = []
  for (let start = 0; start < sorted.length; start += COPIES) {
    stopIfTold(deps)
    deps.progress('copying content', start, sorted.length)
    const batch = sorted.slice(start, start + COPIES)
    const sizes = await Promise.all(
      batch.map(async (sha256) => {
        const bytes = await content.get(sha256)
        if (bytes !== null) await files.writeNew(contentPath(sha256), bytes)
        return bytes?.length ?? null
      }),
    )
    for (const [index, sha256] of batch.entries()) {
      const bytes = sizes[index]
      if (bytes !== null && bytes !== undefined) copied.push([sha256, bytes])
    }
  }
  for (const folder of (await files.list('')).filter(isContentFolder)) await files.sync(folder)
  return copied
}

/** Not a key that is just being replaced (RP7): whole, or the next try. */
const TRIES = 3

async function copyKeys(dataDir: string, partial: string) {
  const folder = join(partial, 'keys')
  for (let tries = 1; ; tries++) {
    mkdirSync(folder, { mode: 0o700 })
    const files: Array<Manifest['files'][number]> = []
    for (const path of KEYS) {
      if (!existsSync(join(dataDir, path)) && mayBeMissing(path)) continue
      if (!existsSync(join(dataDir, path)))
        throw new AppError('not_found', {
          doing: 'back up the keys',
          detail: `${join(dataDir, path)} is not there`,
          remedy: 'Set --without-keys if the keys are kept elsewhere. Agents do not recognize a server that is restored without them.',
        })
      files.push({ path, ...(await sumFile(join(dataDir, path), join(partial, path))) })
    }
    const fingerprint = signingFingerprint(readFileSync(join(partial, KEYS[0]), 'utf8'))
    if (fingerprint !== null) return { files, fingerprint }
    if (tries === TRIES) throw new AppError('internal', { doing: 'back up the keys', detail: `${join(dataDir, KEYS[0])} holds no key` })
    rmSync(folder, { recursive: true })
  }
}

function contentLost(services: string[]): AppError {
  const named = [...new Set(services)].sort()
  const shown = named.slice(0, 10).join(', ') + (named.length > 10 ? ` and ${named.length - 10} more` : '')
  return new AppError('backup_unusable', {
    doing: 'back up',
    detail: `the content store has missing or damaged revisions of ${shown}`,
    remedy:
      'Push a commit that changes these services: their revisions are then written again. `skerry doctor` names the files. The incomplete backup was removed.',
  })
}

export function stopIfTold({ signal }: Pick<BackupDeps, 'signal'>): void {
  if (signal.aborted)
    throw new AppError('unavailable', {
      detail: 'the command was stopped',
      remedy: 'Run the command again. The incomplete backup was removed.',
    })
}

export const sizeOf = ({ files, content }: Manifest): number =>
  files.reduce((sum, { bytes }) => sum + bytes, 0) + content.reduce((sum, [, bytes]) => sum + bytes, 0)
