// The enforcement state of a site, as its report tells it to people there. Pure.

import type { AgentReport } from './observe/report.ts'
import { claimantText, DELETE_CLAIM } from './reconcile/claim/claim.ts'
import type { ClaimState } from './reconcile/claim/claim-keeper.ts'
import { holdText } from './reconcile/plan/gates/hold.ts'
import type { ActiveHold } from './reconcile/snapshot/kept-notes.ts'

/** CM7, CM12: the step for a person who decides between two agents. */
const DECIDE =
  'this agent checks again every few minutes and enforces when the other one has stopped; stop one of the two, or run `skerry-agent take-over --reason …` to enforce now'
const LATER_SELF = `which is a later incarnation of this agent (a copied data folder): stop this agent; or, if the other one no longer exists, run \`${DELETE_CLAIM}\``

/** The enforcement state with its next step, for people at the site. */
export function enforcementOf(
  claim: ClaimState,
  unreachable: string | null,
  joined: boolean,
  hold: ActiveHold | null,
): AgentReport['enforcement'] {
  if (!joined) return { state: 'waiting', message: 'not joined to a server yet, so there is no desired state' }
  if (claim.kind === 'superseded') {
    const message = `${claimantText(claim.by)} enforces this cluster${claim.asks ? `; ${DECIDE}` : `, ${LATER_SELF}`}`
    return { state: 'superseded', message }
  }
  if (claim.kind === 'removed') {
    const message =
      'the cluster was removed from the server; objects stay and drift is not corrected; to join again, start the agent with a new join token'
    return { state: 'removed', message }
  }
  if (claim.kind === 'contested') {
    const message = `${claimantText(claim.by)} is active in this cluster; ${DECIDE}`
    return { state: 'contested', message }
  }
  if (claim.kind === 'unclear') return { state: 'unclear', message: claim.message }
  if (unreachable !== null) {
    const message = `the Kubernetes API does not answer; retrying: ${unreachable}`
    return { state: 'waiting', message }
  }
  if (claim.kind === 'asking') return { state: 'waiting', message: claim.message ?? 'requesting the claim of this cluster' }
  return { state: 'enforcing', message: hold === null ? '' : `only deleted objects are restored; ${holdText(hold)}` }
}
