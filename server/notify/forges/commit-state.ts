// The commit status of a service over the fleet. Pure: it says only what is known of this commit.
import type { StoredError } from '../../fleet/records.ts'

export interface CommitState {
  state: 'pending' | 'success' | 'failure'
  description: string
}

export interface CommitFacts {
  /** Placements by `Sync/Health`, as the store counts them: read after `published`. */
  counts: Readonly<Record<string, number>>
  error: Pick<StoredError, 'code' | 'message'> | null
  /** Every cluster that has the service shall have the revision of this commit. Until then the counts are, in part, of
   *  an earlier one. */
  published: boolean
  /** Name of a cluster in which a hook of this revision failed. */
  hookFailedIn: string | null
}

export function commitState({ counts, error, published, hookFailedIn }: CommitFacts): CommitState {
  if (error !== null) return { state: 'failure', description: `cannot be rendered: ${error.message.split('\n')[0] ?? error.code}` }
  let [total, applied, healthy, degraded] = [0, 0, 0, 0]
  for (const [words, count] of Object.entries(counts)) {
    const [sync, health] = words.split('/')
    total += count
    if (sync !== 'Synced') continue // its health is that of an earlier commit
    applied += count
    if (health === 'Healthy' || health === 'Suspended') healthy += count
    if (health === 'Degraded') degraded += count
  }
  if (total === 0) return { state: 'pending', description: 'not in any cluster yet' }
  if (!published) return { state: 'pending', description: 'not published to all clusters yet' }
  const text = `applied in ${applied} of ${total} ${total === 1 ? 'cluster' : 'clusters'}`
  if (degraded > 0) return { state: 'failure', description: `${text}, degraded in ${degraded}` }
  if (hookFailedIn !== null) return { state: 'failure', description: `${text}, a hook failed in ${hookFailedIn}` }
  if (healthy === total) return { state: 'success', description: text }
  return { state: 'pending', description: applied === total ? `${text}, healthy in ${healthy}` : text }
}
