// Reports when a cluster goes offline and returns. Time passes without a write, so nothing else would add to the change
// feed, and watchers would have to poll.
import type { Clock } from '../../shared/runtime/clock.ts'
import { fleetEvent } from '../fleet/fleet-event.ts'
import { livenessOf } from '../fleet/liveness.ts'
import type { ClusterRecord } from '../fleet/records.ts'
import { news, warning } from '../messages/event-messages.ts'
import type { Store } from '../store/store.ts'

export const LIVENESS_LOOK_MS = 20_000
/** Events of one look; a link that many sites share may end for all of them at once. */
const EVENTS_MAX = 500

export interface LivenessDeps {
  store: Pick<Store, 'listClusters' | 'appendEvents'>
  clock: Clock
}

/** Until the signal. What is offline at the start is no news. */
export async function watchLiveness({ store, clock }: LivenessDeps, signal: AbortSignal): Promise<void> {
  let before: ReadonlyMap<string, number> | null = null
  while (!signal.aborted) {
    const nowMs = clock.nowMs()
    const clusters = await store.listClusters()
    const offline = new Map(
      clusters.filter((one) => livenessOf(one, nowMs).word === 'Offline').map((one) => [one.clusterId, one.lastSeenMs ?? nowMs] as const),
    )
    if (before !== null) {
      const events = clusters.flatMap((one) => eventOf(one, before?.get(one.clusterId), offline.has(one.clusterId), nowMs) ?? [])
      await store.appendEvents(events.slice(0, EVENTS_MAX))
    }
    before = offline
    await clock.sleep(LIVENESS_LOOK_MS, signal)
  }
}

/** `wasOfflineMs`: last contact of a cluster that was offline at the look before. */
function eventOf(
  { name, clusterId, lastSeenMs, revoked }: ClusterRecord,
  wasOfflineMs: number | undefined,
  isOffline: boolean,
  nowMs: number,
) {
  if (isOffline === (wasOfflineMs !== undefined) || revoked) return null
  if (isOffline) {
    const said = warning('ClusterOffline', { duration: durationText(nowMs - (lastSeenMs ?? nowMs)) })
    return { ...fleetEvent(nowMs, said, { cluster: name }), clusterId }
  }
  const said = news('ClusterOnline', { duration: durationText((lastSeenMs ?? nowMs) - (wasOfflineMs ?? nowMs)) })
  return { ...fleetEvent(nowMs, said, { cluster: name }), clusterId }
}

const MINUTE_MS = 60_000
/** `3 min`, `3 d 4 h`. */
function durationText(ms: number): string {
  const minutes = Math.max(1, Math.round(ms / MINUTE_MS))
  const [days, hours] = [Math.floor(minutes / 1_440), Math.floor((minutes % 1_440) / 60)]
  if (days > 0) return hours > 0 ? `${days} d ${hours} h` : `${days} d`
  return hours > 0 ? `${hours} h ${minutes % 60} min` : `${minutes} min`
}
