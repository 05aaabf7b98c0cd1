// The sync and health status of a placement, from its desired row and from its agent's report. The list, the single
// view and the counts all use them. The cluster being offline has no effect: time passes without a write.
import { z } from 'zod'
import { HEALTH_WORDS, type HealthWord } from '../kube/health-object.ts'
import { type ServiceStatus, SYNC_WORDS, type SyncWord } from './status.ts'

export interface PlacementWords {
  sync: SyncWord
  health: HealthWord
}

/** The inputs of the words. */
export type ReportedService = Pick<ServiceStatus, 'sync' | 'health' | 'received' | 'applied' | 'refusal'>

/** `desired` null: nothing of it is left here; `digest` null: it is being removed. `status` null: its agent did not
 *  report it. */
export function placementWords(desired: { digest: string | null } | null, status: ReportedService | null): PlacementWords | null {
  if (desired === null) return null
  const health = status?.health ?? 'Unknown'
  if (desired.digest === null) return { sync: 'OutOfSync', health }
  if (status === null) return { sync: 'Unknown', health }
  if (status.refusal !== undefined) return { sync: status.sync, health }
  if (status.received?.digest !== desired.digest) return { sync: 'OutOfSync', health }
  if (status.applied?.digest !== desired.digest && status.sync === 'Synced') return { sync: 'OutOfSync', health }
  return { sync: status.sync, health }
}

const words = z.object({ sync: z.enum(SYNC_WORDS).catch('Unknown'), health: z.enum(HEALTH_WORDS).catch('Unknown') })
/** From a key of counts, such as `Synced/Healthy`. */
export const readWords = (text: string): PlacementWords => {
  const [sync, health] = text.split('/')
  return words.parse({ sync, health })
}
