// Kubernetes Events on users' objects, for people who use kubectl. Pure: decides which agent events become one, and
// their form. core/v1, as client-go's recorder writes them, because `kubectl get events` and `kubectl describe` read
// those fields.
import { createHash } from 'node:crypto'
import { COMMIT_ANNOTATION, SERVICE_LABEL } from '../../../shared/kube/marks.ts'
import type { K8sObject, ObjectRef } from '../../../shared/kube/object.ts'
import type { EventStatus } from '../../../shared/model/status.ts'

/** `problems`: failures and corrections. `all`: also applies, prunes and releases. */
export const KUBE_EVENTS = ['none', 'problems', 'all'] as const
export type KubeEvents = (typeof KUBE_EVENTS)[number]

export const EVENT_CONTROLLER = 'skerry.dev/agent'
const COMPONENT = 'skerry-agent'
/** The limit of Kubernetes' own validation. */
const MESSAGE_CHARS_MAX = 1_024
const NAME_CHARS_MAX = 253

export interface Subject {
  ref: ObjectRef
  apiVersion: string
  /** Null if it was never seen. */
  uid: string | null
}

/** KE2: whether `--kube-events` includes this event. */
export function isWritten(mode: KubeEvents, { type, reason }: Pick<EventStatus, 'type' | 'reason'>, { ref }: Subject): boolean {
  if (mode === 'none' || ref.kind === 'Event') return false
  return mode === 'all' || type === 'Warning' || reason === 'DriftHealed' || reason === 'Restored'
}

/** Events of cluster-scoped objects are in `default`, where Kubernetes itself puts them. */
export const eventNamespace = ({ namespace }: ObjectRef): string => namespace || 'default'

/** KE3: the same object, reason and message have the same name, also after a restart: no event is there twice. */
export function eventName({ ref, uid }: Subject, { type, reason, message }: Pick<EventStatus, 'type' | 'reason' | 'message'>): string {
  const parts = [ref.group, ref.kind, ref.namespace, ref.name, uid ?? '', type, reason, message]
  const hash = createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16)
  const room = NAME_CHARS_MAX - hash.length - 1
  // RBAC objects have names that an Event cannot have.
  const name = ref.name
    .toLowerCase()
    .replace(/[^a-z0-9.-]/g, '-')
    .replace(/\.+/g, '.')
    .slice(0, room)
    .replace(/^[^a-z0-9]+|[^a-z0-9]+$/g, '')
  return name === '' ? hash : `${name}.${hash}`
}

export interface EventCount {
  count: number
  firstMs: number
  lastMs: number
}

export function kubeEvent(
  subject: Subject,
  event: Pick<EventStatus, 'type' | 'reason' | 'message'>,
  { service, commit, agent, times }: { service: string; commit: string; agent: string; times: EventCount },
): K8sObject {
  const { ref, apiVersion, uid } = subject
  const namespace = eventNamespace(ref)
  // An event about the agent itself is of no service.
  const annotations = { ...(service === '' ? {} : { [SERVICE_LABEL]: service }), ...(commit === '' ? {} : { [COMMIT_ANNOTATION]: commit }) }
  const suffix = commit === '' ? '' : ` (commit ${commit.slice(0, 12)})`
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name: eventName(subject, event), namespace, annotations },
    involvedObject: {
      apiVersion,
      kind: ref.kind,
      name: ref.name,
      ...(ref.namespace === '' ? {} : { namespace: ref.namespace }),
      ...(uid === null ? {} : { uid }),
    },
    type: event.type,
    reason: event.reason,
    message: event.message.slice(0, MESSAGE_CHARS_MAX - suffix.length) + suffix,
    count: times.count,
    firstTimestamp: timeOf(times.firstMs),
    lastTimestamp: timeOf(times.lastMs),
    source: { component: COMPONENT },
    reportingComponent: EVENT_CONTROLLER,
    reportingInstance: agent,
  } as K8sObject
}

/** Kubernetes writes whole seconds. */
const timeOf = (ms: number): string => `${new Date(ms).toISOString().slice(0, 19)}Z`

/** The count of an existing Event. Null means that it cannot be continued. */
export function countIn(event: K8sObject): EventCount | null {
  const { count, firstTimestamp, lastTimestamp } = event as { count?: unknown; firstTimestamp?: unknown; lastTimestamp?: unknown }
  const [firstMs, lastMs] = [firstTimestamp, lastTimestamp].map((value) => (typeof value === 'string' ? Date.parse(value) : Number.NaN))
  if (typeof count !== 'number' || firstMs === undefined || lastMs === undefined || Number.isNaN(firstMs) || Number.isNaN(lastMs))
    return null
  return { count, firstMs, lastMs }
}
