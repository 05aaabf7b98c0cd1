// Computes the leaving and arriving services when clusters are relabelled or services get other targets, before it
// happens, by the rules of planService. Pure.

import type { MoveView } from '../../shared/model/apply-views.ts'
import type { Labels } from '../../shared/model/labels.ts'
import type { ServiceSpec } from '../../shared/model/resources.ts'
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { guardRemovals } from './guard.ts'
import { firstByKey } from './placements-summary.ts'
import { isUnasked } from './plan-service.ts'
import type { Confirmation, DesiredService } from './records.ts'
import { isTarget, leftByNewTargets, readPlacedBy, type TargetCluster, type TargetTest } from './targeting.ts'

/** Named of each resource. */
const FIRST_MAX = 10

export interface MovingCluster {
  clusterId: ClusterId
  name: string
  before: Labels
  after: Labels
}
export interface MovingService {
  id: ServiceId
  before: ServiceSpec
  after: ServiceSpec
}
export type Move = 'leaves' | 'comes' | null

/** `holds`: it has it, and no order to remove it. */
export function moveOf(
  { before, after }: Pick<MovingService, 'before' | 'after'>,
  cluster: Pick<MovingCluster, 'before' | 'after'>,
  holds: boolean,
  takes: TargetTest = isTarget,
): Move {
  const will = takes(cluster.after, after.targets)
  if (holds) return will ? null : 'leaves'
  return will && !takes(cluster.before, before.targets) ? 'comes' : null
}

interface Moved {
  service: MovingService
  cluster: string
}

/**
 * The moves of one resource. `waiting`: why services may not leave yet, by key, of those that are looked at. `isShown`:
 * services that may be named; the others only count. Null if nothing moves.
 */
export function moveView(
  resource: Pick<MoveView, 'kind' | 'project' | 'name'>,
  leaves: readonly Moved[],
  comes: readonly Moved[],
  waiting: ReadonlyMap<string, string>,
  isShown: (id: ServiceId) => boolean = () => true,
  isLookedAt: (service: string) => boolean = () => true,
): MoveView | null {
  if (leaves.length + comes.length === 0) return null
  const shown = ({ service }: Moved) => isShown(service.id)
  const services = new Map(leaves.filter(shown).map(({ service: { id } }) => [serviceKey(id), id]))
  const waits = [...services]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([key, id]) => {
      const why = waiting.get(key)
      return why === undefined ? [] : [{ ...id, why }]
    })
  const unseen = [...services.keys()].filter((key) => !isLookedAt(key)).length
  const waitsLeft = unseen + Math.max(0, waits.length - FIRST_MAX)
  return {
    ...resource,
    leaves: {
      count: leaves.length,
      prunes: leaves.filter(({ service }) => service.after.deletionPolicy === 'prune').length,
      first: firstOf(leaves.filter(shown)),
    },
    comes: { count: comes.length, first: firstOf(comes.filter(shown)) },
    waits: waits.slice(0, FIRST_MAX),
    ...(waitsLeft === 0 ? {} : { waitsLeft }),
  }
}

function firstOf(moved: readonly Moved[]): MoveView['leaves']['first'] {
  const first = firstByKey(moved, ({ cluster, service: { id } }) => `${cluster} ${serviceKey(id)}`, FIRST_MAX)
  return first.map(({ cluster, service: { id } }) => ({ ...id, cluster }))
}

/** Facts for the guard about all clusters of a service, as they will be. */
export interface LeavingFacts {
  /** Clusters that have the service, without those that have an order to remove it. */
  holders: number
  /** Names of those that leave. */
  leaving: readonly string[]
  leftByNewTargets: number
  /** Clusters with an order without a confirmation. */
  ordered: number
  targets: number
}

export interface LeavingTally {
  addRow(row: DesiredService): void
  addCluster(cluster: TargetCluster): void
  facts(): LeavingFacts
}

/** Counts row by row and cluster by cluster, so that the caller can count ten thousand of them in slices. `clusters`:
 *  all of them, as they will be. */
export function leavingTally(
  { after }: Pick<MovingService, 'after'>,
  clusters: ReadonlyMap<ClusterId, TargetCluster>,
  takes: TargetTest = isTarget,
): LeavingTally {
  const placedTargets = new Map<string, ReturnType<typeof readPlacedBy>>() // most were placed by the same
  const targetsOf = (placedBy: string) => {
    if (!placedTargets.has(placedBy)) placedTargets.set(placedBy, readPlacedBy(placedBy))
    return placedTargets.get(placedBy) ?? null
  }
  const leaving: string[] = []
  let [holders, leftByNew, ordered, targets] = [0, 0, 0, 0]
  return {
    addRow({ clusterId, doc, placedBy }) {
      const cluster = clusters.get(clusterId)
      if (cluster === undefined || doc === null) return
      const stays = takes(cluster.labels, after.targets)
      if (doc.removal !== undefined) ordered += isUnasked(doc) && !stays ? 1 : 0
      else holders += 1
      if (stays || doc.removal !== undefined) return
      leaving.push(cluster.name)
      if (leftByNewTargets(placedBy, cluster.labels, targetsOf, takes)) leftByNew += 1
    },
    addCluster({ labels }) {
      if (takes(labels, after.targets)) targets += 1
    },
    facts: () => ({ holders, leaving, leftByNewTargets: leftByNew, ordered, targets }),
  }
}

/** Why a service leaves nothing until a person says yes. Null means that it leaves at once. `asked`: what is asked
 *  already of its leaving. */
export function whyLeavingWaits({ after }: Pick<MovingService, 'after'>, facts: LeavingFacts, asked: Confirmation | null): string | null {
  const { leaving } = facts
  const verdict = guardRemovals({ cause: 'left_targets', protect: after.protect, ...facts, leaving: leaving.length })
  if (verdict.kind === 'wait') return verdict.why
  const names = new Set(leaving)
  return asked !== null && asked.confirmedMs === null && asked.names.every((name) => names.has(name)) ? asked.why : null
}
