// The enforcement state of a site, as its report tells it to people there. Pure.

import { enforcementText } from './messages/site-messages.ts'
import type { AgentReport } from './observe/report.ts'
import { claimantText, DELETE_CLAIM } from './reconcile/claim/claim.ts'
import type { ClaimState } from './reconcile/claim/claim-keeper.ts'
import { holdText } from './reconcile/plan/gates/hold.ts'
import type { ActiveHold } from './reconcile/snapshot/kept-notes.ts'

/** The enforcement state with its next step, for people at the site. */
export function enforcementOf(
  claim: ClaimState,
  unreachable: string | null,
  joined: boolean,
  hold: ActiveHold | null,
): AgentReport['enforcement'] {
  if (!joined) return { state: 'waiting', message: enforcementText('waiting.not_joined') }
  switch (claim.kind) {
    case 'superseded': {
      const other = claimantText(claim.by)
      const message = claim.asks
        ? enforcementText('superseded', { other })
        : enforcementText('superseded.later_self', { other, deleteClaim: DELETE_CLAIM })
      return { state: 'superseded', message }
    }
    case 'removed':
      return { state: 'removed', message: enforcementText('removed') }
    case 'contested':
      return { state: 'contested', message: enforcementText('contested', { other: claimantText(claim.by) }) }
    case 'unclear':
      return { state: 'unclear', message: claim.message }
  }
  if (unreachable !== null) return { state: 'waiting', message: enforcementText('waiting.unreachable', { failure: unreachable }) }
  if (claim.kind === 'asking') return { state: 'waiting', message: claim.message ?? enforcementText('waiting.claim') }
  return { state: 'enforcing', message: hold === null ? '' : enforcementText('enforcing.held', { hold: holdText(hold) }) }
}
