// A service that is synced by hand: what waits in which cluster, and the yes.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { matchesSelector } from '../../shared/model/labels.ts'
import { syncAnswerSchema, syncPlanViewSchema, syncRequestSchema } from '../../shared/model/sync.ts'
import { nameSchema } from '../../shared/runtime/ids.ts'
import { type Ask, serviceInScope } from '../fleet/rights.ts'
import { forbidden } from './auth.ts'
import { fails } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { listQuery, selectorOf } from './query.ts'
import { keyNotFound } from './write-resource.ts'

const params = z.object({ project: nameSchema, name: nameSchema })
const query = z.object({ cluster: nameSchema.optional(), labelSelector: listQuery.shape.labelSelector })

export function syncRoutes({ store, actions, principal, authorizer }: Pick<AdminDeps, 'store' | 'actions' | 'principal' | 'authorizer'>) {
  const notFound = (project: string, name: string) => keyNotFound({ kind: 'Service', project, name })
  return new Elysia({ tags: ['services'] })
    .get(
      '/projects/:project/services/:name/sync',
      async ({ params: { project, name }, query: { cluster, labelSelector }, request }) => {
        const scope = authorizer.scope(principal(request), 'read', 'Service')
        const id = { project, service: name }
        const selector = selectorOf(labelSelector)
        const plan = await actions.planSync(id, (candidate) =>
          !serviceInScope(scope, id, candidate.labels) || (cluster !== undefined && candidate.name !== cluster)
            ? false
            : selector === undefined || matchesSelector(candidate.labels, selector),
        )
        if (plan === null) throw notFound(project, name)
        return plan
      },
      {
        params,
        query,
        response: syncPlanViewSchema,
        detail: { summary: 'Plan of a manual sync: creations, changes and prunes in each cluster' },
      },
    )
    .post(
      '/projects/:project/services/:name/sync',
      async ({ params: { project, name }, body, request }) => {
        const by = principal(request)
        const ask: Ask = { verb: 'sync', kind: 'Service', project, name }
        if (!authorizer.allows(by, ask)) {
          // The right is limited to clusters: each of them has to be named.
          const found = body.clusters === undefined ? [] : await store.findClusters({ names: body.clusters })
          const allowed = new Set(found.flatMap((cluster) => (authorizer.allows(by, { ...ask, cluster }) ? [cluster.name] : [])))
          if (body.clusters === undefined || !body.clusters.every((cluster) => allowed.has(cluster))) throw forbidden(by, ask)
        }
        const answer = await actions.allowSync({ project, service: name }, body, by.name)
        if (answer === null) throw notFound(project, name)
        return answer
      },
      {
        params,
        body: syncRequestSchema,
        response: syncAnswerSchema,
        detail: { summary: 'Approve exactly this revision for these clusters', ...fails(409) },
      },
    )
}
