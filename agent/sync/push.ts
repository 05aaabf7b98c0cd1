// The way up: one batch of the outbox. A row that the server refuses leaves with a log line, so that it never holds up
// the others (PU3).
import { isDiskFull } from '../../shared/adapters/sqlite.ts'
import { ROUTES, STATUS_BODY_BYTES_MAX, STATUS_ROWS_MAX } from '../../shared/protocol/routes.ts'
import { REV_INCARNATION, type StatusAnswer, type StatusRequest, statusAnswerSchema } from '../../shared/protocol/status.ts'
import { AppError } from '../../shared/runtime/error.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { CALL_TIMEOUT_MS, parseAnswer, type SessionKeeper } from '../link/session-keeper.ts'
import type { AgentState } from '../state/agent-state.ts'
import { outboxBatch, PUSH_ROWS_MAX, settledRev } from './outbox-batch.ts'

export interface PushLimits {
  /** The greatest rev that the server can have from here; raised before the request. */
  sentRev: number
  /** The size of one push before compression. A smaller push gets through a worse link. */
  bytesMax: number
}

/** `doubted`: the server's revs do not match those that this agent sent, and rows are numbered again. */
export type Pushed = 'settled' | 'doubted'

export async function pushBatch(
  session: SessionKeeper,
  state: Pick<AgentState, 'identity' | 'outbox' | 'acknowledge' | 'acknowledgedRev' | 'reportAnew' | 'noteSent' | 'settled'>,
  limits: PushLimits,
  log: Logger,
  signal: AbortSignal,
): Promise<Pushed> {
  const rows = outboxBatch(state.outbox(PUSH_ROWS_MAX), limits.bytesMax)
  const incarnation = state.identity()?.incarnation
  const [first, last] = [rows[0], rows.at(-1)]
  if (first === undefined || last === undefined || incarnation === undefined) return 'settled'
  const known = Math.max(limits.sentRev, incarnation * REV_INCARNATION)
  if (last.rev > limits.sentRev) noteSent(state, last.rev)
  limits.sentRev = Math.max(limits.sentRev, last.rev)
  await state.settled() // a rev that the server may have is never given out again, whatever the power does
  const { ack, had, reject } = await send(session, { incarnation, rows }, signal)
  if (wasSetBack(had ?? ack, state, log)) return 'doubted'
  if (ack > last.rev || (had ?? 0) > known) {
    // The server knows revs that this agent never sent: this file is older (a snapshot, a lost write), or a copy of the
    // agent runs too. New numbers could count as old ones, and some of the last ones did.
    log.warn('the server has newer status than this agent: requesting a new incarnation', { ack, had, rev: last.rev })
    await session.takeNextIncarnation(signal)
    return 'doubted'
  }
  const settled = settledRev(rows, ack, new Set(reject.map(({ key }) => key)))
  if (settled < first.rev) throw new AppError('unavailable', { doing: 'push status', detail: 'the server acknowledged none of the rows' })
  tellRefused(reject, 'the server refused a status row', log)
  state.acknowledge(settled, ack)
  return 'settled'
}

/** Before the request, because its answer may be lost with this process. A full disk must not keep the agent from
 *  reporting it. */
function noteSent(state: Pick<AgentState, 'noteSent'>, rev: number): void {
  try {
    state.noteSent(rev)
  } catch (error) {
    if (!isDiskFull(error)) throw error
  }
}

/**
 * PU7: asks for the server's greatest rev before it sends a row that could count as old. `given`: the greatest rev that
 * this file had given out by then.
 */
export async function compareRevs(
  session: SessionKeeper,
  state: Pick<AgentState, 'identity' | 'acknowledgedRev' | 'reportAnew'>,
  given: number,
  log: Logger,
  signal: AbortSignal,
): Promise<Pushed> {
  const incarnation = state.identity()?.incarnation
  if (incarnation === undefined) return 'settled'
  const { ack } = await send(session, { incarnation, rows: [] }, signal)
  if (ack > given && ack >= incarnation * REV_INCARNATION) {
    log.warn('the server has newer status than this agent: requesting a new incarnation', { ack, rev: given })
    await session.takeNextIncarnation(signal)
    return 'doubted'
  }
  return wasSetBack(ack, state, log) ? 'doubted' : 'settled'
}

/** Only the rev before a push proves something: the push itself closes the gap. */
function wasSetBack(had: number, state: Pick<AgentState, 'acknowledgedRev' | 'reportAnew'>, log: Logger): boolean {
  const acknowledged = state.acknowledgedRev()
  if (had >= acknowledged) return false
  log.warn('the server lost status rows: reporting everything again', { had, acknowledged })
  state.reportAnew()
  return true
}

/**
 * PU4: sends all keys, range by range, so that the server drops the ones that this agent no longer has. Returns the key
 * with which the next push continues. Null means that the inventory is complete.
 */
export async function pushInventory(
  session: SessionKeeper,
  state: Pick<AgentState, 'identity' | 'inventoryRange' | 'inventoryDone'>,
  after: string | null,
  bytesMax: number,
  log: Logger,
  signal: AbortSignal,
): Promise<string | null> {
  const incarnation = state.identity()?.incarnation
  if (incarnation === undefined) return null
  const { rows, upTo } = state.inventoryRange(after, STATUS_ROWS_MAX, bytesMax)
  if (rows.length === 0 && after === null) return null
  const { reject } = await send(session, { incarnation, rows, complete: after === null && upTo === null ? true : { after, upTo } }, signal)
  tellRefused(reject, 'the server keeps rows that are not in the inventory, because it refused a row', log)
  if (upTo === null) state.inventoryDone()
  return upTo
}

/** The limit of one push: a cluster over its limit has thousands. */
const REFUSED_TOLD_MAX = 20

function tellRefused(reject: StatusAnswer['reject'], what: string, log: Logger): void {
  for (const { key, code } of reject.slice(0, REFUSED_TOLD_MAX)) log.warn(what, { key, code })
  if (reject.length > REFUSED_TOLD_MAX) log.warn('the server refused more status rows', { count: reject.length - REFUSED_TOLD_MAX })
}

async function send(session: SessionKeeper, json: StatusRequest, signal: AbortSignal): Promise<StatusAnswer> {
  const answer = await session.call({
    doing: 'push status',
    method: 'POST',
    path: ROUTES.status,
    json,
    answerBytesMax: STATUS_BODY_BYTES_MAX,
    timeoutMs: CALL_TIMEOUT_MS,
    signal,
  })
  return parseAnswer(answer, statusAnswerSchema, 'push status')
}
