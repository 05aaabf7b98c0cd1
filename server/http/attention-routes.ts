// Things that need a person, in one list: the dashboard and scripts ask here instead of looking through every list.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { ATTENTION_KINDS, type Attention, type AttentionKind, attentionViewSchema } from '../../shared/model/attention.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import type { StoredError } from '../fleet/records.ts'
import { isLimited, projectInScope, type Scope } from '../fleet/rights.ts'
import type { WaitingService } from '../store/queries/fleet-queries.ts'
import type { Store } from '../store/store.ts'
import type { AdminDeps } from './deps.ts'
import { readToken, writeToken } from './fleet-query.ts'
import { continueQuery, limitQuery } from './query.ts'
import { confirmationView } from './resource-handlers.ts'
import { seenConfirmations } from './sight.ts'

const attentionQuery = z.object({ limit: limitQuery, continue: continueQuery })
/** Confirmations that one answer counts. */
const CONFIRMATIONS_MAX = 10_000

export function attentionRoutes({
  store,
  restore,
  authorizer,
  principal,
}: Pick<AdminDeps, 'store' | 'restore' | 'authorizer' | 'principal'>) {
  return new Elysia({ tags: ['fleet'] }).get(
    '/attention',
    async ({ query: { limit, continue: token }, request }) => {
      const caller = principal(request)
      const services = authorizer.scope(caller, 'read', 'Service')
      const repositories = authorizer.scope(caller, 'read', 'Repository')
      const sinceMs = authorizer.allows(caller, { verb: 'restore', kind: 'Server' }) ? await restore.pendingSinceMs() : null
      const waiting = await store.queries.answer({ kind: 'attention', query: { scope: services } }, request.signal)
      const all: Attention[] = [
        ...(sinceMs === null ? [] : [{ kind: 'restore' as const, id: 'restore', sinceMs }]),
        ...(await confirmations(store, services)),
        ...(await failedRenders(store, services)),
        ...(await unreadable(store, repositories)),
        ...waiting.items.map(ofWaiting).sort((a, b) => rankOf(a) - rankOf(b) || (a.sinceMs ?? 0) - (b.sinceMs ?? 0)),
      ]
      const from = Number(readToken(MARK, 'health', token)?.[0] ?? 0)
      const items = all.slice(from, from + limit)
      const next = from + items.length < all.length ? from + items.length : null
      const counts = Object.fromEntries(ATTENTION_KINDS.map((kind) => [kind, all.filter((one) => one.kind === kind).length]))
      return {
        items,
        counts: counts as Record<AttentionKind, number>,
        total: all.length,
        continue: writeToken(MARK, next === null ? null : [next]),
      }
    },
    {
      query: attentionQuery,
      response: attentionViewSchema,
      detail: { summary: 'What needs a person: confirmations, failed renders, repositories, contested drift, pending syncs' },
    },
  )
}

/** The list is short, and changes as a whole: a page continues at a number. */
const MARK = { attention: true }
const rankOf = ({ kind }: Attention): number => ATTENTION_KINDS.indexOf(kind)

async function confirmations(store: Store, scope: Scope): Promise<Attention[]> {
  const open = await seenConfirmations(store, scope, { limit: CONFIRMATIONS_MAX, after: undefined })
  return open.map((one) => ({ kind: 'confirmation', id: one.id, sinceMs: one.createdMs, confirmation: confirmationView(one) }))
}

/** A caller who may read a service in some clusters only sees the failure in its rows: the error may name others
 *  (AZ11). */
async function failedRenders(store: Store, scope: Scope): Promise<Attention[]> {
  const failed = (await store.renderErrors()).filter(({ id }) => !isLimited(scope, id))
  return failed.map(({ id, error }) => ofRender(id, error)).sort((a, b) => (a.sinceMs ?? 0) - (b.sinceMs ?? 0))
}

const ofRender = ({ project, service }: ServiceId, { message, problems, sinceMs }: StoredError): Attention => ({
  ...{ kind: 'render', id: `render ${project}/${service}` },
  ...{ project, service, message, problems: problems.slice(0, 1), sinceMs },
})

async function unreadable(store: Store, scope: Scope): Promise<Attention[]> {
  const failed = (await store.repositoryErrors()).filter(({ project }) => projectInScope(scope, project))
  return failed.map(({ project, name, error }) => ({
    ...{ kind: 'repository', id: `repository ${project}/${name}` },
    ...{ project, repository: name, message: error.message, sinceMs: error.sinceMs },
  }))
}

function ofWaiting({ kind, project, service, objects, clusters, sinceMs }: WaitingService): Attention {
  const of = { id: `${kind} ${project}/${service}`, project, service, clusters, sinceMs }
  return kind === 'contested' ? { ...of, kind, objects } : { ...of, kind }
}
