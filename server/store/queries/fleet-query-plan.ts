// How a question about two million objects is answered: from which side, and whether all that it leaves is fetched and
// sorted or walked in the order that was asked for. Pure: numbers of rows in, a decision out. Wrong numbers make a plan
// slow, never wrong.
import type { ObjectSort } from '../../../shared/model/views.ts'

/** For each searched word: the clusters' rows, and the names and states in which it occurs. */
export interface WordCounts {
  clusters: number
  names: number
  states: number
}

export interface PlanInput {
  sort: ObjectSort
  limit: number
  /** All objects. */
  total: number
  /** Rows that are left by what is asked of clusters, names, states and drifts alone. Null means that nothing is asked.
   */
  clusters: number | null
  names: number | null
  states: number | null
  drifts: number | null
  words: readonly WordCounts[]
  /** For several words: the rows of names in which all occur, and of clusters and states in which any does. */
  split: WordCounts | null
  /** Whether a row's state says if it belongs to the answer, or where. */
  needsState: boolean
  costs: Costs
}

/** The cost of a row in µs by the way it is fetched, and the limit of one request. */
export interface Costs {
  /** In the order of an index that has all. */
  scan: number
  /** By an index that has only cluster and name. */
  bare: number
  /** Looked up one by one. */
  lookup: number
  collectMax: number
  walkMax: number
  /** Open drifts that are known before the search for objects; of more, each object's own is read. */
  driftsMax: number
  /** The limits for services in clusters: rows that are fetched whole, rows that a walk reads. */
  placementsCollect: number
  placementsWalk: number
}

/** bun:sqlite on one core of a common server; mostly what it takes to make a row an object, and to sort it. */
export const SQLITE_COSTS: Costs = {
  scan: 0.8,
  bare: 0.6,
  lookup: 2,
  collectMax: 25_000,
  walkMax: 50_000,
  driftsMax: 50_000,
  placementsCollect: 12_000,
  placementsWalk: 30_000,
}
/** Rows travel through a socket and are parsed on the server's own thread. */
export const POSTGRES_COSTS: Costs = {
  scan: 2,
  bare: 1.5,
  lookup: 3,
  collectMax: 40_000,
  walkMax: 60_000,
  driftsMax: 30_000,
  placementsCollect: 8_000,
  placementsWalk: 20_000,
}

export type Driver = { kind: 'clusters' | 'names' | 'states' | 'drifts' | 'split' } | { kind: 'word'; word: number }
export type Plan =
  | { kind: 'nothing' }
  /** All rows of the driver are fetched, filtered and sorted. */
  | { kind: 'collect'; driver: Driver }
  /** In the order of the query, at most `rowsMax` rows a request; about every `1 / density`-th is one of the answer. */
  | { kind: 'walk'; by: 'clusters' | 'names' | 'since' | 'health'; density: number; rowsMax: number }

export function planObjects(input: PlanInput): Plan {
  const { clusters, names, states, drifts, words, split, costs } = input
  const needsState = input.needsState || input.sort === 'newest' || input.sort === 'oldest' || input.sort === 'health'
  const byName = needsState ? costs.lookup : costs.bare
  const candidates: Array<{ driver: Driver; rows: number; cost: number }> = []
  const add = (driver: Driver, rows: number | null, cost: number) => {
    if (rows !== null) candidates.push({ driver, rows, cost: rows * cost })
  }
  add({ kind: 'clusters' }, clusters, costs.scan)
  add({ kind: 'names' }, names, byName)
  add({ kind: 'states' }, states, costs.scan)
  add({ kind: 'drifts' }, drifts, byName)
  const union = (driver: Driver, count: WordCounts, name: number) => {
    const rows = count.clusters + count.names + count.states
    candidates.push({ driver, rows, cost: (count.clusters + count.states) * costs.scan + count.names * name })
  }
  for (const [word, count] of words.entries()) union({ kind: 'word', word }, count, byName)
  if (split !== null) union({ kind: 'split' }, split, byName)
  const [best] = candidates.sort((a, b) => a.cost - b.cost)
  // By names, a walk reads the state of every row that it passes: twice as many are still found sooner.
  const collectMax = input.sort === 'name' && needsState ? 2 * costs.collectMax : costs.collectMax
  if (best !== undefined && best.cost <= collectMax) return { kind: 'collect', driver: best.driver }
  return walk(input, needsState)
}

const ORDERS = { cluster: 'clusters', name: 'names', newest: 'since', oldest: 'since', health: 'health' } as const

function walk({ sort, total, clusters, names, states, drifts, words, costs }: PlanInput, needsState: boolean): Plan {
  const by = ORDERS[sort]
  const all = Math.max(1, total)
  const parts = words.map((count) => count.clusters + count.names + count.states)
  // Conditions that the order itself ensures are not checked.
  const [byCluster, byState] = [by === 'clusters' || by === 'health', by === 'since' || by === 'health']
  const asked = [byCluster ? null : clusters, by === 'names' ? null : names, byState ? null : states, drifts, ...parts]
  const density = asked.reduce<number>((share, rows) => (rows === null ? share : share * Math.min(1, rows / all)), 1)
  const cost = by === 'names' ? (needsState ? costs.lookup : costs.bare) : costs.scan
  return { kind: 'walk', by, density: Math.max(density, 1 / all), rowsMax: Math.floor(costs.walkMax / cost) }
}
