// The table of metrics that agents report to the server. The names are those of the agent's own metrics where both
// exist.
import type { MetricTable } from '../../shared/adapters/metrics.ts'

const REPORTED = 'reported by the agent (--report-metrics)'
const labels = ['cluster'] as const

export const CLUSTER_METRICS = {
  skerry_agent_reported_timestamp_seconds: {
    type: 'gauge',
    help: 'Time of the last metrics of an agent, in seconds since the epoch',
    labels,
  },
  skerry_agent_start_timestamp_seconds: { type: 'gauge', help: `Start of the agent, in seconds since the epoch; ${REPORTED}`, labels },
  skerry_agent_cpu_seconds_total: { type: 'counter', help: `Processor time of the agent, in seconds; ${REPORTED}`, labels },
  skerry_agent_resident_memory_bytes: { type: 'gauge', help: `Resident memory of the agent, in bytes; ${REPORTED}`, labels },
  skerry_agent_enforcing: { type: 'gauge', help: `1 while the agent enforces its replica; ${REPORTED}`, labels },
  skerry_agent_disk_writable: { type: 'gauge', help: `0 while the agent cannot write to its data folder; ${REPORTED}`, labels },
  skerry_agent_replica_rows: { type: 'gauge', help: `Rows of the replica; ${REPORTED}`, labels },
  skerry_agent_outbox_rows: { type: 'gauge', help: `Status rows that the server did not have yet; ${REPORTED}`, labels },
  skerry_agent_requests_total: { type: 'counter', help: `Requests to the server; ${REPORTED}`, labels },
  skerry_agent_sent_bytes_total: { type: 'counter', help: `Bytes sent to the server, without TLS; ${REPORTED}`, labels },
  skerry_agent_received_bytes_total: { type: 'counter', help: `Bytes received from the server, without TLS; ${REPORTED}`, labels },
  skerry_agent_today_bytes: { type: 'gauge', help: `Bytes over the link since midnight UTC; ${REPORTED}`, labels },
  skerry_agent_resync_compared_total: { type: 'counter', help: `Objects compared by resyncs; ${REPORTED}`, labels },
  skerry_agent_resync_differences_total: { type: 'counter', help: `Changed objects that the watch missed; ${REPORTED}`, labels },
} as const satisfies MetricTable

export type ClusterMetric = keyof typeof CLUSTER_METRICS
