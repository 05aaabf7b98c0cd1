// A whole agent with its reconciler on a fake cluster, on virtual time, beside a server that can be away or another
// one.
import { randomBytes } from 'node:crypto'
import { createAgent } from '../../agent/agent.ts'
import { NO_LOG } from '../../shared/adapters/log-sync.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { createFakeCluster, type FakeCluster } from './fake-cluster.ts'
import { configMapRef } from './reconcile-kit.ts'
import type { SyncServer } from './sync-world.ts'
import { tempDir } from './temp-dir.ts'
import type { createVirtualClock } from './virtual-clock.ts'

export interface WholeSiteDeps {
  clock: ReturnType<typeof createVirtualClock>
  random: Random
  /** The one that answers now. Null means that nobody does. */
  server(): SyncServer | null
  joinToken: string
  /** Of an earlier life of the same site; default new ones. */
  dataDir?: string
  cluster?: FakeCluster
}

export function startWholeSite({
  clock,
  random,
  server,
  joinToken,
  dataDir = tempDir(),
  cluster = createFakeCluster({ clock }),
}: WholeSiteDeps) {
  const agent = createAgent(
    { dataDir, serverUrl: 'http://skerry', clusterName: 'site', joinToken, waitSeconds: 30, version: '1' },
    {
      cluster,
      fetcher: async (url, init) => {
        const aborted = new Promise<never>((_, reject) => init.signal?.addEventListener('abort', () => reject(new Error('aborted'))))
        aborted.catch(() => {})
        const asked = server()
        const answer = asked === null ? null : await Promise.race([asked.handle(new Request(url, init as RequestInit)), aborted])
        if (answer === null) throw new Error('connection refused')
        return answer
      },
      clock,
      random,
      randomBytes,
      log: silentLogger,
      place: null,
      logFile: NO_LOG,
      freeMemory: () => {},
    },
  )
  const stopping = new AbortController()
  const running = agent.run(stopping.signal)
  /** Of ConfigMaps. */
  const values = (...names: string[]) =>
    Object.fromEntries(names.map((name) => [name, (cluster.object(configMapRef(name))?.['data'] as { value?: string })?.value]))
  const stop = async () => {
    stopping.abort()
    await running
    agent.close()
  }
  return { agent, cluster, values, stop }
}
