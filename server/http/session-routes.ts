// Sessions of people and pipelines: a caller reads and ends its own; a caller who may read or revoke tokens, all of
// them.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { type SessionView, sessionViewSchema } from '../../shared/model/sign-in.ts'
import { listOf } from '../../shared/model/views.ts'
import type { UserSessions } from '../access/oidc/user-sessions.ts'
import type { Principal } from '../access/principal.ts'
import type { SessionRecord } from '../fleet/records.ts'
import { noteDenial } from '../store/audit/caller.ts'
import type { AdminDeps } from './deps.ts'
import { notFound } from './problem.ts'
import { byAge, pageOf, pageQuery } from './query.ts'

/** `sessions`: null on a server without identity providers. */
export function sessionRoutes({ principal, authorizer, clock }: AdminDeps, sessions: UserSessions | null) {
  const seen = async (caller: Principal, verb: 'token:read' | 'token:revoke') => {
    const nowMs = clock.nowMs()
    const isAllowed = authorizer.allows(caller, { verb, kind: 'ApiToken' })
    const isOwn = ({ provider, subject }: SessionRecord) => provider === caller.provider && subject === caller.subject
    return ((await sessions?.list()) ?? []).filter((session) => session.expiresMs > nowMs && (isAllowed || isOwn(session)))
  }
  return new Elysia({ tags: ['access'] })
    .get(
      '/sessions',
      async ({ query, request }) => {
        const { items, ...page } = pageOf(await seen(principal(request), 'token:read'), query, byAge)
        return { items: items.map(sessionView), ...page }
      },
      {
        query: pageQuery,
        response: listOf(sessionViewSchema),
        detail: { summary: 'List your sessions, oldest first; with the right to read API tokens, all sessions' },
      },
    )
    .delete(
      '/sessions/:id',
      async ({ params: { id }, request, set }) => {
        const caller = principal(request)
        const held = (await seen(caller, 'token:revoke')).find((session) => session.id === id)
        if (held === undefined && !authorizer.allows(caller, { verb: 'token:revoke', kind: 'ApiToken' }))
          noteDenial({ verb: 'revoke', kind: 'Session', name: id }) // another person's, or none: the answer does not tell
        if (held === undefined || sessions === null || !(await sessions.revoke(id, caller.name)))
          throw notFound(`session ${id}`, 'skerry session list')
        set.status = 204
      },
      {
        params: z.object({ id: z.string().max(64) }),
        detail: { summary: 'Revoke a session; its requests are refused at once', responses: { '204': { description: 'Revoked' } } },
      },
    )
}

function sessionView(session: SessionRecord): SessionView {
  const { id, kind, name, provider, email, groups, createdMs, expiresMs, checkedMs, lastUsedMs, lastUsedFrom } = session
  return { id, kind, name, provider, email, groups: [...groups], createdMs, expiresMs, checkedMs, lastUsedMs, lastUsedFrom }
}
