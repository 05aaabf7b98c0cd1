// scripts/bench api: what people, scripts and browsers wait for.
import { join } from 'node:path'
import { createAuthorizer } from '../../server/access/authorizer.ts'
import type { Principal } from '../../server/access/principal.ts'
import { readEventStream } from '../../server/cli/event-stream.ts'
import type { ResourceKind, StoredResource } from '../../server/fleet/records.ts'
import { connectSqlite } from '../../server/store/engines/connections.ts'
import { createStoreDb } from '../../server/store/store-db.ts'
import { EVENT_STREAM, READY_EVENT } from '../../shared/model/change.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { createDataFolder } from '../local-cluster/child-process.ts'
import { startOrdered } from './agents-process.ts'
import type { ReadersOrder, ReadersReport } from './api-readers.ts'
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
const ROLES = 200
const QUESTIONS = 20_000
const APPENDS = 20_000

/** Reads and events on one server, which 2,000 agents poll. */
function benchReads(say: Say): Promise<Record<string, number>> {
  return withCrowd(say, AGENTS, async ({ fleet }) => {
    const readers = startOrdered<ReadersOrder, ReadersReport>('api-readers.ts')
    try {
      const asked = { url: fleet.serverUrl, token: fleet.token, perSecond: READS_PER_S }
      await readers.order({ ...asked, seconds: WARM_SECONDS })
      const { tookMs, refused } = await readers.order({ ...asked, seconds: READ_SECONDS })
      const [p50, p95, p99] = [50, 95, 99].map((at) => rounded(percentile(tookMs, at)))
      say(
        `${tookMs.length} reads, ${refused} refused: p50 ${p50} ms, p95 ${p95} ms, p99 ${p99} ms, server ${residentMb(fleet.serverPid())} MB`,
      )
      const events = await eventLatencies(fleet)
      say(`${events.length} events: p50 ${rounded(percentile(events, 50))} ms, p95 ${rounded(percentile(events, 95))} ms`)
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

/** A user with a binding of each of 200 roles: every question looks through what they give. */
async function benchAuthorize(say: Say): Promise<Record<string, number>> {
  const row = (kind: ResourceKind, name: string, spec: object): StoredResource => ({
    ...{ kind, project: '', name, uid: name, generation: 1, version: 1, labels: {}, spec: JSON.stringify(spec) },
    ...{ createdMs: 0, updatedMs: 0, deletingMs: null },
  })
  const names = Array.from({ length: ROLES }, (_, n) => `role-${n}`)
  const rows: Partial<Record<ResourceKind, StoredResource[]>> = {
    Role: names.map((name) => row('Role', name, { rules: [{ verbs: ['read', 'sync'], kinds: ['Service'] }] })),
    RoleBinding: names.map((name, n) =>
      row('RoleBinding', name, { role: name, subjects: [{ user: 'alice@example.com' }], projects: [`p${n}`] }),
    ),
  }
  const authorizer = createAuthorizer({ listResources: async (kind) => ({ items: rows[kind] ?? [], next: null }) })
  await authorizer.loaded()
  const alice: Principal = {
    ...{ id: 's-1', kind: 'user', name: 'alice@example.com', provider: 'bench', subject: '1', email: 'alice@example.com' },
    ...{ groups: [], role: null, projects: null },
  }
  let allowed = 0
  const startMs = performance.now()
  for (let n = 0; n < QUESTIONS; n++)
    if (authorizer.allows(alice, { verb: n % 2 === 0 ? 'sync' : 'delete', kind: 'Service', project: `p${n % ROLES}`, name: 'web' }))
      allowed += 1
  const each = ((performance.now() - startMs) * 1_000) / QUESTIONS
  if (allowed !== QUESTIONS / 2) throw new Error(`${allowed} questions were allowed, not half of them`)
  say(`${QUESTIONS} questions of a user with ${ROLES} bindings: ${rounded(each)} µs each`)
  return { authorize_us: rounded(each) }
}

/** Transactions with one entry each, asked for at once as requests do; the store commits them in groups, on a real file. */
async function benchAudit(say: Say): Promise<Record<string, number>> {
  const folder = createDataFolder('skerry-audit')
  const db = createStoreDb(await connectSqlite(join(folder.path, 'fleet.sqlite')), systemClock)
  try {
    const append = (count: number) =>
      Promise.all(
        Array.from({ length: count }, (_, n) =>
          db.write(async ({ audit }) =>
            audit.add({ verb: 'update', kind: 'Service', project: 'shop', name: `web-${n}`, before: '{"a":1}', after: '{"a":2}' }),
          ),
        ),
      )
    await append(APPENDS / 10)
    const startMs = performance.now()
    await append(APPENDS)
    const perSecond = (APPENDS * 1_000) / (performance.now() - startMs)
    say(`${APPENDS} entries: ${Math.round(perSecond)} a second`)
    return { audit_append_per_s: Math.round(perSecond) }
  } finally {
    await db.destroy()
    await folder.remove()
  }
}

const PARTS = { reads: benchReads, start: benchStart, authorize: benchAuthorize, audit: benchAudit, login: measureOidcLogin }

export const benchApi = (say: Say, only: string | null): Promise<Record<string, number>> => runParts('api', PARTS, say, only)
