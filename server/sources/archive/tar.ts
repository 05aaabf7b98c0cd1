// A tar archive as files, read piece by piece and refused by name: nothing of an entry is kept before its header was
// found right and its size within the limits. Writes nothing; links are followed in links.ts.
import { AppError } from '../../../shared/runtime/error.ts'
import { SOURCE_FILE_BYTES_MAX, SOURCE_FILES_MAX, SOURCE_PATH_LENGTH_MAX, SOURCE_TREE_BYTES_MAX } from '../source.ts'

/** The target `to` of a link starts at its folder (symbolic) or at the archive's root (hard). */
export type TarEntry = { kind: 'file'; bytes: Uint8Array } | { kind: 'link'; to: string; from: 'folder' | 'root' } | { kind: 'folder' }

export const archiveRefused = (detail: string): AppError => new AppError('source_refused', { detail: `the archive is refused: ${detail}` })

const BLOCK = 512
/** The limit of long names and extended headers, which are read whole before they are understood. */
const EXTENSION_BYTES_MAX = 64 * 1024
const MIB = 1024 * 1024

/** By path, with forward slashes and without a leading `./`. */
export async function readTar(chunks: AsyncIterable<Uint8Array>): Promise<Map<string, TarEntry>> {
  const reader = new ByteReader(chunks)
  try {
    return await readEntries(reader)
  } finally {
    await reader.close()
  }
}

async function readEntries(reader: ByteReader): Promise<Map<string, TarEntry>> {
  const entries = new Map<string, TarEntry>()
  let [count, total] = [0, 0]
  let extended: Extended = {}
  for (;;) {
    const block = await reader.take(BLOCK)
    if (block === null && reader.hasRest()) throw archiveRefused('it is not a tar archive, or is damaged: it ends within a header')
    if (block === null || block.every((byte) => byte === 0)) return entries
    const header = readHeader(block)
    if (++count > SOURCE_FILES_MAX) throw archiveRefused(`more than ${SOURCE_FILES_MAX} entries`)
    const extension = EXTENSIONS[header.type]
    if (extension !== undefined) {
      if (header.size > EXTENSION_BYTES_MAX) throw archiveRefused(`${quote(header.name)}: an extended header of ${header.size} bytes`)
      extended = extension(extended, await body(reader, header.size, header.name))
      continue
    }
    const size = extended.size ?? header.size
    const path = checkedPath(extended.path ?? header.name)
    if (size > SOURCE_FILE_BYTES_MAX) throw archiveRefused(`${quote(path)} is larger than ${SOURCE_FILE_BYTES_MAX / MIB} MiB`)
    total += size
    if (total > SOURCE_TREE_BYTES_MAX)
      throw archiveRefused(`its files are larger than ${SOURCE_TREE_BYTES_MAX / MIB} MiB in total, at ${quote(path)}`)
    addEntry(entries, path, entryOf(header, path, extended.linkPath ?? header.linkName, await body(reader, size, path)))
    extended = {}
  }
}

interface Extended {
  path?: string
  linkPath?: string
  size?: number
}

/** Entries that describe the next entry. Global ones (`g`) hold comments only, as git archive writes them. */
const EXTENSIONS: Readonly<Record<string, (before: Extended, bytes: Uint8Array) => Extended>> = {
  x: (before, bytes) => ({ ...before, ...readPax(bytes) }),
  g: (before, bytes) => {
    if (Object.keys(readPax(bytes)).length > 0) throw archiveRefused('a global header with a name or size')
    return before
  },
  L: (before, bytes) => ({ ...before, path: text(withoutNulls(bytes)) }),
  K: (before, bytes) => ({ ...before, linkPath: text(withoutNulls(bytes)) }),
}

function entryOf({ type, name }: Header, path: string, link: string, bytes: Uint8Array): TarEntry {
  const kind = KINDS[type]
  if (kind === undefined)
    throw archiveRefused(
      `${quote(path)} is ${OTHERS[type] ?? `of the unknown type ${quote(type)}`}: only files, folders and links are supported`,
    )
  // Before there was a type for them, folders were files whose names end with a slash.
  if (kind === 'file' && !name.endsWith('/')) return { kind, bytes }
  if (bytes.byteLength > 0) throw archiveRefused(`${quote(path)} is not a file, but has content`)
  return kind !== 'link' ? { kind: 'folder' } : { kind: 'link', to: link, from: type === '1' ? 'root' : 'folder' }
}
const KINDS: Readonly<Record<string, TarEntry['kind']>> = {
  '0': 'file',
  '\0': 'file',
  '7': 'file',
  '5': 'folder',
  '1': 'link',
  '2': 'link',
}
const OTHERS: Readonly<Record<string, string>> = { '3': 'a device', '4': 'a device', '6': 'a pipe', S: 'a sparse file' }

function addEntry(entries: Map<string, TarEntry>, path: string, entry: TarEntry): void {
  const before = entries.get(path)
  if (path === '' || (before?.kind === 'folder' && entry.kind === 'folder')) {
    if (entry.kind !== 'folder') throw archiveRefused('an entry without a name')
    return
  }
  if (before !== undefined) throw archiveRefused(`${quote(path)} occurs twice`)
  entries.set(path, entry)
}

function checkedPath(name: string): string {
  if (name.length > SOURCE_PATH_LENGTH_MAX)
    throw archiveRefused(`a name is longer than ${SOURCE_PATH_LENGTH_MAX} characters: ${quote(name)}`)
  if (name.startsWith('/')) throw archiveRefused(`${quote(name)} is an absolute path`)
  if (name.includes('\\')) throw archiveRefused(`${quote(name)} has a backslash`)
  if ([...name].some((character) => character < ' ' || character === '\x7f')) throw archiveRefused(`${quote(name)} has a control character`)
  const segments = name.split('/').filter((segment) => segment !== '' && segment !== '.')
  if (segments.includes('..')) throw archiveRefused(`${quote(name)} leads outside the archive`)
  return segments.join('/')
}

interface Header {
  name: string
  size: number
  type: string
  linkName: string
}

function readHeader(block: Uint8Array): Header {
  const field = (from: number, length: number) => block.subarray(from, from + length)
  const sum = block.reduce((all, byte, at) => all + (at >= 148 && at < 156 ? 32 : byte), 0)
  if (octal(field(148, 8)) !== sum) throw archiveRefused('it is not a tar archive, or is damaged: wrong checksum of a header')
  const name = text(withoutNulls(field(0, 100)))
  const prefix = text(field(257, 5)) === 'ustar' && block[262] === 0 ? text(withoutNulls(field(345, 155))) : ''
  const size = octal(field(124, 12))
  if (size === null) throw archiveRefused(`${quote(name)}: its size is not a number`)
  return {
    name: prefix === '' ? name : `${prefix}/${name}`,
    size,
    type: String.fromCharCode(block[156] ?? 0),
    linkName: text(withoutNulls(field(157, 100))),
  }
}

/** Octal digits, or eight bytes of a binary number (GNU), of which none that is above the limits has to be understood.
 */
function octal(field: Uint8Array): number | null {
  if (((field[0] ?? 0) & 0x80) !== 0) {
    const rest = field.subarray(1).reduce((value, byte) => value * 256 + byte, (field[0] ?? 0) & 0x7f)
    return Number.isSafeInteger(rest) ? rest : null
  }
  const digits = String.fromCharCode(...field).replace(/^ +|[ \0]+$/g, '')
  return digits === '' ? 0 : /^[0-7]+$/.test(digits) ? Number.parseInt(digits, 8) : null
}

/** `LENGTH KEY=VALUE\n`, again and again; the length counts itself. */
function readPax(bytes: Uint8Array): Extended {
  const found: Extended = {}
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(32, at)
    const length = space < 0 ? Number.NaN : Number(text(bytes.subarray(at, Math.min(space, at + 8))))
    const record =
      Number.isInteger(length) && length > space - at + 1 && at + length <= bytes.length ? text(bytes.subarray(space + 1, at + length)) : ''
    const [, key, value = ''] = /^([^=]+)=([\s\S]*)\n$/.exec(record) ?? []
    if (key === undefined) throw archiveRefused('an extended header is damaged')
    if (key.startsWith('GNU.sparse')) throw archiveRefused('a sparse file: only files, folders and links are supported')
    if (key === 'path') found.path = value
    if (key === 'linkpath') found.linkPath = value
    if (key === 'size') found.size = /^\d{1,15}$/.test(value) ? Number(value) : Number.MAX_SAFE_INTEGER
    at += length
  }
  return found
}

async function body(reader: ByteReader, size: number, name: string): Promise<Uint8Array> {
  const padded = await reader.take(Math.ceil(size / BLOCK) * BLOCK)
  if (padded === null) throw archiveRefused(`it ends within ${quote(name)}`)
  // Own memory: what stays of a small file shall not hold on to a large piece of the archive.
  return padded.slice(0, size)
}

const withoutNulls = (bytes: Uint8Array): Uint8Array => {
  const end = bytes.indexOf(0)
  return end < 0 ? bytes : bytes.subarray(0, end)
}
const utf8 = new TextDecoder('utf-8', { fatal: true })
function text(bytes: Uint8Array): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw archiveRefused('a name that is not UTF-8')
  }
}
/** Names come from others: for a message they are cut, and have no control characters. */
export const quote = (name: string): string => JSON.stringify(name.length > 200 ? `${name.slice(0, 200)}…` : name)

/** Pieces of any length in, pieces of the length that is asked for out. Holds no more than that and one piece. */
class ByteReader {
  readonly #chunks: AsyncIterator<Uint8Array>
  #rest: Uint8Array = new Uint8Array()

  constructor(chunks: AsyncIterable<Uint8Array>) {
    this.#chunks = chunks[Symbol.asyncIterator]()
  }

  /** Null if it ended before that. */
  async take(length: number): Promise<Uint8Array | null> {
    if (this.#rest.byteLength >= length) return this.#split(length)
    const pieces = [this.#rest]
    let held = this.#rest.byteLength
    while (held < length) {
      const next = await this.#chunks.next()
      if (next.done) {
        this.#rest = new Uint8Array(Buffer.concat(pieces))
        return null
      }
      pieces.push(next.value)
      held += next.value.byteLength
    }
    this.#rest = new Uint8Array(Buffer.concat(pieces))
    return this.#split(length)
  }

  hasRest(): boolean {
    return this.#rest.byteLength > 0
  }

  async close(): Promise<void> {
    await this.#chunks.return?.()
  }

  #split(length: number): Uint8Array {
    const taken = this.#rest.subarray(0, length)
    this.#rest = this.#rest.subarray(length)
    return taken
  }
}
