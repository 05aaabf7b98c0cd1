// A process with many readers of server-sent events: what each of them heard, and when. Orders come in, reports go out,
// one line each.
import { readEventStream } from '../../client/events.ts'
import { EVENT_STREAM, READY_EVENT } from '../../shared/model/change.ts'
import { linesOf } from './agents-process.ts'

export type FollowersOrder =
  | { do: 'follow'; url: string; count: number }
  /** When each of these changes was committed; waits until all of them came to everybody, `waitMs` at most. */
  | { do: 'judge'; commits: Array<[id: number, atMs: number]>; waitMs: number }

export interface FollowersReport {
  failures: string[]
  latencies: number[]
}

/** The time in both processes: ms since the epoch, with fractions. */
export const exactMs = (): number => performance.timeOrigin + performance.now()

const heard: Array<Map<number, number>> = []

async function follow(url: string): Promise<void> {
  const response = await fetch(url, { headers: { accept: EVENT_STREAM } })
  if (!response.ok || response.body === null) throw new Error(`the feed: HTTP ${response.status}`)
  const events = readEventStream(response.body)
  if ((await events.next()).value?.event !== READY_EVENT) throw new Error('the feed does not say that it is ready')
  const mine = new Map<number, number>()
  heard.push(mine)
  void (async () => {
    for await (const { id, data } of events) if (data !== '') mine.set(Number(id), exactMs())
  })()
}

async function obey(order: FollowersOrder): Promise<FollowersReport> {
  if (order.do === 'follow') {
    await Promise.all(Array.from({ length: order.count }, () => follow(order.url)))
    return { failures: [], latencies: [] }
  }
  const { commits, waitMs } = order
  const missing = () => heard.filter((mine) => commits.some(([id]) => !mine.has(id)))
  for (const untilMs = exactMs() + waitMs; missing().length > 0 && exactMs() < untilMs; ) await Bun.sleep(50)
  const failures = missing().map((mine) => `only ${mine.size} changes of ${commits.length} were heard of`)
  const latencies = heard.flatMap((mine) => commits.flatMap(([id, atMs]) => (mine.get(id) ?? Number.NaN) - atMs))
  return { failures, latencies }
}

if (import.meta.main) {
  for await (const line of linesOf(Bun.stdin.stream())) {
    const report = await obey(JSON.parse(line) as FollowersOrder).catch((error: unknown) => ({ failures: [String(error)], latencies: [] }))
    process.stdout.write(`${JSON.stringify(report)}\n`)
  }
}
