// Sessions: a key becomes a short token by signing a nonce. Both are stateless under the server's MAC key. Only the
// server's clock counts, so an agent with any clock, after any time offline, gets a session. Facts that may change
// under a valid token (revocation, a newer incarnation, a removed cluster) are read at every request.
import { timingSafeEqual } from 'node:crypto'
import { type RemovalStatement, removalBytes } from '../../shared/protocol/removal.ts'
import {
  INCARNATION_AHEAD,
  INCARNATION_LEAD_MAX,
  recipientBytes,
  recipientStatementBytes,
  type SessionAnswer,
  type SessionRequest,
  sessionAnswerBytes,
  sessionProofBytes,
} from '../../shared/protocol/session.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { type AgentId, agentIdSchema } from '../../shared/runtime/ids.ts'
import { fingerprint, verifyBytes } from '../../shared/runtime/keys.ts'
import { fleetEvent } from '../fleet/fleet-event.ts'
import type { AgentRecord } from '../fleet/records.ts'
import { warning } from '../messages/event-messages.ts'
import type { Store } from '../store/store.ts'
import type { AgentIndex } from './agent-index.ts'
import { keyLinksMember } from './join.ts'
import type { ServerKeys } from './server-keys.ts'

/** Long, so that a poll is all that an idle agent costs: what may change meanwhile is looked up at every request. */
export const SESSION_MS = 12 * 60 * 60_000
export const NONCE_MS = 60_000
/** Nonces that were used and are not yet too old; past it new sessions wait. Only a valid signature uses one up. */
const NONCES_USED_MAX = 100_000
/** SE9: of those that one agent used. It opens one session in twelve hours, and some more while its link is cut again
 *  and again. */
export const NONCES_OF_ONE_MAX = 100

// token: agent id 8 bytes · incarnation 4 · expiry in seconds 4 · MAC 16. nonce: made at, ms 8 · random 8 · MAC 16.
// Both are 43 characters.
const MAC_AT = 16
/** Tokens that were unsealed before: a poll then costs no MAC. */
const CLAIMS_MAX = 20_000
const SEALED_BYTES = 32

export interface Sessions {
  /** For the 401 of a caller without a session. */
  nonce(): string
  /** Throws `session_required` without a good nonce and signature, else what keeps this agent out. `turn` is awaited
   *  before anything is verified. */
  open(request: SessionRequest, turn?: () => Promise<void> | undefined): Promise<SessionAnswer>
  /** The caller of a request, or the AppError that it shall be answered with. */
  authorize(authorization: string | null): AgentRecord
}

/** The content of a token, which never changes. */
interface Claim {
  agentId: AgentId
  incarnation: number
  untilMs: number
}

export interface SessionDeps {
  keys: Pick<ServerKeys, 'mac' | 'sign' | 'fingerprint' | 'links' | 'revocation' | 'generation'>
  agents: AgentIndex
  store: Pick<Store, 'raiseIncarnation' | 'removedCluster' | 'changeRecipient'>
  clock: Clock
  randomBytes(count: number): Uint8Array
  /** Random bytes of this process alone: only an earlier process knew which of its nonces were used. Default: none. */
  salt?: Uint8Array
  /** Default NONCES_USED_MAX. */
  usedMax?: number
  /** An agent that is not known asked for a session, or showed one that it had. */
  onUnknown?(agentId: AgentId): void
}

export function createSessions(deps: SessionDeps): Sessions {
  const { keys, agents, store, clock, randomBytes, onUnknown, salt = new Uint8Array(), usedMax = NONCES_USED_MAX } = deps
  const usedUntilMs = new Map<string, { agentId: AgentId; untilMs: number }>()
  const usedBy = new Map<AgentId, number>()

  // A session depends on the keys of its time: after a rotation or a revocation each agent opens a new one and learns
  // of the change (RP7, RP9).
  const contextOf = () => Buffer.concat([Buffer.from(keys.fingerprint, 'hex'), Buffer.from(keys.revocation?.oldest ?? '')])
  const macOf = (purpose: 'session' | 'nonce', body: Buffer) =>
    keys.mac(purpose, Buffer.concat([purpose === 'session' ? contextOf() : salt, body]))
  const seal = (purpose: 'session' | 'nonce', body: Buffer) => Buffer.concat([body, macOf(purpose, body)]).toString('base64url')
  const unseal = (purpose: 'session' | 'nonce', text: string): Buffer | null => {
    const bytes = Buffer.from(text, 'base64url')
    if (bytes.length !== SEALED_BYTES || bytes.toString('base64url') !== text) return null // another spelling is another nonce
    const body = bytes.subarray(0, MAC_AT)
    return timingSafeEqual(macOf(purpose, body), bytes.subarray(MAC_AT)) ? body : null
  }

  const nonce = () => {
    const body = Buffer.alloc(MAC_AT)
    body.writeBigUInt64BE(BigInt(clock.nowMs()), 0)
    body.set(randomBytes(8), 8)
    return seal('nonce', body)
  }
  const required = (detail: string) => new AppError('session_required', { doing: 'check the session', detail, extra: { nonce: nonce() } })
  const fresh = (text: string): boolean => {
    const body = unseal('nonce', text)
    if (body === null || usedUntilMs.has(text)) return false
    const ageMs = clock.nowMs() - Number(body.readBigUInt64BE(0))
    return ageMs >= 0 && ageMs < NONCE_MS
  }
  const forgetOld = () => {
    const now = clock.nowMs()
    for (const [used, { agentId, untilMs }] of usedUntilMs) {
      // In order of time; what lies further ahead is from before the clock was set back, and fresh no more.
      if (untilMs > now && untilMs <= now + NONCE_MS) break
      usedUntilMs.delete(used)
      const left = (usedBy.get(agentId) ?? 0) - 1
      if (left > 0) usedBy.set(agentId, left)
      else usedBy.delete(agentId)
    }
  }
  const refuseMore = (agentId: AgentId) => {
    forgetOld()
    if (usedUntilMs.size >= usedMax || (usedBy.get(agentId) ?? 0) >= NONCES_OF_ONE_MAX)
      throw new AppError('too_many_requests', { doing: 'open a session', retryAfterMs: NONCE_MS })
  }
  const useUp = (text: string, agentId: AgentId) => {
    refuseMore(agentId)
    usedUntilMs.set(text, { agentId, untilMs: clock.nowMs() + NONCE_MS })
    usedBy.set(agentId, (usedBy.get(agentId) ?? 0) + 1)
  }

  let claims = new Map<string, Claim>()
  let claimsUnder = ''
  const claimOf = (authorization: string): Claim | null => {
    if (claimsUnder !== keys.generation) {
      claims = new Map()
      claimsUnder = keys.generation
    }
    const known = claims.get(authorization)
    if (known !== undefined) return known
    const token = /^Bearer ([A-Za-z0-9_-]+)$/.exec(authorization)?.[1]
    const body = token === undefined ? null : unseal('session', token)
    if (body === null) return null
    const agentId = agentIdSchema.parse(`a-${body.subarray(0, 8).toString('hex')}`)
    const claim = { agentId, incarnation: body.readUInt32BE(8), untilMs: body.readUInt32BE(12) * 1000 }
    for (const oldest of claims.keys()) {
      if (claims.size < CLAIMS_MAX) break
      claims.delete(oldest)
    }
    claims.set(authorization, claim)
    return claim
  }

  const find = (agentId: AgentId): AgentRecord | null => {
    const agent = agents.agent(agentId)
    if (agent === null) onUnknown?.(agentId)
    return agent
  }

  return {
    nonce,
    async open({ agentId, incarnation, nonce: given, signature, challenge = null, recipient: announced }, turn) {
      const known = find(agentId)
      if (known === null) throw await removedError(agentId, challenge, deps)
      admitted(known)
      if (given === undefined || signature === undefined) throw required('sign the nonce')
      const wait = turn?.()
      if (wait !== undefined) await wait // else verify before the next one asks: it is to be told how long this took
      const agent = admitted(find(agentId)) // it may have been revoked meanwhile
      if (!fresh(given)) throw required('the nonce was used before, has expired, or is from another server')
      if (!verifyBytes(agent.publicKey, sessionProofBytes(agentId, incarnation, given), signature)) throw required('wrong signature')
      useUp(given, agentId)
      if (incarnation !== null && incarnation < agent.incarnation) throw superseded(agent)
      if (incarnation !== null && incarnation > agent.incarnation + INCARNATION_LEAD_MAX) {
        throw new AppError('bad_request', {
          doing: 'open a session',
          detail: `incarnation ${incarnation} was never granted`,
          extra: { reason: INCARNATION_AHEAD },
        })
      }
      if (announced !== undefined && !verifyBytes(agent.publicKey, recipientBytes(agentId, given, announced.key), announced.signature))
        throw required('wrong signature of the recipient key')
      const granted = incarnation === agent.incarnation ? incarnation : await raise(agentId, incarnation, agents, store)
      if (announced !== undefined) await takeRecipient(agent, announced.key, deps)
      const { recipient, rotateMs } = find(agentId) ?? agent
      const statement = { fingerprint: fingerprint(recipient), rotate: rotateMs !== undefined }
      const body = Buffer.alloc(MAC_AT)
      body.write(agentId.slice(2), 0, 'hex')
      body.writeUInt32BE(granted, 8)
      body.writeUInt32BE(Math.floor((clock.nowMs() + SESSION_MS) / 1000), 12)
      const answer = { token: seal('session', body), clusterId: agent.clusterId, incarnation: granted }
      return {
        ...answer,
        ...keyLinksMember(keys),
        ...(keys.revocation === undefined ? {} : { keyRevocation: keys.revocation }),
        recipient: { ...statement, signature: keys.sign(recipientStatementBytes(agentId, given, statement)) },
        signature: keys.sign(sessionAnswerBytes(answer, given)),
        expiresInMs: SESSION_MS,
        serverTimeMs: clock.nowMs(),
      }
    },
    authorize(authorization) {
      const claim = claimOf(authorization ?? '')
      if (claim === null) throw required('no session')
      if (claim.untilMs <= clock.nowMs()) throw required('the session has expired')
      const agent = admitted(find(claim.agentId))
      if (claim.incarnation !== agent.incarnation) throw superseded(agent)
      // SL11: the agent learns of the rotation with its next session.
      if (agent.rotateMs !== undefined && claim.untilMs - SESSION_MS < agent.rotateMs) throw required('another recipient key is asked for')
      return agent
    },
  }
}

/** SE8: every caller that knows the id may get it: it says only that a cluster is gone. */
async function removedError(
  agentId: AgentId,
  challenge: string | null,
  { store, keys }: Pick<SessionDeps, 'store' | 'keys'>,
): Promise<AppError> {
  const removed = await store.removedCluster(agentId)
  if (removed === null) return new AppError('cluster_unknown')
  const { clusterId, name } = removed
  const removal: RemovalStatement = {
    clusterId,
    ...keyLinksMember(keys),
    signature: keys.sign(removalBytes(agentId, clusterId, challenge)),
  }
  return new AppError('cluster_unknown', { detail: `cluster ${name} was removed from this server`, extra: { removal } })
}

/** Past what the agent held, too: a server that was restored must not hand out a number again. */
async function raise(agentId: AgentId, held: number | null, agents: AgentIndex, store: SessionDeps['store']): Promise<number> {
  let incarnation = await store.raiseIncarnation(agentId)
  while (held !== null && incarnation <= held) incarnation = await store.raiseIncarnation(agentId)
  await agents.refreshAgent(agentId)
  return incarnation
}

/** SL10: the identity key of the agent vouches for its recipient key. Its rows are sent anew, with their keys wrapped
 *  for the new one. */
async function takeRecipient(
  { agentId, clusterName, recipient: before }: AgentRecord,
  recipient: string,
  { store, agents, clock }: Pick<SessionDeps, 'store' | 'agents' | 'clock'>,
): Promise<void> {
  if (recipient === before) return
  const said = warning('RecipientChanged', { before: fingerprint(before), after: fingerprint(recipient) })
  const event = fleetEvent(clock.nowMs(), said, { cluster: clusterName })
  await store.changeRecipient({ agentId, before, recipient, event })
  await agents.refreshAgent(agentId)
}

function admitted(agent: AgentRecord | null): AgentRecord {
  if (agent === null) throw new AppError('cluster_unknown')
  if (agent.revoked) throw new AppError('revoked', { detail: `the agent of cluster ${agent.clusterName} was revoked` })
  return agent
}

const superseded = (agent: AgentRecord) =>
  new AppError('superseded', { detail: `cluster ${agent.clusterName} has a newer agent with this key` })
