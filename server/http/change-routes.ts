// The feed of changes: a page of it, or all that comes from now on.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { CHANGE_TOPICS, changePageSchema, EVENT_STREAM } from '../../shared/model/change.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Principal } from '../access/principal.ts'
import type { Change } from '../store/feed/change-feed.ts'
import { forbidden } from './auth.ts'
import { createChangeStreams, seen } from './change-stream.ts'
import { fails, jsonSchema, takesHeaders } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { limitQuery } from './query.ts'
import { changeSight, clustersOfChanges, mayFollow } from './sight.ts'

const position = z.coerce.number().int().min(0)
const changeQuery = z.object({
  after: position.optional().describe('Strictly after this number; default: from now on. Last-Event-ID resumes a stream.'),
  topic: z
    .preprocess((value) => (typeof value === 'string' ? value.split(',') : value), z.array(z.enum(CHANGE_TOPICS)).optional())
    .describe('Only of these topics, joined by commas'),
  limit: limitQuery,
})

export function changeRoutes({
  store,
  stopping,
  principal,
  authorizer,
  callers,
}: Pick<AdminDeps, 'store' | 'stopping' | 'principal' | 'authorizer' | 'callers'>) {
  const feed = store.changes
  const streams = createChangeStreams(feed, stopping)
  return new Elysia({ tags: ['fleet'] }).get(
    '/changes',
    async ({ query: { after, topic, limit }, request }) => {
      const last = lastEventId(request) // also where no stream is asked for: a wrong one is never passed over
      const topics = topic === undefined ? undefined : new Set(topic)
      const caller = principal(request)
      if (!mayFollow(authorizer, caller)) throw forbidden(caller, { verb: 'read', kind: 'Service' })
      const sight = async (items: readonly Change[]) =>
        changeSight(authorizer, caller, await clustersOfChanges(authorizer, caller, items, store))
      if (acceptsStream(request)) {
        const stillSeen = async (items: readonly Change[]) => {
          await authorizer.loaded()
          return callers.hasExpired(caller.id) || !mayFollow(authorizer, caller) ? null : sight(items)
        }
        return streams.open(request, last ?? after, topics, callers.ended(caller.id), stillSeen, subjectOf(caller))
      }
      if (after === undefined) {
        const newest = await feed.position()
        return { items: [], next: newest, newest }
      }
      const read = await feed.read(after, { limit, ...(topics === undefined ? {} : { topics }) })
      if (read.kind === 'gone') throw new AppError('changes_gone', { extra: { oldest: read.oldest, newest: read.newest } })
      return { items: seen(read.items, await sight(read.items)), next: read.next, newest: Math.max(read.next, await feed.position()) }
    },
    {
      query: changeQuery,
      detail: {
        summary: 'Changes in commit order; as server-sent events on request',
        ...takesHeaders(LAST_EVENT_ID),
        responses: RESPONSES,
        ...fails(410),
      },
    },
  )
}

const RESPONSES = {
  '200': {
    description: 'Changes after that number',
    content: {
      'application/json': { schema: jsonSchema(changePageSchema, 'output') },
      [EVENT_STREAM]: {
        schema: {
          type: 'string' as const,
          description:
            'id: the number, event: the topic, data: the change as in `items`. The first event is `ready`; `reset` means that the changes after the given number are no longer kept: list again, then continue.',
        },
      },
    },
  },
}

const LAST_EVENT_ID = {
  name: 'Last-Event-ID',
  description: 'Resumes a stream after this number; takes precedence over `after`',
  schema: { type: 'string', pattern: '^\\d*$' },
} as const

/** A person's sessions count together; API tokens have the same name at most by choice. */
const subjectOf = ({ kind, name, provider, subject }: Principal): string => JSON.stringify([kind, provider, subject ?? name])

/** HEAD comes here, too. */
const acceptsStream = (request: Request): boolean =>
  request.method === 'GET' && (request.headers.get('accept') ?? '').toLowerCase().includes(EVENT_STREAM)

/** For a returning client it is newer than the address, which stays the same. */
function lastEventId(request: Request): number | undefined {
  const header = request.headers.get('last-event-id')
  if (header === null || header === '') return undefined
  const id = position.safeParse(header)
  if (id.success) return id.data
  throw new AppError('bad_request', { detail: 'Last-Event-ID must be a number of this feed' })
}
