// Reads one watch until its consumer stops. The adapter retries failures, so an exception is a bug, of the adapter or
// of a handler of an event. The watch then starts again after half a minute, so that the kind is not lost.
import type { Clock } from '../../shared/runtime/clock.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { ApiResource, Cluster, WatchEvent } from './cluster.ts'

export const BROKEN_WATCH_WAIT_MS = 30_000

export interface WatchLoopDeps {
  cluster: Pick<Cluster, 'watch'>
  clock: Clock
  log: Logger
}

export interface WatchConsumer {
  take(event: WatchEvent): void
  /** Everything that the watch reported is in doubt until the next `synced`. */
  broke(): void
}

/** LS5: resolves when the signal aborts. */
export async function watchLoop(
  { cluster, clock, log }: WatchLoopDeps,
  resource: ApiResource,
  options: { labelSelector?: string; fieldSelector?: string; namespace?: string; signal: AbortSignal },
  consumer: WatchConsumer,
): Promise<void> {
  const { signal } = options
  const { group, version, kind } = resource
  while (!signal.aborted) {
    let error: unknown = 'the watch ended'
    try {
      for await (const event of cluster.watch(resource, options)) {
        if (signal.aborted) return
        consumer.take(event)
      }
    } catch (thrown) {
      error = thrown
    }
    if (signal.aborted) return
    const retryInMs = BROKEN_WATCH_WAIT_MS
    log.error('watch broke', { resource: `${group}/${version}/${kind}`, error: describeError(error), retryInMs })
    consumer.broke()
    await clock.sleep(retryInMs, signal)
  }
}
