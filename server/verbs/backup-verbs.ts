// `skerry backup create|verify|restore|list`, on the server's own machine: options in, words and an exit code out.
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, resolve } from 'node:path'
import { openDataFolder } from '../../shared/adapters/data-folder.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { OptionTable } from '../../shared/runtime/options.ts'
import { ARCHIVE_OPTIONS, IDENTITY_OPTION, readIdentities, readTarget } from '../backup/archive/options.ts'
import { isS3, openArchive, openPlace } from '../backup/archive/place.ts'
import { shipBackup } from '../backup/archive/ship.ts'
import { withUnpacked } from '../backup/archive/unpack.ts'
import { type BackupDeps, createBackup, sizeOf } from '../backup/create.ts'
import { holdingsText } from '../backup/holdings.ts'
import { type Manifest, unopenedText } from '../backup/manifest.ts'
import { refuseFilled, restoreBackup } from '../backup/restore.ts'
import { verifyBackup } from '../backup/verify.ts'
import { readStorePlace } from '../store/store-place.ts'
import { createProgressLine } from './progress-line.ts'
import { SERVER_OPTIONS } from './server-options.ts'
import { type Flags, runVerb, type VerbIo } from './verb-io.ts'

export const BACKUP_CREATE_OPTIONS = {
  data: { ...SERVER_OPTIONS.data, help: 'Data folder of the server, which may run.' },
  to: { type: 'text', placeholder: 'FOLDER', help: 'Folder to create; must not exist.' },
  ...ARCHIVE_OPTIONS,
  withoutKeys: {
    type: 'flag',
    help: 'Omit the private keys of the server. Keep them elsewhere: without them, all agents must join the restored server again, and all secrets of Configs must be written again.',
  },
  store: {
    ...SERVER_OPTIONS.store,
    help: 'PostgreSQL database of the server; the backup then has content and keys only. Run pg_dump first, and this command within a day.',
  },
  storeFile: SERVER_OPTIONS.storeFile,
} as const satisfies OptionTable

export const BACKUP_VERIFY_OPTIONS = { ...IDENTITY_OPTION } as const satisfies OptionTable

export const BACKUP_RESTORE_OPTIONS = {
  data: { type: 'text', placeholder: 'DIR', help: 'Data folder to create, or an empty one.', required: true },
  ...IDENTITY_OPTION,
  keys: { type: 'text', placeholder: 'FOLDER', help: 'Folder with signing.json, mac.key and secrets.json, for a backup without keys.' },
  newKeys: {
    type: 'flag',
    help: 'Restore without keys: the server creates new ones, all agents must join again, and all secrets of Configs must be written again.',
  },
} as const satisfies OptionTable

export const BACKUP_LIST_OPTIONS = {} as const satisfies OptionTable

export const runBackupCreate = (flags: Flags, io: VerbIo): Promise<number> =>
  runVerb('backup create', BACKUP_CREATE_OPTIONS, flags, io, async ({ data, to, into, withoutKeys, store, storeFile, ...archives }) => {
    if ((to === undefined) === (into === undefined))
      throw new AppError('bad_options', { detail: 'expected one of --to FOLDER and --into PLACE' })
    const place = readStorePlace({ url: store, asFlag: flags['store'] !== undefined, file: storeFile, env: io.env })
    const options = { dataDir: resolve(data), withoutKeys, postgres: place !== null }
    const startedMs = io.clock.nowMs()
    const took = () => seconds(io.clock.nowMs() - startedMs)
    if (into !== undefined) {
      const target = readTarget({ ...archives, into }, io.env)
      const { manifest, name, bytes, removed, kept } = await watched(io, (deps) =>
        shipBackup({ ...options, ...target, keep: archives.keep }, deps),
      )
      io.out(`${target.place.text}: ${name}: ${contents(manifest)}, ${megabytes(bytes)}, read back whole, in ${took()}\n`)
      io.out(`${kept} archives are kept${removed.length === 0 ? '' : `, ${removed.length} removed`}\n`)
      if (target.recipients.length === 0) io.err(holdingsText(manifest))
      warnings(manifest, options, io)
      return 0
    }
    const folder = resolve(to ?? '')
    const manifest = await watched(io, (deps) => createBackup({ ...options, to: folder }, deps))
    io.out(`${folder}: ${contents(manifest)}, ${megabytes(sizeOf(manifest))}, in ${took()}\n`)
    io.err(holdingsText(manifest))
    warnings(manifest, options, io)
    return 0
  })

function warnings(manifest: Manifest, { postgres, withoutKeys }: { postgres: boolean; withoutKeys: boolean }, io: VerbIo): void {
  if (manifest.unopened > 0) io.err(`warning: ${unopenedText(manifest.unopened)}\n`)
  const lost = manifest.missing.length
  if (lost > 0) {
    const what = `${postgres ? 'damaged content file' : 'past revision'}${lost === 1 ? '' : 's'}`
    io.err(`warning: not in the backup: ${lost} ${what}${postgres ? '' : ', lost in the content store'}; \`skerry doctor\` has the names\n`)
  }
  if (withoutKeys)
    io.err(
      'warning: the backup has no keys; agents do not recognize a server that is restored without them, and it cannot open secrets of Configs\n',
    )
  if (postgres) io.err('the backup does not contain the database: keep it with the dump (pg_dump --format=custom) made before it\n')
}

export const runBackupList = (flags: Flags, io: VerbIo, text: string): Promise<number> =>
  runVerb('backup list', BACKUP_LIST_OPTIONS, flags, io, async () => {
    const place = openPlace(text, io.env)
    const found = await place.list()
    for (const { name, bytes } of found) io.out(`${name}  ${megabytes(bytes)}\n`)
    if (found.length === 0) io.err(`${place.text} has no archives of backups\n`)
    return 0
  })

export const runBackupVerify = (flags: Flags, io: VerbIo, from: string): Promise<number> =>
  runVerb('backup verify', BACKUP_VERIFY_OPTIONS, flags, io, ({ identity }) =>
    watched(io, (deps) =>
      withFolder({ from, identity, near: tmpdir() }, io, deps, async (folder) => {
        const { manifest, problems, warnings } = await verifyBackup(folder, deps)
        for (const warning of warnings) io.err(`warning: ${warning}\n`)
        io.err(holdingsText(manifest))
        for (const problem of problems) io.err(`error: ${problem}\n`)
        if (problems.length > 0) {
          io.err('It cannot be restored. Use another backup.\n')
          return 1
        }
        const shown = isArchive(from) ? from.split('?')[0] : resolve(from)
        io.out(
          `${shown} is complete: ${contents(manifest)}, created ${new Date(manifest.createdMs).toISOString()} by skerry ${manifest.skerry}\n`,
        )
        return 0
      }),
    ),
  )

export const runBackupRestore = (flags: Flags, io: VerbIo, from: string): Promise<number> =>
  runVerb('backup restore', BACKUP_RESTORE_OPTIONS, flags, io, async ({ data, identity, keys, newKeys }) => {
    if (keys !== undefined && newKeys) throw new AppError('bad_options', { detail: 'choose one of --keys and --new-keys' })
    const dataDir = resolve(data)
    refuseFilled(dataDir) // before an archive is fetched
    if (isArchive(from)) mkdirSync(dirname(dataDir), { recursive: true })
    const options = { dataDir, keysFrom: keys === undefined ? null : resolve(keys), newKeys }
    const manifest = await watched(io, (deps) =>
      withFolder({ from, identity, near: dirname(dataDir) }, io, deps, (folder) =>
        restoreBackup({ ...options, folder }, { ...deps, openFolder: openDataFolder }),
      ),
    )
    io.out(`${dataDir}: ${contents(manifest)}, as of ${new Date(manifest.createdMs).toISOString()}\n`)
    if (manifest.store === 'postgres')
      io.err('Restore the database from the dump of that time (pg_restore) before the server starts with --store.\n')
    io.err(`Next: skerry server --data ${dataDir}
Never run two servers of one backup. Agents that know newer revisions get none from this server before a person has read \`skerry restore\` and said
\`skerry restore confirm\`; they go on enforcing what they hold, and nothing is deleted.\n`)
    return 0
  })

const isArchive = (from: string): boolean => isS3(from) || (existsSync(from) && statSync(from).isFile())

/** Works on a folder itself, or on an archive unpacked beside `near`. */
function withFolder<T>(
  { from, identity, near }: { from: string; identity: string | undefined; near: string },
  io: VerbIo,
  deps: BackupDeps,
  work: (folder: string) => Promise<T>,
): Promise<T> {
  if (!isArchive(from)) return work(resolve(from))
  const identities = identity === undefined ? [] : readIdentities(identity)
  return withUnpacked({ ...openArchive(from, io.env), identities, near }, deps, work)
}

async function watched<T>(io: VerbIo, work: (deps: BackupDeps) => Promise<T>): Promise<T> {
  const stopping = new AbortController()
  io.onStop(() => stopping.abort())
  const line = createProgressLine(io.errIsTty ? io.err : null, io.clock)
  try {
    return await work({ clock: io.clock, progress: line.show, signal: stopping.signal })
  } finally {
    line.clear()
  }
}

function contents({ counts, store, files, content }: Manifest): string {
  const of = (word: string) => `${counts[word] ?? 0} ${word}`
  const keys = files.some(({ path }) => path.startsWith('keys/')) ? 'with keys' : 'without keys'
  const things = store === 'sqlite' ? [of('clusters'), of('services')] : []
  return [...things, `${content.length} files of content`, keys].join(', ')
}

const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`
const seconds = (ms: number): string => `${(ms / 1_000).toFixed(1)} s`
