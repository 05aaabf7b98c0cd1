// A service that is synced by hand: what waits in which cluster, and the yes.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { nameSchema } from '../../shared/model/ids.ts'
import { matchesSelector } from '../../shared/model/labels.ts'
import { syncAnswerSchema, syncPlanViewSchema, syncRequestSchema } from '../../shared/model/sync.ts'
import { fails } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { listQuery, selectorOf } from './query.ts'
import { keyNotFound } from './write-resource.ts'

const params = z.object({ project: nameSchema, name: nameSchema })
const query = z.object({ cluster: nameSchema.optional(), labelSelector: listQuery.shape.labelSelector })

export function syncRoutes({ actions, principal }: Pick<AdminDeps, 'actions' | 'principal'>) {
  const notFound = (project: string, name: string) => keyNotFound({ kind: 'Service', project, name })
  return new Elysia({ tags: ['services'] })
    .get(
      '/projects/:project/services/:name/sync',
      async ({ params: { project, name }, query: { cluster, labelSelector } }) => {
        const selector = selectorOf(labelSelector)
        const plan = await actions.planSync({ project, service: name }, (candidate) =>
          cluster !== undefined && candidate.name !== cluster
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
        detail: { summary: 'What waits for a sync by hand, and what it would create, change and prune in each cluster' },
      },
    )
    .post(
      '/projects/:project/services/:name/sync',
      async ({ params: { project, name }, body, request }) => {
        const answer = await actions.allowSync({ project, service: name }, body, principal(request).name)
        if (answer === null) throw notFound(project, name)
        return answer
      },
      {
        params,
        body: syncRequestSchema,
        response: syncAnswerSchema,
        detail: { summary: 'Let exactly this revision be applied in these clusters', ...fails(409) },
      },
    )
}
