// Whether the agent of a cluster was heard from lately, and what is said of a cluster that is away.
import type { Liveness, State } from '../../shared/model/views.ts'
import { WAIT_SECONDS_DEFAULT } from '../../shared/protocol/routes.ts'
import { clusterSays } from '../messages/status-messages.ts'
import type { ClusterRecord } from './records.ts'

/** Two polls may be lost, and last-seen times are coarse by ten seconds. */
export const onlineWithinMs = (waitSeconds: number): number => 2 * Math.max(waitSeconds, WAIT_SECONDS_DEFAULT) * 1_000 + 20_000

export function livenessOf(cluster: Pick<ClusterRecord, 'revoked' | 'lastSeenMs' | 'waitSeconds'>, nowMs: number): Liveness {
  const { revoked, lastSeenMs, waitSeconds } = cluster
  if (revoked) return { word: 'Revoked', lastSeenMs }
  if (lastSeenMs === null) return { word: 'NeverSeen', lastSeenMs }
  return { word: nowMs - lastSeenMs <= onlineWithinMs(waitSeconds) ? 'Online' : 'Offline', lastSeenMs }
}

/** Why a cluster's facts are old; null when they are not. */
export function absence(cluster: string, { word }: Liveness): Pick<State, 'reason' | 'message' | 'next'> | null {
  switch (word) {
    case 'Online':
      return null
    case 'Offline':
      return clusterSays('ClusterOffline', { cluster })
    case 'NeverSeen':
      return clusterSays('ClusterNeverSeen', { cluster })
    case 'Revoked':
      return clusterSays('ClusterRevoked', { cluster })
  }
}
