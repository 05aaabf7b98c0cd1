// The way up: one batch of the outbox. A row that the server refuses leaves with a log line, so that it never holds up the others (PU3).
import { ROUTES, STATUS_BODY_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { type StatusRequest, statusAnswerSchema } from '../../shared/protocol/status.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { AgentState } from '../state/agent-state.ts'
import { outboxBatch, PUSH_ROWS_MAX } from './outbox-batch.ts'
import { CALL_TIMEOUT_MS, parseAnswer, type SessionKeeper } from './session-keeper.ts'

/** Returns how many rows left the outbox. */
export async function pushBatch(
  session: SessionKeeper,
  state: Pick<AgentState, 'identity' | 'outbox' | 'acknowledge'>,
  log: Logger,
  signal: AbortSignal,
): Promise<number> {
  const rows = outboxBatch(state.outbox(PUSH_ROWS_MAX))
  const incarnation = state.identity()?.incarnation
  const last = rows.at(-1)
  if (last === undefined || incarnation === undefined) return 0
  const answer = await session.call({
    doing: 'push status',
    method: 'POST',
    path: ROUTES.status,
    json: { incarnation, rows } satisfies StatusRequest,
    answerBytesMax: STATUS_BODY_BYTES_MAX,
    timeoutMs: CALL_TIMEOUT_MS,
    signal,
  })
  const { ack, reject } = parseAnswer(answer, statusAnswerSchema, 'push status')
  for (const { key, code } of reject) log.warn('status row refused by the server', { key, code })
  // Taken, known before or refused: the server is done with every row of this push.
  state.acknowledge(Math.max(ack, last.rev))
  return rows.length
}
