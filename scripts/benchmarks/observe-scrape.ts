// The time of one scrape of a server of 5,000 clusters with all series, and how long it blocks the event loop.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../shared/runtime/clock.ts'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { percentile, rounded } from './figures.ts'
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
    const rows = await fillSqlite(join(dataDir, 'fleet.sqlite'), {
      clusters: CLUSTERS,
      services: SERVICES,
      objects: 20,
      nowMs: systemClock.nowMs(),
    })
    say(`${rows} status rows`)
    probed = await createProbedFleet({ dataDir })
    await Bun.sleep(SETTLE_MS)
    return await scrape(probed, say)
  } finally {
    await probed?.fleet.stop()
    await folder.remove()
  }
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
