// What leaves and what comes when clusters are relabelled or services get other targets, before it happens: by the rules that planService goes by afterwards. Pure.
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import type { Labels } from '../../shared/model/labels.ts'
import type { ServiceSpec } from '../../shared/model/resources.ts'
import type { MoveView } from '../../shared/model/views.ts'
import type { Confirmation, DesiredService } from '../store/records.ts'
import { guardRemovals } from './guard.ts'
import { isUnasked } from './plan-service.ts'
import { isTarget, leftByNewTargets, readPlacedBy, type TargetCluster } from './targeting.ts'

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
): Move {
  const will = isTarget(cluster.after, after.targets)
  if (holds) return will ? null : 'leaves'
  return will && !isTarget(cluster.before, before.targets) ? 'comes' : null
}

interface Moved {
  service: MovingService
  cluster: string
}

/** Of one resource; `waiting`: why services may not leave yet, by key. Null: nothing moves. */
export function moveView(
  resource: Pick<MoveView, 'kind' | 'project' | 'name'>,
  leaves: readonly Moved[],
  comes: readonly Moved[],
  waiting: ReadonlyMap<string, string>,
): MoveView | null {
  if (leaves.length + comes.length === 0) return null
  const services = new Map(leaves.map(({ service: { id } }) => [serviceKey(id), id]))
  const waits = [...services]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .flatMap(([key, id]) => {
      const why = waiting.get(key)
      return why === undefined ? [] : [{ ...id, why }]
    })
  return {
    ...resource,
    leaves: {
      count: leaves.length,
      prunes: leaves.filter(({ service }) => service.after.deletionPolicy === 'prune').length,
      first: firstOf(leaves),
    },
    comes: { count: comes.length, first: firstOf(comes) },
    waits: waits.slice(0, FIRST_MAX),
  }
}

function firstOf(moved: readonly Moved[]): MoveView['leaves']['first'] {
  const places = moved.map(({ service: { id }, cluster }) => ({ ...id, cluster }))
  const order = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
  return places.sort((a, b) => order(a.cluster, b.cluster) || order(serviceKey(a), serviceKey(b))).slice(0, FIRST_MAX)
}

/** Why a service leaves nothing until a person says yes; null: it leaves at once. `clusters`: all of them, as they will be. `asked`: what is asked already of its leaving. */
export function whyLeavingWaits(
  { after }: MovingService,
  rows: readonly DesiredService[],
  clusters: readonly TargetCluster[],
  asked: Confirmation | null,
): string | null {
  const clusterOf = new Map(clusters.map((cluster) => [cluster.clusterId, cluster]))
  const placedTargets = new Map<string, ReturnType<typeof readPlacedBy>>() // most were placed by the same
  const held = rows.flatMap((row) => {
    const cluster = clusterOf.get(row.clusterId)
    return cluster === undefined || row.doc === null ? [] : [{ row, doc: row.doc, cluster, stays: isTarget(cluster.labels, after.targets) }]
  })
  const holders = held.filter(({ doc }) => doc.removal === undefined)
  const leaving = holders.filter(({ stays }) => !stays)
  const targetsOf = (placedBy: string) => {
    if (!placedTargets.has(placedBy)) placedTargets.set(placedBy, readPlacedBy(placedBy))
    return placedTargets.get(placedBy) ?? null
  }
  const verdict = guardRemovals({
    cause: 'left_targets',
    protect: after.protect,
    holders: holders.length,
    leaving: leaving.length,
    ordered: held.filter(({ doc, stays }) => isUnasked(doc) && !stays).length,
    leftByNewTargets: leaving.filter(({ row, cluster }) => leftByNewTargets(row.placedBy, cluster.labels, targetsOf)).length,
    targets: clusters.filter(({ labels }) => isTarget(labels, after.targets)).length,
  })
  if (verdict.kind === 'wait') return verdict.why
  const names = new Set(leaving.map(({ cluster }) => cluster.name))
  return asked !== null && asked.confirmedMs === null && asked.names.every((name) => names.has(name)) ? asked.why : null
}
