// Carries out the plan of a reconciliation: publishes, asks, closes confirmations and reports it.

import { writtenByOf } from '../../shared/model/commits.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import { serviceKey } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { createPace } from '../../shared/runtime/pace.ts'
import { type Publication, publishRevisions } from '../desired/publisher.ts'
import type { Shards } from '../desired/shards.ts'
import { fleetEvent, type NewEvent } from '../fleet/fleet-event.ts'
import { nameList } from '../fleet/placements-summary.ts'
import type { PlanInput, PlannedPublish, ServicePlan } from '../fleet/plan-service.ts'
import type { DesiredService, StoredResource } from '../fleet/records.ts'
import { questionText } from '../messages/confirmation-messages.ts'
import { news, warning } from '../messages/event-messages.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import { readDependents } from '../store/service-dependencies.ts'
import type { Store } from '../store/store.ts'
import { type CorrelationDeps, traceOfCommit } from './correlation.ts'
import type { HealthRuleRows } from './health-rule-rows.ts'
import { betweenPieces } from './pass-scope.ts'
import type { Publisher } from './publish-group.ts'
import { type Published, publishEvents } from './release-events.ts'
import { type Rendering, renderOf } from './render/rendering.ts'
import type { ServiceRenderer } from './render/service-render.ts'

export interface CarryOutDeps extends CorrelationDeps {
  store: Store
  content: ContentStore
  shards: Shards
  renderer: Pick<ServiceRenderer, 'forget'>
  /** Brings a project's health rules to clusters before its services; absent where a test has none. */
  rules?: Pick<HealthRuleRows, 'coming'>
  clock: Clock
  log: Logger
  /** With those of other reconciliations. Absent means by itself. */
  publish?(publications: readonly Publication[], publisher: Publisher): Promise<boolean[]>
  /** After a service's revisions were written to that many clusters, whose agents fetch them now. */
  onPublished?(clusters: number): void
}

/** The result of a render, and its time. */
interface Rendered {
  rendering: Rendering
  startMs: number
  endMs: number
  /** Gives its hand to another pass. */
  release(): void
}

const NONE: ReadonlyMap<string, string> = new Map()

export async function carryOut(
  deps: CarryOutDeps,
  service: StoredResource,
  input: PlanInput,
  plan: ServicePlan,
  rendered: Rendered,
): Promise<void> {
  const { store, clock } = deps
  const { id } = input
  const nowMs = clock.nowMs()
  const events = await publishPlanned(deps, input, plan.publishes, rendered, nowMs)
  for (const planned of plan.open) {
    const dependents = planned.why.includes(questionText('dependents', { services: '' })) ? [] : await readDependents(store, id) // a question that is asked of fewer keeps its reason
    const why = `${planned.why}${dependentsText(dependents)}`
    const opened = await store.openConfirmation({ ...planned, why, createdMs: nowMs })
    events.push(fleetEvent(nowMs, warning('ConfirmationNeeded', { why: opened.why, confirmation: opened.id }), { service: id }))
  }
  const pace = createPace(clock)
  for (let start = 0; start < plan.close.length; start += CLOSED_A_TIME) {
    await Promise.all(plan.close.slice(start, start + CLOSED_A_TIME).map((subject) => store.closeConfirmation(subject)))
    await pace()
  }
  while (events.length > EVENTS_A_TIME) {
    await store.appendEvents(events.splice(0, EVENTS_A_TIME))
    await pace()
  }
  const ended = fleetEvent(nowMs, news('ServiceDeleted'), { service: id })
  // Not if it was revoked while this reconciliation ran: the revocation requested another one.
  if (plan.finished && (await store.finishDeletion(service, service.version, [...events, ended]))) deps.renderer.forget(id)
  else if (events.length > 0) await store.appendEvents(events)
}

/** DE4: names the services that depend on the removed one. */
const dependentsText = (services: readonly ServiceId[]): string =>
  services.length === 0 ? '' : questionText('dependents', { services: nameList(services.map(serviceKey)) })

/** One yes may be for ten thousand clusters: questions that are closed together share commits. */
const CLOSED_A_TIME = 64
/** A removal from ten thousand clusters is as many events. */
const EVENTS_A_TIME = 200

/** Clusters that get the service and do not have it yet. */
function newcomers(current: readonly DesiredService[], publishes: readonly PlannedPublish[]): ClusterId[] {
  const held = new Set(current.flatMap(({ clusterId, doc }) => (doc === null ? [] : [clusterId])))
  return publishes.flatMap(({ clusterId, doc }) => (doc === null || held.has(clusterId) ? [] : [clusterId]))
}

/** Answers what there is to tell of it. */
async function publishPlanned(
  deps: CarryOutDeps,
  about: Pick<PlanInput, 'id' | 'spec' | 'current' | 'clusters'>,
  publishes: readonly PlannedPublish[],
  { rendering, release, startMs, endMs }: Rendered,
  nowMs: number,
): Promise<NewEvent[]> {
  const wanted = publishes.map(({ clusterId, doc, objects, placedBy, factsKey, renderedFrom }) => {
    const rendered = renderOf(rendering, clusterId)?.objects ?? NONE
    const notes = { placedBy, ...(factsKey === undefined ? {} : { factsKey }), ...(renderedFrom === undefined ? {} : { renderedFrom }) }
    return { ...about.id, clusterId, doc, ...notes, objects: objects === 'rendered' ? rendered : NONE }
  })
  await betweenPieces(wanted.length)
  await deps.rules?.coming(about.id.project, newcomers(about.current, publishes))
  const alone = () => publishRevisions({ ...deps, pace: createPace(deps.clock) }, wanted)
  const together = deps.publish?.bind(deps)
  const changed =
    wanted.length === 0 ? [] : await (together === undefined ? alone() : together(wanted, { clusters: about.clusters.length, release }))
  const removed = publishes.filter(({ what }) => what === 'removed')
  await Promise.all(removed.map(({ clusterId }) => deps.store.deleteStatusOfService(clusterId, about.id))) // a kill in between: tombstones.ts
  await betweenPieces(wanted.length)
  const { commit = null } = rendering.kind === 'good' ? rendering.release : {}
  const notes = commit === null || !changed.includes(true) ? null : await deps.store.commitsOf(about.id.project, [commit])
  const { revised, note, events } = publishEvents(about, rendering, publishes, changed, nowMs, writtenByOf(notes?.get(commit ?? '')))
  if (revised > 0) deps.onPublished?.(revised)
  if (note !== null) recordPublished(deps, about.id, note, { startMs, endMs }, nowMs)
  if (note !== null) deps.log.info('revision published', note)
  return events
}

/** The spans of a publication, told when all of it is done. A change of the spec alone has no commit that begins its
 *  trace. */
function recordPublished(
  deps: CarryOutDeps,
  { project, service }: ServiceId,
  { trace, commit, digest, clusters, objects }: NonNullable<Published['note']>,
  { startMs, endMs }: Pick<Rendered, 'startMs' | 'endMs'>,
  publishMs: number,
): void {
  const { recordSpan, clock } = deps
  if (recordSpan === undefined || trace === undefined) return
  const nowMs = clock.nowMs()
  const attributes = { 'skerry.service': `${project}/${service}`, 'skerry.commit': commit, 'skerry.revision': digest ?? '' }
  if (trace !== traceOfCommit(deps, project, commit)) recordSpan({ name: 'change', trace, startMs, endMs: nowMs, isRoot: true, attributes })
  recordSpan({ name: 'render', trace, startMs, endMs, attributes: { ...attributes, 'skerry.objects': objects } })
  recordSpan({ name: 'publish', trace, startMs: publishMs, endMs: nowMs, attributes: { ...attributes, 'skerry.clusters': clusters } })
}
