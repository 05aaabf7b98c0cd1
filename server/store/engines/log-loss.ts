// Reads the write-ahead log of a SQLite file before SQLite does. SQLite ends a log at the first invalid frame, and
// silently drops every commit after it. After a power failure that is at most one commit, which was never acknowledged;
// more of them mean that the disk lost commits.
import { closeSync, fstatSync, openSync, readSync } from 'node:fs'

export interface LogLoss {
  /** First byte that does not check out. */
  at: number
  /** Commits after that byte. */
  commits: number
}

const HEADER_BYTES = 32
const FRAME_HEADER_BYTES = 24
const MAGIC_LITTLE_ENDIAN = 0x377f0682
const PAGE_BYTES_DEFAULT = 4_096
const PAGE_SIZES = new Set([512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536])

/** Null means that SQLite drops no commit, or that there is no log. No process may write the log meanwhile. */
export function findLogLoss(walPath: string): LogLoss | null {
  let fd: number
  try {
    fd = openSync(walPath, 'r')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null
    throw error
  }
  try {
    return logLoss(fstatSync(fd).size, (into, at) => void readSync(fd, into, 0, into.length, at))
  } finally {
    closeSync(fd)
  }
}

/** Fills the buffer. */
type Read = (into: Buffer, at: number) => void

function logLoss(size: number, read: Read): LogLoss | null {
  if (size <= HEADER_BYTES + FRAME_HEADER_BYTES) return null
  const header = Buffer.alloc(HEADER_BYTES)
  read(header, 0)
  const sum = new Checksum(header.readUInt32BE(0) === MAGIC_LITTLE_ENDIAN)
  sum.add(header, 0, 24)
  const isWhole = sum.is(header.readUInt32BE(24), header.readUInt32BE(28))
  const pageBytes = header.readUInt32BE(8)
  const frameBytes = FRAME_HEADER_BYTES + (isWhole && PAGE_SIZES.has(pageBytes) ? pageBytes : PAGE_BYTES_DEFAULT)
  const head = Buffer.alloc(FRAME_HEADER_BYTES)
  read(head, HEADER_BYTES)
  const salts = Buffer.from(isWhole ? header.subarray(16, 24) : head.subarray(8, 16))

  let at = HEADER_BYTES
  const frame = Buffer.alloc(frameBytes)
  for (; isWhole && at + frameBytes <= size; at += frameBytes) {
    read(frame, at)
    sum.add(frame, 0, 8)
    sum.add(frame, FRAME_HEADER_BYTES, frameBytes)
    if (!frame.subarray(8, 16).equals(salts) || !sum.is(frame.readUInt32BE(16), frame.readUInt32BE(20))) break
  }
  let commits = 0
  for (let next = at; next + frameBytes <= size; next += frameBytes) {
    read(head, next)
    // Frames of an earlier use of the file have other salts.
    if (head.subarray(8, 16).equals(salts) && head.readUInt32BE(4) !== 0) commits += 1
  }
  return commits > 1 ? { at: isWhole ? at : 0, commits } : null
}

/** SQLite's running checksum over the log. */
class Checksum {
  readonly #isLittle: boolean
  #first = 0
  #second = 0

  constructor(isLittle: boolean) {
    this.#isLittle = isLittle
  }

  /** `from` and `to` are multiples of 8. */
  add(bytes: Buffer, from: number, to: number): void {
    const words = new DataView(bytes.buffer, bytes.byteOffset + from, to - from)
    const isLittle = this.#isLittle
    let [first, second] = [this.#first, this.#second]
    for (let at = 0; at < words.byteLength; at += 8) {
      first = (first + words.getUint32(at, isLittle) + second) >>> 0
      second = (second + words.getUint32(at + 4, isLittle) + first) >>> 0
    }
    this.#first = first
    this.#second = second
  }

  is(first: number, second: number): boolean {
    return this.#first === first && this.#second === second
  }
}
