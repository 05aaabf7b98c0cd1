// The current activity: services in clusters, objects, events, and what waits for a person.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { nameSchema } from '../../shared/model/ids.ts'
import { FLEET } from '../../shared/model/resources.ts'
import { confirmationViewSchema, eventViewSchema, listOf, placementViewSchema } from '../../shared/model/views.ts'
import { AppError } from '../../shared/protocol/error.ts'
import { NAMES_NOBODY } from '../actions/removal-plans.ts'
import type { Confirmation } from '../fleet/records.ts'
import { withoutClusters } from '../fleet/rights.ts'
import { noteDenial } from '../store/audit/caller.ts'
import { forbidden } from './auth.ts'
import { confirmDataBody, readConfirmedData } from './confirm-data.ts'
import { fails, takes } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { pageResponses, placementsPage } from './fleet-query-routes.ts'
import { notFound } from './problem.ts'
import { continueQuery, decodeContinue, encodeContinue, limitQuery } from './query.ts'
import { confirmationView } from './resource-handlers.ts'
import { confirmationInScope, placesInClusters, seenConfirmations } from './sight.ts'
import { keyNotFound } from './write-resource.ts'

const eventQuery = z.object({
  /** Strictly after this id; without it the newest. */
  after: z.coerce.number().int().min(0).optional(),
  cluster: nameSchema.optional(),
  project: nameSchema.optional(),
  service: nameSchema.optional(),
  /** Correlation id of a change. */
  trace: z.string().max(64).optional(),
  /** Time in milliseconds since 1970: only events that are not older, among the newest `limit` ones. */
  since: z.coerce.number().int().min(0).optional(),
  limit: limitQuery,
  object: z
    .string()
    .max(1_000)
    .regex(/^[^/]*(\/[^/]*){2,3}$/, 'expected GROUP/KIND/NAMESPACE/NAME, or KIND/NAMESPACE/NAME for any group')
    .optional()
    .describe('With cluster: events about this object, newest first, in pages. GROUP/KIND/NAMESPACE/NAME, or without the group.'),
  continue: continueQuery.describe('With object: the next page'),
})
const pageQuery = z.object({ limit: limitQuery, continue: continueQuery })
export const confirmationId = z.object({ id: z.string().regex(/^[0-9a-z]{1,32}$/, 'expected the id that `skerry confirm` lists') })

/** Without members that are undefined, which an optional query parameter is and an optional property is not. */
const given = <T extends object>(query: T) =>
  Object.fromEntries(Object.entries(query).filter(([, value]) => value !== undefined)) as { [K in keyof T]?: Exclude<T[K], undefined> }

function placeOf(token: string | undefined): number | undefined {
  const text = decodeContinue(token)
  if (text === undefined) return undefined
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw new AppError('bad_request', { detail: 'continue is not from this list' })
}

function readConfirmationPlace(token: string | undefined): { createdMs: number; id: string } | undefined {
  const [createdMs = '', id = ''] = decodeContinue(token)?.split('/') ?? []
  return /^\d+$/.test(createdMs) ? { createdMs: Number(createdMs), id } : undefined
}

/** `hidden`: one that the caller may not read, which is answered as one that is gone and is a denial (AU2). */
export function confirmationGone(id: string, hidden: Confirmation | null = null): AppError {
  if (hidden !== null) {
    const { project, service: name, cluster } = hidden
    noteDenial({ verb: 'read', kind: 'Service', project, name, cluster: cluster ?? undefined })
  }
  return notFound(`confirmation ${id}: it was completed, withdrawn or changed`, 'skerry confirm')
}

export function fleetRoutes(deps: AdminDeps) {
  const { store, actions, authorizer, principal } = deps
  const servicesOf = (request: Request) => authorizer.scope(principal(request), 'read', 'Service')
  return new Elysia({ tags: ['fleet'] })
    .get(
      '/projects/:project/services/:name/clusters',
      async ({ params: { project, name }, query, request }) => {
        if ((await store.getResource({ kind: 'Service', project, name })) === null) throw keyNotFound({ kind: 'Service', project, name })
        return placementsPage(deps, { project, service: name, sort: 'cluster' }, servicesOf(request), query, request.signal)
      },
      {
        params: z.object({ project: nameSchema, name: nameSchema }),
        query: pageQuery,
        detail: { summary: 'A service in each of its clusters', responses: pageResponses(placementViewSchema) },
      },
    )
    .get(
      '/clusters/:name/services',
      async ({ params: { name }, query, request }) => {
        const cluster = await store.clusterByName(name)
        const page =
          cluster === null
            ? null
            : await placementsPage(deps, { cluster: name, sort: 'cluster' }, servicesOf(request), query, request.signal)
        // AZ3: a cluster that the caller may not read, and that has nothing it may read, does not exist for it.
        const mayRead = cluster !== null && authorizer.allows(principal(request), { verb: 'read', kind: 'Cluster', name, cluster })
        if (page === null || (!mayRead && page.items.length === 0 && query.continue === undefined))
          throw keyNotFound({ kind: 'Cluster', project: FLEET, name })
        return page
      },
      {
        params: z.object({ name: nameSchema }),
        query: pageQuery,
        detail: { summary: 'The services of a cluster', responses: pageResponses(placementViewSchema) },
      },
    )
    .get(
      '/events',
      async ({ query: { limit, since = 0, object, continue: token, ...filter }, request }) => {
        const scope = servicesOf(request)
        const seen = { scope: withoutClusters(scope), within: await placesInClusters(scope, store) }
        if (object !== undefined) {
          const { cluster } = filter
          if (cluster === undefined) throw new AppError('bad_request', { detail: 'object: expected it with cluster' })
          const { items, next } = await store.listObjectEvents({ ...seen, cluster, object, limit, ...given({ before: placeOf(token) }) })
          return { items, continue: encodeContinue(next === null ? null : String(next)) }
        }
        // The stream is in the order of arrival: a filter by time in the store would read all of it.
        const items = (await store.listEvents({ limit, ...seen, ...given(filter) })).filter(({ atMs }) => atMs >= since)
        return { items, continue: null }
      },
      { query: eventQuery, response: listOf(eventViewSchema), detail: { summary: 'Events, oldest first; follow with `after`' } },
    )
    .get(
      '/confirmations',
      async ({ query: { limit, continue: token }, request }) => {
        const after = readConfirmationPlace(token)
        const items = await seenConfirmations(store, servicesOf(request), { limit: limit + 1, after })
        const last = items.length > limit ? items[limit - 1] : undefined
        const next = last === undefined ? null : encodeContinue(`${last.createdMs}/${last.id}`)
        return { items: items.slice(0, limit).map(confirmationView), continue: next }
      },
      {
        query: pageQuery,
        response: listOf(confirmationViewSchema),
        detail: { summary: 'List pending confirmations' },
      },
    )
    .get(
      '/confirmations/:id',
      async ({ params: { id }, request }) => {
        const found = await store.confirmation(id)
        if (found === null || !(await confirmationInScope(servicesOf(request), found, store))) throw confirmationGone(id, found)
        return confirmationView(found)
      },
      { params: confirmationId, response: confirmationViewSchema, detail: { summary: 'A confirmation with its exact names' } },
    )
    .post(
      '/confirmations/:id/confirm',
      async ({ params: { id }, query: { upTo }, body, request }) => {
        const by = principal(request)
        const found = await store.confirmation(id)
        if (found === null || !(await confirmationInScope(servicesOf(request), found, store))) throw confirmationGone(id, found)
        if (!(await confirmationInScope(authorizer.scope(by, 'confirm', 'Service'), found, store)))
          throw forbidden(by, { verb: 'confirm', kind: 'Service', project: found.project, name: found.service })
        const data = await readConfirmedData(body, async () => {
          const asked = await store.confirmation(id)
          if (asked === null) throw confirmationGone(id)
          return deps.removals.ofConfirmation(asked, NAMES_NOBODY)
        })
        const confirmed = await actions.confirm(id, by.name, data, upTo)
        if (confirmed === null) throw confirmationGone(id)
        return confirmationView(confirmed)
      },
      {
        params: confirmationId,
        /**
         * For a question of several clusters, `clusters.upTo` as it was shown: clusters that came later get a new
         * question.
         */
        query: z.object({ upTo: z.coerce.number().int().min(0).optional() }),
        response: confirmationViewSchema,
        detail: {
          summary: 'Confirm exactly these names',
          requestBody: takes(confirmDataBody, { required: false }),
          ...fails(409),
        },
      },
    )
}
