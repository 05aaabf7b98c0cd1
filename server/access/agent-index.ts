// Every agent in memory, so that a poll costs no query. Code that changes agents, revocations or clusters names the
// changed one; a change of one reads one.

import { backoffMs } from '../../shared/runtime/backoff.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import type { AgentId, ClusterId } from '../../shared/runtime/ids.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { describeError } from '../../shared/runtime/loop.ts'
import type { Random } from '../../shared/runtime/random.ts'
import type { AgentRecord } from '../fleet/records.ts'
import type { Store } from '../store/store.ts'

export interface AgentIndex {
  agent(agentId: string): AgentRecord | null
  ofCluster(clusterId: ClusterId): AgentRecord | null
  /** Signed into checkpoints (CU2a). */
  epochOf(clusterId: ClusterId): number
  /** All of them. */
  refresh(): Promise<void>
  /** One that joined, changed or is gone. */
  refreshAgent(agentId: AgentId): Promise<void>
  /** By the names of their clusters. */
  refreshClusters(names: readonly string[]): Promise<void>
  /** Called with each cluster whose agent lost rights: revoked, deleted, asked for another recipient key, or with
   *  another incarnation or epoch. */
  onChanged(listener: (clusterId: ClusterId) => void): void
}

/** With more names than this, all are read. */
const NAMES_MAX = 50

export async function createAgentIndex(store: Pick<Store, 'listAgents' | 'agent'>): Promise<AgentIndex> {
  let byId = new Map<string, AgentRecord>()
  let byCluster = new Map<ClusterId, AgentRecord>()
  const listeners: Array<(clusterId: ClusterId) => void> = []
  const tellIfChanged = (before: AgentRecord) => {
    if (!sameStanding(before, byCluster.get(before.clusterId))) for (const tell of listeners) tell(before.clusterId)
  }

  const readAll = async () => {
    const agents = await store.listAgents()
    const before = byCluster
    byId = new Map(agents.map((agent) => [agent.agentId, agent]))
    byCluster = new Map(agents.map((agent) => [agent.clusterId, agent]))
    for (const agent of before.values()) tellIfChanged(agent)
  }
  const readOne = async (agentId: AgentId) => {
    const agent = await store.agent(agentId)
    const before = byId.get(agentId)
    if (before !== undefined) {
      byId.delete(agentId)
      byCluster.delete(before.clusterId)
    }
    if (agent !== null) {
      byId.set(agentId, agent)
      byCluster.set(agent.clusterId, agent)
    }
    if (before !== undefined) tellIfChanged(before)
  }

  // Reads run one after the other, so that an older one never replaces a newer; callers that wait for one that has not
  // begun share it.
  let last: Promise<void> = Promise.resolve()
  const next = new Map<AgentId | 'all', Promise<void>>()
  const inTurn = (what: AgentId | 'all', read: () => Promise<void>): Promise<void> => {
    const waiting = next.get(what)
    if (waiting !== undefined) return waiting
    const mine = last.then(() => {
      next.delete(what)
      return read()
    })
    next.set(what, mine)
    last = mine.catch(() => {})
    return mine
  }
  const refresh = () => inTurn('all', readAll)
  const refreshAgent = (agentId: AgentId) => inTurn(agentId, () => readOne(agentId))
  await refresh()
  return {
    agent: (agentId) => byId.get(agentId) ?? null,
    ofCluster: (clusterId) => byCluster.get(clusterId) ?? null,
    epochOf: (clusterId) => byCluster.get(clusterId)?.epoch ?? 1,
    refresh,
    refreshAgent,
    async refreshClusters(names) {
      if (names.length > NAMES_MAX) return refresh()
      const named: AgentRecord[] = []
      for (const agent of byCluster.values()) if (names.includes(agent.clusterName)) named.push(agent)
      if (named.length < names.length) return refresh()
      await Promise.all(named.map(({ agentId }) => refreshAgent(agentId)))
    },
    onChanged: (listener) => void listeners.push(listener),
  }
}

const BACKOFF = { baseMs: 500, capMs: 10_000 }

/** Reads the agents of these clusters until it succeeds: a revoked agent must not stay in the index because the store
 *  was away for a moment. */
export async function refreshAgents(
  agents: Pick<AgentIndex, 'refreshClusters'>,
  clusters: readonly string[],
  { clock, random, log, signal }: { clock: Pick<Clock, 'sleep'>; random: Random; log: Logger; signal: AbortSignal },
): Promise<void> {
  for (let attempt = 0; !signal.aborted; attempt++) {
    try {
      return await agents.refreshClusters(clusters)
    } catch (error) {
      log.error('cannot read agents', { clusters, attempt, error: describeError(error) })
      await clock.sleep(backoffMs(attempt, BACKOFF, random), signal)
    }
  }
}

const sameStanding = (a: AgentRecord, b: AgentRecord | undefined): boolean =>
  b !== undefined &&
  a.agentId === b.agentId &&
  a.revoked === b.revoked &&
  a.incarnation === b.incarnation &&
  a.epoch === b.epoch &&
  a.rotateMs === b.rotateMs
