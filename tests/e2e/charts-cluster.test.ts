// The charts on a real API server: every object of the matrix passes strict validation, a namespace of Pod Security
// "restricted" admits every Pod, and an installation by helm becomes ready on kwok's nodes and leaves nothing but the
// volumes.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { clusterBinary } from '../../scripts/local-cluster/binaries.ts'
import { runProgramOf } from '../../server/cli/run-program.ts'
import { startServer } from '../../server/server.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { AGENT_VALUES, CHARTS, CLAIM_NAMESPACE, chartFolder, foreignKinds, helm, podOf, renderChart } from '../support/chart-kit.ts'
import { runCliWith } from '../support/cli-run.ts'
import { HELM } from '../support/helm-kit.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually, type KubeCluster, startKubeCluster } from '../support/kube-cluster.ts'
import { ROOT } from '../support/source-files.ts'
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

const kubeconfigOf = () => ({ KUBECONFIG: cluster.kubeconfigPath, HOME: tempDir() })
const isOutside = ({ kind }: K8sObject) => kind.startsWith('Cluster') || kind === 'Namespace'

test('IK4 helm installs both charts on nodes, and an uninstall leaves the volumes', async () => {
  const kubeconfig = kubeconfigOf()
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
}, 300_000)

test('IK3 an agent outside skerry-system changes its preset, also when that namespace exists', async () => {
  const upgrade = (rbac: Record<string, unknown>) => {
    const args = ['upgrade', '--install', 'edge', chartFolder('skerry-agent'), '-n', 'edge', '--create-namespace']
    const { ok, text } = helm(args, { ...AGENT_VALUES['bare'], rbac }, kubeconfigOf())
    return ok ? '' : text
  }
  const namespaced = { preset: 'namespaced', namespaces: ['web'] }
  expect([upgrade({ preset: 'cluster-admin' }), upgrade(namespaced), upgrade(namespaced)]).toEqual(['', '', ''])
  expect(await cluster.kubectl(['get', 'role', 'edge-skerry-agent-claim', '-n', CLAIM_NAMESPACE, '-o', 'name'])).toContain('role.rbac')
  Bun.spawnSync([HELM['4'], 'uninstall', 'edge', '-n', 'edge'], { env: { PATH: '/usr/bin', ...kubeconfigOf() } })
  expect(await cluster.kubectl(['get', 'namespace', CLAIM_NAMESPACE, '-o', 'name'])).toContain(CLAIM_NAMESPACE)
}, 60_000)

test('IK12 IK13 skerry install makes a server whose link signs in, helm takes it over, and uninstall keeps or prunes', async () => {
  const dataDir = tempDir()
  // The Pods of kwok run nothing: a server beside them answers what is executed in the Pod.
  const server = await startServer(
    { dataDir, hostname: '127.0.0.1', port: 0 },
    { clock: systemClock, random: seededRandom(3), log: silentLogger },
  )
  const run = async (command: readonly string[], stdin: string) => {
    const script = command.at(-1) ?? ''
    if (!command.includes('exec')) return runProgramOf([clusterBinary('kubectl'), ...command.slice(1)], stdin)
    const program = `${process.execPath} ${join(ROOT, 'server/main.ts')}`
    const here = script.replaceAll('/usr/bin/skerry', program).replace('http://127.0.0.1:8080', server.url)
    return runProgramOf(['env', `SKERRY_DATA=${dataDir}`, '/bin/sh', '-c', here], stdin)
  }
  const own = (argv: string[]) => {
    const [verb = '', ...more] = argv
    const place = ['--kubeconfig', cluster.kubeconfigPath, '--context', cluster.contextName, '-n', 'skerry-own']
    return runCliWith([verb, ...place, ...more], { run })
  }
  const names = async (kinds: string) => (await cluster.kubectl(['get', kinds, '-n', 'skerry-own', '-o', 'name'])).trim().split('\n').sort()
  try {
    const first = await own(['install', '-o', 'json'])
    expect(first.code === 0 ? '' : first.err).toBe('')
    const shown = JSON.parse(first.out) as { url: string; signIn: { url: string } }
    expect([shown.url, shown.signIn.url.split('/dashboard')[0]]).toEqual(['http://skerry.skerry-own.svc:80', 'http://127.0.0.1:8080'])
    const code = shown.signIn.url.split('#sign-in=')[1]
    const redeem = () =>
      fetch(`${server.url}/auth/link`, { method: 'POST', body: JSON.stringify({ code }), headers: { 'content-type': 'application/json' } })
    expect([(await redeem()).status, (await redeem()).ok]).toEqual([200, false])
    const version = async () =>
      cluster.kubectl(['get', 'statefulset', 'skerry', '-n', 'skerry-own', '-o', 'jsonpath={.metadata.generation}'])
    expect((await own(['install'])).code).toBe(0)
    expect(await version()).toBe('1')

    for (const [version, flags] of [
      ['4', ['--force-conflicts']],
      ['3', []],
    ] as const) {
      const args = ['upgrade', '--install', 'skerry', chartFolder('skerry'), '-n', 'skerry-own', ...flags, '--wait', '--timeout', '60s']
      const taken = helm(args, { logLevel: 'debug' }, kubeconfigOf(), version)
      expect(taken.ok ? '' : taken.text).toBe('')
      expect((await own(['uninstall', '--prune'])).err).toContain('helm uninstall skerry')
      Bun.spawnSync([HELM[version], 'uninstall', 'skerry', '-n', 'skerry-own'], { env: { PATH: '/usr/bin', ...kubeconfigOf() } })
      expect((await own(['install'])).code).toBe(0)
    }
    expect((await own(['uninstall', '--keep'])).err).toContain('persistentvolumeclaim/data-skerry-0, with')
    expect(await names('statefulset,service,pvc')).toEqual(['persistentvolumeclaim/data-skerry-0'])
    expect((await own(['uninstall', '--prune'])).code).toBe(0)
    expect(await names('statefulset,service,networkpolicy,poddisruptionbudget,pvc')).toEqual([''])
  } finally {
    await server.stop()
  }
}, 300_000)
