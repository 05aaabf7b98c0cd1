// Metrics for Prometheus: on the API for a token that may read, and on an address of their own, where no token is asked
// for.
import { Elysia } from 'elysia'
import { AppError } from '../../shared/runtime/error.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import { problemResponse } from './problem.ts'

/** Answers a scrape. */
export type MetricsSource = () => Promise<Response>

export const metricsRoutes = (metrics: MetricsSource) =>
  new Elysia({ tags: ['operation'] }).get('/metrics', () => metrics(), {
    detail: {
      summary: 'Metrics of the server and the fleet in the OpenMetrics text format',
      responses: { 200: { description: 'OpenMetrics text', content: { 'application/openmetrics-text': { schema: { type: 'string' } } } } },
    },
  })

export interface MetricsListener {
  url: string
  stop(): Promise<void>
}

/** Answers `GET /metrics` to every caller that reaches the address. */
export function listenForScrapes(
  { hostname, port }: { hostname: string; port: number },
  metrics: MetricsSource,
  log: Logger,
): MetricsListener {
  const http = Bun.serve({
    hostname,
    port,
    development: false,
    reusePort: false,
    maxRequestBodySize: 0,
    error: () => problemResponse(new AppError('internal')),
    fetch: async (request) => {
      if (new URL(request.url).pathname !== '/metrics')
        return problemResponse(new AppError('not_found', { detail: 'metrics are at /metrics' }))
      try {
        return await metrics()
      } catch (error) {
        log.warn('metrics cannot be read', { error: describeError(error) })
        return problemResponse(new AppError('unavailable', { detail: 'the store cannot be read' }))
      }
    },
  })
  return { url: `http://${http.hostname}:${http.port}/metrics`, stop: () => http.stop(true) }
}
