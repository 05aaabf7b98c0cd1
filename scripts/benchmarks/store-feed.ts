// From a commit to a watcher of the feed: a reader of server-sent events at a real server whose agents push a hundred
// times a second, and on PostgreSQL the store of a second process that learns of the first one's commits by NOTIFY. The
// time begins right before the commit, so it includes the commit itself.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { openPostgresStore } from '../../server/store/kysely-store.ts'
import { changeViewSchema, EVENT_STREAM } from '../../shared/model/change.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import { createDataFolder } from '../local-cluster/child-process.ts'
import type { LocalFleet } from '../local-cluster/local-fleet.ts'
import { startPostgres } from '../local-cluster/postgres.ts'
import { linesOf, startOrdered } from './agents-process.ts'
import { percentile, rounded } from './figures.ts'
import type { Say } from './parts.ts'
import { createProbedFleet, type ProbedFleet } from './server-process.ts'
import { changedRows } from './store-rows.ts'
import { joinSites, openStore, placeServices, report } from './store-sites.ts'
import type { StormOrder, StormReport } from './storm-agents.ts'

const SITES = 100
const EVERY_MS = 1_000
const MEASURED_MS = 10_000
const COMMITS = 500

export async function benchFeed(say: Say): Promise<Record<string, number>> {
  const folder = createDataFolder('skerry-feed')
  const agents = startOrdered<StormOrder, StormReport>('storm-agents.ts')
  let probed: ProbedFleet | null = null
  try {
    const file = join(folder.path, 'members.json')
    const dataDir = join(folder.path, 'server')
    mkdirSync(dataDir)
    const store = await openStore(join(dataDir, 'fleet.sqlite'))
    const sites = await joinSites(store, SITES)
    const cursors = await placeServices(dataDir, store, sites)
    await store.close()
    writeFileSync(
      file,
      JSON.stringify(sites.map((site) => ({ ...site, privateKey: site.signing.privateKey, cursor: cursors.get(site.clusterId) }))),
    )
    probed = await createProbedFleet({ dataDir })
    await agents.order({ do: 'load', file, port: Number(new URL(probed.fleet.serverUrl).port), part: 0, of: 1 })
    await agents.order({ do: 'keep telling', everyMs: EVERY_MS })
    const latencies = await followed(probed.fleet)
    say(`${latencies.length} changes followed, p50 ${rounded(percentile(latencies, 50))} ms, p99 ${rounded(percentile(latencies, 99))} ms`)
    return { feed_latency_p50_ms: rounded(percentile(latencies, 50)), feed_latency_p99_ms: rounded(percentile(latencies, 99)) }
  } finally {
    agents.end()
    await probed?.fleet.stop()
    await folder.remove()
  }
}

/** Both sides have the same clock, in whole ms. */
async function followed({ serverUrl, token }: LocalFleet): Promise<number[]> {
  const ended = new AbortController()
  const headers = { authorization: `Bearer ${token}`, accept: EVENT_STREAM }
  const response = await fetch(`${serverUrl}/api/v1/changes`, { headers, signal: ended.signal })
  if (!response.ok || response.body === null) throw new Error(`the feed: HTTP ${response.status}`)
  const latencies: number[] = []
  const untilMs = performance.now() + MEASURED_MS
  for await (const line of linesOf(response.body as ReadableStream<Uint8Array>)) {
    const change = line.startsWith('data: ') ? changeViewSchema.safeParse(JSON.parse(line.slice('data: '.length))) : null
    if (change?.success) latencies.push(Date.now() - change.data.atMs)
    if (performance.now() > untilMs) break
  }
  ended.abort()
  return latencies
}

export async function benchFeedPostgres(say: Say): Promise<Record<string, number>> {
  const postgres = await startPostgres()
  try {
    const target = parsePostgresUrl(await postgres.createDatabase())
    const open = () => openPostgresStore({ target }, { random: systemRandom, clock: systemClock })
    const [writer, follower] = [await open(), await open()]
    const sites = await joinSites(writer, SITES)
    const ended = new AbortController()
    const latencies: number[] = []
    const following = (async () => {
      const options = { signal: ended.signal, idleMs: MEASURED_MS }
      for await (const step of follower.changes.follow(await follower.changes.position(), options))
        if (step.kind === 'changes') for (const { atMs } of step.items) latencies.push(Date.now() - atMs)
    })()
    await Bun.sleep(500)
    for (let n = 0; n < COMMITS; n++) {
      const site = sites[n % sites.length]
      if (site !== undefined) await report(writer, site, changedRows(site.number, 1 + Math.floor(n / sites.length)))
      await Bun.sleep(10)
    }
    await Bun.sleep(500)
    ended.abort()
    await following
    await Promise.all([writer.close(), follower.close()])
    if (latencies.length < COMMITS) throw new Error(`only ${latencies.length} changes of ${COMMITS} commits were heard of`)
    say(`${latencies.length} changes heard of, p99 ${rounded(percentile(latencies, 99))} ms`)
    return { feed_latency_p99_ms_postgres: rounded(percentile(latencies, 99)) }
  } finally {
    await postgres.stop()
  }
}
