// Jobs, Deployments and their ends, for tests of waves and hooks on the fake API server.
import { type K8sObject, type ObjectRef, refKey } from '../../shared/kube/object.ts'
import type { FakeCluster } from './fake-cluster.ts'

export const WAVE = 'skerry.dev/wave'
export const POLICY = 'skerry.dev/hook-delete-policy'
const HOOK = 'skerry.dev/hook'

export const jobRef = (name: string): ObjectRef => ({ group: 'batch', kind: 'Job', namespace: 'default', name })
export const jobKey = (name: string): string => refKey(jobRef(name))
export const job = (name: string, annotations: Record<string, string>): K8sObject =>
  ({
    apiVersion: 'batch/v1',
    kind: 'Job',
    metadata: { name, namespace: 'default', annotations },
    spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'a', image: 'a' }] } } },
  }) as unknown as K8sObject
export const hook = (name: string, phase: string, more: Record<string, string> = {}): K8sObject => job(name, { [HOOK]: phase, ...more })
export const annotated = (object: K8sObject, annotations: Record<string, string>): K8sObject => ({
  ...object,
  metadata: { ...object.metadata, annotations: { ...object.metadata.annotations, ...annotations } },
})
export const waved = (object: K8sObject, wave: number): K8sObject => annotated(object, { [WAVE]: String(wave) })
export const hooked = (object: K8sObject, phase: string, more: Record<string, string> = {}): K8sObject =>
  annotated(object, { [HOOK]: phase, ...more })

export const deploymentRef = (name: string): ObjectRef => ({ group: 'apps', kind: 'Deployment', namespace: 'default', name })
export const deployment = (name: string, image = 'a:1'): K8sObject =>
  ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: {
      replicas: 1,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'a', image }] } },
    },
  }) as unknown as K8sObject

const condition = (type: string, message = '') => ({ conditions: [{ type, status: 'True', reason: type, message }] })
export const succeed = (cluster: FakeCluster, name: string) => cluster.setStatus(jobRef(name), { ...condition('Complete'), succeeded: 1 })
export const fail = (cluster: FakeCluster, name: string) => cluster.setStatus(jobRef(name), condition('Failed', 'it has no database'))
export const ready = (cluster: FakeCluster, name: string) =>
  cluster.setStatus(deploymentRef(name), {
    observedGeneration: cluster.object(deploymentRef(name))?.metadata.generation,
    replicas: 1,
    updatedReplicas: 1,
    availableReplicas: 1,
    readyReplicas: 1,
  })
export const jobs = (cluster: FakeCluster): string[] =>
  cluster.objects().flatMap(({ kind, metadata }) => (kind === 'Job' ? [metadata.name ?? ''] : []))
