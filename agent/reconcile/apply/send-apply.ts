// The request that applies an object, and the second one that some custom resources need.
import type { ApplyResult, Cluster } from '../../cluster/cluster.ts'
import type { StepOf } from '../plan/step.ts'
import { dropNulls, sentObject } from '../snapshot/wanted.ts'

/** RC25: one request, and a second one where the first was refused and the document has nulls. `withoutNulls`: the document that was applied in the end. */
export async function sendApply(
  cluster: Pick<Cluster, 'apply'>,
  step: StepOf<'apply'>,
  force: boolean,
): Promise<ApplyResult & { withoutNulls?: string }> {
  const answer = await cluster.apply(step.resource, sentObject(step), { force })
  const doc = answer.kind === 'failed' && answer.failure.kind === 'invalid' ? dropNulls(step.doc) : null
  if (doc === null) return answer
  const again = await cluster.apply(step.resource, sentObject({ ...step, doc }), { force })
  // Refused all the same: the nulls were not the reason.
  return again.kind === 'failed' ? again : { ...again, withoutNulls: doc }
}
