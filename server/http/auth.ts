// The first plugin: who is asking, and what an error looks like. Elysia's hooks cover only what is registered after them, so nothing may come before this one.
import { Elysia } from 'elysia'
import { AppError, type Problem } from '../../shared/protocol/error.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { ApiTokens, Principal } from '../access/api-tokens.ts'
import { may, roleFor, verbOf } from '../access/permissions.ts'
import { problemResponse } from './problem.ts'

export const ADMIN_API = '/api/v1'

export interface Auth {
  plugin: ReturnType<typeof authPlugin>
  principal(request: Request): Principal
  /** AP15: throws `forbidden` if the caller's role may not use the route. `route`: its whole pattern. */
  authorize(request: Request, route: string): void
}

export function createAuth(tokens: ApiTokens, logger: Logger): Auth {
  const principals = new WeakMap<Request, Principal>()
  const principalOf = (request: Request): Principal => {
    const principal = principals.get(request)
    if (principal === undefined) throw new AppError('unauthorized')
    return principal
  }
  return {
    plugin: authPlugin(tokens, logger, principals),
    principal: principalOf,
    authorize(request, route) {
      const { name, role } = principalOf(request)
      const verb = verbOf(request.method, route.slice(ADMIN_API.length))
      if (may(role, verb)) return
      const detail = `the token ${name} has the role ${role}; ${request.method} ${route} needs the role ${roleFor(verb)}`
      throw new AppError('forbidden', { detail })
    },
  }
}

/** AP1: everything below /api/ is asked for a credential before it is even looked up: an unknown route tells a stranger nothing. */
function authPlugin(tokens: ApiTokens, logger: Logger, principals: WeakMap<Request, Principal>) {
  return new Elysia({ name: 'auth' })
    .onError({ as: 'global' }, ({ code, error, request }) => problemResponse(toAppError(code, error, request, logger)))
    .onRequest(async ({ request }) => {
      if (!new URL(request.url).pathname.startsWith('/api/')) return undefined
      const principal = await tokens.authenticate(request.headers.get('authorization'))
      if (principal === null) return problemResponse(new AppError('unauthorized'))
      principals.set(request, principal)
      return undefined
    })
}

function toAppError(code: string | number, error: unknown, request: Request, logger: Logger): AppError {
  if (error instanceof AppError) return error
  if (code === 'NOT_FOUND') return new AppError('not_found', { detail: 'there is no such route' })
  if (code === 'PARSE') return new AppError('bad_request', { detail: 'the body is no JSON' })
  if (code === 'VALIDATION' && isInputError(error))
    return new AppError('bad_request', { detail: 'parameters are wrong', problems: problemsOf(error) })
  logger.error('request failed', { method: request.method, path: new URL(request.url).pathname, error: String(error) })
  return new AppError('internal')
}

/** A wrong answer is our bug, not the caller's. */
const isInputError = (error: unknown): error is { type: string; all: unknown } =>
  error instanceof Error && 'type' in error && error.type !== 'response' && 'all' in error

function problemsOf({ type, all }: { type: string; all: unknown }): Problem[] {
  const found = Array.isArray(all) ? all : []
  return found.map((item: { path?: unknown; message?: unknown }) => ({
    path: [type, item.path].filter((part) => typeof part === 'string' && part !== '').join('.'),
    message: typeof item.message === 'string' ? item.message : 'is wrong',
  }))
}
