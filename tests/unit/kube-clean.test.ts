import { describe, expect, test } from 'bun:test'
import { cleanObject, markObject } from '../../shared/kube/clean.ts'
import type { K8sObject } from '../../shared/kube/object.ts'

const configMap = (extra: Record<string, unknown> = {}, metadata: Record<string, unknown> = {}): K8sObject =>
  ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a', namespace: 'web', ...metadata }, ...extra }) as K8sObject
const secret = (extra: Record<string, unknown>): K8sObject =>
  ({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'a', namespace: 'web' }, ...extra }) as K8sObject

const clusterRole = (fields: object): K8sObject =>
  ({ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name: 'a' }, ...fields }) as K8sObject

const release = (spec: unknown, metadata: Record<string, unknown> = {}): K8sObject =>
  ({ apiVersion: 'helm.toolkit.fluxcd.io/v2', kind: 'HelmRelease', metadata: { name: 'a', ...metadata }, spec }) as K8sObject

describe('RC1 a document is cleaned before it is sent', () => {
  test.each([
    ['status leaves', configMap({ status: { phase: 'x' } }), configMap()],
    ['a resourceVersion would be 409 for ever', configMap({}, { resourceVersion: '7' }), configMap()],
    ['a uid would be "immutable"', configMap({}, { uid: 'u', generation: 3, selfLink: '/x' }), configMap()],
    ['managedFields would be 400', configMap({}, { managedFields: [{ manager: 'x' }] }), configMap()],
    ['a null creationTimestamp', configMap({}, { creationTimestamp: null }), configMap()],
    ['a null in a map of strings would become ""', configMap({ data: { a: null, b: 'x' } }), configMap({ data: { b: 'x' } })],
    [
      'a key that every object has',
      configMap(JSON.parse('{"data":{"__proto__":"x","a":null}}')),
      configMap(JSON.parse('{"data":{"__proto__":"x"}}')),
    ],
    ['nulls deep in lists of maps', configMap({ list: [{ a: null, b: 1 }] }), configMap({ list: [{ b: 1 }] })],
    [
      'RC25 nulls of a custom resource stay',
      release({ values: { a: null, b: [{ c: null }] } }),
      release({ values: { a: null, b: [{ c: null }] } }),
    ],
    [
      'RC25 nulls in the metadata of a custom resource leave: an annotation would become ""',
      release({ a: null }, { labels: null, creationTimestamp: null, annotations: { a: null, b: 'x' } }),
      release({ a: null }, { annotations: { b: 'x' } }),
    ],
    ['RC25 a null status of a custom resource leaves', { ...release({}), status: null }, release({})],
    ['empty maps, lists and strings stay', configMap({ data: {}, list: [], text: '' }), configMap({ data: {}, list: [], text: '' })],
    ['zero and false stay', configMap({ n: 0, b: false }), configMap({ n: 0, b: false })],
    ['stringData becomes data', secret({ stringData: { a: 'grün' } }), secret({ data: { a: 'Z3LDvG4=' } })],
    [
      'stringData wins over data, as in Kubernetes',
      secret({ data: { a: 'eA==', b: 'eQ==' }, stringData: { a: 'z' } }),
      secret({ data: { a: 'eg==', b: 'eQ==' } }),
    ],
    [
      'rules of an aggregated ClusterRole are a controller’s',
      clusterRole({ aggregationRule: {}, rules: [] }),
      clusterRole({ aggregationRule: {} }),
    ],
    ['rules of any other ClusterRole stay', clusterRole({ rules: [] }), clusterRole({ rules: [] })],
    ['stringData of another kind is left alone', configMap({ stringData: { a: 'x' } }), configMap({ stringData: { a: 'x' } })],
  ])('RC1 %s', (_, input, expected) => {
    const before = JSON.stringify(input)
    expect(cleanObject(input)).toEqual(expected)
    expect(JSON.stringify(input)).toBe(before)
  })
})

test('RC2 the marks name service, cluster and object, beside the labels of the manifest', () => {
  const marked = markObject(configMap({}, { labels: { app: 'a' } }), 'c-0123456789abcdef', { project: 'web', service: 'shop' })
  expect(marked.metadata.labels).toEqual({ app: 'a', 'skerry.dev/service': 'web.shop' })
  expect(marked.metadata.annotations).toEqual({ 'skerry.dev/tracking': 'c-0123456789abcdef/web/shop:/ConfigMap/web/a' })
})
