// A new agent proves that it has a join token and that it holds the key it brings; from then on its identity is that
// key.

import {
  type JoinAnswer,
  type JoinRequest,
  joinAnswerBytes,
  joinBytes,
  joinProofBytes,
  joinTokenHash,
  joinTokenProof,
} from '../../shared/protocol/join.ts'
import type { KeyLink } from '../../shared/protocol/key-links.ts'
import { formerClustersBytes } from '../../shared/protocol/removal.ts'
import { MIN_SUPPORTED_PROTOCOL_VERSION, PROTOCOL_VERSION } from '../../shared/protocol/version.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { agentIdSchema, clusterIdSchema } from '../../shared/runtime/ids.ts'
import { equalSecrets, verifyBytes } from '../../shared/runtime/keys.ts'
import type { Logger } from '../../shared/runtime/logger.ts'
import { fleetEvent } from '../fleet/fleet-event.ts'
import type { JoinResult } from '../fleet/records.ts'
import { news } from '../messages/event-messages.ts'
import type { Store } from '../store/store.ts'
import type { AgentIndex } from './agent-index.ts'
import type { ServerKeys } from './server-keys.ts'

export interface JoinDeps {
  store: Pick<Store, 'join' | 'joinTokenHash' | 'formerClusters'>
  agents: AgentIndex
  keys: Pick<ServerKeys, 'publicKeys' | 'links' | 'sign'>
  clock: Clock
  randomBytes(count: number): Uint8Array
  log: Logger
  /** That this server serves. */
  versions?: ProtocolRange
  /** A cluster joined, for the first time or with another token: targets must be computed again. */
  onJoined?(clusterName: string): void
}

export async function joinAgent(request: JoinRequest, deps: JoinDeps): Promise<JoinAnswer> {
  const versions = deps.versions ?? OWN_VERSIONS
  checkProtocol(request.protocol, versions)
  const tokenHash = await provenToken(request, deps.store)
  const id = (prefix: string) => `${prefix}-${Buffer.from(deps.randomBytes(8)).toString('hex')}`
  const nowMs = deps.clock.nowMs()
  const result = await deps.store.join({
    tokenHash,
    clusterName: request.cluster,
    publicKey: request.publicKey,
    recipient: request.recipient,
    clusterUid: request.clusterUid,
    nowMs,
    clusterId: clusterIdSchema.parse(id('c')),
    agentId: agentIdSchema.parse(id('a')),
    event: fleetEvent(nowMs, news('ClusterJoined'), { cluster: request.cluster }),
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

/** The hash of the token that the request proves. Throws `join_token_unknown` and `join_proof_invalid`. */
async function provenToken(request: JoinRequest, store: Pick<Store, 'joinTokenHash'>): Promise<string> {
  const { token, tokenId, tokenProof, publicKey, recipient, cluster, proof } = request
  const isOld = token !== undefined
  if (isOld ? tokenId !== undefined || tokenProof !== undefined : tokenId === undefined || tokenProof === undefined)
    throw new AppError('bad_request', { doing: 'join', detail: 'expected tokenId and tokenProof, or token alone' })
  const tokenHash = isOld ? joinTokenHash(token) : await store.joinTokenHash(tokenId ?? '', publicKey)
  if (tokenHash === null) throw new AppError('join_token_unknown', { doing: 'join' })
  const signed = isOld ? joinProofBytes(tokenHash, publicKey, recipient, cluster) : joinBytes(tokenId ?? '', request)
  // A caller with a wrong token learns no more than one with a token that never existed.
  if (!isOld && !equalSecrets(joinTokenProof(tokenHash, signed), tokenProof ?? ''))
    throw new AppError('join_token_unknown', { doing: 'join' })
  if (!verifyBytes(publicKey, signed, proof)) throw new AppError('join_proof_invalid', { doing: 'join' })
  return tokenHash
}

/** RP7: the way from a key that the agent knows to the one that signs; each link carries its own signature. */
export const keyLinksMember = ({ links }: Pick<ServerKeys, 'links'>): { keyLinks?: KeyLink[] } =>
  links.length === 0 ? {} : { keyLinks: [...links] }

export interface ProtocolRange {
  min: number
  max: number
}
/** Versions of this build: from the oldest supported one to its own. */
export const OWN_VERSIONS: ProtocolRange = { min: MIN_SUPPORTED_PROTOCOL_VERSION, max: PROTOCOL_VERSION }

/** PL11: throws when they do not meet. The server's range goes with it, so that an agent that knows several chooses the
 *  greatest of both. */
export function checkProtocol(agent: ProtocolRange, server: ProtocolRange): void {
  if (agent.max >= server.min && agent.min <= server.max) return
  const range = ({ min, max }: ProtocolRange) => (min === max ? String(min) : `${min} to ${max}`)
  const older = agent.max < server.min ? 'the agent' : 'the server'
  throw new AppError('protocol_unsupported', {
    detail: `the agent speaks protocol ${range(agent)}, the server ${range(server)}`,
    remedy: `Upgrade ${older}. The agent keeps enforcing its replica.`,
    extra: { ...server },
  })
}

function refusal({ kind }: Exclude<JoinResult, { kind: 'joined' }>, cluster: string): AppError {
  if (kind === 'name_taken')
    return new AppError('join_name_taken', { doing: 'join', detail: `"${cluster}" already joined with another key` })
  return new AppError(`join_${kind}`, { doing: 'join' })
}
