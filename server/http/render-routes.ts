// What a service renders to, for whoever asks.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { nameSchema } from '../../shared/model/ids.ts'
import { renderViewSchema, variantsViewSchema } from '../../shared/model/render-views.ts'
import type { AdminDeps } from './deps.ts'
import { keyNotFound } from './write-resource.ts'

const params = z.object({ project: nameSchema, name: nameSchema })

export function renderRoutes({ renders }: Pick<AdminDeps, 'renders'>) {
  return new Elysia({ tags: ['services'] })
    .get(
      '/projects/:project/services/:name/render',
      async ({ params: { project, name }, query: { cluster } }) => {
        const view = await renders.render({ project, service: name }, cluster ?? null)
        if (view === null) throw keyNotFound({ kind: 'Service', project, name })
        return view
      },
      {
        params,
        query: z.object({ cluster: nameSchema.optional() }),
        response: renderViewSchema,
        detail: { summary: 'What a service renders to, for one cluster or for none in particular; changes nothing' },
      },
    )
    .get(
      '/projects/:project/services/:name/variants',
      async ({ params: { project, name } }) => {
        const view = await renders.variants({ project, service: name })
        if (view === null) throw keyNotFound({ kind: 'Service', project, name })
        return view
      },
      {
        params,
        response: variantsViewSchema,
        detail: { summary: 'In how many ways its clusters get a service, and which of them share one' },
      },
    )
}
