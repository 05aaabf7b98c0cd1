// The parts of the deployments of the corpus: objects with the statuses that kubelets, schedulers and controllers
// write.
import type { K8sObject } from '../../shared/kube/object.ts'

type Part = Record<string, unknown>

/** An object that is applied, as a cluster shows it. */
export interface LiveCase {
  object: K8sObject
  pods?: readonly K8sObject[]
  /** Warnings about the object itself, and about its Pod. */
  events?: ReadonlyArray<{ reason: string; message: string; type?: 'Normal' }>
  podEvents?: ReadonlyArray<{ reason: string; message: string }>
  nodes?: readonly K8sObject[]
}
/** An object that the API server, or the agent, refuses. */
export interface RefusedCase {
  name: string
  reason: string
  message: string
  health?: string
  sync?: string
}
export interface WhyCase {
  name: string
  cause: string
  live?: readonly LiveCase[]
  refused?: readonly RefusedCase[]
  placement?: { reason: string; message: string }
  service?: { reason: string; message: string }
}

const meta = (name: string) => ({ name, namespace: 'shop', uid: `uid-${name}`, generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' })
const condition = (type: string, status: string, reason: string, message = ''): Part => ({ type, status, reason, message })

function deployment(name = 'web', conditions?: readonly Part[]): K8sObject {
  const stalled = condition('Progressing', 'False', 'ProgressDeadlineExceeded', `ReplicaSet "${name}-7d9" has timed out progressing.`)
  const status = { observedGeneration: 1, replicas: 1, updatedReplicas: 1, unavailableReplicas: 1, conditions: conditions ?? [stalled] }
  const spec = { replicas: 1, selector: { matchLabels: { app: name } }, template: { metadata: { labels: { app: name } }, spec: {} } }
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: meta(name), spec, status } as unknown as K8sObject
}
export const refusedPods = (message: string): LiveCase => ({
  object: deployment('web', [
    condition('ReplicaFailure', 'True', 'FailedCreate', message),
    condition('Progressing', 'False', 'ProgressDeadlineExceeded', 'ReplicaSet "web-7d9" has timed out progressing.'),
  ]),
})

export const LABELS = { pool: 'web' }
export const pod = (status: Part, name = 'web-7d9-x2b'): K8sObject =>
  ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { ...meta(name), ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web-7d9', uid: 'rs' }] },
    spec: { nodeSelector: LABELS },
    status,
  }) as unknown as K8sObject
export const container = (state: Part, lastState: Part = {}): Part => ({
  phase: 'Running',
  containerStatuses: [{ name: 'app', state, lastState, ready: false, restartCount: 3 }],
})
export const waiting = (reason: string, message = ''): Part => ({ waiting: { reason, message } })
export const ended = (exitCode: number, reason = 'Error', more: Part = {}): Part => ({ terminated: { exitCode, reason, ...more } })
export const loop = (exitCode: number, reason?: string): Part =>
  container(waiting('CrashLoopBackOff', 'back-off 5m0s restarting failed container=app'), ended(exitCode, reason))
export const unschedulable = (message: string): Part => ({
  phase: 'Pending',
  conditions: [condition('PodScheduled', 'False', 'Unschedulable', message)],
})
export const creating: Part = {
  phase: 'Pending',
  containerStatuses: [{ name: 'app', state: waiting('ContainerCreating'), ready: false }],
  conditions: [condition('Ready', 'False', 'ContainersNotReady', 'containers with unready status: [app]')],
}
export const web = (status: Part, more: Partial<LiveCase> = {}): readonly LiveCase[] => [
  { object: deployment(), pods: [pod(status)], ...more },
]
export const pull = (said: string): readonly LiveCase[] =>
  web(container(waiting('ImagePullBackOff', `Back-off pulling image "registry.example/web:9": ErrImagePull: ${said}`)))
export const unhealthy = (message: string) => [{ reason: 'Unhealthy', message }]

export const claim = (events: LiveCase['events']): LiveCase => ({
  object: {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: meta('data'),
    spec: {},
    status: { phase: 'Pending' },
  } as unknown as K8sObject,
  ...(events === undefined ? {} : { events }),
})
export const job = (reason: string, message: string): K8sObject =>
  ({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: meta('migrate'),
    spec: {},
    status: { failed: 4, conditions: [condition('Failed', 'True', reason, message)] },
  }) as unknown as K8sObject
export const refuse = (name: string, reason: string, message: string): readonly RefusedCase[] => [{ name, reason, message }]
export const tainted = (key: string, labels = {}): K8sObject =>
  ({
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: key, labels },
    spec: { taints: [{ key, effect: 'NoSchedule' }] },
  }) as unknown as K8sObject
export const OTHERS_MISMATCH =
  "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 node(s) didn't match Pod's node affinity/selector."
export const UNBOUND =
  '0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.'
