// One service, from what the store holds to what its clusters shall have: render, plan, publish, record.
// Level-triggered: it depends on what is, never on what woke it, and done again it does nothing.

import { canonicalJson } from '../../shared/kube/canonical.ts'
import { writtenByOf } from '../../shared/model/commits.ts'
import type { ServiceSpec } from '../../shared/model/resources.ts'
import { serviceStatusSchema } from '../../shared/model/status.ts'
import type { Problem } from '../../shared/runtime/error.ts'
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { createPace } from '../../shared/runtime/pace.ts'
import { withTrace } from '../../shared/runtime/trace-id.ts'
import { type Elsewhere, isUnasked, type Origin, type PlanInput, planServicePaced, releaseSubject } from '../fleet/plan-service.ts'
import type { NamedProject } from '../fleet/project-rules.ts'
import type {
  ClusterRecord,
  Confirmation,
  DesiredService,
  FailingClusters,
  RenderState,
  StoredResource,
  Variant,
} from '../fleet/records.ts'
import { isTarget, leftByNewTargets, renderedFor, type Targets, targetsOf, withDestinations } from '../fleet/targeting.ts'
import type { Store } from '../store/store.ts'
import { type CarryOutDeps, carryOut } from './carry-out.ts'
import { traceOfRender } from './correlation.ts'
import { findHandovers } from './find-handovers.ts'
import { findLosses } from './find-losses.ts'
import { parseServiceSpec } from './known-specs.ts'
import { betweenPieces, type PassScope, someClusters, wholeFleet } from './pass-scope.ts'
import { judgeRelease } from './pending-release.ts'
import { readProject } from './projects.ts'
import { renderEvents } from './release-events.ts'
import { failuresOf, goodRenders, mayPass, type Rendering, releaseDigest, renderOf, variantsOf } from './render/rendering.ts'
import type { ServiceRenderer } from './render/service-render.ts'
import { failingClusters, nextRenderState, waitingState } from './render-state.ts'
import { clustersWithoutFacts, NOBODY_YOUNG, withoutClusters, type YoungClusters } from './young-clusters.ts'

export interface ServicePassDeps extends CarryOutDeps {
  renderer: ServiceRenderer
  /** Known facts of those clusters. Absent means that nothing is waited for. */
  factsOf?(clusters: readonly ClusterId[]): Promise<ReadonlyMap<ClusterId, unknown>>
  /** The server stops: what fails from now on says nothing about the service. */
  stopping?: AbortSignal
  /** A reconciliation planned the service for this many clusters. */
  onPlanned?(id: ServiceId, clusters: number): void
}

export interface ServicePassOptions {
  /** Gives its worker to another reconciliation, while it waits for the others of its group. */
  release?(): void
  /** Only these changed since the last reconciliation. Absent means unknown changes. */
  clusters?: ReadonlySet<ClusterId>
  /** RM1: by cluster, names that a person confirmed with the change that caused this reconciliation. Absent means none.
   */
  dataConfirmed?: ReadonlyMap<ClusterId, readonly string[]>
}

export interface ServicePass {
  /**
   * It failed for a temporary reason (SO21); `afterMs`: the time that the other side asks for. Null means that it did
   * not fail so.
   */
  retry: { afterMs?: number } | null
  /** Facts of clusters have no part in what it renders to. */
  factless: boolean
  /** The time to reconcile it again without a change (IC14). */
  againAtMs: number | null
  /** FA6: clusters to reconcile again then without a change. */
  young: { clusters: ReadonlySet<ClusterId>; untilMs: number } | null
}

/**
 * One reconciliation of a service: renders it for its clusters, publishes new revisions, removes dropped ones, and
 * stores errors and confirmations. Returns when to run again.
 */
export async function passService(deps: ServicePassDeps, id: ServiceId, options: ServicePassOptions): Promise<ServicePass> {
  const { store, renderer } = deps
  const service = await store.getResource({ kind: 'Service', project: id.project, name: id.service })
  if (service === null) {
    renderer.forget(id)
    return NOTHING_DONE
  }
  const project = await readProject(store, id.project)
  const about: About = {
    id,
    project,
    service,
    spec: parseServiceSpec(service.spec),
    targets: withDestinations(parseServiceSpec(service.spec).targets, project),
    before: await store.renderState(id),
    options,
  }
  if (options.clusters !== undefined) {
    const pass = await passClusters(deps, about, await someClusters(store, id, [...options.clusters]))
    if (pass !== null) return pass
  }
  return passFleet(deps, about, await wholeFleet(store, id))
}

interface About {
  id: ServiceId
  service: StoredResource
  spec: ServiceSpec
  /** Null if it has no boundary. */
  project: NamedProject | null
  /** With the destinations of its project. */
  targets: Targets
  /** The state of the last render. */
  before: RenderState
  options: ServicePassOptions
}

async function passFleet(deps: ServicePassDeps, about: About, scope: PassScope): Promise<ServicePass> {
  const { id, service, spec, targets, before, options } = about
  const { clusters, current } = scope
  const { generation } = service
  // Nothing of a service that goes is published any more.
  const asked = service.deletingMs === null ? renderedFor(targets, clusters, current) : []
  const startMs = deps.clock.nowMs()
  const rendering: Rendering = service.deletingMs === null ? await deps.renderer.render(id, spec, asked) : { kind: 'no_content' }
  const endMs = deps.clock.nowMs()
  const trace = traceOfRender(deps, { id, generation, before }, rendering)
  if (deps.stopping?.aborted === true && failuresOf(rendering).length > 0) return NOTHING_DONE
  const questions = await readQuestions(deps, id)
  const held = questions.get(releaseSubject(id))
  const { question, noted } = await judgeRelease(deps, { id, spec, generation, before, rendering, clusters: asked, current, held })
  await betweenPieces(clusters.length)
  // Pending removals still count as placements.
  const holding = new Set(current.flatMap(({ clusterId, doc }) => (doc === null ? [] : [clusterId])))
  const failing = failingClusters(rendering, asked, (clusterId) => holding.has(clusterId))
  await recordRender(deps, id, { before, generation, rendering: noted, failing, trace, startMs, endMs, waits: question !== null }, scope)
  const nowMs = deps.clock.nowMs()
  await betweenPieces(clusters.length)
  const young = question === null ? await clustersWithoutFacts(deps.factsOf, rendering, clusters, current, nowMs) : NOBODY_YOUNG
  const published = question === null ? withoutClusters(rendering, young.clusters) : forNow(rendering)
  const input = await readPlanInput(deps, about, { rendering: published, trace, questions, scope })
  await betweenPieces(clusters.length)
  const plan = await planServicePaced(input, createPace(deps.clock))
  await betweenPieces(clusters.length)
  if (question !== null && held?.token !== question.token) plan.open.push(question)
  if (question === null && held !== undefined && rendering.kind === 'good') plan.close.push(held.subject)
  deps.onPlanned?.(id, clusters.length)
  await carryOut(deps, service, input, plan, { rendering: published, startMs, endMs, release: options.release ?? (() => {}) })
  // A render that is due already was hindered by something that wakes the service when it ends.
  const againMs = deps.renderer.againMs(id)
  const againAtMs = againMs !== null && againMs > nowMs ? againMs : null
  return { retry: retryOf(rendering), factless: isFactless(rendering), againAtMs, young: youngAfter(young, nowMs) }
}

/**
 * Only in the clusters that changed. Null means that these clusters do not suffice, and the whole fleet must be
 * reconciled: a confirmation is open or would be, the service is being deleted, fails to render or has something new to
 * render. A reconciliation of the whole fleet after this one has no work left.
 */
async function passClusters(deps: ServicePassDeps, about: About, scope: PassScope): Promise<ServicePass | null> {
  const { id, service, spec, targets, before, options } = about
  const { store, renderer } = deps
  const { clusters, current } = scope
  if (service.deletingMs !== null || before.error !== null || before.digest === null || before.generation !== service.generation)
    return null
  const questions = await readQuestions(deps, id)
  if ([...questions.values()].some(({ kind }) => kind !== 'prune')) return null
  const asked = renderedFor(targets, clusters, current)
  const startMs = deps.clock.nowMs()
  const rendering: Rendering | null = asked.length === 0 ? { kind: 'no_content' } : await renderer.renderMore(id, spec, asked)
  if (rendering === null || rendering.kind === 'failed' || failuresOf(rendering).length > 0) return null
  if (rendering.kind === 'good' && !isOfRelease(before, rendering)) return null
  const leaving = leavingOf(targets, clusters, current)
  // Its targets were changed, and not all of its clusters were checked since.
  if (leaving.some(({ row, cluster }) => leftByNewTargets(row.placedBy, cluster.labels))) return null
  const nowMs = deps.clock.nowMs()
  const young = await clustersWithoutFacts(deps.factsOf, rendering, clusters, current, nowMs)
  const published = withoutClusters(rendering, young.clusters)
  const variants = variantsOf(rendering, new Set(targetsOf(targets, clusters).map(({ clusterId }) => clusterId)))
  const known = await store.newestVariants(
    id,
    variants.map(({ digest }) => digest),
  )
  const elsewhere = await readElsewhere(store, id, scope, { known, isLeaving: leaving.length > 0 })
  const endMs = deps.clock.nowMs()
  const trace = traceOfRender(deps, { id, generation: service.generation, before }, rendering)
  const input = { ...(await readPlanInput(deps, about, { rendering: published, trace, questions, scope })), elsewhere }
  const plan = await planServicePaced(input, createPace(deps.clock))
  if (plan.open.length > 0) return null
  renderer.forgetClusters(id, difference(options.clusters ?? NO_CLUSTERS, asked))
  if (variants.length > known.size) await addVariants(store, id, before, variants)
  deps.onPlanned?.(id, clusters.length)
  await carryOut(deps, service, input, plan, { rendering: published, startMs, endMs, release: options.release ?? (() => {}) })
  return { retry: null, factless: isFactless(rendering), againAtMs: null, young: youngAfter(young, nowMs) }
}

const NO_CLUSTERS: ReadonlySet<ClusterId> = new Set()
const difference = (all: ReadonlySet<ClusterId>, some: readonly { clusterId: ClusterId }[]): ReadonlySet<ClusterId> =>
  all.difference(new Set(some.map(({ clusterId }) => clusterId)))

const readQuestions = async ({ store }: ServicePassDeps, id: ServiceId): Promise<Map<string, Confirmation>> =>
  new Map((await store.confirmationsOfService(id)).map((question) => [question.subject, question]))

const youngAfter = ({ clusters, untilMs }: YoungClusters, nowMs: number): ServicePass['young'] =>
  untilMs === null || untilMs <= nowMs ? null : { clusters, untilMs }

/** Whether the last render was made with these tools (RL3), and warned of the same. */
function isOfRelease({ release }: RenderState, { release: { tools }, warnings }: Extract<Rendering, { kind: 'good' }>): boolean {
  const texts = (problems: readonly Problem[]) => new Set(problems.map((problem) => canonicalJson(problem)))
  const isKnown = Object.entries(tools).every(([tool, version]) => release?.tools[tool] === version)
  return isKnown && texts(warnings).symmetricDifference(texts(release?.warnings ?? [])).size === 0
}

function leavingOf(targets: Targets, clusters: readonly ClusterRecord[], current: readonly DesiredService[]) {
  const rows = new Map(current.map((row) => [row.clusterId, row]))
  return clusters.flatMap((cluster) => {
    const row = rows.get(cluster.clusterId)
    const isHeld = row !== undefined && row.doc !== null && row.doc.removal === undefined
    return isHeld && !isTarget(cluster.labels, targets) ? [{ row, cluster }] : []
  })
}

/** The plan's facts about the other clusters; their number only where a cluster is to leave. */
async function readElsewhere(
  store: Store,
  id: ServiceId,
  { current }: PassScope,
  { known, isLeaving }: { known: ReadonlySet<string>; isLeaving: boolean },
): Promise<Elsewhere> {
  const origins = new Map<string, Origin>()
  for (const digest of known) {
    const holder = await store.desiredWith(id, digest)
    if (holder?.doc != null) origins.set(digest, holder.doc)
  }
  const originOf = (digest: string) => origins.get(digest) ?? null
  if (!isLeaving) return { holders: 0, unasked: 0, originOf }
  const here = new Set(current.map(({ clusterId }) => clusterId))
  const { holders, orders } = await store.placementTotals(id)
  return {
    holders: holders - current.filter(({ doc }) => doc !== null && doc.removal === undefined).length,
    unasked: orders.filter(({ clusterId, doc }) => !here.has(clusterId) && doc !== null && isUnasked(doc)).length,
    originOf,
  }
}

/** HI1: what a cluster alone gets is a variant of the newest revision. */
async function addVariants(store: Store, id: ServiceId, before: RenderState, variants: readonly Variant[]): Promise<void> {
  const count = await store.addVariants(id, variants)
  const { release = { variants: 1, revisions: {}, tools: {}, warnings: [] } } = before
  if (count > release.variants) await store.setRenderState(id, { ...before, release: { ...release, variants: count } })
}

const NOTHING_DONE: ServicePass = { retry: null, factless: false, againAtMs: null, young: null }

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
  trace: string | undefined
  startMs: number
  endMs: number
  waits: boolean
}

async function recordRender(
  { store, clock, log, recordSpan }: ServicePassDeps,
  id: ServiceId,
  { before, generation, rendering, failing, trace, startMs, endMs, waits }: Rendered,
  { clusters, current }: PassScope,
): Promise<void> {
  const nowMs = clock.nowMs()
  const names = new Map(clusters.map(({ clusterId, name }) => [clusterId, name]))
  const nameOf = (clusterId: ClusterId) => names.get(clusterId) ?? clusterId
  const isSame = !waits && (await isSameRevision(store, id, before, generation, rendering, current))
  const after = waits ? waitingState(before, generation) : nextRenderState(before, generation, rendering, nowMs, nameOf, failing, isSame)
  if (after === before) return
  const recovered = before.error !== null && after.error === null ? after.commit : null
  const note = recovered === null ? undefined : (await store.commitsOf(id.project, [recovered])).get(recovered)
  const events = renderEvents(before, after, rendering, nowMs, id, trace, writtenByOf(note))
  await store.setRenderState(id, after, waits ? [] : variantsOf(rendering), events)
  const { error } = after
  if (error !== null && trace !== undefined && events.length > 0)
    recordSpan?.({ name: 'render', trace, startMs, endMs, attributes: { 'skerry.service': serviceKey(id) }, error: error.code })
  for (const { reason, message } of events)
    log.info('render state changed', { service: serviceKey(id), reason, detail: message, ...withTrace(trace) })
}

/** HI1: that clusters came or went makes no revision: every variant is one of the newest revision, and no cluster gets
 *  another than it has. */
async function isSameRevision(
  store: Store,
  id: ServiceId,
  before: RenderState,
  generation: number,
  rendering: Rendering,
  current: readonly DesiredService[],
): Promise<boolean> {
  if (rendering.kind !== 'good' || before.digest === null || before.generation !== generation) return false
  const renders = goodRenders(rendering)
  if (renders.length === 0) return false
  if (releaseDigest(renders) === before.digest) return true
  const isOther = ({ clusterId, doc }: DesiredService) => {
    const render = renderOf(rendering, clusterId)
    return render !== null && doc !== null && doc.removal === undefined && doc.digest !== render.digest
  }
  if (current.some(isOther)) return false
  const digests = [...new Set(renders.map(({ digest }) => digest))]
  return (await store.newestVariants(id, digests)).size === digests.length
}

/** A failed render has no recorded dependencies. */
function isFactless(rendering: Rendering): boolean {
  if (rendering.kind !== 'good') return false
  const renders = [...rendering.clusters.values(), ...(rendering.forNobody === null ? [] : [rendering.forNobody])]
  return renders.length > 0 && renders.every((render) => render.kind === 'rendered' && render.factsKey === undefined)
}

interface Seen {
  /** As it may be published now. */
  rendering: Rendering
  trace: string | undefined
  questions: ReadonlyMap<string, Confirmation>
  scope: PassScope
}

/** RL3: while it waits, every cluster keeps what it has, and none joins. */
const forNow = (rendering: Rendering): Rendering => (rendering.kind === 'good' ? { ...rendering, clusters: new Map() } : rendering)

async function readPlanInput(
  deps: ServicePassDeps,
  { id, service, spec, project, targets: wanted, options: { dataConfirmed } }: About,
  { rendering, trace, questions, scope }: Seen,
): Promise<PlanInput> {
  const { store, content, renderer, clock } = deps
  const { clusters, current } = scope
  // Only for removal orders: otherwise every commit would read what every cluster reports.
  const ordered = current.some(({ doc }) => doc?.removal !== undefined)
  const removed = new Map<ClusterId, number>()
  for (const { clusterId, doc } of ordered ? await scope.reports() : []) {
    const status = serviceStatusSchema.safeParse(doc).data
    if (status?.removed === true && status.removedOrderMs !== undefined) removed.set(clusterId, status.removedOrderMs)
  }
  const deleting = service.deletingMs !== null
  const rendered = rendering.kind === 'good' && !deleting ? rendering : null
  const renderIn = (clusterId: ClusterId) => renderOf(rendering, clusterId)
  const targets = new Set(deleting ? [] : targetsOf(wanted, clusters).map(({ clusterId }) => clusterId))
  const isFrozen = rendered === null && !deleting
  const around = { store: { getResource: store.getResource, desiredOfService: scope.desiredOf }, content, renderer }
  return {
    id,
    spec,
    project,
    deleting,
    deletedBy: service.deletingBy ?? null,
    ...(dataConfirmed === undefined ? {} : { dataConfirmed }),
    ...(isFrozen ? {} : { handover: await findHandovers(around, id, current, clusters, rendered && renderIn, targets) }),
    render: rendering.kind === 'good' ? { commit: rendering.release.commit, trace, in: renderIn } : null,
    loses: await findLosses(content, current, renderIn),
    clusters,
    current,
    removed,
    confirmations: questions,
    nowMs: clock.nowMs(),
  }
}
