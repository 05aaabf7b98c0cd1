// Clusters and join tokens for tests that need a store with something in it. Ids are fixed so that a failure reads
// well.

import type { JoinInput } from '../../server/fleet/records.ts'
import type { Store } from '../../server/store/store.ts'
import { type AgentId, agentIdSchema, type ClusterId, clusterIdSchema } from '../../shared/runtime/ids.ts'

export interface StoreHarness {
  store(): Store
}

export const clusterId = (digit: string): ClusterId => clusterIdSchema.parse(`c-${digit.repeat(16)}`)
export const agentId = (digit: string): AgentId => agentIdSchema.parse(`a-${digit.repeat(16)}`)

/** What publishing one row answers. */
export async function publishOne(store: Store, row: Parameters<Store['publish']>[0][number]) {
  const [published] = await store.publish([row])
  if (published === undefined) throw new Error('no answer for the row')
  const { changed, ordinal } = published
  return { changed, ordinal }
}

/** A token `hash-<name>` with the uses given, made at 0 and expiring at 1,000. */
export async function makeToken(store: Store, name: string, uses = 1, labels: Record<string, string> = {}): Promise<string> {
  const tokenHash = `hash-${name}`
  await store.createJoinToken({ id: name, tokenHash, usesLeft: uses, uses, labels, createdMs: 0, expiresMs: 1_000, createdBy: 'admin' })
  return tokenHash
}

export const joinInput = (digit: string, overrides: Partial<JoinInput> = {}): JoinInput => ({
  tokenHash: 'hash-t',
  clusterName: `cluster-${digit}`,
  publicKey: `key-${digit}`,
  recipient: `recipient-${digit}`,
  clusterUid: `uid-${digit}`,
  nowMs: 500,
  clusterId: clusterId(digit),
  agentId: agentId(digit),
  ...overrides,
})

export async function joinCluster(store: Store, digit: string, labels: Record<string, string> = {}): Promise<ClusterId> {
  const tokenHash = await makeToken(store, `for-${digit}-${Object.keys(labels).length}`, 1, labels)
  const result = await store.join(joinInput(digit, { tokenHash }))
  if (result.kind !== 'joined') throw new Error(`could not join: ${result.kind}`)
  return result.agent.clusterId
}

/** An admin token without its id and hash. */
export const API_TOKEN = { name: 'n', role: 'admin', createdMs: 1, createdBy: null, expiresMs: null, replaces: null } as const
