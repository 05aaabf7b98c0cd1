// BK8: a backup as one stream: a tar archive of its folder with the manifest first, by zstd, and encrypted by age if
// there are recipients. Any machine with age, zstd and tar opens it. Read, it is held against its manifest as it goes
// by: names, order of sizes and hashes; nothing else is taken from it.
import { createHash } from 'node:crypto'
import { createReadStream, createWriteStream, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createZstdCompress, createZstdDecompress } from 'node:zlib'
import { extract, pack } from 'tar-stream'
import { AppError } from '../../../shared/runtime/error.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import { MANIFEST, MANIFEST_BYTES_MAX, type Manifest, parseManifest } from '../manifest.ts'
import { filesOf } from '../verify.ts'

type Bytes = ReadableStream<Uint8Array>
type Entry = AsyncIterable<unknown> & { header: { name: string; size?: number | undefined; type?: string | null | undefined } }

const AGE_MAGIC = 'age-encryption.org/v1\n'

/** Packs a folder that `verifyBackup` found complete. */
export function packBackup(folder: string, manifest: Manifest): Bytes {
  const tar = pack()
  const mtime = new Date(manifest.createdMs)
  const addFile = async (name: string, bytes: number) => {
    const entry = tar.entry({ name, size: bytes, mode: 0o600, mtime })
    await pipeline(createReadStream(join(folder, name)), entry)
  }
  const add = async () => {
    const text = readFileSync(join(folder, MANIFEST))
    await addFile(MANIFEST, text.length)
    for (const [path, { bytes }] of filesOf(manifest)) await addFile(path, bytes)
    tar.finalize()
  }
  add().catch((error: unknown) => tar.destroy(error instanceof Error ? error : new Error(String(error))))
  const compressed = createZstdCompress()
  pipeline(Readable.from(tar), compressed).catch((error: Error) => compressed.destroy(error))
  return Readable.toWeb(compressed) as unknown as Bytes
}

export interface Opened {
  stream: Bytes
  encrypted: boolean
}

/** Whether it is encrypted is seen by its first bytes. */
export async function peekArchive(stream: Bytes): Promise<Opened> {
  const reader = stream.getReader()
  const head: Uint8Array[] = []
  let length = 0
  let ended = false
  while (length < AGE_MAGIC.length && !ended) {
    const { value, done } = await reader.read()
    ended = done
    if (value !== undefined) {
      head.push(value)
      length += value.length
    }
  }
  const encrypted = Buffer.concat(head).subarray(0, AGE_MAGIC.length).toString('latin1') === AGE_MAGIC
  return {
    encrypted,
    stream: new ReadableStream<Uint8Array>({
      async pull(controller) {
        const next = head.shift() ?? (await reader.read()).value
        if (next === undefined) controller.close()
        else controller.enqueue(next)
      },
      cancel: (why) => reader.cancel(why),
    }),
  }
}

/**
 * Reads all of a decrypted archive. `to`: an empty folder to write it into. Null means that it is only checked.
 * Throws `backup_unusable` for what is damaged, cut off, or not an archive of a backup.
 */
export async function readArchive(stream: Bytes, to: string | null): Promise<Manifest> {
  const plain = createZstdDecompress()
  const tar = extract()
  pipeline(Readable.fromWeb(stream as never), plain, tar).catch((error: Error) => tar.destroy(error))
  try {
    return await readEntries(tar, to)
  } catch (error) {
    tar.destroy()
    throw error instanceof AppError ? error : refuse(`it is damaged or cut off: ${describeError(error)}`)
  }
}

async function readEntries(tar: AsyncIterable<Entry>, to: string | null): Promise<Manifest> {
  let manifest: Manifest | null = null
  let waiting = new Map<string, { bytes: number; sha256: string }>()
  for await (const entry of tar) {
    const { name, size = 0, type } = entry.header
    if (type !== 'file') throw refuse(`${name} is not a file`)
    if (manifest === null) {
      if (name !== MANIFEST) throw refuse(`it begins with ${name} in place of ${MANIFEST}`)
      if (size > MANIFEST_BYTES_MAX) throw refuse(`${MANIFEST} is larger than ${MANIFEST_BYTES_MAX} bytes`)
      const text = await textOf(entry)
      manifest = parseManifest(text)
      waiting = filesOf(manifest)
      if (to !== null) writeFileSync(join(to, MANIFEST), text, { mode: 0o600, flag: 'wx' })
      continue
    }
    const expected = waiting.get(name)
    if (expected === undefined) throw refuse(`${name} does not belong to this backup, or comes twice`)
    waiting.delete(name)
    if (size !== expected.bytes || (await copyEntry(entry, to === null ? null : join(to, name))) !== expected.sha256)
      throw refuse(`${name} is damaged`)
  }
  const [missing] = waiting.keys()
  if (manifest === null || missing !== undefined) throw refuse(`it is cut off: ${missing ?? MANIFEST} is missing`)
  return manifest
}

/** The SHA-256 of the bytes. */
async function copyEntry(entry: Entry, path: string | null): Promise<string> {
  const hash = createHash('sha256')
  async function* hashed() {
    for await (const chunk of entry) {
      hash.update(chunk as Uint8Array)
      yield chunk
    }
  }
  if (path === null) for await (const _ of hashed());
  else {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    await pipeline(Readable.from(hashed()), createWriteStream(path, { mode: 0o600, flags: 'wx' }))
  }
  return hash.digest('hex')
}

async function textOf(entry: Entry): Promise<string> {
  const chunks: Uint8Array[] = []
  for await (const chunk of entry) chunks.push(chunk as Uint8Array)
  return Buffer.concat(chunks).toString('utf8')
}

const refuse = (detail: string): AppError => new AppError('backup_unusable', { doing: 'read the archive', detail })
