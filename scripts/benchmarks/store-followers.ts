// From the end of a commit to each of a hundred readers of server-sent events in another process, at two hundred
// commits a second, on both databases.
import { join } from 'node:path'
import { createChangeStreams } from '../../server/http/change-stream.ts'
import { connectPostgres, connectSqlite } from '../../server/store/engines/connections.ts'
import { parsePostgresUrl } from '../../server/store/engines/postgres-url.ts'
import { createChangeStore } from '../../server/store/feed/store-changes.ts'
import { type Connections, createStoreDb } from '../../server/store/store-db.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { startPostgres } from '../local-cluster/postgres.ts'
import { startOrdered } from './agents-process.ts'
import { exactMs, type FollowersOrder, type FollowersReport } from './feed-followers.ts'
import { percentile, rounded } from './figures.ts'
import type { Say } from './parts.ts'

const FOLLOWERS = 100
const COMMITS_PER_S = 200
const SECONDS = 10
const WAIT_MS = 10_000
/** As a push of a few rows is noted. */
const KEYS = Array.from({ length: 8 }, (_, n) => `object/default/web/apps/Deployment/web/web-${n}`)

export async function benchFollowers(say: Say): Promise<Record<string, number>> {
  const folder = createDataFolder('skerry-followers')
  try {
    const latencies = await followed(await connectSqlite(join(folder.path, 'fleet.sqlite')), say)
    return { feed_100_followers_p50_ms: rounded(percentile(latencies, 50)), feed_100_followers_p99_ms: rounded(percentile(latencies, 99)) }
  } finally {
    await folder.remove()
  }
}

export async function benchFollowersPostgres(say: Say): Promise<Record<string, number>> {
  const postgres = await startPostgres()
  try {
    const target = parsePostgresUrl(await postgres.createDatabase())
    const latencies = await followed(await connectPostgres({ target }, systemClock), say)
    return {
      feed_100_followers_p50_ms_postgres: rounded(percentile(latencies, 50)),
      feed_100_followers_p99_ms_postgres: rounded(percentile(latencies, 99)),
    }
  } finally {
    await postgres.stop()
  }
}

async function followed(connections: Connections, say: Say): Promise<number[]> {
  const db = createStoreDb(connections, systemClock)
  const { changes, endFollowing } = createChangeStore(db, systemClock)
  const streams = createChangeStreams(changes, new AbortController().signal)
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 30,
    fetch: (request) => streams.open(request, undefined, undefined),
  })
  const readers = startOrdered<FollowersOrder, FollowersReport>('feed-followers.ts')
  try {
    await readers.order({ do: 'follow', url: server.url.href, count: FOLLOWERS })
    const commits: Array<[number, number]> = []
    db.onCommit((id) => commits.push([id, exactMs()]))
    const startMs = performance.now()
    const writing: Promise<void>[] = []
    for (let n = 0; n < COMMITS_PER_S * SECONDS; n++) {
      const waitMs = startMs + (n * 1_000) / COMMITS_PER_S - performance.now()
      if (waitMs > 0) await Bun.sleep(waitMs)
      writing.push(db.write(async (tx) => tx.changes.add({ topic: 'status', cluster: 'c-0123456789abcdef', keys: KEYS })))
    }
    await Promise.all(writing)
    const perSecond = (commits.length * 1_000) / (performance.now() - startMs)
    const { latencies } = await readers.order({ do: 'judge', commits, waitMs: WAIT_MS })
    const [p50, p99] = [rounded(percentile(latencies, 50)), rounded(percentile(latencies, 99))]
    say(`${FOLLOWERS} readers, ${Math.round(perSecond)} commits/s, ${latencies.length} changes heard, p50 ${p50} ms, p99 ${p99} ms`)
    return latencies
  } finally {
    readers.end()
    endFollowing()
    await server.stop(true)
    await db.destroy()
  }
}
