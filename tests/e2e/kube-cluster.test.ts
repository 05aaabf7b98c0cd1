// The test cluster itself: what other end-to-end tests take for granted.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CLUSTER_START_TIMEOUT_MS, type Etcd, eventually, type KubeCluster, startEtcd, startKubeCluster } from '../support/kube-cluster.ts'

let etcd: Etcd
let one: KubeCluster
let two: KubeCluster

beforeAll(async () => {
  etcd = await startEtcd()
  ;[one, two] = await Promise.all([startKubeCluster({ name: 'one', etcd }), startKubeCluster({ name: 'two', etcd, controllers: false })])
}, CLUSTER_START_TIMEOUT_MS)

afterAll(async () => {
  await Promise.all([one?.stop(), two?.stop()])
  await etcd?.stop()
})

const pod = { containers: [{ name: 'main', image: 'none' }] }
const template = { metadata: { labels: { app: 'x' } }, spec: pod }
const selector = { matchLabels: { app: 'x' } }

async function readyReplicas(kind: string, name: string): Promise<number> {
  return Number(await one.kubectl(['get', kind, name, '-o', 'jsonpath={.status.readyReplicas}']))
}

test('a Deployment of three becomes Ready on nodes that run nothing', async () => {
  const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'three' }, spec: { replicas: 3, selector, template } }
  await one.kubectl(['apply', '--server-side', '-f', '-'], { stdin: JSON.stringify(deployment) })
  await eventually('three ready replicas', async () => (await readyReplicas('deployment', 'three')) === 3)
}, 60_000)

test('a StatefulSet with volumes becomes ready: volumes are provisioned by the default class', async () => {
  const volumeClaimTemplates = [
    { metadata: { name: 'data' }, spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } },
  ]
  const spec = { replicas: 2, serviceName: 'two', selector, template, volumeClaimTemplates }
  const statefulSet = { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'two' }, spec }
  await one.kubectl(['apply', '--server-side', '-f', '-'], { stdin: JSON.stringify(statefulSet) })
  await eventually('two ready replicas', async () => (await readyReplicas('statefulset', 'two')) === 2)
}, 60_000)

test('a namespace that is deleted is gone', async () => {
  await one.kubectl(['create', 'namespace', 'short'])
  await one.kubectl(['delete', 'namespace', 'short', '--timeout=30s'])
  await expect(one.kubectl(['get', 'namespace', 'short'])).rejects.toThrow('NotFound')
}, 60_000)

test('two clusters on one etcd do not see each other', async () => {
  await one.kubectl(['create', 'configmap', 'only-one'])
  await two.kubectl(['create', 'configmap', 'only-two'])
  const names = async (cluster: KubeCluster) => await cluster.kubectl(['get', 'configmap', '-o', 'name'])
  expect(await names(one)).toContain('configmap/only-one')
  expect(await names(one)).not.toContain('configmap/only-two')
  expect(await names(two)).toContain('configmap/only-two')
  expect(await names(two)).not.toContain('configmap/only-one')
})

test('the audit log tells requests apart by user agent and by mark', async () => {
  const mark = one.auditMark()
  await fetch(`${one.server}/api/v1/namespaces/default/configmaps/only-one`, {
    headers: { authorization: `Bearer ${one.token}`, 'user-agent': 'counted/1.0' },
    tls: { ca: one.caPem },
  })
  expect(one.auditLines({ userAgent: 'counted', since: mark }).map(({ verb, objectRef }) => `${verb} ${objectRef?.name}`)).toEqual([
    'get only-one',
  ])
  expect(one.auditLines({ userAgent: 'counted', since: one.auditMark() })).toEqual([])
  expect(two.auditLines({ userAgent: 'counted' })).toEqual([])
})

test('after a restart of the API server everything is there, under the same address and certificate', async () => {
  await two.stopApiServer()
  await expect(two.kubectl(['get', 'configmap', '--request-timeout=2s'])).rejects.toThrow('refused')
  await two.startApiServer()
  expect(await two.kubectl(['get', 'configmap', '-o', 'name'])).toContain('configmap/only-two')
}, 60_000)

test('a paused API server answers nobody until it is resumed', async () => {
  two.pause()
  await expect(two.kubectl(['get', 'configmap', '--request-timeout=1s'])).rejects.toThrow()
  two.resume()
  expect(await two.kubectl(['get', 'configmap', '-o', 'name'])).toContain('configmap/only-two')
}, 60_000)

test('after a kill -9 of whoever started it, no process and no folder is left', async () => {
  const program = `
    import { startEtcd } from ${JSON.stringify(join(import.meta.dir, '..', '..', 'scripts', 'local-cluster', 'etcd.ts'))}
    const { url } = await startEtcd()
    process.stdout.write(url + '\\n')
    await Bun.sleep(60_000)`
  const temp = mkdtempSync(join(tmpdir(), 'kill-'))
  const starter = Bun.spawn([process.execPath, '-e', program], { stdout: 'pipe', stderr: 'inherit', env: { ...process.env, TMPDIR: temp } })
  try {
    const { value } = await starter.stdout.getReader().read()
    const url = new TextDecoder().decode(value).trim()
    expect((await fetch(`${url}/health`)).ok).toBe(true)
    expect(readdirSync(temp)).toHaveLength(1)
    starter.kill('SIGKILL')
    await eventually('its data is gone', async () => readdirSync(temp).length === 0, 10_000)
    await expect(fetch(`${url}/health`)).rejects.toThrow()
  } finally {
    starter.kill('SIGKILL')
    rmSync(temp, { recursive: true, force: true })
  }
}, 60_000)
