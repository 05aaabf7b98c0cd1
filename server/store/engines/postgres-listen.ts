// LISTEN on a connection of its own. A notification is a hint: a lost one costs time, so each new connection counts as
// one.
import type { ClientBase } from 'pg'
import type { Clock } from '../../../shared/runtime/clock.ts'
import { CHANGES_CHANNEL } from '../feed/change-log.ts'

const RETRY_MS_MIN = 500
const RETRY_MS_MAX = 30_000

export type ListenClient = ClientBase & { connect(): Promise<unknown>; end(): Promise<void> }

/** Until the signal aborts, whatever becomes of the connection. */
export async function listenForChanges(
  newClient: () => ListenClient,
  onCommit: () => void,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    const startedMs = clock.nowMs()
    await listenOnce(newClient, onCommit, signal)
    failures = clock.nowMs() - startedMs > RETRY_MS_MAX ? 0 : failures + 1
    await clock.sleep(Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** failures), signal)
  }
}

/** Until the connection is lost or the signal aborts. */
async function listenOnce(newClient: () => ListenClient, onCommit: () => void, signal: AbortSignal): Promise<void> {
  let client: ListenClient | undefined
  const lost = Promise.withResolvers<void>()
  const end = () => lost.resolve()
  signal.addEventListener('abort', end, { once: true })
  try {
    client = newClient()
    client.on('error', end)
    client.on('end', end)
    client.on('notification', onCommit)
    await client.connect()
    await client.query(`listen ${CHANGES_CHANNEL}`)
    onCommit()
    if (!signal.aborted) await lost.promise
  } catch {
    // It is retried, and watchers read by themselves meanwhile.
  } finally {
    signal.removeEventListener('abort', end)
    await client?.end().catch(() => {})
  }
}
