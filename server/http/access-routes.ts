// Join tokens, who am I, and what this server is.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { durationMs, joinTokenSpecSchema } from '../../shared/model/resources.ts'
import {
  createdJoinTokenSchema,
  exchangedTokenSchema,
  type JoinTokenView,
  joinTokenViewSchema,
  listOf,
  versionAnswerSchema,
  whoamiAnswerSchema,
} from '../../shared/model/views.ts'
import { joinTokenText } from '../../shared/protocol/join.ts'
import { newId, newSecret } from '../access/api-tokens.ts'
import { fleetEvent } from '../fleet/fleet-event.ts'
import type { JoinTokenRecord } from '../fleet/records.ts'
import type { AdminDeps } from './deps.ts'
import { invalidInput, notFound } from './problem.ts'
import { jsonSchema } from './resource-routes.ts'

export function accessRoutes(deps: AdminDeps) {
  const { store, clock } = deps
  return new Elysia({ tags: ['access'] })
    .get(
      '/join-tokens',
      async () => ({ items: (await store.listJoinTokens()).map((record) => joinTokenView(record, clock.nowMs())), continue: null }),
      { response: listOf(joinTokenViewSchema), detail: { summary: 'List join tokens' } },
    )
    .post(
      '/join-tokens',
      async ({ body, request, set }) => {
        const input = body ?? {}
        const parsed = joinTokenSpecSchema.safeParse(input)
        if (!parsed.success) throw invalidInput(joinTokenSpecSchema, input, parsed.error, 'create a join token')
        const { expires, uses, labels } = parsed.data
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
          createdBy: deps.principal(request).name,
        }
        await store.createJoinToken(record)
        set.status = 201
        set.headers['cache-control'] = 'no-store'
        return { ...joinTokenView(record, nowMs), token: joinTokenText(secret, deps.serverKeys.fingerprint) }
      },
      {
        response: { 201: createdJoinTokenSchema },
        detail: {
          summary: 'Create a join token; this answer is the only one that shows it',
          requestBody: { content: { 'application/json': { schema: jsonSchema(joinTokenSpecSchema) } } },
        },
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
      '/whoami',
      ({ request }) => {
        const { id, name } = deps.principal(request)
        return { id, name }
      },
      { response: whoamiAnswerSchema, detail: { summary: 'Whose token this is' } },
    )
    .post(
      '/token/exchange',
      async ({ request, set }) => {
        const principal = deps.principal(request)
        const token = await deps.tokens.exchange(principal)
        const message = `a new API token for ${principal.name}; the earlier one ends when it is first used`
        await store.appendEvents([fleetEvent(clock.nowMs(), 'Normal', 'ApiTokenExchanged', message, {})])
        set.headers['cache-control'] = 'no-store'
        return { token }
      },
      {
        response: exchangedTokenSchema,
        detail: { summary: 'Exchange the API token of this request for a new one; the earlier one ends when the new one is first used' },
      },
    )
    .get('/version', () => deps.version(), {
      response: versionAnswerSchema,
      detail: { summary: 'Version of the server and of what is in it' },
    })
}

function joinTokenView({ tokenHash: _, ...record }: JoinTokenRecord, nowMs: number): JoinTokenView {
  const state = nowMs >= record.expiresMs ? 'expired' : record.usesLeft === 0 ? 'used up' : 'usable'
  return { ...record, state }
}
