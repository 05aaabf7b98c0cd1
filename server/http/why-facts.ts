// Facts for an explanation: placements and objects of a service that are not as they should be, and what changed
// before.

import { HEALTH_WORDS } from '../../shared/kube/health-object.ts'
import { refText } from '../../shared/kube/object.ts'
import { commitText } from '../../shared/model/commits.ts'
import { shortRevision } from '../../shared/model/revision-text.ts'
import { driftStatusSchema, SYNC_WORDS } from '../../shared/model/status.ts'
import type { PlacementView } from '../../shared/model/views.ts'
import type { WhyEvidence, WhyView } from '../../shared/model/why.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { type Scope, withoutClusters } from '../fleet/rights.ts'
import { evidence, type WhyObject, type WhyPlacement } from '../fleet/why/explain.ts'
import type { ObjectFacts } from '../store/queries/fleet-queries.ts'
import type { AdminDeps } from './deps.ts'
import { placementsPage, withAuthors } from './fleet-query-routes.ts'

/** Placements and objects that are looked at. */
export const PLACEMENTS_READ = 200
export const OBJECTS_READ = 300
const EVENTS_READ = 200
const CHANGES_SHOWN = 8
/** A change this long before the trouble may be its cause. */
const BEFORE_MS = 2 * 3_600_000

const NOT_WELL = HEALTH_WORDS.filter((word) => word !== 'Healthy' && word !== 'Suspended')
const NOT_SYNCED = SYNC_WORDS.filter((word) => word !== 'Synced')

export type WhyDeps = Pick<AdminDeps, 'store' | 'clock'>

export interface Asked {
  cluster: string | undefined
  scope: Scope
  signal: AbortSignal
  /** Services whose dependencies led here. */
  above: readonly string[]
  /** Dependencies that were looked at for this answer, by key. */
  read: Map<string, Promise<WhyView>>
}

export const isBad = ({ sync, health }: Pick<PlacementView, 'sync' | 'health'>): boolean =>
  sync !== 'Synced' || NOT_WELL.some((word) => word === health)
export const toWhyPlacement = ({ liveness, ...one }: PlacementView): WhyPlacement => ({ ...one, liveness: liveness.word })

/** The worst first. */
export async function placementsOf({ store, clock }: WhyDeps, id: ServiceId, { cluster, scope, signal }: Asked): Promise<PlacementView[]> {
  const clusters = cluster === undefined ? {} : { cluster }
  const page = await placementsPage({ store, clock }, { ...id, ...clusters, sort: 'health' }, scope, { limit: PLACEMENTS_READ }, signal)
  return withAuthors(store, page.items)
}

/** Those with a bad health, and those that are not as Git says. */
export async function objectsOf({ store }: Pick<WhyDeps, 'store'>, id: ServiceId, { cluster, scope, signal }: Asked): Promise<WhyObject[]> {
  const clusters = cluster === undefined ? {} : { cluster }
  const read = (filter: { health?: typeof NOT_WELL; sync?: typeof NOT_SYNCED }) =>
    store.queries.answer(
      { kind: 'objects', query: { ...id, ...clusters, ...filter, scope, sort: 'health', limit: OBJECTS_READ, after: undefined } },
      signal,
    )
  const [unwell, unsynced] = [await read({ health: NOT_WELL }), await read({ sync: NOT_SYNCED })]
  const found = new Map<string, WhyObject>()
  for (const facts of [...unwell.items, ...unsynced.items]) found.set(`${facts.cluster.name} ${refText(facts.ref)}`, objectOf(facts))
  return [...found.values()]
}

function objectOf({ cluster, ref, status, drift }: ObjectFacts): WhyObject {
  const { sync, health, reason, message, sinceMs } = status
  const known = drift === null ? undefined : driftStatusSchema.safeParse(drift).data
  const driftBy = known === undefined || known.healedMs !== undefined ? null : known.manager
  return { cluster: cluster.name, name: refText(ref), sync, health, reason, message, sinceMs, driftBy }
}

/** Recent changes: revisions with their authors, actions of people, corrections of drift. */
export async function changesOf(
  { store, clock }: WhyDeps,
  { project, service }: ServiceId,
  bad: readonly PlacementView[],
  asked: Asked,
  /** Clusters beside `asked.cluster` that have the same trouble. */
  alike: ReadonlySet<string> = NONE,
): Promise<WhyEvidence[]> {
  const sinceMs = Math.min(...bad.flatMap((one) => one.sinceMs ?? []), clock.nowMs())
  const applied = bad.flatMap(({ cluster, applied: one }) => (one === null ? [] : [{ cluster, ...one }])).sort((a, b) => b.atMs - a.atMs)
  const [newest] = applied
  const found: WhyEvidence[] = []
  if (newest !== undefined && newest.atMs >= sinceMs - BEFORE_MS) {
    const by = commitText(newest)
    found.push(
      evidence(
        'change',
        `commit ${shortRevision(newest.commit)}${by === null ? '' : `: ${by}`} was applied in ${newest.cluster}`,
        newest.atMs,
      ),
    )
  }
  const scope = withoutClusters(asked.scope)
  const events = await store.listEvents({ scope, project, service, limit: EVENTS_READ })
  for (const { atMs, reason, message, cluster } of events)
    if (
      CHANGES.has(reason) &&
      atMs >= sinceMs - BEFORE_MS &&
      (asked.cluster === undefined || cluster === null || cluster === asked.cluster || alike.has(cluster))
    )
      found.push(evidence('event', `${reason}${cluster === null ? '' : ` in ${cluster}`}: ${message}`, atMs))
  return found.sort((a, b) => (b.atMs ?? 0) - (a.atMs ?? 0)).slice(0, CHANGES_SHOWN)
}

const NONE: ReadonlySet<string> = new Set()
const CHANGES: ReadonlySet<string> = new Set([
  ...['RevisionPublished', 'DriftHealed', 'Drifted', 'Contested', 'Suspended', 'Resumed', 'Held', 'Released', 'Confirmed', 'SyncAllowed'],
  ...[
    'Pruned',
    'Recreated',
    'Restored',
    'HookFailed',
    'HookSucceeded',
    'RenderFailed',
    'RenderRecovered',
    'TakenOver',
    'FieldsTaken',
    'Failed',
  ],
])
