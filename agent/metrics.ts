// Metrics of an agent, computed from its report at each scrape. Without a scrape they cost nothing.
import { createMetrics, type MetricTable, type Sample } from '../shared/adapters/metrics.ts'
import type { AgentReport } from './observe/report.ts'

export const AGENT_METRICS = {
  skerry_agent_info: { type: 'gauge', help: 'Version and cluster of the agent; the value is 1', labels: ['version', 'cluster_id'] },
  skerry_agent_enforcing: { type: 'gauge', help: '1 while the agent enforces its replica; else 0, with the state', labels: ['state'] },
  skerry_agent_link_state: { type: 'gauge', help: 'State of the link to the server; the value is 1', labels: ['state'] },
  skerry_agent_last_contact_timestamp_seconds: { type: 'gauge', help: 'Last answer of the server, in seconds since the epoch' },
  skerry_agent_head_signed_timestamp_seconds: {
    type: 'gauge',
    help: 'Last time that the server signed that the replica is at its head, in seconds since the epoch',
  },
  skerry_agent_replica_rows: { type: 'gauge', help: 'Rows of the replica' },
  skerry_agent_replica_verified: { type: 'gauge', help: '1 if the rows have the hash that the server signed' },
  skerry_agent_outbox_rows: { type: 'gauge', help: 'Status rows that the server does not have yet' },
  skerry_agent_disk_writable: { type: 'gauge', help: '0 while the agent cannot write to its data folder' },
  skerry_agent_requests_total: { type: 'counter', help: 'Requests to the server' },
  skerry_agent_sent_bytes_total: { type: 'counter', help: 'Bytes sent to the server, without TLS' },
  skerry_agent_received_bytes_total: { type: 'counter', help: 'Bytes received from the server, without TLS' },
  skerry_agent_today_bytes: { type: 'gauge', help: 'Bytes over the link since midnight UTC' },
  skerry_agent_budget_bytes: { type: 'gauge', help: 'Bytes that the link may use in a day; 0: no limit' },
  skerry_agent_services: { type: 'gauge', help: 'Services of the cluster', labels: ['sync', 'health'] },
  skerry_agent_prunes_refused: { type: 'gauge', help: 'Services whose deletions wait for a confirmation' },
  skerry_agent_resync_compared_total: { type: 'counter', help: 'Lists of a kind that resyncs compared with the watch' },
  skerry_agent_resync_differences_total: { type: 'counter', help: 'Changed objects that a resync found and the watch missed' },
} as const satisfies MetricTable

export interface AgentMetrics {
  scrape(report: AgentReport): Promise<Response>
}

export function createAgentMetrics(): AgentMetrics {
  const metrics = createMetrics(AGENT_METRICS)
  const one = (value: number): Sample[] => [{ value }]
  const time = (ms: number | null | undefined): Sample[] => (ms == null ? [] : [{ value: ms / 1_000 }])
  return {
    async scrape({ version, clusterId, enforcement, link, replica, outboxDepth, disk, todayBytes, services, resync }) {
      metrics.set('skerry_agent_info', [{ labels: { version, cluster_id: clusterId ?? '' }, value: 1 }])
      metrics.set('skerry_agent_enforcing', [{ labels: { state: enforcement.state }, value: Number(enforcement.state === 'enforcing') }])
      metrics.set('skerry_agent_link_state', link === null ? [] : [{ labels: { state: link.state }, value: 1 }])
      metrics.set('skerry_agent_last_contact_timestamp_seconds', time(link?.lastContactMs))
      metrics.set('skerry_agent_head_signed_timestamp_seconds', time(link?.headSignedMs))
      metrics.set('skerry_agent_replica_rows', one(replica?.rows ?? 0))
      metrics.set('skerry_agent_replica_verified', one(Number(replica?.verified ?? false)))
      metrics.set('skerry_agent_outbox_rows', one(outboxDepth))
      metrics.set('skerry_agent_disk_writable', one(Number(disk === null)))
      metrics.setTotal('skerry_agent_requests_total', one(link?.requests ?? 0))
      metrics.setTotal('skerry_agent_sent_bytes_total', one(link?.bytesSent ?? 0))
      metrics.setTotal('skerry_agent_received_bytes_total', one(link?.bytesReceived ?? 0))
      metrics.set('skerry_agent_today_bytes', one(todayBytes))
      metrics.set('skerry_agent_budget_bytes', one(link?.budgetBytes ?? 0))
      metrics.set('skerry_agent_services', countServices(services))
      metrics.set('skerry_agent_prunes_refused', one(services.filter(({ status }) => status?.refusal !== undefined).length))
      metrics.setTotal('skerry_agent_resync_compared_total', one(resync?.compared ?? 0))
      metrics.setTotal('skerry_agent_resync_differences_total', one(resync?.differences ?? 0))
      return metrics.answer()
    },
  }
}

function countServices(services: AgentReport['services']): Sample[] {
  const counts = Map.groupBy(services, ({ status }) => `${status?.sync ?? 'Unknown'}/${status?.health ?? 'Unknown'}`)
  return [...counts].map(([words, { length }]) => {
    const [sync = '', health = ''] = words.split('/')
    return { labels: { sync, health }, value: length }
  })
}
