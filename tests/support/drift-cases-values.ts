// Drift corpus: what the API server makes of a manifest. Defaults, other spellings of one value, allocated fields:
// nothing of it is drift, whoever touches the object afterwards.
import type { DriftCase, DriftSite } from './drift-site.ts'

export const deployment = (spec = '', container = '') => `
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 1
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers:
        - name: app
          image: registry.example/app:1
${indent(container, 10)}
${indent(spec, 2)}
`
export const indent = (text: string, by: number): string =>
  text
    .trim()
    .split('\n')
    .map((line) => ' '.repeat(by) + line)
    .join('\n')

export const configMapYaml = (data = 'a: "1"', name = 'settings', more = '') => `
apiVersion: v1
kind: ConfigMap
metadata: { name: ${name} }
${more}
data:
${indent(data, 2)}
`

/** Somebody writes to each object without touching anything of ours: now everything is compared. */
const touch =
  (...targets: string[]) =>
  async (site: DriftSite) => {
    for (const target of targets)
      await site.as('passer-by').merge(target, { metadata: { annotations: { 'passer-by.example/was': 'here' } } })
  }
const touched = (name: string, manifest: string, targets: string[], more: Partial<DriftCase> = {}): DriftCase => ({
  name,
  manifest,
  deed: touch(...targets),
  drift: null,
  writes: 0,
  ...more,
})

export const VALUE_CASES: readonly DriftCase[] = [
  touched('defaults of a Deployment', deployment(), ['Deployment/web'], {
    live: { 'Deployment/web': { spec: { progressDeadlineSeconds: 600, revisionHistoryLimit: 10 } } },
  }),
  touched(
    'quantities in other words: 1000m, 3072Mi, 0.5, a bare number',
    deployment(
      '',
      `resources:
  requests: { cpu: 1000m, memory: 3072Mi, ephemeral-storage: 1e9 }
  limits: { cpu: 1.5, memory: 3221225472, ephemeral-storage: 2Gi }`,
    ),
    ['Deployment/web'],
  ),
  touched(
    'protocol of container ports and Service ports is left out',
    `${deployment('', 'ports: [{ containerPort: 8080 }, { containerPort: 9090, name: metrics }]')}
---
apiVersion: v1
kind: Service
metadata: { name: web }
spec:
  selector: { app: web }
  ports: [{ name: http, port: 80, targetPort: 8080 }, { name: metrics, port: 9090 }]`,
    ['Deployment/web', 'Service/web'],
    { live: { 'Service/web': { spec: { type: 'ClusterIP', sessionAffinity: 'None' } } } },
  ),
  touched(
    'one port number twice, TCP and UDP',
    `
apiVersion: v1
kind: Service
metadata: { name: dns }
spec:
  selector: { app: dns }
  ports: [{ name: dns-tcp, port: 53, protocol: TCP }, { name: dns-udp, port: 53, protocol: UDP }]`,
    ['Service/dns'],
  ),
  touched(
    'a Secret from stringData',
    `
apiVersion: v1
kind: Secret
metadata: { name: login }
stringData: { user: shop, password: "1234" }
data: { token: YWJj }`,
    ['Secret/login'],
    { live: { 'Secret/login': { data: { user: 'c2hvcA==', password: 'MTIzNA==', token: 'YWJj' }, stringData: undefined } } },
  ),
  touched(
    'int-or-string as number, percentage and name',
    `${deployment('strategy: { rollingUpdate: { maxSurge: 25%, maxUnavailable: 0 } }', 'ports: [{ name: http, containerPort: 8080 }]')}
---
apiVersion: v1
kind: Service
metadata: { name: web }
spec:
  selector: { app: web }
  ports: [{ name: a, port: 80, targetPort: http }, { name: b, port: 81, targetPort: 8080 }]
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: half }
spec: { minAvailable: 50%, selector: { matchLabels: { app: web } } }
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: { name: one }
spec: { maxUnavailable: 1, selector: { matchLabels: { app: other } } }`,
    ['Deployment/web', 'Service/web', 'PodDisruptionBudget/half', 'PodDisruptionBudget/one'],
  ),
  touched(
    'empty lists and maps',
    `${deployment('paused: false', 'env: []\nresources: {}\nvolumeMounts: []\nsecurityContext: {}')}
---
apiVersion: v1
kind: ConfigMap
metadata: { name: empty, labels: {}, annotations: {} }
data: {}
---
apiVersion: v1
kind: ServiceAccount
metadata: { name: empty }
imagePullSecrets: []
secrets: []`,
    ['Deployment/web', 'ConfigMap/empty', 'ServiceAccount/empty'],
  ),
  touched(
    'nulls anywhere',
    `
apiVersion: apps/v1
kind: Deployment
metadata: { name: web, annotations: null, creationTimestamp: null }
spec:
  replicas: null
  selector: { matchLabels: { app: web } }
  strategy: null
  template:
    metadata: { labels: { app: web }, creationTimestamp: null }
    spec: { containers: [{ name: app, image: "registry.example/app:1", resources: null }], volumes: null }
status: null
---
apiVersion: v1
kind: ConfigMap
metadata: { name: some }
data: { a: null, b: "1" }`,
    ['Deployment/web', 'ConfigMap/some'],
    { live: { 'ConfigMap/some': { data: { b: '1' } }, 'Deployment/web': { spec: { replicas: 1 } } } },
  ),
  touched(
    'the output of kubectl get -o yaml, with status, uid and resourceVersion',
    `
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
  uid: 11111111-2222-3333-4444-555555555555
  resourceVersion: "7"
  generation: 3
  creationTimestamp: "2020-01-01T00:00:00Z"
  managedFields: [{ manager: kubectl, operation: Update, apiVersion: v1, fieldsType: FieldsV1, fieldsV1: { "f:data": {} } }]
data: { a: "1" }
---
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { selector: { app: web }, ports: [{ port: 80 }] }
status: { loadBalancer: {} }`,
    ['ConfigMap/settings', 'Service/web'],
  ),
  touched(
    'metrics of an autoscaler in an order of their own',
    `
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: { name: web }
spec:
  scaleTargetRef: { apiVersion: apps/v1, kind: Deployment, name: nobody }
  maxReplicas: 4
  metrics:
    - { type: Resource, resource: { name: memory, target: { type: Utilization, averageUtilization: 80 } } }
    - { type: Resource, resource: { name: cpu, target: { type: AverageValue, averageValue: 500m } } }`,
    ['HorizontalPodAutoscaler/web'],
  ),
  touched(
    'clusterIP and node ports are allocated',
    `
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { type: NodePort, selector: { app: web }, ports: [{ name: http, port: 80 }, { name: https, port: 443 }] }`,
    ['Service/web'],
  ),
  touched(
    'an Ingress without class, with an empty default',
    `
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: { name: web }
spec:
  rules:
    - host: shop.example
      http: { paths: [{ path: /, pathType: ImplementationSpecific, backend: { service: { name: web, port: { number: 80 } } } }] }
  tls: [{ hosts: [shop.example] }]`,
    ['Ingress/web'],
  ),
  touched(
    'a StatefulSet whose volume claims get their defaults',
    `
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: db }
spec:
  replicas: 0
  serviceName: db
  selector: { matchLabels: { app: db } }
  template:
    metadata: { labels: { app: db } }
    spec: { containers: [{ name: db, image: "registry.example/db:1", volumeMounts: [{ name: data, mountPath: /data }] }] }
  volumeClaimTemplates:
    - metadata: { name: data }
      spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1024Mi } } }`,
    ['StatefulSet/db'],
  ),
  touched(
    'a Job that gets labels and a selector',
    `
apiVersion: batch/v1
kind: Job
metadata: { name: once }
spec: { suspend: true, template: { spec: { restartPolicy: Never, containers: [{ name: a, image: "registry.example/a:1" }] } } }`,
    ['Job/once'],
  ),
  touched(
    'defaults of a CronJob',
    `
apiVersion: batch/v1
kind: CronJob
metadata: { name: nightly }
spec:
  schedule: "0 3 * * *"
  jobTemplate: { spec: { template: { spec: { restartPolicy: OnFailure, containers: [{ name: a, image: "registry.example/a:1" }] } } } }`,
    ['CronJob/nightly'],
  ),
  touched(
    'a NetworkPolicy that selects everything and lets in nothing',
    `
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: closed }
spec: { podSelector: {}, ingress: [], policyTypes: [Ingress] }
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: { name: ports }
spec: { podSelector: {}, ingress: [{ from: [{ podSelector: {} }], ports: [{ port: 80 }, { port: http }] }] }`,
    ['NetworkPolicy/closed', 'NetworkPolicy/ports'],
  ),
  touched(
    'roles, and subjects without a group',
    `
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: { name: reader }
rules: [{ apiGroups: [""], resources: [secrets, configmaps], verbs: [watch, get, list] }]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: { name: readers }
roleRef: { apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader }
subjects: [{ kind: ServiceAccount, name: web, namespace: $NS }, { kind: Group, name: people }]`,
    ['Role/reader', 'RoleBinding/readers'],
  ),
  touched(
    'a webhook configuration and its defaults',
    `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: { name: hook-$NS }
webhooks:
  - name: nobody.example.com
    sideEffects: None
    admissionReviewVersions: [v1]
    clientConfig: { service: { name: hook, namespace: $NS } }
    rules: [{ apiGroups: [nobody.example.com], apiVersions: ["*"], operations: [CREATE], resources: [things] }]`,
    ['ValidatingWebhookConfiguration/hook-$NS'],
  ),
  touched(
    'a PriorityClass and a StorageClass',
    `
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: { name: high-$NS }
value: 1000
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: { name: slow-$NS }
provisioner: nobody.example.com`,
    ['PriorityClass/high-$NS', 'StorageClass/slow-$NS'],
  ),
  touched(
    'a Namespace, which Kubernetes labels by itself',
    `
apiVersion: v1
kind: Namespace
metadata: { name: more-$NS, labels: { team: shop } }`,
    ['Namespace/more-$NS'],
  ),
  touched(
    'binary data and an immutable ConfigMap and Secret',
    `
apiVersion: v1
kind: ConfigMap
metadata: { name: fixed }
immutable: true
data: { a: "1" }
binaryData: { b: "//79" }
---
apiVersion: v1
kind: Secret
metadata: { name: fixed }
immutable: true
type: Opaque
data: { a: "MQ==" }`,
    ['ConfigMap/fixed', 'Secret/fixed'],
  ),
  touched(
    'a token Secret that a controller fills',
    `
apiVersion: v1
kind: Secret
metadata: { name: robot-token, annotations: { kubernetes.io/service-account.name: robot } }
type: kubernetes.io/service-account-token`,
    ['Secret/robot-token'],
    // The token controller deletes a Secret whose account it does not know yet.
    {
      async before({ kubectl }) {
        await kubectl(['create', 'serviceaccount', 'robot'])
        await Bun.sleep(1_000)
      },
    },
  ),
  touched(
    'a Pod into which admission puts tolerations, a volume and limits',
    `
apiVersion: v1
kind: LimitRange
metadata: { name: limits }
spec: { limits: [{ type: Container, default: { cpu: 500m }, defaultRequest: { cpu: 100m } }] }
---
apiVersion: v1
kind: Pod
metadata: { name: lonely }
spec:
  containers: [{ name: a, image: "registry.example/a:1" }]
  tolerations: [{ key: special, operator: Exists }]
  nodeSelector: { nobody: here }`,
    ['LimitRange/limits', 'Pod/lonely'],
  ),
  touched('a large object', configMapYaml(`big: "${'x'.repeat(700_000)}"`), ['ConfigMap/settings']),
  {
    name: 'an env name twice: refused for good, with its place, and never sent again',
    manifest: deployment('', 'env: [{ name: A, value: "1" }, { name: A, value: "2" }]'),
    firstReason: 'Invalid',
    deed: async () => {},
    drift: null,
    writes: 0,
    same: false,
    live: { 'Deployment/web': null },
  },
]
