// Repositories, services, clusters, configs, health rules and projects: the same routes for each, declared once.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { notificationRouteViewSchema, notificationSinkViewSchema } from '../../shared/model/notification-views.ts'
import { FLEET } from '../../shared/model/resources.ts'
import {
  clusterViewSchema,
  configViewSchema,
  deleteAnswerSchema,
  healthRuleViewSchema,
  listOf,
  projectViewSchema,
  refreshAnswerSchema,
  repositoryViewSchema,
  roleBindingViewSchema,
  roleViewSchema,
  serviceListSchema,
  serviceViewSchema,
  webhookAnswerSchema,
} from '../../shared/model/views.ts'
import { nameSchema } from '../../shared/runtime/ids.ts'
import type { DocumentKind } from '../fleet/records.ts'
import { confirmDataBody } from './confirm-data.ts'
import { answers, fails, takes } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { EXAMPLES } from './examples.ts'
import { searchQuery } from './fleet-query.ts'
import { DELETE_HEADERS, isDryRun, PUT_HEADERS, writeQuery } from './preconditions.ts'
import { decodeContinue, encodeContinue, listQuery, selectorOf } from './query.ts'
import { createResourceHandlers, type DocumentKey, type Headers, SCHEMAS } from './resource-handlers.ts'
import { withBuiltInRoles } from './roles.ts'
import { isPlain, listServices, serviceListQuery } from './service-list.ts'
import { seenServices } from './service-sight.ts'
import { keyNotFound, kindText } from './write-resource.ts'

const VIEW_SCHEMAS = {
  Repository: repositoryViewSchema,
  Service: serviceViewSchema,
  Cluster: clusterViewSchema,
  Config: configViewSchema,
  HealthRule: healthRuleViewSchema,
  NotificationSink: notificationSinkViewSchema,
  NotificationRoute: notificationRouteViewSchema,
  Project: projectViewSchema,
  Role: roleViewSchema,
  RoleBinding: roleBindingViewSchema,
} as const

const inProject = z.object({ project: nameSchema, name: nameSchema })
const inFleet = z.object({ name: nameSchema })
/** The router has one name for this place of an address. */
const projectParams = z.object({ project: nameSchema })

type PathNames = Partial<Record<'project' | 'name', string>>

interface Place {
  kind: DocumentKind
  path: string
  params: z.ZodObject
  key(names: PathNames): DocumentKey
}

/** A name that is not in the address is '', which no resource has. */
const ofProject = (kind: DocumentKind, segment: string): Place => ({
  kind,
  path: `/projects/:project/${segment}/:name`,
  params: inProject,
  key: ({ project = '', name = '' }) => ({ kind, project, name }),
})
const ofFleet = (kind: DocumentKind, segment: string): Place => ({
  kind,
  path: `/${segment}/:name`,
  params: inFleet,
  key: ({ name = '' }) => ({ kind, project: FLEET, name }),
})

const PLACES: readonly Place[] = [
  ofProject('Repository', 'repositories'),
  ofProject('Service', 'services'),
  ofFleet('Cluster', 'clusters'),
  ofProject('Config', 'configs'),
  ofFleet('HealthRule', 'health-rules'),
  ofProject('HealthRule', 'health-rules'),
  ofFleet('NotificationSink', 'notification-sinks'),
  ofProject('NotificationSink', 'notification-sinks'),
  ofFleet('NotificationRoute', 'notification-routes'),
  ofProject('NotificationRoute', 'notification-routes'),
  ofFleet('Role', 'roles'),
  ofFleet('RoleBinding', 'role-bindings'),
  ofProject('RoleBinding', 'role-bindings'),
  {
    kind: 'Project',
    path: '/projects/:project',
    params: projectParams,
    key: ({ project = '' }) => ({ kind: 'Project', project: FLEET, name: project }),
  },
]
/** Clusters have a list of their own, with filters. */
const LISTS = {
  Repository: 'repositories',
  Service: 'services',
  Config: 'configs',
  HealthRule: 'health-rules',
  Project: 'projects',
  Role: 'roles',
  RoleBinding: 'role-bindings',
  NotificationSink: 'notification-sinks',
  NotificationRoute: 'notification-routes',
} as const
/** Services have one with more filters. */
const LISTED = (Object.keys(LISTS) as Array<keyof typeof LISTS>).filter((kind) => kind !== 'Service')

const namedListQuery = listQuery.extend({ search: searchQuery.describe('Words that are all part of `project/name`') })
type NamedListQuery = z.infer<typeof namedListQuery>

const tagOf = (kind: DocumentKind): string => (kind === 'Cluster' ? 'clusters' : LISTS[kind])

interface Called {
  params: object
  query: object
  request: Request
  body?: unknown
  set: Headers
}

export function resourceRoutes(deps: AdminDeps) {
  const { show, put, remove } = createResourceHandlers(deps)
  const lister = (kind: DocumentKind) => async (query: NamedListQuery, request: Request) => {
    const scope = deps.authorizer.scope(deps.principal(request), 'read', kind)
    const selector = selectorOf(query.labelSelector)
    const after = decodeContinue(query.continue)
    const words = query.search ?? []
    const read = (from: string | undefined, limit: number) =>
      deps.store.listResources(kind, {
        limit,
        scope,
        keep: ({ project, name }) => words.every((word) => `${project}/${name}`.includes(word)),
        ...(query.project === undefined || kind === 'Project' ? {} : { project: query.project }),
        ...(selector === undefined ? {} : { selector }),
        ...(from === undefined ? {} : { after: from }),
      })
    const page =
      kind === 'Service' ? await seenServices(deps.store, scope, { after, limit: query.limit, read }) : await read(after, query.limit)
    return { items: await deps.views.listed(page.items, kind === 'Service' ? scope : undefined), continue: encodeContinue(page.next) }
  }
  const listOfKind =
    (kind: DocumentKind) =>
    async ({ query, request }: { query: NamedListQuery; request: Request }) => {
      const page = await lister(kind)(query, request)
      return kind === 'Role' ? withBuiltInRoles(query, page) : page
    }
  const services = async ({ query, request }: { query: z.infer<typeof serviceListQuery>; request: Request }) => {
    if (isPlain(query)) return lister('Service')(query, request)
    const scope = deps.authorizer.scope(deps.principal(request), 'read', 'Service')
    const { items, ...page } = await listServices(deps, scope, query)
    return { items: await deps.views.listed(items, scope), ...page }
  }
  const routes = new Elysia().get('/services', services, {
    query: serviceListQuery,
    detail: { tags: [tagOf('Service')], summary: 'List services', responses: answers({ 200: serviceListSchema }) },
  })
  for (const kind of LISTED)
    routes.get(`/${LISTS[kind]}`, listOfKind(kind), {
      query: namedListQuery,
      detail: { tags: [tagOf(kind)], summary: `List ${nounsOf(kind)}`, responses: answers({ 200: listOf(VIEW_SCHEMAS[kind]) }) },
    })
  for (const { kind, path, params, key } of PLACES) {
    const tags = [tagOf(kind)]
    const view = { schema: VIEW_SCHEMAS[kind], headers: ETAG }
    const asWrite = ({ query, request, body, set }: Called) => ({ request, body, set, dryRun: isDryRun(query) })
    routes
      .get(path, (called: Called) => show(key(called.params), called.set, called.request), {
        params,
        detail: { tags, summary: `Get a ${kindText(kind)}`, responses: answers({ 200: view }) },
      })
      .put(path, (called: Called) => put(key(called.params), asWrite(called)), {
        params,
        query: writeQuery,
        detail: {
          tags,
          summary: `Create or change a ${kindText(kind)}`,
          ...PUT_HEADERS,
          requestBody: takes(SCHEMAS[kind], { example: EXAMPLES[kind] }),
          responses: answers({ 200: view, 201: view }),
          ...fails(409, 412),
        },
      })
      .delete(path, (called: Called) => remove(key(called.params), asWrite(called)), {
        params,
        query: writeQuery,
        detail: {
          tags,
          summary: `Delete a ${kindText(kind)}`,
          ...DELETE_HEADERS,
          ...(kind === 'Service' ? { requestBody: takes(confirmDataBody, { required: false }) } : {}),
          responses: answers({ 200: deleteAnswerSchema, ...(kind === 'Service' ? { 202: deleteAnswerSchema } : {}) }),
          ...fails(409, 412),
        },
      })
  }
  return routes
    .get(
      '/projects/:project/repositories/:name/webhook',
      async ({ params }) => {
        const key = { kind: 'Repository', ...params } as const
        const held = await deps.store.getResource(key)
        const found = held === null ? null : await deps.webhook(params.project, params.name)
        if (found === null) throw keyNotFound(key)
        await deps.trail.record({ verb: 'webhook:read', ...key })
        return found
      },
      {
        params: inProject,
        response: webhookAnswerSchema,
        detail: { tags: ['repositories'], summary: 'Address of the webhook, and the mark of its secret' },
      },
    )
    .post(
      '/projects/:project/repositories/:name/webhook',
      async ({ params }) => {
        const made = await deps.newWebhookSecret(params.project, params.name)
        if (made === null) throw keyNotFound({ kind: 'Repository', ...params })
        return made
      },
      {
        params: inProject,
        response: webhookAnswerSchema,
        detail: {
          tags: ['repositories'],
          summary: 'Make another secret for the webhook and show it once; the one before it is accepted until the next',
        },
      },
    )
    .post(
      '/projects/:project/repositories/:name/refresh',
      async ({ params, set }) => {
        const key = { kind: 'Repository', ...params } as const
        if ((await deps.store.getResource(key)) === null) throw keyNotFound(key)
        await deps.trail.record({ verb: 'refresh', ...key })
        const requestedMs = deps.clock.nowMs()
        deps.actions.onChanged([key])
        set.status = 202
        return { requestedMs }
      },
      {
        params: inProject,
        response: { 202: refreshAnswerSchema },
        detail: { tags: ['repositories'], summary: 'Read a repository now, as a webhook does' },
      },
    )
}

const nounsOf = (kind: DocumentKind): string => (kind === 'Repository' ? 'repositories' : `${kindText(kind)}s`)
const ETAG = { ETag: { description: 'Version of the resource, for If-Match', schema: { type: 'string' as const } } }
