// Archives of a release, whose bytes follow from their files alone: .tar.gz, and .zip for Windows.
import { writeFileSync } from 'node:fs'
import { crc32, deflateRawSync } from 'node:zlib'
import { compressed, type TarEntry, tarOf } from '../images/tar.ts'

export const sorted = (entries: readonly TarEntry[]): TarEntry[] => entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))

export function writeTarGz(path: string, entries: readonly TarEntry[], seconds: number): void {
  writeFileSync(path, compressed(tarOf(sorted(entries), seconds)))
}

/** Bytes of little-endian fields, each with its width. */
function fields(...parts: Array<[value: number, width: 2 | 4]>): Buffer {
  const out = Buffer.alloc(parts.reduce((sum, [, width]) => sum + width, 0))
  let at = 0
  for (const [value, width] of parts) {
    out.writeUIntLE(value, at, width)
    at += width
  }
  return out
}

const [LOCAL, CENTRAL, END] = [0x04034b50, 0x02014b50, 0x06054b50]
const [VERSION, UTF8, DEFLATE, UNIX] = [20, 0x0800, 8, 3 << 8]

/** The format counts years from 1980, in steps of two seconds. */
function dosTime(seconds: number): [time: number, date: number] {
  const at = new Date(Math.max(seconds, 315_532_800) * 1000)
  return [
    (at.getUTCHours() << 11) | (at.getUTCMinutes() << 5) | (at.getUTCSeconds() >> 1),
    ((at.getUTCFullYear() - 1980) << 9) | ((at.getUTCMonth() + 1) << 5) | at.getUTCDate(),
  ]
}

/** Files only, each below 4 GiB. */
export function writeZip(path: string, entries: readonly TarEntry[], seconds: number): void {
  const [time, date] = dosTime(seconds)
  const [files, index]: [Buffer[], Buffer[]] = [[], []]
  let at = 0
  for (const { name, mode, bytes } of sorted(entries)) {
    const content = 'path' in bytes ? new Uint8Array() : bytes
    const packed = deflateRawSync(content, { level: 9 })
    const label = Buffer.from(name)
    const common = fields(
      [UTF8, 2],
      [DEFLATE, 2],
      [time, 2],
      [date, 2],
      [crc32(content), 4],
      [packed.byteLength, 4],
      [content.byteLength, 4],
    )
    const lengths = fields([label.byteLength, 2], [0, 2])
    const local = Buffer.concat([fields([LOCAL, 4], [VERSION, 2]), common, lengths, label, packed])
    index.push(
      Buffer.concat([
        ...[fields([CENTRAL, 4], [VERSION | UNIX, 2], [VERSION, 2]), common, lengths],
        ...[fields([0, 2], [0, 2], [0, 2]), fields([((0o100000 | mode) << 16) >>> 0, 4], [at, 4]), label],
      ]),
    )
    files.push(local)
    at += local.byteLength
  }
  const directory = Buffer.concat(index)
  const count: [number, 2] = [index.length, 2]
  const end = fields([END, 4], [0, 2], [0, 2], count, count, [directory.byteLength, 4], [at, 4], [0, 2])
  writeFileSync(path, Buffer.concat([...files, directory, end]))
}
