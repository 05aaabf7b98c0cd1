// The first contact: a join token for an identity. May be repeated at any point: the server answers the same token and
// key the same.
import { sha256Hex } from '../../shared/kube/canonical.ts'
import {
  type JoinAnswer,
  type JoinRequest,
  joinAnswerBytes,
  joinAnswerSchema,
  joinBytes,
  joinTokenHash,
  joinTokenId,
  joinTokenProof,
  parseJoinToken,
} from '../../shared/protocol/join.ts'
import { followLinks, type KeyLink } from '../../shared/protocol/key-links.ts'
import { formerClustersBytes } from '../../shared/protocol/removal.ts'
import { JOIN_BODY_BYTES_MAX, ROUTES } from '../../shared/protocol/routes.ts'
import { MIN_SUPPORTED_PROTOCOL_VERSION, PROTOCOL_VERSION } from '../../shared/protocol/version.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { fingerprint, signBytes, verifyBytes } from '../../shared/runtime/keys.ts'
import type { AgentState, Identity } from '../state/agent-state.ts'
import type { AgentKeys } from './agent-keys.ts'
import type { ServerClient } from './server-client.ts'
import { CALL_TIMEOUT_MS, implausible, mayFollow, openSession, parseAnswer, type SessionAsk } from './session-keeper.ts'

export interface JoinInput {
  /** As printed by the server; null when none was given. */
  joinToken: string | null
  clusterName: string
  /** UID of the kube-system namespace; '' while the API server cannot be asked. */
  clusterUid: string
  agentVersion: string
}

/**
 * The identity to store. It requests a new incarnation, because the agent cannot know whether this disk ever gave out a
 * rev.
 */
export async function joinServer(client: ServerClient, keys: AgentKeys, input: JoinInput, signal: AbortSignal): Promise<Identity> {
  const token = parseJoinToken(input.joinToken ?? '')
  if (token === null) {
    const detail =
      input.joinToken === null ? 'the agent has not joined yet, and no join token is set' : 'the join token does not have the form skj.….…'
    throw new AppError('join_token_unknown', { doing: 'join', detail })
  }
  const answer = await requestJoin(client, joinRequest(keys, input, token.secret), signal)
  checkSigned(answer, token.fingerprint, keys.signing.publicKey)
  if (answer.protocol.max < MIN_SUPPORTED_PROTOCOL_VERSION || answer.protocol.min > PROTOCOL_VERSION) {
    const detail = `the agent speaks protocol ${MIN_SUPPORTED_PROTOCOL_VERSION} to ${PROTOCOL_VERSION}, the server ${answer.protocol.min} to ${answer.protocol.max}`
    throw new AppError('protocol_unsupported', { doing: 'join', detail })
  }
  const { agentId, clusterId } = answer
  let pins: Pick<Identity, 'serverKeys' | 'keyLinks'> = { serverKeys: answer.serverKeys }
  const pin: SessionAsk['pin'] = (newer) => {
    pins = newer
  }
  const asker = { agentId, clusterId, ...pins, incarnation: null }
  const { incarnation } = await openSession(client, keys, asker, { nonce: null, challenge: null, pin, signal })
  if (!mayFollow(answer.incarnation, incarnation)) throw implausible(answer.incarnation, incarnation)
  const former = answer.former?.clusters ?? []
  const isSigned =
    former.length > 0 &&
    pins.serverKeys.some((key) => verifyBytes(key, formerClustersBytes(clusterId, former), answer.former?.signature ?? ''))
  return { clusterId, agentId, ...pins, incarnation, ...(isSigned ? { formerClusters: [...former] } : {}) }
}

/** JN4: the person who passed the token on vouched for one key, and that key for all stored parts of the answer. */
function checkSigned(answer: JoinAnswer, trusted: string, agentKey: string): void {
  const [serverKey] = answer.serverKeys
  if (serverKey === undefined || !vouchedFor(serverKey, trusted, answer.keyLinks ?? []))
    throw new AppError('server_key_mismatch', { doing: 'join' })
  if (!verifyBytes(serverKey, joinAnswerBytes(answer, agentKey), answer.signature))
    throw new AppError('server_key_mismatch', { doing: 'join', detail: 'the answer is not signed by that key' })
}

/** The key of the token, or one to which the server's links lead from it (RP7): a token outlives a rotation. */
function vouchedFor(key: string, trusted: string, links: readonly KeyLink[]): boolean {
  if (fingerprint(key) === trusted) return true
  const root = links.find(({ by }) => fingerprint(by) === trusted)?.by
  return root !== undefined && followLinks([root], links).includes(key)
}

/** JN7: the token stays here. */
export function joinRequest(keys: AgentKeys, input: JoinInput, secret: string): JoinRequest {
  const { publicKey, privateKey } = keys.signing
  const asked = { cluster: input.clusterName, publicKey, recipient: keys.recipient.publicKey, clusterUid: input.clusterUid }
  const tokenHash = joinTokenHash(secret)
  const tokenId = joinTokenId(tokenHash)
  const bytes = joinBytes(tokenId, asked)
  return {
    tokenId,
    tokenProof: joinTokenProof(tokenHash, bytes),
    ...asked,
    agentVersion: input.agentVersion,
    protocol: { min: MIN_SUPPORTED_PROTOCOL_VERSION, max: PROTOCOL_VERSION },
    proof: signBytes(privateKey, bytes),
  }
}

/** A server of version 1 accepts only the plain token, which the agent never sends. */
const JOIN_VERSION_MIN = 2

async function requestJoin(client: ServerClient, json: JoinRequest, signal: AbortSignal): Promise<JoinAnswer> {
  const answer = await client.call({
    doing: 'join',
    method: 'POST',
    path: ROUTES.join,
    json,
    lowestVersion: JOIN_VERSION_MIN,
    answerBytesMax: JOIN_BODY_BYTES_MAX,
    timeoutMs: CALL_TIMEOUT_MS,
    signal,
  })
  return parseAnswer(answer, joinAnswerSchema, 'join')
}

/** CM10: only a token that this registration never used is a person's word that the cluster is to join again. */
export function mayJoinAnew(state: AgentState, joinToken: string | null): boolean {
  if (state.removal() === null || joinToken === null) return false
  const used = state.usedTokens()
  return used.length > 0 && !used.includes(sha256Hex(joinToken))
}
