// The kinds of the benchmark corpus and what an object of each looks like.
import type { Random } from '../../shared/runtime/random.ts'
import type { Faker } from './faker.ts'

export interface CorpusKind {
  apiVersion: string
  kind: string
  /** How common it is. */
  weight: number
  cluster: boolean
}

const kind = (apiVersion: string, name: string, weight: number, cluster = false): CorpusKind => ({
  apiVersion,
  kind: name,
  weight,
  cluster,
})

export const CORPUS_KINDS: readonly CorpusKind[] = [
  kind('v1', 'ConfigMap', 16),
  kind('v1', 'Secret', 9),
  kind('v1', 'Service', 12),
  kind('v1', 'ServiceAccount', 8),
  kind('v1', 'PersistentVolumeClaim', 4),
  kind('v1', 'LimitRange', 1),
  kind('v1', 'ResourceQuota', 1),
  kind('apps/v1', 'Deployment', 16),
  kind('apps/v1', 'StatefulSet', 4),
  kind('apps/v1', 'DaemonSet', 2),
  kind('batch/v1', 'Job', 2),
  kind('batch/v1', 'CronJob', 3),
  kind('networking.k8s.io/v1', 'Ingress', 5),
  kind('networking.k8s.io/v1', 'NetworkPolicy', 5),
  kind('autoscaling/v2', 'HorizontalPodAutoscaler', 4),
  kind('policy/v1', 'PodDisruptionBudget', 3),
  kind('rbac.authorization.k8s.io/v1', 'Role', 5),
  kind('rbac.authorization.k8s.io/v1', 'RoleBinding', 5),
  kind('rbac.authorization.k8s.io/v1', 'ClusterRole', 2, true),
  kind('rbac.authorization.k8s.io/v1', 'ClusterRoleBinding', 2, true),
  kind('storage.k8s.io/v1', 'StorageClass', 1, true),
  kind('scheduling.k8s.io/v1', 'PriorityClass', 1, true),
  kind('admissionregistration.k8s.io/v1', 'ValidatingWebhookConfiguration', 1, true),
  kind('cert-manager.io/v1', 'Certificate', 3),
  kind('monitoring.coreos.com/v1', 'ServiceMonitor', 3),
  kind('monitoring.coreos.com/v1', 'PrometheusRule', 2),
  kind('gateway.networking.k8s.io/v1', 'HTTPRoute', 3),
]

interface Parts {
  name: string
  labels: Record<string, string>
  fake: Faker
  random: Random
}

const many = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make)

/** The members of an object besides its head. */
export function corpusSpec(name: string, parts: Parts): Record<string, unknown> {
  return SPECS[name]?.(parts) ?? { spec: { parameters: data(parts.fake, 6) } }
}

const data = (fake: Faker, keys: number) => Object.fromEntries(many(keys, () => [`${fake.name()}.conf`, settings(fake)]))
const settings = (fake: Faker) =>
  many(4 + fake.int(14), () => `${fake.name()}=${fake.pick([fake.hex(12), fake.name(), fake.version()])}`).join('\n')
const workload = (parts: Parts) => ({
  replicas: 1 + parts.fake.int(6),
  selector: { matchLabels: { app: parts.name } },
  template: podTemplate(parts),
})

function podTemplate({ name, labels, fake }: Parts) {
  const volumes = many(fake.int(3), () => ({ name: fake.name(), configMap: { name: fake.name() } }))
  return {
    metadata: { labels: { app: name, ...labels }, annotations: { 'checksum/secret': fake.hex(64) } },
    spec: {
      serviceAccountName: fake.name(),
      securityContext: { runAsNonRoot: true, runAsUser: 1_000 + fake.int(60_000), seccompProfile: { type: 'RuntimeDefault' } },
      containers: many(1 + fake.int(2), () => container(fake, volumes)),
      volumes,
      topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway' }],
    },
  }
}

function container(fake: Faker, volumes: ReadonlyArray<{ name: string }>) {
  const port = 1_024 + fake.int(60_000)
  const probe = (path: string) => ({ httpGet: { path, port }, periodSeconds: 5 + fake.int(20), failureThreshold: 3 })
  return {
    name: fake.name(),
    image: fake.image(),
    imagePullPolicy: 'IfNotPresent',
    args: many(fake.int(5), () => `--${fake.name()}=${fake.hex(8)}`),
    env: many(2 + fake.int(8), () => ({
      name: fake.name().toUpperCase().replace('-', '_'),
      value: fake.pick([fake.hex(16), fake.name()]),
    })),
    ports: [{ name: 'http', containerPort: port, protocol: 'TCP' }],
    resources: {
      requests: { cpu: `${10 + fake.int(900)}m`, memory: `${16 + fake.int(900)}Mi` },
      limits: { memory: `${64 + fake.int(4_000)}Mi` },
    },
    readinessProbe: probe('/ready'),
    livenessProbe: probe('/live'),
    volumeMounts: volumes.map((volume) => ({ name: volume.name, mountPath: `/etc/${volume.name}`, readOnly: true })),
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
  }
}

const rule = (fake: Faker) => ({
  apiGroups: [fake.pick(['', 'apps', 'batch', 'networking.k8s.io'])],
  resources: many(1 + fake.int(4), () => fake.pick(['pods', 'configmaps', 'secrets', 'deployments', 'jobs', 'ingresses', 'events'])),
  verbs: ['get', 'list', 'watch', ...(fake.int(2) ? ['patch', 'update'] : [])],
  ...(fake.int(3) ? {} : { resourceNames: many(3, () => fake.name()) }),
})
const roleRef = (kindName: string, fake: Faker) => ({
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: kindName, name: fake.name() },
  subjects: many(1 + fake.int(4), () => ({ kind: 'ServiceAccount', name: fake.name(), namespace: fake.name() })),
})
const host = (fake: Faker) => `${fake.name()}.example`

const SPECS: Readonly<Record<string, (parts: Parts) => Record<string, unknown>>> = {
  ConfigMap: ({ fake, random }) => ({ data: data(fake, random() < 0.05 ? 30 : 1 + fake.int(6)) }),
  Secret: ({ fake }) => ({
    type: 'Opaque',
    data: Object.fromEntries(many(1 + fake.int(4), () => [fake.name(), fake.base64(40 + fake.int(1_200))])),
  }),
  Service: ({ name, fake }) => ({
    spec: {
      selector: { app: name },
      ports: many(1 + fake.int(3), () => ({ name: fake.name(), port: fake.int(60_000), targetPort: fake.int(60_000), protocol: 'TCP' })),
    },
  }),
  ServiceAccount: ({ fake }) => ({ imagePullSecrets: [{ name: fake.name() }], automountServiceAccountToken: false }),
  PersistentVolumeClaim: ({ fake }) => ({
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: fake.name(), resources: { requests: { storage: `${1 + fake.int(500)}Gi` } } },
  }),
  Deployment: (parts) => ({ spec: workload(parts) }),
  StatefulSet: (parts) => ({ spec: { ...workload(parts), serviceName: parts.fake.name(), podManagementPolicy: 'Parallel' } }),
  DaemonSet: (parts) => ({ spec: { selector: { matchLabels: { app: parts.name } }, template: podTemplate(parts) } }),
  Job: (parts) => ({ spec: { backoffLimit: parts.fake.int(8), template: podTemplate(parts) } }),
  CronJob: (parts) => ({
    spec: { schedule: `${parts.fake.int(60)} ${parts.fake.int(24)} * * *`, jobTemplate: { spec: { template: podTemplate(parts) } } },
  }),
  Ingress: ({ fake }) => ({
    spec: {
      tls: [{ hosts: [host(fake)], secretName: fake.name() }],
      rules: many(1 + fake.int(3), () => ({
        host: host(fake),
        http: {
          paths: [{ path: `/${fake.name()}`, pathType: 'Prefix', backend: { service: { name: fake.name(), port: { name: 'http' } } } }],
        },
      })),
    },
  }),
  NetworkPolicy: ({ name, fake }) => ({
    spec: {
      podSelector: { matchLabels: { app: name } },
      policyTypes: ['Ingress', 'Egress'],
      ingress: many(1 + fake.int(4), () => ({
        from: [{ ipBlock: { cidr: `10.${fake.int(256)}.${fake.int(256)}.0/24` } }, { podSelector: { matchLabels: { app: fake.name() } } }],
        ports: [{ port: fake.int(60_000), protocol: 'TCP' }],
      })),
    },
  }),
  HorizontalPodAutoscaler: ({ fake }) => ({
    spec: {
      scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: fake.name() },
      minReplicas: 1 + fake.int(3),
      maxReplicas: 4 + fake.int(20),
      metrics: [{ type: 'Resource', resource: { name: 'cpu', target: { type: 'Utilization', averageUtilization: 50 + fake.int(40) } } }],
    },
  }),
  PodDisruptionBudget: ({ name }) => ({ spec: { maxUnavailable: 1, selector: { matchLabels: { app: name } } } }),
  Role: ({ fake }) => ({ rules: many(2 + fake.int(6), () => rule(fake)) }),
  ClusterRole: ({ fake }) => ({ rules: many(3 + fake.int(10), () => rule(fake)) }),
  RoleBinding: ({ fake }) => roleRef('Role', fake),
  ClusterRoleBinding: ({ fake }) => roleRef('ClusterRole', fake),
  PriorityClass: ({ fake }) => ({ value: fake.int(1_000_000), globalDefault: false, description: fake.sentence(10) }),
  Certificate: ({ fake }) => ({
    spec: {
      secretName: fake.name(),
      dnsNames: many(1 + fake.int(5), () => host(fake)),
      issuerRef: { kind: 'ClusterIssuer', name: fake.name() },
    },
  }),
  ValidatingWebhookConfiguration: ({ fake }) => ({
    webhooks: [
      {
        name: host(fake),
        clientConfig: { caBundle: fake.base64(1_400), service: { name: fake.name(), namespace: fake.name(), path: '/validate' } },
        rules: [{ apiGroups: ['apps'], apiVersions: ['v1'], operations: ['CREATE'], resources: ['deployments'] }],
        sideEffects: 'None',
        admissionReviewVersions: ['v1'],
      },
    ],
  }),
  ServiceMonitor: ({ name, fake }) => ({
    spec: {
      selector: { matchLabels: { app: name } },
      endpoints: [{ port: fake.name(), interval: '30s', path: `/${fake.name()}` }],
    },
  }),
  PrometheusRule: ({ fake }) => ({
    spec: {
      groups: many(1 + fake.int(3), () => ({
        name: fake.name(),
        rules: many(1 + fake.int(5), () => ({
          alert: fake.name(),
          expr: `rate(${fake.name().replace('-', '_')}_total{job="${fake.name()}"}[5m]) > ${fake.int(900)}`,
          for: '5m',
          labels: { severity: fake.pick(['page', 'ticket']) },
          annotations: { summary: fake.sentence(8) },
        })),
      })),
    },
  }),
  HTTPRoute: ({ fake }) => ({
    spec: {
      parentRefs: [{ name: fake.name(), namespace: fake.name() }],
      hostnames: [host(fake)],
      rules: many(1 + fake.int(4), () => ({
        matches: [{ path: { type: 'PathPrefix', value: `/${fake.name()}` } }],
        backendRefs: [{ name: fake.name(), port: fake.int(60_000), weight: fake.int(100) }],
      })),
    },
  }),
}
