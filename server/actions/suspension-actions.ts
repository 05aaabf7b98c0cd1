// Orders suspensions and lifts them: reads what a request names, writes what it orders, and says so in events.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { LabelSelector } from '../../shared/model/labels.ts'
import { DEFAULT_PROJECT } from '../../shared/model/resources.ts'
import { type ScopeRequest, type SuspendAnswer, type SuspendedScope, scopeText } from '../../shared/model/suspension.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { fleetEvent, type NewEvent, type SaidEvent } from '../fleet/fleet-event.ts'
import type { Scope } from '../fleet/rights.ts'
import { type OrderedSuspension, overlaps, suspensionKey, suspensionView } from '../fleet/suspensions.ts'
import { listSuspensions } from '../ingest/suspension-rows.ts'
import { news } from '../messages/event-messages.ts'
import type { Store } from '../store/store.ts'

export interface SuspensionsDeps {
  store: Pick<Store, 'listResources' | 'getResource' | 'clusterByName' | 'applyResource' | 'deleteResource' | 'appendEvents'>
  clock: Pick<Clock, 'nowMs'>
  rights: SuspensionRights
}

/** Services and clusters that the caller may suspend and resume. */
export interface SuspensionRights {
  /** Services, for those that are chosen by a selector. */
  scope: Scope
  /** Throws for a suspension that the caller may not order, before anything is looked up. */
  require(scope: SuspendedScope): Promise<void>
  /** Whether the cluster of a suspension exists for the caller. */
  knows(scope: SuspendedScope): Promise<boolean>
  /** Those of these that the caller may read. */
  seen<T extends SuspendedScope>(all: readonly T[]): Promise<T[]>
}

const LIST_LIMIT = 500

type Ordered = ScopeRequest & { selector: LabelSelector | undefined }
type Doing = 'suspend' | 'resume'

/** SU6. Throws `bad_request` for a request that names nothing, and `not_found` for names that do not exist. */
export async function suspend(deps: SuspensionsDeps, asked: Ordered, why: string, by: string): Promise<SuspendAnswer> {
  const { store, clock } = deps
  const scopes = await readScopes(deps, asked, 'suspend')
  const nowMs = clock.nowMs()
  const known = new Map((await listSuspensions(store)).map((one) => [scopeText(one), one]))
  const results: SuspendAnswer['results'] = []
  const events: NewEvent[] = []
  for (const scope of scopes) {
    const held = known.get(scopeText(scope))
    const ordered: OrderedSuspension = held ?? { ...scope, by, why, sinceMs: nowMs }
    results.push({ ...suspensionView(ordered), action: held === undefined ? 'suspended' : 'unchanged' })
    if (held !== undefined || asked.dryRun === true) continue
    await store.applyResource(suspensionKey(scope), { labels: {}, spec: canonicalJson({ by, why, sinceMs: nowMs }), nowMs })
    events.push(eventOf(nowMs, news('Suspended', { scope: scopeText(scope), by, why }), scope))
  }
  if (events.length > 0) await store.appendEvents(events)
  return { dryRun: asked.dryRun === true, results, remaining: [] }
}

/** SU7. As `suspend`; what is not suspended is `unchanged`. */
export async function resume(deps: SuspensionsDeps, asked: Ordered, why: string | undefined, by: string): Promise<SuspendAnswer> {
  const { store, clock } = deps
  const scopes = await readScopes(deps, asked, 'resume')
  const nowMs = clock.nowMs()
  const all = await listSuspensions(store)
  const known = new Map(all.map((one) => [scopeText(one), one]))
  const results: SuspendAnswer['results'] = []
  const events: NewEvent[] = []
  for (const scope of scopes) {
    const held = known.get(scopeText(scope))
    if (held === undefined) {
      results.push({ ...suspensionView({ ...scope, by, why: why ?? '', sinceMs: nowMs }), action: 'unchanged' })
      continue
    }
    results.push({ ...suspensionView(held), action: 'resumed' })
    if (asked.dryRun === true || !(await store.deleteResource(suspensionKey(scope)))) continue
    const named = { scope: scopeText(scope), by }
    events.push(eventOf(nowMs, why === undefined ? news('Resumed', named) : news('Resumed.why', { ...named, why }), scope))
  }
  if (events.length > 0) await store.appendEvents(events)
  const lifted = new Set(scopes.map(scopeText))
  const remaining = all.filter((one) => !lifted.has(scopeText(one)) && scopes.some((scope) => overlaps(one, scope)))
  return { dryRun: asked.dryRun === true, results, remaining: (await deps.rights.seen(remaining)).map(suspensionView) }
}

const eventOf = (nowMs: number, said: SaidEvent, { service, cluster }: SuspendedScope): NewEvent =>
  fleetEvent(nowMs, said, {
    ...(service === null ? {} : { service }),
    ...(cluster === null ? {} : { cluster }),
  })

async function readScopes(deps: SuspensionsDeps, asked: Ordered, doing: Doing): Promise<SuspendedScope[]> {
  const { all = false, clusters = [], services = [], selector } = asked
  const ofServices = services.length > 0 || selector !== undefined
  if (all ? ofServices : !ofServices && clusters.length === 0)
    throw new AppError('bad_request', {
      doing,
      detail: all ? 'all cannot be combined with services or a selector' : 'expected services, a selector, clusters or all',
    })
  const found = ofServices ? await servicesOf(deps, asked, doing) : [null]
  const places = clusters.length === 0 ? [null] : [...new Set(clusters)]
  const scopes = found.flatMap((service) => places.map((cluster): SuspendedScope => ({ service, cluster })))
  for (const scope of scopes) await deps.rights.require(scope)
  // A service or cluster that does not exist any more may still be suspended.
  if (doing === 'suspend')
    for (const name of clusters)
      if ((await deps.store.clusterByName(name)) === null || !(await isKnown(deps, scopes, name)))
        throw new AppError('not_found', {
          doing,
          detail: `cluster ${name} does not exist`,
          remedy: 'List them with `skerry get clusters`.',
        })
  return scopes
}

/** AZ3: a caller who may read only services learns of no cluster that has none of them. */
async function isKnown({ rights }: SuspensionsDeps, scopes: readonly SuspendedScope[], name: string): Promise<boolean> {
  for (const scope of scopes) if (scope.cluster === name && (await rights.knows(scope))) return true
  return false
}

async function servicesOf({ store, rights }: SuspensionsDeps, asked: Ordered, doing: Doing): Promise<SuspendedScope['service'][]> {
  const { project, services = [], selector } = asked
  const named = [...new Set(services)].map((service) => ({ project: project ?? DEFAULT_PROJECT, service }))
  if (doing === 'suspend')
    for (const { project: of, service } of named) {
      await rights.require({ service: { project: of, service }, cluster: asked.clusters?.[0] ?? null })
      if ((await store.getResource({ kind: 'Service', project: of, name: service })) === null)
        throw new AppError('not_found', {
          ...{ doing, detail: `service ${service} does not exist in project ${of}`, remedy: 'List them with `skerry get services -A`.' },
        })
    }
  if (selector === undefined) return named
  const matching: SuspendedScope['service'][] = []
  let after: string | undefined
  do {
    const of = project === undefined ? {} : { project }
    const page = await store.listResources('Service', {
      ...of,
      selector,
      scope: rights.scope,
      limit: LIST_LIMIT,
      ...(after === undefined ? {} : { after }),
    })
    for (const { project, name } of page.items) matching.push({ project, service: name })
    after = page.next ?? undefined
  } while (after !== undefined)
  if (matching.length === 0)
    throw new AppError('not_found', {
      doing,
      detail: 'no service matches these labels',
      remedy: '`skerry get services -A -o wide` shows labels.',
    })
  return [...named, ...matching.filter((one) => !named.some((other) => other.project === one?.project && other.service === one?.service))]
}
