// Drift corpus: what others add to objects of ours, in fields of their own. None of it is drift, and none of it may be
// taken away.
import { configMapYaml, deployment } from './drift-cases-values.ts'
import type { DriftCase } from './drift-site.ts'

const SERVICE = `
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { selector: { app: web }, ports: [{ name: http, port: 80 }, { name: https, port: 443 }] }`

/** A kind of our own for a case: its name carries the case's, because kinds are the whole cluster's. */
export const crd = (properties: string, more = '', scope = 'Namespaced') => `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: things.$NS.example.com }
spec:
  group: $NS.example.com
  names: { kind: Thing, plural: things, singular: thing, listKind: ThingList }
  scope: ${scope}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: { status: {} }
      schema: { openAPIV3Schema: { type: object, properties: ${properties} } }
${more}`
const THING = 'Thing.$NS.example.com/one'
export const thing = (spec: string, version = 'v1') => `
---
apiVersion: $NS.example.com/${version}
kind: Thing
metadata: { name: one }
spec: ${spec}`

export const OTHERS_CASES: readonly DriftCase[] = [
  {
    name: 'a sidecar is injected',
    manifest: deployment(),
    deed: ({ as }) =>
      as('mesh').strategic('Deployment/web', {
        spec: {
          template: {
            spec: { containers: [{ name: 'proxy', image: 'registry.example/proxy:1' }], volumes: [{ name: 'certs', emptyDir: {} }] },
          },
        },
      }),
    drift: null,
    writes: 0,
  },
  {
    name: 'a variable, a port and a mount are added to a container of ours',
    manifest: deployment('', 'env: [{ name: A, value: "1" }]\nports: [{ containerPort: 8080 }]'),
    deed: ({ as }) =>
      as('injector').strategic('Deployment/web', {
        spec: {
          template: {
            spec: { containers: [{ name: 'app', env: [{ name: 'B', value: '2' }], ports: [{ containerPort: 9090, protocol: 'TCP' }] }] },
          },
        },
      }),
    drift: null,
    writes: 0,
  },
  {
    name: 'variables, ports and containers are put in another order',
    manifest: `${deployment('', 'env: [{ name: A, value: "1" }, { name: B, value: "2" }]\nports: [{ containerPort: 1 }, { containerPort: 2 }]')}---${SERVICE}`,
    async deed({ as }) {
      const turn = (list: unknown) => (list as unknown[]).reverse()
      await as('sorter').update('Service/web', (object) => turn((object['spec'] as { ports: unknown }).ports))
      await as('sorter').update('Deployment/web', (object) => {
        const { template } = object['spec'] as { template: { spec: { containers: Array<{ env: unknown; ports: unknown }> } } }
        for (const { env, ports } of template.spec.containers) void [turn(env), turn(ports)]
      })
    },
    drift: null,
    writes: 0,
  },
  {
    name: 'a certificate authority is injected into a webhook',
    manifest: `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: { name: hook-$NS }
webhooks:
  - name: nobody.example.com
    sideEffects: None
    admissionReviewVersions: [v1]
    clientConfig: { service: { name: hook, namespace: $NS, path: / } }
    rules: [{ apiGroups: [nobody.example.com], apiVersions: ["*"], operations: [CREATE], resources: [things] }]`,
    deed: ({ as }) =>
      as('cainjector').update('MutatingWebhookConfiguration/hook-$NS', (object) => {
        const [hook] = object['webhooks'] as Array<{ clientConfig: Record<string, unknown> }>
        if (hook !== undefined) hook.clientConfig['caBundle'] = Buffer.from('-----BEGIN CERTIFICATE-----').toString('base64')
      }),
    drift: null,
    writes: 0,
  },
  {
    name: 'a controller fills an aggregated ClusterRole',
    manifest: aggregated(''),
    deed: fillAggregated,
    drift: null,
    writes: 0,
  },
  {
    name: 'a controller fills an aggregated ClusterRole that is written with empty rules',
    manifest: aggregated('rules: []'),
    deed: fillAggregated,
    drift: null,
    writes: 0,
  },
  {
    name: 'an annotation and a label of somebody else',
    manifest: configMapYaml(),
    async deed({ kubectl }) {
      await kubectl(['annotate', 'configmap', 'settings', 'note.example/why=because'])
      await kubectl(['label', 'configmap', 'settings', 'tier=gold'])
    },
    drift: null,
    writes: 0,
    live: { 'ConfigMap/settings': { metadata: { labels: { tier: 'gold' } } } },
  },
  {
    name: 'a key of somebody else in a ConfigMap of ours',
    manifest: configMapYaml(),
    deed: ({ as }) => as('writer').merge('ConfigMap/settings', { data: { b: '2' } }),
    drift: null,
    writes: 0,
    live: { 'ConfigMap/settings': { data: { a: '1', b: '2' } } },
  },
  {
    name: 'kubectl rollout restart',
    manifest: deployment(),
    deed: ({ kubectl }) => kubectl(['rollout', 'restart', 'deployment/web']),
    drift: null,
    writes: 0,
  },
  {
    name: 'controllers write status',
    manifest: `${deployment()}---${SERVICE.replace('spec: {', 'spec: { type: LoadBalancer,')}`,
    async deed({ as }) {
      for (let n = 1; n <= 3; n += 1) {
        await as('some-controller').merge('Deployment/web', { status: { replicas: n, unavailableReplicas: n } }, 'status')
        await as('some-controller').merge('Service/web', { status: { loadBalancer: { ingress: [{ ip: `192.0.2.${n}` }] } } }, 'status')
      }
    },
    drift: null,
    writes: 0,
  },
  {
    name: 'an operator writes the status of a custom resource',
    manifest:
      crd(
        '{ spec: { type: object, properties: { size: { type: integer } } }, status: { type: object, x-kubernetes-preserve-unknown-fields: true } }',
      ) + thing('{ size: 1 }'),
    deed: ({ as }) => as('operator').merge(THING, { status: { conditions: [{ type: 'Ready', status: 'True' }] } }, 'status'),
    drift: null,
    writes: 0,
  },
  {
    name: 'a kind that keeps unknown fields: an operator adds some',
    manifest:
      crd('{ spec: { type: object, x-kubernetes-preserve-unknown-fields: true } }') +
      thing('{ size: 1, deep: { list: [{ a: 1 }], none: {} } }'),
    deed: ({ as }) => as('operator').merge(THING, { spec: { more: true, deep: { other: [1] } } }),
    drift: null,
    writes: 0,
    live: { [THING]: { spec: { size: 1, more: true } } },
  },
  {
    name: 'defaults in the schema of a kind, and somebody who changes one of them',
    manifest:
      crd(
        '{ spec: { type: object, properties: { size: { type: integer }, colour: { type: string, default: red }, enabled: { type: boolean, default: true } } } }',
      ) + thing('{ size: 1 }'),
    deed: ({ as }) => as('painter').merge(THING, { spec: { colour: 'blue' } }),
    drift: null,
    writes: 0,
    live: { [THING]: { spec: { size: 1, colour: 'blue', enabled: true } } },
  },
  {
    name: 'a template with embedded metadata',
    manifest:
      crd(
        '{ spec: { type: object, properties: { template: { type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true } } } }',
      ) +
      thing(
        '{ template: { apiVersion: v1, kind: Pod, metadata: { name: in, creationTimestamp: null, labels: { a: b } }, spec: { x: 1 } } }',
      ),
    deed: ({ as }) => as('passer-by').merge(THING, { metadata: { annotations: { a: 'b' } } }),
    drift: null,
    writes: 0,
  },
  {
    name: 'a kind in two versions: applied in the old one, stored and touched in the new one',
    manifest: twoVersions(),
    deed: ({ as }) => as('passer-by').update(THING, (object) => void Object.assign(object['spec'] as object, { extra: 'x' }), 'v1'),
    drift: null,
    writes: 0,
  },
  {
    name: 'an owner and a finalizer are added',
    manifest: configMapYaml('a: "1"', 'settings', '').replace('{ name: settings }', '{ name: settings, finalizers: [example.com/ours] }'),
    async deed({ as, get }) {
      await as('owner').create(configMapYaml('x: "1"', 'owner'))
      const owner = await get('ConfigMap/owner')
      const uid = owner?.metadata.uid
      await as('owner').merge('ConfigMap/settings', {
        metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid }] },
      })
      await as('owner').update('ConfigMap/settings', ({ metadata }) => void metadata.finalizers?.push('example.com/theirs'))
    },
    drift: null,
    writes: 0,
    live: { 'ConfigMap/settings': { metadata: { finalizers: ['example.com/ours', 'example.com/theirs'] } } },
  },
  {
    name: 'a load balancer puts a finalizer and a health check port on a Service',
    manifest: SERVICE.replace('spec: {', 'spec: { type: LoadBalancer, externalTrafficPolicy: Local,'),
    deed: ({ as }) => as('cloud').merge('Service/web', { metadata: { finalizers: ['service.kubernetes.io/load-balancer-cleanup'] } }),
    drift: null,
    writes: 0,
  },
  {
    name: 'pull secrets are added to a ServiceAccount',
    manifest: '\napiVersion: v1\nkind: ServiceAccount\nmetadata: { name: web }',
    deed: ({ as }) => as('pull-secrets').merge('ServiceAccount/web', { imagePullSecrets: [{ name: 'registry' }] }),
    drift: null,
    writes: 0,
  },
  {
    name: 'a controller copies our label to an object of a kind that we own something of',
    manifest: `${SERVICE}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: by-hand, labels: { kubernetes.io/service-name: elsewhere } }
addressType: IPv4
endpoints: [{ addresses: [192.0.2.1] }]
ports: [{ port: 80 }]`,
    async deed({ as, get }) {
      const labels = (await get('Service/web'))?.metadata.labels
      const annotations = (await get('Service/web'))?.metadata.annotations
      await as('copier').apply(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: { name: copied, labels: ${JSON.stringify(labels)}, annotations: ${JSON.stringify(annotations)} }
addressType: IPv4
endpoints: []`)
    },
    drift: null,
    writes: 0,
    live: { 'EndpointSlice/copied': {} },
  },
  {
    name: 'somebody applies the same value, owns it with us, and lets go of it',
    manifest: configMapYaml('a: "1"\nb: "2"'),
    async deed({ as }) {
      const other = as('other-gitops')
      await other.apply(configMapYaml('a: "1"'))
      await other.apply(configMapYaml('c: "3"'))
    },
    drift: null,
    writes: 0,
    live: { 'ConfigMap/settings': { data: { a: '1', b: '2', c: '3' } } },
  },
  {
    name: 'somebody applies another value without force and is refused',
    manifest: configMapYaml(),
    async deed({ as }) {
      const refused = await as('polite')
        .apply(configMapYaml('a: "other"'))
        .then(
          () => false,
          () => true,
        )
      if (!refused) throw new Error('the API server let it happen')
    },
    drift: null,
    writes: 0,
  },
  {
    name: 'the same values are written once more: edit, patch, replace',
    manifest: configMapYaml(),
    async deed({ as, kubectl }) {
      await as('editor').merge('ConfigMap/settings', { data: { a: '1' } })
      await as('editor').update('ConfigMap/settings', () => {})
      await kubectl(['patch', 'configmap', 'settings', '-p', '{"data":{"a":"1"}}'])
    },
    drift: null,
    writes: 0,
  },
]

function aggregated(rules: string): string {
  return `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: all-$NS }
aggregationRule: { clusterRoleSelectors: [{ matchLabels: { $NS.example.com/aggregate: "true" } }] }
${rules}`
}

async function fillAggregated({ as, get, ns }: Parameters<DriftCase['deed']>[0]): Promise<void> {
  await as('somebody').create(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: { name: part-of-${ns}, labels: { ${ns}.example.com/aggregate: "true" } }
rules: [{ apiGroups: [""], resources: [pods], verbs: [get] }]`)
  for (let attempt = 0; attempt < 200; attempt += 1) {
    const rules = (await get(`ClusterRole/all-${ns}`))?.['rules']
    if (Array.isArray(rules) && rules.length > 0) return
    await Bun.sleep(50)
  }
  throw new Error('nobody filled the ClusterRole')
}

export function twoVersions(): string {
  const schema =
    'schema: { openAPIV3Schema: { type: object, properties: { spec: { type: object, x-kubernetes-preserve-unknown-fields: true } } } }'
  return `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: things.$NS.example.com }
spec:
  group: $NS.example.com
  names: { kind: Thing, plural: things, singular: thing, listKind: ThingList }
  scope: Namespaced
  conversion: { strategy: None }
  versions:
    - { name: v1, served: true, storage: true, ${schema} }
    - { name: v1beta1, served: true, storage: false, ${schema} }${thing('{ size: 1, list: [{ name: a }] }', 'v1beta1')}`
}
