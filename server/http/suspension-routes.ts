// Suspensions: list them, order them, lift them.
import { Elysia } from 'elysia'
import { resumeRequestSchema, suspendAnswerSchema, suspendRequestSchema, suspensionViewSchema } from '../../shared/model/suspension.ts'
import { listOf } from '../../shared/model/views.ts'
import { resume, suspend } from '../actions/suspension-actions.ts'
import { suspensionView } from '../fleet/suspensions.ts'
import { listSuspensions } from '../ingest/suspension-rows.ts'
import { noteReason } from '../store/audit/caller.ts'
import { fails } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { selectorOf } from './query.ts'

export function suspensionRoutes(deps: Pick<AdminDeps, 'store' | 'clock' | 'actions' | 'principal'>) {
  const { store, actions, principal } = deps
  return new Elysia({ tags: ['suspensions'] })
    .get('/suspensions', async () => ({ items: (await listSuspensions(store)).map(suspensionView), continue: null }), {
      response: listOf(suspensionViewSchema),
      detail: { summary: 'List suspensions, the widest first' },
    })
    .post(
      '/suspend',
      async ({ body, request }) => {
        const { labelSelector, reason, ...asked } = body
        noteReason(reason)
        const answer = await suspend(deps, { ...asked, selector: selectorOf(labelSelector) }, reason, principal(request).name)
        if (!answer.dryRun) await actions.suspensionsChanged()
        return answer
      },
      {
        body: suspendRequestSchema,
        response: suspendAnswerSchema,
        detail: { summary: 'Leave services as they are until they are resumed', ...fails(404) },
      },
    )
    .post(
      '/resume',
      async ({ body, request }) => {
        const { labelSelector, reason, ...asked } = body
        noteReason(reason)
        const answer = await resume(deps, { ...asked, selector: selectorOf(labelSelector) }, reason, principal(request).name)
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
