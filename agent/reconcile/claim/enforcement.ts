// Reconciliations start and stop with the claim. People learn of its loss: an event for the server, a Kubernetes Event
// on the claim for users of kubectl.

import type { EventStatus } from '../../../shared/model/status.ts'
import { describeError } from '../../../shared/runtime/loop.ts'
import { warning } from '../../messages/event-messages.ts'
import type { KubeEventWriter } from '../report/kube-events.ts'
import { CLAIM_REF, claimantText } from './claim.ts'
import { ClaimKeeper, type ClaimKeeperDeps, type ClaimState } from './claim-keeper.ts'

export interface EnforcementDeps extends Omit<ClaimKeeperDeps, 'onChange' | 'onChallenge'> {
  /** Whether turns may begin; else wakes are only collected. */
  setOpen(isOpen: boolean): void
  onClaim(state: ClaimState): void
  emit(event: Omit<EventStatus, 'atMs'>): void
  flushReports(): void
  kubeEvents: Pick<KubeEventWriter, 'write'>
}

export interface Enforcement {
  keeper: ClaimKeeper
  /** CM7: a person at the site decides. */
  takeOver(by: string, why: string): ReturnType<ClaimKeeper['takeOver']>
}

export function createEnforcement(deps: EnforcementDeps): Enforcement {
  const { own, setOpen, onClaim, emit, flushReports, kubeEvents } = deps
  let told: ClaimState['kind'] | null = null
  const tell = ({ message, ...named }: Pick<EventStatus, 'type' | 'reason' | 'message'>) => {
    const event = { ...named, message: message.slice(0, 1_000) }
    emit(event)
    try {
      flushReports()
    } catch (error) {
      // A full disk ends no agent: the cluster's own Event reports it, and the claim does not depend on it.
      deps.log.warn('cannot record an event of the claim', { reason: named.reason, error: describeError(error) })
    }
    kubeEvents.write(event, { ref: CLAIM_REF, apiVersion: 'v1', uid: keeper.objectUid() }, { service: '', commit: '' })
  }
  const onChange = (state: ClaimState) => {
    // CM4: once held, only another agent's claim, a person or the server's statement takes it away.
    if (state.kind !== 'asking') setOpen(state.kind === 'held')
    onClaim(state)
    if (state.kind === told) return
    told = state.kind
    if (state.kind === 'removed') tell(warning('ClusterRemoved'))
    if (state.kind === 'unclear') tell(warning('ClaimUnclear', { message: state.message }))
    if (state.kind === 'contested') tell(warning('AnotherAgentActive', { other: claimantText(state.by), own: own.agent }))
  }
  const onChallenge = (challenger: string) => tell(warning('AnotherAgentWaits', { other: challenger }))
  const keeper: ClaimKeeper = new ClaimKeeper({ ...deps, onChange, onChallenge })
  return {
    keeper,
    takeOver(by, why) {
      const answer = keeper.takeOver(by)
      if (answer.kind === 'done') tell(warning('TakenOver.cluster', { done: answer.message, why }))
      return answer
    },
  }
}
