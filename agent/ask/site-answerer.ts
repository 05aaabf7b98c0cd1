// Answers questions at the site: what the local policy allows, what belongs to the service that the question is
// confined to, and then the question itself. Each question is in the agent's audit log before it is answered.
import { type ObjectRef, refKey, refText } from '../../shared/kube/object.ts'
import { allowsNamespace } from '../../shared/model/bounds.ts'
import { matchesGlob } from '../../shared/model/source-patterns.ts'
import { type AskFrame, QUESTION_KINDS, type Question, questionSchema } from '../../shared/protocol/ask.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { answerNote, questionRefusal } from '../messages/question-messages.ts'
import type { SitePolicy } from '../reconcile/snapshot/permits.ts'
import { objectLine } from './answer-lines.ts'
import type { AnswerSink } from './answer-writer.ts'
import type { AnswerContext, SiteAnswererDeps } from './ask-context.ts'
import { type AskAnswerer, AskRefused } from './ask-desk.ts'
import { AskReads } from './ask-reads.ts'
import { hidingOf, OWNERS_MAX, ownersOf } from './hiding.ts'
import { answerNodes } from './node-summary.ts'
import { answerEvents, answerTree } from './object-tree.ts'
import { answerLogs } from './pod-log-answer.ts'
import { answerDiff, answerDryRun } from './service-trials.ts'
import { answerRestart } from './workload-restart.ts'

export function createSiteAnswerer(deps: SiteAnswererDeps): AskAnswerer {
  const reads = new AskReads(deps)
  return {
    async answer(frame, sink, signal) {
      const question = readQuestion(frame)
      recordAllowed(deps, frame, () => {
        refuseByOption(deps, question)
        refuseByPolicy(deps.policy(), question)
      })
      await refuseOutside(deps, reads, frame, question)
      await answerQuestion({ ...deps, reads, isConfined: frame.within !== null }, question, sink, signal)
    },
  }
}

/** AK7: also what the site refuses. */
function recordAllowed({ record }: Pick<SiteAnswererDeps, 'record'>, frame: AskFrame, refuse: () => void): void {
  try {
    refuse()
  } catch (error) {
    if (error instanceof AskRefused) record(frame, error.message)
    throw error
  }
  record(frame)
}

async function answerQuestion(context: AnswerContext, question: Question, sink: AnswerSink, signal: AbortSignal): Promise<void> {
  switch (question.kind) {
    case 'object': {
      const { ref, managedFields = false } = question
      const live = await context.reads.object(ref)
      return sink.write(objectLine(live, { managedFields, hiding: await hidingOf(context, live, ref) }))
    }
    case 'tree':
      return answerTree(context, question.ref, sink, signal)
    case 'events':
      return answerEvents(context, question.ref, sink, signal)
    case 'logs':
      return answerLogs(context, question, sink, signal)
    case 'restart':
      return answerRestart(context, question.ref, sink)
    case 'diff':
      return answerDiff(context, question, sink, signal)
    case 'dryRun':
      return answerDryRun(context, question, sink, signal)
    case 'nodes':
      return answerNodes(context, sink, signal)
  }
}

const unknownQuestion = (kind: string): AskRefused => new AskRefused(questionRefusal('question_unknown', { kind }))

function readQuestion({ question }: AskFrame): Question {
  if (!QUESTION_KINDS.some((kind) => kind === question.kind)) throw unknownQuestion(question.kind)
  const read = questionSchema.safeParse(question)
  if (read.success) return read.data
  throw new AskRefused(questionRefusal('question_unknown.parts', { kind: question.kind }))
}

const refOfQuestion = (question: Question): ObjectRef | null => ('ref' in question ? (question.ref ?? null) : null)

/** AK5: refuses a question that the options of the agent do not allow. */
function refuseByOption({ restarts }: Pick<SiteAnswererDeps, 'restarts'>, { kind }: Question): void {
  if (kind === 'restart' && !restarts) throw new AskRefused(questionRefusal('local_policy.no_restarts'))
}

/** AK5: refuses a question that the policy of the site does not allow. */
function refuseByPolicy(policy: SitePolicy | null, question: Question): void {
  const rules = policy?.ask
  if (rules === undefined) return
  if (rules.deny?.some((kind) => kind === '*' || kind === question.kind))
    throw new AskRefused(questionRefusal('local_policy.deny', { kind: question.kind }))
  if ('service' in question) {
    const { project } = question.service
    if (rules.projects !== undefined && !rules.projects.some((name) => matchesGlob(name, project)))
      throw new AskRefused(questionRefusal('local_policy.project', { project }))
  }
  if (rules.namespaces === undefined) return
  const ref = refOfQuestion(question)
  if (ref === null || ref.namespace === '') {
    if (!('service' in question)) throw new AskRefused(questionRefusal('local_policy.cluster_scope'))
  } else if (!allowsNamespace({ namespaces: rules.namespaces }, ref.namespace))
    throw new AskRefused(questionRefusal('local_policy.namespace', { namespace: ref.namespace }))
}

/** AK3: an object of the service, or one that objects of it own. */
async function refuseOutside({ state }: SiteAnswererDeps, reads: AskReads, { within }: AskFrame, question: Question): Promise<void> {
  if (within === null) return
  const outside = (what: string) => new AskRefused(questionRefusal('outside_service.other', { what, service: serviceKey(within) }))
  if ('service' in question && serviceKey(question.service) !== serviceKey(within))
    throw outside(answerNote('service', { service: serviceKey(question.service) }))
  const asked = refOfQuestion(question)
  if (asked === null) {
    if (question.kind === 'nodes') throw outside(answerNote('list_of_nodes'))
    return
  }
  let refs: ObjectRef[] = [asked]
  for (let level = 0; level < OWNERS_MAX && refs.length > 0; level++) {
    if (refs.some((ref) => isOwn(state.ownerOf(refKey(ref)), within))) return
    const owners: ObjectRef[] = []
    for (const ref of refs) {
      const live = await reads.objectOrNull(ref, { metadataOnly: true })
      if (live !== null) owners.push(...ownersOf(live, ref))
    }
    refs = owners.slice(0, OWNERS_MAX)
  }
  throw outside(refText(asked))
}

const isOwn = (owner: ServiceId | null, within: ServiceId): boolean => owner !== null && serviceKey(owner) === serviceKey(within)
