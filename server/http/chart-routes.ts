// The chart of the fleet: every cluster as one small row, for screens that show all of them at once.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { CHART_IDS_MAX, CHART_LIMIT, type ChartView, chartViewSchema } from '../../shared/model/chart.ts'
import { clusterIdSchema } from '../../shared/runtime/ids.ts'
import type { Authorizer } from '../access/authorizer.ts'
import type { Principal } from '../access/principal.ts'
import { isEverywhere } from '../fleet/rights.ts'
import { listSuspensions } from '../ingest/suspension-rows.ts'
import type { ChartQuery } from '../store/queries/fleet-queries.ts'
import { jsonSchema } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { continueQuery, decodeContinue, encodeContinue, listQuery, selectorOf } from './query.ts'

const chartQuery = z.object({
  by: z.string().min(1).max(317).optional().describe('Label by whose values clusters are grouped; `*` lets the server choose one'),
  cluster: z
    .preprocess(
      (value) => (typeof value === 'string' ? value.split(',') : value),
      z.array(clusterIdSchema).min(1).max(CHART_IDS_MAX).optional(),
    )
    .describe('Only clusters with these ids, joined by commas'),
  labelSelector: listQuery.shape.labelSelector,
  columns: z.enum(['true', 'false']).default('false').describe('Rows by field in `columns`, which a browser reads faster'),
  limit: z.coerce.number().int().min(1).max(CHART_LIMIT).default(CHART_LIMIT),
  continue: continueQuery,
})

export function chartRoutes({ store, clock, principal, authorizer }: Pick<AdminDeps, 'store' | 'clock' | 'principal' | 'authorizer'>) {
  return new Elysia({ tags: ['fleet'] }).get(
    '/chart',
    async ({ query: { by, cluster: clusters, labelSelector, columns, limit, continue: token }, request }) => {
      const position = await store.changes.position() // before the rows are read, so that no later change is missed
      const query = {
        by,
        labels: selectorOf(labelSelector),
        clusters,
        columns: columns === 'true',
        limit,
        after: decodeContinue(token),
        ...seenBy(authorizer, principal(request)),
        suspended: suspendedNames(await listSuspensions(store)),
        nowMs: clock.nowMs(),
      }
      const { by: chosen, items, labels, next } = await store.queries.answer({ kind: 'chart', query }, request.signal)
      const rest: Omit<ChartView, 'items' | 'columns'> = { position, by: chosen, labels, continue: encodeContinue(next) }
      const rows = columns === 'true' ? `"items":[],"columns":${items}` : `"items":${items}`
      return compressed(request, `{${rows},${JSON.stringify(rest).slice(1)}`)
    },
    {
      query: chartQuery,
      detail: {
        summary: 'All clusters as small rows, for a chart',
        responses: { '200': { description: 'Done', content: { 'application/json': { schema: jsonSchema(chartViewSchema, 'output') } } } },
      },
    },
  )
}

/** A caller with limited rights sees only the clusters and projects that its rights cover fully. */
function seenBy(authorizer: Authorizer, caller: Principal): Pick<ChartQuery, 'visible' | 'projects'> {
  const clusters = authorizer.scope(caller, 'read', 'Cluster')
  const services = authorizer.scope(caller, 'read', 'Service')
  const named = services.flatMap(({ projects, services: some, clusters: where }) =>
    some === null && where === null ? (projects ?? []) : [],
  )
  return {
    ...(isEverywhere(clusters) ? {} : { visible: clusters.flatMap(({ clusters: selector }) => selector ?? []) }),
    ...(isEverywhere(services) ? {} : { projects: named }),
  }
}

/** Suspensions of whole clusters; those of single services are no state of a cluster. */
function suspendedNames(suspensions: Awaited<ReturnType<typeof listSuspensions>>): ChartQuery['suspended'] {
  const whole = suspensions.filter(({ service }) => service === null)
  return whole.some(({ cluster }) => cluster === null) ? 'all' : whole.flatMap(({ cluster }) => cluster ?? [])
}

const COMPRESS_FROM = 4_096
/** A chart of 5,000 clusters is 1 MB of text that repeats itself, for people on slow links. */
async function compressed(request: Request, json: string): Promise<Response> {
  const text = Buffer.from(json)
  const headers = new Headers({ 'content-type': 'application/json', 'cache-control': 'no-store', vary: 'accept-encoding' })
  const accepted = request.headers.get('accept-encoding') ?? ''
  if (text.length < COMPRESS_FROM || !/\b(zstd|gzip)\b/.test(accepted)) return new Response(text, { headers })
  const encoding = /\bzstd\b/.test(accepted) ? 'zstd' : 'gzip'
  headers.set('content-encoding', encoding)
  const body = encoding === 'zstd' ? await Bun.zstdCompress(text, { level: 3 }) : Bun.gzipSync(text, { level: 5 })
  return new Response(new Uint8Array(body), { headers })
}
