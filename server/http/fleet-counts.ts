// The counts of the API, from those that the store keeps: which dimension answers which question, which states are
// summed, and the order of the result.

import { HEALTH_WORDS } from '../../shared/kube/health-object.ts'
import type { CountBy, CountOf, CountRow, CountSort, CountsView } from '../../shared/model/counts.ts'
import { SYNC_WORDS } from '../../shared/model/status.ts'
import { LIVENESS_WORDS } from '../../shared/model/views.ts'
import { parseServiceKey } from '../../shared/runtime/ids.ts'
import { type Scope, serviceInScope } from '../fleet/rights.ts'
import type { RollupDimension } from '../store/counts/rollup-dimensions.ts'
import type { CountedKey, OnlineWithin, Rollups } from '../store/counts/rollups.ts'

export interface CountsQuery {
  by: CountBy
  of: CountOf
  /** Only keys that begin with it. */
  key?: string | undefined
  sort?: CountSort | undefined
  limit: number
  after?: string | undefined
}
export interface CountedAt {
  nowMs: number
  within: OnlineWithin
  /** Services in clusters that have no row to be counted, by key. Default: there are none. */
  unrendered?(by: UnrenderedBy): Promise<ReadonlyMap<string, number>>
}
/** `service`: keys are `project/service`; `label`: `key=value`. */
export type UnrenderedBy = 'service' | 'label'

type Answer = Omit<CountsView, 'by' | 'of'>

export async function fleetCounts(rollups: Rollups, query: CountsQuery, { nowMs, within, unrendered }: CountedAt): Promise<Answer> {
  const { by, of, key, limit } = query
  const others = async (by: UnrenderedBy) => (of === 'objects' ? undefined : await unrendered?.(by)) ?? NONE
  switch (by) {
    case 'state':
    case 'sync':
    case 'health': {
      const dimension = of === 'objects' ? 'object' : 'placement'
      const words = (await rollups.ofKeys(dimension, [''])).get('') ?? {}
      const more = [...(await others('service')).values()].reduce((sum, n) => sum + n, 0)
      return whole(wordRows(by, withMore(words, more)), query)
    }
    case 'service':
      return keyed(rollups, of === 'objects' ? 'service_object' : 'service', query, await others('service'))
    case 'label':
      return keyed(rollups, 'label', query, await others('label'))
    case 'image':
      return keyed(rollups, 'image', { ...query, sort: query.sort ?? 'count' }, NONE)
    case 'drift-age':
      return whole(await driftAges(rollups, nowMs), { key, limit })
    case 'version':
      return whole(versionRows((await rollups.page({ dimension: 'version', limit: 2 })).items), { ...query, sort: query.sort ?? 'count' })
    case 'liveness': {
      const counts = await rollups.liveness(nowMs, within)
      return whole(
        LIVENESS_WORDS.map((word) => ({ key: word, count: counts[word], parts: {} })),
        query,
      )
    }
  }
}

const NONE: ReadonlyMap<string, number> = new Map()

/**
 * Counts that are kept for each service: a caller who may not read all services gets the sums of those that it may
 * read.
 */
export const COUNTED_BY_SERVICE: ReadonlySet<CountBy> = new Set<CountBy>(['state', 'sync', 'health', 'service'])
const KEYS_A_PAGE = 500

/** Costs what the services in scope are. `scope`: without places that are limited to clusters. */
export async function scopedCounts(
  rollups: Rollups,
  query: CountsQuery,
  scope: Scope,
  unrendered: ReadonlyMap<string, number>,
): Promise<Answer> {
  const { by, of, limit, after } = query
  const dimension = of === 'objects' ? 'service_object' : 'service'
  const isMine = (key: string) => serviceInScope(scope, parseServiceKey(key))
  const found = new Map<string, CountedKey>()
  for (const prefix of prefixesOf(scope))
    for (let next: string | null | undefined; next !== null; ) {
      const page = await rollups.page({ dimension, prefix, limit: KEYS_A_PAGE, after: next })
      for (const item of page.items) if (isMine(item.key)) found.set(item.key, item)
      next = page.next
    }
  const mine = added(
    [...found.values()],
    [...unrendered].filter(([key]) => isMine(key)),
  ).sort(byKey)
  if (by === 'service') {
    const rows = mine.map((item) => keyedRow(dimension, item)).filter(({ key }) => after === undefined || key > after)
    const answer = whole(rows, query)
    return rows.length > limit && query.sort !== 'count' ? { ...answer, rest: null, continue: answer.items.at(-1)?.key ?? null } : answer
  }
  const words: Record<string, number> = {}
  for (const { counts } of mine) for (const [word, n] of Object.entries(counts)) words[word] = (words[word] ?? 0) + n
  return whole(wordRows(by === 'state' || by === 'sync' ? by : 'health', words), query)
}

/** Beginnings of the keys in scope: no service of another project is read. */
const prefixesOf = (scope: Scope): string[] =>
  scope.some(({ projects }) => projects === null)
    ? ['']
    : [...new Set(scope.flatMap(({ projects }) => projects ?? []))].map((project) => `${project}/`)

const UNRENDERED = 'OutOfSync/Missing'
const withMore = (counts: Record<string, number>, more = 0): Record<string, number> =>
  more === 0 ? counts : { ...counts, [UNRENDERED]: (counts[UNRENDERED] ?? 0) + more }

const sum = (counts: Record<string, number>): number => Object.values(counts).reduce((all, n) => all + n, 0)

/** Sync and health with all their words, also those that nothing has; state with those that something has. */
function wordRows(by: 'state' | 'sync' | 'health', words: Record<string, number>): CountRow[] {
  if (by === 'state') return Object.entries(words).map(([key, count]) => ({ key, count, parts: {} }))
  const at = by === 'sync' ? 0 : 1
  const among = by === 'sync' ? SYNC_WORDS : HEALTH_WORDS
  return among.map((word) => {
    const parts = Object.fromEntries(Object.entries(words).filter(([key]) => key.split('/')[at] === word))
    return { key: word, count: sum(parts), parts }
  })
}

/** `clusters` among the values of a label is not a word. */
function keyedRow(dimension: RollupDimension, { key, counts }: CountedKey): CountRow {
  if (dimension === 'image') return { key, count: sum(counts), parts: {} }
  if (dimension !== 'label') return { key, count: sum(counts), parts: counts }
  const { clusters = 0, ...parts } = counts
  return { key, count: sum(parts), parts, clusters }
}

/** `unrendered`: that come on top, also of keys that have nothing else. */
async function keyed(
  rollups: Rollups,
  dimension: RollupDimension,
  { key: prefix = '', sort, limit, after }: CountsQuery,
  unrendered: ReadonlyMap<string, number>,
): Promise<Answer> {
  const more = [...unrendered].filter(([key, n]) => n > 0 && key.startsWith(prefix))
  if (sort === 'count') return mostFirst(rollups, dimension, { prefix, limit }, more)
  const { items, next } = await rollups.page({ dimension, prefix, limit, after })
  const isHere = (key: string) => (after === undefined || key > after) && (next === null || key <= next)
  const all = added(
    items,
    more.filter(([key]) => isHere(key)),
  ).sort(byKey)
  const here = all.slice(0, limit)
  const rows = here.map((item) => keyedRow(dimension, item))
  return { items: rows, rest: null, continue: all.length > limit ? (here.at(-1)?.key ?? null) : next }
}

/** An item among the first was so before, or has a larger count now. */
async function mostFirst(
  rollups: Rollups,
  dimension: RollupDimension,
  { prefix, limit }: { prefix: string; limit: number },
  more: ReadonlyArray<readonly [string, number]>,
): Promise<Answer> {
  const weigh = (counts: Record<string, number>) => keyedRow(dimension, { key: '', counts }).count
  const { items, rest } = await rollups.top({ dimension, prefix, limit, weigh })
  const top = new Set(items.map(({ key }) => key))
  const others = more.flatMap(([key]) => (top.has(key) ? [] : [key]))
  const held = await rollups.ofKeys(dimension, others)
  const known = [...held].map(([key, counts]) => ({ key, counts }))
  const all = added([...items, ...known], more).map((item) => keyedRow(dimension, item))
  all.sort((a, b) => b.count - a.count || byKey(a, b))
  const keys = items.length + rest.keys + others.length - held.size
  const whole = sumOf(items, weigh) + rest.count + more.reduce((sum, [, n]) => sum + n, 0)
  const here = all.slice(0, limit)
  const told = here.reduce((sum, { count }) => sum + count, 0)
  return { items: here, rest: { keys: keys - here.length, count: whole - told }, continue: null }
}

const sumOf = (items: readonly CountedKey[], weigh: (counts: Record<string, number>) => number): number =>
  items.reduce((sum, { counts }) => sum + weigh(counts), 0)
const byKey = (a: { key: string }, b: { key: string }): number => (a.key < b.key ? -1 : 1)

function added(items: readonly CountedKey[], more: ReadonlyArray<readonly [string, number]>): CountedKey[] {
  const left = new Map(more)
  const known = items.map(({ key, counts }) => {
    const n = left.get(key) ?? 0
    left.delete(key)
    return { key, counts: withMore(counts, n) }
  })
  return [...known, ...[...left].map(([key, n]) => ({ key, counts: withMore({}, n) }))]
}

/** Rows that are all here. */
function whole(rows: readonly CountRow[], { key: prefix = '', sort, limit }: Pick<CountsQuery, 'key' | 'sort' | 'limit'>): Answer {
  const asked = rows.filter(({ key }) => key.startsWith(prefix))
  if (sort !== undefined) asked.sort((a, b) => (sort === 'count' ? b.count - a.count : 0) || (a.key < b.key ? -1 : 1))
  const left = asked.slice(limit)
  const rest = left.length === 0 ? null : { keys: left.length, count: left.reduce((all, { count }) => all + count, 0) }
  return { items: asked.slice(0, limit), rest, continue: null }
}

const versionRows = (items: readonly CountedKey[]): CountRow[] =>
  items.flatMap(({ key, counts }) => Object.entries(counts).map(([version, count]) => ({ key: `${key}/${version}`, count, parts: {} })))

const HOUR_MS = 3_600_000
const AGES: ReadonlyArray<readonly [name: string, ms: number]> = [
  ['<1h', HOUR_MS],
  ['<1d', 24 * HOUR_MS],
  ['<7d', 7 * 24 * HOUR_MS],
]

/** Each drift in the first age that it is below. What was put back is no drift any more. */
async function driftAges(rollups: Rollups, nowMs: number): Promise<CountRow[]> {
  const older: Array<Record<string, number>> = [await rollups.driftsSince(Number.MAX_SAFE_INTEGER)]
  for (const [, ms] of AGES) older.push(await rollups.driftsSince(nowMs - ms))
  return [...AGES.map(([name]) => name), 'older'].map((key, index) => {
    const [from = {}, to = {}] = [older[index], older[index + 1]]
    const parts: Record<string, number> = {}
    for (const [action, n] of Object.entries(from)) {
      const left = n - (to[action] ?? 0)
      if (action !== 'healed' && left > 0) parts[action] = left
    }
    return { key, count: sum(parts), parts }
  })
}
