// The dependencies and rows of a render as lines. They are read in slices, so that a large render delays no other work.
// Rows have the form in which they are stored; neither an id nor canonical JSON holds a tab or a line feed.
import { createSetDigest } from '../../../shared/kube/canonical.ts'
import type { Pace } from '../../../shared/runtime/pace.ts'
import type { Dependency } from '../../render/inputs.ts'

const LINE_END = 0x0a
const LOOK_LENGTH_MAX = 20_000

export class BadLines extends Error {}

export const dependenciesToLines = (dependencies: readonly Dependency[]): Uint8Array =>
  Buffer.from(
    dependencies
      .map((dependency) => `${JSON.stringify('path' in dependency ? [dependency.source, dependency.path] : dependency)}\n`)
      .join(''),
  )

export async function dependenciesFromLines(lines: Uint8Array, pace: Pace): Promise<Dependency[]> {
  const dependencies: Dependency[] = []
  for (const line of eachLine(lines)) {
    if (line.length > LOOK_LENGTH_MAX) throw new BadLines('a dependency that is too long')
    dependencies.push(readTimesOf(JSON.parse(line)))
    const turn = pace()
    if (turn !== undefined) await turn
  }
  return dependencies
}

function readTimesOf(read: unknown): Dependency {
  if (!Array.isArray(read)) throw new BadLines('an invalid dependency')
  const [source, path] = read as unknown[]
  if (typeof source === 'number' && Number.isInteger(source) && typeof path === 'string' && read.length === 2) return { source, path }
  if (!read.every((name) => typeof name === 'string')) throw new BadLines('an invalid dependency')
  return read as string[]
}

/** `rows` are sorted by id. */
export function rowsToLines(rows: ReadonlyMap<string, string>): Uint8Array {
  const lines: string[] = []
  for (const [id, doc] of rows) {
    if (/[\t\n]/.test(id)) throw new BadLines('the name of an object has a tab or a line end')
    lines.push(`${id}\t${doc}\n`)
  }
  return Buffer.from(lines.join(''))
}

/** `isRow` says whether a row may belong to this render. Throws BadLines, also when the rows do not have the digest
 *  (RV1). */
export async function rowsFromLines(
  lines: Uint8Array,
  digest: string,
  pace: Pace,
  isRow: (id: string, doc: string) => boolean,
): Promise<Map<string, string>> {
  const rows = new Map<string, string>()
  const sum = createSetDigest()
  let last = ''
  for (const line of eachLine(lines)) {
    const tab = line.indexOf('\t')
    const [id, doc] = [line.slice(0, tab), line.slice(tab + 1)]
    if (tab <= 0 || id <= last || !isRow(id, doc)) throw new BadLines('a row of another service')
    last = id
    rows.set(id, doc)
    sum.add(id, doc)
    const turn = pace()
    if (turn !== undefined) await turn
  }
  if (sum.digest() !== digest) throw new BadLines('rows that differ from their digest')
  return rows
}

function* eachLine(bytes: Uint8Array): Generator<string> {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let from = 0; from < buffer.byteLength; ) {
    const end = buffer.indexOf(LINE_END, from)
    if (end < 0) throw new BadLines('an incomplete line')
    yield buffer.toString('utf8', from, end)
    from = end + 1
  }
}
