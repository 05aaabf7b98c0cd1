// Authorization of the API: each route declares a right, and on which object. A route that declares none does not
// start.
import type { AccessKind, AccessVerb } from '../../shared/model/access-words.ts'
import type { Ask } from '../fleet/rights.ts'

/** The right that a route needs.
 *  `own`: every caller; it concerns the caller only, or is no secret.
 *  `object`: the right on the object that the address names.
 *  `some`: the right somewhere; the handler shows and changes only the objects on which the caller has it. */
export type RouteRight = { on: 'own' } | { on: 'object' | 'some'; verb: AccessVerb; kind: AccessKind }

const OWN: RouteRight = { on: 'own' }
const object = (verb: AccessVerb, kind: AccessKind): RouteRight => ({ on: 'object', verb, kind })
const some = (verb: AccessVerb, kind: AccessKind): RouteRight => ({ on: 'some', verb, kind })

const crud = (path: string, kind: AccessKind): Record<string, RouteRight> => ({
  [`GET ${path}`]: object('read', kind),
  [`PUT ${path}`]: object('write', kind),
  [`DELETE ${path}`]: object('delete', kind),
})

const SERVICE = '/projects/:project/services/:name'
const REPOSITORY = '/projects/:project/repositories/:name'

/** Routes below /api/v1. */
const RIGHT_OF_ROUTE: Readonly<Record<string, RouteRight>> = {
  'GET /whoami': OWN,
  'POST /token/exchange': OWN,
  'GET /version': OWN,
  // The handler asks for the right on each object of the request.
  'POST /apply': OWN,
  'GET /repositories': some('read', 'Repository'),
  'GET /services': some('read', 'Service'),
  'GET /clusters': some('read', 'Cluster'),
  'GET /configs': some('read', 'Config'),
  'GET /health-rules': some('read', 'HealthRule'),
  'GET /projects': some('read', 'Project'),
  ...crud('/projects/:project', 'Project'),
  ...crud(REPOSITORY, 'Repository'),
  ...crud(SERVICE, 'Service'),
  ...crud('/clusters/:name', 'Cluster'),
  ...crud('/projects/:project/configs/:name', 'Config'),
  ...crud('/health-rules/:name', 'HealthRule'),
  ...crud('/projects/:project/health-rules/:name', 'HealthRule'),
  'GET /notification-sinks': some('read', 'NotificationSink'),
  ...crud('/notification-sinks/:name', 'NotificationSink'),
  ...crud('/projects/:project/notification-sinks/:name', 'NotificationSink'),
  'GET /notification-routes': some('read', 'NotificationRoute'),
  ...crud('/notification-routes/:name', 'NotificationRoute'),
  ...crud('/projects/:project/notification-routes/:name', 'NotificationRoute'),
  'POST /notification-sinks/:name/test': object('notify:test', 'NotificationSink'),
  'POST /projects/:project/notification-sinks/:name/test': object('notify:test', 'NotificationSink'),
  'GET /notifications': some('read', 'NotificationRoute'),
  'GET /notifications/:id': some('read', 'NotificationRoute'),
  // The handler asks for the right on the sink of the notification.
  'POST /notifications/:id/retry': some('notify:test', 'NotificationSink'),
  'GET /roles': some('read', 'Role'),
  ...crud('/roles/:name', 'Role'),
  'GET /role-bindings': some('read', 'RoleBinding'),
  ...crud('/role-bindings/:name', 'RoleBinding'),
  ...crud('/projects/:project/role-bindings/:name', 'RoleBinding'),
  'GET /auth/can-i': OWN,
  // The handler asks for the right to read bindings.
  'GET /auth/who-can': some('read', 'RoleBinding'),
  [`GET ${REPOSITORY}/webhook`]: object('webhook:read', 'Repository'),
  [`POST ${REPOSITORY}/webhook`]: object('webhook:read', 'Repository'),
  [`POST ${REPOSITORY}/refresh`]: object('sync', 'Repository'),
  [`GET ${REPOSITORY}/commits`]: object('read', 'Repository'),
  'GET /objects': some('read', 'Service'),
  'GET /placements': some('read', 'Service'),
  'GET /counts': OWN, // the handler asks for the right that the counted things need,
  'POST /query': some('read', 'Service'),
  'GET /query/views': OWN,
  // A caller who may query the fleet may read all saved queries.
  'GET /saved-queries': some('read', 'Service'),
  'GET /saved-queries/:name': some('read', 'Service'),
  // The handler asks for the right: a saved query is no secret for a caller without it.
  'PUT /saved-queries/:name': OWN,
  'DELETE /saved-queries/:name': OWN,
  'GET /chart': some('read', 'Cluster'),
  // The handler shows the changes of each kind that the caller may read, and refuses a caller who may read none.
  'GET /changes': OWN,
  'GET /attention': some('read', 'Service'),
  'GET /metrics': object('read', 'Server'),
  'GET /events': some('read', 'Service'),
  'GET /suspensions': some('read', 'Service'),
  'GET /confirmations': some('read', 'Service'),
  'GET /confirmations/:id': some('read', 'Service'),
  'GET /confirmations/:id/removal': some('read', 'Service'),
  'POST /confirmations/:id/confirm': some('confirm', 'Service'),
  'POST /confirmations/:id/refuse': some('confirm', 'Service'),
  'GET /clusters/:name/services': some('read', 'Service'),
  'GET /clusters/:name/history': some('read', 'Service'),
  // The handler asks for the right that the question needs, on the cluster or on the service.
  'POST /clusters/:name/ask': OWN,
  [`GET ${SERVICE}/clusters`]: object('read', 'Service'),
  [`GET ${SERVICE}/revisions`]: object('read', 'Service'),
  [`GET ${SERVICE}/history`]: object('read', 'Service'),
  [`GET ${SERVICE}/why`]: object('read', 'Service'),
  [`GET ${SERVICE}/removal`]: object('read', 'Service'),
  [`GET ${SERVICE}/sync`]: object('read', 'Service'),
  [`GET ${SERVICE}/order`]: object('read', 'Service'),
  [`GET ${SERVICE}/dependencies`]: object('read', 'Service'),
  [`GET ${SERVICE}/render`]: object('render', 'Service'),
  [`GET ${SERVICE}/variants`]: object('render', 'Service'),
  [`GET ${SERVICE}/origin`]: object('render', 'Service'),
  // A proposed spec takes the rights of a write, too.
  [`POST ${SERVICE}/diff`]: object('render', 'Service'),
  [`POST ${SERVICE}/sync`]: object('sync', 'Service'),
  'POST /projects/:project/delete-services': some('delete', 'Service'),
  'POST /suspend': some('suspend', 'Service'),
  'POST /resume': some('suspend', 'Service'),
  'GET /join-tokens': object('read', 'JoinToken'),
  'POST /join-tokens': object('join-token:create', 'JoinToken'),
  'DELETE /join-tokens/:id': object('delete', 'JoinToken'),
  // A link is worth an API token.
  'POST /sign-in-links': object('token:create', 'ApiToken'),
  'GET /tokens': object('token:read', 'ApiToken'),
  'POST /tokens': object('token:create', 'ApiToken'),
  'DELETE /tokens/:id': object('token:revoke', 'ApiToken'),
  // The handler shows and ends the sessions of the caller only, without the right to read or revoke tokens.
  'GET /sessions': OWN,
  'DELETE /sessions/:id': OWN,
  'GET /agents': object('read', 'Agent'),
  'GET /server-keys': object('server-key', 'Server'),
  'POST /server-keys/rotate': object('server-key', 'Server'),
  'POST /server-keys/revoke': object('server-key', 'Server'),
  'POST /server-keys/rotate-mac': object('server-key', 'Server'),
  'POST /server-keys/rotate-secrets': object('server-key', 'Server'),
  'GET /profile/cpu': object('profile', 'Server'),
  'GET /profile/heap': object('profile', 'Server'),
  'GET /profile/heap-snapshot': object('profile', 'Server'),
  'GET /secrets/rotate-key': object('server-key', 'Server'),
  'POST /secrets/rotate-key': object('server-key', 'Server'),
  'GET /secrets/seal': object('server-key', 'Server'),
  'POST /secrets/seal': object('server-key', 'Server'),
  'POST /agents/:id/rotate-recipient': object('server-key', 'Server'),
  'GET /audit': some('audit:read', 'Audit'),
  'GET /audit/state': object('audit:read', 'Audit'),
  'GET /audit/entries': object('audit:read', 'Audit'),
  'GET /restore': object('restore', 'Server'),
  'POST /restore/confirm': object('restore', 'Server'),
}

export const DECLARED_ROUTES: readonly string[] = Object.keys(RIGHT_OF_ROUTE)

/** `route`: the pattern of a route below /api/v1, such as `/clusters/:name`. A HEAD is answered as a GET is. Null: it
 *  declares no right. */
export const rightOf = (method: string, route: string): RouteRight | null =>
  RIGHT_OF_ROUTE[`${method === 'HEAD' ? 'GET' : method} ${route}`] ?? null

/** The question that a route of one object asks. */
export const askOf = ({ verb, kind }: { verb: AccessVerb; kind: AccessKind }, params: Readonly<Record<string, string>>): Ask => ({
  verb,
  kind,
  ...(params['project'] === undefined ? {} : { project: params['project'] }),
  ...nameOf(kind === 'Project' ? params['project'] : params['name']),
})

const nameOf = (name: string | undefined) => (name === undefined ? {} : { name })
