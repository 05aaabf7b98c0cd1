// Metrics of agents by cluster, from the rows that agents report (--report-metrics). The series of an agent that is
// late are left out, except the time of its last row.
import { setImmediate } from 'node:timers/promises'
import type { Sample } from '../../shared/adapters/metrics.ts'
import type { AgentMetricsStatus } from '../../shared/model/status.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import type { Store } from '../store/store.ts'
import { CLUSTER_METRICS, type ClusterMetric } from './cluster-metrics.ts'
import type { ServerMetrics } from './server-metrics.ts'

/** Agents with series. Each has 14. */
export const AGENTS_MAX = 5_000
/** A row is late when it misses three intervals and this time, in which a metered agent collects its reports. */
const LATE_MS = 3_600_000

const VALUES: Readonly<Record<ClusterMetric, (doc: AgentMetricsStatus) => number>> = {
  skerry_agent_reported_timestamp_seconds: ({ atMs }) => atMs / 1_000,
  skerry_agent_start_timestamp_seconds: ({ startedMs }) => startedMs / 1_000,
  skerry_agent_cpu_seconds_total: ({ cpuSeconds }) => cpuSeconds,
  skerry_agent_resident_memory_bytes: ({ residentBytes }) => residentBytes,
  skerry_agent_enforcing: ({ enforcing }) => Number(enforcing),
  skerry_agent_disk_writable: ({ diskWritable }) => Number(diskWritable),
  skerry_agent_replica_rows: ({ replicaRows }) => replicaRows,
  skerry_agent_outbox_rows: ({ outboxRows }) => outboxRows,
  skerry_agent_requests_total: ({ requests }) => requests,
  skerry_agent_sent_bytes_total: ({ sentBytes }) => sentBytes,
  skerry_agent_received_bytes_total: ({ receivedBytes }) => receivedBytes,
  skerry_agent_today_bytes: ({ todayBytes }) => todayBytes,
  skerry_agent_resync_compared_total: ({ resyncCompared }) => resyncCompared,
  skerry_agent_resync_differences_total: ({ resyncDifferences }) => resyncDifferences,
}
const REPORTED = 'skerry_agent_reported_timestamp_seconds'

/** Sets the series of agents. Returns whether some have none, because there are more than AGENTS_MAX. */
export async function readAgents(
  store: Pick<Store, 'listStatus'>,
  metrics: ServerMetrics,
  clusters: ReadonlyArray<{ clusterId: ClusterId; name: string }>,
  nowMs: number,
): Promise<boolean> {
  const names = new Map(clusters.map(({ clusterId, name }) => [clusterId, name]))
  const rows = await store.listStatus({ kind: 'agent', key: 'metrics' })
  const told = rows.flatMap(({ clusterId, doc, receivedMs }) => {
    const name = names.get(clusterId)
    // Parsed when it was received; an older row may lack a newer number.
    return name === undefined ? [] : [{ labels: { cluster: name }, doc: doc as AgentMetricsStatus, receivedMs }]
  })
  const shown = told.slice(0, AGENTS_MAX)
  const punctual = shown.filter(({ doc, receivedMs }) => nowMs - receivedMs < 3 * doc.everyMs + LATE_MS)
  for (const [name, read] of Object.entries(VALUES) as Array<[ClusterMetric, (doc: AgentMetricsStatus) => number]>) {
    const samples: Sample[] = (name === REPORTED ? shown : punctual).map(({ labels, doc }) => ({ labels, value: read(doc) ?? 0 }))
    if (CLUSTER_METRICS[name].type === 'counter') metrics.setTotal(name as never, samples)
    else metrics.set(name as never, samples)
    await setImmediate() // polls of agents are answered between two families
  }
  return told.length > AGENTS_MAX
}
