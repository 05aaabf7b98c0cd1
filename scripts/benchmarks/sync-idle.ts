// A day of an agent to which nothing happens: its real loop on a clock that is moved, its real sockets to a real
// server. Polls, session renewals and comparisons of revs are in it; the proxy holds each poll for as long as it waits
// on the agent's clock (waiting-proxy.ts), so a day takes seconds and its bytes are exact.
import { join } from 'node:path'
import type { Clock } from '../../shared/runtime/clock.ts'
import { type CorpusServer, startCorpusServer, until } from './corpus-server.ts'
import { rounded } from './figures.ts'
import { startSiteAgent } from './site-agent.ts'
import { startWaitingProxy, type WaitingProxy } from './waiting-proxy.ts'

const OBJECTS = 80
const HOUR_MS = 3_600_000
const DAY_HOURS = 24
/** The wait of a poll grows at first, and a new agent sends an inventory. */
const SETTLE_HOURS = 3

type Say = (text: string) => void

export async function benchIdle(say: Say): Promise<Record<string, number>> {
  const server = await startCorpusServer(OBJECTS)
  try {
    return {
      idle_bytes_per_hour: await idleDay(say, server, 'site', false),
      idle_bytes_per_hour_metered: await idleDay(say, server, 'metered', true),
    }
  } finally {
    await server.stop()
  }
}

async function idleDay(say: Say, server: CorpusServer, name: string, metered: boolean): Promise<number> {
  const clock = createGlidingClock(Date.now())
  const proxy = startWaitingProxy(Number(new URL(server.fleet.serverUrl).port), clock.nowMs)
  const { token } = JSON.parse(await server.fleet.run(['join-token', 'create', '-o', 'json'])) as { token: string }
  const dir = join(server.dir, name)
  const agent = startSiteAgent({ dir, serverUrl: proxy.url, joinToken: token, name, clock, metered })
  try {
    const rows = () => agent.replica()?.rowCount() ?? 0
    await until(
      async () => {
        await step(clock, proxy)
        return rows() === server.rows
      },
      'the rows to arrive',
      60_000,
    )
    await pass(clock, proxy, SETTLE_HOURS * HOUR_MS)
    const before = { bytes: proxy.bytes(), polls: proxy.polls() }
    await pass(clock, proxy, DAY_HOURS * HOUR_MS)
    const bytes = proxy.bytes() - before.bytes
    const polls = proxy.polls() - before.polls
    say(`${metered ? 'metered' : 'plain'}: ${bytes} bytes and ${polls} polls in ${DAY_HOURS} h, a wait is ${agent.status().waitSeconds} s`)
    return rounded(bytes / DAY_HOURS, 0)
  } finally {
    await agent.stop()
    proxy.stop()
  }
}

async function pass(clock: GlidingClock, proxy: WaitingProxy, ms: number): Promise<void> {
  const endMs = clock.nowMs() + ms
  while (clock.nowMs() < endMs) await step(clock, proxy)
}

/** Once all is quiet, to the next thing that time alone brings about. */
async function step(clock: GlidingClock, proxy: WaitingProxy): Promise<void> {
  for (let quiet = 0, seen = clock.activity(), bytes = proxy.bytes(); quiet < 3; ) {
    await Bun.sleep(1)
    const still = clock.activity() === seen && proxy.bytes() === bytes && proxy.isQuiet()
    quiet = still ? quiet + 1 : 0
    seen = clock.activity()
    bytes = proxy.bytes()
  }
  const pollMs = proxy.nextEndMs()
  const sleeperMs = clock.nextMs()
  if (pollMs !== null && pollMs <= (sleeperMs ?? Number.POSITIVE_INFINITY)) {
    clock.to(pollMs)
    proxy.release()
  } else if (sleeperMs !== null) clock.to(sleeperMs)
}

interface GlidingClock extends Clock {
  /** Changes whenever a sleep begins or ends. */
  activity(): number
  nextMs(): number | null
  /** Wakes all sleepers whose time has come. */
  to(ms: number): void
}

function createGlidingClock(startMs: number): GlidingClock {
  let nowMs = startMs
  let activity = 0
  const sleepers = new Map<() => void, number>()
  return {
    nowMs: () => nowMs,
    monotonicMs: () => nowMs,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        if (signal?.aborted) return resolve()
        activity++
        const done = () => {
          if (!sleepers.delete(done)) return
          activity++
          signal?.removeEventListener('abort', done)
          resolve()
        }
        sleepers.set(done, nowMs + Math.max(0, ms))
        signal?.addEventListener('abort', done, { once: true })
      }),
    activity: () => activity,
    nextMs: () => (sleepers.size === 0 ? null : Math.min(...sleepers.values())),
    to(ms) {
      nowMs = Math.max(nowMs, ms)
      for (const [done, atMs] of [...sleepers].sort(([, a], [, b]) => a - b)) if (atMs <= nowMs) done()
    },
  }
}
