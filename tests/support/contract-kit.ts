// The documents and the requests that the cases of the Cluster contract are written in.
import type { ApiResource, Cluster } from '../../agent/cluster/cluster.ts'
import { SERVICE_LABEL } from '../../shared/kube/marks.ts'
import { type K8sObject, type ObjectRef, refOf } from '../../shared/kube/object.ts'
import { until } from './watch-probe.ts'

export interface ClusterHarness {
  cluster: Cluster
  /** A merge patch by somebody else. */
  patchAs(manager: string, ref: ObjectRef, body: Record<string, unknown>): Promise<void>
  /** A server-side apply by somebody else. */
  applyAs(manager: string, object: K8sObject): Promise<void>
  /** From now on admission refuses every ConfigMap of this namespace that has the label `denied`. */
  deny(namespace: string, message: string): Promise<void>
  /** From now on this user may do everything with ConfigMaps of this namespace, and nothing else. */
  permit(user: string, namespace: string): Promise<void>
  stop(): Promise<void>
}

export const LABELS = { [SERVICE_LABEL]: 'demo.app' }
export const configMap = (
  namespace: string,
  name: string,
  data: Record<string, string>,
  metadata: Record<string, unknown> = {},
): K8sObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name, namespace, labels: LABELS, ...metadata },
  data,
})

/** The same ConfigMap with other data and no labels, as another manager would apply it. */
export const bare = ({ metadata: { name, namespace } }: K8sObject, data: Record<string, string>): K8sObject => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { ...(name === undefined ? {} : { name }), ...(namespace === undefined ? {} : { namespace }) },
  data,
})

export const deployment = (namespace: string, name: string, container: Record<string, unknown> = {}): K8sObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name, namespace, labels: LABELS },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: name } },
    template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'app:1', ...container }] } },
  },
})

/** `version`: what is other in its only version. */
export const crd = (group: string, version: Record<string, unknown> = {}): K8sObject => ({
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: `boats.${group}` },
  spec: {
    group,
    scope: 'Namespaced',
    names: { plural: 'boats', singular: 'boat', kind: 'Boat', listKind: 'BoatList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: { type: 'object', properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } } },
        },
        ...version,
      },
    ],
  },
})

/** An APIService that no server stands behind. */
export const deadApiService = (group: string): K8sObject => ({
  apiVersion: 'apiregistration.k8s.io/v1',
  kind: 'APIService',
  metadata: { name: `v1.${group}` },
  spec: {
    group,
    version: 'v1',
    groupPriorityMinimum: 100,
    versionPriority: 100,
    insecureSkipTLSVerify: true,
    service: { name: 'nobody', namespace: 'default' },
  },
})

let namespaces = 0

export type ContractKit = ReturnType<typeof contractKit>

/** Each case has a namespace of its own, so that one server serves all. `harness` and `resources` are there once it has
 *  started. */
export function contractKit(harness: () => ClusterHarness, resources: () => readonly ApiResource[]) {
  const resource = (kind: string): ApiResource => {
    const found = resources().find((candidate) => candidate.kind === kind)
    if (found === undefined) throw new Error(`${kind} is not served`)
    return found
  }
  const apply = (object: K8sObject, options: { force?: boolean; dryRun?: boolean } = {}) =>
    harness().cluster.apply(resource(object.kind), object, { force: true, ...options })
  const applied = async (object: K8sObject): Promise<{ object: K8sObject; created: boolean }> => {
    const result = await apply(object)
    if (result.kind === 'failed') throw new Error(`apply failed: ${JSON.stringify(result.failure)}`)
    return result
  }
  const failureOf = async (object: K8sObject, options: { force?: boolean } = {}) => {
    const result = await apply(object, options)
    if (result.kind !== 'failed') throw new Error(`apply did not fail: ${JSON.stringify(result.object)}`)
    return result.failure
  }
  const get = (object: K8sObject) => harness().cluster.get(resource(object.kind), refOf(object))
  const live = async (object: K8sObject): Promise<K8sObject> => {
    const result = await get(object)
    if (result.kind !== 'found') throw new Error(`not found: ${JSON.stringify(result)}`)
    return result.object
  }
  const namespace = async (metadata: Record<string, unknown> = {}): Promise<string> => {
    namespaces += 1
    const namespaceName = `case-${namespaces}`
    await applied({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespaceName, ...metadata } })
    return namespaceName
  }
  /** What a CRD says of itself; other kinds say nothing. */
  const established = (object: K8sObject) =>
    until('Established', async () => {
      if (object.kind !== 'CustomResourceDefinition') return true
      const { status } = (await live(object)) as { status?: { conditions?: Array<{ type: string; status: string }> } }
      return status?.conditions?.some(({ type, status: value }) => type === 'Established' && value === 'True')
    })
  const uidOf = (object: K8sObject): string => object.metadata.uid ?? ''
  const ourFields = (object: K8sObject): string =>
    JSON.stringify(
      object.metadata.managedFields?.find(({ manager, operation }) => manager === 'skerry' && operation === 'Apply')?.fieldsV1 ?? {},
    )
  return { harness, resources, resource, apply, applied, failureOf, get, live, namespace, established, uidOf, ourFields }
}
