// The summary of many placements: the worst of their states, in the words of the first one with it, and their number.
// Computed from the placements themselves if they are at hand, or from counts and one placement where there may be ten
// thousand. Pure.

import type { HealthWord } from '../../shared/kube/health-object.ts'
import type { PlacementWords } from '../../shared/model/placement-words.ts'
import { HEALTH_WORST, SYNC_WORST } from '../../shared/model/status.ts'
import type { PlacementView, State } from '../../shared/model/views.ts'
import { serviceSays, statusPart } from '../messages/status-messages.ts'

export interface PlacementsSummary {
  counts: ReadonlyArray<PlacementWords & { count: number }>
  /**
   * The first of the worst by its place. Null means none is bad, or none any more. `alike`: the number of equal ones;
   * absent means all with its states.
   */
  worst: { place: string; state: State; alike?: number } | null
  /** Not online. `places`: at least the first of them. */
  away: { count: number; places: readonly string[] }
  /** Time of the youngest state. Null means unknown. */
  sinceMs: number | null
}

export const isFine = (state: PlacementWords): boolean => state.sync === 'Synced' && state.health === 'Healthy'
/**
 * Placements that cannot be rendered name their group; for all others the words suffice, so that lists and single views
 * agree.
 */
const alikeOf = ({ reason }: State, placements: readonly PlacementView[]): { alike?: number } =>
  reason === 'RenderFailed' ? { alike: placements.filter((one) => !isFine(one) && one.reason === reason).length } : {}
const hasWords = (one: PlacementWords, { sync, health }: PlacementWords): boolean => one.sync === sync && one.health === health
/** The worst has the least. */
export const severity = (state: PlacementWords): number =>
  HEALTH_WORST.indexOf(state.health) * SYNC_WORST.length + SYNC_WORST.indexOf(state.sync)

/** The first `count` of the items in the order of their keys. It sorts no more than those: there may be one item for
 *  each cluster. */
export function firstByKey<T>(items: readonly T[], keyOf: (item: T) => string, count: number): T[] {
  const first: Array<{ key: string; item: T }> = []
  for (const item of items) {
    const key = keyOf(item)
    const last = first.at(-1)
    if (first.length === count && last !== undefined && key >= last.key) continue
    const at = first.findIndex((held) => key < held.key)
    first.splice(at < 0 ? first.length : at, 0, { key, item })
    if (first.length > count) first.pop()
  }
  return first.map(({ item }) => item)
}

const NAMES_SHOWN = 5
/** `count`: how many there are, if more than are named. */
export function nameList(names: readonly string[], count = names.length): string {
  const shown = [...names].sort().slice(0, NAMES_SHOWN).join(', ')
  return count > NAMES_SHOWN ? `${shown} and ${count - NAMES_SHOWN} more` : shown
}

export function summarise(placements: readonly PlacementView[], placeOf: (placement: PlacementView) => string): PlacementsSummary {
  const [worst] = placements
    .filter((placement) => !isFine(placement))
    .sort((a, b) => severity(a) - severity(b) || (placeOf(a) < placeOf(b) ? -1 : 1))
  const away = placements.filter((placement) => placement.liveness.word !== 'Online')
  return {
    counts: placements.map(({ sync, health }) => ({ sync, health, count: 1 })),
    worst: worst === undefined ? null : { place: placeOf(worst), state: worst, ...alikeOf(worst, placements) },
    away: { count: away.length, places: away.map(placeOf) },
    sinceMs: placements.reduce<number | null>((max, { sinceMs }) => (sinceMs !== null && sinceMs > (max ?? 0) ? sinceMs : max), null),
  }
}

/** Null if none is bad. */
export function worstWords(counts: PlacementsSummary['counts']): PlacementsSummary['counts'][number] | null {
  const [worst] = counts.filter((words) => !isFine(words)).sort((a, b) => severity(a) - severity(b))
  return worst ?? null
}

/** Clusters that are away count by what they last said. */
export function foldSummary({ counts, worst, away, sinceMs }: PlacementsSummary): State {
  const words = {
    sync: SYNC_WORST.find((word) => counts.some(({ sync }) => sync === word)) ?? 'Unknown',
    health: HEALTH_WORST.find((word): word is HealthWord => counts.some(({ health }) => health === word)) ?? 'Unknown',
  } as const
  const bad = sum(counts.filter((some) => !isFine(some)))
  if (bad === 0) {
    const said = away.count === 0 ? FINE : serviceSays('LastKnown', { places: nameList(away.places, away.count) })
    return { ...words, ...said, sinceMs }
  }
  const all = sum(counts)
  if (worst === null) {
    const said = all === 1 ? serviceSays('CountsChanging') : serviceSays('CountsChanging.many', { bad, all })
    return { ...words, ...said, sinceMs: null }
  }
  const { reason, message, next, sinceMs: since } = worst.state
  const alike = worst.alike ?? sum(counts.filter((some) => hasWords(some, worst.state)))
  const first = `${worst.place}: ${message}`
  const code = alike <= 1 ? 'bad_of' : reason === 'RenderFailed' ? 'failed_of' : 'alike_of'
  return { ...words, reason, message: all === 1 ? first : statusPart(code, { alike, all, first }), next, sinceMs: since }
}

const FINE = { reason: '', message: '', next: '' } as const

export const summaryCounts = ({ counts, away }: PlacementsSummary) => ({
  total: sum(counts),
  synced: sum(counts.filter(({ sync }) => sync === 'Synced')),
  healthy: sum(counts.filter(({ health }) => health === 'Healthy')),
  offline: away.count,
})

const sum = (counts: PlacementsSummary['counts']): number => counts.reduce((all, { count }) => all + count, 0)
