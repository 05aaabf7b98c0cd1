// Suspensions: list them, order them, lift them.
import { Elysia } from 'elysia'
import {
  resumeRequestSchema,
  type SuspendedScope,
  suspendAnswerSchema,
  suspendRequestSchema,
  suspensionViewSchema,
} from '../../shared/model/suspension.ts'
import { listOf } from '../../shared/model/views.ts'
import type { Principal } from '../access/principal.ts'
import { resume, type SuspensionRights, suspend } from '../actions/suspension-actions.ts'
import type { Ask } from '../fleet/rights.ts'
import { suspensionView } from '../fleet/suspensions.ts'
import { listSuspensions } from '../ingest/suspension-rows.ts'
import { noteReason } from '../store/audit/caller.ts'
import { forbidden, hidden, requireSeen } from './auth.ts'
import { fails } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { selectorOf } from './query.ts'
import { knownPlace, seenSuspensions } from './sight.ts'

export function suspensionRoutes(deps: Pick<AdminDeps, 'store' | 'clock' | 'actions' | 'principal' | 'authorizer'>) {
  const { store, actions, principal, authorizer } = deps
  const sightOf = (request: Request) => ({
    services: authorizer.scope(principal(request), 'read', 'Service'),
    clusters: authorizer.scope(principal(request), 'read', 'Cluster'),
  })
  const rightsOf = (request: Request): SuspensionRights => ({
    scope: authorizer.scope(principal(request), 'suspend', 'Service'),
    require: (scope) => requireSuspension(deps, principal(request), scope),
    knows: async ({ service, cluster }) =>
      service === null || cluster === null || (await knownPlace(deps, principal(request), service, cluster)) !== null,
    seen: (all) => seenSuspensions(all, sightOf(request), store),
  })
  return new Elysia({ tags: ['suspensions'] })
    .get(
      '/suspensions',
      async ({ request }) => {
        const items = await seenSuspensions(await listSuspensions(store), sightOf(request), store)
        return { items: items.map(suspensionView), continue: null }
      },
      {
        response: listOf(suspensionViewSchema),
        detail: { summary: 'List suspensions, widest scope first' },
      },
    )
    .post(
      '/suspend',
      async ({ body, request }) => {
        const { labelSelector, reason, ...asked } = body
        noteReason(reason)
        const answer = await suspend(
          { ...deps, rights: rightsOf(request) },
          { ...asked, selector: selectorOf(labelSelector) },
          reason,
          principal(request).name,
        )
        if (!answer.dryRun) await actions.suspensionsChanged()
        return answer
      },
      {
        body: suspendRequestSchema,
        response: suspendAnswerSchema,
        detail: { summary: 'Suspend services until they are resumed', ...fails(404) },
      },
    )
    .post(
      '/resume',
      async ({ body, request }) => {
        const { labelSelector, reason, ...asked } = body
        noteReason(reason)
        const answer = await resume(
          { ...deps, rights: rightsOf(request) },
          { ...asked, selector: selectorOf(labelSelector) },
          reason,
          principal(request).name,
        )
        if (!answer.dryRun) await actions.suspensionsChanged()
        return answer
      },
      {
        body: resumeRequestSchema,
        response: suspendAnswerSchema,
        detail: { summary: 'Lift suspensions', ...fails(404) },
      },
    )
}

/** AZ4: the right on the service, on the cluster, or on all services of the fleet. */
async function requireSuspension(
  { store, authorizer }: Pick<AdminDeps, 'store' | 'authorizer'>,
  by: Principal,
  { service, cluster }: SuspendedScope,
): Promise<void> {
  const [found] = cluster === null ? [] : await store.findClusters({ names: [cluster] })
  const at = cluster === null ? {} : { cluster: found ?? { name: cluster, labels: {} } }
  const of = service === null ? {} : { project: service.project, name: service.service }
  const ask: Ask =
    service === null && cluster !== null
      ? { verb: 'suspend', kind: 'Cluster', name: cluster, ...at }
      : { verb: 'suspend', kind: 'Service', ...of, ...at }
  if (authorizer.allows(by, ask)) return requireSeen({ store, authorizer }, by, ask)
  if (ask.name !== undefined && !authorizer.allows(by, { ...ask, verb: 'read' })) throw hidden(ask)
  throw forbidden(by, ask)
}
