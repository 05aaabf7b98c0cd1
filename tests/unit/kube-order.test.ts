import { expect, test } from 'bun:test'
import type { ObjectRef } from '../../shared/kube/object.ts'
import { compareApply, comparePrune, stageNameOf } from '../../shared/kube/order.ts'

const ref = (group: string, kind: string, name = 'x'): ObjectRef => ({ group, kind, namespace: '', name })

test.each([
  ['', 'Namespace', 'namespace'],
  ['apiextensions.k8s.io', 'CustomResourceDefinition', 'definition'],
  ['rbac.authorization.k8s.io', 'ClusterRole', 'configuration'],
  ['', 'ServiceAccount', 'configuration'],
  ['', 'Secret', 'configuration'],
  ['', 'PersistentVolumeClaim', 'configuration'],
  ['storage.k8s.io', 'StorageClass', 'configuration'],
  ['scheduling.k8s.io', 'PriorityClass', 'configuration'],
  ['', 'Service', 'service'],
  ['apps', 'Deployment', 'workload'],
  ['batch', 'CronJob', 'workload'],
  ['autoscaling', 'HorizontalPodAutoscaler', 'scaling'],
  ['networking.k8s.io', 'Ingress', 'scaling'],
  ['apiregistration.k8s.io', 'APIService', 'extension'],
  ['admissionregistration.k8s.io', 'ValidatingWebhookConfiguration', 'extension'],
  ['project.openshift.io', 'Project', 'tenancy'],
  ['hnc.x-k8s.io', 'SubnamespaceAnchor', 'tenancy'],
  ['example.com', 'Project', 'custom'],
  ['example.com', 'Thing', 'custom'],
  ['snapshot.storage.k8s.io', 'VolumeSnapshotClass', 'custom'], // ends with k8s.io and is a CRD all the same
  ['serving.knative.dev', 'Service', 'custom'], // the kind alone says nothing
] as const)('OR1 %s/%s is of stage %s', (group, kind, stage) => expect(stageNameOf({ group, kind })).toBe(stage))

const MIXED = [
  ref('example.com', 'Thing'),
  ref('apps', 'Deployment'),
  ref('', 'ConfigMap', 'b'),
  ref('apiextensions.k8s.io', 'CustomResourceDefinition'),
  ref('', 'ConfigMap', 'a'),
  ref('', 'Namespace'),
  ref('', 'Service'),
  ref('project.openshift.io', 'Project'),
]

test('OR1 the same set has one order, whatever order it came in', () => {
  const expected = ['Namespace', 'CustomResourceDefinition', 'Project', 'ConfigMap', 'ConfigMap', 'Service', 'Deployment', 'Thing']
  expect([...MIXED].sort(compareApply).map(({ kind }) => kind)).toEqual(expected)
  expect([...MIXED].reverse().sort(compareApply)).toEqual([...MIXED].sort(compareApply))
})

test('OR2 custom resources go first, CRDs and Namespaces last', () => {
  const kinds = [...MIXED].sort(comparePrune).map(({ kind }) => kind)
  expect(kinds).toEqual(['Thing', 'Deployment', 'Service', 'ConfigMap', 'ConfigMap', 'Project', 'CustomResourceDefinition', 'Namespace'])
})
