// The charts on a real API server: every object of the matrix passes strict validation, a namespace of Pod Security "restricted" admits every Pod, and an
// installation by helm becomes ready on kwok's nodes and leaves nothing but the volumes.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { K8sObject } from '../../shared/kube/object.ts'
import { AGENT_VALUES, CHARTS, CLAIM_NAMESPACE, chartFolder, foreignKinds, helm, podOf, renderChart } from '../support/chart-kit.ts'
import { HELM } from '../support/helm-kit.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually, type KubeCluster, startKubeCluster } from '../support/kube-cluster.ts'
import { tempDir } from '../support/temp-dir.ts'

let cluster: KubeCluster
const apply = (objects: readonly unknown[], ...args: string[]) =>
  cluster.kubectl(['apply', '--server-side', '--validate=strict', '-f', '-', ...args], {
    stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }),
  })

const namespace = (name: string) => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: {
    name,
    labels: { 'pod-security.kubernetes.io/enforce': 'restricted', 'pod-security.kubernetes.io/enforce-version': 'latest' },
  },
})

beforeAll(async () => {
  cluster = await startKubeCluster({ name: 'charts' })
  await apply([namespace(CLAIM_NAMESPACE), namespace('web'), namespace('shop')])
  await cluster.kubectl(['apply', '--server-side', '-f', '-'], { stdin: foreignKinds().join('\n---\n') })
  await cluster.kubectl(['wait', '--for=condition=Established', 'crd', '--all', '--timeout=30s'])
  await cluster.kubectl(['-n', CLAIM_NAMESPACE, 'create', 'serviceaccount', 'mine'])
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => cluster?.stop(), CLUSTER_START_TIMEOUT_MS)

test.each(CHARTS)(
  'IK1 %s: the API server takes every object of every set of values, and the Pods in a restricted namespace',
  async (chart, all) => {
    const rendered = Object.entries(all).map(([name, values]) => renderChart(chart, name, values))
    const objects = rendered.flat()
    expect(objects.length).toBeGreaterThan(30)
    const placed = objects.map((one) => (isOutside(one) ? one : { ...one, metadata: { namespace: CLAIM_NAMESPACE, ...one.metadata } }))
    expect((await apply(placed, '--dry-run=server')).trim().split('\n')).toHaveLength(placed.length)
    const pods = rendered.map((one, index) => {
      const { metadata, spec } = podOf(one)
      // A volume of a claim template is a claim of the Pod.
      const known = new Set((spec['volumes'] as Array<{ name: string }>).map(({ name }) => name))
      const volumes = [...(spec['volumes'] as object[]), ...(known.has('data') ? [] : [{ name: 'data', emptyDir: {} }])]
      const { serviceAccountName: _, ...rest } = spec
      return {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { ...metadata, name: `p${index}`, namespace: CLAIM_NAMESPACE },
        spec: { ...rest, volumes },
      }
    })
    expect((await apply(pods, '--dry-run=server')).trim().split('\n')).toHaveLength(pods.length)
  },
  60_000,
)

const isOutside = ({ kind }: K8sObject) => kind.startsWith('Cluster') || kind === 'Namespace'

test('IK4 helm installs both charts on nodes, and an uninstall leaves the volumes', async () => {
  const kubeconfig = { KUBECONFIG: cluster.kubeconfigPath, HOME: tempDir() }
  const install = (chart: 'skerry' | 'skerry-agent', values: Record<string, unknown>) => {
    const args = ['upgrade', '--install', chart, chartFolder(chart), '-n', CLAIM_NAMESPACE, '--wait', '--timeout', '60s']
    const { ok, text } = helm(args, values, kubeconfig)
    expect(ok ? '' : text).toBe('')
    return text
  }
  const notes = install('skerry', { externalUrl: 'https://skerry.example.com' })
  expect(notes).toContain('token exchange')
  install('skerry-agent', { ...AGENT_VALUES['token'], rbac: { preset: 'namespaced', namespaces: ['web'] } })
  const ready = await cluster.kubectl(['-n', CLAIM_NAMESPACE, 'get', 'pods', '-o', 'jsonpath={range .items[*]}{.status.phase} {end}'])
  expect(ready.trim()).toBe('Running Running')
  for (const release of ['skerry', 'skerry-agent']) {
    const ended = Bun.spawnSync([HELM['4'], 'uninstall', release, '-n', CLAIM_NAMESPACE], { env: { PATH: '/usr/bin', ...kubeconfig } })
    expect(ended.stderr.toString()).toBe('')
  }
  await eventually(
    'the Pods are gone',
    async () => (await cluster.kubectl(['-n', CLAIM_NAMESPACE, 'get', 'pods', '-o', 'name'])).trim() === '',
    60_000,
  )
  expect((await cluster.kubectl(['-n', CLAIM_NAMESPACE, 'get', 'pvc', '-o', 'name'])).trim().split('\n').sort()).toEqual([
    'persistentvolumeclaim/data-skerry-0',
    'persistentvolumeclaim/skerry-agent',
  ])
}, 180_000)
