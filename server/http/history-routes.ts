// History: the revisions of a service, the order of its objects, and the changes of its states in a cluster. Newest
// first; a page continues strictly before the end of the last one.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { writtenByOf } from '../../shared/model/commits.ts'
import { historyViewSchema, revisionViewSchema, timelineViewSchema } from '../../shared/model/history.ts'
import { objectOrdersSchema } from '../../shared/model/object-order.ts'
import { FLEET } from '../../shared/model/resources.ts'
import { listOf } from '../../shared/model/views.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { nameSchema, type ServiceId } from '../../shared/runtime/ids.ts'
import type { AdminDeps } from './deps.ts'
import { causedPage, commitsIn, timelinePage } from './history-pages.ts'
import { continueQuery, decodeContinue, encodeContinue, limitQuery } from './query.ts'
import { requirePlace } from './sight.ts'
import { keyNotFound } from './write-resource.ts'

const params = z.object({ project: nameSchema, name: nameSchema })
const since = z.coerce.number().int().min(0).optional().describe('Time in milliseconds since 1970; nothing older is listed.')
const pageQuery = z.object({ limit: limitQuery, continue: continueQuery })

export function historyRoutes({ store, actions, authorizer, principal }: AdminDeps) {
  const known = async (project: string, name: string): Promise<ServiceId> => {
    if ((await store.getResource({ kind: 'Service', project, name })) === null) throw keyNotFound({ kind: 'Service', project, name })
    return { project, service: name }
  }
  return new Elysia({ tags: ['fleet'] })
    .get(
      '/projects/:project/services/:name/revisions',
      async ({ params: { project, name }, query }) => {
        const items = await store.revisions(await known(project, name), pageOf(query))
        const notes = await commitsIn(store, project, items)
        return {
          items: items.map(({ setSha: _, ...view }) => ({ ...view, ...writtenByOf(notes.get(view.commit ?? '')) })),
          continue: nextPage(items, query.limit, ({ number }) => number),
        }
      },
      {
        params,
        query: pageQuery,
        response: listOf(revisionViewSchema),
        detail: { summary: 'Revisions of a service, newest first' },
      },
    )
    .get(
      '/projects/:project/services/:name/order',
      async ({ params: { project, name }, query, request }) => {
        const id = await known(project, name)
        const cluster = await requirePlace({ store, authorizer }, principal(request), id, query.cluster)
        return { items: (await actions.objectOrder(id, cluster.clusterId)) ?? [] }
      },
      {
        params,
        query: z.object({ cluster: nameSchema }),
        response: objectOrdersSchema,
        detail: { summary: 'Waves and hooks among the objects of a service in a cluster' },
      },
    )
    .get(
      '/projects/:project/services/:name/history',
      async ({ params: { project, name }, query, request }) => {
        const id = await known(project, name)
        const cluster = await requirePlace({ store, authorizer }, principal(request), id, query.cluster)
        const scope = authorizer.scope(principal(request), 'read', 'Service')
        const mayRead = authorizer.allows(principal(request), { verb: 'read', kind: 'Cluster', name: cluster.name, cluster })
        const page = await causedPage(store, { cluster, id, scope, mayRead }, { ...pageOf(query), since: query.since })
        const notes = await commitsIn(store, project, page.items)
        const views = page.items.map((item) => ({ ...item, ...writtenByOf(notes.get(item.commit ?? '')) }))
        return { items: views, continue: page.isLast ? null : encodeContinue(String(page.items.at(-1)?.atMs)) }
      },
      {
        params,
        query: pageQuery.extend({ cluster: nameSchema, since }),
        response: listOf(historyViewSchema),
        detail: { summary: 'Changes of a service in a cluster with their causes, newest first' },
      },
    )
    .get(
      '/clusters/:name/history',
      async ({ params: { name }, query, request }) => {
        const scope = authorizer.scope(principal(request), 'read', 'Service')
        const cluster = await store.clusterByName(name)
        const mayRead = cluster !== null && authorizer.allows(principal(request), { verb: 'read', kind: 'Cluster', name, cluster })
        const page =
          cluster === null ? null : await timelinePage(store, { cluster, scope, mayRead }, { ...pageOf(query), since: query.since })
        // AZ3: a cluster that the caller may not read, and that has nothing it may read, does not exist for it.
        if (page === null || (!mayRead && page.items.length === 0)) throw keyNotFound({ kind: 'Cluster', project: FLEET, name })
        return { items: page.items, continue: page.isLast ? null : encodeContinue(String(page.items.at(-1)?.atMs)) }
      },
      {
        params: z.object({ name: nameSchema }),
        query: pageQuery.extend({ since }),
        response: listOf(timelineViewSchema),
        detail: { summary: 'What happened in a cluster: changes of its services with their causes, and its own events, newest first' },
      },
    )
}

function pageOf({ limit, continue: from }: { limit: number; continue?: string | undefined }): { limit: number; before?: number } {
  const text = decodeContinue(from)
  if (text === undefined) return { limit }
  if (!/^\d{1,16}$/.test(text))
    throw new AppError('bad_request', {
      detail: 'continue is not from this list',
      problems: [{ path: 'continue', message: 'expected the value from the previous page' }],
    })
  return { limit, before: Number(text) }
}

const nextPage = <T>(items: readonly T[], limit: number, position: (item: T) => number): string | null => {
  const last = items.at(-1)
  return last === undefined || items.length < limit ? null : encodeContinue(String(position(last)))
}
