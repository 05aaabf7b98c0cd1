// The rendered objects of a service for a caller.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { parseRefKey } from '../../shared/kube/object.ts'
import { originViewSchema, renderViewSchema, variantsViewSchema } from '../../shared/model/render-views.ts'
import { nameSchema } from '../../shared/runtime/ids.ts'
import { parseServiceSpec } from '../ingest/known-specs.ts'
import { fails } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { createRenderTurns } from './render-turns.ts'
import { requireCluster } from './sight.ts'
import { keyNotFound } from './write-resource.ts'

const params = z.object({ project: nameSchema, name: nameSchema })

export function renderRoutes(deps: Pick<AdminDeps, 'renders' | 'clock' | 'principal' | 'store' | 'authorizer'>) {
  const { renders, clock, principal, store, authorizer } = deps
  const turns = createRenderTurns(clock)
  return new Elysia({ tags: ['services'] })
    .get(
      '/projects/:project/services/:name/render',
      async ({ params: { project, name }, query: { cluster, explain }, request }) => {
        const held = cluster === undefined ? null : await store.getResource({ kind: 'Service', project, name })
        if (cluster !== undefined && held !== null)
          await requireCluster(deps, principal(request), { name: cluster, project, spec: parseServiceSpec(held.spec) })
        const view = await turns.run(principal(request).id, () =>
          renders.render({ project, service: name }, cluster ?? null, explain === 'true'),
        )
        if (view === null) throw keyNotFound({ kind: 'Service', project, name })
        const mayRead = (config: string) => authorizer.allows(principal(request), { verb: 'read', kind: 'Config', project, name: config })
        const values = view.values?.map((one) => {
          const [, config] = /^Config\/(.+)$/.exec(one.from) ?? []
          return config === undefined || mayRead(config) ? one : { ...one, value: null }
        })
        return { ...view, ...(values === undefined ? {} : { values }) }
      },
      {
        params,
        query: z.object({ cluster: nameSchema.optional(), explain: z.enum(['true', 'false']).optional() }),
        response: renderViewSchema,
        detail: {
          summary: 'Render a service, for one cluster or without a cluster; changes nothing',
          ...fails(422, 502),
        },
      },
    )
    .get(
      '/projects/:project/services/:name/origin',
      async ({ params: { project, name }, query: { cluster, object, revision = null }, request }) => {
        const key = { kind: 'Service', project, name } as const
        const held = await store.getResource(key)
        if (held === null) throw keyNotFound(key)
        await requireCluster(deps, principal(request), { name: cluster, project, spec: parseServiceSpec(held.spec) })
        const view = await turns.run(principal(request).id, () => renders.origin({ project, service: name }, cluster, object, revision))
        if (view === null) throw keyNotFound(key)
        return view
      },
      {
        params,
        query: z.object({
          cluster: nameSchema,
          object: z
            .string()
            .max(1_024)
            .refine((text) => parseRefKey(text) !== null, 'expected GROUP/KIND/NAMESPACE/NAME, such as apps/Deployment/shop/web')
            .describe('GROUP/KIND/NAMESPACE/NAME; the group is empty for the core group, the namespace for an object without one'),
          revision: z.coerce.number().int().min(1).optional().describe('Number of a revision of the service; default: what was read last'),
        }),
        response: originViewSchema,
        detail: { summary: 'The file of the repository that an object of a service is made of', ...fails(422, 502) },
      },
    )
    .get(
      '/projects/:project/services/:name/variants',
      async ({ params: { project, name }, request }) => {
        const view = await turns.run(principal(request).id, () => renders.variants({ project, service: name }))
        if (view === null) throw keyNotFound({ kind: 'Service', project, name })
        return view
      },
      {
        params,
        response: variantsViewSchema,
        detail: { summary: 'List the variants of a service, and the clusters that share each', ...fails(422, 502) },
      },
    )
}
