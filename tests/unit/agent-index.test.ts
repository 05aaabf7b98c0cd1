import { expect, test } from 'bun:test'
import { createAgentIndex, refreshAgents } from '../../server/access/agent-index.ts'
import type { AgentRecord } from '../../server/fleet/records.ts'
import type { AgentId } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { agentId, clusterId } from '../support/store-fixtures.ts'

const record = (digit: string, change: Partial<AgentRecord> = {}): AgentRecord => ({
  agentId: agentId(digit),
  clusterId: clusterId(digit),
  clusterName: `cluster-${digit}`,
  publicKey: '',
  recipient: '',
  incarnation: 1,
  epoch: 1,
  revoked: false,
  joinedMs: 0,
  ...change,
})

async function start() {
  const stored = new Map<AgentId, AgentRecord>([record('1'), record('2')].map((agent) => [agent.agentId, agent]))
  const reads: string[] = []
  const index = await createAgentIndex({
    listAgents: async () => {
      reads.push('all')
      return [...stored.values()]
    },
    agent: async (id) => {
      reads.push(id)
      return stored.get(id) ?? null
    },
  })
  const told: string[] = []
  index.onChanged((id) => told.push(id))
  reads.length = 0
  const write = (agent: AgentRecord) => stored.set(agent.agentId, agent)
  return { index, stored, reads, told, write }
}

test('SE3 an agent that changes is read alone, and its cluster is told', async () => {
  const { index, reads, told, write } = await start()
  write(record('1', { incarnation: 2 }))
  await Promise.all([index.refreshAgent(agentId('1')), index.refreshAgent(agentId('1'))])
  expect([index.agent(agentId('1'))?.incarnation, reads, told]).toEqual([2, [agentId('1')], [clusterId('1')]])
  write(record('3'))
  await index.refreshAgent(agentId('3'))
  expect([index.ofCluster(clusterId('3'))?.clusterName, told.length]).toEqual(['cluster-3', 1])
})

test('SE3 a cluster that is gone or revoked is read by its name, and told', async () => {
  const { index, stored, reads, told, write } = await start()
  stored.delete(agentId('1'))
  write(record('2', { revoked: true }))
  await index.refreshClusters(['cluster-1', 'cluster-2'])
  expect([index.agent(agentId('1')), index.ofCluster(clusterId('1')), index.ofCluster(clusterId('2'))?.revoked]).toEqual([null, null, true])
  expect([reads, told]).toEqual([
    [agentId('1'), agentId('2')],
    [clusterId('1'), clusterId('2')],
  ])
  write(record('4'))
  await index.refreshClusters(['cluster-4'])
  expect([index.ofCluster(clusterId('4'))?.agentId, reads.at(-1)]).toEqual([agentId('4'), 'all'])
})

test('SE3 a revocation is read again until the store answers', async () => {
  const { index, write } = await start()
  write(record('1', { revoked: true }))
  let failures = 3
  const away = {
    refreshClusters: async (names: readonly string[]) => {
      if (failures-- > 0) throw new Error('the store is away')
      return index.refreshClusters(names)
    },
  }
  const slept: number[] = []
  const clock = { sleep: async (ms: number) => void slept.push(ms) }
  await refreshAgents(away, ['cluster-1'], { clock, random: () => 1, log: silentLogger, signal: new AbortController().signal })
  expect([index.agent(agentId('1'))?.revoked, slept]).toEqual([true, [500, 1_000, 2_000]])
})
