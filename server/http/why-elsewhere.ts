// Whether the trouble of a service in one cluster is that of the revision or that of the place: the same service in
// other clusters, and other services in the same cluster.

import type { PlacementView } from '../../shared/model/views.ts'
import type { WhyCause, WhyEvidence } from '../../shared/model/why.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { serviceKey } from '../../shared/runtime/ids.ts'
import { evidence, explain } from '../fleet/why/explain.ts'
import { readSign } from '../fleet/why/signs.ts'
import { type Asked, isBad, OBJECTS_READ, objectsOf, PLACEMENTS_READ, placementsOf, toWhyPlacement, type WhyDeps } from './why-facts.ts'

const NAMED_MAX = 5

export interface Elsewhere {
  evidence: WhyEvidence[]
  /** Other clusters with the same cause. */
  clusters: ReadonlySet<string>
  /** The service there. */
  bad: PlacementView[]
}

/** Only clusters and services that the caller may read. */
export async function elsewhereOf(deps: WhyDeps, id: ServiceId, cause: WhyCause, asked: Asked): Promise<Elsewhere> {
  const { cluster = '' } = asked
  const everywhere = { ...asked, cluster: undefined }
  const placements = (await placementsOf(deps, id, everywhere)).filter((one) => one.cluster !== cluster)
  const objects = (await objectsOf(deps, id, everywhere)).filter((one) => one.cluster !== cluster)
  const bad = placements.filter(isBad)
  const none = { sync: 'Synced', health: 'Healthy', reason: '', message: '', next: '', sinceMs: null }
  const others = explain({ service: none, placements: bad.map(toWhyPlacement), objects, clusterCount: placements.length, dependencies: [] })
  const same = others.find((one) => one.cause === cause.cause && one.object === cause.object)
  const alike = new Set(same === undefined ? [] : clustersWith(cause, objects, bad))
  const neighbours = await neighboursOf(deps, id, cause, asked)
  return {
    evidence: [...spreadText(alike, placements), ...neighbourText(neighbours, cluster)].map((text) => evidence('fleet', text, null)),
    clusters: alike,
    bad: bad.filter((one) => alike.has(one.cluster)),
  }
}

function clustersWith(cause: WhyCause, objects: Awaited<ReturnType<typeof objectsOf>>, bad: readonly PlacementView[]): string[] {
  if (cause.object === null) return bad.map(({ cluster }) => cluster)
  return objects.filter((one) => one.name === cause.object && readSign(one)?.sign.cause === cause.cause).map(({ cluster }) => cluster)
}

function spreadText(alike: ReadonlySet<string>, { length }: readonly PlacementView[]): string[] {
  if (length === 0) return []
  // The worst clusters come first: of a full page it is not known how many follow.
  const others = `${length < PLACEMENTS_READ - 1 ? '' : 'the '}${countText(length, 'other cluster')}${length < PLACEMENTS_READ - 1 ? '' : ' in the worst state'}`
  if (alike.size === 0) return [`not in ${others} with the service: this cluster is more likely the cause than the revision`]
  const text = `the same in ${alike.size} of ${others} (${namesText(alike)})`
  return [alike.size === length ? `${text}: the revision is more likely the cause than this cluster` : text]
}

/** Other services in the same cluster with the same cause. */
async function neighboursOf(
  { store }: WhyDeps,
  id: ServiceId,
  { cause }: WhyCause,
  { cluster, scope, signal }: Asked,
): Promise<ReadonlySet<string>> {
  const query = {
    cluster,
    scope,
    health: ['Degraded', 'Missing', 'Progressing'],
    sort: 'health',
    limit: OBJECTS_READ,
    after: undefined,
  } as const
  const { items } = await store.queries.answer({ kind: 'objects', query }, signal)
  const services = new Set<string>()
  for (const { id: of, status } of items)
    if (serviceKey(of) !== serviceKey(id) && readSign(status)?.sign.cause === cause) services.add(serviceKey(of))
  return services
}

const neighbourText = (services: ReadonlySet<string>, cluster: string): string[] =>
  services.size === 0 ? [] : [`the same cause in ${countText(services.size, 'other service')} in ${cluster} (${namesText(services)})`]

const countText = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`

function namesText(names: ReadonlySet<string>): string {
  const shown = [...names].sort()
  return `${shown.slice(0, NAMED_MAX).join(', ')}${shown.length > NAMED_MAX ? ' and more' : ''}`
}
