// The way up: one batch of the outbox. A row that the server refuses leaves with a log line, so that it never holds up the others (PU3).
import { AppError } from '../../shared/protocol/error.ts'
import { ROUTES, STATUS_BODY_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { type StatusRequest, statusAnswerSchema } from '../../shared/protocol/status.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { AgentState } from '../state/agent-state.ts'
import { outboxBatch, PUSH_ROWS_MAX, settledRev } from './outbox-batch.ts'
import { CALL_TIMEOUT_MS, parseAnswer, type SessionKeeper } from './session-keeper.ts'

export async function pushBatch(
  session: SessionKeeper,
  state: Pick<AgentState, 'identity' | 'outbox' | 'acknowledge'>,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  const rows = outboxBatch(state.outbox(PUSH_ROWS_MAX))
  const incarnation = state.identity()?.incarnation
  const [first, last] = [rows[0], rows.at(-1)]
  if (first === undefined || last === undefined || incarnation === undefined) return
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
  if (ack > last.rev) {
    // The server knows revs that this file never gave out: it was set back (a snapshot, a lost write). Whatever it numbers now could pass for old.
    log.warn('the server knows newer status than this agent: a new incarnation is asked for', { ack, rev: last.rev })
    return session.takeNextIncarnation(signal)
  }
  const settled = settledRev(rows, ack, new Set(reject.map(({ key }) => key)))
  if (settled < first.rev) throw new AppError('unavailable', { doing: 'push status', detail: 'the server acknowledged nothing of it' })
  for (const { key, code } of reject) log.warn('status row refused by the server', { key, code })
  state.acknowledge(settled)
}
