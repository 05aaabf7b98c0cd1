// `sync.mode: manual`: a revision that no person has allowed yet changes and prunes nothing; drift is healed to what is applied meanwhile. Pure.
import type { ServiceRow } from '../../../shared/model/desired.ts'
import type { ServiceId } from '../../../shared/model/ids.ts'
import { type Closed, closed } from './gates.ts'

export const MANUAL_SYNC = 'ManualSync'

/** SM1. */
export function manualGate({ project, service }: ServiceId, { sync, synced, digest, commit }: ServiceRow): Closed | null {
  if (sync.mode !== 'manual' || synced === digest) return null
  const revision = `revision ${digest.slice(0, 12)} of commit ${commit.slice(0, 12)}`
  return closed(
    MANUAL_SYNC,
    `${revision} waits for a person (sync.mode is manual); \`skerry sync ${service} -p ${project}\` shows its plan and asks`,
  )
}
