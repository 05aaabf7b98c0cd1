// Carries out the steps of a plan, each as soon as there is a place for it. It decides nothing: each step has its
// executor, each executor one request or two, and what came of it is a value. One step's failure never stops another.
import { COMMIT_ANNOTATION, REVISION_ANNOTATION, SERVICE_LABEL, TRACKING_ANNOTATION } from '../../../shared/kube/marks.ts'
import { refKey, refOf } from '../../../shared/kube/object.ts'
import { serviceKey } from '../../../shared/runtime/ids.ts'
import type { Cluster } from '../../cluster/cluster.ts'
import { objectPart } from '../../messages/object-messages.ts'
import { isOurs } from '../plan/plan.ts'
import type { PlanView } from '../plan/plan-view.ts'
import { takesPodsAlong } from '../plan/recreate.ts'
import type { Step, StepOf, StepResult } from '../plan/step.ts'
import type { Ticket } from '../requests/fair-queue.ts'
import { type List, placedCluster, placedList, targetOf } from '../requests/placed-cluster.ts'
import type { Job, RequestScheduler } from '../requests/request-scheduler.ts'
import { isOwnEntry } from '../snapshot/fields/owned-fields.ts'
import type { Contact } from '../snapshot/situation.ts'
import { contactExtent, contactOf, type FirstContacts } from '../snapshot/watch/first-contacts.ts'
import { ownerOf } from '../snapshot/watch/live-object.ts'
import { takeAll } from './replace.ts'
import { applyUnseen, sendApply } from './send-apply.ts'
import { takeOver } from './take-over.ts'
import { TerminatingNamespaces } from './terminating.ts'

export interface ExecuteDeps {
  cluster: Cluster
  /** The registrations whose marks on objects are this cluster's own. */
  own: Pick<PlanView, 'id' | 'clusterId' | 'former'>
  scheduler: RequestScheduler
  /** Shared by all services. */
  firstContacts: FirstContacts
  signal: AbortSignal
  /** RC36: the last attempt of this object was refused for its namespace. */
  wasRefused(key: string): boolean
  /** True: begin nothing more; what is on its way is finished (a newer revision came). */
  isPreempted(): boolean
  /** Called with each result as it arrives. */
  onResult(result: StepResult): void
}

/** `cluster` and `list` are those of the step's place. */
type Hands = Pick<ExecuteDeps, 'cluster' | 'own' | 'firstContacts' | 'signal'> & { list: List }
type Executor<K extends Step['kind']> = (step: StepOf<K>, hands: Hands) => Promise<StepResult>

/** Steps that cost a request. */
type Sent = Exclude<Step['kind'], 'forget'>

const EXECUTORS: { [K in Sent]: Executor<K> } = {
  inspect: inspect,
  apply: async (step, hands) => {
    const { cluster } = hands
    const failure = step.shaped?.take ? await takeOver(cluster, step.resource, step.ref, step.shaped.take) : null
    const trouble = failure ?? (step.replace === undefined ? null : await takeAll(cluster, step.resource, step.ref, step.replace))
    if (trouble !== null) return { kind: 'failed', step, failure: trouble }
    if (step.unseen === true) return applyUnseen(step, { cluster, letGo: (undo) => orphan(undo, hands) })
    const answer = await sendApply(cluster, step, step.force)
    return answer.kind === 'applied' ? { ...answer, step } : { ...answer, step }
  },
  delete: (step, { cluster }) => deleteSeen(step, cluster, {}, { kind: 'gone', step }),
  recreate: (step, { cluster }) => deleteSeen(step, cluster, { foreground: takesPodsAlong(step.ref) }, { kind: 'cleared', step }),
  orphan: orphan,
}

/** PR12: as it was seen when it was judged. */
async function deleteSeen(
  step: StepOf<'delete' | 'recreate'>,
  cluster: Pick<Cluster, 'delete' | 'get'>,
  options: { foreground?: boolean },
  gone: StepResult,
): Promise<StepResult> {
  const { resource, ref, uid, resourceVersion } = step
  const answer = await cluster.delete(resource, ref, uid, { ...options, resourceVersion })
  switch (answer.kind) {
    case 'gone':
      return gone
    case 'replaced': {
      // Another object lives under this name: ours is gone.
      if (step.kind === 'delete') return gone
      const message = objectPart('namesake_created')
      return { kind: 'failed', step, failure: { kind: 'conflict', status: 409, reason: 'Replaced', message } }
    }
    case 'changed': {
      const found = await cluster.get(resource, ref)
      if (found.kind === 'failed') return { kind: 'failed', step, failure: found.failure }
      const isThere = found.kind === 'found' && found.object.metadata.uid === uid
      return isThere ? { kind: 'changed', step, object: found.object } : gone
    }
    default:
      return { ...answer, step }
  }
}

/** RC28: what puts back what is in force is healing. */
function ticketOf(step: StepOf<Sent>, service: string): Ticket {
  const purpose = step.kind === 'apply' && step.why === 'drift' ? 'heal' : 'other'
  return { ...targetOf(step.kind === 'inspect' ? 'read' : 'write', step.resource, step.ref.namespace), service, purpose }
}

/** RC9: as many at once as get a place. Resolves when all are done, or what had begun when it was pre-empted or
 *  stopped. */
export async function execute(steps: readonly Step[], deps: ExecuteDeps): Promise<void> {
  const { scheduler, onResult } = deps
  const service = serviceKey(deps.own.id)
  const terminating = new TerminatingNamespaces(deps.wasRefused)
  const isOver = () => deps.isPreempted() || deps.signal.aborted
  const jobs: Job[] = []
  const byNamespace = new Map<string, Job[]>()
  for (const step of steps) {
    if (step.kind === 'forget') {
      if (!isOver()) onResult({ kind: 'gone', step })
      continue
    }
    const executor = EXECUTORS[step.kind] as Executor<Sent>
    const work: Job['work'] = async (place) => {
      const cluster = placedCluster(deps.cluster, place)
      const foreseen = terminating.foresee(step)
      if (foreseen !== null) return onResult(foreseen)
      const result = await executor(step, { ...deps, cluster, list: placedList(cluster, place) })
      onResult(await terminating.explain(result, cluster))
    }
    const job = { ticket: ticketOf(step, service), work }
    const namespace = terminating.triedFirst(step)
    if (namespace === null) jobs.push(job)
    else byNamespace.set(namespace, [...(byNamespace.get(namespace) ?? []), job])
  }
  const oneFirst = async ([first, ...others]: readonly Job[]) => {
    if (first !== undefined) await scheduler.all(service, [first], isOver)
    await scheduler.all(service, others, isOver)
  }
  await Promise.all([scheduler.all(service, jobs, isOver), ...[...byNamespace.values()].map(oneFirst)])
}

/** More existing objects than this are read by one list: a service that comes from another tool. */
const LOOKS_MAX = 20

async function inspect(step: StepOf<'inspect'>, { cluster, firstContacts, list, signal }: Hands): Promise<StepResult> {
  const contacts = new Map<string, Contact>(step.refs.map((ref) => [refKey(ref), { kind: 'absent', listed: true }]))
  const asked = await firstContacts.maybeThere(step.resource, step.refs)
  if (asked.kind === 'failed') return { kind: 'failed', step, failure: asked.failure }
  if (asked.refs.length > LOOKS_MAX) {
    const { namespace } = step.ref
    const options = { signal, ...contactExtent(step.resource), ...(namespace === '' ? {} : { namespace }) }
    // Only what was asked for is kept.
    const failure = await list(step.resource, options, (object, isThere) => {
      const key = refKey(refOf(object))
      if (contacts.has(key)) contacts.set(key, isThere ? contactOf(object) : { kind: 'absent' })
    })
    return failure === null ? { kind: 'inspected', step, contacts } : { kind: 'failed', step, failure }
  }
  for (const ref of asked.refs) {
    const answer = await cluster.get(step.resource, ref, contactExtent(step.resource))
    if (answer.kind === 'failed') return { kind: 'failed', step, failure: answer.failure }
    contacts.set(refKey(ref), answer.kind === 'found' ? contactOf(answer.object) : { kind: 'absent' })
  }
  return { kind: 'inspected', step, contacts }
}

/** RC12: never an empty apply, which would delete the fields. The resourceVersion guards against a change since the
 *  GET. */
async function orphan(step: StepOf<'orphan'>, { cluster, own }: Hands): Promise<StepResult> {
  const found = await cluster.get(step.resource, step.ref, { metadataOnly: true })
  if (found.kind === 'absent') return { kind: 'gone', step }
  if (found.kind === 'failed') return { kind: 'failed', step, failure: found.failure }
  // RC3: another service took it meanwhile; the mark is that one's, and the field manager is the same for all.
  const owner = ownerOf(found.object)
  if (owner.kind === 'service' && !isOurs(own, { owner })) return { kind: 'gone', step }
  const { resourceVersion, managedFields = [] } = found.object.metadata
  const others = managedFields.filter((entry) => !isOwnEntry(entry))
  const metadata = {
    resourceVersion,
    labels: { [SERVICE_LABEL]: null },
    annotations: { [TRACKING_ANNOTATION]: null, [COMMIT_ANNOTATION]: null, [REVISION_ANNOTATION]: null },
    // An empty list would change nothing; a list of one empty entry means "none" in Kubernetes.
    managedFields: others.length > 0 ? others : [{}],
  }
  const answer = await cluster.mergePatch(step.resource, step.ref, { metadata })
  return answer.kind === 'applied' ? { kind: 'gone', step } : { kind: 'failed', step, failure: answer.failure }
}
