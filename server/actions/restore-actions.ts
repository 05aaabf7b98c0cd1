// RP2: the plan that a person reads, and the effect of its confirmation.
import { setImmediate } from 'node:timers/promises'
import { type ServiceStatus, serviceStatusSchema } from '../../shared/model/status.ts'
import { isSuspendedBy } from '../../shared/model/suspension.ts'
import type { RestorePlanView } from '../../shared/model/views.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { type ClusterId, serviceKey } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Knocks } from '../access/knocks.ts'
import { type Publication, type PublishDeps, publishRevisions } from '../desired/publisher.ts'
import { decodeRenderedSet } from '../desired/rendered-set.ts'
import { fleetEvent } from '../fleet/fleet-event.ts'
import type { ClusterRecord, DesiredService, RestoreProof } from '../fleet/records.ts'
import { planRestore, restoredDoc, restoreToken } from '../fleet/restore-plan.ts'
import { listSuspensions } from '../ingest/suspension-rows.ts'
import { news } from '../messages/event-messages.ts'
import type { Store } from '../store/store.ts'
import type { RestoreGate } from './restore-gate.ts'

export interface RestoreActions {
  /** Since when agents wait for a person. Null means that they do not. */
  pendingSinceMs(): Promise<number | null>
  plan(): Promise<RestorePlanView>
  /**
   * Throws `conflict` if `token` does not fit the present plan. Returns how many clusters and services must not delete
   * anything.
   */
  confirm(token: string, by: string): Promise<{ clusters: number; marked: number }>
}

export interface RestoreActionsDeps {
  store: Store
  publish: PublishDeps
  gate: RestoreGate
  knocks: Pick<Knocks, 'list'>
  /** Epochs changed. */
  refreshAgents(): Promise<void>
  /** Every service must be reconciled: the mark may have overwritten revisions that were published meanwhile. */
  onSettled?(): void
  clock: Clock
  log: Logger
}

/** Clusters that are read between two turns of everybody else. */
const CLUSTERS_A_TURN = 50
/** Rows with their objects that are held at a time. */
const ROWS_A_TIME = 500

interface Read {
  view: RestorePlanView
  marked: DesiredService[]
}

export function createRestoreActions(deps: RestoreActionsDeps): RestoreActions {
  const { store, gate, clock, log } = deps
  let confirming = false
  const sinceMs = async () => earliest(await store.restoreProofs())
  return {
    pendingSinceMs: async () => (gate.pending() ? ((await sinceMs()) ?? clock.nowMs()) : null),
    plan: async () => (await readPlan(deps)).view,
    async confirm(token, by) {
      if (confirming)
        throw new AppError('conflict', { detail: 'another confirmation is running', remedy: 'Run `skerry restore` to see the plan.' })
      confirming = true
      try {
        const { view, marked } = await readPlan(deps)
        if (!view.pending) throw new AppError('conflict', { detail: 'no pending restore', remedy: '' })
        if (view.token !== token)
          throw new AppError('conflict', {
            detail: 'the plan changed since it was shown: agents reconnected or Git changed',
            remedy: 'Run `skerry restore` to see the new plan, then confirm it.',
          })
        await markRestored(deps.publish, marked)
        await gate.settle(async () => {
          await store.settleRestore(clock.nowMs())
          await deps.refreshAgents()
        })
        deps.onSettled?.()
        const said = news('RestoreConfirmed', { by, clusters: view.clusters.length, services: marked.length })
        await store.appendEvents([fleetEvent(clock.nowMs(), said, {})])
        log.warn('restore confirmed', { by, clusters: view.clusters.length, marked: marked.length })
        return { clusters: view.clusters.length, marked: marked.length }
      } finally {
        confirming = false
      }
    },
  }
}

const earliest = (proofs: readonly RestoreProof[]): number | null =>
  proofs.reduce<number | null>((min, { atMs }) => (min === null || atMs < min ? atMs : min), null)

async function readPlan({ store, gate, knocks, clock }: RestoreActionsDeps): Promise<Read> {
  const unknownAgents = knocks.list()
  await gate.saved()
  const proofs = await store.restoreProofs()
  const sinceMs = earliest(proofs) ?? clock.nowMs() // none: a yes that broke off after the store forgot the matter
  if (!gate.pending()) return { view: { pending: false, sinceMs: null, token: null, clusters: [], unknownAgents }, marked: [] }
  const suspensions = await listSuspensions(store)
  const byCluster = new Map(proofs.map((proof) => [proof.clusterId, proof]))
  const clusters: RestorePlanView['clusters'] = []
  const marked: DesiredService[] = []
  for (const [index, cluster] of (await store.listClusters()).entries()) {
    if (index % CLUSTERS_A_TURN === CLUSTERS_A_TURN - 1) await setImmediate()
    const proof = byCluster.get(cluster.clusterId)
    const facts = proof === undefined ? null : await store.restoreFacts(cluster.clusterId)
    const planned = planRestore({
      cluster: cluster.name,
      lastSeenMs: cluster.lastSeenMs,
      heard: heardOf(cluster, sinceMs, gate),
      ahead: proof === undefined || facts === null ? null : { proof, epoch: facts.epoch, ordinal: facts.ordinal },
      desired: await store.desiredInCluster(cluster.clusterId),
      isSuspended: (id) => suspensions.some((one) => isSuspendedBy(one, id, cluster.name)),
      reports: await reportsOf(store, cluster.clusterId),
    })
    clusters.push(planned.view)
    marked.push(...planned.marked)
  }
  return { view: { pending: true, sinceMs, token: restoreToken(clusters), clusters, unknownAgents }, marked }
}

const heardOf = ({ clusterId, lastSeenMs }: ClusterRecord, sinceMs: number, gate: RestoreGate): boolean =>
  gate.heard(clusterId) || (lastSeenMs ?? 0) >= sinceMs

async function reportsOf(store: Store, clusterId: ClusterId): Promise<Map<string, ServiceStatus>> {
  const reports = new Map<string, ServiceStatus>()
  for (const { key, doc } of await store.listStatus({ clusterId, kind: 'service' })) {
    const status = serviceStatusSchema.safeParse(doc).data
    if (status !== undefined) reports.set(key, status)
  }
  return reports
}

/**
 * A repetition does nothing (RV4): a crash before the restore is settled leaves it pending, and the next confirmation
 * continues.
 */
async function markRestored(publish: PublishDeps, marked: readonly DesiredService[]): Promise<void> {
  const rows = [...marked].sort((a, b) => (serviceKey(a) < serviceKey(b) ? -1 : serviceKey(a) > serviceKey(b) ? 1 : 0))
  for (let start = 0; start < rows.length; start += ROWS_A_TIME) {
    const sets = new Map<string | null, ReadonlyMap<string, string>>([[null, new Map()]])
    const publications: Publication[] = []
    for (const { ordinal: _, setSha, doc, ...row } of rows.slice(start, start + ROWS_A_TIME)) {
      const objects = sets.get(setSha) ?? (await readSet(publish, setSha))
      sets.set(setSha, objects)
      if (doc !== null) publications.push({ ...row, doc: restoredDoc(doc), objects })
    }
    await publishRevisions(publish, publications)
    // An agent that is served again without the mark might delete.
    const behind = publications.find(({ clusterId }) => publish.shards.behind.of(clusterId) !== null)
    if (behind !== undefined)
      throw new AppError('internal', {
        doing: 'confirm a restore',
        detail: `the shard file of cluster ${behind.clusterId} cannot be written: ${publish.shards.behind.of(behind.clusterId)?.error}`,
      })
  }
}

async function readSet({ content }: PublishDeps, sha: string | null): Promise<ReadonlyMap<string, string>> {
  const bytes = sha === null ? null : await content.get(sha)
  if (bytes === null) throw new AppError('internal', { doing: 'confirm a restore', detail: `the content store lacks ${sha}` })
  return decodeRenderedSet(bytes)
}
