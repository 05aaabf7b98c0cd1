// The compiled server and the compiled agent with a real Kubernetes API: killed, frozen and killed again while
// revisions are applied. What the API server's audit log says counts: nothing of ours was ever deleted.
// 20 rounds, 30 with `scripts/check --long`, or SKERRY_CHAOS_CLUSTER_ROUNDS.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { cpSync } from 'node:fs'
import { seededRandom } from '../../shared/runtime/random.ts'
import { processSize } from '../support/chaos-fleet.ts'
import { inLong } from '../support/extent.ts'
import { CLUSTER_START_TIMEOUT_MS, eventually } from '../support/kube-cluster.ts'
import { agentWrites, configMapYaml, joinToken, type Scenario, type Site, serviceYaml, startScenario } from '../support/scenario.ts'

const ROUNDS = Number(process.env['SKERRY_CHAOS_CLUSTER_ROUNDS'] ?? inLong(30, 20))
setDefaultTimeout(120_000 + ROUNDS * 3_000)
const SETTINGS = 40
const AGENT_RSS_MB_MAX = 250
let scenario: Scenario
let site: Site

beforeAll(async () => {
  scenario = await startScenario({ sites: { reef: { labels: { env: 'prod' }, controllers: false } }, programs: 'dist' })
  const found = scenario.sites['reef']
  if (found === undefined) throw new Error('no site')
  site = found
  await scenario.fleet.run(['apply', '-f', '-'], { stdin: serviceYaml({ name: 'settings' }) })
  await scenario.push(settings('start'))
  await scenario.settled('reef', ['settings'])
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => scenario?.stop())

const settings = (value: string): Record<string, string> =>
  Object.fromEntries(Array.from({ length: SETTINGS }, (_, n) => [`settings/s${n}.yaml`, configMapYaml(`s${n}`, { value })]))

async function freeze(pid: number, ms: number): Promise<void> {
  process.kill(pid, 'SIGSTOP')
  await Bun.sleep(ms)
  process.kill(pid, 'SIGCONT')
}

test('RV2 IV1 RP1 kills and stops of compiled server and agent at random moments delete nothing and end at the newest revision', async () => {
  const random = seededRandom(9)
  const { fleet } = scenario
  const since = site.cluster.auditMark()
  let commit = ''
  const counts = { agentKills: 0, serverKills: 0, frozen: 0 }
  for (let round = 0; round < ROUNDS; round++) {
    commit = await scenario.push(settings(`round ${round}`)).catch(() => commit)
    await Bun.sleep(random() * 300)
    const what = random()
    if (what < 0.6) {
      await site.agent.kill()
      await site.agent.start()
      counts.agentKills++
    }
    if (what > 0.45 && what < 0.8) {
      await fleet.killServer()
      await fleet.startServer()
      counts.serverKills++
    }
    if (what >= 0.8) {
      await freeze(what < 0.9 ? site.agent.pid() : fleet.serverPid(), 300 + random() * 400)
      counts.frozen++
    }
  }
  commit = await scenario.push(settings('last'))
  await scenario.settled('reef', ['settings'], { commit, timeoutMs: 90_000 })
  const jsonpath = 'jsonpath={range .items[*]}{.metadata.name}={.data.value}{"\\n"}{end}'
  const values = await site.cluster.kubectl(['get', 'configmaps', '-n', 'settings', '-o', jsonpath])
  const ours = values.split('\n').filter((line) => /^s\d+=/.test(line))
  expect(ours.map((line) => line.split('=')[1])).toEqual(Array.from({ length: SETTINGS }, () => 'last'))
  const writes = agentWrites(site.cluster, since)
  expect(writes.filter((event) => event.verb === 'delete' || event.verb === 'deletecollection')).toEqual([])
  const report = await eventually('the agent says that all is well', async () => {
    const status = await site.agent.status()
    return status.link?.state === 'following' && status.outboxDepth === 0 ? status : undefined
  })
  expect([report.replica?.verified, report.enforcement.state]).toEqual([true, 'enforcing'])
  const size = processSize(site.agent.pid())
  process.stdout.write(`chaos-cluster: ${JSON.stringify({ ...counts, writes: writes.length, agent: size })}\n`)
  expect(size?.rssMb ?? Number.POSITIVE_INFINITY).toBeLessThan(AGENT_RSS_MB_MAX)
})

test('CM2 CM3 SE4 of two compiled agents with one key and one cluster one enforces and the other says why it does not', async () => {
  const { fleet } = scenario
  await site.agent.kill()
  const dataDir = `${site.agent.dataDir}-twin`
  cpSync(site.agent.dataDir, dataDir, { recursive: true, filter: (path) => !path.endsWith('.sock') })
  await site.agent.start()
  // The copy shall be older than what the server knows.
  const commit = await scenario.push(settings('before the twin'))
  await scenario.settled('reef', ['settings'], { commit })
  const twin = await fleet.addAgent({ name: 'reef', cluster: site.cluster, joinToken: await joinToken(fleet, {}), dataDir })
  const both = [site.agent, twin]
  const states = await eventually(
    'one of both is superseded',
    async () => {
      const reports = await Promise.all(both.map((agent) => agent.status()))
      const enforcing = reports.map(({ enforcement }) => enforcement.state === 'enforcing')
      const told = reports.some(({ enforcement, link }) => enforcement.state === 'superseded' && link?.error?.code === 'superseded')
      return told && enforcing.filter(Boolean).length === 1 ? { enforcing } : false
    },
    60_000,
  ).catch(async (error: Error) => {
    const reports = await Promise.all(both.map((agent) => agent.status()))
    const words = reports.map(({ link, enforcement }) => JSON.stringify({ link, enforcement }))
    const logs = both.map((agent) => agent.log().split('\n').slice(-12).join('\n'))
    throw new Error([error.message, ...words, ...logs].join('\n'))
  })
  const since = site.cluster.auditMark()
  const next = await scenario.push(settings('with the twin'))
  await scenario.settled('reef', ['settings'], { commit: next })
  const deletes = agentWrites(site.cluster, since).filter((event) => event.verb === 'delete')
  expect(deletes).toEqual([])
  process.stdout.write(`chaos-cluster: the ${states.enforcing[0] ? 'first' : 'copied'} agent enforces\n`)
})
