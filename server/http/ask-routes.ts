// POST /clusters/:name/ask: a question to the agent of a cluster. The answer is streamed as it comes, one line of JSON
// each.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { answerLineSchema, askRequestSchema } from '../../shared/protocol/ask.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { nameSchema } from '../../shared/runtime/ids.ts'
import type { AnswerStream } from '../ask/asks.ts'
import type { Ask } from '../fleet/rights.ts'
import { type AskDeps, confined, isPlaced, openAnswer, verbOf } from './asking.ts'
import { hidden, objectNotFound } from './auth.ts'
import { fails, jsonSchema, takes } from './declared.ts'
import type { AdminDeps } from './deps.ts'

const NDJSON = 'application/x-ndjson'

export function askRoutes(deps: AskDeps & Pick<AdminDeps, 'callers' | 'stopping'>) {
  const { store, principal, callers, stopping, clock } = deps
  return new Elysia({ tags: ['clusters'] }).post(
    '/clusters/:name/ask',
    async ({ params: { name }, body, request }) => {
      const by = principal(request)
      const cluster = await store.clusterByName(name)
      const ask: Ask = { verb: verbOf(body.question), kind: 'Cluster', name }
      if (cluster === null) throw objectNotFound(ask)
      const { asked, within } = confined(deps, by, { ...ask, cluster }, body)
      // AK3: a cluster that the service is not in stays unknown to a caller who may not read the cluster.
      if (within != null && !deps.authorizer.allows(by, { ...ask, verb: 'read', cluster }) && !(await isPlaced(store, within, cluster)))
        throw hidden({ ...ask, cluster })
      const stream = await openAnswer(deps, by, cluster, { question: body.question, ...(within === null ? {} : { within }) }, asked)
      const ended = AbortSignal.any([request.signal, stopping, callers.ended(by.id)])
      const mayRead = async () => {
        await deps.authorizer.loaded()
        return !callers.hasExpired(by.id) && deps.authorizer.allows(by, asked)
      }
      return new Response(bodyOf(stream, { ended, clock, mayRead }), { headers: HEADERS })
    },
    {
      params: z.object({ name: nameSchema }),
      body: askRequestSchema,
      detail: {
        summary: 'Ask the agent of a cluster: live objects, children, events, logs, differences, a restart, a dry run, nodes',
        requestBody: takes(askRequestSchema),
        responses: {
          '200': {
            description: 'Lines of JSON as they arrive; the last one is `end` or `failed`',
            content: { [NDJSON]: { schema: jsonSchema(answerLineSchema, 'output') } },
          },
        },
        ...fails(404, 409, 429, 503),
      },
    },
  )
}

const HEADERS = { 'content-type': NDJSON, 'cache-control': 'no-store', 'x-accel-buffering': 'no' }

/** Below the idle timeouts of this server and of proxies on the way. */
const HEARTBEAT_MS = 10_000
const EMPTY_LINE = new Uint8Array([0x0a])

interface AnswerBody {
  ended: AbortSignal
  clock: Pick<Clock, 'sleep'>
  /** AK2: a log may be followed for an hour. */
  mayRead(): Promise<boolean>
}

/** Asked for more only when the connection took what came before. An error after the head is a last line. */
function bodyOf(stream: AnswerStream, { ended, clock, mayRead }: AnswerBody): ReadableStream<Uint8Array<ArrayBuffer>> {
  const stop = () => stream.cancel()
  ended.addEventListener('abort', stop, { once: true })
  if (ended.aborted) stop()
  let reading: Promise<Uint8Array<ArrayBuffer> | null> | null = null
  const next = async (): Promise<Uint8Array<ArrayBuffer> | null> => {
    reading ??= stream.read()
    const heard = new AbortController()
    const silence = clock.sleep(HEARTBEAT_MS, heard.signal).then(() => EMPTY_LINE)
    try {
      const bytes = await Promise.race([reading, silence])
      if (bytes !== EMPTY_LINE) reading = null
      return bytes
    } finally {
      heard.abort()
    }
  }
  return new ReadableStream<Uint8Array<ArrayBuffer>>(
    {
      async pull(controller) {
        let bytes: Uint8Array<ArrayBuffer> | null = null
        try {
          bytes = await next()
          if (bytes !== null && !(await mayRead())) {
            bytes = null
            throw new AppError('forbidden', { detail: 'the right to read this answer has ended' })
          }
        } catch (error) {
          controller.enqueue(failedLine(error))
        }
        if (bytes !== null) return controller.enqueue(bytes)
        ended.removeEventListener('abort', stop)
        stop()
        controller.close()
      },
      cancel: stop,
    },
    { highWaterMark: 0 },
  )
}

function failedLine(error: unknown): Uint8Array<ArrayBuffer> {
  const known = error instanceof AppError ? error : new AppError('internal')
  return new TextEncoder().encode(`${JSON.stringify({ t: 'failed', code: known.code, message: known.message, remedy: known.remedy })}\n`)
}
