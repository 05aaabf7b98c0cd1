// Routes that show which objects a removal deletes: before it is ordered, and while it waits for a confirmation.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { type DeleteServicesAnswer, deleteServicesAnswerSchema, deleteServicesSchema } from '../../shared/model/delete-services.ts'
import { removalsViewSchema } from '../../shared/model/removal-views.ts'
import { nameSchema, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import type { Principal } from '../access/principal.ts'
import { confirmedData, type PlannedRemoval } from '../actions/removal-plans.ts'
import type { ConfirmedData } from '../fleet/removal-effect.ts'
import type { Ask } from '../fleet/rights.ts'
import { forbidden, hidden } from './auth.ts'
import { fails } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { confirmationGone, confirmationId } from './fleet-routes.ts'
import { deleteAnswer } from './resource-handlers.ts'
import { clustersWithService, confirmationInScope } from './sight.ts'
import { keyNotFound } from './write-resource.ts'
import { mayNameService } from './write-rights.ts'

const inProject = z.object({ project: nameSchema, name: nameSchema })
/** Each deletion gets its own names. */
const ofService = (confirmed: ConfirmedData, id: ServiceId): ConfirmedData =>
  new Map([...confirmed].filter(([key]) => key === serviceKey(id)))
const viewsOf = (removals: readonly PlannedRemoval[]) => ({ items: removals.map(({ view }) => view) })

export function removalRoutes({ store, removals, actions, principal, authorizer }: AdminDeps) {
  const deleteServices = async (
    project: string,
    { names, dryRun, confirmData }: z.infer<typeof deleteServicesSchema>,
    caller: Principal,
  ): Promise<DeleteServicesAnswer> => {
    const ids = [...new Set(names)].map((name) => ({ project, service: name }) as ServiceId)
    for (const { service: name } of ids) {
      const ask: Ask = { verb: 'delete', kind: 'Service', project, name }
      if (authorizer.allows(caller, ask)) continue
      throw authorizer.allows(caller, { ...ask, verb: 'read' }) ? forbidden(caller, ask) : hidden(ask)
    }
    // Before anything is deleted: a name that never existed is an error of the caller.
    for (const { service: name } of ids)
      if ((await store.getResource({ kind: 'Service', project, name })) === null) throw keyNotFound({ kind: 'Service', project, name })
    const planned = dryRun || confirmData.length > 0 ? await removals.ofServices(ids, mayNameService(authorizer, caller)) : []
    if ('missing' in planned) throw keyNotFound({ kind: 'Service', project, name: planned.missing.service })
    const confirmed = confirmedData(planned, confirmData)
    const views = viewsOf(planned).items
    if (dryRun) return { dryRun, removals: views, results: [] }
    const outcomes = await Promise.all(ids.map((id) => actions.deleteService(id, caller.name, ofService(confirmed, id))))
    const results = outcomes.map((outcome, index) => ({ name: ids[index]?.service ?? '', ...deleteAnswer(outcome) }))
    return { dryRun, removals: views, results }
  }
  return new Elysia({ tags: ['fleet'] })
    .get(
      '/projects/:project/services/:name/removal',
      async ({ params: { project, name }, request }) => {
        const id = { project, service: name } as ServiceId
        const by = principal(request)
        const shown = new Set((await clustersWithService(authorizer.scope(by, 'read', 'Service'), id, store)).values())
        const planned = await removals.ofService(id, mayNameService(authorizer, by), (cluster) => shown.has(cluster))
        if (planned === null) throw keyNotFound({ kind: 'Service', project, name })
        return viewsOf(planned)
      },
      { params: inProject, response: removalsViewSchema, detail: { summary: 'Objects that a deletion of the service deletes' } },
    )
    .post(
      '/projects/:project/delete-services',
      async ({ params: { project }, body, request }) => deleteServices(project, body, principal(request)),
      {
        params: z.object({ project: nameSchema }),
        body: deleteServicesSchema,
        response: deleteServicesAnswerSchema,
        detail: { summary: 'Delete many services at once', ...fails(409) },
      },
    )
    .get(
      '/confirmations/:id/removal',
      async ({ params: { id }, request }) => {
        const asked = await store.confirmation(id)
        const by = principal(request)
        const scope = authorizer.scope(by, 'read', 'Service')
        if (asked === null || !(await confirmationInScope(scope, asked, store))) throw confirmationGone(id, asked)
        return viewsOf(await removals.ofConfirmation(asked, mayNameService(authorizer, by)))
      },
      { params: confirmationId, response: removalsViewSchema, detail: { summary: 'Objects that the confirmation of a removal deletes' } },
    )
}
