// The current activity: services in clusters, objects, events, and what waits for a person.
import { setImmediate } from 'node:timers/promises'
import { Elysia } from 'elysia'
import { z } from 'zod'
import { FLEET } from '../../shared/model/resources.ts'
import { confirmationViewSchema, eventViewSchema, listOf, placementViewSchema, refuseConfirmationSchema } from '../../shared/model/views.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { nameSchema } from '../../shared/runtime/ids.ts'
import type { Principal } from '../access/principal.ts'
import { NAMES_NOBODY } from '../actions/removal-plans.ts'
import type { Confirmation, FleetEvent } from '../fleet/records.ts'
import { withoutClusters } from '../fleet/rights.ts'
import { noteDenial, noteReason } from '../store/audit/caller.ts'
import { forbidden } from './auth.ts'
import { confirmDataBody, readConfirmedData } from './confirm-data.ts'
import { fails, takes } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { searchQuery } from './fleet-query.ts'
import { pageResponses, placementsPage } from './fleet-query-routes.ts'
import { notFound } from './problem.ts'
import { continueQuery, decodeContinue, encodeContinue, limitQuery } from './query.ts'
import { confirmationView } from './resource-handlers.ts'
import { confirmationInScope, placesInClusters, seenConfirmations } from './sight.ts'
import { keyNotFound } from './write-resource.ts'
import { mayNameService } from './write-rights.ts'

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
  /** Strictly before this id, newest of them; `continue` is then the next value, or null at the end. */
  before: z.coerce.number().int().min(0).optional(),
  type: z.enum(['Normal', 'Warning']).optional(),
  /** Words that are all part of the reason, the message, the cluster, the service or the object. */
  search: searchQuery,
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
const idOfConfirmation = z.string().regex(/^[0-9a-z]{1,32}$/, 'expected the id that `skerry confirm` lists')
export const confirmationId = z.object({ id: idOfConfirmation })
const confirmationQuery = pageQuery.extend({
  /** `refused`: those whose objects a person decided to keep. */
  state: z.enum(['pending', 'refused']).default('pending'),
  /** Only this one, whatever its state, with the objects that it deletes; no item if there is none (any more). */
  id: idOfConfirmation.optional(),
})

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

/** For a question of several clusters, `clusters.upTo` as it was shown: clusters that came later get a new question. */
const upToQuery = z.object({ upTo: z.coerce.number().int().min(0).optional() })

/** Events that one request looks through for its words. */
const EVENTS_SCANNED = 10_000
const EVENTS_A_TIME = 1_000

/** Oldest first. A page may be short, and continue: it reached the limit of events that are looked through. */
async function olderEvents(
  store: Pick<AdminDeps['store'], 'listEvents'>,
  asked: Omit<Parameters<AdminDeps['store']['listEvents']>[0], 'limit' | 'before'>,
  { limit, before, type, words }: { limit: number; before: number | undefined; type: string | undefined; words: readonly string[] },
): Promise<{ items: FleetEvent[]; continue: string | null }> {
  const items: FleetEvent[] = []
  const isAsked = ({ type: of, reason, message, cluster, project, service, object }: FleetEvent): boolean => {
    if (type !== undefined && of !== type) return false
    const text = `${reason}\n${message}\n${cluster}\n${project}/${service}\n${object}`.toLowerCase()
    return words.every((word) => text.includes(word))
  }
  let from = before
  for (let scanned = 0; scanned < EVENTS_SCANNED; scanned += EVENTS_A_TIME) {
    const count = words.length === 0 && type === undefined ? limit : EVENTS_A_TIME
    const read = await store.listEvents({ ...asked, limit: count, ...(from === undefined ? {} : { before: from }) })
    const fitting = read.filter(isAsked).toReversed()
    const taken = fitting.slice(0, limit - items.length)
    items.push(...taken)
    const isFull = items.length === limit
    from = isFull ? taken.at(-1)?.id : read[0]?.id
    if (read.length < count && !(isFull && taken.length < fitting.length)) return { items: items.reverse(), continue: null }
    if (isFull) break
    await setImmediate()
  }
  return { items: items.reverse(), continue: from === undefined ? null : String(from) }
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
  /** The caller, who may answer the question. */
  const answererOf = async (id: string, request: Request): Promise<Principal> => {
    const by = principal(request)
    const found = await store.confirmation(id)
    if (found === null || !(await confirmationInScope(servicesOf(request), found, store))) throw confirmationGone(id, found)
    if (!(await confirmationInScope(authorizer.scope(by, 'confirm', 'Service'), found, store)))
      throw forbidden(by, { verb: 'confirm', kind: 'Service', project: found.project, name: found.service })
    return by
  }
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
      async ({ query: { limit, since = 0, before, type, search: words = [], object, continue: token, ...filter }, request }) => {
        const scope = servicesOf(request)
        const seen = { scope: withoutClusters(scope), within: await placesInClusters(scope, store) }
        if (object !== undefined) {
          const { cluster } = filter
          if (cluster === undefined) throw new AppError('bad_request', { detail: 'object: expected it with cluster' })
          const { items, next } = await store.listObjectEvents({ ...seen, cluster, object, limit, ...given({ before: placeOf(token) }) })
          return { items, continue: encodeContinue(next === null ? null : String(next)) }
        }
        const asked = { ...seen, ...given(filter) }
        if (before !== undefined || type !== undefined || words.length > 0) return olderEvents(store, asked, { limit, before, type, words })
        // The stream is in the order of arrival: a filter by time in the store would read all of it.
        const items = (await store.listEvents({ limit, ...asked })).filter(({ atMs }) => atMs >= since)
        return { items, continue: null }
      },
      {
        query: eventQuery,
        response: listOf(eventViewSchema),
        detail: { summary: 'Events, oldest first; follow with `after`, go back with `before`' },
      },
    )
    .get(
      '/confirmations',
      async ({ query: { limit, continue: token, state, id }, request }) => {
        if (id !== undefined) {
          const found = await store.confirmation(id)
          if (found === null || !(await confirmationInScope(servicesOf(request), found, store))) return { items: [], continue: null }
          const removals = (await deps.removals.ofConfirmation(found, mayNameService(authorizer, principal(request)))).map(
            ({ view }) => view,
          )
          return { items: [{ ...confirmationView(found), removals }], continue: null }
        }
        const after = readConfirmationPlace(token)
        const items = await seenConfirmations(store, servicesOf(request), { limit: limit + 1, after, refused: state === 'refused' })
        const last = items.length > limit ? items[limit - 1] : undefined
        const next = last === undefined ? null : encodeContinue(`${last.createdMs}/${last.id}`)
        return { items: items.slice(0, limit).map(confirmationView), continue: next }
      },
      {
        query: confirmationQuery,
        response: listOf(confirmationViewSchema),
        detail: { summary: 'List pending or refused confirmations' },
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
        const by = await answererOf(id, request)
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
        query: upToQuery,
        response: confirmationViewSchema,
        detail: {
          summary: 'Confirm exactly these names',
          requestBody: takes(confirmDataBody, { required: false }),
          ...fails(409),
        },
      },
    )
    .post(
      '/confirmations/:id/refuse',
      async ({ params: { id }, query: { upTo }, body: { reason }, request }) => {
        const by = await answererOf(id, request)
        noteReason(reason)
        const refused = await actions.refuse(id, { by: by.name, why: reason, upTo })
        if (refused === null) throw confirmationGone(id)
        return confirmationView(refused)
      },
      {
        params: confirmationId,
        query: upToQuery,
        body: refuseConfirmationSchema,
        response: confirmationViewSchema,
        detail: { summary: 'Keep the objects: the confirmation waits no longer, and can still be given' },
      },
    )
}
