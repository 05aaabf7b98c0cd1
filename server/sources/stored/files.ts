// The folder of a source: small documents by name, and archives by the SHA-256 of their content. Written whole or not
// at all, and checked when they are read.
import { createHash } from 'node:crypto'
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isDiskFull } from '../../../shared/adapters/sqlite.ts'
import { AppError } from '../../../shared/runtime/error.ts'

export interface StoredFiles {
  /** Null if there is none. */
  readText(name: string): Promise<string | null>
  hasText(name: string): Promise<boolean>
  writeText(name: string, text: string): Promise<void>
  /** Names of documents that begin so, the newest first. */
  names(prefix: string): Promise<string[]>
  remove(name: string): Promise<void>
  /** Null if there is none, or its content is not what it was. */
  readBlob(sha256: string): Promise<Uint8Array | null>
  hasBlob(sha256: string): Promise<boolean>
  writeBlob(sha256: string, bytes: Uint8Array): Promise<void>
  /** A blob that is on its way: what there is of it already, so that only the rest is asked for. */
  readPart(sha256: string): Promise<Uint8Array | null>
  writePart(sha256: string, bytes: Uint8Array): Promise<void>
  removePart(sha256: string): Promise<void>
}

export const sha256Of = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex')

export const isSha256 = (text: string): boolean => /^[0-9a-f]{64}$/.test(text)

/** All blobs of one source; past that the least recently used are removed that nobody used since the server started. */
const BLOB_BYTES_MAX = 1024 * 1024 * 1024

/** Files in a folder by name, and blobs by their SHA-256: one that was damaged reads as not there. */
export function createStoredFiles(dir: string, blobBytesMax: number = BLOB_BYTES_MAX): StoredFiles {
  const used = new Set<string>()
  const at = (name: string) => join(dir, name)
  const blobAt = (sha256: string) => {
    if (!isSha256(sha256)) throw new Error('no SHA-256') // else it could name any file of this machine
    return join(dir, 'blobs', sha256)
  }
  const partAt = (sha256: string) => `${blobAt(sha256)}.part`
  let swept: Promise<void> | null = null
  const write = (path: string, bytes: Uint8Array | string) =>
    guarded(dir, async () => {
      swept ??= removeLeft(dir)
      await swept
      await writeWhole(path, bytes)
    })
  return {
    readText: async (name) => (await bytesOf(at(name)))?.toString('utf8') ?? null,
    hasText: (name) => exists(at(name)),
    writeText: (name, text) => write(at(name), text),
    async names(prefix) {
      const names = (await readdir(dir).catch(() => [])).filter((name) => name.startsWith(prefix) && !name.endsWith('.new'))
      const times = await Promise.all(names.map(async (name) => ({ name, mtimeMs: (await orNull(stat(at(name))))?.mtimeMs ?? 0 })))
      return times.sort((a, b) => b.mtimeMs - a.mtimeMs || (a.name < b.name ? -1 : 1)).map(({ name }) => name)
    },
    remove: (name) => rm(at(name), { force: true }),
    async readBlob(sha256) {
      used.add(sha256)
      const bytes = await bytesOf(blobAt(sha256))
      return bytes !== null && sha256Of(bytes) === sha256 ? new Uint8Array(bytes) : null
    },
    hasBlob: (sha256) => exists(blobAt(sha256)),
    async writeBlob(sha256, bytes) {
      used.add(sha256)
      await write(blobAt(sha256), bytes)
      await rm(partAt(sha256), { force: true })
      await removeOldest(join(dir, 'blobs'), used, blobBytesMax)
    },
    async readPart(sha256) {
      const bytes = await bytesOf(partAt(sha256))
      return bytes === null ? null : new Uint8Array(bytes)
    },
    writePart: (sha256, bytes) => write(partAt(sha256), bytes),
    removePart: (sha256) => rm(partAt(sha256), { force: true }),
  }
}

/** An unreadable blob is fetched again and replaced. */
const UNREADABLE = ['ENOENT', 'EIO', 'EACCES', 'EPERM']
const bytesOf = (path: string): Promise<Buffer | null> => orNull(readFile(path), UNREADABLE)
const exists = async (path: string): Promise<boolean> => (await orNull(stat(path))) !== null

async function orNull<T>(asked: Promise<T>, codes: readonly string[] = ['ENOENT']): Promise<T | null> {
  try {
    return await asked
  } catch (error) {
    if (error instanceof Error && 'code' in error && codes.includes(String(error.code))) return null
    throw error
  }
}

/** Several may write the same document at once, and the last one stays. */
const writing = new Set<string>()
let writes = 0

async function writeWhole(path: string, bytes: Uint8Array | string): Promise<void> {
  await mkdir(dirname(path), { recursive: true })
  const written = `${path}.${++writes}.new`
  writing.add(written)
  try {
    const file = await open(written, 'w')
    try {
      await file.writeFile(bytes)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(written, path)
  } catch (error) {
    await rm(written, { force: true })
    throw error
  } finally {
    writing.delete(written)
  }
}

/** A process that was killed while it wrote left them. */
async function removeLeft(dir: string): Promise<void> {
  for (const folder of [dir, join(dir, 'blobs')]) {
    const left = (await readdir(folder).catch(() => [])).map((name) => join(folder, name))
    const old = left.filter((path) => path.endsWith('.new') && !writing.has(path))
    await Promise.allSettled(old.map((path) => rm(path, { force: true }))) // what stays hurts nobody
  }
}

async function guarded(dir: string, act: () => Promise<void>): Promise<void> {
  try {
    await act()
  } catch (error) {
    throw isDiskFull(error) ? new AppError('disk_full', { doing: `store the content in ${dir}` }, { cause: error }) : error
  }
}

async function removeOldest(folder: string, used: ReadonlySet<string>, bytesMax: number): Promise<void> {
  const names = (await readdir(folder)).filter((name) => !name.endsWith('.new'))
  const found = await Promise.all(names.map(async (name) => ({ name, of: await orNull(stat(join(folder, name))) })))
  const blobs = found.flatMap(({ name, of }) => (of === null ? [] : [{ name, mtimeMs: of.mtimeMs, size: of.size }]))
  let total = blobs.reduce((all, { size }) => all + size, 0)
  for (const { name, size } of blobs.sort((a, b) => a.mtimeMs - b.mtimeMs)) {
    if (total <= bytesMax) return
    if (used.has(name)) continue
    await rm(join(folder, name), { force: true })
    total -= size
  }
}
