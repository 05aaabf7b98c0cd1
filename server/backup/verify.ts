// BK3: whether a backup is whole, before anybody needs it, and before anything of it is written. All that is wrong is
// named; links are not followed.
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../shared/runtime/error.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { openStoreFile } from '../store/engines/store-file.ts'
import { type FileSum, sumFile } from './copy-file.ts'
import { type BackupDeps, stopIfTold } from './create.ts'
import { KEYS, MANIFEST, type Manifest, mayBeMissing, pathOfContent, readManifest, STORE, unopenedText } from './manifest.ts'
import { signingFingerprint } from './signing-file.ts'

export interface Verified {
  manifest: Manifest
  /** It cannot be restored. */
  problems: string[]
  /** It can. */
  warnings: string[]
}

/** Throws `backup_unusable` for what is no backup. */
export async function verifyBackup(folder: string, deps: BackupDeps): Promise<Verified> {
  if (!lstatSync(folder, { throwIfNoEntry: false })?.isDirectory())
    throw new AppError('backup_unusable', { doing: 'verify', detail: `${folder} is not a folder` })
  const manifest = readManifest(folder)
  const found: Verified = { manifest, problems: [], warnings: [] }
  const expected = filesOf(manifest)
  const there = listFiles(folder, expected, found)
  let done = 0
  for (const [path, sum] of expected) {
    stopIfTold(deps)
    if (done % 16 === 0) deps.progress('reading', done, expected.size)
    done++
    if (!there.has(path)) {
      if (!found.problems.some((problem) => problem.startsWith(`${path} `))) found.problems.push(`${path} is missing`)
      continue
    }
    const read = await sumFile(join(folder, path), null).catch((error: unknown) => describeError(error))
    if (typeof read === 'string') found.problems.push(`${path} cannot be read: ${read}`)
    else if (read.sha256 !== sum.sha256 || read.bytes !== sum.bytes) found.problems.push(`${path} is damaged`)
  }
  if (found.problems.length === 0) checkMeaning(folder, found, deps)
  return found
}

/** Every file that it must hold. */
export function filesOf({ files, content }: Manifest): Map<string, FileSum> {
  return new Map([
    ...files.map(({ path, ...sum }) => [path, sum] as const),
    ...content.map(([sha256, bytes]) => [pathOfContent(sha256), { sha256, bytes }] as const),
  ])
}

/** Ordinary files, by their path. What is anything else, or not of the manifest, is a problem. */
function listFiles(folder: string, expected: ReadonlyMap<string, unknown>, { problems }: Verified): Set<string> {
  const found = new Set<string>()
  const folders = new Set([...expected.keys()].flatMap((path) => path.split('/').map((_, depth, parts) => parts.slice(0, depth).join('/'))))
  const visit = (below: string): void => {
    for (const entry of readdirSync(join(folder, below), { withFileTypes: true })) {
      const path = below === '' ? entry.name : `${below}/${entry.name}`
      if (path === MANIFEST) continue
      if (entry.isDirectory() && folders.has(path)) visit(path)
      else if (entry.isFile() && expected.has(path)) found.add(path)
      else problems.push(`${path} ${entry.isSymbolicLink() ? 'is a link' : 'does not belong to this backup'}`)
    }
  }
  visit('')
  return found
}

/** Checks files that match the manifest: whether a server can use them. */
function checkMeaning(folder: string, { manifest, problems, warnings }: Verified, deps: BackupDeps): void {
  const paths = new Set(manifest.files.map(({ path }) => path))
  const keys = KEYS.filter((path) => paths.has(path))
  const lacking = KEYS.filter((path) => !paths.has(path) && !mayBeMissing(path))
  if (keys.length > 0 && lacking.length > 0) problems.push(`of the keys only ${keys.join(' and ')} is in it`)
  if (keys.length === 0) warnings.push('the backup has no keys: agents do not recognize a server that is restored without them')
  else if (signingFingerprint(readFileSync(join(folder, KEYS[0]), 'utf8')) !== manifest.fingerprint)
    problems.push(`${KEYS[0]} is not the key that the manifest names`)
  for (const path of keys)
    if ((lstatSync(join(folder, path)).mode & 0o077) !== 0) warnings.push(`other users of this machine can read ${path}: run chmod 600`)
  if (manifest.unopened > 0) warnings.push(unopenedText(manifest.unopened))
  if (manifest.store === 'postgres') {
    warnings.push('the fleet store is a PostgreSQL database: its dump is a separate backup')
    if (manifest.missing.length > 0) warnings.push(`${manifest.missing.length} files of content were damaged before this backup was made`)
    return
  }
  if (!paths.has(STORE)) problems.push(`the backup has no ${STORE}`)
  else checkStore(folder, { manifest, problems, warnings }, deps)
}

function checkStore(folder: string, { manifest, problems, warnings }: Verified, deps: BackupDeps): void {
  deps.progress('checking the fleet store', 0, 0)
  try {
    const file = openStoreFile(join(folder, STORE), { whole: true })
    try {
      const held = new Set(manifest.content.map(([sha256]) => sha256))
      const lost = file.references().filter(({ sha256 }) => !held.has(sha256))
      for (const { sha256, of } of lost.filter(({ desired }) => desired)) problems.push(`${pathOfContent(sha256)} of ${of} is missing`)
      const past = lost.filter(({ desired }) => !desired).length
      if (past > 0)
        warnings.push(
          `${past === 1 ? '1 revision of the past was' : `${past} revisions of the past were`} lost before this backup was made`,
        )
    } finally {
      file.close()
    }
  } catch (error) {
    problems.push(`${STORE}: ${describeError(error)}`)
  }
}
