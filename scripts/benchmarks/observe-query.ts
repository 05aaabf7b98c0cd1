// SQL queries over two million objects in ten thousand clusters, asked over HTTP of a real server: the time of each
// answer.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { systemClock } from '../../shared/runtime/clock.ts'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { percentile, rounded } from './figures.ts'
import type { Say } from './parts.ts'
import { createProbedFleet, type ProbedFleet } from './server-process.ts'
import { fillSqlite } from './store-fleet.ts'

const CLUSTERS = Number(process.env['SKERRY_BENCH_AGENTS'] ?? 10_000)
const OBJECTS = 200
const ROUNDS = 12
const SETTLE_MS = 5_000
/** One of the four that the services of the fleet are in. */
const PROJECT = 'shop'

/** Typical queries; `N` is another cluster in each round. Each has a condition with an index, as the docs advise. */
const QUESTIONS: readonly string[] = [
  "SELECT kind, name, health, message FROM objects WHERE cluster = 'N' ORDER BY health, name",
  "SELECT cluster, name, message FROM objects WHERE health = 'Degraded' AND service = 'checkout' LIMIT 100",
  "SELECT service, sync, health, applied_commit FROM placements WHERE cluster = 'N'",
  "SELECT cluster, applied_commit FROM placements WHERE service = 'web' AND applied_commit <> desired_commit LIMIT 200",
  "SELECT at_ms, service, health, reason FROM history WHERE cluster = 'N' ORDER BY at_ms DESC LIMIT 50",
  "SELECT image FROM images WHERE cluster = 'N' ORDER BY image",
  "SELECT reason, count(*) AS n FROM events WHERE at_ms > ago('24h') GROUP BY reason ORDER BY n DESC LIMIT 10",
  'SELECT name, agent_version, last_seen_ms FROM clusters ORDER BY last_seen_ms DESC LIMIT 20',
  "SELECT o.name, p.health FROM objects o JOIN placements p ON p.cluster = o.cluster AND p.service = o.service WHERE o.cluster = 'N' LIMIT 50",
]

export async function measureQuery(say: Say): Promise<Record<string, number>> {
  const folder = createDataFolder('skerry-query')
  let probed: ProbedFleet | null = null
  try {
    const dataDir = join(folder.path, 'server')
    mkdirSync(dataDir)
    const rows = await fillSqlite(join(dataDir, 'fleet.sqlite'), { clusters: CLUSTERS, objects: OBJECTS, nowMs: systemClock.nowMs() })
    say(`${rows} status rows`)
    probed = await createProbedFleet({ dataDir })
    await Bun.sleep(SETTLE_MS)
    return await askAll(probed, say)
  } finally {
    await probed?.fleet.stop()
    await folder.remove()
  }
}

async function askAll({ fleet }: ProbedFleet, say: Say): Promise<Record<string, number>> {
  const call = async (token: string, path: string, body: object): Promise<unknown> => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
    const answer = await fetch(`${fleet.serverUrl}/api/v1${path}`, { method: 'POST', headers, body: JSON.stringify(body) })
    if (!answer.ok) throw new Error(`${path} ${JSON.stringify(body)}: ${answer.status} ${await answer.text()}`)
    return answer.json()
  }
  const limited = (await call(fleet.token, '/tokens', { name: 'limited', role: 'viewer', projects: [PROJECT] })) as { token: string }
  const askedBy =
    (token: string): Ask =>
    async (sql) =>
      ((await call(token, '/query', { sql })) as { rows: Row[] }).rows
  const whole = await askRounds(askedBy(fleet.token), askedBy(fleet.token), say)
  say(`by a caller who may read the project ${PROJECT}:`)
  const part = await askRounds(askedBy(fleet.token), askedBy(limited.token), say)
  return { query_2m_rows_p95_ms: whole, query_2m_rows_limited_p95_ms: part }
}

type Row = Array<string | number | null>
type Ask = (sql: string) => Promise<Row[]>

/** `askNames`: somebody who may read the names of all clusters. */
async function askRounds(askNames: Ask, ask: Ask, say: Say): Promise<number> {
  const clusters = (await askNames(`SELECT name FROM clusters ORDER BY name LIMIT ${ROUNDS * 7}`)).map(([name]) => String(name))
  const tookMs = QUESTIONS.map((): number[] => [])
  for (let round = 0; round < ROUNDS; round++)
    for (const [index, question] of QUESTIONS.entries()) {
      const startMs = performance.now()
      await ask(question.replaceAll("'N'", `'${clusters[(round * 7) % clusters.length]}'`))
      tookMs[index]?.push(performance.now() - startMs)
    }
  for (const [index, question] of QUESTIONS.entries()) say(`${rounded(percentile(tookMs[index] ?? [], 50))} ms: ${question.slice(0, 90)}`)
  return rounded(percentile(tookMs.flat(), 95))
}
