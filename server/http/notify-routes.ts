// Messages to sinks: list them, send a dead one again, try a sink.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { NOTIFICATION_STATES, notificationTestAnswerSchema, notificationViewSchema } from '../../shared/model/notification-views.ts'
import { notificationSinkSpecSchema, type SinkType, sinkTypeOf } from '../../shared/model/notifications.ts'
import { FLEET } from '../../shared/model/resources.ts'
import { listOf } from '../../shared/model/views.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { nameSchema } from '../../shared/runtime/ids.ts'
import type { NotificationRecord } from '../fleet/notification-records.ts'
import { projectInScope } from '../fleet/rights.ts'
import { noteDenial } from '../store/audit/caller.ts'
import { forbidden } from './auth.ts'
import { fails } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { messageView } from './notification-view.ts'
import { notFound } from './problem.ts'
import { continueQuery, decodeContinue, encodeContinue, limitQuery } from './query.ts'
import { keyNotFound } from './write-resource.ts'

const listQuery = z.object({
  limit: limitQuery,
  continue: continueQuery,
  project: nameSchema.optional(),
  sink: nameSchema.optional(),
  route: nameSchema.optional(),
  state: z.enum(NOTIFICATION_STATES).optional(),
})
const idParams = z.object({ id: z.string().regex(/^\d{1,15}$/, 'expected the number of a notification') })
/** Records read at once while a filter is looked for, and how many times. */
const SLICE = 500
const SLICES_MAX = 20

export function notifyRoutes(deps: Pick<AdminDeps, 'store' | 'principal' | 'authorizer' | 'notifier' | 'trail'>) {
  const { store, principal, authorizer, notifier } = deps
  const typesOf = () => {
    const known = new Map<string, SinkType>()
    return async ({ project, sink }: NotificationRecord): Promise<SinkType> => {
      const key = `${project}/${sink}`
      const held = known.get(key)
      if (held !== undefined) return held
      const resource = await store.getResource({ kind: 'NotificationSink', project, name: sink })
      const type = resource === null ? 'webhook' : sinkTypeOf(notificationSinkSpecSchema.parse(JSON.parse(resource.spec)))
      known.set(key, type)
      return type
    }
  }
  const found = async (id: string, request: Request): Promise<NotificationRecord> => {
    const record = await store.notifications.get(Number(id))
    const scope = authorizer.scope(principal(request), 'read', 'NotificationRoute')
    if (record !== null && projectInScope(scope, record.project)) return record
    if (record !== null) noteDenial({ verb: 'read', kind: 'NotificationRoute', project: record.project, name: record.route })
    throw notFound(`notification ${id}`, 'skerry get notifications')
  }
  const test = async (project: string, name: string) => {
    const key = { kind: 'NotificationSink', project, name } as const
    const sink = await store.getResource(key)
    if (sink === null) throw keyNotFound(key)
    await deps.trail.record({ verb: 'notify:test', ...auditKey(project, name) })
    return notifier.test(sink)
  }
  const testDetail = { response: notificationTestAnswerSchema, detail: { summary: 'Send a test message to a sink', ...fails(404) } }
  return new Elysia({ tags: ['notifications'] })
    .get(
      '/notifications',
      async ({ query, request }) => {
        const scope = authorizer.scope(principal(request), 'read', 'NotificationRoute')
        const typeOf = typesOf()
        const items = []
        let before = beforeOf(query.continue)
        for (let slice = 0; slice < SLICES_MAX; slice++) {
          const records = await store.notifications.list({ ...filterOf(query), ...(before === undefined ? {} : { before }), limit: SLICE })
          for (const record of records) {
            before = record.id
            if (!projectInScope(scope, record.project)) continue
            const view = messageView(record, await typeOf(record))
            if (query.state === undefined || view.state === query.state) items.push(view)
            if (items.length === query.limit) return { items, continue: encodeContinue(String(record.id)) }
          }
          if (records.length < SLICE) return { items, continue: null }
        }
        return { items, continue: before === undefined ? null : encodeContinue(String(before)) }
      },
      { query: listQuery, response: listOf(notificationViewSchema), detail: { summary: 'List notifications, newest first' } },
    )
    .get(
      '/notifications/:id',
      async ({ params, request }) => {
        const record = await found(params.id, request)
        return messageView(record, await typesOf()(record))
      },
      { params: idParams, response: notificationViewSchema, detail: { summary: 'Get a notification', ...fails(404) } },
    )
    .post(
      '/notifications/:id/retry',
      async ({ params, request }) => {
        const record = await found(params.id, request)
        const ask = {
          ...({ verb: 'notify:test', kind: 'NotificationSink', name: record.sink } as const),
          ...(record.project === FLEET ? {} : { project: record.project }),
        }
        if (!authorizer.allows(principal(request), ask)) throw forbidden(principal(request), ask)
        if (!(await notifier.retry(record.id)))
          throw new AppError('conflict', { detail: `notification ${params.id} is not dead; only a dead one is sent again` })
        await deps.trail.record({ verb: 'notify:retry', ...auditKey(record.project, record.sink) })
        const again = (await store.notifications.get(record.id)) ?? record
        return messageView(again, await typesOf()(again))
      },
      { params: idParams, response: notificationViewSchema, detail: { summary: 'Send a dead notification again', ...fails(404, 409) } },
    )
    .post('/notification-sinks/:name/test', ({ params }) => test(FLEET, params.name), {
      params: z.object({ name: nameSchema }),
      ...testDetail,
    })
    .post('/projects/:project/notification-sinks/:name/test', ({ params }) => test(params.project, params.name), {
      params: z.object({ project: nameSchema, name: nameSchema }),
      ...testDetail,
    })
}

const auditKey = (project: string, name: string) => ({ kind: 'NotificationSink', name, ...(project === FLEET ? {} : { project }) })

function beforeOf(from: string | undefined): number | undefined {
  const text = decodeContinue(from)
  if (text === undefined) return undefined
  if (!/^\d{1,15}$/.test(text)) throw new AppError('bad_request', { detail: 'continue is not from this list' })
  return Number(text)
}

const filterOf = ({ project, sink, route }: z.infer<typeof listQuery>) => ({
  ...(project === undefined ? {} : { project }),
  ...(sink === undefined ? {} : { sink }),
  ...(route === undefined ? {} : { route }),
})
