// Clusters that are targets of a service which cannot be rendered for them: what of them is remembered with the error, and what people see of it. Pure.

import type { Liveness, PlacementView, State } from '../../shared/model/views.ts'
import { ERRORS, isErrorCode } from '../../shared/protocol/error.ts'
import type { FailingClusters, StoredError } from '../store/records.ts'
import { isFine, nameList, type PlacementsSummary, severity } from './placements-summary.ts'

/** Of one service; of more, how many there are. */
const NAMED_MAX = 1_000

export interface FailedCluster {
  cluster: string
  /** It has a revision of the service already. */
  holds: boolean
  error: Omit<StoredError, 'sinceMs'>
}

/** Those together that fail alike, sorted. */
export function gatherFailing(failed: readonly FailedCluster[]): FailingClusters[] {
  const groups = new Map<string, FailingClusters>()
  let named = 0
  for (const { cluster, holds, error } of [...failed].sort((a, b) => order(a.cluster, b.cluster))) {
    const { code, message, problems, remedy } = error
    const [problem] = problems
    const key = JSON.stringify([code, message, problem])
    const group = groups.get(key) ?? {
      code,
      message,
      ...(remedy === undefined ? {} : { remedy }),
      ...(problem === undefined ? {} : { problem }),
      without: [],
      keeping: [],
      moreWithout: 0,
    }
    groups.set(key, group)
    if (named < NAMED_MAX) (holds ? group.keeping : group.without).push(cluster)
    else if (!holds) group.moreWithout += 1
    named += 1
  }
  return [...groups.values()]
}

/** How many are in no count of placements, because they have nothing of it. */
export const countWithout = (error: StoredError | null): number =>
  (error?.failing ?? []).reduce((sum, { without, moreWithout }) => sum + without.length + moreWithout, 0)

export function keptText(digest: string | null, error: Pick<StoredError, 'failing'> | null): string {
  if (digest === null) return 'nothing is published yet'
  const groups = error?.failing ?? []
  const without = groups.flatMap((group) => group.without)
  if (without.length === 0) return 'the last good revision stays in force'
  const names = nameList(without, without.length + groups.reduce((sum, { moreWithout }) => sum + moreWithout, 0))
  const others = groups.some(({ keeping }) => keeping.length > 0) ? ', the others keep their last good revision' : ''
  return `nothing is published in ${names} yet${others}`
}

export function unrenderedState(
  { code, message, problem, remedy }: FailingClusters,
  holds: boolean,
  sinceMs: number | null,
): Omit<State, 'sync' | 'health'> {
  const where = problem === undefined ? '' : `: ${problem.path === '' ? '' : `${problem.path}: `}${problem.message}`
  return {
    reason: 'RenderFailed',
    message: `it cannot be rendered for this cluster: ${message}${where}; ${holds ? 'the last good revision stays in force' : 'nothing is published here yet'}`,
    next: remedy ?? (isErrorCode(code) ? ERRORS[code].remedy : 'Mend it and push again.'),
    sinceMs,
  }
}

/** In the place of a placement, where there is none. */
export const unrenderedPlacement = (
  id: { project: string; service: string },
  { cluster, liveness }: { cluster: string; liveness: Liveness },
  group: FailingClusters,
  sinceMs: number | null,
): PlacementView => ({
  ...id,
  ...{ cluster, liveness, sync: 'OutOfSync', health: 'Missing' },
  ...unrenderedState(group, false, sinceMs),
  ...{ desired: null, received: null, applied: null, healthy: null, objectCount: 0, healthyCount: 0 },
  ...{ removal: null, refusal: null, confirmationId: null },
})

/** What a cluster runs is as it was said to be, and still not what it should have by now. */
export const keepingPlacement = (placement: PlacementView, group: FailingClusters, sinceMs: number | null): PlacementView =>
  isFine(placement) && placement.removal === null ? { ...placement, ...unrenderedState(group, true, sinceMs) } : placement

/** Where counts are at hand and placements are not. */
export function withUnrendered(summary: PlacementsSummary, error: StoredError | null): PlacementsSummary {
  const count = countWithout(error)
  return count === 0 ? summary : { ...summary, counts: [...summary.counts, { sync: 'OutOfSync', health: 'Missing', count }] }
}

/** The same of one cluster: services that have no placement there. */
export function withUnrenderedIn(
  summary: PlacementsSummary,
  at: { cluster: string; liveness: Liveness },
  errors: ReadonlyArray<{ id: { project: string; service: string }; error: StoredError }>,
): PlacementsSummary {
  const missing = errors.flatMap(({ id, error }) => {
    const group = error.failing?.find(({ without }) => without.includes(at.cluster))
    return group === undefined ? [] : [unrenderedPlacement(id, at, group, error.sinceMs)]
  })
  const [first] = missing
  if (first === undefined) return summary
  const isWorse = summary.worst === null || severity(first) < severity(summary.worst.state)
  return {
    ...summary,
    counts: [...summary.counts, { sync: 'OutOfSync', health: 'Missing', count: missing.length }],
    worst: isWorse ? { place: `${first.project}/${first.service}`, state: first, alike: missing.length } : summary.worst,
  }
}

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
