// Ten thousand agents lose their server for an hour and all come back in the same moment, each with twenty rows to
// tell: seconds until the last one is acknowledged and polls again. The server is the program itself, started after the
// outage on the data folder of an existing fleet; only joining was done beforehand, by its own code.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { type OrderedProcess, startOrdered } from './agents-process.ts'
import { percentile, residentMb, rounded } from './figures.ts'
import type { Say } from './parts.ts'
import { machineMs } from './polling-agent.ts'
import { createProbedFleet, type ProbedFleet, peakResidentMb, processorMs } from './server-process.ts'
import { firstRows } from './store-rows.ts'
import { atOnce, joinSites, openStore, placeServices, report } from './store-sites.ts'
import type { StormMember } from './storm-agent.ts'
import type { StormOrder, StormReport } from './storm-agents.ts'

type Crowd = Array<OrderedProcess<StormOrder, StormReport>>

const SITES = Number(process.env['SKERRY_BENCH_AGENTS'] ?? 10_000)
const PROCESSES = 2
const STORM_MS_MAX = 180_000
/** For agents whose waiting poll may be refused. */
const SETTLE_MS = 2_000

export async function benchStorm(say: Say): Promise<Record<string, number>> {
  const folder = createDataFolder('skerry-storm')
  const crowd: Crowd = Array.from({ length: PROCESSES }, () => startOrdered<StormOrder, StormReport>('storm-agents.ts'))
  let probed: ProbedFleet | null = null
  try {
    const dataDir = join(folder.path, 'server')
    const file = join(folder.path, 'members.json')
    mkdirSync(dataDir)
    writeFileSync(file, JSON.stringify(await prepare(dataDir, say)))
    probed = await createProbedFleet({ dataDir })
    const port = Number(new URL(probed.fleet.serverUrl).port)
    await Promise.all(crowd.map((agents, part) => agents.order({ do: 'load', file, port, part, of: PROCESSES })))
    return await storm(probed, crowd, say)
  } catch (error) {
    say(`the server's last words:\n${probed?.fleet.serverLog().split('\n').slice(-5).join('\n') ?? ''}`)
    throw error
  } finally {
    for (const agents of crowd) agents.end()
    await probed?.fleet.stop()
    await folder.remove()
  }
}

/** A fleet before the outage: every cluster joined, has four services and reported everything. */
async function prepare(dataDir: string, say: Say): Promise<StormMember[]> {
  const startMs = performance.now()
  const store = await openStore(join(dataDir, 'fleet.sqlite'))
  const sites = await joinSites(store, SITES)
  const cursors = await placeServices(dataDir, store, sites)
  await atOnce(sites, (site) => report(store, site, firstRows(site.number)))
  await store.close()
  say(`${SITES} clusters prepared in ${rounded((performance.now() - startMs) / 1_000)} s`)
  return sites.map(({ number, clusterId, agentId, signing }) => {
    const { privateKey } = signing
    return { number, agentId, privateKey, cursor: cursors.get(clusterId) ?? '' }
  })
}

async function storm({ fleet, measureLag }: ProbedFleet, crowd: Crowd, say: Say): Promise<Record<string, number>> {
  const pid = fleet.serverPid()
  const [beforeMb, cpuMs] = [residentMb(pid), processorMs(pid)]
  const lagging = measureLag()
  const startMs = machineMs()
  await Promise.all(crowd.map((agents) => agents.order({ do: 'come back' })))
  let reports: StormReport[] = []
  const done = () => reports.reduce((sum, { doneAtMs }) => sum + doneAtMs.length, 0)
  while (done() < SITES) {
    if (machineMs() - startMs > STORM_MS_MAX) throw new Error(`${SITES - done()} agents are not back after ${STORM_MS_MAX / 1_000} s`)
    await Bun.sleep(500)
    reports = await Promise.all(crowd.map((agents) => agents.order({ do: 'report' })))
  }
  const lag = await lagging.stop()
  const usedMs = processorMs(pid) - cpuMs
  await Bun.sleep(SETTLE_MS)
  reports = await Promise.all(crowd.map((agents) => agents.order({ do: 'report' })))
  const polling = reports.reduce((sum, each) => sum + each.polling, 0)
  if (polling < SITES) throw new Error(`only ${polling} of ${SITES} poll`)
  const lastMs = reports.flatMap(({ doneAtMs }) => doneAtMs).reduce((a, b) => Math.max(a, b)) - startMs
  const latencies = reports.flatMap(({ latenciesMs }) => latenciesMs)
  const total = (of: (each: StormReport) => number) => reports.reduce((sum, each) => sum + of(each), 0)
  const figures = {
    reconnect_storm_10000_s: rounded(lastMs / 1_000),
    reconnect_storm_timeouts: total(({ timeouts }) => timeouts),
    reconnect_storm_cuts: total(({ cuts }) => cuts),
    reconnect_storm_429: total(({ refused }) => refused['429'] ?? 0),
    reconnect_storm_503: total(({ refused }) => refused['503'] ?? 0),
    reconnect_storm_latency_p50_ms: rounded(percentile(latencies, 50), 0),
    reconnect_storm_latency_p99_ms: rounded(percentile(latencies, 99), 0),
    reconnect_storm_latency_max_ms: rounded(
      latencies.reduce((a, b) => Math.max(a, b), 0),
      0,
    ),
    reconnect_storm_lag_p99_ms: lag.p99Ms,
    reconnect_storm_server_cpu_ms: usedMs,
    reconnect_storm_server_rss_mb: residentMb(pid),
    reconnect_storm_server_rss_peak_mb: peakResidentMb(pid),
  }
  say(
    `${SITES} agents are back in ${figures.reconnect_storm_10000_s} s; server ${beforeMb} MB before, ${figures.reconnect_storm_server_rss_mb} MB after`,
  )
  return figures
}
