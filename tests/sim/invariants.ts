// What must be true when the faults have stopped. Each finding is one line; none means that the world has come to rest.
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { K8sObject } from '../../shared/kube/object.ts'
import { parseRowId } from '../../shared/model/desired.ts'
import { serviceStatusSchema } from '../../shared/model/status.ts'
import { clusterIdSchema, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import type { Broken } from './history.ts'
import type { Run } from './run.ts'
import type { SimAgent } from './sim-agent.ts'
import { dataValue, readServiceRow, rowsOnDisk } from './sim-cluster.ts'

/** What a site may take of its disk: the reserve and the logs of two databases, and the largest revision a few times
 *  over (replica, what was applied, what is staged). */
const FOLDER_BYTES_FIXED = 10 * 1_024 * 1_024
const FOLDER_ROWS_FACTOR = 10
/** A lie about its own cluster that a hostile agent got in (steps.ts); an honest one knows nothing of it. */
const HOSTILE_ROW = 'service shop/never'
const POISON_KEY = 'poison'

export async function findProblems(run: Run): Promise<Broken[]> {
  const found: Broken[] = []
  for (const agent of run.agents) found.push(...(await problemsOf(run, agent)))
  return found
}

async function problemsOf(run: Run, agent: SimAgent): Promise<Broken[]> {
  const { server } = run
  const report = agent.report()
  const say = (kind: Broken['kind'], what: string): Broken => ({ kind, what: `${agent.name} ${what}` })
  if (report === null || report.clusterId === null)
    return [say('stuck', `never joined: ${agent.startFailure ?? JSON.stringify(report?.link)}`)]
  const clusterId = clusterIdSchema.parse(report.clusterId)
  const link = () => JSON.stringify(report.link)
  const expected = await server.expectedRows(clusterId)
  const held = (rowsOnDisk(agent.dir) ?? []).map(({ id, doc }) => [id, doc] as const)
  if (!report.replica?.verified) return [say('diverged', `has no verified replica: ${link()}`)]
  if (JSON.stringify(held) !== JSON.stringify(expected))
    return [
      say('diverged', `holds ${held.length} rows, the fleet store says ${expected.length}: ${link()}${firstDifference(held, expected)}`),
    ]
  if (report.outboxDepth > 0) return [say('lost_status', `has ${report.outboxDepth} rows in its outbox: ${link()}`)]
  return [
    // Two agents that number their rows alike cannot be told apart by them: what one of them said may stand for what
    // the other did, until it changes.
    ...(run.cloned.has(agent.name) ? [] : await statusProblems(run, agent, clusterId, say)),
    ...clusterProblems(run, agent, expected, say),
    ...boundProblems(run, agent, say),
  ]
}

type Say = (kind: Broken['kind'], what: string) => Broken

function firstDifference(held: ReadonlyArray<readonly [string, string]>, expected: ReadonlyArray<readonly [string, string]>): string {
  const known = new Map(held)
  const other = expected.find(([id, doc]) => known.get(id) !== doc) ?? held.find(([id]) => !expected.some(([wanted]) => wanted === id))
  return other === undefined ? '' : ` (first: ${other[0]} ${other[1].slice(0, 200)} / ${known.get(other[0])?.slice(0, 200)})`
}

/** Every key that the agent last reported is at the server as it was reported, and nothing else is. */
async function statusProblems(run: Run, agent: SimAgent, clusterId: ReturnType<typeof clusterIdSchema.parse>, say: Say): Promise<Broken[]> {
  const reported = new Map(
    agent.reported().flatMap(({ kind, key, doc }) => (key === POISON_KEY ? [] : [[`${kind} ${key}`, doc] as [string, string]])),
  )
  const received = new Map<string, string>()
  for (const kind of ['service', 'object', 'drift', 'cluster', 'facts'] as const)
    for (const { key, doc } of await run.server.store.listStatus({ clusterId, kind })) received.set(`${kind} ${key}`, canonicalJson(doc))
  run.counts.statuses += reported.size
  const problems: Broken[] = []
  for (const [key, doc] of reported) {
    const there = received.get(key)
    if (there !== canonicalJson(JSON.parse(doc)))
      problems.push(say('lost_status', `reported ${key} ${doc.slice(0, 300)}, the server has ${there?.slice(0, 300)}`))
  }
  // A server keeps what an inventory does not name when it refused a row of it (PU4).
  const poisoned = agent.reported().some(({ key }) => key === POISON_KEY)
  received.delete(HOSTILE_ROW)
  for (const key of received.keys())
    if (!reported.has(key) && !poisoned) problems.push(say('lost_status', `the server has ${key}, which the agent does not know`))
  return problems.slice(0, 3)
}

/** What the rows name is there as they say; what is there as ours is named, or waits for a person. */
function clusterProblems(run: Run, agent: SimAgent, expected: ReadonlyArray<readonly [string, string]>, say: Say): Broken[] {
  const live = agent.cluster.values()
  const wanted = new Map<string, string>()
  const complete = new Set<string>()
  for (const [id, doc] of expected) {
    const row = parseRowId(id)
    if (row.kind === 'service' && readServiceRow(doc)?.removal === undefined) complete.add(serviceKey(row.id))
    if (row.kind === 'object') wanted.set(row.ref.name, dataValue(JSON.parse(doc) as K8sObject) ?? '')
  }
  const problems: Broken[] = []
  for (const [name, value] of wanted)
    if (live.get(name) !== value) problems.push(say('diverged', `has ${name} = ${live.get(name)} in its cluster, ordered is ${value}`))
  // What an earlier life applied of a kind that nobody wants any more is not looked for (RC5).
  if (run.forgetful.has(agent.name)) return problems.slice(0, 3)
  const statuses = new Map(agent.reported().flatMap(({ kind, key, doc }) => (kind === 'service' ? [[key, doc] as const] : [])))
  for (const name of live.keys()) {
    const id: ServiceId = { project: 'shop', service: name.slice(0, name.lastIndexOf('.')) }
    if (wanted.has(name) || !complete.has(serviceKey(id))) continue
    const status = serviceStatusSchema.safeParse(JSON.parse(statuses.get(serviceKey(id)) ?? 'null')).data
    if (status !== undefined && status.refusal === undefined && agent.cluster.isOurs(name))
      problems.push(say('diverged', `keeps ${name}, which nobody orders any more, and says ${JSON.stringify(status)}`))
  }
  return problems.slice(0, 3)
}

function boundProblems(run: Run, agent: SimAgent, say: Say): Broken[] {
  const most = FOLDER_BYTES_FIXED + FOLDER_ROWS_FACTOR * run.largestBytes
  const files = readdirSync(agent.dir, { recursive: true, withFileTypes: true }).filter((file) => file.isFile())
  const bytes = files.reduce((sum, file) => sum + statSync(join(file.parentPath, file.name)).size, 0)
  run.counts.largest_agent_folder_bytes = Math.max(run.counts.largest_agent_folder_bytes, bytes)
  const staged = files.filter(({ name }) => /\.new(-wal|-shm)?$|\.part/.test(name)).map(({ name }) => name)
  return [
    ...(bytes > most ? [say('bounds', `has ${bytes} bytes in its folder, at most ${most} are expected`)] : []),
    ...(staged.length > 0 ? [say('bounds', `left ${staged.join(', ')} behind`)] : []),
  ]
}
