// Which rows of the outbox go into one push, and which of them its answer settles. Pure. Rows go in order of rev, so that what is settled is always the
// beginning of the outbox.
import { STATUS_BODY_BYTES_MAX, STATUS_ROWS_MAX } from '../../shared/protocol/routes.ts'
import type { OutboxRow } from '../state/agent-state.ts'

/** Well below the server's limit, because a smaller push gets through a worse link. */
export const PUSH_BYTES_MAX = STATUS_BODY_BYTES_MAX / 4
export const PUSH_ROWS_MAX = STATUS_ROWS_MAX / 4

/** Always at least one row; one that is larger than a whole push goes alone and is for the server to refuse. */
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

/** The greatest rev up to which the server is done with the rows: it has them (`ack`), or refused the ones that follow. A row that is neither stays: the
 *  answer was not to this push. */
export function settledRev(rows: readonly OutboxRow[], ack: number, refusedKeys: ReadonlySet<string>): number {
  let settled = ack
  for (const { rev, key } of rows) {
    if (rev <= settled) continue
    if (!refusedKeys.has(key)) break
    settled = rev
  }
  return settled
}

/** A push that a link cut is tried again with half of it, because what is too much for the link stays too much. */
export const PUSH_BYTES_MIN = 4_096
export const bytesAfterCut = (bytes: number): number => Math.max(PUSH_BYTES_MIN, Math.floor(bytes / 2))
export const bytesAfterPush = (bytes: number): number => Math.min(PUSH_BYTES_MAX, bytes * 2)
