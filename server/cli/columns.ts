// Columns that awk can cut: no cell is empty, only the last may hold spaces, widths count what a terminal shows. What
// agents and repositories wrote cannot steer the terminal: control characters are shown, not sent.
import { commitText, type WrittenBy } from '../../shared/model/commits.ts'
import { cutText } from '../../shared/runtime/cut-text.ts'

export interface Column<T> {
  title: string
  value(item: T): string | number | null
  /** Only with -o wide. */
  wide?: boolean
  /** Words whose colour says how bad they are. */
  colour?: boolean
}

/** The same columns with their messages cut to what a line bears. */
export const withShortMessages = <T>(columns: readonly Column<T>[]): Column<T>[] =>
  columns.map((column) =>
    column.title === MESSAGE ? { ...column, value: (item: T) => cutText(plainText(String(column.value(item) ?? ''))) } : column,
  )

export const messagesOf = <T>(columns: readonly Column<T>[], items: readonly T[]): string[] =>
  columns.flatMap((column) => (column.title === MESSAGE ? items.map((item) => plainText(String(column.value(item) ?? ''))) : []))

const MESSAGE = 'MESSAGE'

const EMPTY = '-'
const GAP = '   '
/** CL22: what `-o wide` fits where names leave room for it. */
export const WIDE_COLUMNS = 160
const WIDE_GAP = '  '
const CUT_LEAST = 8
const MESSAGE_LEAST = 12

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const CONTROL = /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g
/** One line, harmless to a terminal. */
export const plainText = (text: string): string =>
  text.replace(/\s*\n\s*/g, ' ').replace(CONTROL, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, '0')}`)

export interface TableStyle {
  /** Widths of an earlier print of the table: read and widened. */
  widths?: number[]
  wide: boolean
  /** Columns of the terminal that a line has at most: what only `-o wide` shows is cut to that. Absent means that
   *  nothing is cut. */
  fit?: number
  headers: boolean
  colours: boolean
}

export function renderTable<T>(columns: readonly Column<T>[], items: readonly T[], style: TableStyle): string {
  const shown = columns.filter((column) => style.wide || column.wide !== true)
  const last = shown.length - 1
  const whole = items.map((item) => shown.map((column, i) => cell(column.value(item), i === last)))
  const titles = style.headers ? [shown.map((column) => column.title)] : []
  const needed = shown.map((_, i) =>
    Math.max(style.widths?.[i] ?? 0, ...[...titles, ...whole].map((line) => Bun.stringWidth(line[i] ?? ''))),
  )
  const isTooWide = style.fit !== undefined && sumOf(needed) + GAP.length * last > style.fit
  const gap = isTooWide ? WIDE_GAP : GAP
  const widths = isTooWide ? fitted(shown, needed, (style.fit ?? 0) - gap.length * last) : needed
  const isCut = (i: number) => (widths[i] ?? 0) < (needed[i] ?? 0)
  const rows = whole.map((line) => line.map((text, i) => (isCut(i) ? cutText(text, widths[i]) : text)))
  const lines = [...titles, ...rows]
  style.widths?.splice(0, widths.length, ...widths)
  const isTitle = (line: string[]) => style.headers && line === lines[0]
  return lines
    .map((line) => {
      const cells = line.map((text, i) => {
        const padding = i === last ? '' : ' '.repeat((widths[i] ?? 0) - Bun.stringWidth(text))
        return (style.colours && shown[i]?.colour === true && !isTitle(line) ? coloured(text) : text) + padding
      })
      return `${cells.join(gap).trimEnd()}\n`
    })
    .join('')
}

const sumOf = (widths: readonly number[]): number => widths.reduce((sum, width) => sum + width, 0)

/** The widest column that may be cut gives way first. Names, states and reasons are never cut. */
function fitted<T>(columns: readonly Column<T>[], needed: readonly number[], max: number): number[] {
  const widths = [...needed]
  const least = columns.map(({ wide, title }, i) =>
    wide === true ? Math.max(title.length, title === MESSAGE ? MESSAGE_LEAST : CUT_LEAST) : (needed[i] ?? 0),
  )
  const room = (i: number) => (widths[i] ?? 0) > (least[i] ?? 0)
  for (let excess = sumOf(widths) - max; excess > 0; excess -= 1) {
    const widest = widths.reduce((best, width, i) => (room(i) && (best < 0 || width > (widths[best] ?? 0)) ? i : best), -1)
    if (widest < 0) break
    widths[widest] = (widths[widest] ?? 0) - 1
  }
  return widths
}

function cell(value: string | number | null, last: boolean): string {
  const text = plainText(String(value ?? '')).trim()
  if (text === '') return EMPTY
  return last ? text : text.replace(/\s+/g, '_')
}

const GOOD = new Set(['Synced', 'Healthy', 'Online', 'True', 'usable'])
const BAD = new Set(['OutOfSync', 'Degraded', 'Missing', 'Revoked', 'False', 'Warning'])
const [GREEN, RED, YELLOW, RESET] = ['\u001b[32m', '\u001b[31m', '\u001b[33m', '\u001b[0m']
const coloured = (word: string): string =>
  word === EMPTY ? word : `${GOOD.has(word) ? GREEN : BAD.has(word) ? RED : YELLOW}${word}${RESET}`

/** `1 object`, `2 objects`. */
export const countText = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

const UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
] as const
/** `3d`, `5h`, `12m`, `40s`: the largest unit of which there are two, so that 90 minutes are `90m`. */
export function ageText(sinceMs: number | null, nowMs: number): string {
  if (sinceMs === null) return EMPTY
  const ms = Math.max(0, nowMs - sinceMs)
  const [unit, size] = UNITS.find(([, size]) => ms >= 2 * size) ?? ['s', 1_000]
  return `${Math.floor(ms / size)}${unit}`
}

/** `4be19d0…: fix the port (Ana)`. */
export function withAuthor(commit: string, by: WrittenBy): string {
  const text = commitText(by)
  return text === null ? commit : `${commit}: ${plainText(text)}`
}

export const labelsText = (labels: Record<string, string>): string =>
  Object.keys(labels)
    .sort()
    .map((key) => `${key}=${labels[key]}`)
    .join(',')
