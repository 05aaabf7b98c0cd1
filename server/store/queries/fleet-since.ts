// Rows in the order of the time since when they are as they are, without an index of all of them (which would cost
// ingest more than half of its speed): rows of each state have one. The largest states tell how far back a window must
// reach; that window is then read of all states.
import type { StateEntry } from './fleet-dictionary.ts'
import type { Position } from './fleet-queries.ts'
import type { RowPage, StatusRow, StatusRows } from './fleet-query-sql.ts'

/** States that are asked one by one. */
const LARGE_STATES = 24
const ROWS_EACH_MIN = 16
/** The limit of all other states in one window; a larger result is read in a smaller window. */
const WINDOW_ROWS_MAX = 20_000
const SHRINK = 8

export interface SinceWalk {
  states: readonly StateEntry[]
  /** Those of the answer, in the same order. */
  matching(rows: readonly StatusRow[]): Promise<StatusRow[]>
  order: 'newest' | 'oldest'
  after: Position | undefined
  limit: number
  density: number
  rowsMax: number
}

export async function walkSince(source: StatusRows, walk: SinceWalk): Promise<RowPage> {
  const { states, matching, order, after, limit, density, rowsMax } = walk
  // Everything is done with the sign of the order: `newest` is the order of negative times.
  const sign = order === 'newest' ? -1 : 1
  const byRefs = [...states].sort((a, b) => b.refs - a.refs)
  const large = byRefs.slice(0, LARGE_STATES)
  const others = byRefs.slice(LARGE_STATES).map(({ id }) => id)
  const refs = Math.max(
    1,
    large.reduce((sum, state) => sum + state.refs, 0),
  )
  const until = source.fetched + rowsMax
  const rows: StatusRow[] = []
  const ids = byRefs.map(({ id }) => id)
  // Where all rows of a time are behind, the next time is first.
  const first = after === undefined ? await source.endOfStates(ids, order) : Number(after[0]) + (after[1] === null ? sign : 0)
  if (first === null) return { rows, next: null }
  let from = first
  let wanted = Math.max(64, limit / Math.max(density, 0.001))
  for (;;) {
    const parts: StatusRow[] = []
    let reach = sign * TIME_MAX
    let isWhole = true
    for (const state of large) {
      const max = Math.min(CHUNK_MAX, Math.ceil((wanted * state.refs) / refs) + ROWS_EACH_MIN)
      const found = await source.ofState(state.id, order, from, max)
      for (const row of found) parts.push(row)
      const last = found.at(-1)?.since_ms ?? null
      // This state may have more, from the last one's time on.
      if (found.length < max || last === null) continue
      isWhole = false
      if (sign * last < sign * reach) reach = last
    }
    // The times before `reach` are read completely; if that is none, the time that fills a whole chunk is read alone.
    let to = isWhole ? reach : reach - sign
    if (sign * to < sign * from) {
      to = from
      parts.length = 0
      for (const row of await source.ofStatesBetween(
        large.map(({ id }) => id),
        from,
        from,
        Number.MAX_SAFE_INTEGER,
      ))
        parts.push(row)
    }
    let rest: StatusRow[]
    for (;;) {
      const [low, high] = sign < 0 ? [to, from] : [from, to]
      const isTime = from === to
      rest = await source.ofStatesBetween(others, low, high, isTime ? Number.MAX_SAFE_INTEGER : WINDOW_ROWS_MAX)
      if (isTime || rest.length < WINDOW_ROWS_MAX) break
      if (isWhole) to = (await source.endOfStates(ids, order === 'newest' ? 'oldest' : 'newest')) ?? from
      to = from + Math.trunc((to - from) / SHRINK)
      isWhole = false
    }
    const window = [...parts.filter((row) => sign * (row.since_ms ?? 0) <= sign * to), ...rest]
    const found = await matching(after === undefined ? window : window.filter((row) => isBeyond(row, after, sign)))
    for (const row of found.sort((a, b) => sign * compareRows(a, b))) rows.push(row)
    if (rows.length > limit) {
      const last = rows[limit - 1]
      return { rows: rows.slice(0, limit), next: last === undefined ? null : sincePosition(last) }
    }
    if (isWhole) return { rows, next: null }
    if (source.fetched >= until) return { rows, next: [to, null, null] }
    from = to + sign
    wanted = Math.min(wanted * 3, until - source.fetched)
  }
}

const CHUNK_MAX = 20_000
/** No time is beyond it. */
const TIME_MAX = Number.MAX_SAFE_INTEGER

export const sincePosition = (row: StatusRow): Position => [row.since_ms ?? 0, row.cluster_no, row.name_id]
export const compareRows = (a: StatusRow, b: StatusRow): number =>
  (a.since_ms ?? 0) - (b.since_ms ?? 0) || a.cluster_no - b.cluster_no || a.name_id - b.name_id

/** Null in a position: behind all rows of that time. */
export function isBeyond(row: StatusRow, [since, no, name]: Position, sign: number): boolean {
  const place = sign * ((row.since_ms ?? 0) - Number(since))
  if (place !== 0 || no == null || name == null) return place > 0
  return sign * (row.cluster_no - Number(no) || row.name_id - Number(name)) > 0
}
