// Repositories, services, clusters, configs, health rules and projects: list, get, put, delete.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { withoutReadOnly } from '../../shared/model/explain.ts'
import { nameSchema } from '../../shared/model/ids.ts'
import {
  clusterSchema,
  configSchema,
  FLEET,
  healthRuleSchema,
  projectOf,
  projectSchema,
  repositorySchema,
  serviceSchema,
  serviceSpecSchema,
  sourcesOf,
} from '../../shared/model/resources.ts'
import {
  clusterViewSchema,
  configViewSchema,
  type DeleteAnswer,
  deleteAnswerSchema,
  healthRuleViewSchema,
  listOf,
  projectViewSchema,
  refreshAnswerSchema,
  repositoryViewSchema,
  serviceViewSchema,
  webhookAnswerSchema,
} from '../../shared/model/views.ts'
import { AppError } from '../../shared/protocol/error.ts'
import type { DeleteOutcome } from '../actions/port.ts'
import type { Confirmation, DocumentKind, ResourceKey } from '../fleet/records.ts'
import { configUsers } from '../ingest/config-users.ts'
import { confirmDataBody, readConfirmedData } from './confirm-data.ts'
import type { AdminDeps } from './deps.ts'
import { invalidInput, wrongFields } from './problem.ts'
import { problemsOfOne } from './project-problems.ts'
import { decodeContinue, encodeContinue, listQuery, selectorOf } from './query.ts'
import { specProblems } from './resource-checks.ts'
import { keyNotFound, keyText, kindText, refusal, secretProblems, writeResource } from './write-resource.ts'

const SCHEMAS = {
  Repository: repositorySchema,
  Service: serviceSchema,
  Cluster: clusterSchema,
  Config: configSchema,
  HealthRule: healthRuleSchema,
  Project: projectSchema,
} as const
const VIEW_SCHEMAS = {
  Repository: repositoryViewSchema,
  Service: serviceViewSchema,
  Cluster: clusterViewSchema,
  Config: configViewSchema,
  HealthRule: healthRuleViewSchema,
  Project: projectViewSchema,
} as const
const inProject = z.object({ project: nameSchema, name: nameSchema })
const inFleet = z.object({ name: nameSchema })
// The router has one name for this place of an address.
const projectParams = z.object({ project: nameSchema })

interface Headers {
  headers: Record<string, string | number>
  status?: number | string
}

export function resourceRoutes(deps: AdminDeps) {
  const lister = (kind: DocumentKind) => async (query: z.infer<typeof listQuery>) => {
    const selector = selectorOf(query.labelSelector)
    const after = decodeContinue(query.continue)
    const page = await deps.store.listResources(kind, {
      limit: query.limit,
      ...(query.project === undefined || kind === 'Cluster' || kind === 'Project' ? {} : { project: query.project }),
      ...(selector === undefined ? {} : { selector }),
      ...(after === undefined ? {} : { after }),
    })
    return { items: await deps.views.listed(page.items), continue: encodeContinue(page.next) }
  }
  const show = async (key: ResourceKey, set: Headers) => {
    const resource = await deps.store.getResource(key)
    const [view] = resource === null ? [] : await deps.views.resources([resource])
    if (view === undefined) throw keyNotFound(key)
    set.headers['etag'] = `"${view.metadata.version}"`
    return view
  }
  const put = async (key: ResourceKey & { kind: DocumentKind }, request: Request, body: unknown, set: Headers) => {
    const schema = SCHEMAS[key.kind]
    const input = withoutReadOnly(body)
    const parsed = schema.safeParse(input)
    if (!parsed.success) throw invalidInput(schema, input, parsed.error, `put ${keyText(key)}`)
    const resource = parsed.data
    if (resource.metadata.name !== key.name || projectOf(resource) !== key.project)
      throw new AppError('bad_request', { detail: 'name or project of the document is not the one in the address' })
    const held = await deps.store.getResource(key)
    if (held === null && key.kind === 'Cluster')
      throw new AppError('not_found', {
        detail: `there is no ${keyText(key)}: clusters come into being by joining`,
        remedy: '`skerry join-token create` makes what a new cluster joins with.',
      })
    const refusedBy = await problemsOfOne(deps, resource)
    const problems = [...(await specProblems(resource, deps.checkPatches)), ...secretProblems(deps, resource, held), ...refusedBy]
    if (problems.length > 0) throw wrongFields(problems, `put ${keyText(key)}`)
    const refused = await refusal(deps, resource, held)
    if (refused !== null) throw new AppError('in_use', { detail: `${keyText(key)} ${refused.message}` })
    const { action, changed } = await writeResource(deps, resource, { by: deps.principal(request).name, held, ifVersion: ifMatch(request) })
    if (changed !== null) deps.actions.onChanged([changed])
    const view = await show(key, set)
    if (action === 'created') set.status = 201
    return view
  }
  const answer = (outcome: DeleteOutcome, key: ResourceKey, set: Headers): DeleteAnswer => {
    switch (outcome.kind) {
      case 'not_found':
        throw keyNotFound(key)
      case 'removing':
      case 'waiting':
        set.status = 202
        return deleteAnswer(outcome)
      default:
        return deleteAnswer(outcome)
    }
  }
  const of = (kind: 'Repository' | 'Service' | 'Config' | 'HealthRule', params: z.infer<typeof inProject>) => ({
    kind,
    ...params,
  })
  const cluster = (params: z.infer<typeof inFleet>) => ({ kind: 'Cluster' as const, project: FLEET, ...params })
  const fleetRule = (params: z.infer<typeof inFleet>) => ({ kind: 'HealthRule' as const, project: FLEET, ...params })

  const repositories = new Elysia({ tags: ['repositories'] })
    .get('/repositories', ({ query }) => lister('Repository')(query), doc('Repository', 'list', { query: listQuery }))
    .get(
      '/projects/:project/repositories/:name',
      ({ params, set }) => show(of('Repository', params), set),
      doc('Repository', 'get', { params: inProject }),
    )
    .put(
      '/projects/:project/repositories/:name',
      ({ params, request, body, set }) => put(of('Repository', params), request, body, set),
      doc('Repository', 'put', { params: inProject }),
    )
    .delete(
      '/projects/:project/repositories/:name',
      async ({ params, set }) => answer(await deleteRepository(deps, of('Repository', params)), of('Repository', params), set),
      doc('Repository', 'delete', { params: inProject }),
    )
    .get(
      '/projects/:project/repositories/:name/webhook',
      async ({ params }) => {
        const held = await deps.store.getResource(of('Repository', params))
        const found = held === null ? null : await deps.webhook(params.project, params.name)
        if (found === null) throw keyNotFound(of('Repository', params))
        return found
      },
      { params: inProject, response: webhookAnswerSchema, detail: { summary: 'Address and secret to give to the forge' } },
    )
    .post(
      '/projects/:project/repositories/:name/refresh',
      async ({ params, set }) => {
        const key = of('Repository', params)
        if ((await deps.store.getResource(key)) === null) throw keyNotFound(key)
        const requestedMs = deps.clock.nowMs()
        deps.actions.onChanged([key])
        set.status = 202
        return { requestedMs }
      },
      { params: inProject, response: { 202: refreshAnswerSchema }, detail: { summary: 'Read a repository now, as a webhook does' } },
    )
  const services = new Elysia({ tags: ['services'] })
    .get('/services', ({ query }) => lister('Service')(query), doc('Service', 'list', { query: listQuery }))
    .get(
      '/projects/:project/services/:name',
      ({ params, set }) => show(of('Service', params), set),
      doc('Service', 'get', { params: inProject }),
    )
    .put(
      '/projects/:project/services/:name',
      ({ params, request, body, set }) => put(of('Service', params), request, body, set),
      doc('Service', 'put', { params: inProject }),
    )
    .delete(
      '/projects/:project/services/:name',
      async ({ params, body, request, set }) => {
        const { project, name: service } = params
        const by = deps.principal(request).name
        const data = await readConfirmedData(body, async () => {
          const planned = await deps.removals.ofService({ project, service })
          if (planned === null) throw keyNotFound(of('Service', params))
          return planned
        })
        return answer(await deps.actions.deleteService({ project, service }, by, data), of('Service', params), set)
      },
      doc('Service', 'delete', { params: inProject }),
    )
  const clusters = new Elysia({ tags: ['clusters'] })
    .get('/clusters/:name', ({ params, set }) => show(cluster(params), set), doc('Cluster', 'get', { params: inFleet }))
    .put(
      '/clusters/:name',
      ({ params, request, body, set }) => put(cluster(params), request, body, set),
      doc('Cluster', 'put', { params: inFleet }),
    )
    .delete(
      '/clusters/:name',
      async ({ params, request, set }) => {
        const deleted = await deps.actions.deleteCluster(params.name, deps.principal(request).name)
        return answer({ kind: deleted ? 'deleted' : 'not_found' }, cluster(params), set)
      },
      doc('Cluster', 'delete', { params: inFleet }),
    )
  const configs = new Elysia({ tags: ['configs'] })
    .get('/configs', ({ query }) => lister('Config')(query), doc('Config', 'list', { query: listQuery }))
    .get(
      '/projects/:project/configs/:name',
      ({ params, set }) => show(of('Config', params), set),
      doc('Config', 'get', { params: inProject }),
    )
    .put(
      '/projects/:project/configs/:name',
      ({ params, request, body, set }) => put(of('Config', params), request, body, set),
      doc('Config', 'put', { params: inProject }),
    )
    .delete(
      '/projects/:project/configs/:name',
      async ({ params, set }) => answer(await deleteConfig(deps, of('Config', params)), of('Config', params), set),
      doc('Config', 'delete', { params: inProject }),
    )
  const healthRules = new Elysia({ tags: ['health-rules'] })
    .get('/health-rules', ({ query }) => lister('HealthRule')(query), doc('HealthRule', 'list', { query: listQuery }))
    .get('/health-rules/:name', ({ params, set }) => show(fleetRule(params), set), doc('HealthRule', 'get', { params: inFleet }))
    .put(
      '/health-rules/:name',
      ({ params, request, body, set }) => put(fleetRule(params), request, body, set),
      doc('HealthRule', 'put', { params: inFleet }),
    )
    .delete(
      '/health-rules/:name',
      async ({ params, set }) => answer(await deleteHealthRule(deps, fleetRule(params)), fleetRule(params), set),
      doc('HealthRule', 'delete', { params: inFleet }),
    )
    .get(
      '/projects/:project/health-rules/:name',
      ({ params, set }) => show(of('HealthRule', params), set),
      doc('HealthRule', 'get', { params: inProject }),
    )
    .put(
      '/projects/:project/health-rules/:name',
      ({ params, request, body, set }) => put(of('HealthRule', params), request, body, set),
      doc('HealthRule', 'put', { params: inProject }),
    )
    .delete(
      '/projects/:project/health-rules/:name',
      async ({ params, set }) => answer(await deleteHealthRule(deps, of('HealthRule', params)), of('HealthRule', params), set),
      doc('HealthRule', 'delete', { params: inProject }),
    )
  const boundary = ({ project }: z.infer<typeof projectParams>) => ({ kind: 'Project' as const, project: FLEET, name: project })
  const projects = new Elysia({ tags: ['projects'] })
    .get(
      '/projects',
      async ({ query, request }) => {
        const page = await lister('Project')(query)
        const by = deps.principal(request)
        const isReadable = (name: string) => deps.authorizer.allows(by, { verb: 'read', kind: 'Project', project: name, name })
        return { ...page, items: page.items.filter(({ metadata }) => isReadable(metadata.name)) }
      },
      doc('Project', 'list', { query: listQuery }),
    )
    .get('/projects/:project', ({ params, set }) => show(boundary(params), set), doc('Project', 'get', { params: projectParams }))
    .put(
      '/projects/:project',
      ({ params, request, body, set }) => put(boundary(params), request, body, set),
      doc('Project', 'put', { params: projectParams }),
    )
    .delete(
      '/projects/:project',
      async ({ params, set }) => answer(await deleteProject(deps, boundary(params)), boundary(params), set),
      doc('Project', 'delete', { params: projectParams }),
    )
  return new Elysia().use(repositories).use(services).use(clusters).use(configs).use(healthRules).use(projects)
}

/** AP5: a repository that a service names stays. */
async function deleteRepository({ store, actions }: AdminDeps, key: ResourceKey): Promise<DeleteOutcome> {
  const users: string[] = []
  let after: string | undefined
  do {
    const page = await store.listResources('Service', { project: key.project, limit: 500, ...(after === undefined ? {} : { after }) })
    for (const item of page.items)
      if (sourcesOf(serviceSpecSchema.parse(JSON.parse(item.spec))).some(({ repository }) => repository === key.name)) users.push(item.name)
    after = page.next ?? undefined
  } while (after !== undefined)
  if (users.length > 0) throw new AppError('in_use', { detail: `${keyText(key)} is the source of ${users.join(', ')}` })
  if (!(await store.deleteResource(key))) return { kind: 'not_found' }
  actions.onChanged([key])
  return { kind: 'deleted' }
}

/** PJ1: without its resource a project has no boundary, so that nothing of it may be left. */
async function deleteProject({ store, actions }: AdminDeps, key: ResourceKey): Promise<DeleteOutcome> {
  const { items } = await store.listResources('Service', { project: key.name, limit: SERVICES_TOLD + 1 })
  const names = items.slice(0, SERVICES_TOLD).map(({ name }) => name)
  const more = items.length > SERVICES_TOLD ? ' and more' : ''
  if (items.length > 0) throw new AppError('in_use', { detail: `${keyText(key)} has services: ${names.join(', ')}${more}` })
  if (!(await store.deleteResource(key))) return { kind: 'not_found' }
  actions.onChanged([key])
  return { kind: 'deleted' }
}
const SERVICES_TOLD = 10

/** CG4: a config that a repository or a service names stays. */
async function deleteConfig({ store }: AdminDeps, key: ResourceKey): Promise<DeleteOutcome> {
  const users = await configUsers(store, key.project, key.name)
  if (users.length > 0)
    throw new AppError('in_use', {
      detail: `${keyText(key)} is named by ${users.map((user) => keyText({ ...user, project: '' })).join(', ')}`,
    })
  return { kind: (await store.deleteResource(key)) ? 'deleted' : 'not_found' }
}

/** HR5: the next rule judges its objects from then on. */
async function deleteHealthRule({ store, actions }: AdminDeps, key: ResourceKey): Promise<DeleteOutcome> {
  if (!(await store.deleteResource(key))) return { kind: 'not_found' }
  actions.onChanged([key])
  return { kind: 'deleted' }
}

function ifMatch(request: Request): number | undefined {
  const header = request.headers.get('if-match')
  if (header === null) return undefined
  const version = /^(?:W\/)?"(\d{1,15})"$/.exec(header.trim())?.[1]
  if (version === undefined) throw new AppError('bad_request', { detail: 'If-Match takes the ETag of the resource, such as "12"' })
  return Number(version)
}

/** A service that somebody else deleted meanwhile is deleted. */
export function deleteAnswer(outcome: DeleteOutcome): DeleteAnswer {
  switch (outcome.kind) {
    case 'not_found':
    case 'deleted':
      return { outcome: 'deleted', clusters: [], confirmation: null }
    case 'removing':
      return { outcome: 'removing', clusters: outcome.clusters, confirmation: null }
    case 'waiting':
      return { outcome: 'waiting', clusters: [], confirmation: confirmationView(outcome.confirmation) }
  }
}

export function confirmationView({ subject: _, token: __, ...view }: Confirmation) {
  return view
}

/** Summary, schemas and the body for the OpenAPI document. Bodies are parsed by hand, so that problems name fields and nearest names. */
function doc<K extends DocumentKind, const S extends { params?: z.ZodType; query?: z.ZodType }>(
  kind: K,
  verb: 'list' | 'get' | 'put' | 'delete',
  schemas: S,
) {
  const view = VIEW_SCHEMAS[kind]
  const noun = kind === 'Repository' ? 'repositories' : `${kindText(kind)}s`
  const summary =
    verb === 'list' ? `List ${noun}` : `${verb === 'put' ? 'Create or change' : verb === 'get' ? 'Get' : 'Delete'} a ${kindText(kind)}`
  const ok = verb === 'list' ? listOf(view) : verb === 'delete' ? deleteAnswerSchema : view
  const takesNames = verb === 'delete' && kind === 'Service'
  const bodySchema = jsonSchema(takesNames ? confirmDataBody : SCHEMAS[kind])
  const requestBody = { required: !takesNames, content: { 'application/json': { schema: bodySchema } } }
  const content = { 'application/json': { schema: jsonSchema(ok, 'output') } }
  const etag = { description: 'Version of the resource, for If-Match', schema: { type: 'string' as const } }
  const done = { description: 'Done', content, headers: verb === 'get' || verb === 'put' ? { etag } : {} }
  const responses: Record<string, typeof done> = { '200': done }
  if (verb === 'put') responses['201'] = { ...done, description: 'Created' }
  if (verb === 'delete' && kind === 'Service') responses['202'] = { ...done, description: 'Under way, or waiting for a confirmation' }
  return { ...schemas, detail: { summary, responses, ...(verb === 'put' || takesNames ? { requestBody } : {}) } }
}

/** OpenAPI 3.1 takes JSON Schema as it is; the two libraries only name the type differently. */
export const jsonSchema = (schema: z.ZodType, io: 'input' | 'output' = 'input'): object =>
  z.toJSONSchema(schema, { io, unrepresentable: 'any' })
