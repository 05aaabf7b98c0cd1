// The description of a backup: `manifest.json`, written last and read first. A backup may come from anybody's disk, so
// its names are compared with those that can be in one, and nothing is followed, unpacked or looked up by a name from
// it.
import { lstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { AppError } from '../../shared/runtime/error.ts'

export const MANIFEST = 'manifest.json'
export const STORE = 'fleet.sqlite'
export const KEYS = ['keys/signing.json', 'keys/mac.key', 'keys/secrets.json', 'keys/sealing.json'] as const
/** A server of before there were Configs has none. */
export const mayBeMissing = (path: (typeof KEYS)[number]): boolean => path === 'keys/secrets.json' || path === 'keys/sealing.json'
export const CONTENT = 'content'

/** The format of this program. A later program may read older formats. */
export const FORMAT = 1
/** 700,000 files of content. */
export const MANIFEST_BYTES_MAX = 64 * 1_024 * 1_024

const sha256 = z.string().regex(/^[0-9a-f]{64}$/)
const size = z.number().int().nonnegative()
/** For texts that are shown to people unchanged. */
const printable = z.string().regex(/^[ -~]{0,100}$/)
/** The last that there is. */
const TIME_MS_MAX = 8_640_000_000_000_000

const manifestSchema = z.object({
  format: z.literal(FORMAT),
  /** Version of the program that made it. */
  skerry: printable,
  /** `postgres`: the database is not in it, but in a dump of its own. */
  store: z.enum(['sqlite', 'postgres']),
  /** The schema of the fleet store. Null if the store is not in the backup. */
  schema: z.number().int().nullable(),
  createdMs: size.max(TIME_MS_MAX),
  /** Fingerprint of the key that the server signed with. Null means that the keys were left out. */
  fingerprint: printable.nullable(),
  counts: z.record(z.string().max(100), size),
  files: z.array(z.object({ path: z.enum([STORE, ...KEYS]), bytes: size, sha256 })).max(1 + KEYS.length),
  /** By SHA-256, sorted. */
  content: z.array(z.tuple([sha256, size])),
  /** Content that was lost or damaged before this backup: only revisions of the past refer to it, or, if the database
   *  is not in the backup, it may be anything. */
  missing: z.array(sha256).default([]),
  /** Secrets of Configs that the keys in it do not open: they were sealed under a key that the server did not have. */
  unopened: size.default(0),
})
export type Manifest = z.infer<typeof manifestSchema>

export const unopenedText = (count: number): string =>
  `${count} secret${count === 1 ? '' : 's'} of Configs cannot be opened with the keys in the backup; the server did not have the key either`

export const pathOfContent = (sha: string): string => `${CONTENT}/${sha.slice(0, 2)}/${sha.slice(2)}`

const refuse = (detail: string) => new AppError('backup_unusable', { doing: 'read its manifest', detail })

export function readManifest(folder: string): Manifest {
  const path = join(folder, MANIFEST)
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) throw refuse(`${folder} has no ${MANIFEST}`)
  if (!found.isFile()) throw refuse(`${MANIFEST} is not a file`)
  if (found.size > MANIFEST_BYTES_MAX) throw refuse(`${MANIFEST} is larger than ${MANIFEST_BYTES_MAX} bytes`)
  return parseManifest(readFileSync(path, 'utf8'))
}

export function parseManifest(text: string): Manifest {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw refuse(`${MANIFEST} is not JSON`)
  }
  const format = z.object({ format: z.number() }).safeParse(value)
  if (format.success && format.data.format > FORMAT)
    throw refuse(`the backup has format ${format.data.format}; this version reads ${FORMAT}`)
  const read = manifestSchema.safeParse(value)
  if (read.success) return read.data
  const [issue] = read.error.issues
  throw refuse(`${MANIFEST}: ${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'does not match the schema'}`)
}

export function manifestText(manifest: Manifest): string {
  const text = `${JSON.stringify(manifest)}\n`
  if (text.length > MANIFEST_BYTES_MAX)
    throw new AppError('too_large', {
      doing: 'back up',
      detail: `${manifest.content.length} files of content are more than a manifest holds`,
    })
  return text
}
