// Failure catalogue: what shall be pruned holds what the new objects need: a port of the node, a volume that one pod
// may use. With a scheduler and nodes, because it is the scheduler that waits.
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import { type K8sObject, k8sObjectSchema } from '../../shared/kube/object.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import { CLUSTER_START_TIMEOUT_MS, type KubeCluster } from '../support/kube-cluster.ts'
import { type RealCluster, startRealCluster } from '../support/real-cluster.ts'
import { createReconcileKit, type ReconcileKit } from '../support/reconcile-kit.ts'
import { until } from '../support/watch-probe.ts'

let server: KubeCluster
let kit: ReconcileKit
let real: RealCluster
let n = 0
let id: ServiceId = { project: 'held', service: 's' }

beforeAll(async () => {
  real = await startRealCluster({ name: 'held', controllers: true, nodes: 1, userAgent: 'skerry-agent/held' })
  server = real.server
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => real?.stop(), CLUSTER_START_TIMEOUT_MS)
afterEach(() => kit.stop())

async function begin(): Promise<string> {
  n += 1
  const ns = `held-${n}`
  id = { project: 'held', service: ns }
  await server.kubectl(['create', 'namespace', ns])
  kit = createReconcileKit({ cluster: real.cluster, clock: systemClock, incarnation: n })
  kit.start()
  return ns
}

const objects = (yaml: string): K8sObject[] =>
  parseYamlDocuments(yaml, { file: 'all.yaml' }).documents.map(({ value }) => k8sObjectSchema.parse(value))
const withPort = (name: string, ns: string, port: number) =>
  objects(`
apiVersion: apps/v1
kind: Deployment
metadata: { name: ${name}, namespace: ${ns} }
spec:
  selector: { matchLabels: { app: ${name} } }
  template:
    metadata: { labels: { app: ${name} } }
    spec: { containers: [{ name: a, image: registry.example/a:1, ports: [{ containerPort: 80, hostPort: ${port} }] }] }`)
const claim = (ns: string) =>
  objects(`
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: data, namespace: ${ns} }
spec: { accessModes: [ReadWriteOncePod], resources: { requests: { storage: 1Gi } } }`)
const withVolume = (name: string, ns: string) =>
  objects(`
apiVersion: apps/v1
kind: Deployment
metadata: { name: ${name}, namespace: ${ns} }
spec:
  strategy: { type: Recreate }
  selector: { matchLabels: { app: ${name} } }
  template:
    metadata: { labels: { app: ${name} } }
    spec:
      containers: [{ name: a, image: registry.example/a:1, volumeMounts: [{ name: data, mountPath: /data }] }]
      volumes: [{ name: data, persistentVolumeClaim: { claimName: data } }]`)

/** That very revision runs, with nothing left over. */
async function well(digest: string): Promise<void> {
  const isWell = () => {
    const status = kit.service(id)
    return status?.reason === 'Synced' && status.healthy?.digest === digest
  }
  await until('it is well', isWell, 60_000).catch((error: Error) => {
    throw new Error(`${error.message}; it says ${JSON.stringify(kit.service(id))}`)
  })
}
const exists = async (name: string, ns: string) =>
  (await server.kubectl(['get', 'deployment', name, '-n', ns, '--ignore-not-found', '-o', 'name'])).trim() !== ''

test('PR6 a port of the node: `pruneWhen: applied` lets the old one go first', async () => {
  const ns = await begin()
  await well(kit.desire(withPort('old', ns, 8081), { sync: { pruneWhen: 'applied' } }, id))
  await well(kit.desire(withPort('new', ns, 8081), { sync: { pruneWhen: 'applied' } }, id))
  expect(await exists('old', ns)).toBe(false)
}, 120_000)

test('PR11 a port of the node: with `pruneWhen: healthy` each waits for the other; both are named with the way out, and setting it is one', async () => {
  const ns = await begin()
  await well(kit.desire(withPort('old', ns, 8082), {}, id))
  kit.desire(withPort('new', ns, 8082), { sync: { healthDeadline: '12s' } }, id)
  await until('each waits for the other', () => kit.service(id)?.reason === 'PrunePending' && mentionsBoth(ns), 30_000)
  await isOverdue(ns)
  expect(kit.object(`apps/Deployment/${ns}/new`, id)?.message).toContain("didn't have free ports")
  expect(await exists('old', ns)).toBe(true)
  await well(kit.desire(withPort('new', ns, 8082), { sync: { pruneWhen: 'applied' } }, id))
  expect(await exists('old', ns)).toBe(false)
}, 180_000)

/** The deadline has passed: who waits for what, and what to set. */
async function isOverdue(ns: string): Promise<void> {
  await until('it is overdue', () => kit.service(id)?.reason === 'PruneOverdue', 60_000)
  expect(mentionsBoth(ns)).toBe(true)
  expect(kit.service(id)?.message).toMatch(
    /if it needs a resource that the kept objects hold \(hostPort, .*\), set sync.pruneWhen: applied/,
  )
}

const mentionsBoth = (ns: string) => {
  const message = kit.service(id)?.message ?? ''
  return message.includes(`${ns}/old`) && message.includes(`${ns}/new`)
}

test('PR6 a volume for one pod: `pruneWhen: applied` lets the old one go first, and the volume stays', async () => {
  const ns = await begin()
  await well(kit.desire([...claim(ns), ...withVolume('old', ns)], { sync: { pruneWhen: 'applied' } }, id))
  const volume = await server.kubectl(['get', 'pvc', 'data', '-n', ns, '-o', 'jsonpath={.spec.volumeName}'])
  await well(kit.desire([...claim(ns), ...withVolume('new', ns)], { sync: { pruneWhen: 'applied' } }, id))
  expect(await exists('old', ns)).toBe(false)
  expect(await server.kubectl(['get', 'pvc', 'data', '-n', ns, '-o', 'jsonpath={.spec.volumeName}'])).toBe(volume)
}, 180_000)

test('PR11 a volume for one pod: with `pruneWhen: healthy` both sides are named', async () => {
  const ns = await begin()
  await well(kit.desire([...claim(ns), ...withVolume('old', ns)], {}, id))
  kit.desire([...claim(ns), ...withVolume('new', ns)], { sync: { healthDeadline: '12s' } }, id)
  await isOverdue(ns)
  expect(kit.object(`apps/Deployment/${ns}/new`, id)?.message).toContain('ReadWriteOncePod')
  expect(await exists('old', ns)).toBe(true)
}, 180_000)
