// POST answers/:id?part=N of the agent API: one part of an answer to a question. The reply comes when the reader has
// room for it, so that a slow reader slows the agent.
import { ANSWER_PART_BYTES_MAX } from '../../shared/protocol/ask.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Sessions } from '../access/sessions.ts'
import type { Asks } from '../ask/asks.ts'
import { readInflated } from './agent-body.ts'
import type { BodyBudget } from './body.ts'
import { IDLE_TIMEOUT_SECONDS, type RequestContext } from './desired-routes.ts'

interface Deps {
  sessions: Pick<Sessions, 'authorize'>
  asks?: Asks
}

interface Part {
  id: string
  query: string
  context: RequestContext
}

export async function answerPart(
  request: Request,
  { id, query, context }: Part,
  { sessions, asks }: Deps,
  budgetOf: (clusterId: string) => BodyBudget,
): Promise<Response> {
  const { clusterId } = sessions.authorize(request.headers.get('authorization'))
  const part = /^part=(0|[1-9]\d{0,8})$/.exec(query)?.[1]
  if (part === undefined) throw new AppError('bad_request', { doing: 'receive an answer', detail: 'part is a number' })
  if (asks === undefined || !asks.isOpen(clusterId, id)) {
    await request.body?.cancel()
    throw new AppError('ask_gone')
  }
  const bytes = (await readInflated(request, ANSWER_PART_BYTES_MAX, { budget: budgetOf(clusterId) })) as Uint8Array<ArrayBuffer>
  context.setIdleTimeout(0)
  try {
    return Response.json({ taken: await asks.answer(clusterId, id, Number(part), bytes, request.signal) })
  } finally {
    context.setIdleTimeout(IDLE_TIMEOUT_SECONDS)
  }
}
