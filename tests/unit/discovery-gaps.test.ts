// What exists although discovery does not show it.
import { expect, test } from 'bun:test'
import type { ApiFailure, ApiResource, Cluster, Discovery } from '../../agent/cluster/cluster.ts'
import { findGap } from '../../agent/reconcile/apply/discovery-gaps.ts'
import { ServedKinds } from '../../agent/reconcile/snapshot/watch/served-kinds.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { denied } from '../support/reconcile-fixtures.ts'

const resource = (group: string, kind: string, plural: string): ApiResource => ({
  group,
  version: 'v1',
  kind,
  plural,
  namespaced: false,
  verbs: [],
})
const CRDS = resource('apiextensions.k8s.io', 'CustomResourceDefinition', 'customresourcedefinitions')
const SERVICES = resource('apiregistration.k8s.io', 'APIService', 'apiservices')
const BOATS = resource('sea.example', 'Boat', 'boats')

interface Definition {
  established?: string
  served?: boolean
  scope?: string
}
const definition = ({ established = 'True', served = true, scope = 'Namespaced' }: Definition = {}): K8sObject =>
  ({
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'boats.sea.example' },
    spec: { scope, versions: [{ name: 'v1', served }] },
    status: { conditions: [{ type: 'Established', status: established }] },
  }) as unknown as K8sObject
const apiService = (name: string, labels: Record<string, string> = {}): K8sObject =>
  ({ apiVersion: 'apiregistration.k8s.io/v1', kind: 'APIService', metadata: { name, labels } }) as K8sObject

interface World {
  objects?: K8sObject[]
  discovery?: Partial<Discovery>
  /** By the second answer of discovery. */
  later?: ApiResource[]
  failed?: ApiFailure
  namespacedOnly?: boolean
}

async function look({ objects = [], discovery = {}, later, failed, namespacedOnly = false }: World): Promise<string | null> {
  let asked = 0
  const discover = async (): Promise<Discovery> => {
    asked += 1
    const resources = discovery.resources ?? [CRDS, SERVICES]
    return { staleGroups: [], ...discovery, resources: asked > 1 && later !== undefined ? [...resources, ...later] : resources }
  }
  const kinds = new ServedKinds({ discover } as unknown as Cluster)
  await kinds.refresh()
  const failure = await findGap(
    {
      kinds,
      signal: new AbortController().signal,
      get: async (_, { name }) => {
        const object = objects.find(({ metadata }) => metadata.name === name)
        return object === undefined ? { kind: 'absent' } : { kind: 'found', object }
      },
      list: async ({ kind }, _, onObject) => {
        for (const object of objects) if (object.kind === kind) onObject(object, true)
        return failed ?? null
      },
    },
    { namespacedOnly },
  )
  return failure?.reason ?? null
}

const GAP = 'NoDiscovery'
test.each<[string, World, string | null]>([
  ['nothing is defined', {}, null],
  ['its CRD is Established', { objects: [definition()] }, GAP],
  ['discovery shows it', { objects: [definition()], discovery: { resources: [CRDS, SERVICES, BOATS] } }, null],
  ['discovery shows it by now', { objects: [definition()], later: [BOATS] }, null],
  ['its CRD is not Established', { objects: [definition({ established: 'False' })] }, null],
  ['its CRD serves no version', { objects: [definition({ served: false })] }, null],
  ['cluster-scoped, looked for', { objects: [definition({ scope: 'Cluster' })] }, GAP],
  ['cluster-scoped, not looked for', { objects: [definition({ scope: 'Cluster' })], namespacedOnly: true }, null],
  ['CRDs cannot be listed', { failed: denied }, 'Forbidden'],
  ['CRDs are not served', { discovery: { resources: [SERVICES] } }, GAP],
  ['APIServices are not served', { discovery: { resources: [CRDS] } }, null],
  ['an aggregated API is not shown', { objects: [apiService('v1.lake.example')] }, GAP],
  ['an aggregated API is Stale', { objects: [apiService('v1.lake.example')], discovery: { staleGroups: ['lake.example'] } }, null],
  ['an aggregated API of subresources', { objects: [apiService('v1.lake.example')], discovery: { versions: ['lake.example/v1'] } }, null],
  ['metrics', { objects: [apiService('v1beta1.custom.metrics.k8s.io')] }, null],
  ['an APIService of a CRD', { objects: [apiService('v1.sea.example', { 'kube-aggregator.kubernetes.io/automanaged': 'true' })] }, null],
])('IV10 a gap in discovery: %s', async (_, world, expected) => expect(await look(world)).toBe(expected))
