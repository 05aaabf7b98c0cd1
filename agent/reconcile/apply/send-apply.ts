// The request that applies an object, and those that follow where the API server refused it for a reason that can be mended here.
import type { K8sObject } from '../../../shared/kube/object.ts'
import type { ApplyResult, Cluster } from '../../cluster/cluster.ts'
import type { StepOf } from '../plan/step.ts'
import { ownedMember, unchosenMember } from '../snapshot/fields/client-side.ts'
import { dropNulls, sentObject } from '../snapshot/wanted.ts'
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

/** An apply takes away what is ours and is not named any more, and a null takes away nothing: so the member becomes ours first. Null: it could not. */
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
