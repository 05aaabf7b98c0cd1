// The charts of this repository, rendered by the helm of the cache, and the values that their tests go through.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { HELM } from './helm-kit.ts'
import { ROOT } from './source-files.ts'

export type ChartName = 'skerry' | 'skerry-agent'
export type Values = Readonly<Record<string, unknown>>

export const chartFolder = (chart: ChartName): string => join(ROOT, 'charts', chart)

/** Answers standard output, or the standard error of a failure. */
export function helm(
  args: readonly string[],
  values: Values = {},
  env: Record<string, string> = {},
  version: keyof typeof HELM = '4',
): { ok: boolean; text: string } {
  const ran = Bun.spawnSync([HELM[version], ...args, '-f', '-'], {
    stdin: Buffer.from(JSON.stringify(values)),
    env: { PATH: '/usr/bin', ...env },
  })
  return { ok: ran.success, text: (ran.success ? ran.stdout : ran.stderr).toString() }
}

export const CLAIM_NAMESPACE = 'skerry-system'

export function renderChart(
  chart: ChartName,
  release: string,
  values: Values,
  { namespace = CLAIM_NAMESPACE, version = '4' }: { namespace?: string; version?: keyof typeof HELM } = {},
): K8sObject[] {
  const { ok, text } = helm(['template', release, chartFolder(chart), '-n', namespace], values, {}, version)
  if (!ok) throw new Error(text)
  const { documents, problems } = parseYamlDocuments(text, { file: release })
  if (problems.length > 0) throw new Error(JSON.stringify(problems))
  return documents.map(({ value }) => value as K8sObject).filter((object) => object !== null)
}

/** Values without which the agent's chart says what is missing. */
const SITE = { server: 'https://skerry.example.com', cluster: 'oslo' }
const PULL = {
  image: { repository: 'registry.example.com:5000/skerry', digest: `sha256:${'0'.repeat(64)}` },
  imagePullSecrets: [{ name: 'pull' }],
}
const PROXY = { proxy: { httpsProxy: 'http://proxy:3128', noProxy: '10.0.0.0/8,.svc' } }
const EXTRA = {
  extraArgs: ['--log-level=debug'],
  extraEnv: [{ name: 'TZ', value: 'UTC' }],
  extraEnvFrom: [{ secretRef: { name: 'more', optional: true } }],
  extraVolumes: [{ name: 'more', emptyDir: {} }],
  extraVolumeMounts: [{ name: 'more', mountPath: '/more' }],
  podLabels: { team: 'platform' },
  podAnnotations: { note: 'yes' },
  nodeSelector: { 'kubernetes.io/os': 'linux' },
  tolerations: [{ operator: 'Exists' }],
  priorityClassName: 'system-cluster-critical',
  persistence: { storageClass: 'standard', size: '20Gi', annotations: { backup: 'yes' } },
}
const POLICED = { from: [{ namespaceSelector: {} }] }

/** Release name → values. Together they set every value once. */
export const SERVER_VALUES: Readonly<Record<string, Values>> = {
  bare: {},
  postgres: { store: { url: 'postgres://skerry:secret@db/skerry' }, persistence: { enabled: false }, fullnameOverride: 'gitops' },
  existing: {
    store: { existingSecret: 'db', existingSecretKey: 'dsn' },
    oidc: { existingSecret: 'sign-in', existingSecretKey: 'settings.yaml' },
    tls: { existingSecret: 'server-tls' },
    caBundle: { existingSecret: 'authorities' },
    persistence: { existingClaim: 'old' },
    serviceAccount: { create: false, name: 'mine' },
  },
  open: {
    externalUrl: 'https://skerry.example.com',
    trustedProxies: ['10.0.0.0/8', '192.168.0.1'],
    sourceAddresses: ['10.0.0.0/8'],
    ingress: { enabled: true, className: 'nginx', annotations: { 'nginx.ingress.kubernetes.io/proxy-read-timeout': '900' } },
    gateway: { enabled: true, parentRefs: [{ name: 'public', namespace: 'gateways' }] },
    service: { type: 'LoadBalancer', port: 443, annotations: { a: 'b' } },
    networkPolicy: { ...POLICED, metricsFrom: POLICED.from, egress: [{ ports: [{ port: 443 }] }] },
  },
  issued: {
    externalUrl: 'https://skerry.example.com:8443',
    tls: { certManager: { enabled: true, issuerRef: { name: 'internal', kind: 'ClusterIssuer' } } },
    caBundle: { existingConfigMap: 'authorities', key: 'bundle.pem' },
    oidc: { config: { providers: [] }, secretFiles: { 'client-secret': 'x' } },
  },
  watched: {
    metrics: {
      enabled: true,
      series: 'fleet',
      serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
      alerts: { enabled: true },
      dashboard: { enabled: true },
    },
    options: { 'events-kept': 1_000_000, workers: 2, recount: true },
  },
  full: { ...PULL, ...PROXY, ...EXTRA, renderSandbox: 'bubblewrap', logLevel: 'debug' },
  off: { networkPolicy: { enabled: false }, podDisruptionBudget: { enabled: false } },
}

export const AGENT_VALUES: Readonly<Record<string, Values>> = {
  bare: SITE,
  token: { ...SITE, joinToken: { value: 'skj.abc' }, serverCa: { pem: 'PEM' }, metered: true, insecureHttp: true },
  existing: {
    ...SITE,
    joinToken: { existingSecret: 'join', existingSecretKey: 't' },
    serverCa: { existingSecret: 'ca' },
    persistence: { existingClaim: 'old' },
    rbac: { preset: 'none' },
    serviceAccount: { create: false, name: 'mine' },
  },
  namespaced: { ...SITE, rbac: { preset: 'namespaced', namespaces: ['web', 'shop'] }, policy: { version: 1 } },
  full: {
    ...{ ...SITE, ...PULL, ...PROXY, ...EXTRA, serverCa: { existingConfigMap: 'ca' }, options: { 'pod-logs': 10, resync: '12h' } },
    metrics: { podMonitor: { enabled: true, labels: { release: 'prometheus' } } },
    networkPolicy: { metricsFrom: POLICED.from, egress: [{ ports: [{ port: 443 }] }] },
  },
  off: { ...SITE, persistence: { enabled: false }, networkPolicy: { enabled: false }, podDisruptionBudget: { enabled: false } },
}

export const CHARTS: ReadonlyArray<[ChartName, Readonly<Record<string, Values>>]> = [
  ['skerry', SERVER_VALUES],
  ['skerry-agent', AGENT_VALUES],
]

interface PodTemplate {
  metadata: { labels: Record<string, string>; annotations?: Record<string, string> }
  spec: Record<string, unknown> & { containers: Array<Record<string, unknown> & { env: Array<{ name: string; value?: string }> }> }
}

export const podOf = (objects: readonly K8sObject[]): PodTemplate => {
  const workload = objects.find(({ kind }) => kind === 'StatefulSet' || kind === 'Deployment')
  if (workload === undefined) throw new Error('no StatefulSet and no Deployment')
  return (workload['spec'] as { template: PodTemplate }).template
}

/** What another repository or the cluster must have is in files that scripts/setup --install fetched. */
export const foreignKinds = (): string[] =>
  [...new Bun.Glob('*.yaml').scanSync(join(ROOT, 'build/install/crds'))].map((file) =>
    readFileSync(join(ROOT, 'build/install/crds', file), 'utf8'),
  )
