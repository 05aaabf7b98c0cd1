// The agent's side of sync without a reconciler: identity, session, pages, replica and outbox are real, the clock and
// the link to the server are given.
import { randomBytes } from 'node:crypto'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { loadAgentKeys } from '../../agent/link/agent-keys.ts'
import type { Fetcher } from '../../agent/link/server-client.ts'
import { type CheckedReplica, createCrdtReplica } from '../../agent/replica/crdt-replica.ts'
import type { AgentState } from '../../agent/state/agent-state.ts'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import { createPartStage } from '../../agent/sync/part-stage.ts'
import { SyncLoop, type SyncStatus } from '../../agent/sync/sync-loop.ts'
import { type Clock, systemClock } from '../../shared/runtime/clock.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import type { Random } from '../../shared/runtime/random.ts'
import { seededRandom } from '../../shared/runtime/random.ts'

export interface SiteAgentOptions {
  dir: string
  serverUrl: string
  joinToken: string
  name: string
  fetcher?: Fetcher
  clock?: Clock
  random?: Random
  metered?: boolean
}

export interface SiteAgent {
  state: AgentState
  status(): SyncStatus
  replica(): CheckedReplica | null
  /** It follows, and holds what the server had when it last answered. */
  following(): boolean
  stop(): Promise<void>
}

const filesOf = (dir: string) => ({ state: join(dir, 'agent.sqlite'), replica: join(dir, 'replica.sqlite') })

export function startSiteAgent(options: SiteAgentOptions): SiteAgent {
  const { dir, serverUrl, joinToken, name, fetcher = fetch, clock = systemClock, random = seededRandom(1), metered = false } = options
  mkdirSync(dir, { recursive: true })
  const files = filesOf(dir)
  const state = openAgentState(files.state)
  const loop = new SyncLoop({
    serverUrl,
    fetcher,
    keys: loadAgentKeys(dir),
    join: { joinToken, clusterName: name, clusterUid: `uid-${name}`, agentVersion: '0.1.0' },
    state,
    openReplica: ({ clusterId }) =>
      createCrdtReplica({ path: files.replica, clusterId, serverKeys: () => state.identity()?.serverKeys ?? [], log: silentLogger }),
    onChange: () => {},
    clock,
    random,
    randomBytes,
    log: silentLogger,
    metered,
    parts: createPartStage(dir),
  })
  const stopping = new AbortController()
  const running = loop.run(stopping.signal)
  return {
    state,
    status: () => loop.status(),
    replica: () => loop.replica(),
    following: () => loop.status().state === 'following' && loop.replica()?.position() !== null,
    async stop() {
      stopping.abort()
      await running
      loop.replica()?.close()
      state.close()
    },
  }
}

/** A lost disk whose identity survived: the next start fetches everything. */
export function dropReplica(dir: string): void {
  for (const suffix of ['', '-wal', '-shm', '.epoch']) rmSync(filesOf(dir).replica + suffix, { force: true })
}
