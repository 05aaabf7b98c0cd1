// The time of one scrape of a server of 5,000 clusters with all series, those of agents too, and how long it blocks the
// event loop.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import type { AgentMetricsStatus } from '../../shared/model/status.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { percentile, rounded } from './figures.ts'
import { clusterIdOf } from './fleet-rows.ts'
import type { Say } from './parts.ts'
import { createProbedFleet, type ProbedFleet } from './server-process.ts'
import { fillSqlite } from './store-fleet.ts'

const CLUSTERS = 5_000
const SERVICES = 100
const SCRAPES = 30
/** Time for the reconciliations that follow a start. */
const SETTLE_MS = 8_000
const PAUSE_MS = 100

export async function measureScrape(say: Say): Promise<Record<string, number>> {
  const folder = createDataFolder('skerry-scrape')
  let probed: ProbedFleet | null = null
  try {
    const dataDir = join(folder.path, 'server')
    mkdirSync(dataDir)
    const path = join(dataDir, 'fleet.sqlite')
    const rows = await fillSqlite(path, { clusters: CLUSTERS, services: SERVICES, objects: 20, nowMs: systemClock.nowMs() })
    await reportMetrics(path)
    say(`${rows} status rows`)
    probed = await createProbedFleet({ dataDir })
    await Bun.sleep(SETTLE_MS)
    return await scrape(probed, say)
  } finally {
    await probed?.fleet.stop()
    await folder.remove()
  }
}

/** Metrics that each agent reported. */
async function reportMetrics(path: string): Promise<void> {
  const store = await openSqliteStore(path, { clock: systemClock, random: systemRandom })
  const nowMs = systemClock.nowMs()
  const counts = { replicaRows: 400, outboxRows: 0, requests: 9_000, sentBytes: 3e6, receivedBytes: 4e6, todayBytes: 7e5 }
  const doc = (n: number): AgentMetricsStatus => ({
    ...{ atMs: nowMs, everyMs: 900_000, startedMs: nowMs - 1e8, cpuSeconds: n / 100, residentBytes: 7e7 + n },
    ...{ enforcing: true, diskWritable: true, resyncCompared: 4_000 + n, resyncDifferences: 0, ...counts },
  })
  for (let start = 0; start < CLUSTERS; start += 500)
    await Promise.all(
      Array.from({ length: 500 }, (_, n) => {
        const row = { kind: 'agent', key: 'metrics', rev: 9 * REV_INCARNATION, doc: doc(start + n) } as const
        return store.upsertStatus(clusterIdOf(start + n), [row], { complete: false, nowMs })
      }),
    )
  await store.close()
}

async function scrape({ fleet, measureLag }: ProbedFleet, say: Say): Promise<Record<string, number>> {
  const headers = { authorization: `Bearer ${fleet.token}` }
  const tookMs: number[] = []
  let text = ''
  const lagging = measureLag()
  for (let n = 0; n < SCRAPES; n++) {
    const startMs = performance.now()
    const answer = await fetch(`${fleet.serverUrl}/api/v1/metrics`, { headers })
    text = await answer.text()
    tookMs.push(performance.now() - startMs)
    if (!answer.ok) throw new Error(`scrape: ${answer.status} ${text}`)
    await Bun.sleep(PAUSE_MS)
  }
  const { maxMs } = await lagging.stop()
  const series = text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length
  const [p50, p95] = [50, 95].map((at) => rounded(percentile(tookMs, at)))
  say(`${series} series, ${Math.round(text.length / 1_000)} kB: p50 ${p50} ms, p95 ${p95} ms, longest block ${maxMs} ms`)
  return { scrape_ms: p95 ?? Number.NaN, scrape_block_max_ms: maxMs }
}
