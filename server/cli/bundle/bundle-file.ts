// Reads an air-gap bundle, a tar archive or the folder of a release, without trusting it: plain files with plain names,
// each read in pieces.
import { createHash } from 'node:crypto'
import { closeSync, existsSync, fstatSync, openSync, readdirSync, readSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { AppError } from '../../../shared/runtime/error.ts'

export interface BundleFile {
  name: string
  size: number
  sha256(): string
  /** The whole content. Throws if it is larger. */
  text(bytesMax: number): string
}

const BLOCK = 512
const CHUNK = 1_048_576
/** A release has fewer than a hundred. */
const FILES_MAX = 1_000
const NAME = /^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$/

const unusable = (place: string, detail: string): AppError =>
  new AppError('bad_request', { doing: `read ${place}`, detail, remedy: 'Download the bundle again, or name another file.' })

export function readBundle<T>(path: string, use: (files: readonly BundleFile[]) => T): T {
  if (!existsSync(path)) throw unusable(path, 'the file does not exist')
  if (statSync(path).isDirectory()) return use(filesOfFolder(path))
  const fd = openSync(path, 'r')
  try {
    return use(filesOfTar(fd, path))
  } finally {
    closeSync(fd)
  }
}

function filesOfFolder(folder: string): BundleFile[] {
  return readdirSync(folder)
    .sort()
    .map((name) => {
      const path = join(folder, name)
      const withFd = <T>(use: (fd: number) => T): T => {
        const fd = openSync(path, 'r')
        try {
          return use(fd)
        } finally {
          closeSync(fd)
        }
      }
      const { size } = statSync(path)
      return {
        name,
        size,
        sha256: () => withFd((fd) => hashOf(fd, 0, size)),
        text: (most) => withFd((fd) => textOf(fd, 0, size, most, name)),
      }
    })
}

function filesOfTar(fd: number, path: string): BundleFile[] {
  const files = new Map<string, BundleFile>()
  const end = fstatSync(fd).size
  for (let at = 0; ; ) {
    if (at + BLOCK > end) throw unusable(path, 'it is no tar archive, or it is cut off')
    const head = bytesAt(fd, at, BLOCK)
    if (head.every((byte) => byte === 0)) return [...files.values()]
    const { name, size } = readHeader(head, path)
    const from = at + BLOCK
    if (from + size > end) throw unusable(path, `${name} is cut off`)
    if (files.has(name)) throw unusable(path, `${name} is in it twice`)
    if (files.size === FILES_MAX) throw unusable(path, `it has more than ${FILES_MAX} files`)
    files.set(name, { name, size, sha256: () => hashOf(fd, from, size), text: (most) => textOf(fd, from, size, most, name) })
    at = from + Math.ceil(size / BLOCK) * BLOCK
  }
}

function readHeader(head: Buffer, path: string): { name: string; size: number } {
  const field = (at: number, length: number) => head.toString('latin1', at, at + length).replace(/\0.*$/s, '')
  const sum = head.reduce((total, byte, at) => total + (at >= 148 && at < 156 ? 32 : byte), 0)
  if (Number.parseInt(field(148, 8), 8) !== sum) throw unusable(path, 'it is no tar archive, or it is damaged')
  const [name, size] = [field(0, 100), Number.parseInt(field(124, 12), 8)]
  if (head.toString('latin1', 156, 157) !== '0' || field(345, 155) !== '' || !NAME.test(name) || !Number.isSafeInteger(size))
    throw unusable(path, `it has an entry that is no plain file: ${JSON.stringify(name)}`)
  return { name, size }
}

function bytesAt(fd: number, at: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  const read = readSync(fd, bytes, 0, length, at)
  return bytes.subarray(0, read)
}

function hashOf(fd: number, from: number, size: number): string {
  const hash = createHash('sha256')
  for (let at = 0; at < size; at += CHUNK) hash.update(bytesAt(fd, from + at, Math.min(CHUNK, size - at)))
  return hash.digest('hex')
}

function textOf(fd: number, from: number, size: number, most: number, name: string): string {
  if (size > most) throw unusable(name, `it has ${size} bytes, at most ${most} are expected`)
  return bytesAt(fd, from, size).toString('utf8')
}
