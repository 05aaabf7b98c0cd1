// A site whose disk is full: the agent says so, goes on enforcing, and recovers by itself.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import type { LocalAgent } from '../../scripts/local-cluster/local-fleet.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually, type KubeCluster, startKubeCluster } from '../support/kube-cluster.ts'
import { configMapYaml, joinToken, type Scenario, serviceYaml, startScenario } from '../support/scenario.ts'
import { canMountSmallDisk, mountSmallDisk, type SmallDisk } from '../support/small-disk.ts'

setDefaultTimeout(90_000)
const DISK_MB = 16
let scenario: Scenario
let cluster: KubeCluster
let disk: SmallDisk
let agent: LocalAgent
const maybe = canMountSmallDisk ? test : test.skip
const kubectl = (...args: string[]) => cluster.kubectl(args)
const value = (name: string) => kubectl('get', 'configmap', name, '-n', 'cargo', '-o', 'jsonpath={.data.value}').catch(() => '')

beforeAll(async () => {
  if (!canMountSmallDisk) return
  scenario = await startScenario({ sites: {} })
  cluster = await startKubeCluster({ name: 'hold', controllers: false })
  disk = mountSmallDisk(DISK_MB)
  const dataDir = join(disk.path, 'agent')
  agent = await scenario.fleet.addAgent({ name: 'hold', cluster, joinToken: await joinToken(scenario.fleet, {}), dataDir })
  await scenario.fleet.run(['apply', '-f', '-'], { stdin: serviceYaml({ name: 'cargo' }) })
  await scenario.push({ 'cargo/a.yaml': configMapYaml('a', { value: 'first' }), 'cargo/b.yaml': configMapYaml('b', { value: 'first' }) })
  await scenario.settled('hold', ['cargo'])
}, CLUSTER_START_TIMEOUT_MS)
afterAll(async () => {
  await scenario?.stop()
  await cluster?.stop()
  disk?.remove()
})

maybe('RP4 an agent whose disk is full says so, goes on enforcing, and recovers by itself', async () => {
  disk.fill()
  const commit = await scenario.push({ 'cargo/a.yaml': configMapYaml('a', { value: 'second', ballast: 'x'.repeat(300_000) }) })
  const { link } = await eventually('status names the disk', async () => {
    const status = await agent.status()
    return status.link?.error?.code === 'disk_full' ? status : undefined
  })
  expect(link?.error?.message).toMatch(/full/i)

  await kubectl('delete', 'configmap', 'b', '-n', 'cargo')
  await eventually('what was deleted is back', async () => (await value('b')) === 'first', 45_000)
  expect(await value('a')).toBe('first')

  disk.free()
  await scenario.settled('hold', ['cargo'], { commit, timeoutMs: 80_000 })
  expect(await value('a')).toBe('second')
  expect((await agent.status()).replica?.verified).toBe(true)
})
