// What is going on: services in clusters, objects, events, what waits for a person.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { nameSchema } from '../../shared/model/ids.ts'
import { FLEET } from '../../shared/model/resources.ts'
import { confirmationViewSchema, eventViewSchema, listOf, placementViewSchema } from '../../shared/model/views.ts'
import { confirmDataBody, readConfirmedData } from './confirm-data.ts'
import type { AdminDeps } from './deps.ts'
import { notFound } from './problem.ts'
import { limitQuery } from './query.ts'
import { confirmationView, jsonSchema } from './resource-routes.ts'
import { keyNotFound } from './write-resource.ts'

const eventQuery = z.object({
  /** Strictly after this id; without it the newest. */
  after: z.coerce.number().int().min(0).optional(),
  cluster: nameSchema.optional(),
  project: nameSchema.optional(),
  service: nameSchema.optional(),
  limit: limitQuery,
})
export const confirmationId = z.object({ id: z.string().regex(/^[0-9a-z]{1,32}$/, 'expected the id that `skerry confirm` lists') })

/** Without members that are undefined, which an optional query parameter is and an optional property is not. */
const given = <T extends object>(query: T) =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined)) as { [K in keyof T]?: Exclude<T[K], undefined> }

export const confirmationGone = (id: string) =>
  notFound(`confirmation ${id}: it was carried out or withdrawn, or what it asks has changed`, 'skerry confirm')

export function fleetRoutes(deps: AdminDeps) {
  const { store, views, actions } = deps
  return new Elysia({ tags: ['fleet'] })
    .get(
      '/projects/:project/services/:name/clusters',
      async ({ params: { project, name } }) => {
        if ((await store.getResource({ kind: 'Service', project, name })) === null) throw keyNotFound({ kind: 'Service', project, name })
        return { items: await views.placementsOfService({ project, service: name }), continue: null }
      },
      {
        params: z.object({ project: nameSchema, name: nameSchema }),
        response: listOf(placementViewSchema),
        detail: { summary: 'A service in each of its clusters' },
      },
    )
    .get(
      '/clusters/:name/services',
      async ({ params: { name } }) => {
        const cluster = await store.clusterByName(name)
        if (cluster === null) throw keyNotFound({ kind: 'Cluster', project: FLEET, name })
        return { items: await views.placementsInCluster(cluster), continue: null }
      },
      { params: z.object({ name: nameSchema }), response: listOf(placementViewSchema), detail: { summary: 'The services of a cluster' } },
    )
    .get(
      '/events',
      async ({ query: { limit, ...filter } }) => ({ items: await store.listEvents({ limit, ...given(filter) }), continue: null }),
      { query: eventQuery, response: listOf(eventViewSchema), detail: { summary: 'Events, oldest first; follow with `after`' } },
    )
    .get('/confirmations', async () => ({ items: (await store.listConfirmations()).map(confirmationView), continue: null }), {
      response: listOf(confirmationViewSchema),
      detail: { summary: 'What waits for a person' },
    })
    .get(
      '/confirmations/:id',
      async ({ params: { id } }) => {
        const found = await store.confirmation(id)
        if (found === null) throw confirmationGone(id)
        return confirmationView(found)
      },
      { params: confirmationId, response: confirmationViewSchema, detail: { summary: 'Exactly what would be confirmed' } },
    )
    .post(
      '/confirmations/:id/confirm',
      async ({ params: { id }, body, request }) => {
        const data = await readConfirmedData(body, async () => {
          const asked = await store.confirmation(id)
          if (asked === null) throw confirmationGone(id)
          return deps.removals.ofConfirmation(asked)
        })
        const confirmed = await actions.confirm(id, deps.principal(request).name, data)
        if (confirmed === null) throw confirmationGone(id)
        return confirmationView(confirmed)
      },
      {
        params: confirmationId,
        response: confirmationViewSchema,
        detail: {
          summary: 'Say yes to exactly these names',
          requestBody: { required: false, content: { 'application/json': { schema: jsonSchema(confirmDataBody) } } },
        },
      },
    )
}
