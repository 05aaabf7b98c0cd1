// The sea cuts the site off: what the agent does alone, and that no sudden death loses or deletes anything.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { postgresIsWanted } from '../../scripts/local-cluster/postgres.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually } from '../support/kube-cluster.ts'
import { agentWrites, configMapYaml, deploymentYaml, type Scenario, serviceYaml, startScenario } from '../support/scenario.ts'

setDefaultTimeout(60_000)
let scenario: Scenario
const site = () => {
  const found = scenario.sites['ferry']
  if (found === undefined) throw new Error('no site')
  return found
}
const kubectl = (...args: string[]) => site().cluster.kubectl(args)
const SETTINGS = 30

beforeAll(async () => {
  scenario = await startScenario({ sites: { ferry: { labels: { env: 'prod' } } } })
  await scenario.fleet.run(['apply', '-f', '-'], { stdin: serviceYaml({ name: 'web' }) + serviceYaml({ name: 'settings' }) })
  await scenario.push({ 'web/deployment.yaml': deploymentYaml('web', 2), ...settings('start') })
  await scenario.settled('ferry', ['web', 'settings'])
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => scenario?.stop())

function settings(value: string): Record<string, string> {
  return Object.fromEntries(Array.from({ length: SETTINGS }, (_, n) => [`settings/s${n}.yaml`, configMapYaml(`s${n}`, { value })]))
}

test('E2E4 an agent started with no server restores a Deployment that was deleted meanwhile', async () => {
  const uid = await kubectl('get', 'deployment', 'web', '-n', 'web', '-o', 'jsonpath={.metadata.uid}')
  await scenario.fleet.killServer()
  await site().agent.kill()
  await kubectl('delete', 'deployment', 'web', '-n', 'web')
  await site().agent.start()
  await eventually(
    'the Deployment is back',
    async () => {
      const now = await kubectl('get', 'deployment', 'web', '-n', 'web', '-o', 'jsonpath={.metadata.uid}').catch(() => '')
      return now !== '' && now !== uid
    },
    30_000,
  )
  const status = await eventually('status says that the server is away', async () => {
    const report = await site().agent.status()
    return report.link?.error ? report : undefined
  })
  expect(status.link?.error?.code).toBe('server_unreachable')
  expect(status.enforcement.state).toBe('enforcing')
  await scenario.fleet.startServer()
  await scenario.settled('ferry', ['web', 'settings'])
}, 120_000)

test('E2E4 twenty kills at random points of a sync lose nothing and delete nothing', async () => {
  const random = seededRandom(20)
  const since = site().cluster.auditMark()
  let commit = ''
  for (let round = 0; round < 20; round++) {
    commit = await scenario.push(settings(`round ${round}`))
    await Bun.sleep(random() * 250)
    await site().agent.kill()
    await site().agent.start()
    await Bun.sleep(random() * 400)
  }
  await scenario.settled('ferry', ['settings'], { commit, timeoutMs: 60_000 })
  const values = await kubectl(
    'get',
    'configmaps',
    '-n',
    'settings',
    '-o',
    'jsonpath={range .items[*]}{.metadata.name}={.data.value}{"\\n"}{end}',
  )
  const ours = values.split('\n').filter((line) => /^s\d+=/.test(line))
  expect(ours).toHaveLength(SETTINGS)
  expect(new Set(ours.map((line) => line.split('=')[1]))).toEqual(new Set(['round 19']))
  expect(agentWrites(site().cluster, since).filter((event) => event.verb === 'delete')).toEqual([])
  expect((await site().agent.status()).replica?.verified).toBe(true)
}, 180_000)

test('E2E4 a killed server loses nothing: agent and server go on where they were', async () => {
  const before = await site().agent.status()
  await scenario.fleet.killServer()
  await scenario.fleet.startServer()
  const commit = await scenario.push({ 'settings/s0.yaml': configMapYaml('s0', { value: 'after the crash' }) })
  await scenario.settled('ferry', ['settings'], { commit })
  const after = await site().agent.status()
  // Same shard file: a delta was enough.
  expect(after.replica?.position?.split('.')[0]).toBe(before.replica?.position?.split('.')[0])
}, 90_000)

test.skipIf(!postgresIsWanted())(
  'ST14 E2E4 while the database of the server is down the agent goes on enforcing, and everything follows when it is back',
  async () => {
    const { database } = scenario.fleet
    const server = scenario.fleet.serverPid()
    const uidOfWeb = () => kubectl('get', 'deployment', 'web', '-n', 'web', '-o', 'jsonpath={.metadata.uid}').catch(() => '')
    const uid = await uidOfWeb()
    await database?.postgres.crash()
    const told = await scenario.fleet.skerry(['get', 'services'])
    expect([told.code === 0, told.stderr]).toEqual([false, expect.stringContaining('PostgreSQL')])
    await kubectl('delete', 'deployment', 'web', '-n', 'web')
    await eventually('the Deployment is back', async () => !['', uid].includes(await uidOfWeb()), 30_000)
    expect((await site().agent.status()).enforcement.state).toBe('enforcing')
    await database?.postgres.restart()
    await eventually('the server answers', async () => (await scenario.fleet.skerry(['get', 'services'])).code === 0)
    const commit = await scenario.push({ 'settings/s0.yaml': configMapYaml('s0', { value: 'after the outage' }) })
    await scenario.settled('ferry', ['settings'], { commit })
    expect(scenario.fleet.serverPid()).toBe(server)
  },
  120_000,
)
