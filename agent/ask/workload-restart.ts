// Restarts the Pods of a workload as `kubectl rollout restart` does: by an annotation of its Pod template.
import { type ObjectRef, refKey, refText } from '../../shared/kube/object.ts'
import { ASK_REFUSALS } from '../../shared/protocol/ask.ts'
import { restartedLine } from './answer-lines.ts'
import type { AnswerSink } from './answer-writer.ts'
import type { AnswerContext } from './ask-context.ts'
import { AskRefused } from './ask-desk.ts'
import { refusedBy } from './ask-reads.ts'
import { actingFor } from './service-trials.ts'

const RESTARTED_AT = 'kubectl.kubernetes.io/restartedAt'
const KINDS: ReadonlySet<string> = new Set(['Deployment', 'StatefulSet', 'DaemonSet'])

export async function answerRestart(context: AnswerContext, ref: ObjectRef, sink: AnswerSink): Promise<void> {
  const { reads, cluster, clock, state, policy } = context
  if (ref.group !== 'apps' || !KINDS.has(ref.kind))
    throw new AskRefused(ASK_REFUSALS.notFound, `${refText(ref)} cannot be restarted`, 'Restart a Deployment, StatefulSet or DaemonSet.')
  if (policy()?.deny?.includes('apply') === true)
    throw new AskRefused(
      ASK_REFUSALS.policy,
      'refused by the local policy, rule deny: apply',
      'A person at the site decides about this rule.',
    )
  const live = await reads.object(ref)
  if ((live['spec'] as { paused?: boolean } | undefined)?.paused === true)
    throw new AskRefused(ASK_REFUSALS.failed, `${refText(ref)} is paused`, 'Set spec.paused to false first.')
  const at = new Date(clock.nowMs()).toISOString().replace(/\.\d+Z$/, 'Z')
  const owner = state.ownerOf(refKey(ref))
  const resource = await reads.resource(ref)
  const body = {
    metadata: { resourceVersion: live.metadata.resourceVersion },
    spec: { template: { metadata: { annotations: { [RESTARTED_AT]: at } } } },
  }
  const patched = await reads.turn(() => cluster.mergePatch(resource, ref, body, owner === null ? {} : actingFor(context, owner)))
  if (patched.kind === 'failed')
    throw refusedBy(patched.failure, `restart ${refText(ref)}`, { verb: 'patch', resource: resource.plural, group: ref.group })
  await sink.write(restartedLine(ref, at))
}
