// Saved queries: SQL that people share. A query is checked when it is saved, and its rows are decided when it runs.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { savedQueryInputSchema, savedQueryViewSchema } from '../../shared/model/saved-queries.ts'
import { listOf } from '../../shared/model/views.ts'
import { nameSchema } from '../../shared/runtime/ids.ts'
import { forbidden } from './auth.ts'
import { fails } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { notFound } from './problem.ts'

export function savedQueryRoutes({ store, clock, principal, authorizer }: Pick<AdminDeps, 'store' | 'clock' | 'principal' | 'authorizer'>) {
  const params = z.object({ name: nameSchema })
  const missing = (name: string) => notFound(`saved query ${name}`, 'skerry get saved-queries')
  const requireRight = (request: Request, verb: 'write' | 'delete', name: string) => {
    const ask = { verb, kind: 'SavedQuery', name } as const
    if (!authorizer.allows(principal(request), ask)) throw forbidden(principal(request), ask)
  }
  return new Elysia({ tags: ['fleet'] })
    .get('/saved-queries', async () => ({ items: await store.savedQueries.list(), continue: null }), {
      response: listOf(savedQueryViewSchema),
      detail: { summary: 'List saved queries, by name' },
    })
    .get(
      '/saved-queries/:name',
      async ({ params: { name } }) => {
        const found = await store.savedQueries.get(name)
        if (found === null) throw missing(name)
        return found
      },
      { params, response: savedQueryViewSchema, detail: { summary: 'Get a saved query', ...fails(404) } },
    )
    .put(
      '/saved-queries/:name',
      async ({ params: { name }, body: { sql, about }, request, set }) => {
        requireRight(request, 'write', name)
        store.fleetSql.check(sql)
        const saved = { name, sql, about, savedBy: principal(request).name, updatedMs: clock.nowMs() }
        if (await store.savedQueries.save(saved)) set.status = 201
        return saved
      },
      {
        params,
        body: savedQueryInputSchema,
        response: { 200: savedQueryViewSchema, 201: savedQueryViewSchema },
        detail: { summary: 'Save a query under a name, in place of the one with that name', ...fails(409) },
      },
    )
    .delete(
      '/saved-queries/:name',
      async ({ params: { name }, request, set }) => {
        requireRight(request, 'delete', name)
        if (!(await store.savedQueries.delete(name))) throw missing(name)
        set.status = 204
      },
      { params, detail: { summary: 'Delete a saved query', responses: { '204': { description: 'Deleted' } }, ...fails(404) } },
    )
}
