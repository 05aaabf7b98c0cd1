// Durable status rows a second in the store, with all related work: checks of revs, roll-ups, the change feed, commits
// shared by concurrent callers. Each cluster reports all its rows once (53 rows) and then twenty changed rows, twice.
// Pushes of different clusters arrive in random order, and as many run as a server has.
import { join } from 'node:path'
import { RollupDeltas } from '../../server/store/counts/rollup-deltas.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { openPostgresStore } from '../../server/store/kysely-store.ts'
import type { Store } from '../../server/store/store.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { seededRandom, systemRandom } from '../../shared/runtime/random.ts'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { startPostgres } from '../local-cluster/postgres.ts'
import { rounded } from './figures.ts'
import type { Say } from './parts.ts'
import { BEGAN_MS, changedRows, firstRows } from './store-rows.ts'
import { atOnce, joinSites, openStore, report, type Site } from './store-sites.ts'

const SITES = Number(process.env['SKERRY_BENCH_AGENTS'] ?? 10_000)
/** Every commit of PostgreSQL is a way to another process; the rate is the same with fewer clusters. */
const SITES_POSTGRES = Math.ceil(SITES / 5)
const SITES_RATIO = Math.ceil(SITES / 5)
const ROUNDS = 2
/** Everything is reported within this time, by the agents' clocks. */
const SPREAD_MS = 2 * 3_600_000

export async function benchIngest(say: Say): Promise<Record<string, number>> {
  const rate = await onSqlite(SITES, say)
  return { status_rows_per_s_sqlite: rounded(rate, 0) }
}

/** The same, fewer, with and without counting; each of them twice, the better one counts. */
export async function benchRollups(say: Say): Promise<Record<string, number>> {
  let [counted, uncounted] = [0, 0]
  for (let run = 0; run < 2; run++) {
    counted = Math.max(counted, await onSqlite(SITES_RATIO, say))
    uncounted = Math.max(uncounted, await withoutRollups(() => onSqlite(SITES_RATIO, say)))
  }
  say(`${rounded(counted, 0)} rows a second with roll-ups, ${rounded(uncounted, 0)} without`)
  return { rollup_ratio: rounded(counted / uncounted, 2) }
}

export async function benchIngestPostgres(say: Say): Promise<Record<string, number>> {
  const postgres = await startPostgres()
  try {
    const target = parsePostgresUrl(await postgres.createDatabase())
    const store = await openPostgresStore({ target }, { random: systemRandom, clock: systemClock })
    const rate = await ingest(store, SITES_POSTGRES, say)
    await store.close()
    return { status_rows_per_s_postgres: rounded(rate, 0) }
  } finally {
    await postgres.stop()
  }
}

async function onSqlite(count: number, say: Say): Promise<number> {
  const folder = createDataFolder('skerry-ingest')
  try {
    const store = await openStore(join(folder.path, 'fleet.sqlite'))
    const rate = await ingest(store, count, say)
    await store.close()
    return rate
  } finally {
    await folder.remove()
  }
}

async function ingest(store: Store, count: number, say: Say): Promise<number> {
  const pushes = pushesOf(await joinSites(store, count))
  let [rows, madeMs] = [0, 0]
  const cpu = process.cpuUsage()
  const startMs = performance.now()
  await atOnce(pushes, async ({ site, round, at }) => {
    const beganMs = performance.now()
    const said = round === 0 ? firstRows(site.number) : changedRows(site.number, round, BEGAN_MS + Math.floor(at * SPREAD_MS))
    madeMs += performance.now() - beganMs // what an agent does is no work of the store's
    rows += said.length
    await report(store, site, said)
  })
  const { user, system } = process.cpuUsage(cpu)
  const rate = (rows * 1_000) / (performance.now() - startMs - madeMs)
  say(`${count} clusters, ${rows} rows: ${rounded(rate, 0)} a second, ${rounded((user + system) / rows)} µs of processor time each`)
  return rate
}

/** Those of one cluster in their order, clusters mixed. `at`: when, from 0 to 1. */
function pushesOf(sites: readonly Site[]): Array<{ site: Site; round: number; at: number }> {
  const random = seededRandom(1)
  const pushes = sites.flatMap((site) => {
    const times = Array.from({ length: 1 + ROUNDS }, () => random()).sort((a, b) => a - b)
    return times.map((at, round) => ({ at, site, round }))
  })
  return pushes.sort((a, b) => a.at - b.at)
}

/**
 * The product has no such switch. The facts of a row are computed all the same, unless the code that sums them computes
 * them.
 */
async function withoutRollups<T>(work: () => Promise<T>): Promise<T> {
  const { add } = RollupDeltas.prototype
  RollupDeltas.prototype.add = () => {}
  try {
    return await work()
  } finally {
    RollupDeltas.prototype.add = add
  }
}
