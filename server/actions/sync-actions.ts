// A manual sync: reads the facts of the plan, and stores a confirmation of it. That is a confirmation like every other:
// the reconciliation of the service reads it, so that it survives a crash and meets the newest render.
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { serviceStatusSchema } from '../../shared/model/status.ts'
import type { SyncAnswer, SyncChange, SyncPlanView, SyncRequest } from '../../shared/model/sync.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { type ClusterId, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { decodeRenderedSet } from '../desired/rendered-set.ts'
import { fleetEvent } from '../fleet/fleet-event.ts'
import { livenessOf } from '../fleet/liveness.ts'
import { nameList } from '../fleet/placements-summary.ts'
import { releaseSubject } from '../fleet/plan-service.ts'
import type { ClusterRecord, DesiredService } from '../fleet/records.ts'
import { compareObjects, fromDigest, NOTHING, type RevisionObjects, waitsForSync } from '../fleet/sync-plan.ts'
import type { Ingest } from '../ingest/ingest-port.ts'
import { questionText } from '../messages/confirmation-messages.ts'
import { news } from '../messages/event-messages.ts'
import type { ContentStore } from '../store/content/content-store.ts'
import type { Store } from '../store/store.ts'

export interface SyncActionsDeps {
  store: Store
  content: Pick<ContentStore, 'get'>
  ingest: Pick<Ingest, 'serviceChanged'>
  clock: Clock
  log: Logger
}

interface Placed {
  cluster: ClusterRecord
  desired: DesiredService
  row: NonNullable<DesiredService['doc']>
}

/** Null if there is no such service. `wanted`: only these clusters. */
export async function planSync(
  { store, content, clock }: SyncActionsDeps,
  id: ServiceId,
  wanted: (cluster: ClusterRecord) => boolean,
): Promise<SyncPlanView | null> {
  const service = await store.getResource({ kind: 'Service', project: id.project, name: id.service })
  if (service === null) return null
  const { sync } = serviceSpecSchema.parse(JSON.parse(service.spec))
  const placed = (await placedOf(store, id)).filter(({ cluster }) => wanted(cluster))
  const reports = new Map((await store.listStatus({ kind: 'service', key: serviceKey(id) })).map(({ clusterId, doc }) => [clusterId, doc]))
  const changes: SyncChange[] = []
  const indexes = new Map<string, number>()
  const clusters: SyncPlanView['clusters'] = []
  for (const { cluster, desired, row } of placed) {
    const { digest, commit } = row
    const base = { cluster: cluster.name, liveness: livenessOf(cluster, clock.nowMs()), digest, commit }
    if (!waitsForSync(row)) {
      clusters.push({ ...base, waits: false, change: null })
      continue
    }
    const from = fromDigest(row, reportOf(reports, cluster.clusterId))
    const key = `${from} ${digest} ${desired.setSha}`
    const index = indexes.get(key) ?? changes.push(await readChange({ store, content }, row, desired, from)) - 1
    indexes.set(key, index)
    clusters.push({ ...base, waits: true, change: index })
  }
  return { project: id.project, service: id.service, mode: sync.mode ?? 'auto', prunes: sync.prune, clusters, changes }
}

/** TG17: null if there is no such service. Throws `conflict` for what is not as the person saw it. */
export async function allowSync(deps: SyncActionsDeps, id: ServiceId, request: SyncRequest, by: string): Promise<SyncAnswer | null> {
  const { store, ingest, clock, log } = deps
  if ((await store.getResource({ kind: 'Service', project: id.project, name: id.service })) === null) return null
  const { digest } = request
  const chosen = chooseClusters(await placedOf(store, id), id, request)
  const waiting = chosen.filter(({ row }) => waitsForSync(row))
  const commit = chosen[0]?.row.commit ?? ''
  const names = waiting.map(({ cluster }) => cluster.name)
  if (names.length === 0) return { digest, commit, clusters: [], already: chosen.length }
  const subject = `sync/${id.project}/${id.service}/${sha256Hex([digest, ...names].join(' ')).slice(0, 32)}`
  const createdMs = clock.nowMs()
  const why = questionText('sync')
  const asked = { kind: 'sync', subject, ...id, cluster: null, token: digest, names, why, createdMs } as const
  const { id: confirmationId } = await store.openConfirmation(asked)
  await store.confirm(confirmationId, by, createdMs)
  await ingest.serviceChanged(id)
  const allowed = new Set((await placedOf(store, id)).flatMap(({ cluster, row }) => (row.synced === digest ? [cluster.name] : [])))
  const done = names.filter((name) => allowed.has(name))
  if (done.length === 0) {
    await store.closeConfirmation(subject)
    throw await notTakenUp(deps, id)
  }
  const said = news('SyncAllowed', { commit: commit.slice(0, 12), clusters: nameList(done), by })
  await store.appendEvents([fleetEvent(createdMs, said, { service: id })])
  log.info('sync allowed', { service: serviceKey(id), digest, clusters: done.length, by })
  return { digest, commit, clusters: done, already: chosen.length - waiting.length }
}

/** All that the request means, each with the digest that the person saw. */
function chooseClusters(placed: readonly Placed[], id: ServiceId, { digest, clusters }: SyncRequest): Placed[] {
  const remedy = `\`skerry sync ${id.service} -p ${id.project}\` shows the current plan.`
  if (clusters === undefined) {
    const same = placed.filter(({ row }) => row.digest === digest)
    const [other] = placed
    if (same.length === 0 && other !== undefined) throw new AppError('conflict', { detail: notCurrent([other]), remedy })
    return same
  }
  const byName = new Map(placed.map((item) => [item.cluster.name, item]))
  const unknown = clusters.filter((name) => !byName.has(name))
  if (unknown.length > 0)
    throw new AppError('conflict', { detail: `the service is not in ${nameList(unknown)}, or is being removed from there`, remedy })
  const chosen = [...new Set(clusters)].sort().flatMap((name) => byName.get(name) ?? [])
  const stale = chosen.filter(({ row }) => row.digest !== digest)
  if (stale.length > 0) throw new AppError('conflict', { detail: notCurrent(stale), remedy })
  return chosen
}

function notCurrent(stale: readonly Placed[]): string {
  const current = [...new Set(stale.map(({ row }) => `${row.digest} of commit ${row.commit}`))].sort()
  return `${nameList(stale.map(({ cluster }) => cluster.name))} shall have revision ${current.join(' or ')} now; nothing was approved`
}

/** A release needs a confirmation of its own, Git changed meanwhile, or the present content does not render. */
async function notTakenUp({ store }: SyncActionsDeps, id: ServiceId): Promise<AppError> {
  const release = (await store.confirmationsOfService(id)).find(({ subject }) => subject === releaseSubject(id))
  if (release !== undefined) {
    const detail = `a new version of a render tool waits for confirmation, and the service is not published before (${release.why}); nothing was approved`
    return new AppError('conflict', {
      detail,
      remedy: `\`skerry confirm ${release.id}\` shows the changes and asks for confirmation; then sync again.`,
    })
  }
  const { error } = await store.renderState(id)
  const detail =
    error === null
      ? 'a newer revision arrived; nothing was approved'
      : `the service does not render (${error.message}); nothing was approved`
  const remedy = error === null ? `\`skerry sync ${id.service} -p ${id.project}\` shows its plan.` : 'Correct the error, then sync again.'
  return new AppError('conflict', { detail, remedy })
}

async function placedOf(store: Store, id: ServiceId): Promise<Placed[]> {
  const clusters = new Map((await store.listClusters()).map((cluster) => [cluster.clusterId, cluster]))
  const placed: Placed[] = []
  for (const desired of await store.desiredOfService(id)) {
    const cluster = clusters.get(desired.clusterId)
    const row = desired.doc
    if (cluster !== undefined && row !== null && row.removal === undefined) placed.push({ cluster, desired, row })
  }
  return placed.sort((a, b) => (a.cluster.name < b.cluster.name ? -1 : 1))
}

const reportOf = (reports: ReadonlyMap<ClusterId, unknown>, clusterId: ClusterId) =>
  serviceStatusSchema.safeParse(reports.get(clusterId)).data ?? null

async function readChange(
  { store, content }: Pick<SyncActionsDeps, 'store' | 'content'>,
  { digest, commit, count }: Placed['row'],
  { project, service, setSha }: DesiredService,
  from: string | null,
): Promise<SyncChange> {
  const before = from === null ? null : await store.variant({ project, service }, from)
  const head = { digest, commit, fromDigest: from, fromCommit: before?.commit ?? null }
  const to = await readObjects(content, setSha, count)
  const held = from === null ? null : before === null ? undefined : await readObjects(content, before.setSha, before.objectCount)
  if (to === undefined || held === undefined) return { ...head, known: false, create: NOTHING, change: NOTHING, prune: NOTHING, same: 0 }
  return { ...head, known: true, ...compareObjects(held, to) }
}

/** Undefined if they are not kept (any more). */
async function readObjects(content: Pick<ContentStore, 'get'>, sha: string | null, count: number): Promise<RevisionObjects | undefined> {
  if (sha === null) return count === 0 ? new Map() : undefined
  const bytes = await content.get(sha)
  return bytes === null ? undefined : decodeRenderedSet(bytes)
}
