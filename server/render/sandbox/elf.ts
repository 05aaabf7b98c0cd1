// Finds the files that a program needs in an empty root: its loader and its libraries, read from its own file, since
// `ldd` would run it.
import { closeSync, existsSync, openSync, readSync, realpathSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

export interface ElfNeeds {
  /** Null if it is linked statically. */
  loader: string | null
  libraries: string[]
  /** Where it looks first. */
  runPath: string[]
}

/** The default folders of loaders: Debian's, Fedora's, Alpine's. */
const LIBRARY_FOLDERS = [
  '/lib/x86_64-linux-gnu',
  '/usr/lib/x86_64-linux-gnu',
  '/lib/aarch64-linux-gnu',
  '/usr/lib/aarch64-linux-gnu',
].concat(['/lib64', '/usr/lib64', '/lib', '/usr/lib'])
const LIBRARIES_MAX = 100

/** Files that must be where they are, links with them: the loader and each library by the path under which it is looked
 *  for. Throws for one that is missing. */
export function librariesOf(program: string): string[] {
  const found = new Map<string, string>()
  const queue = [program]
  let loader: string | null = null
  for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
    const needs = readFileNeeds(file)
    if (needs === null) continue
    loader ??= needs.loader
    const origin = dirname(realpathSync(file))
    const folders = [...needs.runPath.map((path) => path.replace(/\$ORIGIN|\$\{ORIGIN\}/g, origin)), ...LIBRARY_FOLDERS]
    for (const name of needs.libraries) {
      if (found.has(name) || name === basename(loader ?? '')) continue
      const path = folders.map((folder) => join(folder, name)).find((candidate) => existsSync(candidate))
      if (path === undefined) throw new Error(`${program} needs ${name}, which is in none of ${folders.join(', ')}`)
      found.set(name, path)
      if (found.size > LIBRARIES_MAX) throw new Error(`${program} needs more than ${LIBRARIES_MAX} libraries`)
      queue.push(path)
    }
  }
  return [...new Set([...(loader === null ? [] : [loader]), ...found.values()])]
}

function readFileNeeds(file: string): ElfNeeds | null {
  const handle = openSync(file, 'r')
  try {
    return elfNeeds((offset, length) => {
      const bytes = Buffer.alloc(length)
      return bytes.subarray(0, readSync(handle, bytes, 0, length, offset))
    })
  } finally {
    closeSync(handle)
  }
}

const PT_LOAD = 1
const PT_DYNAMIC = 2
const PT_INTERP = 3
const DT_NEEDED = 1
const DT_STRTAB = 5
const DT_STRSZ = 10
const DT_RPATH = 15
const DT_RUNPATH = 29
const TABLE_BYTES_MAX = 16 * 1024 * 1024

interface Segment {
  type: number
  offset: number
  address: number
  size: number
}

/** Null if it is not a 64-bit little-endian ELF file, for example a script. */
export function elfNeeds(read: (offset: number, length: number) => Buffer): ElfNeeds | null {
  const head = read(0, 64)
  if (head.length < 64 || head.readUInt32BE(0) !== 0x7f454c46 || head[4] !== 2 || head[5] !== 1) return null
  const segments = readSegments(read, head)
  const interp = segments.find(({ type }) => type === PT_INTERP)
  const dynamic = segments.find(({ type }) => type === PT_DYNAMIC)
  const loader = interp === undefined ? null : textAt(read(interp.offset, Math.min(interp.size, 4_096)), 0)
  if (dynamic === undefined) return { loader, libraries: [], runPath: [] }
  const entries = readDynamic(read(dynamic.offset, Math.min(dynamic.size, TABLE_BYTES_MAX)))
  const one = (tag: number) => entries.find((entry) => entry.tag === tag)?.value
  const table = one(DT_STRTAB)
  const home = segments.find(
    ({ type, address, size }) => type === PT_LOAD && table !== undefined && table >= address && table < address + size,
  )
  if (table === undefined || home === undefined) return { loader, libraries: [], runPath: [] }
  const texts = read(home.offset + table - home.address, Math.min(one(DT_STRSZ) ?? 0, TABLE_BYTES_MAX))
  const runPath = one(DT_RUNPATH) ?? one(DT_RPATH)
  return {
    loader,
    libraries: entries.filter(({ tag }) => tag === DT_NEEDED).map(({ value }) => textAt(texts, value)),
    runPath: runPath === undefined ? [] : textAt(texts, runPath).split(':').filter(Boolean),
  }
}

function readSegments(read: (offset: number, length: number) => Buffer, head: Buffer): Segment[] {
  const at = Number(head.readBigUInt64LE(32))
  const size = head.readUInt16LE(54)
  const count = head.readUInt16LE(56)
  const table = read(at, size * count)
  const segments: Segment[] = []
  for (let entry = 0; size >= 56 && entry + size <= table.length; entry += size)
    segments.push({
      type: table.readUInt32LE(entry),
      offset: Number(table.readBigUInt64LE(entry + 8)),
      address: Number(table.readBigUInt64LE(entry + 16)),
      size: Number(table.readBigUInt64LE(entry + 32)),
    })
  return segments
}

function readDynamic(table: Buffer): Array<{ tag: number; value: number }> {
  const entries: Array<{ tag: number; value: number }> = []
  for (let at = 0; at + 16 <= table.length; at += 16) {
    const tag = Number(table.readBigUInt64LE(at))
    if (tag === 0) break
    entries.push({ tag, value: Number(table.readBigUInt64LE(at + 8)) })
  }
  return entries
}

function textAt(bytes: Buffer, at: number): string {
  const end = bytes.indexOf(0, at)
  return bytes.toString('utf8', at, end < 0 ? bytes.length : end)
}
