// Clusters that are targets of a service which cannot be rendered for them: what of them is remembered with the error,
// and what people see of it. Pure.

import type { Labels } from '../../shared/model/labels.ts'
import type { ServiceSpec } from '../../shared/model/resources.ts'
import { revisionWords } from '../../shared/model/revision-text.ts'
import type { Liveness, PlacementView, State } from '../../shared/model/views.ts'
import { isErrorCode } from '../../shared/runtime/error.ts'
import { ERRORS } from '../../shared/runtime/error-table.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { placementSays, statusPart, stepText } from '../messages/status-messages.ts'
import { isFine, nameList, type PlacementsSummary, severity } from './placements-summary.ts'
import type { FailingClusters, StoredError } from './records.ts'
import { isTarget } from './targeting.ts'

/** The limit for one service; for several, only their number is given. */
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

/** The words about a cluster, without the names of all clusters that fail alike. */
export type FailedWords = Pick<FailingClusters, 'code' | 'message' | 'remedy' | 'problem'>

/** For whom a service cannot be rendered, one by one. */
export interface FailingIn {
  /** The words for a cluster that has nothing of the service. */
  without(cluster: { name: string; labels: Labels }): FailedWords | undefined
  /** The words for a cluster that keeps its last good revision. */
  keeping(name: string): FailedWords | undefined
  /** By name: all that have nothing, but for those that are too many to be named. */
  named: ReadonlyMap<string, FailedWords>
  /** Some are not named. */
  isCut: boolean
}

/** `targets`: asked for only where there are more than are named. Those were named in the order of their names, so that
 *  the others are the targets behind the last of them. */
export function failingIn({ failing = [] }: Pick<StoredError, 'failing'>, targets: () => ServiceSpec['targets']): FailingIn {
  const named = new Map(failing.flatMap((group) => group.without.map((name): [string, FailingClusters] => [name, group])))
  const keeping = new Map(failing.flatMap((group) => group.keeping.map((name): [string, FailingClusters] => [name, group])))
  // With several errors, their clusters were not recorded: the most frequent one counts.
  const [most] = [...failing].sort((a, b) => b.moreWithout - a.moreWithout)
  if (most === undefined || most.moreWithout === 0)
    return { named, isCut: false, without: ({ name }) => named.get(name), keeping: (name) => keeping.get(name) }
  const wanted = targets()
  const last = [...named.keys(), ...keeping.keys()].reduce((a, b) => (a > b ? a : b), '')
  return {
    named,
    isCut: true,
    without: ({ name, labels }) => (name <= last ? named.get(name) : isTarget(labels, wanted) ? most : undefined),
    keeping: (name) => keeping.get(name),
  }
}

/** How many are in no count of placements, because they have nothing of it. */
export const countWithout = (error: StoredError | null): number =>
  (error?.failing ?? []).reduce((sum, { without, moreWithout }) => sum + without.length + moreWithout, 0)

/** ` (commit 3f2c9d81aa10 by Ana Example: fix the port)`; empty when no revision was read. */
export const failedAtText = ({ at }: Pick<StoredError, 'at'>): string =>
  at === undefined
    ? ''
    : ` (${revisionWords(at.commit, COMMIT_LENGTH)}${at.author === null ? '' : ` by ${at.author}`}${at.subject === undefined ? '' : `: ${at.subject}`})`
const COMMIT_LENGTH = 12

export function keptText(digest: string | null, error: Pick<StoredError, 'failing'> | null): string {
  if (digest === null) return statusPart('no_revision')
  const groups = error?.failing ?? []
  const without = groups.flatMap((group) => group.without)
  if (without.length === 0) return statusPart('last_revision')
  const clusters = nameList(without, without.length + groups.reduce((sum, { moreWithout }) => sum + moreWithout, 0))
  return statusPart(groups.some(({ keeping }) => keeping.length > 0) ? 'no_revision_in_some' : 'no_revision_in', { clusters })
}

export function unrenderedState(
  { code, message, problem, remedy }: FailedWords,
  holds: boolean,
  sinceMs: number | null,
): Omit<State, 'sync' | 'health'> {
  const where = problem === undefined ? '' : `: ${problem.path === '' ? '' : `${problem.path}: `}${problem.message}`
  const failed = { failure: `${message}${where}`, remedy: remedyText({ code, remedy }) }
  return { ...placementSays(holds ? 'RenderFailed.kept' : 'RenderFailed.nothing', failed), sinceMs }
}

/** The remedy of an error, or of its code. */
export const remedyText = ({ code, remedy }: { code: string; remedy?: string | undefined }): string =>
  remedy ?? (isErrorCode(code) ? ERRORS[code].remedy : stepText('error'))

/** In the place of a placement, where there is none. */
export const unrenderedPlacement = (
  id: ServiceId,
  { cluster, liveness }: { cluster: string; liveness: Liveness },
  group: FailedWords,
  sinceMs: number | null,
): PlacementView => ({
  ...id,
  ...{ cluster, liveness, sync: 'OutOfSync', health: 'Missing' },
  ...unrenderedState(group, false, sinceMs),
  ...{ desired: null, received: null, applied: null, healthy: null, objectCount: 0, healthyCount: 0 },
  ...{ removal: null, refusal: null, confirmationId: null, suspensions: [] },
})

/** The placement runs what was reported, which is not yet what it should run. */
export const keepingPlacement = (placement: PlacementView, group: FailedWords, sinceMs: number | null): PlacementView =>
  isFine(placement) && placement.removal === null ? { ...placement, ...unrenderedState(group, true, sinceMs) } : placement

/** Where counts are at hand and placements are not. `away`: names of those that have nothing and are not online. */
export function withUnrendered(summary: PlacementsSummary, error: StoredError | null, away: readonly string[]): PlacementsSummary {
  const count = countWithout(error)
  if (count === 0) return summary
  return {
    ...summary,
    counts: [...summary.counts, { sync: 'OutOfSync', health: 'Missing', count }],
    away: { count: summary.away.count + away.length, places: [...summary.away.places, ...away].sort() },
  }
}

/** A service that cannot be rendered for some of its clusters. */
export interface FailingService {
  id: ServiceId
  sinceMs: number
  failing: FailingIn
}

/** The same of one cluster. `held`: services that have a placement there. */
export function withUnrenderedIn(
  summary: PlacementsSummary,
  at: { cluster: string; labels: Labels; liveness: Liveness },
  services: readonly FailingService[],
  held: readonly string[],
): PlacementsSummary {
  const missing = services.flatMap(({ id, failing, sinceMs }) => {
    const group = failing.without({ name: at.cluster, labels: at.labels })
    return group === undefined || held.includes(serviceKey(id)) ? [] : [unrenderedPlacement(id, at, group, sinceMs)]
  })
  missing.sort((a, b) => order(serviceKey(a), serviceKey(b)))
  const [first] = missing
  if (first === undefined) return summary
  const away = at.liveness.word === 'Online' ? [] : missing.map(serviceKey)
  const { worst } = summary
  const isFirst =
    worst === null ||
    severity(first) < severity(worst.state) ||
    (severity(first) === severity(worst.state) && serviceKey(first) < worst.place)
  return {
    ...summary,
    counts: [...summary.counts, { sync: 'OutOfSync', health: 'Missing', count: missing.length }],
    away: { count: summary.away.count + away.length, places: [...summary.away.places, ...away].sort() },
    worst: isFirst ? { place: `${first.project}/${first.service}`, state: first, alike: missing.length } : summary.worst,
  }
}

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
