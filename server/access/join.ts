// A new agent shows a join token and proves that it holds the key it brings; from then on its identity is that key.
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { agentIdSchema, clusterIdSchema } from '../../shared/model/ids.ts'
import { AppError } from '../../shared/protocol/error.ts'
import { type JoinAnswer, type JoinRequest, joinAnswerBytes, joinProofBytes } from '../../shared/protocol/join.ts'
import type { KeyLink } from '../../shared/protocol/key-links.ts'
import { formerClustersBytes } from '../../shared/protocol/removal.ts'
import { MIN_SUPPORTED_PROTOCOL_VERSION, PROTOCOL_VERSION } from '../../shared/protocol/version.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { verifyBytes } from '../../shared/runtime/keys.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import type { JoinResult } from '../store/records.ts'
import type { Store } from '../store/store.ts'
import type { AgentIndex } from './agent-index.ts'
import type { ServerKeys } from './server-keys.ts'

/** Tokens are stored by this only. */
export const joinTokenHash = (secret: string): string => sha256Hex(secret)

export interface JoinDeps {
  store: Pick<Store, 'join' | 'formerClusters'>
  agents: AgentIndex
  keys: Pick<ServerKeys, 'publicKeys' | 'links' | 'sign'>
  clock: Clock
  randomBytes(count: number): Uint8Array
  log: Logger
  /** That this server serves. */
  versions?: ProtocolRange
  /** A cluster joined, for the first time or with another token: targets are to be computed anew. */
  onJoined?(clusterName: string): void
}

export async function joinAgent(request: JoinRequest, deps: JoinDeps): Promise<JoinAnswer> {
  const versions = deps.versions ?? OWN_VERSIONS
  checkProtocol(request.protocol, versions)
  const tokenHash = joinTokenHash(request.token)
  const proof = joinProofBytes(tokenHash, request.publicKey, request.recipient, request.cluster)
  if (!verifyBytes(request.publicKey, proof, request.proof)) throw new AppError('join_proof_invalid', { doing: 'join' })
  const id = (prefix: string) => `${prefix}-${Buffer.from(deps.randomBytes(8)).toString('hex')}`
  const result = await deps.store.join({
    tokenHash,
    clusterName: request.cluster,
    publicKey: request.publicKey,
    recipient: request.recipient,
    clusterUid: request.clusterUid,
    nowMs: deps.clock.nowMs(),
    clusterId: clusterIdSchema.parse(id('c')),
    agentId: agentIdSchema.parse(id('a')),
  })
  if (result.kind !== 'joined') throw refusal(result, request.cluster)
  const { agent, repeated } = result
  await deps.agents.refreshAgent(agent.agentId)
  if (!repeated) {
    deps.log.info('cluster joined', { cluster: agent.clusterName, agent: agent.agentId, version: request.agentVersion })
    deps.onJoined?.(agent.clusterName)
  }
  const { clusterId, agentId, incarnation } = agent
  const answer = { clusterId, agentId, incarnation, serverKeys: [...deps.keys.publicKeys] }
  const former = await deps.store.formerClusters(request.clusterUid)
  return {
    ...answer,
    ...keyLinksMember(deps.keys),
    ...(former.length === 0 ? {} : { former: { clusters: former, signature: deps.keys.sign(formerClustersBytes(clusterId, former)) } }),
    signature: deps.keys.sign(joinAnswerBytes(answer, request.publicKey)),
    protocol: versions,
  }
}

/** RP7: the way from a key that the agent knows to the one that signs; each link carries its own signature. */
export const keyLinksMember = ({ links }: Pick<ServerKeys, 'links'>): { keyLinks?: KeyLink[] } =>
  links.length === 0 ? {} : { keyLinks: [...links] }

export interface ProtocolRange {
  min: number
  max: number
}
/** Of this build: what it speaks, down to what it still understands. */
export const OWN_VERSIONS: ProtocolRange = { min: MIN_SUPPORTED_PROTOCOL_VERSION, max: PROTOCOL_VERSION }

/** PL11: throws when they do not meet. The server's range goes with it, so that an agent that knows several chooses the greatest of both. */
export function checkProtocol(agent: ProtocolRange, server: ProtocolRange): void {
  if (agent.max >= server.min && agent.min <= server.max) return
  const range = ({ min, max }: ProtocolRange) => (min === max ? String(min) : `${min} to ${max}`)
  const older = agent.max < server.min ? 'the agent' : 'the server'
  throw new AppError('protocol_unsupported', {
    detail: `the agent speaks protocol ${range(agent)}, the server ${range(server)}`,
    remedy: `Upgrade ${older}. The agent goes on enforcing what it holds.`,
    extra: { ...server },
  })
}

function refusal({ kind }: Exclude<JoinResult, { kind: 'joined' }>, cluster: string): AppError {
  if (kind === 'name_taken')
    return new AppError('join_name_taken', { doing: 'join', detail: `"${cluster}" has joined already with another key` })
  return new AppError(`join_${kind}`, { doing: 'join' })
}
