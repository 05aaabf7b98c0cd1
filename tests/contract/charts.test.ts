// The charts: strict lint and rendering over a matrix of values, what the schema refuses, and what each Pod must be.
// tests/e2e/charts-cluster.test.ts has the API server.
import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { RUN_OPTIONS } from '../../agent/config.ts'
import { rbacManifests, rbacValues } from '../../agent/rbac.ts'
import { packageVersion } from '../../scripts/binary-sandbox.ts'
import { startServer } from '../../server/server.ts'
import { SERVER_OPTIONS } from '../../server/verbs/server-options.ts'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { CHARTS, type ChartName, chartFolder, helm, podOf, renderChart, type Values } from '../support/chart-kit.ts'
import { ROOT } from '../support/source-files.ts'
import { tempDir } from '../support/temp-dir.ts'
import { SERVER_CERT, SERVER_PRIVATE_KEY } from '../support/test-certs.ts'

const cases = CHARTS.flatMap(([chart, all]) => Object.entries(all).map(([name, values]) => [chart, name, values] as const))
const yamlOf = (path: string) => parseYamlDocuments(readFileSync(join(ROOT, path), 'utf8'), { file: path }).documents[0]?.value

test.each(cases)('IK1 %s with the values "%s": lints, and its Pod is restricted with a read-only root', (chart, name, values) => {
  const linted = helm(['lint', '--strict', chartFolder(chart)], values)
  expect(linted.ok ? '' : linted.text).toBe('')
  const objects = renderChart(chart, name, values)
  const { spec } = podOf(objects)
  expect(spec['securityContext']).toMatchObject({ runAsNonRoot: true, runAsUser: 65532, seccompProfile: { type: 'RuntimeDefault' } })
  expect(spec.containers).toHaveLength(1)
  expect(spec.containers[0]).toMatchObject({
    securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ['ALL'] } },
    livenessProbe: { httpGet: { path: '/healthz' } },
    readinessProbe: { httpGet: { path: '/readyz' } },
    resources: { requests: { cpu: expect.any(String), memory: expect.any(String) }, limits: { memory: expect.any(String) } },
  })
  const env = spec.containers[0]?.env ?? []
  expect(new Set(env.map(({ name: one }) => one)).size).toBe(env.length)
  // An environment variable of an option that does not exist would have no effect and no error.
  const known = new Set(
    Object.keys(chart === 'skerry' ? SERVER_OPTIONS : RUN_OPTIONS).map((key) => `SKERRY_${key.replace(/[A-Z]/g, '_$&').toUpperCase()}`),
  )
  expect(env.map(({ name: one }) => one).filter((one) => one.startsWith('SKERRY_') && !known.has(one))).toEqual([])
})

test.each([
  ['skerry', 'existing'],
  ['skerry', 'watched'],
  ['skerry-agent', 'namespaced'],
  ['skerry-agent', 'full'],
] as const)('IK1 %s with the values "%s" is the same with Helm 3', (chart, name) => {
  const values: Values = CHARTS.find(([one]) => one === chart)?.[1][name] ?? {}
  expect(renderChart(chart, name, values, { version: '3' })).toEqual(renderChart(chart, name, values))
})

test('IK1 large numbers of options stay numbers, and each alert and the dashboard are those of monitoring/', () => {
  const objects = renderChart('skerry', 'watched', CHARTS[0]?.[1]['watched'] ?? {})
  expect(podOf(objects).spec.containers[0]?.env).toContainEqual({ name: 'SKERRY_EVENTS_KEPT', value: '1000000' })
  expect(objects.find(({ kind }) => kind === 'PrometheusRule')?.['spec']).toEqual(yamlOf('monitoring/alerts.yaml') as object)
  const dashboard = objects.find(({ kind }) => kind === 'ConfigMap')?.['data'] as Record<string, string>
  expect(JSON.parse(dashboard['skerry.json'] ?? '')).toEqual(JSON.parse(readFileSync(join(ROOT, 'monitoring/dashboard.json'), 'utf8')))
})

test.each<[ChartName, Values, RegExp]>([
  ['skerry', { replicas: 2 }, /replicas/],
  ['skerry', { externalUrl: 'skerry.example.com' }, /externalUrl/],
  ['skerry', { store: { url: 'mysql://db' } }, /store\/url/],
  ['skerry', { store: { url: 'postgres://db/x', existingSecret: 'db' } }, /store: set url or existingSecret, not both/],
  ['skerry', { gateway: { enabled: true } }, /gateway\.parentRefs: name the Gateway/],
  ['skerry', { metrics: { serviceMonitor: { enabled: true } } }, /needs metrics\.enabled/],
  ['skerry-agent', { cluster: 'oslo' }, /server: set the URL/],
  ['skerry-agent', { server: 'https://x' }, /cluster: set the name/],
  ['skerry-agent', { server: 'https://x', cluster: 'Oslo' }, /cluster/],
  ['skerry-agent', { server: 'https://x', cluster: 'oslo', rbac: { preset: 'admin' } }, /rbac\/preset/],
  ['skerry-agent', { server: 'https://x', cluster: 'oslo', rbac: { preset: 'namespaced' } }, /rbac\.namespaces: name the namespaces/],
  ['skerry-agent', { server: 'https://x', cluster: 'oslo', rbac: { preset: 'custom' } }, /rbac\.manifests: set them/],
])('IK2 %s refuses %j and names the value', (chart, values, message) => {
  const { ok, text } = helm(['template', 'x', chartFolder(chart)], values)
  expect([ok, message.test(text) || text]).toEqual([false, true])
})

test.each([
  ['HTTP', {}],
  ['TLS of cert-manager', { tls: { certManager: { enabled: true, issuerRef: { name: 'internal' } } } }],
])(
  'IK1 the notes for %s print a command that gets an API token',
  async (_, values) => {
    const { text } = helm(['install', 'skerry', chartFolder('skerry'), '--dry-run=client', '-n', 'fleet'], values)
    const [command = ''] = /kubectl -n fleet exec(?:\\\n|.)*/.exec(text) ?? []
    const dataDir = tempDir()
    const [cert, key] = [join(tempDir(), 'tls.crt'), join(tempDir(), 'tls.key')]
    writeFileSync(cert, SERVER_CERT)
    writeFileSync(key, SERVER_PRIVATE_KEY, { mode: 0o600 })
    const place = { dataDir, hostname: '127.0.0.1', port: 0, ...('tls' in values ? { tls: { cert, key } } : {}) }
    const server = await startServer(place, { clock: systemClock, random: seededRandom(3), log: silentLogger })
    try {
      // The part after `--` runs in the Pod, where the program and the data folder have other places.
      const inside = command.slice(command.indexOf(' -- ') + 4).replace(/https?:\/\/127\.0\.0\.1:8080/, server.url)
      const script = inside
        .replace('/usr/bin/skerry', `${process.execPath} ${join(ROOT, 'server/main.ts')}`)
        .replace('/data/skerry', dataDir)
      const ran = Bun.spawn(['/bin/sh', '-c', script], { stdout: 'pipe', stderr: 'pipe', env: { PATH: '/usr/bin:/bin', HOME: tempDir() } })
      const [out, err] = await Promise.all([new Response(ran.stdout).text(), new Response(ran.stderr).text()])
      expect([await ran.exited, out.trim().length > 20 ? '' : err]).toEqual([0, ''])
    } finally {
      await server.stop()
    }
  },
  30_000,
)

const SITE = { server: 'https://skerry.example.com', cluster: 'oslo' }
const rolesOf = (objects: readonly K8sObject[]) =>
  objects
    .filter(({ kind }) => /^(Cluster)?Role$/.test(kind))
    .map(({ kind, metadata, ...rest }) => ({ kind, place: metadata.namespace ?? null, rules: rest['rules'] }))
    .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))

test('IK3 the preset namespaced is what `skerry-agent rbac` prints for its kinds', () => {
  const { kinds } = yamlOf('charts/skerry-agent/files/namespaced.yaml') as { kinds: string[] }
  const wish = { kinds, namespaces: ['web', 'shop'], serviceAccounts: [], agent: 'skerry-system/skerry-agent', podLogs: true }
  const rbac = { preset: 'namespaced', namespaces: ['web', 'shop'] }
  for (const [asking, isAsked] of [
    ['restart', true],
    ['read', true],
    [false, false],
  ] as const) {
    // biome-ignore format: short
    const objects = renderChart('skerry-agent', 'agent', { ...SITE, rbac, asking })
    expect(rolesOf(objects)).toEqual(rolesOf(rbacManifests({ ...wish, asking: isAsked }) as K8sObject[]))
    const { env = [] } = podOf(objects).spec.containers[0] ?? {}
    expect(env).toContainEqual({ name: 'SKERRY_ASKING', value: asking === false ? 'off' : asking })
  }
})

test('IK3 the preset custom takes the values of `skerry-agent rbac --values` as they are', () => {
  const wish = {
    kinds: ['v1/ConfigMap'],
    namespaces: ['web'],
    serviceAccounts: ['web/deployer'],
    agent: 'skerry-system/skerry-agent',
    podLogs: false,
  }
  const manifests = rbacManifests(wish) as K8sObject[]
  const objects = renderChart('skerry-agent', 'agent', { ...SITE, ...(rbacValues(manifests) as Values) })
  const isRole = ({ kind }: K8sObject) => /Role(Binding)?$/.test(kind)
  const sorted = (all: readonly K8sObject[]) =>
    all
      .filter(isRole)
      .map((one) => JSON.stringify(one, Object.keys(one).sort()))
      .sort()
  expect(sorted(objects)).toEqual(sorted(manifests))
  expect(objects.filter(({ kind }) => kind === 'ServiceAccount').map(({ metadata }) => metadata.name)).toEqual(['skerry-agent'])
})

test('IK1 versions of the charts are that of the package', () => {
  for (const [chart] of CHARTS)
    expect(yamlOf(`charts/${chart}/Chart.yaml`)).toMatchObject({ version: packageVersion(), appVersion: packageVersion() })
})
