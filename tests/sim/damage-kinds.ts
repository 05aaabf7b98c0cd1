// What disks, power losses and lying controllers leave of a SQLite file and its log. Pure: bytes in, bytes out, by a
// seed.
import type { Random } from '../../shared/runtime/random.ts'

export interface FileImage {
  main: Buffer
  /** The write-ahead log beside it; empty when there is none. */
  wal: Buffer
}

export interface Damaged extends FileImage {
  kind: DamageKind
  /** What was done, for a person who looks at a failed history. */
  what: string
}

export const DAMAGE_KINDS = [
  'bit flips',
  'bit flips in the log',
  'log cut',
  'log lost',
  'file cut',
  'page lost',
  'page of before',
  'pages swapped',
  'pages of zeros',
] as const
export type DamageKind = (typeof DAMAGE_KINDS)[number]

const PAGE = 4_096
const WAL_HEADER = 32
const WAL_FRAME = PAGE + 24

const below = (random: Random, bound: number): number => Math.floor(random() * bound)

/** `before`: an older image of the same file. Kinds that the image has nothing for become another one. */
export function damage(image: FileImage, before: FileImage, random: Random): Damaged {
  const possible = DAMAGE_KINDS.filter((kind) => image.wal.length > 0 || !kind.includes('log'))
  const kind = possible[below(random, possible.length)] ?? 'bit flips'
  const { main, wal } = { main: Buffer.from(image.main), wal: Buffer.from(image.wal) }
  const pages = Math.max(1, Math.floor(main.length / PAGE))
  const page = () => below(random, pages)
  const told = (what: string, changed: Partial<FileImage> = {}): Damaged => ({ kind, what, main, wal, ...changed })
  switch (kind) {
    case 'bit flips':
      return told(flipBits(main, random))
    case 'bit flips in the log':
      return told(flipBits(wal, random))
    case 'log cut': {
      const at = cutAt(wal.length, random)
      return told(`the log of ${wal.length} bytes ends at ${at}`, { wal: wal.subarray(0, at) })
    }
    case 'log lost':
      return told('no log', { wal: Buffer.alloc(0) })
    case 'file cut': {
      const at = random() < 0.5 ? page() * PAGE : below(random, main.length)
      return told(`the file of ${main.length} bytes ends at ${at}`, { main: main.subarray(0, at) })
    }
    case 'page lost': {
      const lost = page()
      return told(`page ${lost} is missing, what follows moves up`, {
        main: Buffer.concat([main.subarray(0, lost * PAGE), main.subarray((lost + 1) * PAGE)]),
      })
    }
    case 'page of before': {
      const older = page()
      before.main.subarray(older * PAGE, (older + 1) * PAGE).copy(main, older * PAGE)
      return told(`page ${older} is the one of before`)
    }
    case 'pages swapped': {
      const [a, b] = [page(), page()]
      const first = Buffer.from(main.subarray(a * PAGE, (a + 1) * PAGE))
      main.copy(main, a * PAGE, b * PAGE, (b + 1) * PAGE)
      first.copy(main, b * PAGE)
      return told(`pages ${a} and ${b} are swapped`)
    }
    case 'pages of zeros': {
      const zeros = Array.from({ length: 1 + below(random, 3) }, page)
      for (const index of zeros) main.fill(0, index * PAGE, (index + 1) * PAGE)
      return told(`pages ${zeros.join(', ')} are zeros`)
    }
  }
}

function flipBits(bytes: Buffer, random: Random): string {
  const places = Array.from({ length: 1 + below(random, random() < 0.5 ? 1 : 8) }, () => below(random, bytes.length * 8))
  for (const bit of places) bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7))
  return `bits ${places.join(', ')} are flipped`
}

/** At any byte, at the end of a frame, or within the first frames, where the first transactions are. */
function cutAt(length: number, random: Random): number {
  const frames = Math.floor((length - WAL_HEADER) / WAL_FRAME)
  const where = random()
  if (where < 0.4) return below(random, length)
  if (where < 0.7) return WAL_HEADER + below(random, frames + 1) * WAL_FRAME
  return below(random, Math.min(length, WAL_HEADER + 8 * WAL_FRAME))
}
