// A real Prometheus scrapes a real server and the probes of an agent, and runs every expression of the alert rules and
// of the dashboard.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type LocalApi, serveLocalApi } from '../../agent/local-api.ts'
import { AGENT_METRICS } from '../../agent/metrics.ts'
import type { AgentReport } from '../../agent/observe/report.ts'
import { clusterIdOf, clusterName } from '../../scripts/benchmarks/fleet-rows.ts'
import { fillSqlite } from '../../scripts/benchmarks/store-fleet.ts'
import { type ChildProcess, createDataFolder, freePort, startChild, waitUntil } from '../../scripts/local-cluster/child-process.ts'
import { SERVER_METRICS } from '../../server/observe/server-metrics.ts'
import { type RunningServer, startServer } from '../../server/server.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import { PROCESS_METRICS } from '../../shared/adapters/metrics.ts'
import { parseYamlDocuments } from '../../shared/adapters/yaml.ts'
import type { AgentMetricsStatus } from '../../shared/model/status.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import { repositoryDoc } from '../support/admin-app.ts'
import { ROOT } from '../support/source-files.ts'

const program = (name: string) => join(ROOT, 'build/prometheus', name)
const monitoring = (name: string) => join(ROOT, 'monitoring', name)
const HOST = '127.0.0.1'
const REPORT: AgentReport = {
  ...{
    running: true,
    version: '1.2.3',
    clusterId: 'c1',
    agentId: 'a1',
    incarnation: 1,
    recipient: null,
    link: null,
    disk: null,
    policy: null,
    ageKeys: null,
    foreignRecipient: null,
  },
  enforcement: { state: 'waiting', message: 'not joined to a server yet' },
  replica: { position: null, epoch: 1, rows: 4, verified: true },
  resync: { compared: 7, differences: 0 },
  ...{ outboxDepth: 3, todayBytes: 9 },
  services: [{ name: 'default/web', status: null }],
}

const folder = createDataFolder('skerry-prometheus')
/** A fleet with objects in every state, whose first agent reported its metrics; its server then works, asks and tells.
 */
async function fillFleet(): Promise<void> {
  const path = join(folder.path, 'fleet.sqlite')
  await fillSqlite(path, { clusters: 12, services: 5, objects: 200, nowMs: systemClock.nowMs() })
  const store = await openSqliteStore(path, { clock: systemClock, random: systemRandom })
  const nowMs = systemClock.nowMs()
  const doc: AgentMetricsStatus = {
    ...{ atMs: nowMs, everyMs: 900_000, startedMs: nowMs - 1e8, cpuSeconds: 3, residentBytes: 7e7, enforcing: false, diskWritable: true },
    ...{ replicaRows: 400, outboxRows: 2, requests: 9_000, sentBytes: 3e6, receivedBytes: 4e6, todayBytes: 7e5 },
    ...{ resyncCompared: 4_000, resyncDifferences: 0 },
  }
  const row = { kind: 'agent', key: 'metrics', rev: 9 * REV_INCARNATION, doc } as const
  await store.upsertStatus(clusterIdOf(0), [row], { complete: false, nowMs })
  await store.close()
}
async function work(): Promise<void> {
  const call = async (path: string, body: object) => {
    const headers = { authorization: `Bearer ${server.firstAdminToken}`, 'content-type': 'application/json' }
    return (await fetch(`${server.url}/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).text()
  }
  await call('/apply', { resources: [repositoryDoc('none', { project: 'default' })] })
  await call(`/clusters/${clusterName(0)}/ask`, { question: { kind: 'nodes' } })
}
let server: RunningServer
let agent: LocalApi
let prometheus: ChildProcess
const ports = { open: freePort(), agent: freePort(), prometheus: freePort() }

beforeAll(async () => {
  const metrics = { series: 'all', listen: { hostname: HOST, port: ports.open } } as const
  const deps = { clock: systemClock, random: systemRandom, log: silentLogger }
  await fillFleet()
  server = await startServer({ dataDir: folder.path, hostname: HOST, port: 0, metrics }, deps)
  agent = serveLocalApi(
    folder.path,
    { report: () => REPORT, order: () => ({ kind: 'refused', message: '' }) },
    { hostname: HOST, port: ports.agent },
  )
  const config = join(folder.path, 'prometheus.json')
  writeFileSync(join(folder.path, 'token'), server.firstAdminToken ?? '')
  writeFileSync(config, JSON.stringify(scrapeConfig(join(folder.path, 'token'))))
  const address = `${HOST}:${ports.prometheus}`
  const command = [
    program('prometheus'),
    `--config.file=${config}`,
    `--storage.tsdb.path=${folder.path}/data`,
    `--web.listen-address=${address}`,
  ]
  prometheus = startChild(command, join(folder.path, 'log'))
  const scraped = async () =>
    (await query('count(up == 1)'))[0]?.value === TARGETS && (await query('skerry_http_requests_total{job="skerry"}')).length > 0
  await waitUntil('Prometheus scrapes all targets', scraped, { timeoutMs: 90_000, child: prometheus })
  await work()
}, 120_000)
afterAll(async () => {
  await prometheus?.kill()
  await agent?.stop()
  await server?.stop()
  await folder.remove()
})

const TARGETS = 3
/** JSON is YAML, too. */
const scrapeConfig = (tokenFile: string) => ({
  global: { scrape_interval: '2s', scrape_timeout: '2s' },
  rule_files: [monitoring('alerts.yaml')],
  scrape_configs: [
    { job_name: 'skerry', static_configs: [{ targets: [`${HOST}:${ports.open}`] }] },
    {
      job_name: 'skerry-by-token',
      metrics_path: '/api/v1/metrics',
      authorization: { credentials_file: tokenFile },
      static_configs: [{ targets: [new URL(server.url).host] }],
    },
    { job_name: 'skerry-agent', static_configs: [{ targets: [`${HOST}:${ports.agent}`] }] },
  ],
})

/** Throws what Prometheus says of a wrong expression. */
async function query(expression: string): Promise<Array<{ labels: Record<string, string>; value: number }>> {
  const form = new URLSearchParams({ query: expression })
  const answer = await fetch(`http://${HOST}:${ports.prometheus}/api/v1/query`, { method: 'POST', body: form })
  const body = (await answer.json()) as {
    error?: string
    data: { result: Array<{ metric: Record<string, string>; value: [number, string] }> }
  }
  if (body.error !== undefined) throw new Error(`${expression}: ${body.error}`)
  return body.data.result.map(({ metric, value: [, value] }) => ({ labels: metric, value: Number(value) }))
}

/** Output of promtool, which exits with 0 if it finds nothing wrong. */
async function promtool(args: string[], input = ''): Promise<{ code: number; output: string }> {
  const run = Bun.spawn([program('promtool'), ...args], { stdin: new TextEncoder().encode(input), stdout: 'pipe', stderr: 'pipe' })
  const [out, err] = await Promise.all([new Response(run.stdout).text(), new Response(run.stderr).text()])
  return { code: await run.exited, output: out + err }
}

/** promtool knows the older text format only, in which the family of a counter has its ending. */
const classic = (text: string): string =>
  [...text.matchAll(/^# TYPE (\S+) counter$/gm)].reduce(
    (left, [, name]) => left.replaceAll(new RegExp(`^# (HELP|TYPE) ${name} `, 'gm'), `# $1 ${name}_total `),
    text.replace('# EOF\n', ''),
  )

/** Names of metrics in an expression, without the endings of histograms. */
const namesIn = (expression: string): string[] =>
  [...expression.matchAll(/\b(?:skerry|process)_[a-z_]+/g)].map(([name]) => name.replace(/_(bucket|sum|count)$/, ''))

interface Panel {
  title: string
  targets: Array<{ expr: string }>
}
const dashboard = JSON.parse(readFileSync(monitoring('dashboard.json'), 'utf8')) as { panels: Panel[] }
const shown = dashboard.panels.flatMap(({ title, targets }) =>
  targets.map(({ expr }) => [title, expr.replaceAll('$__rate_interval', '1m')]),
)
const rules = parseYamlDocuments(readFileSync(monitoring('alerts.yaml'), 'utf8'), { file: 'alerts.yaml' }).documents[0]?.value as {
  groups: Array<{ rules: Array<{ alert: string; expr: string }> }>
}
const alerts = rules.groups.flatMap(({ rules }) => rules.map(({ alert, expr }) => [alert, expr]))

test('OB1 the server answers scrapes on an address of its own, and on the API with a token that may read', async () => {
  expect((await fetch(`${server.url}/api/v1/metrics`)).status).toBe(401)
  expect((await fetch(`${server.url}/metrics`)).status).toBe(404)
  const up = await query('up')
  expect(up.map(({ labels, value }) => [labels['job'], value]).sort()).toEqual([
    ['skerry', 1],
    ['skerry-agent', 1],
    ['skerry-by-token', 1],
  ])
})

test('OB2 metrics have a documented name, and promtool finds nothing wrong with their text', async () => {
  for (const port of [ports.open, ports.agent]) {
    const text = await (await fetch(`http://${HOST}:${port}/metrics`)).text()
    expect(await promtool(['check', 'metrics'], classic(text))).toEqual({ code: 0, output: '' })
  }
})

test('OB3 counts of the fleet and of the agent reach Prometheus', async () => {
  expect((await query('skerry_build_info{job="skerry"}'))[0]?.value).toBe(1)
  expect((await query('sum(skerry_http_requests_total{job="skerry",route="api",code="200"})'))[0]?.value).toBeGreaterThan(0)
  expect((await query('skerry_agent_outbox_rows{job="skerry-agent"}'))[0]?.value).toBe(3)
  expect((await query('skerry_agent_enforcing{job="skerry-agent"}'))[0]).toMatchObject({ labels: { state: 'waiting' }, value: 0 })
  expect((await query('skerry_agent_services{job="skerry-agent",sync="Unknown",health="Unknown"}'))[0]?.value).toBe(1)
})

test('OB4 the alert rules are valid, and each fires on its fault and not on a healthy fleet', async () => {
  expect(await promtool(['check', 'rules', monitoring('alerts.yaml')])).toMatchObject({ code: 0 })
  const fixture = join(ROOT, 'tests/fixtures/alerts.test.yaml')
  expect(await promtool(['test', 'rules', fixture])).toMatchObject({ code: 0 })
  const tested = readFileSync(fixture, 'utf8')
  expect(alerts.filter(([alert]) => !tested.includes(`alertname="${alert}"`))).toEqual([])
})

test.each([...shown, ...alerts])('OB4 the expression of %s can be run and names metrics that exist', async (_, expression) => {
  await query(expression ?? '')
  const known = new Set([...Object.keys(SERVER_METRICS), ...Object.keys(AGENT_METRICS), ...Object.keys(PROCESS_METRICS)])
  expect(namesIn(expression ?? '').filter((name) => !known.has(name))).toEqual([])
})

test.each(shown)(
  'OB4 the panel %s shows the fleet',
  async (_, expression) => {
    // A rate needs two scrapes.
    await waitUntil('the panel has a series', async () => (await query(expression ?? '')).length > 0, {
      timeoutMs: 20_000,
      child: prometheus,
    })
  },
  30_000,
)
