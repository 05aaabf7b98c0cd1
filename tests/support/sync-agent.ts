// A process of its own for chaos tests: an agent without a cluster. Identity, session, pages, replica, outbox are the
// real ones; in place of the reconciler it reports each service that arrived, and writes to its journal what must never
// happen. `bun sync-agent.ts '{…}'`, see SyncAgentOptions.
import { randomBytes } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, rmSync } from 'node:fs'
import { loadAgentKeys } from '../../agent/link/agent-keys.ts'
import { createCrdtReplica } from '../../agent/replica/crdt-replica.ts'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import { SyncLoop } from '../../agent/sync/sync-loop.ts'
import { createPinoLogger } from '../../shared/adapters/pino-logger.ts'
import { type Clock, systemClock } from '../../shared/runtime/clock.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { systemRandom } from '../../shared/runtime/random.ts'
import { type JournalLine, roundOf, type SyncAgentOptions, syncAgentFiles } from './sync-site.ts'

const options = JSON.parse(process.argv[2] ?? '') as SyncAgentOptions
const files = syncAgentFiles(options.dataDir)
const scaled = (clock: Clock, scale: number): Clock => ({ ...clock, sleep: (ms, signal) => clock.sleep(ms / scale, signal) })
const clock = scaled(systemClock, options.timeScale ?? 1)
const log = createPinoLogger('info')
const now = () => performance.timeOrigin + performance.now()
const journal = (line: JournalLine) => {
  try {
    // The leading line end separates the entry from one that a kill tore.
    appendFileSync(files.journal, `\n${JSON.stringify(line)}\n`)
  } catch (error) {
    log.error('journal', { line: JSON.stringify(line), error: String(error) })
  }
}
const violation = (what: string) => journal({ kind: 'violation', what })

mkdirSync(options.dataDir, { recursive: true })
const state = openAgentState(files.state)
let pages = 0

const loop = new SyncLoop({
  serverUrl: options.serverUrl,
  fetcher: (url, init) => fetch(url, init),
  keys: loadAgentKeys(options.dataDir),
  join: { joinToken: options.joinToken, clusterName: options.name, clusterUid: `uid-${options.name}`, agentVersion: 'chaos' },
  state,
  openReplica: ({ clusterId }) =>
    createCrdtReplica({ path: files.replica, clusterId, serverKeys: () => state.identity()?.serverKeys ?? [], log }),
  onChange: (services) => {
    pages++
    journal({ kind: 'page', atMs: now(), services: services.map(serviceKey) })
    look(services)
  },
  clock,
  random: systemRandom,
  randomBytes,
  log,
  waitSeconds: options.waitSeconds ?? 20,
})

/** What a reconciler would have before its eyes: whole revisions of services that are meant for this site, and never an
 *  older one than before. */
function look(changed: readonly ServiceId[]): void {
  const replica = loop.replica()
  if (replica === null) return
  for (const id of replica.services()) {
    const mine = id.service.startsWith('all-') || id.service === `only-${options.name}`
    if (!mine) violation(`a foreign service: ${serviceKey(id)}`)
  }
  const rows = changed.flatMap((id) => {
    const key = serviceKey(id)
    const before = state.lastReported('service', key) as { message: string } | null
    const read = replica.read(id)
    if (read.kind === 'incomplete') violation(`a part of ${key}: ${read.why}`)
    if (read.kind === 'absent' && before !== null) violation(`${key} is gone`)
    if (read.kind !== 'complete') return []
    const { row, objects } = read.revision
    if ('remove' in row) violation(`${key} shall be removed`)
    const rounds = new Set([...objects.values()].map(roundOf))
    const round = [...rounds][0] ?? -1
    if (rounds.size > 1) violation(`rounds ${[...rounds]} in one revision of ${key}`)
    const last = Number(/round (\d+)/.exec(before?.message ?? '')?.[1] ?? -1)
    if (round < last && options.mayGoBack !== true) violation(`${key} went from round ${last} back to ${round}`)
    const message = `round ${round}`
    const common = { sync: 'Synced', health: 'Healthy', reason: 'Chaos', message, sinceMs: 1 }
    const event = { atMs: Math.round(now()), type: 'Normal', reason: 'Chaos', message: `${options.name} ${process.pid} ${pages} ${key}` }
    return [
      { kind: 'service' as const, key, doc: { ...common, objectCount: objects.size, healthyCount: objects.size } },
      ...[...objects.keys()].slice(0, 5).map((rowId) => ({ kind: 'object' as const, key: rowId.slice('object/'.length), doc: common })),
      { kind: 'event' as const, key: `${event.atMs}-${process.pid}-${pages}-${id.service}`, doc: event },
    ]
  })
  if (rows.length === 0) return
  try {
    state.report(rows)
  } catch (error) {
    log.warn('status cannot be kept', { error: String(error) }) // a full disk
    return
  }
  for (const { kind, doc } of rows) if (kind === 'event') journal({ kind: 'event', message: (doc as { message: string }).message })
}

const report = () => {
  const replica = loop.replica()
  const services = replica?.verified() ? replica.services() : []
  return {
    ...loop.status(),
    pid: process.pid,
    pages,
    clusterId: state.identity()?.clusterId ?? null,
    verified: replica?.verified() ?? false,
    rounds: Object.fromEntries(
      services.map((id) => {
        const read = replica?.read(id)
        const [first] = read?.kind === 'complete' ? read.revision.objects.values() : []
        return [id.service, first === undefined ? -1 : roundOf(first)]
      }),
    ),
  }
}

// Whatever a crash left must be as good as before it.
if (loop.replica()?.verified()) look(loop.replica()?.services() ?? [])
if (existsSync(files.socket)) rmSync(files.socket)
Bun.serve({
  unix: files.socket,
  fetch: (request) => {
    const path = new URL(request.url).pathname
    if (path === '/dump')
      return Response.json({ rows: loop.replica()?.dump() ?? [], statuses: state.inventoryRange(null, 100_000, 1e9).rows })
    return Response.json(report())
  },
})
process.on('unhandledRejection', (error) => {
  violation(`unhandled: ${error}`)
  process.exit(1)
})
const stop = new AbortController()
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
await loop.run(stop.signal)
loop.replica()?.close()
state.close()
process.exit(0)
