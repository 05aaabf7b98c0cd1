// Every agent in memory, so that a poll costs no query. Whoever changes an agent, a revocation or a cluster calls `refresh`.
import type { ClusterId } from '../../shared/model/ids.ts'
import type { AgentRecord, Store } from '../store/store.ts'

export interface AgentIndex {
  agent(agentId: string): AgentRecord | null
  ofCluster(clusterId: ClusterId): AgentRecord | null
  /** Signed into checkpoints (CU2a). */
  epochOf(clusterId: ClusterId): number
  refresh(): Promise<void>
}

export async function createAgentIndex(store: Pick<Store, 'listAgents'>): Promise<AgentIndex> {
  let byId = new Map<string, AgentRecord>()
  let byCluster = new Map<ClusterId, AgentRecord>()
  let lastRefresh = Promise.resolve()
  // One after the other, so that an older reading never replaces a newer one.
  const refresh = () => {
    const before = lastRefresh
    const mine = (async () => {
      await before.catch(() => {})
      const agents = await store.listAgents()
      byId = new Map(agents.map((agent) => [agent.agentId, agent]))
      byCluster = new Map(agents.map((agent) => [agent.clusterId, agent]))
    })()
    lastRefresh = mine
    return mine
  }
  await refresh()
  return {
    agent: (agentId) => byId.get(agentId) ?? null,
    ofCluster: (clusterId) => byCluster.get(clusterId) ?? null,
    epochOf: (clusterId) => byCluster.get(clusterId)?.epoch ?? 1,
    refresh,
  }
}
