// Plays nodes and their kubelets: nodes in several conditions that stay as they are, and the statuses and Events of
// Pods. The scheduler and the controllers beside them are real.
import type { ApiResource } from '../../agent/cluster/cluster.ts'
import { objectPath } from '../../agent/cluster/discovery.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { eventually } from './kube-cluster.ts'
import { APPLY_PATCH, MERGE_PATCH, resourceNamed, type Somebody } from './real-cluster.ts'

/** Status and Events that the kubelet tells of the first Pod of a namespace. */
export interface PodScript {
  status: Record<string, unknown>
  /** Warnings that come before the status. */
  events?: ReadonlyArray<{ reason: string; message: string }>
}

interface PlayedNode {
  spec?: object
  ready?: 'True' | 'Unknown'
  pressure?: true
}
/** The first one is well and has room; the scheduler can use no other without a toleration. */
export const NODES = {
  well: {},
  full: { pressure: true },
  lost: { ready: 'Unknown' },
  gpu: { spec: { taints: [{ key: 'dedicated', value: 'gpu', effect: 'NoSchedule' }] } },
  cordoned: { spec: { unschedulable: true } },
} as const satisfies Record<string, PlayedNode>

export const onNode = (name: keyof typeof NODES) => ({ nodeSelector: { 'kubernetes.io/hostname': name } })

/** Below the patience of the node lifecycle controller, 50 s. */
const HEARTBEAT_MS = 10_000
const LOOK_MS = 250
const JSON_TYPE = 'application/json'

export async function startKubelets(
  { http }: Somebody,
  resources: readonly ApiResource[],
  scriptOf: (namespace: string) => PodScript | undefined,
): Promise<{ stop(): Promise<void> }> {
  const [nodes, pods, events] = ['Node', 'Pod', 'Event'].map((kind) => resourceNamed(resources, kind, '')) as [
    ApiResource,
    ApiResource,
    ApiResource,
  ]
  const request = async (method: 'GET' | 'PATCH' | 'DELETE', of: ApiResource, path: string, body?: { type: string; json: unknown }) => {
    const answer = await http.request({ method, path, plural: of.plural, ...(body === undefined ? {} : { body }) })
    if (answer.kind === 'failed') throw new Error(`${method} ${path}: ${answer.failure.message}`)
    return answer.body
  }
  const apply = (of: ApiResource, path: string, json: unknown) =>
    request('PATCH', of, `${path}?fieldManager=kubelet&force=true`, { type: APPLY_PATCH, json })

  const beat = async () => {
    for (const [name, node] of Object.entries(NODES)) await apply(nodes, `${objectPath(nodes, '', name)}/status`, nodeStatus(name, node))
  }
  const played = new Set<string>()
  const play = async (pod: K8sObject): Promise<void> => {
    const { namespace = '', name = '', deletionTimestamp } = pod.metadata
    const path = objectPath(pods, namespace, name)
    if (deletionTimestamp !== undefined) {
      await request('DELETE', pods, path, { type: JSON_TYPE, json: { gracePeriodSeconds: 0 } }).catch(() => {})
      return
    }
    const script = scriptOf(namespace)
    if (script === undefined || played.has(namespace)) return
    played.add(namespace)
    for (const [index, event] of (script.events ?? []).entries())
      await apply(events, objectPath(events, namespace, `${name}.${index}`), eventAbout(pod, `${name}.${index}`, event))
    await request('PATCH', pods, `${path}/status`, { type: MERGE_PATCH, json: { status: podStatus(script.status) } })
  }

  for (const [name, node] of Object.entries(NODES)) await apply(nodes, objectPath(nodes, '', name), nodeObject(name, node))
  await beat()
  const isUsable = async () => taintsOf((await request('GET', nodes, objectPath(nodes, '', 'well'))) as K8sObject).length === 0
  await eventually('the first node has no taints', isUsable)

  const over = new AbortController()
  const every = async (ms: number, work: () => Promise<void>) => {
    while (!over.signal.aborted) {
      await systemClock.sleep(ms, over.signal)
      // A Pod may be deleted, or changed by a controller, in between: the next look sees it again.
      if (!over.signal.aborted) await work().catch(() => {})
    }
  }
  const look = async () => {
    const { items } = (await request('GET', pods, '/api/v1/pods')) as { items: K8sObject[] }
    for (const pod of items) if ((pod['spec'] as { nodeName?: string }).nodeName !== undefined) await play(pod)
  }
  const running = [every(HEARTBEAT_MS, beat), every(LOOK_MS, look)]
  return {
    async stop() {
      over.abort()
      await Promise.all(running)
    },
  }
}

const taintsOf = (node: K8sObject): unknown[] => (node['spec'] as { taints?: unknown[] } | undefined)?.taints ?? []

const nodeObject = (name: string, { spec = {} }: PlayedNode): object => ({
  ...{ apiVersion: 'v1', kind: 'Node', spec },
  metadata: { name, labels: { 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64', 'kubernetes.io/hostname': name } },
})

function nodeStatus(name: string, { ready = 'True', pressure }: PlayedNode): object {
  const now = new Date().toISOString()
  const amounts = { cpu: '8', memory: '16Gi', pods: '110' }
  const condition = (type: string, status: string, reason: string) => ({
    ...{ type, status, reason, message: reason },
    ...{ lastHeartbeatTime: now, lastTransitionTime: '2026-01-01T00:00:00Z' },
  })
  const conditions = [
    condition('Ready', ready, ready === 'True' ? 'KubeletReady' : 'NodeStatusUnknown'),
    condition('DiskPressure', pressure ? 'True' : 'False', pressure ? 'KubeletHasDiskPressure' : 'KubeletHasNoDiskPressure'),
  ]
  return { apiVersion: 'v1', kind: 'Node', metadata: { name }, status: { capacity: amounts, allocatable: amounts, conditions } }
}

/** With the members that the API server requires. */
function podStatus(status: Record<string, unknown>): Record<string, unknown> {
  const whole = (statuses: unknown) =>
    (statuses as object[]).map((one) => ({ image: 'app:1', imageID: '', restartCount: 0, ready: false, ...one }))
  return {
    startTime: new Date().toISOString(),
    conditions: [
      { type: 'PodScheduled', status: 'True' },
      { type: 'Ready', status: 'False', reason: 'ContainersNotReady', message: 'containers with unready status: [app]' },
    ],
    ...Object.fromEntries(Object.entries(status).map(([name, value]) => [name, name.endsWith('tatuses') ? whole(value) : value])),
  }
}

function eventAbout(pod: K8sObject, name: string, { reason, message }: { reason: string; message: string }): object {
  const now = new Date().toISOString()
  const { namespace, uid } = pod.metadata
  return {
    ...{ apiVersion: 'v1', kind: 'Event', metadata: { name, namespace }, type: 'Warning', reason, message },
    ...{ source: { component: 'kubelet' }, firstTimestamp: now, lastTimestamp: now, count: 1 },
    involvedObject: { apiVersion: 'v1', kind: 'Pod', namespace, name: pod.metadata.name, uid },
  }
}
