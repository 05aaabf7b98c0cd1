// The memory that a pack of an untrusted server would need, counted before the library reads it: a megabyte of it can
// stand for gigabytes.
import { inflateSync } from 'node:zlib'
import { AppError } from '../../../shared/runtime/error.ts'
import { GitTooLarge } from './limits.ts'

/** Limit for one object: as packed, and as the result of a delta. */
export const PACK_OBJECT_BYTES_MAX = 128 * 1024 * 1024
const DELTA_BYTES_MAX = 16 * 1024 * 1024
/** The limit of all objects, as they are packed. */
const PACK_INFLATED_BYTES_MAX = 4 * 1024 * 1024 * 1024
/** The limit of all results of deltas: they take time, not memory. */
const PACK_MADE_BYTES_MAX = 32 * 1024 * 1024 * 1024
const PAUSE_AFTER_BYTES = 16 * 1024 * 1024

const HEAD_BYTES = 12
const OFS_DELTA = 6
const REF_DELTA = 7
const ID_BYTES = 20

/** The bases of deltas by id, and the end of the last object. */
export interface PackParts {
  bases: ReadonlySet<string>
  end: number
}

/** Throws `git_failed` for what must not be unpacked here. `pause` lets others have their turn. */
export async function checkPack(pack: Buffer, pause: () => Promise<void>): Promise<PackParts> {
  const bases = new Set<string>()
  const count = pack.byteLength < HEAD_BYTES ? 0 : pack.readUInt32BE(8)
  let [inflated, made, unpaused, at] = [0, 0, 0, HEAD_BYTES]
  for (let index = 0; index < count; index++) {
    const { type, dataAt } = readHead(pack, at)
    const { bytes, end } = inflateAt(pack, dataAt, isDelta(type) ? DELTA_BYTES_MAX : PACK_OBJECT_BYTES_MAX)
    if (type === REF_DELTA) bases.add(pack.toString('hex', dataAt - ID_BYTES, dataAt))
    at = end
    inflated += bytes.byteLength
    if (inflated > PACK_INFLATED_BYTES_MAX) throw tooLarge('has more than 4 GiB of files and folders')
    if (isDelta(type)) {
      const target = targetBytes(bytes)
      if (target > PACK_OBJECT_BYTES_MAX) throw objectTooLarge()
      made += target
      if (made > PACK_MADE_BYTES_MAX) throw tooLarge('has more than 32 GiB of files and folders in its history')
    }
    unpaused += bytes.byteLength + 1_024
    if (unpaused < PAUSE_AFTER_BYTES) continue
    unpaused = 0
    await pause()
  }
  return { bases, end: at }
}

const isDelta = (type: number): boolean => type === OFS_DELTA || type === REF_DELTA

function readHead(pack: Buffer, start: number): { type: number; dataAt: number } {
  let at = start
  const byte = (): number => pack[at++] ?? 0
  const first = byte()
  for (let last = first; (last & 0x80) !== 0; ) last = byte()
  const type = (first >> 4) & 7
  if (type === REF_DELTA) at += ID_BYTES
  if (type === OFS_DELTA) while ((byte() & 0x80) !== 0);
  return { type, dataAt: at }
}

function inflateAt(pack: Buffer, at: number, bytesMax: number): { bytes: Buffer; end: number } {
  try {
    const { buffer, engine } = inflateSync(pack.subarray(at), { info: true, maxOutputLength: bytesMax }) as unknown as Inflated
    return { bytes: buffer, end: at + engine.bytesWritten }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ERR_BUFFER_TOO_LARGE') throw objectTooLarge()
    throw new AppError('git_failed', { detail: 'the Git server sent a damaged pack' })
  }
}
/** zlib's result with `info`; its types do not have it. */
interface Inflated {
  buffer: Buffer
  engine: { bytesWritten: number }
}

/** The second of two numbers, seven bits a byte. */
function targetBytes(delta: Buffer): number {
  let at = 0
  const number = (): number => {
    let value = 0
    for (let factor = 1; at < delta.length; factor *= 128) {
      const byte = delta[at++] ?? 0
      value += (byte & 0x7f) * factor
      if ((byte & 0x80) === 0) break
    }
    return value
  }
  number()
  return number()
}

const tooLarge = (what: string): AppError => new GitTooLarge(`the repository ${what}`)
const objectTooLarge = (): AppError => tooLarge(`has a file of more than ${PACK_OBJECT_BYTES_MAX / 1024 / 1024} MiB`)
