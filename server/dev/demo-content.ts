// The content of the demo fleet: sites by region, services by project as manifests in a Git repository, and what goes
// wrong where.
import type { SiteChoice } from './demo-site.ts'

interface Region {
  label: string
  share: number
  env: string
  names: readonly string[]
}

const REGIONS: readonly Region[] = [
  { label: 'nordics', share: 0.28, env: 'prod', names: ['oslo', 'bergen', 'tromso', 'malmo', 'turku', 'aarhus'] },
  { label: 'baltic', share: 0.15, env: 'prod', names: ['riga', 'tallinn', 'gdansk', 'klaipeda'] },
  { label: 'ferries', share: 0.08, env: 'ship', names: ['ferry'] },
  { label: 'stores-de', share: 0.33, env: 'store', names: ['store-de'] },
  { label: 'stores-uk', share: 0.16, env: 'store', names: ['store-uk'] },
]

export function demoSites(count: number): SiteChoice[] {
  return REGIONS.flatMap(({ label, share, env, names }) =>
    Array.from({ length: Math.max(1, Math.round(share * count)) }, (_, index): SiteChoice => {
      const number = String(Math.floor(index / names.length) + 1).padStart(names.length === 1 ? 3 : 2, '0')
      return {
        name: `${names[index % names.length]}-${number}`,
        labels: { region: label, env, ring: String(index % 4) },
        kubernetesVersion: `v1.${33 + (index % 4)}.${index % 3}`,
        nodeCount: env === 'prod' ? 3 : 1,
      }
    }),
  )
}

interface DemoService {
  project: string
  name: string
  /** Clusters with these labels. Absent means all. */
  labels?: Readonly<Record<string, string>>
  /** Revisions wait for a person. */
  isManual?: true
}

export const DEMO_SERVICES: readonly DemoService[] = [
  ...['web', 'checkout', 'payments', 'inventory', 'pricing', 'loyalty'].map((name) => ({ project: 'shop', name })),
  ...['coredns', 'ingress-nginx', 'cert-manager', 'metrics', 'logging', 'backup'].map((name) => ({ project: 'platform', name })),
  { project: 'shop', name: 'printer', labels: { env: 'store' } },
  { project: 'shop', name: 'signage', labels: { env: 'store' } },
  { project: 'edge', name: 'podinfo', labels: { env: 'ship' } },
  { project: 'edge', name: 'engine-telemetry', labels: { env: 'ship' } },
  { project: 'edge', name: 'bridge-console', labels: { env: 'ship', ring: '0' }, isManual: true },
]

export const folderOf = ({ project, name }: DemoService): string => `${project}/${name}`

export function manifests(name: string, version: string): string {
  const meta = (extra = '', marks: readonly string[] = []) =>
    [
      `metadata:\n  name: ${name}${extra}\n  labels:\n    app: ${name}`,
      ...(marks.length === 0 ? [] : [`  annotations:\n${marks.map((mark) => `    ${mark}`).join('\n')}`]),
    ].join('\n')
  const wave = (n: number) => [`skerry.dev/wave: "${n}"`]
  return [
    `apiVersion: apps/v1\nkind: Deployment\n${meta()}\nspec:\n  replicas: 2\n  selector:\n    matchLabels:\n      app: ${name}\n  template:\n    metadata:\n      labels:\n        app: ${name}\n    spec:\n      containers:\n        - name: main\n          image: registry.example/${name}:${version}`,
    `apiVersion: v1\nkind: Service\n${meta()}\nspec:\n  selector:\n    app: ${name}\n  ports:\n    - port: 80`,
    `apiVersion: v1\nkind: ConfigMap\n${meta('-settings', wave(-1))}\ndata:\n  version: "${version}"`,
    `apiVersion: v1\nkind: ServiceAccount\n${meta('-runner', wave(-1))}`,
    `apiVersion: networking.k8s.io/v1\nkind: Ingress\n${meta('', wave(1))}\nspec:\n  rules:\n    - host: ${name}.example\n      http:\n        paths:\n          - path: /\n            pathType: Prefix\n            backend:\n              service:\n                name: ${name}\n                port:\n                  number: 80`,
  ].join('\n---\n')
}

/** A manifest that no render accepts: its error has a file, a line and an excerpt. */
export const brokenManifest = (name: string): string =>
  `apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: ${name}\nspec:\n  replicas: 2\n  template:\n   metadata:\n      labels: {app: ${name}\n`

export const repositories = (url: string) =>
  [...new Set(DEMO_SERVICES.map(({ project }) => project))].map((project) => ({
    apiVersion: 'skerry.dev/v1',
    kind: 'Repository',
    metadata: { name: 'apps', project },
    spec: { git: { url, ref: 'main' }, poll: '5s' },
  }))

export const unreachableRepository = {
  apiVersion: 'skerry.dev/v1',
  kind: 'Repository',
  metadata: { name: 'legacy', project: 'edge' },
  spec: { git: { url: 'http://127.0.0.1:9/legacy.git', ref: 'main' }, poll: '30s' },
}

export const services = () =>
  DEMO_SERVICES.map((service) => ({
    apiVersion: 'skerry.dev/v1',
    kind: 'Service',
    metadata: { name: service.name, project: service.project },
    spec: {
      source: { repository: 'apps', path: folderOf(service) },
      targets: { selector: service.labels === undefined ? {} : { matchLabels: service.labels } },
      namespace: service.name,
      sync: service.isManual === true ? { mode: 'manual' } : {},
    },
  }))
