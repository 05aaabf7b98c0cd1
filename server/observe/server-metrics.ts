// Metrics of the server: the table, and the places where requests, jobs and reports are counted. Gauges of the fleet
// are read from the store when they are scraped (`fleet-gauges.ts`).
import { createMetrics, type Metrics, type MetricTable } from '../../shared/adapters/metrics.ts'
import { AGENT_API, ROUTES } from '../../shared/protocol/routes.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { WorkerPool } from '../control/workers/pool.ts'
import type { Handlers } from '../http/listener.ts'
import { CLUSTER_METRICS } from './cluster-metrics.ts'

const REQUEST_SECONDS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10] as const
const JOB_SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300] as const

export const SERVER_METRICS = {
  skerry_build_info: { type: 'gauge', help: 'Version and commit of the server; the value is 1', labels: ['version', 'commit'] },
  skerry_http_requests_total: { type: 'counter', help: 'Answered requests', labels: ['route', 'code'] },
  skerry_http_request_duration_seconds: {
    type: 'histogram',
    help: 'Time to answer a request, in seconds; without polls of agents, which wait for changes',
    labels: ['route'],
    buckets: REQUEST_SECONDS,
  },
  skerry_http_requests_open: { type: 'gauge', help: 'Open requests; most are polls of agents', labels: ['route'] },
  skerry_worker_jobs_total: { type: 'counter', help: 'Jobs of worker processes', labels: ['job', 'result'] },
  skerry_worker_job_duration_seconds: {
    type: 'histogram',
    help: 'Time of a job of a worker process with its wait for a slot, in seconds',
    labels: ['job'],
    buckets: JOB_SECONDS,
  },
  skerry_published_clusters_total: { type: 'counter', help: 'Revisions published to a cluster' },
  skerry_status_rows_total: { type: 'counter', help: 'Status rows of agents that changed the store' },
  skerry_loop_failing: { type: 'gauge', help: 'Loops of the server that failed in the last two minutes; the value is 1', labels: ['loop'] },
  skerry_work_stuck: { type: 'gauge', help: 'Reconciliations of repositories and services that do not end' },
  skerry_clusters: { type: 'gauge', help: 'Clusters', labels: ['liveness'] },
  skerry_placements: { type: 'gauge', help: 'Services in clusters', labels: ['sync', 'health'] },
  skerry_objects: { type: 'gauge', help: 'Objects that agents manage', labels: ['sync', 'health'] },
  skerry_service_placements: {
    type: 'gauge',
    help: 'Clusters of a service; absent with --metrics-series fleet',
    labels: ['project', 'service', 'sync', 'health'],
  },
  skerry_cluster_last_contact_timestamp_seconds: {
    type: 'gauge',
    help: 'Last contact with the agent of a cluster, in seconds since the epoch; absent with --metrics-series fleet',
    labels: ['cluster'],
  },
  skerry_series_truncated: {
    type: 'gauge',
    help: '1 if there are more services, clusters or agents than the limit of series; the rest has none',
    labels: ['kind'],
  },
  skerry_confirmations_pending: { type: 'gauge', help: 'Pending confirmations', labels: ['kind'] },
  skerry_confirmations_oldest_timestamp_seconds: {
    type: 'gauge',
    help: 'Creation of the oldest pending confirmation, in seconds since the epoch',
    labels: ['kind'],
  },
  skerry_backup_failing: { type: 'gauge', help: '1 if the last backup failed; absent if the server schedules none' },
  skerry_backup_last_timestamp_seconds: {
    type: 'gauge',
    help: 'Time of the newest backup that was read back whole, in seconds since the epoch',
  },
  skerry_backup_due_timestamp_seconds: {
    type: 'gauge',
    help: 'Time at which the next backup is due, in seconds since the epoch; in the past if it is late',
  },
  skerry_backup_bytes: { type: 'gauge', help: 'Size of the newest backup' },
  skerry_backup_duration_seconds: { type: 'gauge', help: 'Time that the newest backup took, in seconds' },
  skerry_notifications: { type: 'gauge', help: 'Notifications that are not delivered', labels: ['state'] },
  skerry_notifications_failing_since_timestamp_seconds: {
    type: 'gauge',
    help: 'First failed attempt of the notification that has failed for longest, in seconds since the epoch; absent if none fails',
  },
  skerry_notification_deliveries_total: { type: 'counter', help: 'Attempts to deliver a notification', labels: ['type', 'result'] },
  skerry_questions_open: { type: 'gauge', help: 'Questions to clusters that are not answered yet' },
  skerry_questions_total: {
    type: 'counter',
    help: 'Questions to clusters; a result other than asked is the error code of a refusal',
    labels: ['kind', 'result'],
  },
  skerry_services_failing: { type: 'gauge', help: 'Services that cannot be rendered for at least one cluster' },
  ...CLUSTER_METRICS,
  skerry_scrape_duration_seconds: { type: 'gauge', help: 'Time to read the metrics of the fleet from the store, in seconds' },
} as const satisfies MetricTable

export type ServerMetrics = Metrics<typeof SERVER_METRICS>
export const createServerMetrics = (): ServerMetrics => createMetrics(SERVER_METRICS)

const AGENT_ROUTES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(ROUTES).map(([name, path]) => [path, `agent-${name}`]),
)
const POLL = `agent-${'desired' satisfies keyof typeof ROUTES}`

/** The class of a path: a label must not have as many values as strangers can think of. */
export function routeClass(path: string): string {
  if (path.startsWith(`${AGENT_API}/`)) return AGENT_ROUTES[path] ?? 'agent-other'
  if (path.startsWith('/api/')) return 'api'
  if (path.startsWith('/webhooks/')) return 'webhook'
  return path === '/healthz' || path === '/readyz' || path === '/metrics' ? 'probe' : 'other'
}

export function withRequestMetrics(handlers: Handlers, metrics: ServerMetrics, clock: Clock): Handlers {
  async function measured<Answer extends Response | null>(request: Request, handle: () => Promise<Answer>): Promise<Answer> {
    const route = routeClass(new URL(request.url).pathname)
    const startMs = clock.monotonicMs()
    metrics.shift('skerry_http_requests_open', 1, { route })
    try {
      const answer = await handle()
      if (answer === null) return answer
      metrics.add('skerry_http_requests_total', 1, { route, code: String(answer.status) })
      if (route !== POLL) metrics.observe('skerry_http_request_duration_seconds', (clock.monotonicMs() - startMs) / 1_000, { route })
      return answer
    } finally {
      metrics.shift('skerry_http_requests_open', -1, { route })
    }
  }
  return {
    agents: (request, context) => measured(request, () => handlers.agents(request, context)),
    others: (request) => measured(request, () => handlers.others(request)),
  }
}

export function withJobMetrics(pool: WorkerPool, metrics: ServerMetrics, clock: Clock): WorkerPool {
  return {
    close: () => pool.close(),
    async run(job) {
      const startMs = clock.monotonicMs()
      let result = 'ok'
      try {
        return await pool.run(job)
      } catch (error) {
        result = error instanceof AppError ? error.code : 'internal'
        throw error
      } finally {
        metrics.add('skerry_worker_jobs_total', 1, { job: job.method, result })
        metrics.observe('skerry_worker_job_duration_seconds', (clock.monotonicMs() - startMs) / 1_000, { job: job.method })
      }
    },
  }
}
