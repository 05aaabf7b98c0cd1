// Drift corpus: objects that another tool applied before Git had them, autoscalers, rules, admission, and revisions
// that meet what others did.
import { crd, thing } from './drift-cases-others.ts'
import { configMapYaml, deployment } from './drift-cases-values.ts'
import type { DriftCase, DriftSite } from './drift-site.ts'
import { until } from './watch-probe.ts'

const SETTINGS = 'ConfigMap/settings'
const THING = 'Thing.$NS.example.com/one'
const TWO_KEYS = configMapYaml('a: "1"\nb: "2"')
const marked = (yaml: string, metadata: string) => yaml.replace('{ name: settings }', `{ name: settings, ${metadata} }`)
const touchIt = ({ as }: DriftSite) => as('passer-by').merge(SETTINGS, { metadata: { annotations: { 'passer-by.example/was': 'here' } } })
const LAST_APPLIED = 'kubectl.kubernetes.io/last-applied-configuration'

/** Before Git had it, somebody applied `a` and `b`; Git names only `a`. The take-over is a patch and an apply. */
const takenOver = (name: string, before: NonNullable<DriftCase['before']>, more: Partial<DriftCase> = {}): DriftCase => ({
  name,
  manifest: configMapYaml(),
  before,
  firstWrites: 2,
  deed: touchIt,
  drift: null,
  writes: 0,
  live: { [SETTINGS]: { data: { a: '1', b: undefined } } },
  ...more,
})
const TAKE = { options: { sync: { takeover: true } } } satisfies Partial<DriftCase>

const AUTOSCALER = `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: { name: web }
spec: { scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: web }, minReplicas: 2, maxReplicas: 5 }`

/** An API server takes a new policy into account some time after it was written. */
async function stamped(kubectl: DriftSite['kubectl'], ns: string): Promise<void> {
  const probe = ['create', 'configmap', 'probe', '-n', ns, '--dry-run=server', '-o', 'json']
  await until('the policy is in force', async () => (await kubectl(probe)).includes('stamped'))
}

export const TOOL_CASES: readonly DriftCase[] = [
  takenOver('once applied by kubectl, client-side', ({ kubectl }) => kubectl(['apply', '-f', '-'], TWO_KEYS), {
    live: { [SETTINGS]: { data: { a: '1', b: undefined }, metadata: { annotations: { [LAST_APPLIED]: undefined } } } },
  }),
  takenOver('once applied by kubectl, client-side, and edited since', async ({ kubectl }) => {
    await kubectl(['apply', '-f', '-'], configMapYaml())
    await kubectl(['patch', 'configmap', 'settings', '-p', '{"data":{"b":"2"}}'])
  }),
  takenOver('once made by kubectl create', ({ kubectl }) => kubectl(['create', '-f', '-'], TWO_KEYS)),
  takenOver('once applied by kubectl, server-side', ({ kubectl }) => kubectl(['apply', '--server-side', '-f', '-'], TWO_KEYS)),
  takenOver(
    'once installed by Helm 3',
    ({ as }) => as('helm').create(marked(TWO_KEYS, 'annotations: { meta.helm.sh/release-name: shop, meta.helm.sh/release-namespace: x }')),
    TAKE,
  ),
  takenOver(
    'once installed by Helm 4, server-side',
    ({ as }) => as('helm').apply(marked(TWO_KEYS, 'annotations: { meta.helm.sh/release-name: shop, meta.helm.sh/release-namespace: x }')),
    TAKE,
  ),
  takenOver(
    'once synced by Argo CD, client-side',
    ({ as }) =>
      as('argocd-controller').create(marked(TWO_KEYS, 'annotations: { argocd.argoproj.io/tracking-id: "shop:/ConfigMap:x/settings" }')),
    TAKE,
  ),
  takenOver(
    'once synced by Argo CD, server-side',
    ({ as }) => as('argocd-controller').apply(marked(TWO_KEYS, 'labels: { argocd.argoproj.io/instance: shop }')),
    TAKE,
  ),
  takenOver(
    'once applied by Flux',
    ({ as }) => as('kustomize-controller').apply(marked(TWO_KEYS, 'labels: { kustomize.toolkit.fluxcd.io/name: shop }')),
    TAKE,
  ),
  {
    name: 'a Deployment that kubectl applied: a variable and a label that Git dropped really go',
    manifest: deployment('', 'env: [{ name: A, value: "1" }]'),
    before: ({ kubectl }) =>
      kubectl(
        ['apply', '-f', '-'],
        deployment('', 'env: [{ name: A, value: "1" }, { name: OLD, value: "1" }]').replace(
          '{ name: web }',
          '{ name: web, labels: { old: label } }',
        ),
      ),
    firstWrites: 2,
    deed: ({ kubectl }) => kubectl(['rollout', 'restart', 'deployment/web']),
    drift: null,
    writes: 0,
    live: { 'Deployment/web': { metadata: { labels: { old: undefined } } } },
  },
  {
    name: 'somebody else’s fields on an object that is adopted stay',
    manifest: configMapYaml(),
    before: async ({ as, kubectl }) => {
      await kubectl(['apply', '-f', '-'], TWO_KEYS)
      await as('some-controller').merge(SETTINGS, { data: { c: '3' } })
    },
    firstWrites: 2,
    deed: touchIt,
    drift: null,
    writes: 0,
    live: { [SETTINGS]: { data: { a: '1', b: undefined, c: '3' } } },
  },
  {
    name: 'kubectl apply, client-side, with the same values: its notes are cleared away',
    manifest: configMapYaml(),
    deed: ({ kubectl }) => kubectl(['apply', '-f', '-'], configMapYaml()),
    drift: null,
    writes: 2,
    live: { [SETTINGS]: { metadata: { annotations: { [LAST_APPLIED]: undefined } } } },
  },
  {
    name: 'an autoscaler of somebody else scales a Deployment of ours',
    manifest: deployment(),
    before: ({ as }) => as('somebody').create(AUTOSCALER),
    deed: ({ as }) => as('kube-controller-manager').merge('Deployment/web', { spec: { replicas: 3 } }, 'scale'),
    drift: null,
    writes: 0,
    same: false,
    live: { 'Deployment/web': { spec: { replicas: 3 } } },
  },
  {
    name: 'an autoscaler of the service scales its Deployment',
    manifest: `${deployment()}---${AUTOSCALER}`,
    deed: ({ as }) => as('kube-controller-manager').merge('Deployment/web', { spec: { replicas: 4 } }, 'scale'),
    drift: null,
    writes: 0,
    same: false,
    live: { 'Deployment/web': { spec: { replicas: 4 } } },
  },
  {
    name: 'a Deployment without replicas is scaled by hand',
    manifest: deployment().replace('replicas: 1', 'minReadySeconds: 1'),
    deed: ({ kubectl }) => kubectl(['scale', 'deployment/web', '--replicas=3']),
    drift: null,
    writes: 0,
    live: { 'Deployment/web': { spec: { replicas: 3 } } },
  },
  {
    name: 'a field that a rule leaves to others',
    manifest: deployment(),
    options: { ignore: [{ kind: 'Deployment', jsonPointers: ['/spec/replicas', '/spec/no/such/field'] }] },
    deed: ({ kubectl }) => kubectl(['scale', 'deployment/web', '--replicas=3']),
    drift: null,
    writes: 0,
    same: false,
    live: { 'Deployment/web': { spec: { replicas: 3 } } },
  },
  {
    name: 'a manager that a rule leaves alone, and another who is not it',
    manifest: TWO_KEYS,
    options: { ignore: [{ kind: 'ConfigMap', managers: ['friend'] }] },
    deed: async ({ as, seen }) => {
      await as('friend').merge(SETTINGS, { data: { a: 'friend' } })
      await seen(SETTINGS)
      await as('stranger').merge(SETTINGS, { data: { b: 'stranger' } })
    },
    drift: { target: SETTINGS, paths: ['.data.b'], manager: 'stranger' },
    writes: 1,
    same: false,
    live: { [SETTINGS]: { data: { a: 'friend', b: '2' } } },
  },
  {
    name: 'empty data is filled by a controller',
    manifest: configMapYaml('', 'settings').replace(/data:\s*$/, 'data: {}'),
    deed: ({ as }) => as('ca-injector').merge(SETTINGS, { data: { 'ca.crt': 'x' } }),
    drift: null,
    writes: 0,
    live: { [SETTINGS]: { data: { 'ca.crt': 'x' } } },
  },
  {
    name: 'empty resources and an empty security context are filled by somebody',
    manifest: deployment('', 'resources: {}\nsecurityContext: {}\nenv: []'),
    deed: ({ as }) =>
      as('right-sizer').strategic('Deployment/web', {
        spec: {
          template: {
            spec: {
              containers: [
                {
                  name: 'app',
                  resources: { limits: { cpu: '1' } },
                  securityContext: { runAsNonRoot: true },
                  env: [{ name: 'B', value: '2' }],
                },
              ],
            },
          },
        },
      }),
    drift: null,
    writes: 0,
  },
  {
    name: 'an empty map and an empty list in a custom resource are filled by its operator',
    manifest:
      crd(
        '{ spec: { type: object, properties: { options: { type: object, additionalProperties: { type: string } }, users: { type: array, x-kubernetes-list-type: set, items: { type: string } }, loose: { type: object, x-kubernetes-preserve-unknown-fields: true } } } }',
      ) + thing('{ options: {}, users: [], loose: { deep: {} } }'),
    deed: ({ as }) => as('operator').merge(THING, { spec: { options: { a: 'b' }, loose: { deep: { found: 'it' } } } }),
    drift: null,
    writes: 0,
    live: { [THING]: { spec: { options: { a: 'b' }, loose: { deep: { found: 'it' } } } } },
  },
  {
    name: 'a claim is made larger by hand, and cannot be made smaller again',
    manifest: `
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: { name: grows-$NS }
provisioner: kubernetes.io/host-path
allowVolumeExpansion: true
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: data }
spec: { storageClassName: grows-$NS, accessModes: [ReadWriteOnce], resources: { requests: { storage: 1024Mi } } }`,
    async deed({ kubectl }) {
      await kubectl(['wait', '--for=jsonpath={.status.phase}=Bound', 'pvc/data', '--timeout=20s'])
      await kubectl(['patch', 'pvc', 'data', '-p', '{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}'])
    },
    drift: {
      target: 'PersistentVolumeClaim/data',
      paths: ['.spec.resources.requests.storage'],
      manager: 'kubectl-patch',
      action: 'failed',
    },
    writes: 1,
    same: false,
    live: { 'PersistentVolumeClaim/data': { spec: { resources: { requests: { storage: '2Gi' } } } } },
  },
  {
    name: 'a new revision changes an immutable Secret: refused, and what was applied stays in force',
    manifest: '\napiVersion: v1\nkind: Secret\nmetadata: { name: fixed }\nimmutable: true\nstringData: { a: one }',
    deed: ({ revise }) => revise('\napiVersion: v1\nkind: Secret\nmetadata: { name: fixed }\nimmutable: true\nstringData: { a: two }'),
    drift: null,
    writes: 1,
    same: false,
    live: { 'Secret/fixed': { data: { a: 'b25l' } } },
  },
  {
    name: 'a new revision drops a key, which goes, beside a key of somebody else, which stays',
    manifest: TWO_KEYS,
    async deed({ as, revise }) {
      await as('writer').merge(SETTINGS, { data: { c: '3' } })
      await revise(configMapYaml())
    },
    drift: null,
    writes: 1,
    same: false,
    live: { [SETTINGS]: { data: { a: '1', b: undefined, c: '3' } } },
  },
  {
    name: 'admission changes a value of ours at each write',
    needs: 'MutatingAdmissionPolicy',
    manifest: configMapYaml(),
    before: async ({ as, kubectl, ns }) => {
      await as('policy').apply(
        `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: { name: stamp-$NS }
spec:
  matchConstraints:
    namespaceSelector: { matchLabels: { kubernetes.io/metadata.name: $NS } }
    resourceRules: [{ apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps] }]
  failurePolicy: Fail
  reinvocationPolicy: Never
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration: { expression: "Object{metadata: Object.metadata{labels: {'stamped': 'yes'}}, data: {'a': 'stamped'}}" }
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: { name: stamp-$NS }
spec: { policyName: stamp-$NS }`,
      )
      await stamped(kubectl, ns)
    },
    deed: touchIt,
    drift: null,
    writes: 0,
    same: false,
  },
]
