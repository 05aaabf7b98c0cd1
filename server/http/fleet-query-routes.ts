// Lists over the whole fleet: objects, services in clusters, clusters; any filter, any order, pages that follow each
// other exactly. They are looked for beside the event loop.
import { Elysia } from 'elysia'
import type { z } from 'zod'
import { type CommitNote, writtenByOf } from '../../shared/model/commits.ts'
import { API_VERSION, clusterSpecSchema } from '../../shared/model/resources.ts'
import { clusterStatusSchema, driftStatusSchema, serviceStatusSchema } from '../../shared/model/status.ts'
import { isSuspendedBy } from '../../shared/model/suspension.ts'
import {
  type ClusterView,
  clusterViewSchema,
  listOf,
  type ObjectView,
  objectViewSchema,
  type PlacementView,
  placementViewSchema,
} from '../../shared/model/views.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { serviceKey } from '../../shared/runtime/ids.ts'
import { createPace } from '../../shared/runtime/pace.ts'
import { livenessOf } from '../fleet/liveness.ts'
import { pruneSubject } from '../fleet/plan-service.ts'
import type { Confirmation } from '../fleet/records.ts'
import { type Scope, serviceInScope, withoutClusters } from '../fleet/rights.ts'
import { clusterStatusView, objectView, placementView } from '../fleet/status-view.ts'
import type { OrderedSuspension } from '../fleet/suspensions.ts'
import { type FailingService, keepingPlacement, unrenderedPlacement, withUnrenderedIn } from '../fleet/unrendered.ts'
import { listSuspensions } from '../ingest/suspension-rows.ts'
import type { ClusterFacts, ObjectFacts, PlacementFacts, PlacementQuery, UnrenderedFacts } from '../store/queries/fleet-queries.ts'
import { RecentMap } from '../store/recent-map.ts'
import { jsonSchema } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { readFailing } from './failing-services.ts'
import { clusterParameters, objectParameters, placementParameters, readParameters, readToken, writeToken } from './fleet-query.ts'
import { metadataOf } from './resource-metadata.ts'
import { seenSuspensions } from './sight.ts'

/** Open questions about pruning, for the placements that are there. */
const questionsOf = (store: AdminDeps['store'], rows: ReadonlyArray<PlacementFacts | UnrenderedFacts | null>) =>
  store.openConfirmationsFor(
    rows.flatMap((facts) => (facts !== null && 'desired' in facts ? [pruneSubject(facts.desired.clusterId, facts.desired)] : [])),
  )

/** A page of services in clusters. */
export async function placementsPage(
  { store, clock }: Pick<AdminDeps, 'store' | 'clock'>,
  asked: Omit<PlacementQuery, 'limit' | 'after' | 'scope'>,
  scope: Scope,
  { limit, continue: token }: { limit: number; continue?: string | undefined },
  signal: AbortSignal,
): Promise<{ items: PlacementView[]; continue: string | null }> {
  const after = readToken({ placements: asked }, asked.sort, token)
  const { items, next } = await store.queries.answer({ kind: 'placements', query: { ...asked, scope, limit, after } }, signal)
  const around = { questions: await questionsOf(store, items), suspensions: await listSuspensions(store), nowMs: clock.nowMs() }
  const views = await inTurns(items, clock, (facts) => toAnyPlacementView(facts, around))
  return { items: await withAuthors(store, views), continue: writeToken({ placements: asked }, next) }
}

/** Author and subject of the commits that a page names; most of them are the same. */
export async function withAuthors(store: Pick<AdminDeps['store'], 'commitsOf'>, views: readonly PlacementView[]): Promise<PlacementView[]> {
  const byProject = new Map<string, Set<string>>()
  for (const { project, desired, received, applied, healthy } of views) {
    const ids = byProject.get(project) ?? new Set()
    for (const one of [desired, received, applied, healthy]) if (one !== null) ids.add(one.commit)
    byProject.set(project, ids)
  }
  const notes = new Map<string, ReadonlyMap<string, CommitNote>>()
  for (const [project, ids] of byProject) if (ids.size > 0) notes.set(project, await store.commitsOf(project, [...ids]))
  return views.map((view) => {
    const by = <T extends { commit: string }>(one: T | null): T | null =>
      one === null ? null : { ...one, ...writtenByOf(notes.get(view.project)?.get(one.commit)) }
    return { ...view, desired: by(view.desired), received: by(view.received), applied: by(view.applied), healthy: by(view.healthy) }
  })
}

/** A page has up to 500 views, each of which is checked and serialized. */
async function inTurns<T, R>(items: readonly T[], clock: Clock, toView: (item: T) => R): Promise<R[]> {
  const pace = createPace(clock)
  const views: R[] = []
  for (const item of items) {
    views.push(toView(item))
    await pace()
  }
  return views
}

export function fleetQueryRoutes({ store, restore, clock, authorizer, principal }: AdminDeps) {
  const servicesOf = (request: Request) => authorizer.scope(principal(request), 'read', 'Service')
  return new Elysia({ tags: ['fleet'] })
    .get(
      '/objects',
      async ({ request }) => {
        const { limit, continue: token, labelSelector: labels, search: words, ...rest } = readParameters(objectParameters, request)
        const asked = { ...rest, labels, words }
        const after = readToken({ objects: asked }, asked.sort, token)
        const { items, next } = await store.queries.answer(
          { kind: 'objects', query: { ...asked, scope: servicesOf(request), limit, after } },
          request.signal,
        )
        const nowMs = clock.nowMs()
        const views = await inTurns(items, clock, (facts) => toObjectView(facts, nowMs))
        return { items: views, continue: writeToken({ objects: asked }, next) }
      },
      documented(objectParameters, objectViewSchema, 'Objects as their agents last reported them'),
    )
    .get(
      '/placements',
      async ({ request }) => {
        const { limit, continue: token, labelSelector: labels, search: words, ...rest } = readParameters(placementParameters, request)
        return placementsPage({ store, clock }, { ...rest, labels, words }, servicesOf(request), { limit, continue: token }, request.signal)
      },
      documented(placementParameters, placementViewSchema, 'Services in clusters, of the whole fleet'),
    )
    .get(
      '/clusters',
      async ({ request }) => {
        const { limit, continue: token, labelSelector: labels, search: words, ...rest } = readParameters(clusterParameters, request)
        const asked = { ...rest, labels, words }
        const after = readToken({ clusters: asked }, asked.sort, token)
        const services = servicesOf(request)
        const visible = authorizer.scope(principal(request), 'read', 'Cluster')
        const query = { ...asked, visible, services, limit, after, nowMs: clock.nowMs() }
        const { items, next } = await store.queries.answer({ kind: 'clusters', query }, request.signal)
        const restoreSinceMs = await restore.pendingSinceMs()
        const worst = items.map((item) => item.worst)
        const open = await questionsOf(store, worst)
        const failing = (await readFailing(store)).filter(({ id }) => serviceInScope(withoutClusters(services), id))
        const suspensions = await seenSuspensions(await listSuspensions(store), { services, clusters: visible }, store)
        const around = { questions: open, suspensions, nowMs: query.nowMs, restoreSinceMs, failing }
        return {
          items: await inTurns(items, clock, (facts) => toClusterView(facts, around)),
          continue: writeToken({ clusters: asked }, next),
        }
      },
      documented(clusterParameters, clusterViewSchema, 'List clusters'),
    )
}

function toObjectView({ cluster, id, ref, status, drift }: ObjectFacts, nowMs: number): ObjectView {
  const known = drift === null ? null : (driftStatusSchema.safeParse(drift).data ?? null)
  return objectView({ cluster, liveness: livenessOf(cluster, nowMs), id, ref, status, drift: known })
}

interface PlacementsAround {
  questions: ReadonlyMap<string, Confirmation>
  suspensions: readonly OrderedSuspension[]
  nowMs: number
}

function toPlacementView({ cluster, desired, status }: PlacementFacts, { questions, suspensions, nowMs }: PlacementsAround): PlacementView {
  return placementView({
    cluster,
    liveness: livenessOf(cluster, nowMs),
    desired,
    status: status === null ? null : (serviceStatusSchema.safeParse(status).data ?? null),
    confirmation: questions.get(pruneSubject(desired.clusterId, desired)) ?? null,
    suspensions: suspensions.filter((one) => isSuspendedBy(one, desired, cluster.name)),
  })
}

function toAnyPlacementView(facts: PlacementFacts | UnrenderedFacts, around: PlacementsAround): PlacementView {
  const { cluster, failed } = facts
  if (!('desired' in facts))
    return unrenderedPlacement(
      facts.id,
      { cluster: cluster.name, liveness: livenessOf(cluster, around.nowMs) },
      facts.failed.words,
      facts.failed.sinceMs,
    )
  const view = toPlacementView(facts, around)
  return failed === undefined ? view : keepingPlacement(view, failed.words, failed.sinceMs)
}

/** Most clusters have the same. Values are shared and never changed. */
const SPECS_MAX = 2_000
const parsedSpecs = new RecentMap<ClusterView['spec']>(SPECS_MAX)
function parseClusterSpec(text: string): ClusterView['spec'] {
  const held = parsedSpecs.get(text)
  if (held !== undefined) return held
  const spec = clusterSpecSchema.parse(JSON.parse(text))
  parsedSpecs.set(text, spec)
  return spec
}

interface Around extends PlacementsAround {
  restoreSinceMs: number | null
  failing: readonly FailingService[]
}

function toClusterView({ resource, cluster, report, services, counts, worst, sinceMs }: ClusterFacts, around: Around): ClusterView {
  const { nowMs, restoreSinceMs, failing, suspensions } = around
  const liveness = livenessOf(cluster, nowMs)
  const state = worst === null ? null : toPlacementView(worst, around)
  const placements = {
    counts,
    worst: state === null ? null : { place: serviceKey(state), state },
    away: liveness.word === 'Online' ? { count: 0, places: [] } : { count: services.length, places: services },
    sinceMs,
  }
  const known = report === null ? null : (clusterStatusSchema.safeParse(report).data ?? null)
  return {
    apiVersion: API_VERSION,
    kind: 'Cluster',
    metadata: metadataOf(resource),
    spec: parseClusterSpec(resource.spec),
    status: clusterStatusView({
      cluster,
      liveness,
      report: known,
      placements: withUnrenderedIn(placements, { cluster: cluster.name, labels: cluster.labels, liveness }, failing, services),
      restoreSinceMs,
      suspensions: suspensions.filter((one) => one.cluster === null || one.cluster === cluster.name),
    }),
  }
}

/**
 * For the OpenAPI document alone: parameters are read by hand, so that wrong ones are reported with the nearest valid
 * name, and the server's own answers are not parsed again.
 */
function documented(parameters: z.ZodObject, view: z.ZodType, summary: string) {
  const { properties = {} } = jsonSchema(parameters) as { properties?: Record<string, object> }
  return {
    detail: {
      summary,
      parameters: Object.entries(properties).map(([name, schema]) => ({ in: 'query' as const, name, required: false, schema })),
      responses: pageResponses(view),
    },
  }
}

/** In place of a schema by which Elysia would check each of 500 views: a third of what the page costs. */
export const pageResponses = (view: z.ZodType) => ({
  '200': {
    description: 'Done. A page can be short or empty although more pages follow, because the work of a request is limited',
    content: { 'application/json': { schema: jsonSchema(listOf(view), 'output') } },
  },
})
