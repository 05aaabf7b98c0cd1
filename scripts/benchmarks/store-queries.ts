// Questions about two million objects in ten thousand clusters, asked over HTTP of a real server: how long each answer
// takes while nothing else happens, and how late the server's own loop runs while questions and reports come in
// together.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connectPostgres, connectSqlite } from '../../server/store/engines/connections.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import type { Connections } from '../../server/store/store-db.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { generateKey } from '../../shared/runtime/keys.ts'
import { createDataFolder } from '../local-cluster/child-process.ts'
import type { LocalFleet } from '../local-cluster/local-fleet.ts'
import { startPostgres } from '../local-cluster/postgres.ts'
import { startOrdered } from './agents-process.ts'
import { percentile, rounded } from './figures.ts'
import { type Asked, fleetMix } from './fleet-mix.ts'
import { clusterIdOf } from './fleet-rows.ts'
import type { Say } from './parts.ts'
import { createProbedFleet, type ProbedFleet } from './server-process.ts'
import { fillPostgres, fillSqlite } from './store-fleet.ts'
import type { StormMember } from './storm-agent.ts'
import type { StormOrder, StormReport } from './storm-agents.ts'

const CLUSTERS = Number(process.env['SKERRY_BENCH_AGENTS'] ?? 10_000)
const OBJECTS = 200
const ROUNDS = 10
/** Two thousand rows a second: every cluster of ten thousand tells twenty rows within a hundred seconds. */
const PUSHERS = 200
const PUSH_EVERY_MS = 2_000
const ASKERS = 2
const TOGETHER_MS = 15_000

const shape = () => ({ clusters: CLUSTERS, objects: OBJECTS, nowMs: systemClock.nowMs() })

export async function benchQueries(say: Say): Promise<Record<string, number>> {
  const folder = createDataFolder('skerry-queries')
  let probed: ProbedFleet | null = null
  try {
    const dataDir = join(folder.path, 'server')
    mkdirSync(dataDir)
    const path = join(dataDir, 'fleet.sqlite')
    const rows = await fillSqlite(path, shape())
    const bytes = Bun.file(path).size
    say(`${rows} rows, ${rounded(bytes / 1e6, 0)} MB`)
    const members = await admitPushers(await connectSqlite(path))
    const file = join(folder.path, 'members.json')
    writeFileSync(file, JSON.stringify(members))
    probed = await createProbedFleet({ dataDir })
    const quiet = await askAll(probed.fleet, say)
    const together = await askAndTell(probed, file, say)
    return {
      db_bytes_per_status_row: rounded(bytes / rows),
      fleet_query_2m_p50_ms: quiet.p50Ms,
      fleet_query_2m_p95_ms: quiet.p95Ms,
      fleet_query_2m_max_ms: quiet.maxMs,
      fleet_query_2m_whole_page_p95_ms: quiet.wholeP95Ms,
      ...together,
    }
  } finally {
    await probed?.fleet.stop()
    await folder.remove()
  }
}

export async function benchQueriesPostgres(say: Say): Promise<Record<string, number>> {
  const postgres = await startPostgres()
  let probed: ProbedFleet | null = null
  try {
    const url = await postgres.createDatabase()
    const rows = await fillPostgres(url, shape())
    say(`${rows} rows`)
    await admitPushers(await connectPostgres({ target: parsePostgresUrl(url) }, systemClock))
    probed = await createProbedFleet({ serverEnv: { SKERRY_STORE: url } })
    const { p95Ms, wholeP95Ms } = await askAll(probed.fleet, say)
    return { fleet_query_2m_p95_ms_postgres: p95Ms, fleet_query_2m_whole_page_p95_ms_postgres: wholeP95Ms }
  } finally {
    await probed?.fleet.stop()
    await postgres.stop()
  }
}

/**
 * The generator's clusters have no agents and have revisions without content: some get keys, and the shards are not
 * asked.
 */
async function admitPushers({ writer, close }: Connections): Promise<StormMember[]> {
  const members: StormMember[] = []
  await writer.updateTable('clusters').set({ ordinal: 0 }).execute()
  for (let number = 0; number < PUSHERS; number++) {
    const { publicKey, privateKey } = generateKey('ed25519')
    const clusterId = clusterIdOf(number)
    await writer.updateTable('agents').set({ public_key: publicKey }).where('cluster_id', '=', clusterId).execute()
    members.push({ number, agentId: clusterId.replace('c-', 'a-'), privateKey, cursor: '' })
  }
  await close()
  return members
}

interface Answered {
  p50Ms: number
  p95Ms: number
  maxMs: number
  /** The time until a page was full or the list at its end, over all requests that this took. */
  wholeP95Ms: number
}

async function askAll(fleet: LocalFleet, say: Say): Promise<Answered> {
  const requests: number[] = []
  const whole: number[] = []
  const slowest = new Map<string, number>()
  for (const asked of fleetMix(CLUSTERS, ROUNDS)) {
    for (const page of await ask(fleet, asked)) {
      requests.push(...page)
      whole.push(page.reduce((a, b) => a + b, 0))
      slowest.set(asked.kind, Math.max(slowest.get(asked.kind) ?? 0, ...page))
    }
  }
  const answered = {
    p50Ms: rounded(percentile(requests, 50)),
    p95Ms: rounded(percentile(requests, 95)),
    maxMs: rounded(percentile(requests, 100)),
    wholeP95Ms: rounded(percentile(whole, 95)),
  }
  const slow = [...slowest].sort(([, a], [, b]) => b - a).slice(0, 5)
  say(`${requests.length} requests for ${whole.length} pages: ${JSON.stringify(answered)}`)
  say(`slowest: ${slow.map(([kind, ms]) => `${kind} ${rounded(ms, 0)} ms`).join(', ')}`)
  return answered
}

/** For each page the times of its requests: an answer may be short and continue. */
async function ask({ serverUrl, token }: LocalFleet, { kind, query, pages }: Asked): Promise<number[][]> {
  const times: number[][] = []
  let next: string | null = null
  for (let page = 0; page < pages; page++) {
    const taken: number[] = []
    let items = 0
    do {
      const limit = String(Number(query['limit']) - items)
      const address = new URLSearchParams({ ...query, limit, ...(next === null ? {} : { continue: next }) })
      const startMs = performance.now()
      const response = await fetch(`${serverUrl}/api/v1/objects?${address}`, { headers: { authorization: `Bearer ${token}` } })
      const text = await response.text()
      taken.push(performance.now() - startMs)
      if (!response.ok) throw new Error(`${kind} ${address}: HTTP ${response.status} ${text.slice(0, 300)}`)
      const answer = JSON.parse(text) as { items: unknown[]; continue: string | null }
      items += answer.items.length
      next = answer.continue
    } while (next !== null && items < Number(query['limit']))
    times.push(taken)
    if (next === null) break
  }
  return times
}

async function askAndTell({ fleet, measureLag }: ProbedFleet, file: string, say: Say): Promise<Record<string, number>> {
  const agents = startOrdered<StormOrder, StormReport>('storm-agents.ts')
  try {
    await agents.order({ do: 'load', file, port: Number(new URL(fleet.serverUrl).port), part: 0, of: 1 })
    await agents.order({ do: 'keep telling', everyMs: PUSH_EVERY_MS })
    await Bun.sleep(2 * PUSH_EVERY_MS) // sessions are open
    const { told: before } = await agents.order({ do: 'report' })
    const lagging = measureLag()
    const startMs = performance.now()
    const requests: number[] = []
    const asker = async (part: number) => {
      for (const [n, asked] of fleetMix(CLUSTERS, ROUNDS).entries()) {
        if (performance.now() - startMs > TOGETHER_MS) return
        if (n % ASKERS === part) requests.push(...(await ask(fleet, asked)).flat())
      }
    }
    await Promise.all(Array.from({ length: ASKERS }, (_, part) => asker(part)))
    const lag = await lagging.stop()
    const { told } = await agents.order({ do: 'report' })
    const pushes = (told - before) / ((performance.now() - startMs) / 1_000)
    say(
      `together: ${rounded(pushes, 0)} pushes a second, ${requests.length} requests p95 ${rounded(percentile(requests, 95))} ms, lag ${JSON.stringify(lag)}`,
    )
    return {
      event_loop_lag_p99_ms: lag.p99Ms,
      event_loop_lag_max_ms: lag.maxMs,
      busy_fleet_query_2m_p95_ms: rounded(percentile(requests, 95)),
      busy_pushes_per_s: rounded(pushes, 0),
    }
  } finally {
    agents.end()
  }
}
