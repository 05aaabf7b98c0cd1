// A site whose disk is full: the agent says so, goes on enforcing, and recovers by itself.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync } from 'node:fs'
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

const said = () => scenario.fleet.run(['describe', 'cluster', 'hold'])
const ballast = 'x'.repeat(300_000)

maybe(
  'RP4 an agent whose disk is full uses its reserve and says so, goes on enforcing, and recovers by itself',
  async () => {
    await eventually('there is a reserve', async () => existsSync(join(disk.path, 'agent', 'reserve')) || undefined)
    disk.fill()
    const through = await scenario.push({ 'cargo/a.yaml': configMapYaml('a', { value: 'second', ballast }) })
    await scenario.settled('hold', ['cargo'], { commit: through, timeoutMs: 60_000 })
    expect(await value('a')).toBe('second')
    await eventually('the server knows of the disk', async () => (await said()).includes('disk_full') || undefined)

    disk.fill() // what was given back is taken, too
    const commit = await scenario.push({ 'cargo/a.yaml': configMapYaml('a', { value: 'third', ballast: ballast.replaceAll('x', 'y') }) })
    const { link } = await eventually('status names the disk', async () => {
      const status = await agent.status()
      return status.link?.error?.code === 'disk_full' ? status : undefined
    })
    expect(link?.error?.message).toMatch(/full/i)
    await kubectl('delete', 'configmap', 'b', '-n', 'cargo')
    await eventually('what was deleted is back', async () => (await value('b')) === 'first', 45_000)
    expect(await value('a')).toBe('second')

    disk.free()
    await scenario.settled('hold', ['cargo'], { commit, timeoutMs: 80_000 })
    expect(await value('a')).toBe('third')
    expect((await agent.status()).replica?.verified).toBe(true)
    await eventually('the problem is over', async () => !(await said()).includes('disk_full') || undefined, 80_000)
  },
  300_000,
)
