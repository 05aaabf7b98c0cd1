// Which rows of the outbox go into one push. Pure. In order of rev, so that whatever the server's answer covers is a prefix of the outbox.
import { STATUS_BODY_BYTES_MAX, STATUS_ROWS_MAX } from '../../shared/protocol/routes.ts'
import type { OutboxRow } from '../state/agent-state.ts'

/** Well below the server's limit, because a smaller push gets through a worse link. */
export const PUSH_BYTES_MAX = STATUS_BODY_BYTES_MAX / 4
export const PUSH_ROWS_MAX = STATUS_ROWS_MAX / 10

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
