// One service, from what the store holds to what its clusters shall have: render, plan, publish, record. Level-triggered: it depends on what is, never on
// what woke it, and done again it does nothing.

import { type ClusterId, type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import { type ServiceSpec, serviceSpecSchema } from '../../shared/model/resources.ts'
import { serviceStatusSchema } from '../../shared/model/status.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { createPace } from '../../shared/runtime/pace.ts'
import { type Publication, publishRevisions } from '../desired/publisher.ts'
import type { Shards } from '../desired/shards.ts'
import { fleetEvent, type NewEvent } from '../fleet/fleet-event.ts'
import { nameList } from '../fleet/placements-summary.ts'
import { type PlanInput, type PlannedPublish, planService, releaseSubject, type ServicePlan } from '../fleet/plan-service.ts'
import { renderedFor, type TargetCluster, targetsOf } from '../fleet/targeting.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { Confirmation, DesiredService, FailingClusters, RenderState, StoredResource } from '../store/records.ts'
import { readDependents } from '../store/service-dependencies.ts'
import type { Store } from '../store/store.ts'
import { findHandovers } from './find-handovers.ts'
import { findLosses } from './find-losses.ts'
import type { HealthRuleRows } from './health-rule-rows.ts'
import { judgeRelease } from './pending-release.ts'
import type { Publisher } from './publish-group.ts'
import { publishEvents, renderEvents } from './release-events.ts'
import { failuresOf, mayPass, type Rendering, renderOf, variantsOf } from './render/rendering.ts'
import type { ServiceRenderer } from './render/service-render.ts'
import { failingClusters, nextRenderState, waitingState } from './render-state.ts'
import { clustersWithoutFacts, NOBODY_YOUNG, withoutClusters } from './young-clusters.ts'

export interface ServicePassDeps {
  store: Store
  content: ContentStore
  shards: Shards
  renderer: ServiceRenderer
  /** Brings a project's health rules to clusters before its services; absent where a test has none. */
  rules?: Pick<HealthRuleRows, 'coming'>
  clock: Clock
  log: Logger
  /** What is known of those clusters; absent: nothing is waited for. */
  factsOf?(clusters: readonly ClusterId[]): Promise<ReadonlyMap<ClusterId, unknown>>
  /** The server stops: what fails from now on says nothing about the service. */
  stopping?: AbortSignal
  /** With those of other passes; absent: by itself. */
  publish?(publications: readonly Publication[], publisher: Publisher): Promise<boolean[]>
  /** After a service's revisions were written to that many clusters, whose agents fetch them now. */
  onPublished?(clusters: number): void
}

export interface ServicePassOptions {
  /** Who deleted the service, while that is known. */
  deletedBy: string | null
  /** Gives its hand to another pass, while it waits for the others of its group. */
  release?(): void
  /** RM1: by cluster, names that a person confirmed with the change that this pass follows; absent: none. */
  dataConfirmed?: ReadonlyMap<ClusterId, readonly string[]>
}

export interface ServicePass {
  /** It failed for a reason that may pass by itself (SO21); `afterMs`: the other side asks for so much time. Null: it did not. */
  retry: { afterMs?: number } | null
  /** Facts of clusters have no part in what it renders to. */
  factless: boolean
  /** To be looked at again then, though nothing changed (FA6, IC14). */
  againAtMs: number | null
}

/** One look at a service: renders it for its clusters, publishes what is new, removes what is to go, and notes errors and questions in the store. Answers when it is to be looked at again. */
export async function passService(deps: ServicePassDeps, id: ServiceId, options: ServicePassOptions): Promise<ServicePass> {
  const service = await deps.store.getResource({ kind: 'Service', project: id.project, name: id.service })
  if (service === null) {
    deps.renderer.forget(id)
    return NOTHING_DONE
  }
  const spec = serviceSpecSchema.parse(JSON.parse(service.spec))
  const clusters = await deps.store.listClusters()
  const current = await deps.store.desiredOfService(id)
  // Of a service that goes nothing is published any more.
  const asked = service.deletingMs === null ? renderedFor(spec.targets, clusters, current) : []
  const rendering: Rendering = service.deletingMs === null ? await deps.renderer.render(id, spec, asked) : { kind: 'no_content' }
  if (deps.stopping?.aborted === true && failuresOf(rendering).length > 0) return NOTHING_DONE
  const before = await deps.store.renderState(id)
  const questions = new Map((await deps.store.confirmationsOfService(id)).map((question) => [question.subject, question]))
  const held = questions.get(releaseSubject(id))
  const { generation } = service
  const release = { id, spec, generation, before, rendering, clusters: asked, current, held }
  const { question, noted } = await judgeRelease(deps, release)
  // What waits to be removed is something, too: it is listed and counted as what it is.
  const holding = new Set(current.flatMap(({ clusterId, doc }) => (doc === null ? [] : [clusterId])))
  const failing = failingClusters(rendering, asked, (clusterId) => holding.has(clusterId))
  await recordRender(deps, id, { before, generation, rendering: noted, failing, waits: question !== null }, clusters)
  const nowMs = deps.clock.nowMs()
  const young = question === null ? await clustersWithoutFacts(deps.factsOf, rendering, clusters, current, nowMs) : NOBODY_YOUNG
  const published = question === null ? withoutClusters(rendering, young.clusters) : forNow(rendering)
  const seen: Seen = { rendering: published, clusters, current, questions }
  const input = await readPlanInput(deps, id, service, spec, seen, options)
  const plan = planService(input)
  if (question !== null && held?.token !== question.token) plan.open.push(question)
  if (question === null && held !== undefined && rendering.kind === 'good') plan.close.push(held.subject)
  await carryOut(deps, service, input, plan, { rendering: seen.rendering, release: options.release ?? (() => {}) })
  // What is due already was hindered by something that wakes the service when it is gone.
  const times = [young.untilMs, deps.renderer.againMs(id)].filter((atMs) => atMs !== null && atMs > nowMs) as number[]
  return { retry: retryOf(rendering), factless: isFactless(rendering), againAtMs: times.length === 0 ? null : Math.min(...times) }
}

const NOTHING_DONE: ServicePass = { retry: null, factless: false, againAtMs: null }

function retryOf(rendering: Rendering): ServicePass['retry'] {
  const passing = failuresOf(rendering).filter(mayPass)
  if (passing.length === 0) return null
  const afterMs = passing.reduce((most, { retryAfterMs = 0 }) => Math.max(most, retryAfterMs), 0)
  return afterMs === 0 ? {} : { afterMs }
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
  { deletedBy, dataConfirmed }: ServicePassOptions,
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
    ...(dataConfirmed === undefined ? {} : { dataConfirmed }),
    ...(isFrozen ? {} : { handover: await findHandovers(deps, id, current, clusters, rendered && renderIn, targets) }),
    render: rendering.kind === 'good' ? { commit: rendering.release.commit, in: renderIn } : null,
    loses: await findLosses(deps.content, current, renderIn),
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
  { rendering, release }: { rendering: Rendering; release(): void },
): Promise<void> {
  const { store, clock } = deps
  const { id } = input
  const nowMs = clock.nowMs()
  const events = await publishPlanned(deps, input, plan.publishes, { rendering, release }, nowMs)
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

/** Clusters that get the service and do not have it yet. */
function newcomers(current: readonly DesiredService[], publishes: readonly PlannedPublish[]): ClusterId[] {
  const held = new Set(current.flatMap(({ clusterId, doc }) => (doc === null ? [] : [clusterId])))
  return publishes.flatMap(({ clusterId, doc }) => (doc === null || held.has(clusterId) ? [] : [clusterId]))
}

/** Answers what there is to tell of it. */
async function publishPlanned(
  deps: ServicePassDeps,
  about: Pick<PlanInput, 'id' | 'spec' | 'current' | 'clusters'>,
  publishes: readonly PlannedPublish[],
  { rendering, release }: { rendering: Rendering; release(): void },
  nowMs: number,
): Promise<NewEvent[]> {
  const wanted = publishes.map(({ clusterId, doc, objects, placedBy, factsKey, renderedFrom }) => {
    const rendered = renderOf(rendering, clusterId)?.objects ?? NONE
    const notes = { placedBy, ...(factsKey === undefined ? {} : { factsKey }), ...(renderedFrom === undefined ? {} : { renderedFrom }) }
    return { ...about.id, clusterId, doc, ...notes, objects: objects === 'rendered' ? rendered : NONE }
  })
  await deps.rules?.coming(about.id.project, newcomers(about.current, publishes))
  const alone = () => publishRevisions({ ...deps, pace: createPace(deps.clock) }, wanted)
  const together = deps.publish?.bind(deps)
  const changed =
    wanted.length === 0 ? [] : await (together === undefined ? alone() : together(wanted, { clusters: about.clusters.length, release }))
  const removed = publishes.filter(({ what }) => what === 'removed')
  await Promise.all(removed.map(({ clusterId }) => deps.store.deleteStatusOfService(clusterId, about.id))) // they are committed together
  const { revised, note, events } = publishEvents(about, rendering, publishes, changed, nowMs)
  if (revised > 0) deps.onPublished?.(revised)
  if (note !== null) deps.log.info('revision published', note)
  return events
}
