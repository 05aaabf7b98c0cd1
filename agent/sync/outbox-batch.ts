// Chooses the rows of the outbox for one push, and those that its answer settles. Pure. Rows go in order of rev, so
// that settled rows are always the beginning of the outbox.
import { STATUS_BODY_BYTES_MAX, STATUS_ROWS_MAX } from '../../shared/protocol/routes.ts'
import type { OutboxRow } from '../state/agent-state.ts'

/** Well below the server's limit, because a smaller push gets through a worse link. */
export const PUSH_BYTES_MAX = STATUS_BODY_BYTES_MAX / 4
export const PUSH_ROWS_MAX = STATUS_ROWS_MAX / 4

/** Always at least one row; one that is larger than a whole push goes alone, and the server refuses it. */
export function outboxBatch(rows: readonly OutboxRow[], bytesMax = PUSH_BYTES_MAX): OutboxRow[] {
  const batch: OutboxRow[] = []
  let bytes = 0
  for (const row of rows) {
    bytes += Buffer.byteLength(JSON.stringify(row))
    if (batch.length > 0 && bytes > bytesMax) break
    batch.push(row)
  }
  return batch
}

/** The greatest rev up to which the server is done with the rows: it has them (`ack`), or refused the ones that follow.
 *  A row that is neither stays: the answer was not to this push. */
export function settledRev(rows: readonly OutboxRow[], ack: number, refusedKeys: ReadonlySet<string>): number {
  let settled = ack
  for (const { rev, key } of rows) {
    if (rev <= settled) continue
    if (!refusedKeys.has(key)) break
    settled = rev
  }
  return settled
}

/** After an interruption half as many rows are pushed, because a push that is too large for the link stays too
 *  large. */
export const PUSH_BYTES_MIN = 4_096
export const bytesAfterCut = (bytes: number): number => Math.max(PUSH_BYTES_MIN, Math.floor(bytes / 2))
export const bytesAfterPush = (bytes: number): number => Math.min(PUSH_BYTES_MAX, bytes * 2)
