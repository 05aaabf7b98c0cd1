// Nothing happens, so nothing is done: two idle minutes while the API server ends every watch after 30 to 60 seconds.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { isList } from '../../scripts/local-cluster/audit-log.ts'
import { CLUSTER_START_TIMEOUT_MS } from '../support/kube-cluster.ts'
import {
  AGENT_USER_AGENT,
  agentWrites,
  configMapYaml,
  deploymentYaml,
  requestText,
  type Scenario,
  serviceYaml,
  startScenario,
} from '../support/scenario.ts'

const IDLE_MS = 120_000
setDefaultTimeout(60_000)
let scenario: Scenario

beforeAll(async () => {
  scenario = await startScenario({ sites: { quay: { labels: { env: 'prod' } } } })
  await scenario.fleet.run(['apply', '-f', '-'], { stdin: serviceYaml({ name: 'web' }) })
  await scenario.push({ 'web/deployment.yaml': deploymentYaml('web', 2), 'web/config.yaml': configMapYaml('config', { a: '1' }) })
  await scenario.settled('quay', ['web'])
  await Bun.sleep(3_000)
}, CLUSTER_START_TIMEOUT_MS)
afterAll(() => scenario?.stop())

test(
  'E2E6 two idle minutes: no list and no write at the API server, at most 3 requests a minute to the Skerry server',
  async () => {
    const site = scenario.sites['quay']
    if (site === undefined) throw new Error('no site')
    const before = await site.agent.status()
    const since = site.cluster.auditMark()
    await Bun.sleep(IDLE_MS)
    const after = await site.agent.status()
    const events = site.cluster.auditLines({ userAgent: AGENT_USER_AGENT, since })
    const requests = events.filter((event) => event.stage === 'ResponseComplete')
    expect(agentWrites(site.cluster, since).map(requestText)).toEqual([])
    expect(requests.filter((event) => event.verb !== 'watch').map(requestText)).toEqual([])
    expect(events.filter(isList).map(requestText)).toEqual([])
    expect(requests.length).toBeGreaterThan(0) // watches did expire and were renewed
    const polls = (after.link?.requests ?? 0) - (before.link?.requests ?? 0)
    expect(polls).toBeLessThanOrEqual((3 * IDLE_MS) / 60_000)
    expect(polls).toBeGreaterThan(0)
  },
  IDLE_MS + 60_000,
)
