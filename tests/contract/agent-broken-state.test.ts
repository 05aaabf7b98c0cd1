// A part of the agent that cannot go on ends the whole of it: a process that looks alive and enforces nothing would be
// started again by nobody.
import { expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Agent, agentFiles, createAgent } from '../../agent/agent.ts'
import type { Fetcher } from '../../agent/link/server-client.ts'
import { CLAIM_NAME, CLAIM_NAMESPACE } from '../../agent/reconcile/claim/claim.ts'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import { NO_LOG } from '../../shared/adapters/log-sync.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { clusterIdSchema } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createFakeCluster } from '../support/fake-cluster.ts'
import { configMapRef } from '../support/reconcile-kit.ts'
import { WEB } from '../support/sync-kit.ts'
import { SyncServer } from '../support/sync-world.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

async function startSite() {
  const clock = createVirtualClock()
  const random = seededRandom(7)
  const server = new SyncServer({ dir: tempDir(), clock, random })
  await server.open()
  await server.createJoinToken(1)
  const cluster = createFakeCluster({ clock })
  const dataDir = tempDir()
  const asked: string[] = []
  const fetcher: Fetcher = async (url, init) => {
    asked.push(url)
    const aborted = new Promise<never>((_, reject) => init.signal?.addEventListener('abort', () => reject(new Error('aborted'))))
    aborted.catch(() => {})
    const answer = await Promise.race([server.handle(new Request(url, init as RequestInit)), aborted])
    if (answer === null) throw new Error('connection refused')
    return answer
  }
  const start = () => {
    const options = { dataDir, serverUrl: 'http://skerry', clusterName: 'site', joinToken: server.joinToken, waitSeconds: 20, version: '1' }
    const agent = createAgent(options, {
      cluster,
      fetcher,
      clock,
      random,
      randomBytes,
      log: silentLogger,
      place: null,
      logFile: NO_LOG,
      freeMemory: () => {},
    })
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
  const breakState = (...statements: string[]) => {
    const db = openSqlite(agentFiles(dataDir).state)
    for (const statement of statements) db.run(statement)
    db.close()
  }
  const publish = (agent: Agent, objects: Record<string, string>) =>
    server.publish(clusterIdSchema.parse(agent.report().clusterId), WEB, objects)
  return { clock, cluster, asked, start, breakState, publish }
}

test('SY11 an agent whose inventory cannot be read ends with that error, and asks the server nothing more', async () => {
  const { clock, asked, start, breakState } = await startSite()
  const first = start()
  await clock.advance(5_000)
  await first.stop()
  breakState(
    "INSERT INTO service (key) VALUES ('shop/web')",
    "INSERT INTO inventory (ref, service, api_version) VALUES ('?', 'shop/web', 'v1')",
  )
  const second = start()
  await clock.advance(30_000)
  expect(second.ended.map(String)).toEqual([expect.stringContaining('well-formed refs')])
  asked.length = 0
  await clock.advance(10 * 60_000)
  expect(asked).toEqual([])
  await second.stop()
})

test('SY11 a report that cannot be noted down ends no enforcement', async () => {
  const { clock, cluster, start, breakState, publish } = await startSite()
  const { agent, ended, stop } = start()
  await clock.advance(5_000)
  await publish(agent, { a: '1' })
  await clock.advance(5_000)
  breakState('DROP TABLE outbox')
  cluster.deleteAs('kubectl', { group: '', kind: 'ConfigMap', namespace: CLAIM_NAMESPACE, name: CLAIM_NAME })
  await clock.advance(60_000)
  cluster.editAs('kubectl', configMapRef('a'), (object) => Object.assign(object, { data: { value: 'x' } }))
  await clock.advance(60_000)
  expect(ended).toEqual([])
  expect(cluster.object(configMapRef('a'))?.['data']).toEqual({ value: '1' })
  await stop()
})

test('SY11 a state that cannot be opened says which file is damaged and what to do', () => {
  const path = join(tempDir(), 'agent.sqlite')
  writeFileSync(path, Buffer.alloc(8_192, 'x'))
  expect(() => openAgentState(path)).toThrow(`${path} is damaged`)
})

test('SY11 a state with a damaged page is refused at each start, not when it is read', () => {
  const path = join(tempDir(), 'agent.sqlite')
  openAgentState(path).close()
  const bytes = readFileSync(path)
  writeFileSync(path, bytes.fill(0xff, 4_096, 8_192))
  for (let start = 0; start < 2; start++) expect(() => openAgentState(path)).toThrow(`${path} is damaged`)
})

test('SY11 a state whose tables took each other’s place is refused', () => {
  const path = join(tempDir(), 'agent.sqlite')
  openAgentState(path).close()
  const db = openSqlite(path)
  db.run("INSERT INTO service (key) VALUES ('identity')")
  db.close()
  expect(() => openAgentState(path)).toThrow(`${path} is damaged`)
})

test('SY11 what can be read and is no document says which file is damaged', () => {
  const path = join(tempDir(), 'agent.sqlite')
  openAgentState(path).close()
  const db = openSqlite(path)
  db.run("INSERT INTO meta VALUES ('identity', '{')")
  db.close()
  const state = openAgentState(path)
  expect(() => state.identity()).toThrow(`${path} is damaged`)
  state.close()
})

test('SY11 a state that is cut off while it is created never has its name', () => {
  const path = join(tempDir(), 'agent.sqlite')
  mkdirSync(`${path}.new-wal`)
  expect(() => openAgentState(path)).toThrow()
  expect(existsSync(path)).toBe(false)
})

const AGENT_CLI = ['bun', join(import.meta.dir, '../../agent/main.ts')]

test('SY5 SY11 a status says so when an agent has the data folder and gives no answer', async () => {
  const dir = tempDir()
  openAgentState(agentFiles(dir).state).close()
  const lock = openSqlite(join(dir, 'lock.sqlite'), { journal: 'DELETE' })
  lock.run('BEGIN EXCLUSIVE')
  const asked = Bun.spawn([...AGENT_CLI, 'status', '--data', dir], { stdout: 'pipe', stderr: 'pipe' })
  const said = await new Response(asked.stderr).text()
  expect([await asked.exited, said]).toEqual([1, expect.stringContaining('did not answer')])
  expect(said).toContain('restart it')
  lock.close()
}, 20_000)
