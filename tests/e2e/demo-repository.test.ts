// The demo's repository against a real API server by kubectl alone: what it holds, and what of it can become healthy on
// kwok's nodes. When this fails after a new Kubernetes version, the lists in demo-repository.ts want a look, not
// Skerry.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { demoRepository } from '../../scripts/local-cluster/demo-repository.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually, type KubeCluster, startKubeCluster } from '../support/kube-cluster.ts'

const repository = demoRepository()
let cluster: KubeCluster
let dir: string
/** `Kind/namespace/name` of everything applied. */
const applied: string[] = []

interface Live {
  kind: string
  metadata: { name: string; namespace?: string }
  spec?: { replicas?: number }
  status?: Record<string, unknown> & { conditions?: { type: string; status: string }[] }
}

beforeAll(async () => {
  cluster = await startKubeCluster({ name: 'demo-repository' })
  dir = mkdtempSync(join(tmpdir(), 'demo-repository-'))
  for (const [path, text] of Object.entries(repository.files)) await Bun.write(join(dir, path), text)
}, CLUSTER_START_TIMEOUT_MS)

afterAll(async () => {
  await cluster?.stop()
  if (dir) rmSync(dir, { recursive: true, force: true })
})

/** The namespace of the context is a default; `--namespace` would refuse manifests that name another. */
async function applyFolder(path: string, namespace: string): Promise<string> {
  await cluster.kubectl(['config', 'set-context', '--current', `--namespace=${namespace}`])
  return cluster.kubectl(['apply', '--server-side', '-f', join(dir, path), '-o', 'json'])
}

function isHealthy({ kind, spec, status = {} }: Live): boolean {
  const condition = (type: string) => status.conditions?.find((entry) => entry.type === type)?.status === 'True'
  if (kind === 'Deployment' || kind === 'StatefulSet' || kind === 'ReplicationController') return status['readyReplicas'] === spec?.replicas
  if (kind === 'DaemonSet') return status['numberReady'] === status['desiredNumberScheduled']
  if (kind === 'Job') return condition('Complete')
  if (kind === 'CustomResourceDefinition') return condition('Established')
  if (kind === 'PersistentVolumeClaim') return status['phase'] === 'Bound'
  if (kind === 'HorizontalPodAutoscaler') return condition('ScalingActive')
  return true
}

test('the demo repository applies as it is: 150 objects and more, of 20 kinds and more', async () => {
  for (const { path, namespace } of repository.services) {
    // A custom resource beside its definition is refused until the definition is served.
    const output = await eventually(`apply ${path}`, () => applyFolder(path, namespace))
    const parsed = JSON.parse(output) as { items: Live[] } | Live
    for (const { kind, metadata } of 'items' in parsed ? parsed.items : [parsed])
      applied.push(`${kind}/${metadata.namespace ?? ''}/${metadata.name}`)
  }
  expect(applied.filter((key, index) => applied.indexOf(key) !== index)).toEqual([])
  expect(applied.length).toBeGreaterThanOrEqual(150)
  expect(new Set(applied.map((key) => key.split('/')[0])).size).toBeGreaterThanOrEqual(20)
  expect(repository.skipped.length).toBeLessThanOrEqual(1)
}, 120_000)

test('of the demo repository exactly the listed objects stay unhealthy on kwok', async () => {
  const kinds = 'deploy,sts,rc,ds,job,crd,pvc,hpa'
  const unhealthy = async () => {
    const { items } = JSON.parse(await cluster.kubectl(['get', kinds, '-A', '-o', 'json'])) as { items: Live[] }
    return items.filter((item) => !isHealthy(item)).map(({ kind, metadata }) => `${kind}/${metadata.namespace ?? ''}/${metadata.name}`)
  }
  const expected = repository.expectedUnhealthy.map(({ what }) => what)
  await eventually('the others are healthy', async () => (await unhealthy()).every((key) => expected.includes(key)), 60_000)
  expect((await unhealthy()).toSorted()).toEqual(expected.toSorted())
}, 90_000)
