// The request that applies an object, and the further requests after a refusal that can be resolved here.
import { otherOwner } from '../../../shared/kube/foreign-owners.ts'
import { type K8sObject, refKey } from '../../../shared/kube/object.ts'
import type { ApplyResult, Cluster } from '../../cluster/cluster.ts'
import type { StepOf, StepResult } from '../plan/step.ts'
import { ownedMember, unchosenMember } from '../snapshot/fields/client-side.ts'
import type { Contact } from '../snapshot/situation.ts'
import { dropNulls, sentObject } from '../snapshot/wanted.ts'
import { contactExtent, contactOf } from '../snapshot/watch/first-contacts.ts'
import { patchManagedFields } from './take-over.ts'

type Writes = Pick<Cluster, 'apply' | 'get' | 'mergePatch'>

/** One request. Refused as invalid, it is sent again without the member that a union does not choose (RC35), or without
 *  its nulls (RC25). `withoutNulls`: the document that was applied in the end. */
export async function sendApply(cluster: Writes, step: StepOf<'apply'>, force: boolean): Promise<ApplyResult & { withoutNulls?: string }> {
  const object = sentObject(step)
  const answer = await cluster.apply(step.resource, object, { force })
  if (answer.kind !== 'failed' || answer.failure.kind !== 'invalid') return answer
  const member = unchosenMember(object)
  if (member !== null && answer.failure.message.includes(member.join('.'))) {
    return (await applyWithoutMember(cluster, step, object, member, force)) ?? answer
  }
  const doc = dropNulls(step.doc)
  if (doc === null) return answer
  const again = await cluster.apply(step.resource, sentObject({ ...step, doc }), { force })
  // Refused all the same: the nulls were not the reason.
  return again.kind === 'failed' ? again : { ...again, withoutNulls: doc }
}

/** An apply removes owned fields that are no longer named, and a null removes nothing: so ownership of the member is
 *  taken first. Null means that this failed. */
async function applyWithoutMember(
  cluster: Writes,
  { resource, ref }: StepOf<'apply'>,
  object: K8sObject,
  member: readonly string[],
  force: boolean,
): Promise<ApplyResult | null> {
  const failure = await patchManagedFields(cluster, resource, ref, (live) => ownedMember(live, member, force))
  return failure === null ? cluster.apply(resource, object, { force }) : null
}

interface Hands {
  cluster: Writes
  /** Removes our marks and fields again. */
  letGo(step: StepOf<'orphan'>): Promise<StepResult>
}

/**
 * RC19: the first apply of an object that is not in a list of names. The list may be some seconds old. If an object of
 * that name exists now, its fields are not overwritten, and the fields written beside them are released again, so that
 * RC3 is decided by the real state.
 */
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
