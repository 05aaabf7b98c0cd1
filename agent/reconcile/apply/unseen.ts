// The first apply of an object that a list of names did not know (RC19). The list may be some seconds old, so whoever made an object of that name since is met here: what
// they own is not overwritten, and what was written beside it is taken back, so that RC3 is judged by what is really there.
import { otherOwner } from '../../../shared/kube/foreign-owners.ts'
import { refKey } from '../../../shared/kube/object.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import type { StepOf, StepResult } from '../plan/step.ts'
import type { Contact } from '../snapshot/situation.ts'
import { contactExtent, contactOf } from '../snapshot/watch/first-contacts.ts'
import { sendApply } from './send-apply.ts'

interface Hands {
  cluster: Pick<Cluster, 'apply' | 'get' | 'mergePatch'>
  /** Takes our marks and fields off again. */
  letGo(step: StepOf<'orphan'>): Promise<StepResult>
}

/** Null: nobody is there, or nobody who minds: the answer is the apply's own. */
export async function applyUnseen(step: StepOf<'apply'>, { cluster, letGo }: Hands): Promise<StepResult> {
  const { key, ref, resource } = step
  const answer = await sendApply(cluster, step, false)
  if (answer.kind === 'failed' && answer.failure.kind !== 'conflict') return { ...answer, step }
  if (answer.kind === 'applied') {
    if (answer.created || otherOwner(answer.object.metadata, ref) === null) return { ...answer, step }
    const gone = await letGo({ kind: 'orphan', key, ref, resource })
    if (gone.kind === 'failed') return { kind: 'failed', step, failure: gone.failure }
  }
  const found = await cluster.get(resource, ref, contactExtent(resource))
  if (found.kind === 'failed') return { kind: 'failed', step, failure: found.failure }
  const contact: Contact = found.kind === 'found' ? contactOf(found.object) : { kind: 'absent' }
  return { kind: 'inspected', step: { kind: 'inspect', key, ref, resource, refs: [ref] }, contacts: new Map([[refKey(ref), contact]]) }
}
