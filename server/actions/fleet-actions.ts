// The consequences of a person's write or an agent's report. planService decides, in the reconciliation that each of
// these requests.
import { setImmediate } from 'node:timers/promises'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { isFleetRows } from '../../shared/model/desired.ts'
import { type ServiceStatus, serviceStatusSchema } from '../../shared/model/status.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import { parseServiceKey, serviceKey } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Shards } from '../desired/shards.ts'
import { fleetEvent } from '../fleet/fleet-event.ts'
import { pruneSubject, removeSubject } from '../fleet/plan-service.ts'
import type { AgentRecord, Confirmation, ResourceKey, StatusWrite } from '../fleet/records.ts'
import type { ConfirmedData } from '../fleet/removal-effect.ts'
import { configUsers } from '../ingest/config-users.ts'
import type { Ingest } from '../ingest/ingest-port.ts'
import { resourcesOf } from '../ingest/projects.ts'
import { news, warning } from '../messages/event-messages.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { Store } from '../store/store.ts'
import { readObjectOrder } from './object-order.ts'
import type { DeleteOutcome, FleetActions } from './port.ts'
import { allowSync, planSync } from './sync-actions.ts'

export interface FleetActionsDeps {
  store: Store
  content: Pick<ContentStore, 'get'>
  shards: Pick<Shards, 'removeCluster'>
  ingest: Pick<
    Ingest,
    | 'repositoryChanged'
    | 'serviceChanged'
    | 'dataConfirmed'
    | 'clustersChanged'
    | 'clusterDeleted'
    | 'healthRulesChanged'
    | 'suspensionsChanged'
    | 'siteConfigsChanged'
    | 'statusReported'
  >
  /** Its agent may no longer open sessions. */
  onClusterDeleted(clusterId: ClusterId): Promise<void>
  clock: Clock
  log: Logger
}

/** Kinds that no service pass follows, or that are followed in another way. */
const UNFOLLOWED: ReadonlySet<ResourceKey['kind']> = new Set([
  ...(['Cluster', 'HealthRule', 'Role', 'RoleBinding', 'NotificationSink', 'NotificationRoute'] as const),
])

type ReportingCluster = Pick<AgentRecord, 'clusterId' | 'clusterName'>

export interface AgentReports {
  /** Status rows of a cluster that changed, after they are in the store. Returns at once. */
  onStatus(cluster: ReportingCluster, changed: readonly StatusWrite[]): void
  /** A cluster joined. Returns at once. */
  onJoined(name: string): void
}

export function createFleetActions(deps: FleetActionsDeps): FleetActions & AgentReports {
  const { store, shards, ingest, clock, log } = deps
  const reporting = { ...deps, questionsFor: questionLookup(store) }
  /** For work that no caller waits for. A reconciliation reports its failure, and retries, itself. */
  const follow = (what: string, work: Promise<unknown>) => {
    work.catch((error: unknown) => log.warn('follow-up work of a change failed', { what, error: describeError(error) }))
  }
  return {
    deleteService: (id, by, confirmed = NOTHING_CONFIRMED, ifVersion) => deleteService(deps, id, { by, ifVersion }, confirmed),
    async takeBackDeletion(id, by) {
      const key: ResourceKey = { kind: 'Service', project: id.project, name: id.service }
      if (!(await store.takeBackDeletion(key, removeSubject(id), clock.nowMs()))) return false
      await store.appendEvents([fleetEvent(clock.nowMs(), news('DeletionTakenBack', { by }), { service: id })])
      return true
    },
    async deleteCluster(name, by, ifVersion) {
      const cluster = await store.clusterByName(name)
      if (cluster === null) return false
      const services = (await store.desiredInCluster(cluster.clusterId)).filter((row) => !isFleetRows(row))
      if (!(await store.deleteCluster(name, ifVersion))) return false
      await deps.onClusterDeleted(cluster.clusterId)
      const gone = { key: 'cluster', rev: 0, doc: null }
      ingest.statusReported(cluster.clusterId, [
        { kind: 'facts', ...gone },
        { kind: 'site', ...gone },
      ])
      try {
        shards.removeCluster(cluster.clusterId)
      } catch (error) {
        // The next start removes it (CU8).
        log.warn('a deleted cluster cannot be removed from its shard file', { cluster: name, error: describeError(error) })
      }
      log.info('cluster deleted', { cluster: name, by })
      await store.appendEvents([fleetEvent(clock.nowMs(), news('ClusterDeleted', { by }), { cluster: name })])
      follow('cluster deleted', ingest.clusterDeleted(cluster.clusterId, services))
      return true
    },
    confirm: (id, by, confirmed = NOTHING_CONFIRMED, upTo) => confirm(deps, { id, by, ...(upTo === undefined ? {} : { upTo }) }, confirmed),
    refuse: (id, no) => refuse(deps, id, no),
    suspensionsChanged: () => ingest.suspensionsChanged(),
    planSync: (id, wanted) => planSync(deps, id, wanted),
    allowSync: (id, request, by) => allowSync(deps, id, request, by),
    objectOrder: (id, clusterId) => readObjectOrder(deps, id, clusterId),
    onChanged(keys, confirmed = NOTHING_CONFIRMED) {
      const told = () => {
        const others = keys.filter(({ kind }) => !UNFOLLOWED.has(kind))
        const clusters = keys.flatMap(({ kind, name, labelsOnly = false }) => (kind === 'Cluster' ? [{ name, labelsOnly }] : []))
        if (clusters.length > 0) follow('Cluster changed', ingest.clustersChanged(clusters))
        follow('ConfigMaps of sites', siteConfigsOf(ingest, keys))
        if (keys.some(({ kind }) => kind === 'HealthRule')) follow('HealthRule changed', ingest.healthRulesChanged())
        for (const key of others) follow(`${key.kind} changed`, changed(deps, key))
      }
      if (confirmed.size === 0) told()
      else follow('data confirmed', ingest.dataConfirmed(confirmed).then(told))
    },
    onJoined(name) {
      const after = () =>
        Promise.all([
          ingest.clustersChanged([{ name, labelsOnly: false }]),
          ingest.healthRulesChanged([name]),
          ingest.siteConfigsChanged({ clusters: [name] }),
        ])
      // SU1: the cluster gets the suspensions before the suspended services.
      follow('cluster joined', ingest.suspensionsChanged([name]).then(after))
    },
    onStatus(cluster, rows) {
      ingest.statusReported(cluster.clusterId, rows)
      const reports = rows.filter(({ kind }) => kind === 'service')
      if (reports.length > 0) follow('service status', servicesReported(reporting, cluster, reports))
    },
  }
}

async function changed(deps: Pick<FleetActionsDeps, 'store' | 'ingest'>, { kind, project, name }: ResourceKey): Promise<void> {
  if (kind === 'Repository') return deps.ingest.repositoryChanged(project, name)
  if (kind === 'Project') return projectChanged(deps, name)
  if (kind !== 'Config') return deps.ingest.serviceChanged({ project, service: name })
  // Configs that read their sources with it do that by themselves, and a project may have megabytes of them.
  const users = await configUsers(deps.store, project, name, ['Repository', 'NotificationSink', 'Service'])
  const looks = await Promise.allSettled(users.map((user) => changed(deps, user)))
  for (const look of looks) if (look.status === 'rejected') throw look.reason
}

/** PJ8: what its services may be and where they may go is another now. */
async function projectChanged({ store, ingest }: Pick<FleetActionsDeps, 'store' | 'ingest'>, project: string): Promise<void> {
  const passes: Promise<void>[] = []
  for await (const { name } of resourcesOf(store, 'Repository', project)) passes.push(ingest.repositoryChanged(project, name))
  for await (const { name } of resourcesOf(store, 'Service', project)) passes.push(ingest.serviceChanged({ project, service: name }))
  for (const pass of await Promise.allSettled(passes)) if (pass.status === 'rejected') throw pass.reason
}

/** SC1: clusters, services and projects that change give clusters other rows. */
async function siteConfigsOf(ingest: FleetActionsDeps['ingest'], keys: readonly ResourceKey[]): Promise<void> {
  const clusters = keys.flatMap(({ kind, name }) => (kind === 'Cluster' ? [name] : []))
  const services = keys.flatMap(({ kind, project, name }) => (kind === 'Service' ? [{ project, service: name }] : []))
  if (keys.some(({ kind }) => kind === 'Project')) return ingest.siteConfigsChanged({})
  if (clusters.length > 0) await ingest.siteConfigsChanged({ clusters })
  for (const service of services) await ingest.siteConfigsChanged({ service })
}

const NOTHING_CONFIRMED: ConfirmedData = new Map()

/** The confirmed names of data, for the log. */
const namesIn = (confirmed: ConfirmedData): string[] =>
  [...new Set([...confirmed.values()].flatMap((clusters) => [...clusters.values()].flat()))].sort()

async function deleteService(
  { store, ingest, clock, log }: FleetActionsDeps,
  id: ServiceId,
  { by, ifVersion }: { by: string; ifVersion: number | undefined },
  confirmed: ConfirmedData,
): Promise<DeleteOutcome> {
  const key: ResourceKey = { kind: 'Service', project: id.project, name: id.service }
  const names = namesIn(confirmed)
  const nowMs = clock.nowMs()
  const said = names.length === 0 ? news('DeletionRequested', { by }) : news('DeletionRequested.data', { by, data: namesText(names) })
  const requested = fleetEvent(nowMs, said, { service: id })
  if (!(await store.markDeleting(key, nowMs, by, [requested], ifVersion))) return { kind: 'not_found' }
  log.info('deletion requested', { service: serviceKey(id), by, dataConfirmed: names.length })
  await ingest.dataConfirmed(confirmed)
  await ingest.serviceChanged(id)
  if ((await store.getResource(key)) === null) return { kind: 'deleted' }
  const confirmation = await store.confirmationFor(removeSubject(id))
  if (confirmation !== null && confirmation.confirmedMs === null) return { kind: 'waiting', confirmation }
  // Not the whole fleet: a thousand services may be deleted by one request.
  const holders = (await store.desiredOfService(id)).flatMap(({ clusterId, doc }) => (doc === null ? [] : [clusterId]))
  return { kind: 'removing', clusters: (await store.findClusters({ ids: holders })).map(({ name }) => name).sort() }
}

async function confirm(
  { store, ingest, clock, log }: FleetActionsDeps,
  { id, by, upTo }: { id: string; by: string; upTo?: number },
  confirmed: ConfirmedData,
): Promise<Confirmation | null> {
  const confirmation = await store.confirm(id, by, clock.nowMs(), upTo)
  if (confirmation === null) return null
  const { project, service, cluster, names, kind, clusters } = confirmation
  const data = namesIn(confirmed)
  const decided = { kind, clusters: clusters?.count ?? null, names: namesText(names), by }
  const said = data.length === 0 ? news('Confirmed', decided) : news('Confirmed.data', { ...decided, data: namesText(data) })
  const about = { service: { project, service }, ...(cluster === null ? {} : { cluster }) }
  await store.appendEvents([fleetEvent(clock.nowMs(), said, about)])
  log.info('confirmed', { confirmation: id, kind, clusters: clusters?.count, service: serviceKey({ project, service }), by })
  await ingest.dataConfirmed(confirmed)
  await ingest.serviceChanged({ project, service })
  return confirmation
}

/** ST24: keeps the objects; the confirmation is no longer listed. */
async function refuse(
  { store, ingest, clock, log }: FleetActionsDeps,
  id: string,
  { by, why, upTo }: { by: string; why: string; upTo?: number | undefined },
): Promise<Confirmation | null> {
  const refused = await store.refuse(id, { by, why, upTo, nowMs: clock.nowMs() })
  if (refused === null) return null
  const { project, service, cluster, names, kind, clusters } = refused
  const said = news('ConfirmationRefused', { kind, clusters: clusters?.count ?? null, names: namesText(names), by, why })
  const about = { service: { project, service }, ...(cluster === null ? {} : { cluster }) }
  await store.appendEvents([fleetEvent(clock.nowMs(), said, about)])
  log.info('confirmation refused', { confirmation: id, kind, clusters: clusters?.count, service: serviceKey({ project, service }), by })
  if (kind === 'remove_service') {
    const key: ResourceKey = { kind: 'Service', project, name: service }
    await store.takeBackDeletion(key, removeSubject({ project, service }), clock.nowMs())
    await ingest.serviceChanged({ project, service })
  }
  return refused
}

const namesText = (names: readonly string[]): string =>
  `${names.slice(0, 20).join(', ')}${names.length > 20 ? ` and ${names.length - 20} more` : ''}`

/** Reports that are followed between two turns of everybody else. */
const REPORTS_A_TURN = 50

type QuestionLookup = (subjects: readonly string[]) => Promise<ReadonlyMap<string, Confirmation>>
type ReportingDeps = FleetActionsDeps & { questionsFor: QuestionLookup }

/** One look for all reports that come in the same turn of the loop: after a commit ten thousand agents report, and few
 *  of them wait for a person. */
function questionLookup(store: Pick<Store, 'confirmationsFor'>): QuestionLookup {
  let gathering: { subjects: string[]; found: ReturnType<QuestionLookup> } | null = null
  const gather = () => {
    const subjects: string[] = []
    const found = setImmediate().then(() => {
      gathering = null
      return store.confirmationsFor(subjects)
    })
    return { subjects, found }
  }
  return (subjects) => {
    gathering ??= gather()
    gathering.subjects.push(...subjects)
    return gathering.found
  }
}

/** An agent can say anything of anything: it has consequences only for services that its cluster has from here.
 *  Questions are opened one after the other. */
async function servicesReported(deps: ReportingDeps, cluster: ReportingCluster, reports: readonly StatusWrite[]): Promise<void> {
  const subjectOf = (key: string) => pruneSubject(cluster.clusterId, parseServiceKey(key))
  const questions = await deps.questionsFor(reports.map(({ key }) => subjectOf(key)))
  const removed: ServiceId[] = []
  for (const [index, { key, doc }] of reports.entries()) {
    if (index % REPORTS_A_TURN === REPORTS_A_TURN - 1) await setImmediate()
    const status = serviceStatusSchema.safeParse(doc).data
    const id = parseServiceKey(key)
    const hasConsequences = status?.refusal !== undefined || status?.removed === true
    if (hasConsequences && (await deps.store.desiredOf(id, [cluster.clusterId])).length === 0) continue
    const held = questions.get(subjectOf(key)) ?? null
    await serviceReported(deps, cluster, { id, status, held }).catch((error: unknown) => reportFailed(deps, id, error))
    if (status?.removed === true) removed.push(id)
  }
  // Together, so that their reconciliations share publications and commits.
  await Promise.all(removed.map((id) => deps.ingest.serviceChanged(id).catch((error: unknown) => reportFailed(deps, id, error))))
}

const reportFailed = ({ log }: FleetActionsDeps, id: ServiceId, error: unknown): void =>
  log.warn('follow-up work of a report failed', { service: serviceKey(id), error: describeError(error) })

/** TG12: a refused prune waits for a person as long as the agent refuses it. TG8: a removal that was carried out ends
 *  its order. */
async function serviceReported(
  deps: FleetActionsDeps,
  { clusterId, clusterName: cluster }: ReportingCluster,
  { id, status, held }: { id: ServiceId; status: ServiceStatus | undefined; held: Confirmation | null },
): Promise<void> {
  const { store, clock } = deps
  const subject = pruneSubject(clusterId, id)
  if (status?.refusal !== undefined) {
    const { digest, names, count, ownedCount, why, only = false } = status.refusal
    if (held?.token === digest && canonicalJson(held.names) === canonicalJson(names)) return
    const more = count > names.length ? ` (${names.length} of ${count} shown)` : ''
    const { project, service } = id
    const createdMs = clock.nowMs()
    const asked = { kind: 'prune', subject, project, service, cluster, token: digest, names, why: `${why}${more}`, createdMs } as const
    const opened = await store.openConfirmation(asked)
    if (opened.clusters !== undefined) return // its first cluster told of the question
    // Why, and of what, the agent's own event says.
    const about = { count, cluster, confirmation: opened.id }
    const said = only
      ? warning('ConfirmationNeeded.deletions', about)
      : warning('ConfirmationNeeded.prune', { ...about, owned: ownedCount })
    await store.appendEvents([fleetEvent(createdMs, said, { service: id, cluster })])
  } else if (held !== null) await store.closeConfirmation(subject)
  if (status?.removed === true) deps.log.info('removal reported', { cluster: clusterId, service: serviceKey(id) })
}
