// Authorization of the API: each route has a verb, and each role has verbs. Only an admin may use a route without a verb.
import { ROLES, type Role } from '../../shared/model/resources.ts'

/** `own`: what concerns the caller's own token. */
export type Verb = 'own' | 'read' | 'render' | 'sync' | 'confirm' | 'admin'

const VERBS_OF: Readonly<Record<Role, readonly Verb[]>> = {
  viewer: ['own', 'read'],
  operator: ['own', 'read', 'render', 'sync', 'confirm'],
  admin: ['own', 'read', 'render', 'sync', 'confirm', 'admin'],
}

const SERVICE = '/projects/:project/services/:name'

/** Routes below /api/v1 that need less than an admin. Answers of `read` routes hold no secret; a render may (its objects are those of the cluster). */
const VERB_OF_ROUTE: Readonly<Record<string, Verb>> = {
  'GET /whoami': 'own',
  'POST /token/exchange': 'own',
  'GET /version': 'read',
  'GET /repositories': 'read',
  'GET /services': 'read',
  'GET /clusters': 'read',
  'GET /configs': 'read',
  'GET /health-rules': 'read',
  'GET /projects/:project/repositories/:name': 'read',
  [`GET ${SERVICE}`]: 'read',
  'GET /clusters/:name': 'read',
  'GET /projects/:project/configs/:name': 'read',
  'GET /health-rules/:name': 'read',
  'GET /projects/:project/health-rules/:name': 'read',
  'GET /objects': 'read',
  'GET /placements': 'read',
  'GET /counts': 'read',
  'GET /changes': 'read',
  'GET /events': 'read',
  'GET /suspensions': 'read',
  'GET /confirmations': 'read',
  'GET /confirmations/:id': 'read',
  'GET /confirmations/:id/removal': 'read',
  'GET /clusters/:name/services': 'read',
  [`GET ${SERVICE}/clusters`]: 'read',
  [`GET ${SERVICE}/revisions`]: 'read',
  [`GET ${SERVICE}/history`]: 'read',
  [`GET ${SERVICE}/removal`]: 'read',
  [`GET ${SERVICE}/sync`]: 'read',
  [`GET ${SERVICE}/dependencies`]: 'read',
  [`GET ${SERVICE}/render`]: 'render',
  [`GET ${SERVICE}/variants`]: 'render',
  [`POST ${SERVICE}/sync`]: 'sync',
  'POST /projects/:project/repositories/:name/refresh': 'sync',
  'POST /suspend': 'sync',
  'POST /resume': 'sync',
  'POST /confirmations/:id/confirm': 'confirm',
}

export const DECLARED_ROUTES: readonly string[] = Object.keys(VERB_OF_ROUTE)

/** `route`: the pattern of a route below /api/v1, such as `/clusters/:name`. A HEAD is answered as a GET is. */
export const verbOf = (method: string, route: string): Verb => VERB_OF_ROUTE[`${method === 'HEAD' ? 'GET' : method} ${route}`] ?? 'admin'

export const may = (role: Role, verb: Verb): boolean => VERBS_OF[role].includes(verb)

/** The first role, least powerful first, that may. */
export const roleFor = (verb: Verb): Role => ROLES.find((role) => may(role, verb)) ?? 'admin'
