// Work that the revision asks for and that may not be done yet: a hold, a window, a missing confirmation, a dependency,
// a phase or wave that has not begun. Each gate is pure and gives a reason for people; the first closed one decides. A
// closed gate changes no applied object: drift is corrected to the applied documents (DR6), as far as the gate allows.
import type { ServiceRow } from '../../../../shared/model/desired.ts'
import type { ServiceId } from '../../../../shared/runtime/ids.ts'
import { serviceStatus } from '../../../messages/service-messages.ts'
import { type Closed, closedBy } from '../../snapshot/situation.ts'
import type { Wanted } from '../../snapshot/wanted.ts'

/**
 * `change`: a document that is not applied yet. `restore`: an owned object that is gone. `correct`: one that was
 * changed.
 */
export type Deed = 'change' | 'restore' | 'correct'
export type Gate = (wanted: Wanted, deed: Deed) => Closed | null

export const OPEN: Gate = () => null

/** In the order of their importance for a person. */
export function allOf(gates: readonly Gate[]): Gate {
  const [first, ...others] = gates
  if (first === undefined) return OPEN
  if (others.length === 0) return first
  return (wanted, deed) => {
    for (const gate of gates) {
      const verdict = gate(wanted, deed)
      if (verdict !== null) return verdict
    }
    return null
  }
}

// `sync.mode: manual`: a revision that no person has allowed yet changes and prunes nothing; drift is corrected to the
// applied documents meanwhile. Pure.

/** SM1: a revision that is synced by hand waits for its digest. */
export function manualGate({ project, service }: ServiceId, { sync, synced, digest, commit }: ServiceRow): Closed | null {
  if (sync.mode !== 'manual' || synced === digest) return null
  return closedBy(serviceStatus('ManualSync', { digest: digest.slice(0, 12), commit: commit.slice(0, 12), service, project }))
}
