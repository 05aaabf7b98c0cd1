import { expect, test } from 'bun:test'
import { declaredScopes, scopeOf } from '../../server/render/kind-scope.ts'

const crd = (scope: string) => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'regions.example.com' },
  spec: { group: 'example.com', names: { kind: 'Region' }, scope },
})

test.each([
  ['', 'ConfigMap', 'namespaced'],
  ['', 'Namespace', 'cluster'],
  ['apps', 'Deployment', 'namespaced'],
  ['rbac.authorization.k8s.io', 'ClusterRole', 'cluster'],
  ['rbac.authorization.k8s.io', 'Role', 'namespaced'],
  ['storage.k8s.io', 'CSIStorageCapacity', 'namespaced'],
  ['snapshot.storage.k8s.io', 'VolumeSnapshotClass', 'unknown'],
  ['example.com', 'Region', 'cluster'],
  ['example.com', 'Other', 'unknown'],
  ['constructor', 'toString', 'unknown'],
] as const)('RN4 %s/%s is %s', (group, kind, expected) => expect(scopeOf(group, kind, declaredScopes([crd('Cluster')]))).toBe(expected))

test('RN4 a definition without a readable scope declares none', () => {
  expect(scopeOf('example.com', 'Region', declaredScopes([crd('Galaxy'), { ...crd('Cluster'), spec: null }]))).toBe('unknown')
})
