// Metrics of the fleet, read from the counts of the store at each scrape: they cost nothing between scrapes, and one
// scrape costs what it shows.

import type { Sample } from '../../shared/adapters/metrics.ts'
import { COMMIT, VERSION } from '../../shared/runtime/build-info.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { parseServiceKey } from '../../shared/runtime/ids.ts'
import { dueMs } from '../backup/archive/schedule.ts'
import type { BackupState } from '../backup/archive/state.ts'
import { onlineWithinMs } from '../fleet/liveness.ts'
import type { Store } from '../store/store.ts'
import { readAgents } from './agent-gauges.ts'
import type { ServerMetrics } from './server-metrics.ts'

/** Series of each kind. A scrape of 10,000 series takes about 30 ms. */
export const SERVICES_MAX = 2_000
export const CLUSTERS_MAX = 10_000

export const SERIES = ['all', 'fleet'] as const
export type Series = (typeof SERIES)[number]

export interface FleetGaugesDeps {
  store: Pick<Store, 'rollups' | 'listClusters' | 'listStatus' | 'pendingConfirmations' | 'renderErrors' | 'notifications'>
  metrics: ServerMetrics
  /** `fleet`: no series for each service and cluster. */
  series: Series
  failingLoops(): readonly string[]
  /** Number of pieces of work that do not end. Absent means that nobody watches. */
  stuckCount?(): number
  /** Questions to clusters that are not answered yet. Absent means none are sent. */
  openQuestions?(): number
  /** Absent means none are scheduled. */
  backups?(): BackupState
  clock: Clock
}

export function createFleetGauges({
  store,
  metrics,
  series,
  failingLoops,
  stuckCount = () => 0,
  openQuestions = () => 0,
  backups,
  clock,
}: FleetGaugesDeps): () => Promise<void> {
  const truncated = new Map<string, number>()
  const wordsOf = async (dimension: 'placement' | 'object') => samplesOf((await store.rollups.ofKeys(dimension, [''])).get('') ?? {})

  async function readServices(): Promise<void> {
    const { items, next } = await store.rollups.page({ dimension: 'service', limit: SERVICES_MAX })
    const samples = items.flatMap(({ key, counts }) => {
      const { project, service } = parseServiceKey(key)
      return samplesOf(counts, { project, service })
    })
    metrics.set('skerry_service_placements', samples)
    truncated.set('service', next === null ? 0 : 1)
  }
  async function readClusters(): Promise<void> {
    const clusters = await store.listClusters()
    const samples = clusters
      .slice(0, CLUSTERS_MAX)
      .flatMap(({ name, lastSeenMs }) => (lastSeenMs === null ? [] : [{ labels: { cluster: name }, value: lastSeenMs / 1_000 }]))
    metrics.set('skerry_cluster_last_contact_timestamp_seconds', samples)
    truncated.set('cluster', clusters.length > CLUSTERS_MAX ? 1 : 0)
    truncated.set('agent', Number(await readAgents(store, metrics, clusters, clock.nowMs())))
  }

  return async () => {
    const startMs = clock.monotonicMs()
    const liveness = await store.rollups.liveness(clock.nowMs(), onlineWithinMs)
    metrics.set('skerry_clusters', labelled('liveness', Object.entries(liveness)))
    metrics.set('skerry_placements', await wordsOf('placement'))
    metrics.set('skerry_objects', await wordsOf('object'))
    const pending = await store.pendingConfirmations()
    metrics.set(
      'skerry_confirmations_pending',
      labelled(
        'kind',
        pending.map(({ kind, count }) => [kind, count]),
      ),
    )
    metrics.set(
      'skerry_confirmations_oldest_timestamp_seconds',
      labelled(
        'kind',
        pending.map(({ kind, oldestMs }) => [kind, oldestMs / 1_000]),
      ),
    )
    metrics.set('skerry_services_failing', [{ value: (await store.renderErrors()).length }])
    metrics.set(
      'skerry_loop_failing',
      labelled(
        'loop',
        failingLoops().map((name) => [name, 1] as const),
      ),
    )
    metrics.set('skerry_work_stuck', [{ value: stuckCount() }])
    metrics.set('skerry_questions_open', [{ value: openQuestions() }])
    const { failingSinceMs, ...undelivered } = await store.notifications.totals()
    metrics.set('skerry_notifications', labelled('state', Object.entries(undelivered)))
    metrics.set('skerry_notifications_failing_since_timestamp_seconds', failingSinceMs === null ? [] : [{ value: failingSinceMs / 1_000 }])
    if (backups !== undefined) readBackups(backups(), metrics)
    metrics.set('skerry_build_info', [{ labels: { version: VERSION, commit: COMMIT }, value: 1 }])
    if (series === 'all') {
      await readServices()
      await readClusters()
      metrics.set('skerry_series_truncated', labelled('kind', [...truncated]))
    }
    metrics.set('skerry_scrape_duration_seconds', [{ value: (clock.monotonicMs() - startMs) / 1_000 }])
  }
}

function readBackups(state: BackupState, metrics: ServerMetrics): void {
  const due = dueMs(state)
  const { last, attempt } = state
  if (due !== null) {
    metrics.set('skerry_backup_due_timestamp_seconds', [{ value: due / 1_000 }])
    metrics.set('skerry_backup_failing', [{ value: attempt === null || attempt.error === null ? 0 : 1 }])
  }
  if (last === null) return
  metrics.set('skerry_backup_last_timestamp_seconds', [{ value: last.createdMs / 1_000 }])
  metrics.set('skerry_backup_bytes', [{ value: last.bytes }])
  metrics.set('skerry_backup_duration_seconds', [{ value: last.tookMs / 1_000 }])
}

const labelled = (label: string, values: ReadonlyArray<readonly [string, number]>): Sample[] =>
  values.map(([key, value]) => ({ labels: { [label]: key }, value }))

/** `counts` by `Synced/Healthy`. */
const samplesOf = (counts: Readonly<Record<string, number>>, labels: Readonly<Record<string, string>> = {}): Sample[] =>
  Object.entries(counts).map(([words, value]) => {
    const [sync = '', health = ''] = words.split('/')
    return { labels: { ...labels, sync, health }, value }
  })
