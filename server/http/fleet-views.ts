// Reads what a view needs from the store and leaves the words to server/fleet/status-view.ts.
import { isBuiltIn, roleBindingSpecSchema, roleSpecSchema } from '../../shared/model/access.ts'
import { type WrittenBy, writtenByOf } from '../../shared/model/commits.ts'
import { healthRuleSpecSchema } from '../../shared/model/health-rules.ts'
import type { NotificationRouteView, NotificationSinkView } from '../../shared/model/notification-views.ts'
import { readWords } from '../../shared/model/placement-words.ts'
import { API_VERSION, clusterSpecSchema, FLEET, repositorySpecSchema, type ServiceSpec, sourcesOf } from '../../shared/model/resources.ts'
import { clusterStatusSchema, factsStatusSchema, serviceStatusSchema } from '../../shared/model/status.ts'
import { isSuspendedBy } from '../../shared/model/suspension.ts'
import type {
  ClusterView,
  ConfigView,
  HealthRuleView,
  PlacementView,
  ProjectView,
  RepositoryView,
  RoleBindingView,
  RoleView,
  ServiceView,
  ViolationView,
} from '../../shared/model/views.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { createPace, type Pace } from '../../shared/runtime/pace.ts'
import type { RestoreActions } from '../actions/restore-actions.ts'
import type { Behind } from '../desired/behind.ts'
import { renderStateIn, specIn } from '../fleet/limited-sight.ts'
import { livenessOf, onlineWithinMs } from '../fleet/liveness.ts'
import { type PlacementsSummary, summarise, worstWords } from '../fleet/placements-summary.ts'
import { leaveSubject, pruneSubject, releaseSubject, removeSubject } from '../fleet/plan-service.ts'
import { leftOut as leftOutOf, type NamedProject, projectWarnings } from '../fleet/project-rules.ts'
import type { ClusterRecord, Confirmation, DesiredService, StatusEntry, StoredError, StoredResource } from '../fleet/records.ts'
import { isLimited, type Scope, serviceInScope } from '../fleet/rights.ts'
import { clusterStatusView, placementView, repositoryStatusView, type ServiceInput, serviceStatusView } from '../fleet/status-view.ts'
import type { OrderedSuspension } from '../fleet/suspensions.ts'
import { isTarget, withDestinations } from '../fleet/targeting.ts'
import {
  countWithout,
  type FailedWords,
  type FailingService,
  keepingPlacement,
  unrenderedPlacement,
  withUnrendered,
} from '../fleet/unrendered.ts'
import { parseServiceSpec } from '../ingest/known-specs.ts'
import { countServices, parseProjectSpec, projectViolations, readProject } from '../ingest/projects.ts'
import type { RepositoryReadTimes } from '../ingest/read-times.ts'
import { listSuspensions } from '../ingest/suspension-rows.ts'
import { FACTS_AWAITED_MS } from '../ingest/young-clusters.ts'
import type { AwayOfService } from '../store/counts/rollups.ts'
import type { Store } from '../store/store.ts'
import { seenSite } from './cluster-site.ts'
import { configView, listedConfig } from './config-view.ts'
import { failingService, readFailing } from './failing-services.ts'
import { notificationView } from './notification-view.ts'
import { metadataOf } from './resource-metadata.ts'

type AnyView =
  | RepositoryView
  | ServiceView
  | ClusterView
  | ConfigView
  | HealthRuleView
  | ProjectView
  | RoleView
  | RoleBindingView
  | NotificationSinkView
  | NotificationRouteView

export interface FleetViews {
  /** Omits resources that were deleted meanwhile. `seen`: services that may be named with a cluster. Absent means all.
   */
  resources(resources: readonly StoredResource[], seen?: Scope): Promise<AnyView[]>
  /** The same for many: services with their counts and the first of the worst placements, in any fleet (RU7). */
  listed(resources: readonly StoredResource[], seen?: Scope): Promise<AnyView[]>
  placementsOfService(id: ServiceId): Promise<PlacementView[]>
  placementsInCluster(cluster: ClusterRecord): Promise<PlacementView[]>
}

/** When a repository was last read. Null means unknown. */
export type ReadTimesOf = (project: string, name: string) => RepositoryReadTimes | null

/** Why the shard file of a cluster lacks what the fleet store holds. Null means that it does not. */
export type BehindOf = (clusterId: ClusterId) => Behind | null

export function createFleetViews(
  store: Store,
  clock: Clock,
  restore: Pick<RestoreActions, 'pendingSinceMs'>,
  readTimesOf: ReadTimesOf = () => null,
  behindOf: BehindOf = () => null,
): FleetViews {
  const reading = () => new FleetReading(store, clock, restore, readTimesOf, behindOf)
  return {
    async resources(resources, seen) {
      const shared = reading()
      const views = await Promise.all(resources.map((resource) => shared.resource(resource, seen)))
      return views.filter((view) => view !== null)
    },
    listed: (resources, seen) => reading().listed(resources, seen),
    placementsOfService: (id) => reading().placementsOfService(id),
    placementsInCluster: (cluster) => reading().placementsInCluster(cluster),
  }
}

interface KnownCounts {
  /** By `Synced/Healthy`. */
  counts: Record<string, number>
  away: AwayOfService | undefined
}

/** Clusters that wait for their facts, as far as they are looked for. */
const YOUNG_MAX = 20
/** One answer's worth of reading: what many of its items need is read once. */
class FleetReading {
  private readonly store: Store
  private readonly restore: Pick<RestoreActions, 'pendingSinceMs'>
  private readonly readTimesOf: ReadTimesOf
  private readonly behindOf: BehindOf
  private readonly nowMs: number
  /** A service may be in every cluster of the fleet. */
  private readonly pace: Pace
  private readonly memo = new Map<string, Promise<unknown>>()

  constructor(store: Store, clock: Clock, restore: Pick<RestoreActions, 'pendingSinceMs'>, readTimesOf: ReadTimesOf, behindOf: BehindOf) {
    this.store = store
    this.restore = restore
    this.readTimesOf = readTimesOf
    this.behindOf = behindOf
    this.nowMs = clock.nowMs()
    this.pace = createPace(clock)
  }

  private once<T>(key: string, read: () => Promise<T>): Promise<T> {
    const held = this.memo.get(key) ?? read()
    this.memo.set(key, held)
    return held as Promise<T>
  }

  private readonly clusters = () =>
    this.once('clusters', async () => new Map((await this.store.listClusters()).map((cluster) => [cluster.clusterId, cluster])))
  /** Null if there is none of that name. */
  private readonly repository = (project: string, name: string) =>
    this.once(`repository ${project}/${name}`, async () => {
      const held = await this.store.getResource({ kind: 'Repository', project, name })
      return held === null ? null : this.store.repositoryState(project, name)
    })

  private readonly role = (name: string) => this.once(`role ${name}`, () => this.store.getResource({ kind: 'Role', project: FLEET, name }))

  private readonly suspensions = () => this.once('suspensions', () => listSuspensions(this.store))

  async resource(resource: StoredResource, seen?: Scope): Promise<AnyView | null> {
    const head = { apiVersion: API_VERSION, metadata: metadataOf(resource) } as const
    const spec: unknown = JSON.parse(resource.spec)
    switch (resource.kind) {
      case 'Repository': {
        const { project, name } = resource
        const { lastReadMs, nextReadMs } = this.readTimesOf(project, name) ?? { lastReadMs: null, nextReadMs: null }
        const view = repositoryStatusView(await this.store.repositoryState(project, name))
        const status = { ...view, ...(await this.writtenBy(project, view.commit)), lastReadMs, nextReadMs }
        return { ...head, kind: 'Repository', spec: repositorySpecSchema.parse(spec), status }
      }
      case 'Service':
        return isLimited(seen, idOf(resource)) ? this.service(resource, { seen }) : this.oneService(resource)
      case 'Cluster': {
        const status = await this.clusterStatus(resource.name, seen)
        return status === null ? null : { ...head, kind: 'Cluster', spec: clusterSpecSchema.parse(spec), status }
      }
      case 'Config':
        return configView(this.store, resource)
      case 'Suspension':
        return null
      case 'NotificationSink':
      case 'NotificationRoute':
        return notificationView(this.store, resource)
      case 'Project':
        return this.project(resource, await projectViolations(this.store, { name: resource.name, spec: parseProjectSpec(resource.spec) }))
      case 'Role':
        return { ...head, kind: 'Role', spec: roleSpecSchema.parse(spec), status: { builtIn: false } }
      case 'RoleBinding': {
        const { role } = roleBindingSpecSchema.parse(spec)
        const roleExists = isBuiltIn(role) || (await this.role(role)) !== null
        return { ...head, kind: 'RoleBinding', spec: roleBindingSpecSchema.parse(spec), status: { roleExists } }
      }
      case 'HealthRule': {
        const { project } = resource
        const clusters = [...(await this.clusters()).keys()]
        return this.healthRule(resource, project === FLEET ? clusters.length : (await this.store.clustersOfProject(project, clusters)).size)
      }
    }
  }

  private async clusterStatus(name: string, seen?: Scope): Promise<ClusterView['status'] | null> {
    const cluster = await this.store.clusterByName(name)
    if (cluster === null) return null
    const [entry] = await this.store.listStatus({ clusterId: cluster.clusterId, kind: 'cluster' })
    const [served] = await this.store.listStatus({ clusterId: cluster.clusterId, kind: 'facts' })
    const facts = factsStatusSchema.safeParse(served?.doc).data ?? null
    const all = await this.placementsInCluster(cluster)
    const shown = seen === undefined ? all : all.filter((placement) => serviceInScope(seen, placement, cluster.labels))
    const site = await seenSite(this.store, cluster, shown, seen)
    const placements = summarise(shown, serviceKey)
    const report = clusterStatusSchema.safeParse(entry?.doc).data ?? null
    const restoreSinceMs = await this.once('restore', () => this.restore.pendingSinceMs())
    const behind = this.behindOf(cluster.clusterId)
    const suspensions = (await this.suspensions()).filter(
      (one) =>
        (one.cluster === null || one.cluster === name) &&
        (one.service === null || seen === undefined || serviceInScope(seen, one.service, cluster.labels)),
    )
    const liveness = livenessOf(cluster, this.nowMs)
    return clusterStatusView({ cluster, liveness, report, facts, site, placements, restoreSinceMs, behind, suspensions })
  }

  async listed(resources: readonly StoredResource[], seen?: Scope): Promise<AnyView[]> {
    const services = resources.filter(({ kind }) => kind === 'Service').map(({ project, name: service }) => ({ project, service }))
    const { rollups } = this.store
    const counts = await rollups.ofKeys('service', services.map(serviceKey))
    const away = await rollups.awayOfServices(services, this.nowMs, onlineWithinMs)
    const views: AnyView[] = []
    for (const resource of resources) {
      await this.pace()
      const key = `${resource.project}/${resource.name}`
      const known = { counts: counts.get(key) ?? {}, away: away.get(key) }
      const view =
        resource.kind === 'Service' && resource.deletingMs === null && !isLimited(seen, idOf(resource))
          ? await this.service(resource, { known, isListed: true })
          : resource.kind === 'Config'
            ? listedConfig(resource)
            : resource.kind === 'HealthRule'
              ? this.healthRule(resource, null)
              : resource.kind === 'Project'
                ? await this.project(resource, null)
                : await this.resource(resource, seen)
      if (view !== null) views.push(view)
    }
    return views
  }

  private async project(resource: StoredResource, violations: ViolationView[] | null): Promise<ProjectView> {
    const spec = parseProjectSpec(resource.spec)
    const status = { services: await countServices(this.store, resource.name), violations, ...projectWarnings(spec) }
    return { apiVersion: API_VERSION, metadata: metadataOf(resource), kind: 'Project', spec, status }
  }

  private healthRule(resource: StoredResource, clusters: number | null): HealthRuleView {
    const spec = healthRuleSpecSchema.parse(JSON.parse(resource.spec))
    return { apiVersion: API_VERSION, metadata: metadataOf(resource), kind: 'HealthRule', spec, status: { clusters } }
  }

  /**
   * A service may be in every cluster. All its placements are read only for facts that counts lack: which clusters
   * still have it, and which cannot have it.
   */
  private async oneService(resource: StoredResource): Promise<ServiceView> {
    const { project, name: service, deletingMs } = resource
    const id = { project, service }
    if (deletingMs !== null || (await this.store.renderState(id)).error !== null) return this.service(resource, {})
    const { rollups } = this.store
    const key = serviceKey(id)
    const counts = (await rollups.ofKeys('service', [key])).get(key) ?? {}
    const away = (await rollups.awayOfServices([id], this.nowMs, onlineWithinMs)).get(key)
    return this.service(resource, { known: { counts, away } })
  }

  /**
   * `known`: instead of reading all its placements. `isListed`: without what looks at every cluster. `seen`: the caller
   * may read it in some clusters only, and the status is of those (AZ4).
   */
  private async service(
    resource: StoredResource,
    { known, isListed = false, seen }: { known?: KnownCounts; isListed?: boolean; seen?: Scope | undefined },
  ): Promise<ServiceView> {
    const { project, name: service } = resource
    const id = { project, service }
    const spec = parseServiceSpec(resource.spec)
    const subjects = [removeSubject(id), releaseSubject(id), leaveSubject(id)]
    const here = seen === undefined ? null : await this.clustersIn(seen, id)
    const names = here === null ? null : new Set(here.map(({ name }) => name))
    const isShown = (cluster: string) => names === null || names.has(cluster)
    const questions = seen === undefined ? await this.store.openConfirmationsFor(subjects) : new Map<string, Confirmation>()
    const open = subjects.map((subject) => questions.get(subject))
    const state = await this.store.renderState(id)
    const boundary = await readProject(this.store, project)
    const leftOut =
      boundary === null || isListed || seen !== undefined
        ? 0
        : leftOutOf(boundary, spec.targets, [...(await this.clusters()).values()]).length
    const placements = known === undefined ? (await this.placementsOfService(id)).filter(({ cluster }) => isShown(cluster)) : []
    const holding = new Set(placements.flatMap(({ cluster, desired }) => (desired === null ? [] : [cluster])))
    const render = here === null ? state : renderStateIn(state, spec.targets, here, (cluster) => holding.has(cluster))
    const summary =
      known === undefined
        ? summarise(placements, ({ cluster }) => cluster)
        : withUnrendered(await this.summary(id, known, isListed), render.error, await this.unrenderedAway(id, render.error))
    const status = serviceStatusView({
      id,
      generation: resource.generation,
      deletingMs: resource.deletingMs,
      repository: await this.worstRepository(project, spec),
      render,
      placements: summary,
      remaining: placements.map(({ cluster }) => cluster),
      confirmations: open.filter((item) => item !== undefined),
      suspensions: (await this.suspensions()).filter((one) => isOfService(one, id) && (one.cluster === null || isShown(one.cluster))),
      ...(summary.counts.length > 0 || resource.deletingMs !== null || seen !== undefined
        ? {}
        : { waiting: await this.waiting(spec, boundary) }),
      leftOut,
    })
    const { failedAt } = status
    const { subject } = failedAt === null ? {} : await this.writtenBy(project, failedAt.commit)
    const shown = {
      ...status,
      ...(await this.writtenBy(project, status.commit)),
      ...(failedAt === null || subject === undefined ? {} : { failedAt: { ...failedAt, subject } }),
      ...(leftOut === 0 ? {} : { leftOut }),
    }
    return {
      apiVersion: API_VERSION,
      metadata: metadataOf(resource),
      kind: 'Service',
      spec: here === null ? spec : specIn(spec, here),
      status: shown,
    }
  }

  /** Clusters in which the service may be shown. */
  private readonly clustersIn = async (seen: Scope, id: ServiceId): Promise<ClusterRecord[]> =>
    [...(await this.clusters()).values()].filter(({ labels }) => serviceInScope(seen, id, labels))

  private readonly writtenBy = async (project: string, commit: string | null): Promise<WrittenBy> =>
    commit === null
      ? {}
      : writtenByOf((await this.once(`commit ${project} ${commit}`, () => this.store.commitsOf(project, [commit]))).get(commit))

  /** Targets of a service that is placed nowhere. */
  private async waiting({ targets }: ServiceSpec, boundary: NamedProject | null): Promise<NonNullable<ServiceInput['waiting']>> {
    const wanted = withDestinations(targets, boundary)
    const clusters = [...(await this.clusters()).values()].filter(({ labels }) => isTarget(labels, wanted))
    const young: string[] = []
    for (const { clusterId, name, joinedMs } of clusters.sort((a, b) => order(a.name, b.name)))
      if (young.length < YOUNG_MAX && joinedMs > this.nowMs - FACTS_AWAITED_MS && !(await this.hasFacts(clusterId))) young.push(name)
    return { young, others: clusters.map(({ name }) => name) }
  }

  private readonly hasFacts = (clusterId: ClusterRecord['clusterId']) =>
    this.once(`facts ${clusterId}`, async () => (await this.store.listStatus({ clusterId, kind: 'facts' })).length > 0)

  /** The repository that hinders the service most: a missing one, then an unreadable one, then an unread one. */
  private async worstRepository(project: string, spec: ServiceSpec): Promise<ServiceInput['repository']> {
    const names = [...new Set(sourcesOf(spec).map(({ repository }) => repository))]
    const isOneOfMany = names.length > 1
    const found = await Promise.all(names.map(async (name) => ({ name, state: await this.repository(project, name), isOneOfMany })))
    const trouble = ({ state }: ServiceInput['repository']) =>
      state === null ? 3 : state.error !== null ? 2 : state.commit === null ? 1 : 0
    return found.sort((a, b) => trouble(b) - trouble(a))[0] ?? { name: '', state: null, isOneOfMany }
  }

  /** For a service in a list. Clusters are read only if there are any. */
  private async unrenderedAway(id: ServiceId, error: StoredError | null): Promise<string[]> {
    const failed = countWithout(error) === 0 ? null : await failingService(this.store, id)
    if (failed === null) return []
    const { failing } = failed
    const rows = failing.isCut ? await this.store.desiredOfService(id) : []
    const held = new Set(rows.flatMap(({ clusterId, doc }) => (doc === null ? [] : [clusterId])))
    const clusters = [...(await this.clusters()).values()]
    return clusters.flatMap((cluster) =>
      failing.without(cluster) === undefined || held.has(cluster.clusterId) || livenessOf(cluster, this.nowMs).word === 'Online'
        ? []
        : [cluster.name],
    )
  }

  private async summary(id: ServiceId, { counts: byWords, away }: KnownCounts, isListed: boolean): Promise<PlacementsSummary> {
    const counts = Object.entries(byWords).map(([text, count]) => ({ ...readWords(text), count }))
    const words = worstWords(counts)
    const name = words === null ? null : await this.store.rollups.firstIn(id, words)
    const cluster = name === null ? null : await this.store.clusterByName(name)
    const found = cluster === null ? null : await this.placementOf(cluster, id)
    return {
      counts,
      worst: found === null ? null : { place: found.cluster, state: found },
      away: { count: away?.count ?? 0, places: away?.names ?? [] },
      sinceMs: isListed || words !== null ? null : await this.store.rollups.youngestOf(id),
    }
  }

  private async placementOf(cluster: ClusterRecord, id: ServiceId): Promise<PlacementView | null> {
    const { clusterId } = cluster
    const [row] = await this.store.desiredOf(id, [clusterId])
    if (row === undefined || row.doc === null) return null
    const [entry] = await this.store.listStatus({ clusterId, kind: 'service', key: serviceKey(id) })
    const subject = pruneSubject(clusterId, row)
    const question = (await this.store.openConfirmationsFor([subject])).get(subject)
    return this.placement(cluster, row, entry, { question, suspensions: await this.suspensions() })
  }

  async placementsOfService(id: ServiceId): Promise<PlacementView[]> {
    const desired = (await this.store.desiredOfService(id)).filter((row) => row.doc !== null)
    const failed = await failingService(this.store, id)
    if (desired.length === 0 && failed === null) return []
    const clusters = await this.clusters()
    const entries = new Map(
      (await this.store.listStatus({ kind: 'service', key: serviceKey(id) })).map((entry) => [entry.clusterId, entry]),
    )
    const questions = new Map((await this.store.confirmationsOfService(id)).map((item) => [item.subject, item]))
    const suspensions = await this.suspensions()
    const placements: PlacementView[] = []
    const holding = new Set<string>()
    for (const row of desired) {
      const turn = this.pace()
      if (turn !== undefined) await turn
      const cluster = clusters.get(row.clusterId)
      if (cluster === undefined) continue
      holding.add(cluster.name)
      const around = { question: questions.get(pruneSubject(row.clusterId, row)), suspensions }
      placements.push(keptIn(this.placement(cluster, row, entries.get(row.clusterId), around), failed))
    }
    if (failed !== null)
      for (const cluster of clusters.values()) {
        const words = holding.has(cluster.name) ? undefined : failed.failing.without(cluster)
        if (words !== undefined) placements.push(this.unrendered(failed, cluster, words))
      }
    await this.pace()
    placements.sort((a, b) => order(a.cluster, b.cluster))
    await this.pace()
    return placements
  }

  async placementsInCluster(cluster: ClusterRecord): Promise<PlacementView[]> {
    const desired = (await this.store.desiredInCluster(cluster.clusterId)).filter((row) => row.doc !== null)
    const entries = await this.store.listStatus({ clusterId: cluster.clusterId, kind: 'service' })
    const byKey = new Map(entries.map((entry) => [entry.key, entry]))
    const failing = await this.failing()
    const holding = new Set(desired.map(serviceKey))
    const questions = await this.store.openConfirmationsFor(desired.map((row) => pruneSubject(row.clusterId, row)))
    const suspensions = await this.suspensions()
    const placements: PlacementView[] = []
    for (const row of desired) {
      const question = questions.get(pruneSubject(row.clusterId, row))
      placements.push(
        keptIn(this.placement(cluster, row, byKey.get(serviceKey(row)), { question, suspensions }), failing.get(serviceKey(row)) ?? null),
      )
    }
    for (const [key, failed] of failing) {
      const words = holding.has(key) ? undefined : failed.failing.without(cluster)
      if (words !== undefined) placements.push(this.unrendered(failed, cluster, words))
    }
    return placements.sort((a, b) => order(serviceKey(a), serviceKey(b)))
  }

  private readonly failing = () =>
    this.once('failing', async () => new Map((await readFailing(this.store)).map((one) => [serviceKey(one.id), one])))

  private unrendered({ id, sinceMs }: FailingService, cluster: ClusterRecord, words: FailedWords): PlacementView {
    return unrenderedPlacement(id, { cluster: cluster.name, liveness: livenessOf(cluster, this.nowMs) }, words, sinceMs)
  }

  private placement(
    cluster: ClusterRecord,
    desired: DesiredService,
    entry: StatusEntry | undefined,
    { question, suspensions }: { question: Confirmation | undefined; suspensions: readonly OrderedSuspension[] },
  ): PlacementView {
    return placementView({
      cluster,
      liveness: livenessOf(cluster, this.nowMs),
      desired,
      status: serviceStatusSchema.safeParse(entry?.doc).data ?? null,
      confirmation: question === undefined || question.confirmedMs !== null ? null : question,
      suspensions: suspensions.filter((one) => isSuspendedBy(one, desired, cluster.name)),
    })
  }
}

const idOf = ({ project, name }: StoredResource): ServiceId => ({ project, service: name })

/** Those of whole clusters are shown with the clusters. */
const isOfService = ({ service, cluster }: OrderedSuspension, id: ServiceId): boolean =>
  service === null ? cluster === null : serviceKey(service) === serviceKey(id)

function keptIn(placement: PlacementView, failed: FailingService | null): PlacementView {
  const words = failed?.failing.keeping(placement.cluster)
  return failed === null || words === undefined ? placement : keepingPlacement(placement, words, failed.sinceMs)
}

const order = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)
