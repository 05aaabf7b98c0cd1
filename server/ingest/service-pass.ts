// One service, from what the store holds to what its clusters shall have: render, plan, publish, record. Level-triggered: it depends on what is, never on
// what woke it, and done again it does nothing.

import { type ClusterId, type ServiceId, serviceKey } from '../../shared/model/ids.ts'
import { type ServiceSpec, serviceSpecSchema } from '../../shared/model/resources.ts'
import { serviceStatusSchema } from '../../shared/model/status.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { publishService } from '../desired/publisher.ts'
import type { Shards } from '../desired/shards.ts'
import { leaveSubject, type PlanInput, planService, pruneSubject, removeSubject, type ServicePlan } from '../fleet/plan-service.ts'
import type { ContentStore } from '../store/content-store.ts'
import type { Confirmation, RenderState, Store, StoredResource } from '../store/store.ts'
import { fleetEvent, type NewEvent } from './fleet-event.ts'
import { nextRenderState, type Rendering, type ServiceRenderer, sameError } from './service-render.ts'

export interface ServicePassDeps {
  store: Store
  content: ContentStore
  shards: Shards
  renderer: ServiceRenderer
  clock: Clock
  log: Logger
}

export interface ServicePassOptions {
  /** Who deleted the service, while that is known. */
  deletedBy: string | null
}

/** `retry`: the content could not be read, for a reason that may pass by itself. */
export async function passService(deps: ServicePassDeps, id: ServiceId, options: ServicePassOptions): Promise<{ retry: boolean }> {
  const service = await deps.store.getResource({ kind: 'Service', project: id.project, name: id.service })
  if (service === null) {
    deps.renderer.forget(id)
    return { retry: false }
  }
  const spec = serviceSpecSchema.parse(JSON.parse(service.spec))
  const rendering = await deps.renderer.render(id, spec)
  await recordRender(deps, id, service, rendering)
  const input = await readPlanInput(deps, id, service, spec, rendering, options)
  const plan = planService(input)
  await carryOut(deps, input, plan, rendering)
  return { retry: rendering.kind === 'failed' && rendering.error.code === 'git_failed' }
}

async function recordRender(
  { store, clock, log }: ServicePassDeps,
  id: ServiceId,
  service: StoredResource,
  rendering: Rendering,
): Promise<void> {
  const nowMs = clock.nowMs()
  const before = await store.renderState(id)
  const after = nextRenderState(before, service.generation, rendering, nowMs)
  if (after === before) return
  await store.setRenderState(id, after)
  const events = renderEvents(before, after, rendering, nowMs, id)
  if (events.length > 0) await store.appendEvents(events)
  for (const { reason, message } of events) log.info('render changed its state', { service: serviceKey(id), reason, detail: message })
}

function renderEvents(before: RenderState, after: RenderState, rendering: Rendering, nowMs: number, service: ServiceId): NewEvent[] {
  if (after.error !== null) {
    if (sameError(before.error, after.error)) return []
    const [first] = after.error.problems
    const where = first === undefined ? '' : `: ${first.path}: ${first.message}`
    return [
      fleetEvent(
        nowMs,
        'Warning',
        'RenderFailed',
        `${after.error.message}${where}; ${before.digest === null ? 'nothing is published yet' : 'the last good revision stays'}`,
        { service },
      ),
    ]
  }
  const events: NewEvent[] = []
  if (before.error !== null)
    events.push(
      fleetEvent(
        nowMs,
        'Normal',
        'RenderRecovered',
        `renders ${before.digest === null ? 'now' : 'again'} at commit ${short(after.commit ?? '')}`,
        { service },
      ),
    )
  const warnings = rendering.kind === 'good' ? rendering.warnings : []
  for (const { path, message } of warnings.slice(0, WARNINGS_TOLD_MAX))
    events.push(fleetEvent(nowMs, 'Warning', 'ManifestWarning', `${path}: ${message}`, { service }))
  return events
}

const WARNINGS_TOLD_MAX = 10

async function readPlanInput(
  { store, clock }: ServicePassDeps,
  id: ServiceId,
  service: StoredResource,
  spec: ServiceSpec,
  rendering: Rendering,
  { deletedBy }: ServicePassOptions,
): Promise<PlanInput> {
  const [clusters, current, reports] = await Promise.all([
    store.listClusters(),
    store.desiredOfService(id),
    store.listStatus({ kind: 'service', key: serviceKey(id) }),
  ])
  const removed = new Set<ClusterId>()
  for (const { clusterId, doc } of reports) if (serviceStatusSchema.safeParse(doc).data?.removed === true) removed.add(clusterId)
  return {
    id,
    spec,
    deleting: service.deletingMs !== null,
    deletedBy,
    render: rendering.kind === 'good' ? rendering : null,
    clusters,
    current,
    removed,
    confirmations: await readConfirmations(
      store,
      id,
      current.map(({ clusterId }) => clusterId),
    ),
    nowMs: clock.nowMs(),
  }
}

async function readConfirmations(store: Store, id: ServiceId, clusterIds: readonly ClusterId[]): Promise<Map<string, Confirmation>> {
  const subjects = [removeSubject(id), leaveSubject(id), ...clusterIds.map((clusterId) => pruneSubject(clusterId, id))]
  const found = await Promise.all(subjects.map((subject) => store.confirmationFor(subject)))
  return new Map(found.flatMap((confirmation) => (confirmation === null ? [] : [[confirmation.subject, confirmation] as const])))
}

const NONE: ReadonlyMap<string, string> = new Map()

async function carryOut(deps: ServicePassDeps, input: PlanInput, plan: ServicePlan, rendering: Rendering): Promise<void> {
  const { store, clock, log } = deps
  const { id } = input
  const nowMs = clock.nowMs()
  const events: NewEvent[] = []
  const rendered = rendering.kind === 'good' ? rendering.objects : NONE
  const revised: string[] = []
  for (const { clusterId, cluster, doc, objects, placedBy, what } of plan.publishes) {
    const { changed } = await publishService(deps, { ...id, clusterId, doc, placedBy }, objects === 'rendered' ? rendered : NONE)
    if (what === 'removed') await store.deleteStatusOfService(clusterId, id)
    if (!changed) continue
    if (what === 'placed' || what === 'updated') revised.push(cluster)
    else if (what === 'removed')
      events.push(fleetEvent(nowMs, 'Normal', 'ServiceRemoved', `nothing of it is left to manage in ${cluster}`, { service: id, cluster }))
    else
      events.push(
        fleetEvent(
          nowMs,
          'Normal',
          'RemovalOrdered',
          `${doc?.removal?.policy} in ${cluster}, by ${doc?.removal?.by}: ${doc?.removal?.why}`,
          { service: id, cluster },
        ),
      )
  }
  if (revised.length > 0 && rendering.kind === 'good') {
    const { commit, digest, count } = rendering
    log.info('revision published', { service: serviceKey(id), commit, digest, objects: count, clusters: revised.length })
    events.push(
      fleetEvent(
        nowMs,
        'Normal',
        'RevisionPublished',
        `${count} ${count === 1 ? 'object' : 'objects'} of commit ${short(commit)} to ${clusterNames(revised)}`,
        {
          service: id,
        },
      ),
    )
  }
  for (const planned of plan.open) {
    const opened = await store.openConfirmation({ ...planned, createdMs: nowMs })
    events.push(
      fleetEvent(nowMs, 'Warning', 'ConfirmationNeeded', `${opened.why}; \`skerry confirm ${opened.id}\` shows the names and asks`, {
        service: id,
      }),
    )
  }
  for (const subject of plan.close) await store.closeConfirmation(subject)
  if (plan.finished) {
    await store.deleteResource({ kind: 'Service', project: id.project, name: id.service })
    deps.renderer.forget(id)
    events.push(fleetEvent(nowMs, 'Normal', 'ServiceDeleted', 'it is gone from every cluster', { service: id }))
  }
  if (events.length > 0) await store.appendEvents(events)
}

const short = (commit: string): string => commit.slice(0, 12)
const clusterNames = (names: readonly string[]): string =>
  names.length <= 3 ? names.join(', ') : `${names.slice(0, 3).join(', ')} and ${names.length - 3} more clusters`
