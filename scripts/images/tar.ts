// A tar archive whose bytes follow from its entries alone: one time, two owners, no names of users.
import { closeSync, openSync, readFileSync, writeSync } from 'node:fs'

const BLOCK = 512

export interface TarEntry {
  /** Without a leading slash; a folder ends with one. */
  name: string
  mode: number
  owner: number
  /** File, symbolic link, folder. */
  type: '0' | '2' | '5'
  link: string
  /** Bytes, or the path of a file that is read when it is written. */
  bytes: Uint8Array | { path: string; size: number }
}

export const folderEntry = (name: string, owner = 0, mode = 0o755): TarEntry => ({
  ...{ name: name.endsWith('/') ? name : `${name}/`, mode, owner, type: '5', link: '', bytes: new Uint8Array() },
})
export const fileEntry = (name: string, bytes: TarEntry['bytes'], mode = 0o644): TarEntry => ({
  ...{ name, mode, owner: 0, type: '0', link: '', bytes },
})

const sizeOf = ({ bytes }: TarEntry): number => ('path' in bytes ? bytes.size : bytes.byteLength)
const padding = (size: number): Uint8Array => new Uint8Array((BLOCK - (size % BLOCK)) % BLOCK)
const END = new Uint8Array(2 * BLOCK)

function header(entry: TarEntry, seconds: number): Uint8Array {
  const { name, mode, owner, type, link } = entry
  if (name.length > 100 || link.length > 100) throw new Error(`${name}: longer than a ustar header takes`)
  const block = new Uint8Array(BLOCK)
  const encoder = new TextEncoder()
  const put = (text: string, at: number) => block.set(encoder.encode(text), at)
  const octal = (value: number, digits: number) => `${value.toString(8).padStart(digits, '0')}\0`
  put(name, 0)
  put(octal(mode, 7), 100)
  put(octal(owner, 7), 108)
  put(octal(owner, 7), 116)
  put(octal(sizeOf(entry), 11), 124)
  put(octal(seconds, 11), 136)
  put('        ', 148)
  put(type, 156)
  put(link, 157)
  put('ustar\x0000', 257)
  const sum = block.reduce((total, byte) => total + byte, 0)
  put(octal(sum, 6), 148)
  put(' ', 155)
  return block
}

const bytesOf = ({ bytes }: TarEntry): Uint8Array => ('path' in bytes ? readFileSync(bytes.path) : bytes)

export function tarOf(entries: readonly TarEntry[], seconds: number): Uint8Array<ArrayBuffer> {
  const parts = entries.flatMap((entry) => [header(entry, seconds), bytesOf(entry), padding(sizeOf(entry))])
  return new Uint8Array(Buffer.concat([...parts, END]))
}

/** As `tarOf`, with one entry in memory at a time. */
export function writeTar(path: string, entries: readonly TarEntry[], seconds: number): void {
  const fd = openSync(path, 'w')
  try {
    for (const entry of entries) for (const part of [header(entry, seconds), bytesOf(entry), padding(sizeOf(entry))]) writeAll(fd, part)
    writeAll(fd, END)
  } finally {
    closeSync(fd)
  }
}

function writeAll(fd: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.byteLength; ) at += writeSync(fd, bytes, at)
}

/** By libdeflate, in less time smaller than zlib; it writes no time and no name. */
export const compressed = (tar: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> => Bun.gzipSync(tar, { level: 9, library: 'libdeflate' })
