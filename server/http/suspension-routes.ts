// Suspensions: list them, order them, lift them.
import { Elysia } from 'elysia'
import type { z } from 'zod'
import { resumeRequestSchema, suspendAnswerSchema, suspendRequestSchema, suspensionViewSchema } from '../../shared/model/suspension.ts'
import { listOf } from '../../shared/model/views.ts'
import { resume, suspend } from '../actions/suspension-actions.ts'
import { suspensionView } from '../fleet/suspensions.ts'
import { listSuspensions } from '../ingest/suspension-rows.ts'
import { jsonSchema } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { invalidInput } from './problem.ts'
import { selectorOf } from './query.ts'

export function suspensionRoutes(deps: Pick<AdminDeps, 'store' | 'clock' | 'actions' | 'principal'>) {
  const { store, actions, principal } = deps
  const read = <T extends z.ZodType>(schema: T, body: unknown, doing: string): z.infer<T> => {
    const parsed = schema.safeParse(body ?? {})
    if (!parsed.success) throw invalidInput(schema, body ?? {}, parsed.error, doing)
    return parsed.data
  }
  const documented = (schema: z.ZodType) => ({ required: true, content: { 'application/json': { schema: jsonSchema(schema) } } })
  return new Elysia({ tags: ['suspensions'] })
    .get('/suspensions', async () => ({ items: (await listSuspensions(store)).map(suspensionView), continue: null }), {
      response: listOf(suspensionViewSchema),
      detail: { summary: 'List suspensions, the widest first' },
    })
    .post(
      '/suspend',
      async ({ body, request }) => {
        const { labelSelector, reason, ...asked } = read(suspendRequestSchema, body, 'suspend')
        const answer = await suspend(deps, { ...asked, selector: selectorOf(labelSelector) }, reason, principal(request).name)
        if (!answer.dryRun) await actions.suspensionsChanged()
        return answer
      },
      {
        response: suspendAnswerSchema,
        detail: { summary: 'Leave services as they are until they are resumed', requestBody: documented(suspendRequestSchema) },
      },
    )
    .post(
      '/resume',
      async ({ body, request }) => {
        const { labelSelector, reason, ...asked } = read(resumeRequestSchema, body, 'resume')
        const answer = await resume(deps, { ...asked, selector: selectorOf(labelSelector) }, reason, principal(request).name)
        if (!answer.dryRun) await actions.suspensionsChanged()
        return answer
      },
      {
        response: suspendAnswerSchema,
        detail: { summary: 'Lift suspensions', requestBody: documented(resumeRequestSchema) },
      },
    )
}
