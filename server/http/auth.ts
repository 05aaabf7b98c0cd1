// The first plugin: the caller of a request, and the form of errors. Elysia's hooks cover only later registrations, so
// nothing may be registered before it.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { FLEET } from '../../shared/model/resources.ts'
import { AppError, type Problem } from '../../shared/runtime/error.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { Authorizer } from '../access/authorizer.ts'
import type { Callers } from '../access/callers.ts'
import { askOf, rightOf } from '../access/permissions.ts'
import type { Principal } from '../access/principal.ts'
import { RESOURCE_KINDS, type ResourceKind } from '../fleet/records.ts'
import type { Ask } from '../fleet/rights.ts'
import { noteDenial } from '../store/audit/caller.ts'
import type { Store } from '../store/store.ts'
import { invalidInput, problemResponse } from './problem.ts'
import { createServiceSight } from './service-sight.ts'
import { keyNotFound } from './write-resource.ts'

export const ADMIN_API = '/api/v1'

export interface Auth {
  plugin: ReturnType<typeof authPlugin>
  principal(request: Request): Principal
  /** AZ1: throws if the caller lacks the right that the route declares. `route`: its whole pattern. */
  authorize(request: Request, route: string, params: Readonly<Record<string, string>>): Promise<void>
}

export interface AuthDeps {
  callers: Callers
  authorizer: Authorizer
  /** For rights that are limited to clusters with certain labels. */
  store: Pick<Store, 'clusterByName' | 'listClusters' | 'getResource' | 'desiredOf'>
  logger: Logger
}

export function createAuth({ callers, authorizer, store, logger }: AuthDeps): Auth {
  const principals = new WeakMap<Request, Principal>()
  const principalOf = (request: Request): Principal => {
    const principal = principals.get(request)
    if (principal === undefined) throw new AppError('unauthorized')
    return principal
  }
  return {
    plugin: authPlugin(callers, logger, principals),
    principal: principalOf,
    async authorize(request, route, params) {
      const principal = principalOf(request)
      await authorizer.loaded()
      const right = rightOf(request.method, route.slice(ADMIN_API.length))
      if (right === null) throw new AppError('forbidden', { detail: `${request.method} ${route} declares no right` })
      if (right.on === 'own') return
      if (right.on === 'object') return requireObject({ authorizer, store }, principal, askOf(right, params))
      const { verb, kind } = right
      if (authorizer.scope(principal, verb, kind).length === 0) throw forbidden(principal, { verb, kind })
    },
  }
}

type Deciding = Pick<AuthDeps, 'authorizer' | 'store'>

/** AZ3: an object that the caller may not read does not exist for it; one that it may read is refused with the right
 *  that is missing. */
async function requireObject(deps: Deciding, principal: Principal, ask: Ask): Promise<void> {
  const read: Ask = { ...ask, verb: 'read' }
  if (await mayObject(deps, principal, ask)) return requireSeen(deps, principal, ask)
  if (ask.name !== undefined && (ask.verb === 'read' || !(await mayObject(deps, principal, read)))) throw hidden(ask)
  await requireSeen(deps, principal, read)
  throw forbidden(principal, ask)
}

/** AZ11: a right that is limited to clusters is one on the services of these clusters. */
export async function requireSeen({ authorizer, store }: Deciding, principal: Principal, ask: Ask): Promise<void> {
  const { kind, project, name, verb } = ask
  if (kind !== 'Service' || project === undefined || name === undefined) return
  const sight = createServiceSight(store, authorizer.scope(principal, verb, kind))
  if (!(await sight.shows({ project, service: name }))) throw hidden(ask)
}

/** An act within clusters is decided for each of them by the handler. */
async function mayObject({ authorizer, store }: Deciding, principal: Principal, ask: Ask): Promise<boolean> {
  if (authorizer.allows(principal, ask)) return true
  if (!authorizer.allowsInSomeCluster(principal, ask)) return false
  if (ask.kind !== 'Cluster' || ask.name === undefined) return true
  const cluster = await store.clusterByName(ask.name)
  return cluster !== null && authorizer.allows(principal, { ...ask, cluster })
}

/** The answer that an object gets that does not exist. */
export const objectNotFound = ({ kind, project = FLEET, name = '' }: Ask): AppError =>
  RESOURCE_KINDS.some((known) => known === kind)
    ? keyNotFound({ kind: kind as ResourceKind, project, name })
    : new AppError('not_found', { detail: `${kind} ${name} does not exist` })

/** AZ3, AU2: the same answer for an object that the caller has no right to know of. The attempt is a denial. */
export function hidden(ask: Ask): AppError {
  noteDenials([ask])
  return objectNotFound(ask)
}

/** `Service web in project shop`. */
const objectText = ({ kind, name, project }: Ask): string =>
  `${kind}${name === undefined ? '' : ` ${name}`}${project === undefined ? '' : ` in project ${project}`}`

/** AZ3: names the caller, the verb, and the object. */
export function forbidden(principal: Principal, ask: Ask): AppError {
  noteDenials([ask])
  return new AppError('forbidden', { detail: missingText(principal, ask) })
}

/** A right that the content of a request needs and its caller lacks. */
export interface Lack {
  path: string
  message: string
  /** The act for the audit log. */
  deed: Ask & { detail?: string }
}

/** AU2: names each right that is missing. `lacks`: at least one. */
export function lacking(doing: string, lacks: readonly Lack[]): AppError {
  noteDenials(lacks.map(({ deed }) => deed))
  const problems = lacks.map(({ path, message }) => ({ path, message }))
  return new AppError('forbidden', { doing, detail: problems[0]?.message ?? '', problems })
}

const noteDenials = (asks: ReadonlyArray<Lack['deed']>): void =>
  noteDenial(...asks.map(({ cluster, ...about }) => ({ ...about, cluster: cluster?.name })))
export const missingText = ({ kind, name }: Pick<Principal, 'kind' | 'name'>, ask: Ask): string =>
  `${kind} ${name} has no right to ${ask.verb} ${objectText(ask)}: no role or binding grants it`

/** AP1: everything below /api/ is asked for a credential before it is even looked up: an unknown route tells a stranger
 *  nothing. */
function authPlugin(callers: Callers, logger: Logger, principals: WeakMap<Request, Principal>) {
  return new Elysia({ name: 'auth' })
    .onError({ as: 'global' }, ({ code, error, request }) => problemResponse(toAppError(code, error, request, logger)))
    .onRequest(async ({ request }) => {
      if (!new URL(request.url).pathname.startsWith('/api/')) return undefined
      const principal = await callers.authenticate(request)
      if (principal === null) return problemResponse(new AppError('unauthorized'))
      principals.set(request, principal)
      return undefined
    })
}

function toAppError(code: string | number, error: unknown, request: Request, logger: Logger): AppError {
  if (error instanceof AppError) return error
  if (code === 'NOT_FOUND') return new AppError('not_found', { detail: 'no such route' })
  if (code === 'PARSE') return new AppError('bad_request', { detail: 'the body is not JSON' })
  if (code === 'VALIDATION' && isBodyError(error)) return wrongBody(error)
  if (code === 'VALIDATION' && isInputError(error))
    return new AppError('bad_request', { detail: 'invalid parameters', problems: problemsOf(error) })
  logger.error('request failed', { method: request.method, path: new URL(request.url).pathname, error: String(error) })
  return new AppError('internal')
}

/** A wrong answer is our bug, not the caller's. */
const isInputError = (error: unknown): error is { type: string; all: unknown } =>
  error instanceof Error && 'type' in error && error.type !== 'response' && 'all' in error

/** A body that a route declares by a schema. */
interface BodyError {
  type: 'body'
  value: unknown
  validator: { schema: z.ZodType }
}
const isBodyError = (error: unknown): error is BodyError =>
  isInputError(error) && error.type === 'body' && 'validator' in error && schemaOf(error.validator) instanceof z.ZodType
const schemaOf = (validator: unknown): unknown =>
  typeof validator === 'object' && validator !== null && 'schema' in validator ? validator.schema : null

/** Elysia has the findings without what they are about: the schema looks again, for the nearest right names. */
function wrongBody({ value, validator: { schema } }: BodyError): AppError {
  const { error } = schema.safeParse(value)
  return error === undefined ? new AppError('internal') : invalidInput(schema, value, error, '')
}

function problemsOf({ type, all }: { type: string; all: unknown }): Problem[] {
  const found = Array.isArray(all) ? all : []
  return found.map((item: { path?: unknown; message?: unknown }) => ({
    path: [type, item.path].filter((part) => typeof part === 'string' && part !== '').join('.'),
    message: typeof item.message === 'string' ? item.message : 'is wrong',
  }))
}
