// The server's answers to all but agents (`server/http/agent-routes.ts`): webhooks by their own handler, before
// anything parses a body; the admin API by Elysia. One function from a request to an answer, so that tests and
// simulations need no socket.
import { openapi } from '@elysiajs/openapi'
import { Elysia } from 'elysia'
import { createProfiler } from '../shared/adapters/profiler.ts'
import { DIFF_BODY_BYTES_MAX } from '../shared/model/diff-views.ts'
import { SIGN_IN } from '../shared/model/sign-in.ts'
import { ADMIN_BODY_BYTES_MAX } from '../shared/model/views.ts'
import type { Clock } from '../shared/runtime/clock.ts'
import { AppError } from '../shared/runtime/error.ts'
import type { Logger } from '../shared/runtime/logger.ts'
import type { ApiTokens } from './access/api-tokens.ts'
import type { AuditTrail } from './access/audit-trail.ts'
import { type Authorizer, createAuthorizer } from './access/authorizer.ts'
import { type Callers, cookieOf, createCallers, sessionCookie } from './access/callers.ts'
import type { SignIn } from './access/oidc/sign-in.ts'
import { DECLARED_ROUTES, rightOf } from './access/permissions.ts'
import { createSignInLinks, type SignInLinks } from './access/sign-in-links.ts'
import type { FleetActions } from './actions/port.ts'
import { DASHBOARD, dashboardAnswer } from './dashboard/dashboard.ts'
import { accessRoutes } from './http/access-routes.ts'
import { agentCredentialRoutes } from './http/agent-credential-routes.ts'
import { createSecureHeaders } from './http/answer-headers.ts'
import { apiDocs } from './http/api-docs/serve.ts'
import { applyRoute } from './http/apply-route.ts'
import { askRoutes } from './http/ask-routes.ts'
import { attentionRoutes } from './http/attention-routes.ts'
import { auditRoutes } from './http/audit-routes.ts'
import { ADMIN_API, createAuth } from './http/auth.ts'
import { authRoutes } from './http/auth-routes.ts'
import { createBodyShares, withLimitedBody, withoutBody } from './http/body.ts'
import { networkOf } from './http/caller-address.ts'
import { changeRoutes } from './http/change-routes.ts'
import { chartRoutes } from './http/chart-routes.ts'
import { countRoutes } from './http/count-routes.ts'
import { jsonSchema } from './http/declared.ts'
import { dependencyRoutes } from './http/dependency-routes.ts'
import type { AdminDeps } from './http/deps.ts'
import { diffRoutes } from './http/diff-routes.ts'
import { fleetQueryRoutes } from './http/fleet-query-routes.ts'
import { fleetRoutes } from './http/fleet-routes.ts'
import { type BehindOf, createFleetViews, type ReadTimesOf } from './http/fleet-views.ts'
import { withoutHiddenServices } from './http/hidden-services.ts'
import { historyRoutes } from './http/history-routes.ts'
import { createIdempotency } from './http/idempotency.ts'
import { type MetricsSource, metricsRoutes } from './http/metrics-routes.ts'
import { notifyRoutes } from './http/notify-routes.ts'
import { completeOpenApi } from './http/openapi.ts'
import { isRefusal, problemResponse } from './http/problem.ts'
import { profileRoutes } from './http/profile-routes.ts'
import { createRateLimits, REQUESTS_PER_SECOND, setRateHeaders } from './http/rate-limits.ts'
import { removalRoutes } from './http/removal-routes.ts'
import { renderRoutes } from './http/render-routes.ts'
import { repositoryRoutes } from './http/repository-routes.ts'
import { reasonOf, requestIdOf, withRequestId } from './http/request-facts.ts'
import { resourceRoutes } from './http/resource-routes.ts'
import { restoreRoutes } from './http/restore-routes.ts'
import { createRouteMethods } from './http/route-methods.ts'
import { savedQueryRoutes } from './http/saved-query-routes.ts'
import { createSecretProbes } from './http/secret-probes.ts'
import { serverKeyRoutes } from './http/server-key-routes.ts'
import { sessionRoutes } from './http/session-routes.ts'
import { createSharedAnswers } from './http/shared-answers.ts'
import { createLinkExchange, signInLinkRoutes } from './http/sign-in-link-routes.ts'
import { createSignInRoutes } from './http/sign-in-routes.ts'
import { sqlRoutes } from './http/sql-routes.ts'
import { createStrangerBodies, SIGN_IN_BODIES } from './http/stranger-bodies.ts'
import { suspensionRoutes } from './http/suspension-routes.ts'
import { syncRoutes } from './http/sync-routes.ts'
import { WEBHOOKS } from './http/webhook.ts'
import { whyRoutes } from './http/why-routes.ts'
import { actForRequest, type Caller, sharerNow } from './store/audit/caller.ts'
import type { Store } from './store/store.ts'

const OPENAPI_DOCUMENT = `${ADMIN_API}/openapi.json`

/** AR2: bytes of bodies that people send and that still come in. */
const PEOPLE_BYTES_MAX = 64 * 1_024 * 1_024
/** AR2: the share of one caller: the largest body, and one that is not a comparison. */
const PERSON_BYTES_MAX = DIFF_BODY_BYTES_MAX + ADMIN_BODY_BYTES_MAX

const DIFF_PATH = new RegExp(`^${ADMIN_API}/projects/[^/]+/services/[^/]+/diff$`)
const bodyMax = (path: string): number => (DIFF_PATH.test(path) ? DIFF_BODY_BYTES_MAX : ADMIN_BODY_BYTES_MAX)

/** HT5: without a valid credential, of each address. */
const STRANGERS_PER_SECOND = 20

/** Null if there is no such route. */
type Handler = (request: Request) => Promise<Response | null>

export interface AppDeps
  extends Pick<
    AdminDeps,
    | 'serverKeys'
    | 'secrets'
    | 'rotation'
    | 'seals'
    | 'renders'
    | 'notifier'
    | 'previews'
    | 'isConfined'
    | 'checkPatches'
    | 'removals'
    | 'owners'
    | 'restore'
    | 'onQuestion'
    | 'webhook'
    | 'newWebhookSecret'
    | 'version'
    | 'stopping'
    | 'asks'
  > {
  store: Store
  /** Entries of the audit log beside those that the store writes with its changes. */
  trail: AuditTrail
  tokens: ApiTokens
  /** Absent means that people and pipelines cannot sign in. */
  signIn?: SignIn
  /** URL under which browsers know this server; default http://localhost. */
  url?(): string
  actions: FleetActions
  /** Default: one of its own. */
  authorizer?: Authorizer
  readTimesOf: ReadTimesOf
  /** Absent means that no shard file is ever behind. */
  behindOf?: BehindOf
  clock: Clock
  logger: Logger
  /** Address of the caller of a request that is being answered; null if it is not known. */
  addressOf?(request: Request): string | null
  /** False while starting or stopping: /readyz says so. */
  ready(): boolean
  /** Clients reach this server over TLS; default false. */
  https?: boolean
  /** Rate limit of each credential; 0: no limit; default REQUESTS_PER_SECOND. */
  requestsPerSecond?: number
  /** Loops of the server that failed lately, by name. Absent means none. /readyz names them. */
  failingLoops?(): readonly string[]
  /** Names work that does not end, for /readyz. Absent means none. */
  stuck?(): readonly string[]
  metrics: MetricsSource
  /** Gets everything below /webhooks/v1/ untouched. */
  webhookHandler?: Handler
}

export interface App {
  fetch(request: Request): Promise<Response>
  /** The routes of the admin API and the probes, for tests that walk them. */
  routes: { method: string; path: string }[]
}

export function createApp(deps: AppDeps): App {
  const { webhookHandler, logger, clock, signIn, addressOf = () => null, url = () => 'http://localhost' } = deps
  const callers = createCallers({ tokens: deps.tokens, sessions: signIn?.sessions ?? null, url })
  const strangerBodies = createStrangerBodies(SIGN_IN_BODIES)
  const signInRoutes = signIn && createSignInRoutes({ signIn, callers, url, addressOf, bodies: strangerBodies, clock, log: logger })
  const authorizer = deps.authorizer ?? createAuthorizer(deps.store)
  const links = createSignInLinks(deps.tokens, clock)
  const exchangeLink = createLinkExchange({ links, store: deps.store, clock, addressOf, bodies: strangerBodies })
  const elysia = createElysia(deps, { callers, authorizer, links })
  refuseUndeclared(elysia.routes)
  const methods = createRouteMethods(elysia.routes)
  const secure = createSecureHeaders(deps.https ?? false)
  const { requestsPerSecond = REQUESTS_PER_SECOND } = deps
  const limits = createRateLimits(requestsPerSecond)
  const strangers = createRateLimits(requestsPerSecond === 0 ? 0 : STRANGERS_PER_SECOND)
  const idempotency = createIdempotency(deps.store, deps.clock)
  const shared = createSharedAnswers(deps.store.writeVersion, deps.clock)
  const bodies = createBodyShares(PEOPLE_BYTES_MAX, PERSON_BYTES_MAX)

  async function route(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url)
    const own = pathname.startsWith(`${WEBHOOKS}/`) ? webhookHandler : undefined
    if (own !== undefined) return (await own(request)) ?? problemResponse(new AppError('not_found', { detail: 'no such route' }))
    if (pathname === `${SIGN_IN}/link` && request.method === 'POST') return exchangeLink(request)
    const signedIn = await signInRoutes?.(request)
    if (signedIn) return signedIn
    const page = apiDocs(request.method, pathname)
    if (page !== null) return page
    if (pathname === `${SIGN_IN}/providers`) return Response.json({ items: [] }) // nobody can sign in but with a token
    const shown = await dashboardAnswer(request, () => signIn !== undefined && cookieOf(request, sessionCookie(url())) !== null)
    if (shown !== null) return shown
    // AR4: the probes take no body, and a stranger's is not worth the memory.
    if (!pathname.startsWith('/api/')) return elysia.handle(withoutBody(request))
    const address = addressOf(request)
    const caller = await callers.authenticate(request, address)
    const rate = caller === null ? strangers.take(networkOf(address ?? ''), deps.clock.nowMs()) : limits.take(caller.id, deps.clock.nowMs())
    const answer = await settled(async () => {
      if (rate?.allowed === false) {
        await request.body?.cancel()
        throw new AppError('too_many_requests', { detail: `at most ${rate.limit} requests at once`, retryAfterMs: rate.retryAfterMs })
      }
      if (caller === null) throw new AppError('unauthorized')
      methods.check(request.method, pathname)
      const { request: whole, body } = await withLimitedBody(request, bodyMax(pathname), { budget: bodies(sharerNow()) })
      const perform = () => (pathname === OPENAPI_DOCUMENT ? document(whole) : elysia.handle(whole))
      await authorizer.loaded()
      const read = () => shared.run(whole, pathname.slice(ADMIN_API.length), () => authorizer.grantsOf(caller), perform)
      return idempotency.run(caller.id, whole, body, read)
    })
    if (rate !== null) setRateHeaders(answer.headers, rate)
    return answer
  }

  let described: Promise<string> | undefined
  /** It is large and never changes. The route still runs for each request, because it checks the right to read it. */
  const document = async (request: Request): Promise<Response> => {
    const made = await elysia.handle(request)
    if (!made.ok) return made
    described ??= made.json().then((found) => JSON.stringify(completeOpenApi(found)))
    return new Response(await described, { headers: { 'content-type': 'application/json' } })
  }

  /** A problem is an answer, too. */
  const settled = async (make: () => Promise<Response>): Promise<Response> => {
    try {
      return await make()
    } catch (error) {
      if (error instanceof AppError) return problemResponse(error)
      throw error
    }
  }

  async function answer(request: Request, caller: Caller): Promise<Response> {
    try {
      caller.reason = reasonOf(request)
      return await route(request)
    } catch (error) {
      if (error instanceof AppError) return problemResponse(error)
      logger.error('request failed', { method: request.method, path: new URL(request.url).pathname, error: String(error) })
      return problemResponse(new AppError('internal'))
    }
  }

  return {
    routes: elysia.routes.map(({ method, path }) => ({ method, path })),
    fetch: (request) => {
      const requestId = requestIdOf(request)
      return actForRequest({ requestId, from: deps.addressOf?.(request) ?? null }, async (caller) => {
        const answered = await answer(request, caller)
        const { status } = answered
        const { pathname } = new URL(request.url)
        const isApi = pathname.startsWith('/api/')
        // AU2: an object that the caller may not read is refused as one that does not exist, so the status says
        // nothing.
        const unnamed = isRefusal(status) && caller.denials.length === 0
        await deps.trail.denied(unnamed ? [{ verb: request.method, kind: 'Route', name: pathname }] : caller.denials)
        return secure.complete(withRequestId(answered, requestId), isApi)
      })
    },
  }
}

function createElysia(deps: AppDeps, { callers, authorizer, links }: { callers: Callers; authorizer: Authorizer; links: SignInLinks }) {
  const auth = createAuth({ callers, authorizer, store: deps.store, logger: deps.logger })
  const views = createFleetViews(deps.store, deps.clock, deps.restore, deps.readTimesOf, deps.behindOf)
  const probes = createSecretProbes(deps)
  const admin: AdminDeps = { ...deps, views, authorizer, callers, probes, principal: auth.principal }
  /** A store that cannot be read makes nobody known, and no probe fail. */
  const mayReadServer = async (request: Request): Promise<boolean> => {
    const caller = await callers.authenticate(request).catch(() => null)
    if (caller === null) return false
    return authorizer.loaded().then(
      () => authorizer.allows(caller, { verb: 'read', kind: 'Server' }),
      () => false,
    )
  }
  const api = new Elysia({ prefix: ADMIN_API })
    // The second lock: a route that the first plugin's path check did not cover has no principal.
    .derive(async ({ request, route, params }) => {
      await auth.authorize(request, route, params ?? {}) // a static route has none
      return { principal: auth.principal(request) }
    })
    .onAfterHandle(({ request, route, response }) =>
      withoutHiddenServices(response, route, () => authorizer.scope(auth.principal(request), 'read', 'Service')),
    )
    .use(resourceRoutes(admin))
    .use(applyRoute(admin))
    .use(fleetRoutes(admin))
    .use(askRoutes(admin))
    .use(removalRoutes(admin))
    .use(syncRoutes(admin))
    .use(suspensionRoutes(admin))
    .use(notifyRoutes(admin))
    .use(dependencyRoutes(admin))
    .use(renderRoutes(admin))
    .use(diffRoutes(admin))
    .use(fleetQueryRoutes(admin))
    .use(countRoutes(admin))
    .use(chartRoutes(admin))
    .use(attentionRoutes(admin))
    .use(repositoryRoutes(admin))
    .use(historyRoutes(admin))
    .use(sqlRoutes(admin))
    .use(savedQueryRoutes(admin))
    .use(whyRoutes(admin))
    .use(changeRoutes(admin))
    .use(accessRoutes(admin))
    .use(signInLinkRoutes(admin, links, () => `${deps.url?.() ?? 'http://localhost'}${DASHBOARD}`))
    .use(sessionRoutes(admin, deps.signIn?.sessions ?? null))
    .use(agentCredentialRoutes(admin))
    .use(authRoutes(admin))
    .use(serverKeyRoutes(admin))
    .use(auditRoutes(admin))
    .use(restoreRoutes(admin))
    .use(metricsRoutes(deps.metrics))
    .use(profileRoutes(createProfiler(deps.clock)))
  return new Elysia({ aot: true })
    .use(auth.plugin)
    .get('/healthz', () => 'ok', { detail: { hide: true } })
    .get(
      '/readyz',
      async ({ request }) => {
        if (!deps.ready()) throw new AppError('unavailable', { detail: 'starting or stopping' })
        const problems = [...(deps.stuck?.() ?? []), ...(deps.signIn?.problems() ?? [])]
        return readiness(deps.failingLoops?.() ?? [], (await mayReadServer(request)) ? problems : problems.length)
      },
      { detail: { hide: true } },
    )
    .use(
      openapi({
        provider: null, // its documentation page loads scripts from elsewhere
        path: `${ADMIN_API}/openapi`,
        specPath: OPENAPI_DOCUMENT,
        mapJsonSchema: { zod: jsonSchema },
        documentation: {
          info: {
            title: 'Skerry',
            version: deps.version().version,
            description: 'Desired and reported state of a fleet of Kubernetes clusters.',
          },
          components: { securitySchemes: { token: { type: 'http', scheme: 'bearer' } } },
          security: [{ token: [] }],
        },
      }),
    )
    .use(api)
}

/** AZ1: a route without a right does not start, and a right without a route is a misspelt one. */
export function refuseUndeclared(routes: ReadonlyArray<{ method: string; path: string }>): void {
  const served = routes.filter(({ path }) => path.startsWith(`${ADMIN_API}/`) && !path.startsWith(`${ADMIN_API}/openapi`))
  const names = new Set(served.map(({ method, path }) => `${method} ${path.slice(ADMIN_API.length)}`))
  const undeclared = served.filter(({ method, path }) => rightOf(method, path.slice(ADMIN_API.length)) === null)
  const missing = [...undeclared.map(({ method, path }) => `${method} ${path}`), ...DECLARED_ROUTES.filter((name) => !names.has(name))]
  if (missing.length > 0) throw new Error(`server/access/permissions.ts does not match the routes: ${missing.join(', ')}`)
}

/** A server with a failing loop is still ready: without it agents would get nothing at all. `problems`: for a stranger
 *  their number only (AP30). */
function readiness(failingLoops: readonly string[], problems: readonly string[] | number): string {
  const loops = failingLoops.map((name) => `loop ${name} failed and is being restarted`)
  if (typeof problems !== 'number') return ['ok', ...loops, ...problems].join('\n')
  const count = `${problems} ${problems === 1 ? 'problem' : 'problems'}; a token that may read the server shows what`
  return ['ok', ...loops, ...(problems === 0 ? [] : [count])].join('\n')
}
