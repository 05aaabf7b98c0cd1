// Why a service is not as it should be: gathers the facts that are known on the server and lets server/fleet/why decide.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { refText } from '../../shared/kube/object.ts'
import { commitText } from '../../shared/model/commits.ts'
import { dependencyKeys } from '../../shared/model/dependencies.ts'
import { nameSchema, parseServiceKey, type ServiceId } from '../../shared/model/ids.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { shortRevision } from '../../shared/model/revision-text.ts'
import { driftStatusSchema, HEALTH_WORDS, SYNC_WORDS } from '../../shared/model/status.ts'
import type { PlacementView } from '../../shared/model/views.ts'
import { type WhyEvidence, type WhyView, whyViewSchema } from '../../shared/model/why.ts'
import { isEverywhere, type Scope, serviceInScope, withoutClusters } from '../fleet/rights.ts'
import { evidence, explain, type WhyFacts, type WhyObject } from '../fleet/why/explain.ts'
import type { ObjectFacts } from '../store/queries/fleet-queries.ts'
import type { AdminDeps } from './deps.ts'
import { placementsPage, withAuthors } from './fleet-query-routes.ts'
import { requirePlace } from './sight.ts'
import { keyNotFound } from './write-resource.ts'

/** Placements and objects that are looked at. */
const PLACEMENTS_READ = 200
const OBJECTS_READ = 300
/** Dependencies of dependencies. */
const DEPTH_MAX = 3
/** Dependencies that one answer looks at: a tenant chooses how many there are. */
export const DEPENDENCIES_READ = 50
const EVENTS_READ = 200
const CHANGES_SHOWN = 8
/** A change this long before the trouble may be its cause. */
const BEFORE_MS = 2 * 3_600_000

const NOT_WELL = HEALTH_WORDS.filter((word) => word !== 'Healthy' && word !== 'Suspended')
const NOT_SYNCED = SYNC_WORDS.filter((word) => word !== 'Synced')

type Deps = Pick<AdminDeps, 'store' | 'views' | 'clock' | 'authorizer' | 'principal'>

export function whyRoutes(deps: Deps) {
  const { authorizer, principal } = deps
  return new Elysia({ tags: ['fleet'] }).get(
    '/projects/:project/services/:name/why',
    async ({ params: { project, name }, query: { cluster }, request }) => {
      const scope = authorizer.scope(principal(request), 'read', 'Service')
      const id = { project, service: name }
      if (cluster !== undefined) await requirePlace(deps, principal(request), id, cluster)
      return whyOf(deps, id, { cluster, scope, signal: request.signal, above: [], read: new Map() })
    },
    {
      params: z.object({ project: nameSchema, name: nameSchema }),
      query: z.object({ cluster: nameSchema.optional() }),
      response: whyViewSchema,
      detail: { summary: 'Causes for which a service is not Synced and Healthy, the most likely one first, with evidence and next step' },
    },
  )
}

interface Asked {
  cluster: string | undefined
  scope: Scope
  signal: AbortSignal
  /** Services whose dependencies led here. */
  above: readonly string[]
  /** Dependencies that were looked at for this answer, by key. */
  read: Map<string, Promise<WhyView>>
}

async function whyOf(deps: Deps, id: ServiceId, asked: Asked): Promise<WhyView> {
  const { store, views } = deps
  const { project, service } = id
  const key = { kind: 'Service', project, name: service } as const
  const resource = await store.getResource(key)
  const [view] = resource === null ? [] : await views.resources([resource], asked.scope)
  if (resource === null || view?.kind !== 'Service') throw keyNotFound(key)
  const placements = await placementsOf(deps, id, asked)
  const objects = await objectsOf(deps, id, asked)
  const bad = placements.filter(({ sync, health }) => sync !== 'Synced' || NOT_WELL.some((word) => word === health))
  const facts: WhyFacts = {
    service: view.status,
    placements: bad.map(({ liveness, ...one }) => ({ ...one, liveness: liveness.word })),
    objects,
    clusterCount: isEverywhere(asked.scope) && asked.cluster === undefined ? view.status.clusters.total : placements.length,
    dependencies: bad.some(({ reason }) => reason === 'BlockedBy') ? await dependenciesOf(deps, id, resource.spec, asked) : [],
  }
  const worst = asked.cluster === undefined ? view.status : (placements[0] ?? view.status)
  const causes = explain(facts)
  return {
    ...{ project, service, cluster: asked.cluster ?? null },
    ...{ sync: worst.sync, health: worst.health, causes },
    changes: causes.length === 0 ? [] : await changesOf(deps, id, bad, asked),
    unknown: unknownOf(placements, facts, asked),
  }
}

async function placementsOf({ store, clock }: Deps, id: ServiceId, { cluster, scope, signal }: Asked): Promise<PlacementView[]> {
  const clusters = cluster === undefined ? {} : { cluster }
  const page = await placementsPage({ store, clock }, { ...id, ...clusters, sort: 'health' }, scope, { limit: PLACEMENTS_READ }, signal)
  return withAuthors(store, page.items)
}

/** Those with a bad health, and those that are not as Git says. */
async function objectsOf({ store }: Deps, id: ServiceId, { cluster, scope, signal }: Asked): Promise<WhyObject[]> {
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

/** Only those that the caller may read. */
async function dependenciesOf(deps: Deps, id: ServiceId, spec: string, asked: Asked): Promise<WhyFacts['dependencies']> {
  const above = [...asked.above, `${id.project}/${id.service}`]
  if (above.length > DEPTH_MAX) return []
  const keys = dependencyKeys(id.project, serviceSpecSchema.parse(JSON.parse(spec)).dependsOn)
  const found: Array<WhyFacts['dependencies'][number]> = []
  for (const key of keys) {
    const of = parseServiceKey(key)
    if (above.includes(key) || !serviceInScope(withoutClusters(asked.scope), of)) continue
    if ((await deps.store.getResource({ kind: 'Service', project: of.project, name: of.service })) === null) {
      const cause = {
        cause: 'DependencyMissing',
        summary: `the service ${key} does not exist`,
        object: null,
        clusters: { count: 0, first: [] },
      }
      found.push({
        key,
        state: 'missing',
        cause: { ...cause, evidence: [], next: `Create the service ${key}, or remove it from dependsOn.` },
      })
      continue
    }
    const reading = asked.read.get(key) ?? (asked.read.size < DEPENDENCIES_READ ? whyOf(deps, of, { ...asked, above }) : undefined)
    if (reading === undefined) break
    asked.read.set(key, reading)
    const { causes, sync, health } = await reading
    found.push({ key, state: `${sync}, ${health}`, cause: causes[0] ?? null })
  }
  return found
}

/** Recent changes: revisions with their authors, actions of people, corrections of drift. */
async function changesOf(
  { store, clock }: Deps,
  { project, service }: ServiceId,
  bad: readonly PlacementView[],
  asked: Asked,
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
      (asked.cluster === undefined || cluster === null || cluster === asked.cluster)
    )
      found.push(evidence('event', `${reason}${cluster === null ? '' : ` in ${cluster}`}: ${message}`, atMs))
  return found.sort((a, b) => (b.atMs ?? 0) - (a.atMs ?? 0)).slice(0, CHANGES_SHOWN)
}

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

function unknownOf(placements: readonly PlacementView[], { objects }: WhyFacts, { read }: Asked): string[] {
  const away = placements.filter(({ liveness }) => liveness.word !== 'Online').map(({ cluster }) => cluster)
  return [
    ...(away.length === 0
      ? []
      : [
          `${away.length === 1 ? 'cluster' : 'clusters'} ${away.slice(0, 5).join(', ')}: not online, the facts are those that were reported last`,
        ]),
    ...(placements.length < PLACEMENTS_READ ? [] : [`only the worst ${PLACEMENTS_READ} clusters were looked at`]),
    ...(read.size < DEPENDENCIES_READ ? [] : [`only ${DEPENDENCIES_READ} dependencies were looked at`]),
    ...(objects.length < OBJECTS_READ ? [] : [`only ${OBJECTS_READ} objects were looked at`]),
  ]
}
