// One service, from what the store holds to what its clusters shall have: render, plan, publish, record. Level-triggered: it depends on what is, never on
// what woke it, and done again it does nothing.

import { type ClusterId, type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import { type ServiceSpec, serviceSpecSchema, sourcesOf } from '../../shared/model/resources.ts'
import { revisionWords, shortRevision } from '../../shared/model/revision-text.ts'
import { serviceStatusSchema } from '../../shared/model/status.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { createPace } from '../../shared/runtime/pace.ts'
import { publishRevisions } from '../desired/publisher.ts'
import type { Shards } from '../desired/shards.ts'
import { fleetEvent, type NewEvent } from '../fleet/fleet-event.ts'
import { nameList } from '../fleet/placements-summary.ts'
import { type PlanInput, type PlannedPublish, planService, releaseSubject, type ServicePlan } from '../fleet/plan-service.ts'
import { waitsForSync } from '../fleet/sync-plan.ts'
import { type TargetCluster, targetsOf } from '../fleet/targeting.ts'
import { keptText } from '../fleet/unrendered.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { ClusterRecord, Confirmation, DesiredService, FailingClusters, RenderState, StoredResource } from '../store/records.ts'
import { readDependents } from '../store/service-dependencies.ts'
import type { Store } from '../store/store.ts'
import { findHandovers } from './find-handovers.ts'
import { judgeRelease } from './pending-release.ts'
import { clustersOf } from './publish-order.ts'
import { failingClusters, nextRenderState, sameFault, waitingState } from './render-state.ts'
import { type GoodRender, type Rendering, releaseDigest, variantsOf } from './rendering.ts'
import type { ServiceRenderer } from './service-render.ts'

export interface ServicePassDeps {
  store: Store
  content: ContentStore
  shards: Shards
  renderer: ServiceRenderer
  clock: Clock
  log: Logger
  /** What is known of those clusters; absent: nothing is waited for. */
  factsOf?(clusters: readonly ClusterId[]): Promise<ReadonlyMap<ClusterId, unknown>>
  /** The server stops: what fails from now on says nothing about the service. */
  stopping?: AbortSignal
  /** After a service's revisions were written to that many clusters, whose agents fetch them now. */
  onPublished?(clusters: number): void
}

export interface ServicePassOptions {
  /** Who deleted the service, while that is known. */
  deletedBy: string | null
}

export interface ServicePass {
  /** The content could not be read, for a reason that may pass by itself. */
  retry: boolean
  /** Facts of clusters have no part in what it renders to. */
  factless: boolean
  /** Looked at again by then: clusters that just joined have it not yet (FA6). Null: there are none. */
  againInMs: number | null
}

export async function passService(deps: ServicePassDeps, id: ServiceId, options: ServicePassOptions): Promise<ServicePass> {
  const service = await deps.store.getResource({ kind: 'Service', project: id.project, name: id.service })
  if (service === null) {
    deps.renderer.forget(id)
    return { retry: false, factless: true, againInMs: null }
  }
  const spec = serviceSpecSchema.parse(JSON.parse(service.spec))
  const clusters = await deps.store.listClusters()
  const current = await deps.store.desiredOfService(id)
  // Of a service that goes nothing is published any more.
  const asked = service.deletingMs === null ? clustersOf(spec, clusters, current) : []
  const rendering: Rendering = service.deletingMs === null ? await deps.renderer.render(id, spec, asked) : { kind: 'no_content' }
  if (deps.stopping?.aborted === true && isFailing(rendering)) return NOTHING_DONE
  const before = await deps.store.renderState(id)
  const questions = new Map((await deps.store.confirmationsOfService(id)).map((question) => [question.subject, question]))
  const held = questions.get(releaseSubject(id))
  const { generation } = service
  const release = { id, spec, generation, before, rendering, clusters: asked, current, held }
  const question = await judgeRelease(deps, release)
  const holding = new Set(current.flatMap(({ clusterId, doc }) => (doc === null || doc.removal !== undefined ? [] : [clusterId])))
  const failing = failingClusters(rendering, asked, (clusterId) => holding.has(clusterId))
  await recordRender(deps, id, { before, generation, rendering, failing, waits: question !== null }, clusters)
  const young = question === null ? await clustersWithoutFacts(deps, rendering, clusters, current) : new Set<ClusterId>()
  const seen: Seen = { rendering: question === null ? without(rendering, young) : forNow(rendering), clusters, current, questions }
  const input = await readPlanInput(deps, id, service, spec, seen, options)
  const plan = planService(input)
  if (question !== null && held?.token !== question.token) plan.open.push(question)
  if (question === null && held !== undefined && rendering.kind === 'good') plan.close.push(held.subject)
  await carryOut(deps, service, input, plan, seen.rendering)
  return { retry: mayPass(rendering), factless: isFactless(rendering), againInMs: young.size === 0 ? null : FACTS_AWAITED_MS }
}

const isFailing = (rendering: Rendering): boolean =>
  rendering.kind === 'failed' || (rendering.kind === 'good' && [...rendering.clusters.values()].some(({ kind }) => kind === 'failed'))
const NOTHING_DONE: ServicePass = { retry: false, factless: false, againInMs: null }

/** SO21: what could not be had of another side, or not be read of the disk, is tried again. */
const PASSING: readonly string[] = ['git_failed', 'git_unreachable', 'source_unreachable', 'credential_missing', 'credential_refused']
function mayPass(rendering: Rendering): boolean {
  if (rendering.kind === 'failed') return PASSING.includes(rendering.error.code)
  return (
    rendering.kind === 'good' && [...rendering.clusters.values()].some((one) => one.kind === 'failed' && PASSING.includes(one.error.code))
  )
}

interface Rendered {
  before: RenderState
  generation: number
  rendering: Rendering
  failing: FailingClusters[]
  waits: boolean
}

async function recordRender(
  { store, clock, log }: ServicePassDeps,
  id: ServiceId,
  { before, generation, rendering, failing, waits }: Rendered,
  clusters: readonly TargetCluster[],
): Promise<void> {
  const nowMs = clock.nowMs()
  const names = new Map(clusters.map(({ clusterId, name }) => [clusterId, name]))
  const nameOf = (clusterId: ClusterId) => names.get(clusterId) ?? clusterId
  const after = waits ? waitingState(before, generation) : nextRenderState(before, generation, rendering, nowMs, nameOf, failing)
  if (after === before) return
  await store.setRenderState(id, after, waits ? [] : variantsOf(rendering))
  const events = renderEvents(before, after, rendering, nowMs, id)
  if (events.length > 0) await store.appendEvents(events)
  for (const { reason, message } of events) log.info('render changed its state', { service: serviceKey(id), reason, detail: message })
}

function renderEvents(before: RenderState, after: RenderState, rendering: Rendering, nowMs: number, service: ServiceId): NewEvent[] {
  if (after.error !== null) {
    if (sameFault(before.error, after.error)) return []
    const [first] = after.error.problems
    const where = first === undefined ? '' : `: ${first.path}: ${first.message}`
    return [
      fleetEvent(nowMs, 'Warning', 'RenderFailed', `${after.error.message}${where}; ${keptText(before.digest, after.error)}`, { service }),
    ]
  }
  const events: NewEvent[] = []
  if (before.error !== null)
    events.push(
      fleetEvent(
        nowMs,
        'Normal',
        'RenderRecovered',
        `renders ${before.digest === null ? 'now' : 'again'} at ${revisionWords(after.commit ?? '', COMMIT_LENGTH)}`,
        { service },
      ),
    )
  const warnings = rendering.kind === 'good' ? rendering.warnings : []
  for (const { path, message } of warnings.slice(0, WARNINGS_TOLD_MAX))
    events.push(fleetEvent(nowMs, 'Warning', 'ManifestWarning', `${path}: ${message}`, { service }))
  return events
}

const WARNINGS_TOLD_MAX = 10

/** A cluster that just joined says what it serves within seconds. */
const FACTS_AWAITED_MS = 60_000

/** FA6: what is made for a cluster of which nothing is known would be changed by its first word, and what that drops would wait for a person. */
async function clustersWithoutFacts(
  { clock, factsOf }: ServicePassDeps,
  rendering: Rendering,
  clusters: readonly ClusterRecord[],
  current: readonly DesiredService[],
): Promise<ReadonlySet<ClusterId>> {
  const held = new Set(current.flatMap(({ clusterId, doc }) => (doc === null ? [] : [clusterId])))
  const sinceMs = clock.nowMs() - FACTS_AWAITED_MS
  const young = clusters.filter(({ clusterId, joinedMs }) => joinedMs > sinceMs && !held.has(clusterId))
  const asking = young.flatMap(({ clusterId }) => (renderOf(rendering, clusterId)?.factsKey === undefined ? [] : [clusterId]))
  if (asking.length === 0 || factsOf === undefined) return new Set()
  const known = await factsOf(asking)
  return new Set(asking.filter((clusterId) => !known.has(clusterId)))
}

const without = (rendering: Rendering, some: ReadonlySet<ClusterId>): Rendering =>
  rendering.kind !== 'good' || some.size === 0
    ? rendering
    : { ...rendering, clusters: new Map([...rendering.clusters].filter(([clusterId]) => !some.has(clusterId))) }

/** Of what failed nobody knows where it would have looked. */
function isFactless(rendering: Rendering): boolean {
  if (rendering.kind !== 'good') return false
  const renders = [...rendering.clusters.values(), ...(rendering.forNobody === null ? [] : [rendering.forNobody])]
  return renders.length > 0 && renders.every((render) => render.kind === 'rendered' && render.factsKey === undefined)
}

interface Seen {
  /** As it may be published now. */
  rendering: Rendering
  clusters: readonly TargetCluster[]
  current: readonly DesiredService[]
  questions: ReadonlyMap<string, Confirmation>
}

/** RL3: while it waits, every cluster keeps what it has, and none joins. */
const forNow = (rendering: Rendering): Rendering => (rendering.kind === 'good' ? { ...rendering, clusters: new Map() } : rendering)

async function readPlanInput(
  deps: ServicePassDeps,
  id: ServiceId,
  service: StoredResource,
  spec: ServiceSpec,
  { rendering, clusters, current, questions }: Seen,
  { deletedBy }: ServicePassOptions,
): Promise<PlanInput> {
  const { store, clock } = deps
  // Only for removal orders: otherwise every commit would read what every cluster reports.
  const ordered = current.some(({ doc }) => doc?.removal !== undefined)
  const reports = ordered ? await store.listStatus({ kind: 'service', key: serviceKey(id) }) : []
  const removed = new Map<ClusterId, number>()
  for (const { clusterId, doc } of reports) {
    const status = serviceStatusSchema.safeParse(doc).data
    if (status?.removed === true && status.removedOrderMs !== undefined) removed.set(clusterId, status.removedOrderMs)
  }
  const deleting = service.deletingMs !== null
  const rendered = rendering.kind === 'good' && !deleting ? rendering : null
  const renderIn = (clusterId: ClusterId) => renderOf(rendering, clusterId)
  const targets = new Set(deleting ? [] : targetsOf(spec.targets, clusters).map(({ clusterId }) => clusterId))
  const isFrozen = rendered === null && !deleting
  return {
    id,
    spec,
    deleting,
    deletedBy,
    ...(isFrozen ? {} : { handover: await findHandovers(deps, id, current, clusters, rendered && renderIn, targets) }),
    render: rendering.kind === 'good' ? { commit: rendering.release.commit, in: renderIn } : null,
    clusters,
    current,
    removed,
    confirmations: questions,
    nowMs: clock.nowMs(),
  }
}

const NONE: ReadonlyMap<string, string> = new Map()

async function carryOut(
  deps: ServicePassDeps,
  service: StoredResource,
  input: PlanInput,
  plan: ServicePlan,
  rendering: Rendering,
): Promise<void> {
  const { store, clock } = deps
  const { id } = input
  const nowMs = clock.nowMs()
  const events = await publishPlanned(deps, input, plan.publishes, rendering, nowMs)
  for (const planned of plan.open) {
    const dependents = planned.why.includes(DEPENDENTS) ? [] : await readDependents(store, id) // a question that is asked of fewer keeps its reason
    const why = `${planned.why}${dependentsText(dependents)}`
    const opened = await store.openConfirmation({ ...planned, why, createdMs: nowMs })
    const message = `${opened.why}; \`skerry confirm ${opened.id}\` shows the names and asks`
    events.push(fleetEvent(nowMs, 'Warning', 'ConfirmationNeeded', message, { service: id }))
  }
  const pace = createPace(clock)
  for (const subject of plan.close) {
    await store.closeConfirmation(subject)
    await pace()
  }
  // Not if it was taken back while this pass ran: whoever did that asked for another pass.
  if (plan.finished && (await store.finishDeletion(service, service.version))) {
    deps.renderer.forget(id)
    events.push(fleetEvent(nowMs, 'Normal', 'ServiceDeleted', 'it is gone from every cluster', { service: id }))
  }
  for (let start = 0; start < events.length; start += EVENTS_A_TIME) {
    await store.appendEvents(events.slice(start, start + EVENTS_A_TIME))
    await pace()
  }
}

const DEPENDENTS = '; what depends on it stays and begins no new revision without it: '
/** DE4 */
const dependentsText = (services: readonly ServiceId[]): string =>
  services.length === 0 ? '' : `${DEPENDENTS}${nameList(services.map(serviceKey))}`

/** A removal from ten thousand clusters is as many events. */
const EVENTS_A_TIME = 200

/** Answers what there is to tell of it. */
async function publishPlanned(
  deps: ServicePassDeps,
  { id, spec }: Pick<PlanInput, 'id' | 'spec'>,
  publishes: readonly PlannedPublish[],
  rendering: Rendering,
  nowMs: number,
): Promise<NewEvent[]> {
  const wanted = publishes.map(({ clusterId, doc, objects, placedBy, factsKey, renderedFrom }) => {
    const rendered = renderOf(rendering, clusterId)?.objects ?? NONE
    const notes = { placedBy, ...(factsKey === undefined ? {} : { factsKey }), ...(renderedFrom === undefined ? {} : { renderedFrom }) }
    return { ...id, clusterId, doc, ...notes, objects: objects === 'rendered' ? rendered : NONE }
  })
  const changed = await publishRevisions({ ...deps, pace: createPace(deps.clock) }, wanted)
  const removed = publishes.filter(({ what }) => what === 'removed')
  await Promise.all(removed.map(({ clusterId }) => deps.store.deleteStatusOfService(clusterId, id))) // they are committed together
  const events: NewEvent[] = []
  const revised: string[] = []
  const brought = new Set<GoodRender>()
  for (const [index, { clusterId, cluster, doc, what }] of publishes.entries()) {
    if (changed[index] !== true) continue
    const about = { service: id, cluster }
    if (what === 'placed' || what === 'updated') {
      revised.push(cluster)
      const render = renderOf(rendering, clusterId)
      if (render !== null) brought.add(render)
    } else if (what === 'removed')
      events.push(fleetEvent(nowMs, 'Normal', 'ServiceRemoved', `nothing of it is left to manage in ${cluster}`, about))
    else if (doc?.removal !== undefined) {
      const { policy, by, why } = doc.removal
      events.push(fleetEvent(nowMs, 'Normal', 'RemovalOrdered', `${policy} in ${cluster}, by ${by}: ${why}`, about))
    }
  }
  if (revised.length > 0) deps.onPublished?.(revised.length)
  const waiting = publishes.some(({ doc }) => doc !== null && waitsForSync(doc))
  if (revised.length > 0 && rendering.kind === 'good') {
    const { commit } = rendering.release
    const digest = releaseDigest([...brought])
    const most = Math.max(...[...brought].map(({ count, hooks }) => count - hooks))
    const hooks = Math.max(...[...brought].map((render) => render.hooks))
    const count = new Set([...brought].map((render) => render.digest)).size
    const variants = count === 1 ? '' : ` at most, in ${count} variants,`
    deps.log.info('revision published', { service: serviceKey(id), commit, digest, objects: most, clusters: revised.length })
    const message = `${countText(most, 'object')}${hooks === 0 ? '' : ` and ${countText(hooks, 'hook')}`}${variants} of ${releaseText(rendering, spec)} to ${clusterNames(revised)}${waiting ? `; it waits for \`skerry sync ${id.service} -p ${id.project}\`` : ''}`
    events.push(fleetEvent(nowMs, 'Normal', 'RevisionPublished', message, { service: id }))
  }
  return events
}

/** Null: nothing of it can be published there. */
function renderOf(rendering: Rendering, clusterId: ClusterId): GoodRender | null {
  const render = rendering.kind === 'good' ? rendering.clusters.get(clusterId) : undefined
  return render?.kind === 'rendered' ? render : null
}

const countText = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
const COMMIT_LENGTH = 12
/** Of several sources, what of each but the first. */
function releaseText({ release }: Extract<Rendering, { kind: 'good' }>, spec: ServiceSpec): string {
  const [first, ...others] = sourcesOf(spec)
  const names = new Set(
    others.flatMap(({ repository, chart }) => (chart === undefined && repository !== first?.repository ? [repository] : [])),
  )
  const more = [...names].flatMap((name) => {
    const revision = release.revisions[name]
    return revision === undefined ? [] : [`${name} at ${shortRevision(revision, COMMIT_LENGTH)}`]
  })
  return [revisionWords(release.commit, COMMIT_LENGTH), ...more].join(', ')
}
const clusterNames = (names: readonly string[]): string =>
  names.length <= 3 ? names.join(', ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more clusters`
