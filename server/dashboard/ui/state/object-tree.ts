// The objects of a service in the order of a page: by phase and wave if the service uses them, and the worst first in
// each. Pure.
import type { ObjectOrder } from '../../../../shared/model/object-order.ts'
import type { ObjectView } from '../../../../shared/model/views.ts'
import type { AskedRef } from '../../../../shared/protocol/ask.ts'
import { byUrgency, type Mark, markOfWords, type Seen, seenOf } from './mark-of.ts'

export const refKey = ({ group, kind, namespace, name }: AskedRef): string => `${group}/${kind}/${namespace}/${name}`
export const refOf = ({ group, kind, namespace, name }: AskedRef): AskedRef => ({ group, kind, namespace, name })

/** The message about an object, without its name at the beginning: its row begins with that, and would have no room for
 *  the rest. */
export function saidOf({ kind, namespace, name }: AskedRef, message: string): string {
  const own = `${kind} ${[namespace, name].filter(Boolean).join('/')}: `
  return message.startsWith(own) ? message.slice(own.length) : message
}

/** Null if the text is not the key of an object. */
export function parseRefKey(key: string): AskedRef | null {
  const [group, kind, namespace, name, ...rest] = key.split('/')
  if (group === undefined || !kind || namespace === undefined || !name || rest.length > 0) return null
  return { group, kind, namespace, name }
}

/** Workloads come before the objects that they use. */
export const runs = ({ group, kind }: Pick<AskedRef, 'group' | 'kind'>): boolean =>
  group === 'apps' || group === 'batch' || (group === '' && kind === 'Pod')

/** Kinds of Kubernetes whose objects own nothing that an agent looks for. All others may have children down to Pods. */
const CHILDLESS: ReadonlySet<string> = new Set([
  ...['ConfigMap', 'Secret', 'ServiceAccount', 'Namespace', 'PersistentVolumeClaim', 'PersistentVolume', 'LimitRange', 'ResourceQuota'],
  ...['Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding', 'NetworkPolicy', 'Ingress', 'IngressClass', 'StorageClass'],
  ...['HorizontalPodAutoscaler', 'PodDisruptionBudget', 'PriorityClass', 'CustomResourceDefinition', 'Pod'],
  ...['ValidatingWebhookConfiguration', 'MutatingWebhookConfiguration', 'APIService', 'RuntimeClass', 'CSIDriver'],
])
export const mayOwn = ({ kind, namespace }: Pick<AskedRef, 'kind' | 'namespace'>): boolean => namespace !== '' && !CHILDLESS.has(kind)

/** Kinds of the group apps that an agent can restart. */
export const RESTARTED: readonly string[] = ['Deployment', 'StatefulSet', 'DaemonSet']
export const canRestart = ({ group, kind }: Pick<AskedRef, 'group' | 'kind'>): boolean => group === 'apps' && RESTARTED.includes(kind)

/** As the cluster reported it last. */
function lastMark(object: ObjectView): Mark {
  const mark = markOfWords(object, object.reason)
  const isDrifting = object.drift !== null && object.drift.action !== 'healed'
  return mark !== 'bad' && isDrifting ? 'drift' : mark
}
export const objectSeen = (object: ObjectView): Seen => seenOf(object, lastMark(object))

/** By what is known last, so that the list of an offline cluster keeps its order. */
export const sortedObjects = (items: readonly ObjectView[]): ObjectView[] =>
  items
    .map((item) => ({ item, mark: lastMark(item) }))
    .sort((a, b) => byUrgency(a.mark, b.mark) || Number(runs(b.item)) - Number(runs(a.item)) || (refKey(a.item) < refKey(b.item) ? -1 : 1))
    .map(({ item }) => item)

export interface ObjectGroup {
  /** The hook phase; ordinary objects have none. */
  phase: string | null
  wave: number
  items: ObjectView[]
}

/** As the agent goes through them; `sync` hooks stand with the objects of the sync. */
const PHASE_PLACES: Readonly<Record<string, number>> = {
  ...{ 'pre-delete': -2, 'pre-sync': -1, sync: 0, 'post-sync': 1, 'sync-fail': 2, 'post-delete': 3 },
}

/** One group: the service has neither waves nor hooks, or its order is not known. */
export function groupsOfObjects(items: readonly ObjectView[], orders: readonly ObjectOrder[]): ObjectGroup[] {
  const byKey = new Map(orders.map((one) => [refKey(one), one]))
  const groups = new Map<string, ObjectGroup>()
  for (const item of sortedObjects(items)) {
    const { wave = 0, phases } = byKey.get(refKey(item)) ?? {}
    const phase = phases?.[0] ?? null
    const key = `${phase} ${wave}`
    const group = groups.get(key) ?? { phase, wave, items: [] }
    group.items.push(item)
    groups.set(key, group)
  }
  const place = ({ phase }: ObjectGroup): number => (phase === null ? 0 : (PHASE_PLACES[phase] ?? 0))
  return [...groups.values()].sort((a, b) => place(a) - place(b) || a.wave - b.wave || Number(b.phase !== null) - Number(a.phase !== null))
}
