// OB5: metrics of agents travel to the server as status rows and become series by cluster.
import { expect, test } from 'bun:test'
import { metricsStatus, reportMetrics } from '../../agent/observe/metrics-report.ts'
import type { AgentReport } from '../../agent/observe/report.ts'
import { sortStatusRows } from '../../server/http/status-rows.ts'
import { createFleetGauges } from '../../server/observe/fleet-gauges.ts'
import { createServerMetrics } from '../../server/observe/server-metrics.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { joinCluster } from '../support/store-fixtures.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

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
  enforcement: { state: 'enforcing', message: '' },
  replica: { position: null, epoch: 1, rows: 4, verified: true },
  resync: { compared: 7, differences: 1 },
  ...{ outboxDepth: 3, todayBytes: 9, services: [] },
}
const MINUTE = 60_000

test('OB5 an agent reports its metrics in its interval, and nothing by default', async () => {
  const clock = createVirtualClock()
  const rows: unknown[] = []
  const deps = { state: { report: (some: readonly unknown[]) => void rows.push(...some) }, read: () => REPORT, clock, log: silentLogger }
  const stop = new AbortController()
  await reportMetrics({ ...deps, everyMs: 0, random: seededRandom(1) }, stop.signal)
  const running = reportMetrics({ ...deps, everyMs: 5 * MINUTE, random: seededRandom(1) }, stop.signal)
  await clock.advance(60 * MINUTE)
  stop.abort()
  await running
  expect(rows.length).toBeGreaterThanOrEqual(10)
  expect(rows.length).toBeLessThanOrEqual(14)
  expect(rows[0]).toMatchObject({ kind: 'agent', key: 'metrics', doc: { outboxRows: 3, replicaRows: 4, enforcing: true } })
  expect(JSON.stringify(rows[0]).length).toBeLessThan(500)
})

test('OB5 the server shows them by cluster, and of a late agent only when it reported', async () => {
  const clock = createVirtualClock()
  const store = await openSqliteStore(':memory:', { clock, random: seededRandom(7) })
  const metrics = createServerMetrics()
  const clusters = [await joinCluster(store, '1'), await joinCluster(store, '2')]
  const push = async (at: number) => {
    const doc = metricsStatus(REPORT, { atMs: clock.nowMs(), everyMs: 5 * MINUTE, startedMs: 0 })
    const { taken, reject } = sortStatusRows([{ kind: 'agent', key: 'metrics', rev: REV_INCARNATION + 1 + at, doc }], 1)
    expect(reject).toEqual([])
    const [clusterId] = clusters.slice(at)
    if (clusterId !== undefined) await store.upsertStatus(clusterId, taken, { complete: false, nowMs: clock.nowMs() })
  }
  await push(0)
  await clock.advance(100 * MINUTE)
  await push(1)
  const read = createFleetGauges({ store, metrics, clock, series: 'all', failingLoops: () => [] })
  await read()
  const text = await (await metrics.answer()).text()
  const series = (name: string) => text.split('\n').flatMap((line) => (line.startsWith(`${name}{`) ? [line.slice(name.length)] : []))
  expect(series('skerry_agent_outbox_rows')).toEqual(['{cluster="cluster-2"} 3'])
  expect(series('skerry_agent_resync_compared_total')).toEqual(['{cluster="cluster-2"} 7'])
  expect(series('skerry_agent_reported_timestamp_seconds')).toHaveLength(2)
  await createFleetGauges({ store, metrics: createServerMetrics(), clock, series: 'fleet', failingLoops: () => [] })()
  await store.close()
})
