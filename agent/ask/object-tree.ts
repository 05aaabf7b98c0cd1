// The children of an object down to Pods, by owner references, each with its health and reason; and the events of an
// object.
import { healthOf } from '../../shared/kube/health.ts'
import { groupOf, type K8sObject, type ObjectRef, refOf } from '../../shared/kube/object.ts'
import { isSecretKind } from '../cluster/redact/shown-fields.ts'
import { answerNote } from '../messages/question-messages.ts'
import { childLine, eventLine, noteLine, type Subject } from './answer-lines.ts'
import type { AnswerSink } from './answer-writer.ts'
import type { AnswerContext } from './ask-context.ts'
import { hidingOf, isHiddenKind } from './hiding.ts'

const DEPTH_MAX = 6
export const CHILDREN_MAX = 2_000
export const EVENTS_MAX = 500

/** Kinds that controllers of Kubernetes make for others, by the kinds that own them; others may own any of these. */
const CHILD_KINDS: ReadonlyArray<Pick<ObjectRef, 'group' | 'kind'>> = [
  { group: 'apps', kind: 'Deployment' },
  { group: 'apps', kind: 'StatefulSet' },
  { group: 'apps', kind: 'DaemonSet' },
  { group: 'apps', kind: 'ReplicaSet' },
  { group: 'batch', kind: 'Job' },
  { group: '', kind: 'Pod' },
  { group: '', kind: 'PersistentVolumeClaim' },
  { group: 'discovery.k8s.io', kind: 'EndpointSlice' },
]
const OWNED: Readonly<Record<string, readonly string[]>> = {
  Deployment: ['ReplicaSet', 'Pod'],
  StatefulSet: ['Pod', 'PersistentVolumeClaim'],
  DaemonSet: ['Pod'],
  ReplicaSet: ['Pod'],
  Job: ['Pod'],
  CronJob: ['Job', 'Pod'],
  Service: ['EndpointSlice'],
  Pod: [],
}

export async function answerTree(context: AnswerContext, ref: ObjectRef, sink: AnswerSink, signal: AbortSignal): Promise<void> {
  const { reads, clock } = context
  const root = await reads.object(ref)
  const hidingOfRoot = await hidingOf(context, root, ref)
  const tell = (object: K8sObject, parent: string | null) => {
    const { word: health, reason, message } = healthOf(object, clock.nowMs())
    const [ownRef, uid] = [refOf(object), object.metadata.uid ?? '']
    const hiding = isHiddenKind(context.policy(), ownRef) ? 'hidden' : hidingOfRoot
    return sink.write(childLine({ ref: ownRef, uid, parent, health, reason, message }, { hiding, documents: [object, root] }))
  }
  await tell(root, null)
  const isKnown = groupOf(root.apiVersion) === '' || ['apps', 'batch'].includes(groupOf(root.apiVersion))
  const kinds = CHILD_KINDS.filter(({ kind }) => !isKnown || OWNED[root.kind] === undefined || OWNED[root.kind]?.includes(kind))
  const labelSelector = selectorOf(root)
  const candidates: K8sObject[] = []
  for (const kind of ref.namespace === '' ? [] : kinds) {
    if (signal.aborted) return
    // Pods and ReplicaSets of a workload have the labels that it selects by; claims do not.
    const narrow = labelSelector !== null && (kind.kind === 'Pod' || kind.kind === 'ReplicaSet') ? { labelSelector } : {}
    const listed = await reads.list(kind, { namespace: ref.namespace, fromCache: true, signal, ...narrow })
    if (listed.why !== null) await sink.write(noteLine(listed.why))
    candidates.push(...(listed.items ?? []))
  }
  const byOwner = Map.groupBy(
    candidates.flatMap((object) => (object.metadata.ownerReferences ?? []).map(({ uid }) => ({ uid, object }))),
    ({ uid }) => uid,
  )
  let told = 0
  const descend = async (parent: K8sObject, depth: number): Promise<void> => {
    const uid = parent.metadata.uid ?? ''
    const children = (byOwner.get(uid) ?? []).map(({ object }) => object).toSorted((a, b) => order(a).localeCompare(order(b)))
    for (const child of children) {
      if (signal.aborted || ++told > CHILDREN_MAX) return
      await tell(child, uid)
      if (depth < DEPTH_MAX) await descend(child, depth + 1)
    }
  }
  await descend(root, 1)
  if (told > CHILDREN_MAX) await sink.write(noteLine(answerNote('children_cut', { most: CHILDREN_MAX })))
}

const order = ({ kind, metadata }: K8sObject): string => `${kind} ${metadata.name ?? ''}`

/** The label selector of a workload, for a list; null without one, or if it has expressions. */
export function selectorOf(object: K8sObject): string | null {
  const selector = (object['spec'] as { selector?: { matchLabels?: Record<string, string>; matchExpressions?: unknown[] } } | undefined)
    ?.selector
  const labels = selector?.matchLabels
  if (labels === undefined || typeof labels !== 'object' || (selector?.matchExpressions?.length ?? 0) > 0) return null
  const pairs = Object.entries(labels).map(([key, value]) => `${key}=${value}`)
  return pairs.length === 0 ? null : pairs.join(',')
}

/** Events of an object that is gone are about nothing that is at hand. */
async function subjectOf(context: AnswerContext, ref: ObjectRef): Promise<Subject> {
  const isSecret = isSecretKind(ref.kind)
  const live = await context.reads.objectIfReadable(ref)
  if (live === null || live === 'unreadable')
    return { hiding: isHiddenKind(context.policy(), ref) ? 'hidden' : 'nothing', documents: [], isSecret }
  return { hiding: await hidingOf(context, live, ref), documents: [live], isSecret }
}

interface KubeEvent {
  type?: string
  reason?: string
  message?: string
  count?: number
  series?: { count?: number; lastObservedTime?: string } | null
  lastTimestamp?: string | null
  eventTime?: string | null
  source?: { component?: string }
  reportingComponent?: string
}

/** Oldest first. */
export async function answerEvents(context: AnswerContext, ref: ObjectRef, sink: AnswerSink, signal: AbortSignal): Promise<void> {
  const fields = { kind: ref.kind, name: ref.name, ...(ref.namespace === '' ? {} : { namespace: ref.namespace }) }
  const fieldSelector = Object.entries(fields)
    .map(([field, value]) => `involvedObject.${field}=${value}`)
    .join(',')
  const where = ref.namespace === '' ? {} : { namespace: ref.namespace }
  const listed = await context.reads.list({ group: '', kind: 'Event' }, { ...where, fieldSelector, signal })
  if (listed.why !== null) await sink.write(noteLine(listed.why))
  if (listed.items === null) return
  const subject = await subjectOf(context, ref)
  const events = listed.items.map((object) => {
    const event = object as unknown as KubeEvent
    const at = event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? object.metadata.creationTimestamp ?? ''
    return { event, at: String(at) }
  })
  if (events.length > EVENTS_MAX) await sink.write(noteLine(answerNote('events_cut', { most: EVENTS_MAX, count: events.length })))
  for (const { event, at } of events.toSorted((a, b) => a.at.localeCompare(b.at)).slice(-EVENTS_MAX)) {
    const { type = '', reason = '', message = '', series, count = 1, source, reportingComponent } = event
    const who = source?.component || reportingComponent || ''
    await sink.write(eventLine({ type, reason, message, count: series?.count ?? count, at, source: who }, subject))
  }
}
