// Handlers of the resource routes: show, put and delete, with dry runs and preconditions.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { isBuiltIn } from '../../shared/model/access.ts'
import { withoutReadOnly } from '../../shared/model/explain.ts'
import { notificationRouteSchema, notificationSinkSchema } from '../../shared/model/notifications.ts'
import {
  clusterSchema,
  configSchema,
  healthRuleSchema,
  projectOf,
  projectSchema,
  repositorySchema,
  roleBindingSchema,
  roleSchema,
  serviceSchema,
  serviceSpecSchema,
  sourcesOf,
} from '../../shared/model/resources.ts'
import type { DeleteAnswer } from '../../shared/model/views.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { DeleteOutcome } from '../actions/port.ts'
import { NAMES_NOBODY } from '../actions/removal-plans.ts'
import type { Confirmation, DocumentKind, ResourceKey, StoredResource } from '../fleet/records.ts'
import { configUsers } from '../ingest/config-users.ts'
import { lacking } from './auth.ts'
import { readConfirmedData } from './confirm-data.ts'
import { dependencyProblems } from './dependency-problems.ts'
import type { AdminDeps } from './deps.ts'
import { checkPrecondition, etagOf, readPreconditions } from './preconditions.ts'
import { invalidInput, wrongFields } from './problem.ts'
import { problemsOfOne } from './project-problems.ts'
import { specProblems } from './resource-checks.ts'
import { bindingsOfRole, builtInRole, isLastAdminBinding } from './roles.ts'
import {
  changingRights,
  keyNotFound,
  keyText,
  plannedAction,
  refusal,
  secretProblems,
  storedSpec,
  writeResource,
} from './write-resource.ts'
import { mayNameProject, mayReadService, missingRights } from './write-rights.ts'

export const SCHEMAS = {
  Repository: repositorySchema,
  Service: serviceSchema,
  Cluster: clusterSchema,
  Config: configSchema,
  HealthRule: healthRuleSchema,
  Project: projectSchema,
  Role: roleSchema,
  RoleBinding: roleBindingSchema,
  NotificationSink: notificationSinkSchema,
  NotificationRoute: notificationRouteSchema,
} as const

export interface Headers {
  headers: Record<string, string | number>
  status?: number | string
}

export interface WriteRequest {
  request: Request
  body: unknown
  dryRun: boolean
  set: Headers
}

export type DocumentKey = ResourceKey & { kind: DocumentKind }

export function createResourceHandlers(deps: AdminDeps) {
  const shown = async (resource: StoredResource | null, key: ResourceKey, set: Headers, request: Request) => {
    const seen =
      key.kind === 'Cluster' || key.kind === 'Service' ? deps.authorizer.scope(deps.principal(request), 'read', 'Service') : undefined
    const [view] = resource === null ? [] : await deps.views.resources([resource], seen)
    if (view === undefined) throw keyNotFound(key)
    set.headers['etag'] = etagOf(view.metadata.version)
    return view
  }
  const show = async (key: ResourceKey, set: Headers, request: Request) =>
    (key.kind === 'Role' ? builtInRole(key.name) : null) ?? shown(await deps.store.getResource(key), key, set, request)

  const put = async (key: DocumentKey, { request, body, dryRun, set }: WriteRequest) => {
    const schema = SCHEMAS[key.kind]
    const input = withoutReadOnly(body)
    const parsed = schema.safeParse(input)
    if (!parsed.success) throw invalidInput(schema, input, parsed.error, `put ${keyText(key)}`)
    const resource = parsed.data
    if (resource.metadata.name !== key.name || projectOf(resource) !== key.project)
      throw new AppError('bad_request', { detail: 'name or project of the document differs from the path' })
    const ifVersion = readPreconditions(request)
    const held = await deps.store.getResource(key)
    if (held === null && key.kind === 'Cluster')
      throw new AppError('not_found', {
        detail: `${keyText(key)} does not exist: joining creates clusters`,
        remedy: 'Create a join token with `skerry join-token create`.',
      })
    checkPrecondition(key, held, ifVersion)
    const refusedBy = await problemsOfOne(deps, resource, mayNameProject(deps.authorizer, deps.principal(request)))
    const problems = [...(await specProblems(resource, deps.checkPatches)), ...(await secretProblems(deps, resource, held)), ...refusedBy]
    if (dryRun)
      problems.push(
        ...(await dependencyProblems(deps.store, [resource], mayReadService(deps.authorizer, deps.principal(request)))).values(),
      ) // the store finds them at a write
    if (problems.length > 0) throw wrongFields(problems, `put ${keyText(key)}`)
    const by = deps.principal(request)
    const lacks = missingRights(deps.authorizer, by, resource, held)
    if (lacks.length > 0) throw lacking(`put ${keyText(key)}`, lacks)
    const refused = await refusal(deps, resource, held)
    if (refused !== null) throw new AppError('in_use', { detail: `${keyText(key)} ${refused.message}` })
    if (dryRun) {
      await deps.probes.note(by, [resource])
      const planned = await plannedAction(deps, resource, held)
      if (planned === 'created') set.status = 201
      const spec = await storedSpec(deps, resource, held)
      return shown(wouldBe(key, { held, labels: resource.metadata.labels, spec, nowMs: deps.clock.nowMs() }), key, set, request)
    }
    const { action, changed } = await writeResource(deps, resource, {
      by: by.name,
      held,
      ifVersion,
      isShown: mayReadService(deps.authorizer, by),
    })
    if (changed !== null) deps.actions.onChanged([changed])
    const view = await show(key, set, request)
    if (action === 'created') set.status = 201
    return view
  }

  const remove = async (key: DocumentKey, { request, body, dryRun, set }: WriteRequest): Promise<DeleteAnswer> => {
    const ifVersion = readPreconditions(request)
    if (ifVersion === null) throw new AppError('bad_request', { detail: 'If-None-Match does not apply to a deletion' })
    if (ifVersion !== undefined || dryRun) {
      const held = await deps.store.getResource(key)
      if (held === null) throw keyNotFound(key)
      checkPrecondition(key, held, ifVersion)
    }
    const outcome = dryRun ? await wouldDelete(deps, key) : await carryOut(key, request, body, ifVersion)
    if (outcome.kind === 'not_found') throw keyNotFound(key)
    if (outcome.kind === 'removing' || outcome.kind === 'waiting') set.status = 202
    return deleteAnswer(outcome)
  }

  const carryOut = async (key: DocumentKey, request: Request, body: unknown, ifVersion: number | undefined): Promise<DeleteOutcome> => {
    const by = deps.principal(request).name
    switch (key.kind) {
      case 'Service': {
        const id = { project: key.project, service: key.name }
        const data = await readConfirmedData(body, async () => {
          const planned = await deps.removals.ofService(id, NAMES_NOBODY)
          if (planned === null) throw keyNotFound(key)
          return planned
        })
        return deps.actions.deleteService(id, by, data, ifVersion)
      }
      case 'Cluster':
        return { kind: (await deps.actions.deleteCluster(key.name, by, ifVersion)) ? 'deleted' : 'not_found' }
      default: {
        await refuseUsed(deps, key)
        if (!(await changingRights(deps, key, () => deps.store.deleteResource(key, ifVersion)))) return { kind: 'not_found' }
        if (key.kind !== 'Config') deps.actions.onChanged([key]) // no service reads a Config that may be deleted
        return { kind: 'deleted' }
      }
    }
  }
  return { show, put, remove }
}

/** The row that a write would leave. A resource that does not exist has no uid, and version 0. */
function wouldBe(
  key: ResourceKey,
  { held, labels, spec, nowMs }: { held: StoredResource | null; labels: StoredResource['labels']; spec: string; nowMs: number },
): StoredResource {
  if (held === null)
    return { ...key, uid: '', generation: 1, version: 0, labels, spec, createdMs: nowMs, updatedMs: nowMs, deletingMs: null }
  const isSame = held.spec === spec && canonicalJson(held.labels) === canonicalJson(labels)
  return { ...held, labels, spec, generation: held.generation + (held.spec === spec ? 0 : 1), updatedMs: isSame ? held.updatedMs : nowMs }
}

async function wouldDelete(deps: AdminDeps, key: DocumentKey): Promise<DeleteOutcome> {
  if (key.kind !== 'Service') {
    await refuseUsed(deps, key)
    return { kind: 'deleted' }
  }
  const [rows, clusters] = await Promise.all([
    deps.store.desiredOfService({ project: key.project, service: key.name }),
    deps.store.listClusters(),
  ])
  const holders = new Set(rows.filter(({ doc }) => doc !== null).map(({ clusterId }) => clusterId))
  if (holders.size === 0) return { kind: 'deleted' }
  return { kind: 'removing', clusters: clusters.filter(({ clusterId }) => holders.has(clusterId)).map(({ name }) => name) }
}

/** Throws `in_use` for a resource that others name. */
async function refuseUsed(deps: AdminDeps, key: DocumentKey): Promise<void> {
  const { store } = deps
  const used = (detail: string) => new AppError('in_use', { detail: `${keyText(key)} ${detail}` })
  switch (key.kind) {
    case 'Repository': {
      const users = await servicesFrom(store, key)
      if (users.length > 0) throw used(`is the source of ${users.join(', ')}`)
      return
    }
    case 'Config': {
      const users = await configUsers(store, key.project, key.name)
      if (users.length > 0) throw used(`is named by ${users.map((user) => keyText({ ...user, project: '' })).join(', ')}`) // CG4
      return
    }
    case 'Role': {
      const users = await bindingsOfRole(store, key.name)
      if (isBuiltIn(key.name)) throw used('is built in')
      if (users.length > 0) throw used(`is named by ${users.join(', ')}`) // AZ7
      return
    }
    case 'RoleBinding':
      if (await isLastAdminBinding(deps, key)) throw used('is the last credential of a fleet admin') // AZ9
      return
    case 'Project': {
      // PJ1: without its resource a project has no boundary, so that nothing of it may be left.
      const { items } = await store.listResources('Service', { project: key.name, limit: SERVICES_TOLD + 1 })
      const names = items.slice(0, SERVICES_TOLD).map(({ name }) => name)
      const more = items.length > SERVICES_TOLD ? ' and more' : ''
      if (items.length > 0) throw used(`has services: ${names.join(', ')}${more}`)
    }
  }
}
const SERVICES_TOLD = 10

/** AP5: a repository that a service names stays. */
async function servicesFrom(store: AdminDeps['store'], key: ResourceKey): Promise<string[]> {
  const users: string[] = []
  let after: string | undefined
  do {
    const page = await store.listResources('Service', { project: key.project, limit: 500, ...(after === undefined ? {} : { after }) })
    for (const item of page.items)
      if (sourcesOf(serviceSpecSchema.parse(JSON.parse(item.spec))).some(({ repository }) => repository === key.name)) users.push(item.name)
    after = page.next ?? undefined
  } while (after !== undefined)
  return users
}

/** A service that another caller deleted meanwhile counts as deleted. */
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
