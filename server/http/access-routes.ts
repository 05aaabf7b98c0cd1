// Join tokens, API tokens, the caller, and facts about this server.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { sha256Hex } from '../../shared/kube/canonical.ts'

import { apiTokenSpecSchema, durationMs, joinTokenSpecSchema } from '../../shared/model/resources.ts'
import {
  type ApiTokenView,
  apiTokenViewSchema,
  createdApiTokenSchema,
  createdJoinTokenSchema,
  exchangedTokenSchema,
  type JoinTokenView,
  joinTokenViewSchema,
  listOf,
  versionAnswerSchema,
  whoamiAnswerSchema,
} from '../../shared/model/views.ts'
import { joinTokenText } from '../../shared/protocol/join.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { newId, newSecret } from '../access/api-tokens.ts'
import { type Principal, tokenPrincipal } from '../access/principal.ts'
import { fleetEvent } from '../fleet/fleet-event.ts'
import type { ApiTokenRecord, JoinTokenRecord } from '../fleet/records.ts'
import type { Ask } from '../fleet/rights.ts'
import { news } from '../messages/event-messages.ts'
import { sharerNow } from '../store/audit/caller.ts'
import { createAttempts } from './attempts.ts'
import { forbidden, lacking } from './auth.ts'
import { whoamiView } from './auth-routes.ts'
import type { AdminDeps } from './deps.ts'
import { notFound } from './problem.ts'
import { byAge, pageOf, pageQuery } from './query.ts'
import { isLastAdmin } from './roles.ts'
import { escalation } from './write-rights.ts'

export function accessRoutes(deps: AdminDeps) {
  const { store, clock } = deps
  const exchanges = createAttempts(clock, EXCHANGES)
  return new Elysia({ tags: ['access'] })
    .get(
      '/join-tokens',
      async ({ query }) => {
        const { items, ...page } = pageOf(await store.listJoinTokens(), query, byAge)
        return { items: items.map((record) => joinTokenView(record, clock.nowMs())), ...page }
      },
      { query: pageQuery, response: listOf(joinTokenViewSchema), detail: { summary: 'List join tokens, oldest first' } },
    )
    .post(
      '/join-tokens',
      async ({ body: { expires, uses, labels }, request, set }) => {
        // AZ5: labels decide which services a cluster gets, whether it has them when it joins or later.
        const label: Ask = { verb: 'cluster:label', kind: 'Cluster' }
        const by = deps.principal(request)
        if (Object.keys(labels).length > 0 && !deps.authorizer.allows(by, label)) throw forbidden(by, label)
        const secret = newSecret()
        const nowMs = clock.nowMs()
        const record: JoinTokenRecord = {
          id: newId('jt'),
          tokenHash: sha256Hex(secret),
          uses,
          usesLeft: uses,
          labels,
          createdMs: nowMs,
          expiresMs: nowMs + durationMs(expires),
          createdBy: by.name,
        }
        await store.createJoinToken(record)
        set.status = 201
        set.headers['cache-control'] = 'no-store'
        return { ...joinTokenView(record, nowMs), token: joinTokenText(secret, deps.serverKeys.fingerprint) }
      },
      {
        body: joinTokenSpecSchema.prefault({}),
        response: { 201: createdJoinTokenSchema },
        detail: { summary: 'Create a join token; the token is shown only once' },
      },
    )
    .delete(
      '/join-tokens/:id',
      async ({ params: { id }, set }) => {
        if (!(await store.deleteJoinToken(id))) throw notFound(`join token ${id}`, 'skerry join-token list')
        set.status = 204
      },
      {
        params: z.object({ id: z.string().max(64) }),
        detail: { summary: 'Delete a join token; clusters that joined with it stay', responses: { '204': { description: 'Deleted' } } },
      },
    )
    .get(
      '/tokens',
      async ({ query }) => {
        const { items, ...page } = pageOf(await store.listApiTokens(), query, byAge)
        return { items: items.map((record) => apiTokenView(record, clock.nowMs())), ...page }
      },
      { query: pageQuery, response: listOf(apiTokenViewSchema), detail: { summary: 'List API tokens, oldest first' } },
    )
    .post(
      '/tokens',
      async ({ body: { name, role, expires, projects = null }, request, set }) => {
        const nowMs = clock.nowMs()
        const by = deps.principal(request)
        refuseEscalation(deps, by, { name, role, projects })
        const { id, token } = await deps.tokens.create(
          { name, role, projects, expiresMs: expires === 'never' ? null : nowMs + durationMs(expires) },
          by,
        )
        await store.appendEvents([fleetEvent(nowMs, news('ApiTokenCreated', { id, name, role, by: by.name }), {})])
        const made = (await store.listApiTokens()).find((record) => record.id === id)
        if (made === undefined) throw notFound(`API token ${id}`, 'skerry token list')
        set.status = 201
        set.headers['cache-control'] = 'no-store'
        return { ...apiTokenView(made, nowMs), token }
      },
      {
        body: apiTokenSpecSchema,
        response: { 201: createdApiTokenSchema },
        detail: { summary: 'Create an API token; the token is shown only once' },
      },
    )
    .delete(
      '/tokens/:id',
      async ({ params: { id }, request, set }) => {
        const held = (await store.listApiTokens()).find((record) => record.id === id)
        if (await isLastAdmin(deps, id)) throw new AppError('in_use', { detail: `API token ${id} is the last credential of a fleet admin` })
        if (held === undefined || !(await deps.tokens.revoke(id))) throw notFound(`API token ${id}`, 'skerry token list')
        const said = news('ApiTokenRevoked', { id, name: held.name, role: held.role, by: deps.principal(request).name })
        await store.appendEvents([fleetEvent(clock.nowMs(), said, {})])
        set.status = 204
      },
      {
        params: z.object({ id: z.string().max(64) }),
        detail: { summary: 'Revoke an API token', responses: { '204': { description: 'Revoked' } } },
      },
    )
    .get(
      '/whoami',
      ({ request }) => {
        return whoamiView(deps.principal(request), deps.authorizer)
      },
      { response: whoamiAnswerSchema, detail: { summary: 'The caller, with its roles and the bindings that give them' } },
    )
    .post(
      '/token/exchange',
      async ({ request, set }) => {
        const principal = deps.principal(request)
        if (principal.kind !== 'token')
          throw new AppError('bad_request', { detail: 'only an API token can be exchanged', remedy: 'A login renews itself.' })
        const exchange = async () => {
          const token = await deps.tokens.exchange(principal)
          await store.appendEvents([fleetEvent(clock.nowMs(), news('ApiTokenExchanged', { name: principal.name }), {})])
          set.headers['cache-control'] = 'no-store'
          return { token }
        }
        return exchanges.guard(sharerNow(), exchange, 'always')
      },
      {
        response: exchangedTokenSchema,
        detail: { summary: 'Exchange the API token of this request for a new one; the earlier one ends when the new one is first used' },
      },
    )
    .get('/version', () => deps.version(), {
      response: versionAnswerSchema,
      detail: { summary: 'Version of the server and of its libraries' },
    })
}

/** AP12: each exchange is an entry of the log and an event, and a new token has its whole rate limit. */
const EXCHANGES = { burst: 10, forgivenMs: 60_000, doing: 'exchange a token', detail: 'tokens of this name were exchanged too often' }

/** AZ6: a token has its role and the rights of bindings to its name. Its creator must have all of them. */
function refuseEscalation(
  { authorizer }: AdminDeps,
  by: Principal,
  { name, role, projects }: Pick<ApiTokenRecord, 'name' | 'role' | 'projects'>,
): void {
  const wanted = authorizer.grantsOf(tokenPrincipal('', name, role, projects))
  const [problem] = wanted.flatMap((grant) => escalation(authorizer, by, [grant.rule], grant, 'role'))
  if (problem === undefined) return
  const deed = { verb: 'token:create', kind: 'ApiToken', name, detail: problem.message } as const
  throw lacking('create an API token', [{ ...problem, deed }])
}

function joinTokenView({ tokenHash: _, ...record }: JoinTokenRecord, nowMs: number): JoinTokenView {
  const state = nowMs >= record.expiresMs ? 'expired' : record.usesLeft === 0 ? 'used up' : 'usable'
  return { ...record, state }
}

function apiTokenView(record: ApiTokenRecord, nowMs: number): ApiTokenView {
  const { replaces: _, projects, ...view } = record
  return {
    ...view,
    projects: projects && [...projects],
    state: record.expiresMs !== null && nowMs >= record.expiresMs ? 'expired' : 'valid',
  }
}
