// scripts/bench api: what people, scripts and browsers wait for.
import { join } from 'node:path'
import { readEventStream } from '../../client/events.ts'
import { EVENT_STREAM, READY_EVENT } from '../../shared/model/change.ts'
import { startOrdered } from './agents-process.ts'
import type { ReadersOrder, ReadersReport } from './api-readers.ts'
import { measureAuditAppend } from './audit-append.ts'
import { measureAuthorize } from './authorize.ts'
import { percentile, residentMb, rounded } from './figures.ts'
import { measureOidcLogin } from './oidc-login.ts'
import { runParts, type Say } from './parts.ts'
import { withCrowd } from './sync-fanout.ts'

const AGENTS = 2_000
const READS_PER_S = 500
const READ_SECONDS = 20
const WARM_SECONDS = 3
const CHANGES = 50
const STARTS = 40

/** Events, then reads, on one server that 2,000 agents poll. */
function benchReads(say: Say): Promise<Record<string, number>> {
  return withCrowd(say, AGENTS, async ({ fleet }) => {
    const readers = startOrdered<ReadersOrder, ReadersReport>('api-readers.ts')
    try {
      // Before the reads, so that it is the latency of a server that only agents poll.
      const events = await eventLatencies(fleet)
      say(`${events.length} events: p50 ${rounded(percentile(events, 50))} ms, p95 ${rounded(percentile(events, 95))} ms`)
      const asked = { url: fleet.serverUrl, token: fleet.token, perSecond: READS_PER_S }
      await readers.order({ ...asked, seconds: WARM_SECONDS })
      const { tookMs, refused } = await readers.order({ ...asked, seconds: READ_SECONDS })
      const [p50, p95, p99] = [50, 95, 99].map((at) => rounded(percentile(tookMs, at)))
      say(
        `${tookMs.length} reads, ${refused} refused: p50 ${p50} ms, p95 ${p95} ms, p99 ${p99} ms, server ${residentMb(fleet.serverPid())} MB`,
      )
      return { get_list_p95_ms: p95 ?? Number.NaN, sse_event_latency_ms: rounded(percentile(events, 95)) }
    } finally {
      readers.end()
    }
  })
}

interface Fleet {
  serverUrl: string
  token: string
  api<T>(path: string, init?: { method?: string; body?: unknown }): Promise<T>
}

/** From the moment a PUT is sent until its event is read. */
async function eventLatencies({ serverUrl, token, api }: Fleet): Promise<number[]> {
  const ending = new AbortController()
  const headers = { accept: EVENT_STREAM, authorization: `Bearer ${token}` }
  const { body } = await fetch(`${serverUrl}/api/v1/changes?topic=resource`, { headers, signal: ending.signal })
  if (body === null) throw new Error('the feed has no body')
  const events = readEventStream(body)
  if ((await events.next()).value?.event !== READY_EVENT) throw new Error('the feed does not say that it is ready')
  const path = '/projects/default/repositories/watched'
  const spec = { git: { url: 'https://git.invalid/watched.git' }, poll: '1h' }
  const taken: number[] = []
  for (let n = 0; n < CHANGES; n++) {
    const metadata = { name: 'watched', labels: { change: String(n) } }
    const sentMs = performance.now()
    const sent = api(path, { method: 'PUT', body: { apiVersion: 'skerry.dev/v1', kind: 'Repository', metadata, spec } })
    for (let next = await events.next(); ; next = await events.next()) {
      if (next.done === true) throw new Error('the feed ended')
      if (next.value.data.includes('Repository/watched')) break // the stream is read on at the next change
    }
    taken.push(performance.now() - sentMs)
    await sent
    await Bun.sleep(50)
  }
  ending.abort()
  return taken
}

/** A verb that asks no server, as completion and scripts start it. */
async function benchStart(say: Say): Promise<Record<string, number>> {
  const program = join(import.meta.dir, '../../dist/skerry')
  const taken: number[] = []
  for (let n = 0; n < STARTS; n++) {
    const startMs = performance.now()
    const code = await Bun.spawn([program, 'version'], { env: {}, stdout: 'ignore', stderr: 'ignore' }).exited
    if (code !== 0) throw new Error(`skerry version: exit code ${code}`)
    taken.push(performance.now() - startMs)
  }
  say(`skerry version: p50 ${rounded(percentile(taken, 50))} ms, p95 ${rounded(percentile(taken, 95))} ms`)
  return { cli_start_ms: rounded(percentile(taken, 50)) }
}

const PARTS = { reads: benchReads, start: benchStart, authorize: measureAuthorize, audit: measureAuditAppend, login: measureOidcLogin }

export const benchApi = (say: Say, only: string | null): Promise<Record<string, number>> => runParts('api', PARTS, say, only)
