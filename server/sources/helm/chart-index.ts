// The index of a Helm repository: the versions of its charts with URLs and digests. An index is some tens of megabytes
// of YAML, nearly all of it descriptions: lines are read in pieces, and only the few needed fields are parsed. An index
// in another form than helm's is parsed whole, if it is small.
import { z } from 'zod'
import { parseYamlDocuments } from '../../../shared/adapters/yaml.ts'
import { canonicalJson } from '../../../shared/kube/canonical.ts'
import { AppError } from '../../../shared/runtime/error.ts'

export const INDEX_BYTES_MAX = 64 * 1024 * 1024
const VERSIONS_MAX = 100_000
/** Parsed at once, after which others get their turn. */
const SLICE_LENGTH = 64 * 1024
const LINES_AT_ONCE = 20_000
const WHOLE_LENGTH_MAX = 2 * 1024 * 1024
/** Read at once, and small values of it weigh many times their text. */
const JSON_LENGTH_MAX = 8 * 1024 * 1024
/** The limit of one entry: its version, URLs and digest. */
const ENTRY_LENGTH_MAX = 64 * 1024
const NAME_LENGTH_MAX = 250

export interface ChartVersion {
  version: string
  urls: readonly string[]
  /** The SHA-256 of the archive in hex. Null if the index has none. */
  digest: string | null
}
/** By name. */
export type ChartIndex = Readonly<Record<string, readonly ChartVersion[]>>

const versionSchema = z.object({
  version: z.string().min(1).max(256),
  urls: z.array(z.string().max(2048)).min(1).max(10),
  digest: z.string().max(200).nullish(),
})
export const indexSchema = z.record(
  z.string(),
  z.array(z.object({ version: z.string(), urls: z.array(z.string()), digest: z.string().nullable() })),
)

/**
 * The stored text, and the input of a revision's SHA-256: a new time in the index, or another description, is no
 * change.
 */
export const indexText = (index: ChartIndex): string => canonicalJson(index)

const refused = (detail: string): AppError => new AppError('source_refused', { detail: `the index is refused: ${detail}` })

/** `pause` lets others have their turn. */
export async function readIndex(text: string, pause: () => Promise<void>): Promise<ChartIndex> {
  const source = text.startsWith('\ufeff') ? text.slice(1) : text
  const builder = new IndexBuilder()
  if (source.trimStart().startsWith('{') && source.length > JSON_LENGTH_MAX)
    throw refused(`it is JSON of more than ${JSON_LENGTH_MAX / 1024 / 1024} MiB; YAML can be larger`)
  if (source.trimStart().startsWith('{')) return builder.addWhole(parseJson(source)).built()
  let slices = 0
  for (const slice of slicesOf(source)) {
    if (slice === 'paused') await pause()
    else if (slice === 'other') return new IndexBuilder().addWhole(parseWhole(source)).built()
    else {
      builder.add(slice.chart, parseSlice(slice.text))
      if (++slices % 4 === 0) await pause()
    }
  }
  return builder.built()
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw refused('it is not JSON')
  }
}

function parseWhole(text: string): unknown {
  if (text.length > WHOLE_LENGTH_MAX)
    throw refused(`it does not have the format of \`helm repo index\`, and is larger than ${WHOLE_LENGTH_MAX / 1024 / 1024} MiB`)
  const { documents, problems } = parseYamlDocuments(text, { file: 'index.yaml' })
  const [problem] = problems
  if (problem !== undefined) throw refused(`${problem.path}: ${problem.message}`)
  return documents[0]?.value ?? null
}

/** Entries that helm would skip are skipped: one broken version of one chart does not remove the others. */
function parseSlice(text: string): unknown[] {
  const { documents, problems } = parseYamlDocuments(text, { file: 'index.yaml' })
  if (problems.length > 0) {
    const entries = text.split(/^(?=- )/m)
    return entries.length > 1 ? entries.flatMap(parseSlice) : []
  }
  const value = documents[0]?.value
  return Array.isArray(value) ? value : []
}

class IndexBuilder {
  readonly #charts = new Map<string, Map<string, ChartVersion>>()
  #versions = 0

  add(chart: string, entries: readonly unknown[]): void {
    if (chart === '' || chart.length > NAME_LENGTH_MAX) return
    const versions = this.#charts.get(chart) ?? new Map<string, ChartVersion>()
    this.#charts.set(chart, versions)
    for (const entry of entries) {
      const parsed = versionSchema.safeParse(entry)
      if (!parsed.success || versions.has(parsed.data.version)) continue
      if (++this.#versions > VERSIONS_MAX) throw refused(`more than ${VERSIONS_MAX} versions of charts`)
      const { version, urls, digest } = parsed.data
      versions.set(version, { version, urls, digest: digest ? digest.replace(/^sha256:/, '').toLowerCase() : null })
    }
  }

  addWhole(value: unknown): this {
    const entries = z.object({ entries: z.record(z.string(), z.unknown()).nullish() }).safeParse(value)
    if (!entries.success || entries.data.entries === undefined) throw refused('it has no entries')
    for (const [chart, versions] of Object.entries(entries.data.entries ?? {})) if (Array.isArray(versions)) this.add(chart, versions)
    return this
  }

  /** In one order, whatever the index had. */
  built(): ChartIndex {
    const names = [...this.#charts.keys()].sort()
    return Object.fromEntries(
      names.map((name) => [name, [...(this.#charts.get(name)?.values() ?? [])].sort((a, b) => (a.version < b.version ? -1 : 1))]),
    )
  }
}

type Slice = { chart: string; text: string } | 'paused' | 'other'

const KEY = /^ *(?:"([^"\\]+)"|'([^']+)'|([^\s"'#&*!|>%@`[\]{},:-][^\s:]*)):(?: +(.*))?$/
const WANTED: readonly string[] = ['version', 'urls', 'digest']

/** `other`: it is not written as helm does, and no slice before it means anything. */
function* slicesOf(text: string): Generator<Slice> {
  const scanner = new Scanner()
  let count = 0
  for (let at = 0; at < text.length; ) {
    const newline = text.indexOf('\n', at)
    const end = newline < 0 ? text.length : newline
    const line = text.slice(at, end > at && text[end - 1] === '\r' ? end - 1 : end)
    at = end + 1
    if (++count % LINES_AT_ONCE === 0) yield 'paused'
    const found = scanner.read(line)
    if (found === 'other') return yield 'other'
    if (found !== null) yield found
  }
  const last = scanner.taken()
  if (last !== null) yield last
  if (!scanner.hasEntries) yield 'other'
}

/** Reads by indentation: `entries:`, names of charts below it, a list below each, and in its items the keys that are
 *  wanted. */
class Scanner {
  hasEntries = false
  #inEntries = false
  #chartIndent = -1
  #chart: string | null = null
  #itemIndent = -1
  #keyIndent = -1
  #wanted = false
  #lines: string[] = []
  #length = 0
  #entryLength = 0

  read(line: string): Slice | null {
    const indent = indentOf(line)
    if (indent === line.length || line[indent] === '#') return null
    if ((line[indent] === '\t' && indent <= this.#keyIndent) || line.startsWith('%') || line.startsWith('...')) return 'other'
    if (indent === 0 && !line.startsWith('- ')) return this.#topLevel(line)
    if (!this.#inEntries) return null
    if (this.#chartIndent < 0) this.#chartIndent = indent
    const isItem = line[indent] === '-' && (line[indent + 1] === ' ' || line.length === indent + 1)
    if (indent < this.#chartIndent) return 'other'
    if (indent === this.#chartIndent && !isItem) return this.#startChart(line)
    if (this.#chart === null) return 'other'
    if (this.#itemIndent < 0 && !isItem) return 'other'
    if (isItem && (this.#itemIndent < 0 || indent === this.#itemIndent)) return this.#startItem(line, indent)
    return indent > this.#itemIndent ? this.#insideItem(line, indent, isItem) : 'other'
  }

  /** The text that was collected since. */
  taken(): { chart: string; text: string } | null {
    if (this.#lines.length === 0 || this.#chart === null) return null
    const text = this.#lines.join('\n')
    this.#lines = []
    this.#length = 0
    return { chart: this.#chart, text }
  }

  #topLevel(line: string): Slice | null {
    if (line === '---') return this.hasEntries ? 'other' : null
    const [, quoted, single, plain, rest = ''] = KEY.exec(line) ?? []
    const key = quoted ?? single ?? plain
    if (key === undefined) return this.#inEntries ? 'other' : null
    const slice = this.taken()
    this.#inEntries = key === 'entries'
    this.#chart = null
    if (!this.#inEntries) return slice
    if (this.hasEntries || !['', '{}', 'null', '~'].includes(withoutComment(rest))) return 'other'
    this.hasEntries = true
    return slice
  }

  #startChart(line: string): Slice | null {
    const [, quoted, single, plain, rest = ''] = KEY.exec(line) ?? []
    const name = quoted ?? single ?? plain
    if (name === undefined || !['', '[]', 'null', '~'].includes(withoutComment(rest))) return 'other'
    const slice = this.taken()
    this.#chart = name
    this.#itemIndent = -1
    return slice
  }

  #startItem(line: string, indent: number): Slice | null {
    const slice = this.#length > SLICE_LENGTH ? this.taken() : null
    this.#itemIndent = indent
    this.#entryLength = 0
    const content = line.slice(indent + 1)
    this.#keyIndent = indent + 1 + indentOf(content)
    this.#lines.push('- {}')
    return content.trim() === '' ? 'other' : (this.#insideItem(' '.repeat(indent + 1) + content, this.#keyIndent, false) ?? slice)
  }

  #insideItem(line: string, indent: number, isItem: boolean): Slice | null {
    if (indent < this.#keyIndent) return 'other'
    if (indent === this.#keyIndent && !isItem) {
      const [, quoted, single, plain] = KEY.exec(line) ?? []
      const key = quoted ?? single ?? plain
      if (key === undefined) return 'other'
      this.#wanted = WANTED.includes(key)
    }
    if (!this.#wanted) return null
    const isFirst = this.#lines.at(-1) === '- {}'
    if (isFirst) this.#lines.pop()
    const kept = `${isFirst ? '- ' : '  '}${line.slice(this.#keyIndent)}`
    this.#lines.push(kept)
    this.#length += kept.length
    this.#entryLength += kept.length
    if (this.#entryLength > ENTRY_LENGTH_MAX)
      throw refused(`a version of ${this.#chart?.slice(0, NAME_LENGTH_MAX)} has more than ${ENTRY_LENGTH_MAX / 1024} KiB of URLs`)
    return null
  }
}

/** Not by a pattern: one that takes spaces before a mark looks again at each of a million spaces. */
function withoutComment(text: string): string {
  const mark = text.indexOf('#')
  return (mark < 0 ? text : text.slice(0, mark)).trimEnd()
}

function indentOf(line: string): number {
  let indent = 0
  while (line.charCodeAt(indent) === 32) indent++
  return indent
}
