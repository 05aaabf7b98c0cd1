// Carries out the steps of a plan, a bounded number at a time. It decides nothing: each step has its executor, each executor one request or two,
// and what came of it is a value. One step's failure never stops another.
import { deletionText } from '../../shared/kube/deletion.ts'
import { SERVICE_LABEL, TRACKING_ANNOTATION } from '../../shared/kube/marks.ts'
import { type K8sObject, refKey, refOf } from '../../shared/kube/object.ts'
import type { Cluster } from '../cluster/cluster.ts'
import { listOnce } from '../cluster/list-once.ts'
import { takesPodsAlong } from './apply/recreate.ts'
import { takeAll } from './apply/replace.ts'
import { CALM, type Load, type RequestGate } from './apply/request-gate.ts'
import { TerminatingNamespaces } from './apply/terminating.ts'
import { otherFieldsOf } from './fields/other-fields.ts'
import { isOwnEntry } from './fields/owned-fields.ts'
import { takeOver } from './fields/take-over.ts'
import { isOurs } from './plan.ts'
import type { PlanView } from './plan-view.ts'
import type { Contact } from './situation.ts'
import type { Step, StepOf, StepResult } from './step.ts'
import type { FirstContacts } from './watch/first-contacts.ts'
import { ownerOf } from './watch/live-object.ts'
import { applyUnseen } from './watch/unseen.ts'

export interface ExecuteDeps {
  cluster: Cluster
  /** Whose marks are ours. */
  own: Pick<PlanView, 'id' | 'clusterId'>
  gate: RequestGate
  /** Of all services together. */
  firstContacts: FirstContacts
  signal: AbortSignal
  /** True: begin nothing more; what is on its way is finished (a newer revision came). */
  isPreempted(): boolean
  /** Told of each result as it comes. */
  onResult(result: StepResult): void
}

type Executor<K extends Step['kind']> = (step: StepOf<K>, deps: ExecuteDeps) => Promise<StepResult>

const EXECUTORS: { [K in Step['kind']]: Executor<K> } = {
  inspect: inspect,
  apply: async (step, deps) => {
    const { cluster } = deps
    const failure = step.shaped?.take ? await takeOver(cluster, step.resource, step.ref, step.shaped.take) : null
    const trouble = failure ?? (step.replace === undefined ? null : await takeAll(cluster, step.resource, step.ref, step.replace))
    if (trouble !== null) return { kind: 'failed', step, failure: trouble }
    if (step.unseen === true) return applyUnseen(step, { cluster, contactOf, letGo: (undo) => orphan(undo, deps) })
    const answer = await cluster.apply(step.resource, JSON.parse(step.doc) as K8sObject, { force: step.force })
    return answer.kind === 'applied' ? { ...answer, step } : { ...answer, step }
  },
  delete: async (step, { cluster }) => {
    const { resourceVersion } = step
    const answer = await cluster.delete(step.resource, step.ref, step.uid, resourceVersion === undefined ? {} : { resourceVersion })
    switch (answer.kind) {
      case 'gone':
      case 'replaced': // another object lives under this name: ours is gone
        return { kind: 'gone', step }
      case 'changed': {
        const found = await cluster.get(step.resource, step.ref)
        if (found.kind === 'failed') return { kind: 'failed', step, failure: found.failure }
        const isThere = found.kind === 'found' && found.object.metadata.uid === step.uid
        return isThere ? { kind: 'changed', step, object: found.object } : { kind: 'gone', step }
      }
      default:
        return { ...answer, step }
    }
  },
  recreate: async (step, { cluster }) => {
    const answer = await cluster.delete(step.resource, step.ref, step.uid, { foreground: takesPodsAlong(step.ref) })
    switch (answer.kind) {
      case 'gone':
        return { kind: 'cleared', step }
      case 'replaced':
      case 'changed': {
        const message = 'somebody made another object of this name while it was to be deleted'
        return { kind: 'failed', step, failure: { kind: 'conflict', status: 409, reason: 'Replaced', message } }
      }
      default:
        return { ...answer, step }
    }
  },
  orphan: orphan,
  forget: async (step) => ({ kind: 'gone', step }),
}

function loadOf(result: StepResult): Load {
  if (result.kind !== 'failed') return CALM
  const { kind, retryAfterMs } = result.failure
  const overload = kind === 'throttled' || kind === 'unreachable' || kind === 'server_error'
  return kind === 'throttled' ? { overload, pauseMs: retryAfterMs } : { overload }
}

/** RC9: as many at once as the gate lets through. Resolves when all are done, or what had begun when it was pre-empted or stopped. */
export async function execute(steps: readonly Step[], deps: ExecuteDeps): Promise<void> {
  const { gate } = deps
  const terminating = new TerminatingNamespaces(deps.cluster)
  let next = 0
  const worker = async () => {
    for (;;) {
      const step = steps[next]
      if (step === undefined || deps.isPreempted() || deps.signal.aborted) return
      next += 1
      const executor = EXECUTORS[step.kind] as Executor<Step['kind']>
      deps.onResult(await terminating.explain(await gate.run(() => executor(step, deps), loadOf)))
    }
  }
  await Promise.all(Array.from({ length: Math.min(gate.limit(), steps.length) }, worker))
}

/** More objects than this that are there already are looked at by one list: a service that comes from another tool. */
const LOOKS_MAX = 20

async function inspect(step: StepOf<'inspect'>, { cluster, firstContacts, signal }: ExecuteDeps): Promise<StepResult> {
  const contacts = new Map<string, Contact>(step.refs.map((ref) => [refKey(ref), { kind: 'absent', listed: true }]))
  const asked = await firstContacts.maybeThere(step.resource, step.refs)
  if (asked.kind === 'failed') return { kind: 'failed', step, failure: asked.failure }
  if (asked.refs.length > LOOKS_MAX) {
    const { namespace } = step.ref
    // Only what was asked for is kept.
    const failure = await listOnce(cluster, step.resource, { signal, ...(namespace === '' ? {} : { namespace }) }, (object, isThere) => {
      const key = refKey(refOf(object))
      if (contacts.has(key)) contacts.set(key, isThere ? contactOf(object) : { kind: 'absent' })
    })
    return failure === null ? { kind: 'inspected', step, contacts } : { kind: 'failed', step, failure }
  }
  for (const ref of asked.refs) {
    const answer = await cluster.get(step.resource, ref)
    if (answer.kind === 'failed') return { kind: 'failed', step, failure: answer.failure }
    contacts.set(refKey(ref), answer.kind === 'found' ? contactOf(answer.object) : { kind: 'absent' })
  }
  return { kind: 'inspected', step, contacts }
}

function contactOf(object: K8sObject): Contact {
  const others = otherFieldsOf(object)
  return { kind: 'present', owner: ownerOf(object), deleting: deletionText(object), ...(others === null ? {} : { others }) }
}

/** RC12: never an empty apply, which would delete the fields. The resourceVersion guards against a change since the GET. */
async function orphan(step: StepOf<'orphan'>, { cluster, own }: ExecuteDeps): Promise<StepResult> {
  const found = await cluster.get(step.resource, step.ref)
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
    annotations: { [TRACKING_ANNOTATION]: null },
    // An empty list would change nothing; a list of one empty entry is how Kubernetes wants to be told "none".
    managedFields: others.length > 0 ? others : [{}],
  }
  const answer = await cluster.mergePatch(step.resource, step.ref, { metadata })
  return answer.kind === 'applied' ? { kind: 'gone', step } : { kind: 'failed', step, failure: answer.failure }
}
