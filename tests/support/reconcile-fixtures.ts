// A reconciler on the fake API server with time in the test's hand, and the objects that tests of the loop are made of.
import type { ApiFailure } from '../../agent/cluster/cluster.ts'
import { CLAIM_NAMESPACE } from '../../agent/reconcile/claim/claim.ts'
import type { K8sObject, ObjectRef } from '../../shared/kube/object.ts'
import { createFakeCluster, type FakeCluster, type FakeRequest } from './fake-cluster.ts'
import { createReconcileKit, type KitOptions, type ReconcileKit } from './reconcile-kit.ts'
import { createVirtualClock } from './virtual-clock.ts'

const started: ReconcileKit[] = []
/** For afterEach. */
export async function stopAll(): Promise<void> {
  for (const kit of started.splice(0)) await kit.stop()
}
export const track = (kit: ReconcileKit): void => void started.push(kit)

export function setup(options: Partial<KitOptions> = {}) {
  const clock = createVirtualClock()
  const cluster = createFakeCluster({ clock })
  const kit = createReconcileKit({ cluster, clock, ...options })
  track(kit)
  const settle = () => clock.advance(50)
  const run = async () => {
    kit.start()
    await settle()
  }
  return { clock, cluster, kit, settle, run }
}

const WRITES: ReadonlySet<FakeRequest['verb']> = new Set(['apply', 'delete', 'patch'])
export const isClaim = ({ ref }: FakeRequest) => ref?.namespace === CLAIM_NAMESPACE || ref?.name === CLAIM_NAMESPACE
/** `apply ConfigMap a`, in the order in which they arrived since the last call. */
export function writes(cluster: FakeCluster): string[] {
  const seen = cluster.requests.splice(0)
  return seen.filter((request) => WRITES.has(request.verb) && !isClaim(request)).map(({ verb, ref }) => `${verb} ${ref?.kind} ${ref?.name}`)
}
export const requests = (cluster: FakeCluster): string[] =>
  cluster.requests.splice(0).map(({ verb, ref, kind }) => `${verb} ${ref?.kind ?? kind ?? ''} ${ref?.name ?? ''}`.trim())

export const namespace = (name: string): K8sObject => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } }) as K8sObject
export const namespaceRef = (name: string): ObjectRef => ({ group: '', kind: 'Namespace', namespace: '', name })
export const crd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'things.example.com' },
  spec: {
    group: 'example.com',
    names: { kind: 'Thing', plural: 'things', singular: 'thing', listKind: 'ThingList' },
    scope: 'Cluster',
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
} as unknown as K8sObject
export const thing = (name: string, metadata = {}): K8sObject =>
  ({ apiVersion: 'example.com/v1', kind: 'Thing', metadata: { name, ...metadata }, spec: { size: 1 } }) as K8sObject
export const denied: ApiFailure = { kind: 'forbidden', status: 403, reason: 'Forbidden', message: 'quota' }
