// What happens to files: damage, loss, power cuts, full disks, backups that come back, copies that live on beside the
// original.
import { existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { openCrdtDb } from '../../shared/adapters/crdt-db.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { REV_INCARNATION } from '../../shared/protocol/status.ts'
import { clusterIdSchema } from '../../shared/runtime/ids.ts'
import { fillDisk, freeDisk } from './full-disk.ts'
import { FaultyNetwork } from './network.ts'
import type { Run } from './run.ts'
import { SimAgent } from './sim-agent.ts'
import { SimServer } from './sim-server.ts'

type Step = (run: Run) => Promise<void>

export const FILE_STEPS: ReadonlyArray<readonly [name: string, weight: number, step: Step]> = [
  ['rogue edit', 2, rogueEdit],
  ['bit flip', 1, bitFlip],
  ['damaged replica', 1, damagedReplica],
  ['lost replica', 1, lostReplica],
  ['lost wal', 1, lostWal],
  ['lost state', 1, lostState],
  ['power loss agent', 2, powerLossAgent],
  ['power loss server', 1.5, powerLossServer],
  ['damaged shard', 1, damagedShard],
  ['lost shard', 0.7, lostShard],
  ['snapshot', 1.5, snapshot],
  ['agent set back', 1.5, agentSetBack],
  ['two agents', 0.7, twoAgents],
  ['stop clone', 1.5, stopClones],
  ['disk full agent', 1.5, diskFullAgent],
  ['disk full server', 1, diskFullServer],
  ['poison status', 1, poisonStatus],
]

/** Steps that need what other parts bring; switched on by the options of a history. */
export const RESTORE_STEPS: ReadonlyArray<readonly [name: string, weight: number, step: Step]> = [
  ['compact', 1, compact],
  ['rotate key', 0.6, rotateKey],
  ['backup', 2, backup],
  ['restore server', 1.2, restoreServer],
  ['fork server', 0.6, forkServer],
  ['cross over', 1.5, crossOver],
]

/** A place somewhere in the file. */
const somewhere = (run: Run, path: string): number => run.world.below(Math.max(1, statSync(path).size))

async function rogueEdit(run: Run): Promise<void> {
  const agent = run.world.pick(run.agents)
  const clusterId = agent.clusterId
  if (clusterId === null || !agent.report()?.replica?.verified) return
  const edit = run.world.pick([
    "UPDATE desired SET doc = 'rogue'",
    'DELETE FROM desired',
    `INSERT INTO desired VALUES ('${clusterId}', 'x', 'rogue')`,
  ])
  try {
    const crdt = openCrdtDb(agent.files.replica, { synchronous: 'OFF' })
    crdt.db.run(edit)
    crdt.close()
  } catch {
    return // the file has other troubles
  }
  agent.tamper()
  run.world.count('rogue_edit')
  if (run.world.chance(0.5)) await run.world.clock.advance(run.world.random() * 60_000)
}

/** Under a running agent: seen at its next look, or when it starts. */
async function bitFlip(run: Run): Promise<void> {
  const agent = run.world.pick(run.agents)
  const path = agent.files.replica
  if (!existsSync(path)) return
  if (run.world.chance(0.5)) agent.kill()
  const bytes = readFileSync(agent.files.replica)
  const at = somewhere(run, agent.files.replica)
  bytes[at] = (bytes[at] ?? 0) ^ (1 << run.world.below(8))
  writeFileSync(agent.files.replica, bytes)
  agent.tamper()
  run.world.count('bit_flip_on_disk')
}

async function damagedReplica(run: Run): Promise<void> {
  const agent = run.world.pick(run.agents)
  if (!existsSync(agent.files.replica)) return
  agent.kill()
  if (run.world.chance(0.5)) writeFileSync(agent.files.replica, 'damaged')
  else truncateSync(agent.files.replica, Math.min(8_192, statSync(agent.files.replica).size))
  agent.tamper()
  run.world.count('damaged_replica')
}

async function lostReplica(run: Run): Promise<void> {
  const agent = run.world.pick(run.agents)
  if (!existsSync(agent.files.replica)) return
  agent.kill()
  const { replica } = agent.files
  agent.lose(replica, ...(run.world.chance(0.7) ? [`${replica}-wal`, `${replica}-shm`] : []))
  agent.tamper()
  run.world.count('lost_replica')
}

async function lostWal(run: Run): Promise<void> {
  const agent = run.world.pick(run.agents)
  if (!existsSync(`${agent.files.replica}-wal`)) return
  agent.kill()
  agent.lose(`${agent.files.replica}-wal`, `${agent.files.replica}-shm`)
  agent.tamper()
  run.world.count('lost_wal')
}

async function lostState(run: Run): Promise<void> {
  const agent = run.world.pick(run.agents)
  if (agent.clusterId === null) return
  agent.kill()
  const { state } = agent.files
  agent.lose(state, `${state}-wal`, `${state}-shm`)
  run.forgetful.add(agent.name)
  run.world.count('lost_state')
}

/** Without fsync after each commit the end of the log is lost, at any byte. */
function cutLog(run: Run, path: string): boolean {
  if (!existsSync(path)) return false
  truncateSync(path, somewhere(run, path))
  return true
}

async function powerLossAgent(run: Run): Promise<void> {
  const agent = run.world.pick(run.agents)
  if (!agent.running) return
  agent.kill()
  agent.boot()
  agent.lose(`${agent.files.replica}-shm`)
  if (!cutLog(run, `${agent.files.replica}-wal`)) return
  agent.tamper()
  run.world.count('power_loss_agent')
}

async function powerLossServer(run: Run): Promise<void> {
  const server = run.world.pick(run.servers)
  const clusterId = run.agents.map((agent) => agent.clusterId).find((id) => id !== null)
  if (!server.up || clusterId === undefined) return
  server.kill()
  if (cutLog(run, `${server.shardPath(clusterIdSchema.parse(clusterId))}-wal`)) run.world.count('power_loss_server')
}

async function damagedShard(run: Run): Promise<void> {
  const path = await stoppedShard(run)
  if (path === null) return
  writeFileSync(path, 'damaged')
  run.world.count('damaged_shard')
}

async function lostShard(run: Run): Promise<void> {
  const path = await stoppedShard(run)
  if (path === null) return
  run.agents[0]?.lose(path, `${path}-wal`, `${path}-shm`)
  run.world.count('lost_shard')
}

async function stoppedShard(run: Run): Promise<string | null> {
  const server = run.world.pick(run.servers)
  const clusterId = run.agents.map((agent) => agent.clusterId).find((id) => id !== null)
  if (!server.up || clusterId === undefined) return null
  server.kill()
  return server.shardPath(clusterIdSchema.parse(clusterId))
}

async function snapshot(run: Run): Promise<void> {
  const agent = run.world.pick(run.agents)
  if (agent.clusterId !== null) run.snapshots.set(agent.name, agent.copy())
}

/** A virtual machine that went back to an older image. */
async function agentSetBack(run: Run): Promise<void> {
  const agent = run.world.pick(run.agents)
  const older = run.snapshots.get(agent.name)
  if (older === undefined) return
  agent.kill()
  agent.setBackTo(older)
  agent.tamper()
  run.forgetful.add(agent.name)
  run.world.count('agent_set_back')
  if (run.world.chance(0.7)) agent.start()
}

/** A copy of its disk runs beside it, in the same cluster. */
async function twoAgents(run: Run): Promise<void> {
  const agent = run.world.pick(run.agents)
  if (run.clones.length > 0 || agent.clusterId === null) return
  const network = new FaultyNetwork(run.world, agent.name, agent.network.target, run.pages)
  const clone = new SimAgent(run.world, agent.name, run.server.joinToken, network, agent.cluster, agent.copy())
  clone.tamper()
  run.clones.push(clone)
  clone.start()
  run.cloned.add(agent.name)
  run.forgetful.add(agent.name)
  run.world.count('two_agents')
  await run.world.clock.advance(run.world.random() * 60_000)
}

export async function stopClones(run: Run): Promise<void> {
  for (const clone of run.clones) clone.kill()
  run.clones = []
}

async function diskFullAgent(run: Run): Promise<void> {
  const agent = run.world.pick(run.agents)
  const { dir } = agent
  fillDisk(dir, () => run.world.count('disk_full_agent'))
  await run.world.clock.advance(run.world.random() * 90_000)
  freeDisk(dir)
}

async function diskFullServer(run: Run): Promise<void> {
  const server = run.world.pick(run.servers)
  const to = await run.pickCluster()
  const { dir } = server
  if (to === null) return
  fillDisk(dir, () => run.world.count('disk_full_server'))
  const id = { project: 'shop', service: 'web' }
  await run.publish(to, id, run.wish(to.clusterId, id)).catch(() => {})
  await run.world.clock.advance(run.world.random() * 20_000)
  freeDisk(dir)
}

/** A row that no server takes, as a bug of an agent could write it. */
async function poisonStatus(run: Run): Promise<void> {
  const agent = run.world.pick(run.agents)
  const incarnation = agent.report()?.incarnation ?? null
  if (incarnation === null) return
  agent.kill()
  const db = openSqlite(agent.files.state)
  const last = Number(db.query<{ value: string }, []>("SELECT value FROM meta WHERE key = 'rev'").get()?.value ?? 0)
  const rev = Math.max(last, incarnation * REV_INCARNATION) + 1
  db.run("INSERT OR REPLACE INTO outbox (kind, key, rev, doc) VALUES ('drift', 'poison', ?, '{\"poison\":true}')", [rev])
  db.run("INSERT OR REPLACE INTO meta (key, value) VALUES ('rev', ?)", [String(rev)])
  db.close()
  agent.start()
  run.world.count('poison_status')
}

/** The server goes down in the midst of it, sometimes. */
async function compact(run: Run): Promise<void> {
  const server = run.world.pick(run.servers)
  if (!server.up) return
  if (run.world.chance(0.3)) server.life.endAfter(1 + run.world.below(6), run.world.chance(0.5))
  if (await server.compact()) run.world.count('compaction')
  if (server.up) server.life.endAfter(Number.POSITIVE_INFINITY, false)
}

async function rotateKey(run: Run): Promise<void> {
  const server = run.world.pick(run.servers)
  if (!server.up) return
  server.rotateKey()
  run.world.count('key_rotation')
}

async function backup(run: Run): Promise<void> {
  const server = run.world.pick(run.servers)
  if (server.up) run.backups.push({ dir: server.backup(), restores: run.restores })
}

/** k writes back. Sometimes only the fleet store comes from the backup, and the shards know more; not one from before
 *  another restore, whose numbers were given out again since. */
async function restoreServer(run: Run): Promise<void> {
  if (run.backups.length === 0 || run.servers.length > 1) return
  const { server } = run
  if (server.up) server.kill()
  const { dir, restores } = run.world.pick(run.backups)
  server.restore(dir, restores === run.restores && run.world.chance(0.3))
  run.restores += 1
  await server.open()
  run.world.count('restored_server')
}

/** Two servers from one backup; agents see one after the other. */
async function forkServer(run: Run): Promise<void> {
  if (run.servers.length > 1 || !run.server.up) return
  const other = new SimServer(run.world, 'fork', run.server.backup())
  await other.open()
  run.servers.push(other)
  run.world.count('forked_server')
}

async function crossOver(run: Run): Promise<void> {
  if (run.servers.length < 2) return
  for (const agent of run.everyAgent) if (run.world.chance(0.5)) agent.network.target = run.world.pick(run.servers)
}
