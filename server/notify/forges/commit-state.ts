// The commit status of a service over the fleet. Pure.
import type { StoredError } from '../../fleet/records.ts'

export interface CommitState {
  state: 'pending' | 'success' | 'failure'
  description: string
}

/** `counts`: placements by `Sync/Health`, as the store counts them. */
export function commitState(counts: Readonly<Record<string, number>>, error: Pick<StoredError, 'code' | 'message'> | null): CommitState {
  if (error !== null) return { state: 'failure', description: `cannot be rendered: ${error.message.split('\n')[0] ?? error.code}` }
  let [total, applied, healthy, degraded] = [0, 0, 0, 0]
  for (const [words, count] of Object.entries(counts)) {
    const [sync, health] = words.split('/')
    total += count
    if (sync === 'Synced') applied += count
    if (sync === 'Synced' && (health === 'Healthy' || health === 'Suspended')) healthy += count
    if (health === 'Degraded') degraded += count
  }
  if (total === 0) return { state: 'pending', description: 'not in any cluster yet' }
  const text = `applied in ${applied} of ${total} ${total === 1 ? 'cluster' : 'clusters'}`
  if (degraded > 0) return { state: 'failure', description: `${text}, degraded in ${degraded}` }
  if (healthy === total) return { state: 'success', description: text }
  return { state: 'pending', description: applied === total ? `${text}, healthy in ${healthy}` : text }
}
