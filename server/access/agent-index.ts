// Every agent in memory, so that a poll costs no query. Whoever changes an agent, a revocation or a cluster calls `refresh`.
import type { ClusterId } from '../../shared/model/ids.ts'
import type { AgentRecord, Store } from '../store/store.ts'

export interface AgentIndex {
  agent(agentId: string): AgentRecord | null
  ofCluster(clusterId: ClusterId): AgentRecord | null
  /** Signed into checkpoints (CU2a). */
  epochOf(clusterId: ClusterId): number
  refresh(): Promise<void>
  /** Told of each cluster whose agent may no longer do what it did: revoked, gone, or with another incarnation or epoch. */
  onChanged(listener: (clusterId: ClusterId) => void): void
}

export async function createAgentIndex(store: Pick<Store, 'listAgents'>): Promise<AgentIndex> {
  let byId = new Map<string, AgentRecord>()
  let byCluster = new Map<ClusterId, AgentRecord>()
  const listeners: Array<(clusterId: ClusterId) => void> = []
  const read = async () => {
    const agents = await store.listAgents()
    const before = byCluster
    byId = new Map(agents.map((agent) => [agent.agentId, agent]))
    byCluster = new Map(agents.map((agent) => [agent.clusterId, agent]))
    for (const [clusterId, agent] of before)
      if (!sameStanding(agent, byCluster.get(clusterId))) for (const tell of listeners) tell(clusterId)
  }
  let running = Promise.resolve()
  let next: Promise<void> | null = null
  // One after the other, so that an older reading never replaces a newer one; who asks while one runs shares the one after it.
  const refresh = () => {
    next ??= running.then(() => {
      const mine = read()
      running = mine.catch(() => {})
      next = null
      return mine
    })
    return next
  }
  await refresh()
  return {
    agent: (agentId) => byId.get(agentId) ?? null,
    ofCluster: (clusterId) => byCluster.get(clusterId) ?? null,
    epochOf: (clusterId) => byCluster.get(clusterId)?.epoch ?? 1,
    refresh,
    onChanged: (listener) => void listeners.push(listener),
  }
}

const sameStanding = (a: AgentRecord, b: AgentRecord | undefined): boolean =>
  b !== undefined && a.agentId === b.agentId && a.revoked === b.revoked && a.incarnation === b.incarnation && a.epoch === b.epoch
