// A process that reads the API at a fixed rate, as dashboards and scripts do: lists, counts, single resources. It sends
// on time, whether answers came or not.
import { linesOf } from './agents-process.ts'

export interface ReadersOrder {
  url: string
  token: string
  perSecond: number
  seconds: number
}

export interface ReadersReport {
  failures: string[]
  tookMs: number[]
  /** Answered with 429 or 503; each counts as REFUSED_MS. */
  refused: number
}

/** A refused read is worse than a slow one. */
const REFUSED_MS = 60_000

/** Each counts the same. Everybody opens the same lists; names and search words are those of one reader: `N` is another
 *  number in each. */
const PATHS: readonly string[] = [
  '/services?limit=50',
  '/clusters?limit=50',
  '/clusters?limit=50&labelSelector=wake%3Dyes',
  '/clusters?limit=20&search=site-N',
  '/placements?limit=50',
  '/placements?limit=50&service=app&sort=cluster',
  '/counts?by=service',
  '/counts?by=label',
  '/clusters/site-N',
  '/projects/default/services/app',
  '/projects/default/services/app/clusters?limit=50',
  '/projects/default/services/app/revisions',
  '/clusters/site-N/services',
  '/repositories',
  '/events?limit=50',
  '/confirmations',
  '/whoami',
]

/** Clusters that have a name of their own, and a step that comes to all of them. */
const [NAMES, STRIDE] = [2_000, 709]

async function read({ url, token, perSecond, seconds }: ReadersOrder): Promise<ReadersReport> {
  const headers = { authorization: `Bearer ${token}` }
  const failures: string[] = []
  const tookMs: number[] = []
  const open: Promise<void>[] = []
  let refused = 0
  const startMs = performance.now()
  for (let n = 0; n < perSecond * seconds; n++) {
    const dueMs = startMs + (n * 1_000) / perSecond
    const waitMs = dueMs - performance.now()
    if (waitMs > 0) await Bun.sleep(waitMs)
    const path = (PATHS[n % PATHS.length] ?? '').replace('site-N', `site-${(n * STRIDE) % NAMES}`)
    open.push(
      fetch(`${url}/api/v1${path}`, { headers })
        .then(async (answer) => {
          await answer.arrayBuffer()
          // Counted from when it was due, so that a server that stalls cannot hide it by being asked less.
          const isRefused = answer.status === 429 || answer.status === 503
          if (isRefused) refused += 1
          if (answer.ok || isRefused) tookMs.push(isRefused ? REFUSED_MS : performance.now() - dueMs)
          else failures.push(`${path}: HTTP ${answer.status}`)
        })
        .catch((error: unknown) => void failures.push(`${path}: ${String(error)}`)),
    )
  }
  await Promise.all(open)
  return { failures, tookMs, refused }
}

for await (const line of linesOf(Bun.stdin.stream())) {
  const report = await read(JSON.parse(line) as ReadersOrder).catch((error: unknown) => ({
    failures: [String(error)],
    tookMs: [],
    refused: 0,
  }))
  process.stdout.write(`${JSON.stringify(report)}\n`)
}
