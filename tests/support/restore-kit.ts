// A server with agents whose data folder can be backed up and put back, on virtual time: what a restore does to
// clusters.
import { cpSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { seededRandom } from '../../shared/runtime/random.ts'
import { SyncAgent, SyncServer } from './sync-world.ts'
import { tempDir } from './temp-dir.ts'
import { createVirtualClock } from './virtual-clock.ts'

export type Backup = 'store' | 'store and shards' | 'store without shards'

export async function restorableFleet(names: readonly string[]) {
  const clock = createVirtualClock()
  const world = { dir: tempDir(), clock, random: seededRandom(11) }
  const server = new SyncServer(world)
  await server.open()
  await server.createJoinToken(20)
  const online = new Set<string>(names)
  /** Requests under way: a process that ends cuts them. */
  const open = new Set<() => void>()
  const kill = async () => {
    for (const reject of open) reject()
    await server.kill()
  }
  const newAgent = (name: string) =>
    new SyncAgent(world, server, name, async (url, init) => {
      const cut = Promise.withResolvers<never>()
      cut.promise.catch(() => {})
      const reject = () => cut.reject(new Error('connection reset'))
      init.signal?.addEventListener('abort', reject, { once: true })
      open.add(reject)
      try {
        const answer = online.has(name) ? await Promise.race([server.handle(new Request(url, init as RequestInit)), cut.promise]) : null
        if (answer === null) throw new Error('connection refused')
        return answer
      } finally {
        open.delete(reject)
      }
    })
  const agents = new Map(names.map((name) => [name, newAgent(name)]))
  for (const agent of agents.values()) agent.start()
  await clock.advance(5_000)
  const agent = (name: string) => {
    const found = agents.get(name)
    if (found === undefined) throw new Error(`no agent ${name}`)
    return found
  }
  const backupDir = tempDir()
  const parts = ['fleet.sqlite', 'fleet.sqlite-wal', 'fleet.sqlite-shm', 'shards', 'content', 'keys']
  const move = (from: string, to: string, names: readonly string[]) => {
    for (const name of names) {
      rmSync(join(to, name), { recursive: true, force: true })
      if (existsSync(join(from, name))) cpSync(join(from, name), join(to, name), { recursive: true })
    }
  }
  return {
    clock,
    server,
    online,
    agent,
    addAgent(name: string) {
      online.add(name)
      const added = newAgent(name)
      agents.set(name, added)
      added.start()
      return added
    },
    /** Rows that an agent holds and those that the server wants it to hold, as one text each. */
    async rows(name: string) {
      const { clusterId, loop } = agent(name)
      if (clusterId === null) throw new Error(`${name} has not joined`)
      const held = new Map<string, string>()
      for (const id of loop?.replica()?.services() ?? []) {
        const read = loop?.replica()?.read(id)
        if (read?.kind === 'complete') held.set(`${id.project}/${id.service}`, [...read.revision.objects.values()].join('\n'))
      }
      const wanted = (await server.expectedRows(clusterId))
        .filter(([id]) => id.startsWith('service/'))
        .map(([id]) => id.slice('service/'.length))
      return { held, wanted }
    },
    /** The server stops, is copied, and goes on. */
    async backUp() {
      await kill()
      move(world.dir, backupDir, parts)
      await server.open()
      await clock.advance(5_000)
    },
    async restore(what: Backup) {
      await kill()
      const put = what === 'store and shards' ? parts : parts.filter((name) => name !== 'shards')
      if (what === 'store without shards') rmSync(join(world.dir, 'shards'), { recursive: true, force: true })
      move(backupDir, world.dir, put)
      await server.open()
    },
    /** What `during` wrote to the shards did not reach the disk, as after a power loss: the store has it. */
    async loseShardTail(during: () => Promise<void>) {
      await kill()
      move(world.dir, backupDir, ['shards'])
      await server.open()
      await clock.advance(5_000)
      await during()
      await kill()
      move(backupDir, world.dir, ['shards'])
      await server.open()
    },
    /** A stop as it should be: the shards are trusted afterwards. */
    async restartCleanly() {
      await kill()
      rmSync(join(world.dir, 'shards', 'in-use'))
      await server.open()
    },
    async stop() {
      for (const running of agents.values()) await running.kill()
      await kill()
    },
  }
}
