// Restarts the Pods of a workload as `kubectl rollout restart` does: by an annotation of its Pod template.
import { type ObjectRef, refKey, refText } from '../../shared/kube/object.ts'
import { answerNote, questionRefusal } from '../messages/question-messages.ts'
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
    throw new AskRefused(questionRefusal('object_not_found.no_workload', { object: refText(ref) }))
  if (policy()?.deny?.includes('apply') === true) throw new AskRefused(questionRefusal('local_policy.apply'))
  const live = await reads.object(ref)
  if ((live['spec'] as { paused?: boolean } | undefined)?.paused === true)
    throw new AskRefused(questionRefusal('question_failed.paused', { object: refText(ref) }))
  const at = new Date(clock.nowMs()).toISOString().replace(/\.\d+Z$/, 'Z')
  const owner = state.ownerOf(refKey(ref))
  const resource = await reads.resource(ref)
  const body = {
    metadata: { resourceVersion: live.metadata.resourceVersion },
    spec: { template: { metadata: { annotations: { [RESTARTED_AT]: at } } } },
  }
  const patched = await reads.turn(() => cluster.mergePatch(resource, ref, body, owner === null ? {} : actingFor(context, owner)))
  if (patched.kind === 'failed')
    throw refusedBy(patched.failure, answerNote('restart', { object: refText(ref) }), {
      verb: 'patch',
      resource: resource.plural,
      group: ref.group,
    })
  await sink.write(restartedLine(ref, at))
}
