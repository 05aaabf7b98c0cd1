// How many of what: counts of the fleet, which cost what the answer holds.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { COUNT_BY, COUNT_OF, COUNT_SORTS, COUNTED, countsViewSchema } from '../../shared/model/counts.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { onlineWithinMs } from '../fleet/liveness.ts'
import { isEverywhere, withoutClusters } from '../fleet/rights.ts'
import { isStorable } from '../store/status/storable-text.ts'
import { forbidden } from './auth.ts'
import type { AdminDeps } from './deps.ts'
import { unrenderedCounts } from './failing-services.ts'
import { COUNTED_BY_SERVICE, fleetCounts, scopedCounts, type UnrenderedBy } from './fleet-counts.ts'
import { continueQuery, decodeContinue, encodeContinue, limitQuery } from './query.ts'

const countQuery = z.object({
  by: z.enum(COUNT_BY),
  of: z.enum(COUNT_OF).optional(),
  /** Only keys that begin with it: `shop/` of services, `env=` of labels. */
  key: z.string().max(512).refine(isStorable, 'expected a text without NUL').optional(),
  sort: z.enum(COUNT_SORTS).optional(),
  limit: limitQuery,
  continue: continueQuery,
})

export function countRoutes({ store, clock, authorizer, principal }: AdminDeps) {
  return new Elysia({ tags: ['fleet'] }).get(
    '/counts',
    async ({ query, request }) => {
      const { by, of = COUNTED[by][0], key, sort, limit } = query
      if (!COUNTED[by].includes(of))
        throw new AppError('bad_request', {
          detail: `counts by ${by} are of ${COUNTED[by].join(' or ')}, not of ${of}`,
          problems: [{ path: 'of', message: `expected ${COUNTED[by].join(' or ')}` }],
        })
      const after = decodeContinue(query.continue)
      const caller = principal(request)
      const kind = COUNTED[by][0] === 'clusters' ? 'Cluster' : 'Service'
      const scope = authorizer.scope(caller, 'read', kind)
      if (!isEverywhere(scope)) {
        if (scope.length === 0) throw forbidden(caller, { verb: 'read', kind })
        // Counts of other dimensions are kept for the fleet as a whole.
        if (!COUNTED_BY_SERVICE.has(by)) throw forbidden(caller, { verb: 'read', kind })
        const unrendered = of === 'objects' ? new Map<string, number>() : await unrenderedCounts(store, 'service')
        const answer = await scopedCounts(store.rollups, { by, of, key, sort, limit, after }, withoutClusters(scope), unrendered)
        return { by, of, ...answer, continue: encodeContinue(answer.continue) }
      }
      const at = { nowMs: clock.nowMs(), within: onlineWithinMs, unrendered: (by: UnrenderedBy) => unrenderedCounts(store, by) }
      const answer = await fleetCounts(store.rollups, { by, of, key, sort, limit, after }, at)
      return { by, of, ...answer, continue: encodeContinue(answer.continue) }
    },
    {
      query: countQuery,
      response: countsViewSchema,
      detail: { summary: 'Count services in clusters, objects or clusters by a field' },
    },
  )
}
