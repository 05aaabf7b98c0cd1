// Data folders of a server and of an agent at several moments of their lives, as copies that a history damages. Built
// in a process that sees whole files only.
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Kysely } from 'kysely'
import { type Agent, createAgent } from '../../agent/agent.ts'
import { createShardFile } from '../../server/desired/shard-file.ts'
import { SHARD_COUNT, shardOf } from '../../server/desired/shard-files.ts'
import { sqliteDialect } from '../../server/store/engines/sqlite-dialect.ts'
import { bringForward } from '../../server/store/schema/bring-forward.ts'
import { NO_LOG } from '../../shared/adapters/log-sync.ts'
import type { NativeGuard } from '../../shared/adapters/native-guard.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { type ClusterId, clusterIdSchema } from '../../shared/runtime/ids.ts'
import { type Logger, silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { DB, openDataFolderServer, WEB } from '../support/data-folder-kit.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { newId } from '../support/sync-kit.ts'
import { SyncServer } from '../support/sync-world.ts'
import { createVirtualClock, type VirtualClock } from '../support/virtual-clock.ts'
import type { FileImage } from './damage-kinds.ts'

/** Oldest first; each but the first has the one before as its past. `in place`: files as versions before made them, all
 *  of them still in the log. */
export const MOMENTS = ['in place', 'created', 'first', 'later', 'stopped'] as const
export type Moment = (typeof MOMENTS)[number]

export const OBJECTS: Readonly<Record<string, string>> = Object.fromEntries(
  Array.from({ length: 40 }, (_, n) => [`o${n}`, `${n} ${'v'.repeat(400)}`]),
)

export const shardName = (clusterId: string, count: number): string => `shard-${String(shardOf(clusterId, count)).padStart(2, '0')}.db`

export function readImage(path: string): FileImage {
  const read = (file: string) => (existsSync(file) ? readFileSync(file) : Buffer.alloc(0))
  return { main: read(path), wal: read(`${path}-wal`) }
}

export function writeImage(path: string, { main, wal }: FileImage): void {
  for (const suffix of ['-wal', '-shm', '-journal']) rmSync(path + suffix, { force: true })
  writeFileSync(path, main)
  if (wal.length > 0) writeFileSync(`${path}-wal`, wal)
}

/** Below `root` a folder for each moment; answers the clusters. */
export async function buildServerFolders(root: string): Promise<ClusterId[]> {
  const dir = join(root, 'live')
  const keep = (moment: Moment) => cpSync(dir, join(root, moment), { recursive: true })
  const server = await openDataFolderServer(dir)
  keep('created')
  const clusters = [await server.join('1'), await server.join('2'), await server.join('3')]
  await server.publish(clusters, WEB, { a: '1', b: '1' })
  keep('first')
  await server.publish(clusters, WEB, OBJECTS)
  await server.publish(clusters.slice(1), DB, { data: '1' })
  await server.publish(clusters, WEB, { ...OBJECTS, o1: 'other' })
  keep('later')
  await server.close()
  keep('stopped')
  cpSync(join(root, 'first'), join(root, 'in place'), { recursive: true })
  for (const clusterId of clusters) shardInPlace(join(root, 'in place', 'shards', shardName(clusterId, SHARD_COUNT)))
  await storeInPlace(join(root, 'in place', 'fleet.sqlite'))
  return clusters
}

function shardInPlace(path: string): void {
  const made = `${path}.made`
  const file = createShardFile({ path: made, newDbId: newId }, 'created')
  const image = readImage(made)
  file.close()
  rmSync(made, { force: true })
  writeImage(path, image)
}

async function storeInPlace(path: string): Promise<void> {
  const made = `${path}.made`
  const db = new Kysely<never>({ dialect: sqliteDialect(made) })
  await bringForward(db as never, 'sqlite')
  const image = readImage(made)
  await db.destroy()
  rmSync(made, { force: true })
  writeImage(path, image)
}

/** A server in this process and an agent of it on a folder of its own, in virtual time. */
export interface Site {
  clock: VirtualClock
  server: SyncServer
  cluster: ReturnType<typeof createFakeCluster>
  start(agentDir: string, guard?: NativeGuard, log?: Logger): { agent: Agent; ended: unknown[]; stop(): Promise<void> }
}

export async function openSite(serverDir: string, isNew: boolean): Promise<Site> {
  const clock = createVirtualClock()
  const random = seededRandom(7)
  const server = new SyncServer({ dir: serverDir, clock, random })
  await server.open()
  if (isNew) await server.createJoinToken(1_000)
  const cluster = createFakeCluster({ clock })
  const fetcher = async (url: string, init: { signal?: AbortSignal | null }) => {
    const aborted = new Promise<never>((_, reject) => init.signal?.addEventListener('abort', () => reject(new Error('aborted'))))
    aborted.catch(() => {})
    const answer = await Promise.race([server.handle(new Request(url, init as RequestInit)), aborted])
    if (answer === null) throw new Error('connection refused')
    return answer
  }
  const start: Site['start'] = (dataDir, guard, log = silentLogger) => {
    const options = { dataDir, serverUrl: 'http://skerry', clusterName: 'site', joinToken: server.joinToken, waitSeconds: 20, version: '1' }
    const randomBytes = (count: number) => Uint8Array.from({ length: count }, () => Math.floor(random() * 256))
    const deps = { cluster, fetcher, clock, random, randomBytes, log, place: null, logFile: NO_LOG, freeMemory: () => {} }
    const agent = createAgent(options, guard === undefined ? deps : { ...deps, guard })
    const stopping = new AbortController()
    const ended: unknown[] = []
    const running = agent.run(stopping.signal).catch((error: unknown) => void ended.push(error))
    const stop = async () => {
      stopping.abort()
      await running
      agent.close()
    }
    return { agent, ended, stop }
  }
  return { clock, server, cluster, start }
}

/** Below `root` an `agent` folder for each moment, and the folder of its server, which stopped. */
export async function buildAgentFolders(root: string): Promise<void> {
  const [dir, serverDir] = [join(root, 'live'), join(root, 'server')]
  mkdirSync(dir, { recursive: true })
  const site = await openSite(serverDir, true)
  const keep = (moment: Moment) => cpSync(dir, join(root, moment), { recursive: true, filter: (path) => !path.endsWith('.sock') })
  const { agent, stop } = site.start(dir)
  await site.clock.advance(5_000)
  keep('created')
  const clusterId = clusterIdSchema.parse(agent.report().clusterId)
  await site.server.publish(clusterId, WEB, { a: '1', b: '1' })
  await site.clock.advance(30_000)
  keep('first')
  await site.server.publish(clusterId, WEB, OBJECTS)
  await site.clock.advance(30_000)
  await site.server.publish(clusterId, DB, { d: '1' })
  await site.clock.advance(30_000)
  keep('later')
  await stop()
  keep('stopped')
  await site.server.kill()
  cpSync(join(root, 'created'), join(root, 'in place'), { recursive: true })
  shardInPlace(join(root, 'in place', 'replica.sqlite'))
  copySchema(join(root, 'stopped', 'agent.sqlite'), join(root, 'in place', 'agent.sqlite'))
}

/** A file with the tables of another one, all of them in the log. */
function copySchema(from: string, to: string): void {
  const whole = openSqlite(from, { readonly: true })
  const statements = whole.query<{ sql: string }, []>('SELECT sql FROM sqlite_master WHERE sql IS NOT NULL').all()
  const version = whole.query<{ user_version: number }, []>('PRAGMA user_version').get()?.user_version ?? 0
  whole.close()
  const made = openSqlite(`${to}.made`)
  for (const { sql } of statements) made.run(sql)
  made.run(`PRAGMA user_version=${version}`)
  const image = readImage(`${to}.made`)
  made.close()
  rmSync(`${to}.made`)
  writeImage(to, image)
}
