// A server that was restored from a backup: its pending changes, and their confirmation (RP2).
import { Elysia } from 'elysia'
import { restoreConfirmedSchema, restoreConfirmSchema, restorePlanViewSchema } from '../../shared/model/views.ts'
import { fails } from './declared.ts'
import type { AdminDeps } from './deps.ts'

export function restoreRoutes({ restore, principal }: Pick<AdminDeps, 'restore' | 'principal'>) {
  return new Elysia({ tags: ['fleet'] })
    .get('/restore', () => restore.plan(), {
      response: restorePlanViewSchema,
      detail: { summary: 'State of a restore, and the changes in each cluster after its confirmation' },
    })
    .post(
      '/restore/confirm',
      async ({ body, request }) => {
        return restore.confirm(body.token, principal(request).name)
      },
      {
        body: restoreConfirmSchema,
        response: restoreConfirmedSchema,
        detail: {
          summary: 'Confirm the restore plan with this token, and serve agents again; deletes nothing',
          ...fails(409),
        },
      },
    )
}
