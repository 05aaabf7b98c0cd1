// A key becomes a session by signing the server's nonce. One attempt at a time, renewed before its end, and thrown away
// when the server says so. Its answer also tells the keys that the server signs with by now (RP7).
import type { z } from 'zod'
import { followLinks, KEY_LINKS_MAX, type KeyLink, withoutRevoked } from '../../shared/protocol/key-links.ts'
import { isRemovalOf } from '../../shared/protocol/removal.ts'
import { JOIN_BODY_BYTES_MAX, ROUTES } from '../../shared/protocol/routes.ts'
import {
  INCARNATION_AHEAD,
  INCARNATION_LEAD_MAX,
  nonceSchema,
  recipientBytes,
  recipientStatementBytes,
  type SessionAnswer,
  sessionAnswerBytes,
  sessionAnswerSchema,
  sessionProofBytes,
} from '../../shared/protocol/session.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { fingerprint, signBytes, verifyBytes } from '../../shared/runtime/keys.ts'
import type { AgentState, Identity } from '../state/agent-state.ts'
import type { AgentKeys } from './agent-keys.ts'
import { anotherAnswered } from './link-failure.ts'
import { parseJson, type ServerAnswer, type ServerCall, type ServerClient } from './server-client.ts'

export const CALL_TIMEOUT_MS = 30_000

export interface SessionKeeper {
  /** A call with a session; one that the server no longer takes is replaced once. */
  call(call: Omit<ServerCall, 'token'>): Promise<ServerAnswer>
  /** PU1: for an agent that may have given out revs it does not remember. */
  takeNextIncarnation(signal: AbortSignal): Promise<void>
  /** RP7: a new session, for the keys that it may tell of. True: there were some that were not pinned. */
  renewKeys(signal: AbortSignal): Promise<boolean>
}

export interface SessionDeps {
  client: ServerClient
  keys: AgentKeys
  /** SL11: makes another recipient key in place of that of `keys`. */
  rotateRecipient?(): void
  /** SL10: the server took the recipient key of `keys` in place of another. */
  onSealedAnew?(): void
  /** SL15: the fingerprint to which the server seals although this agent announced its own. Null means that it is this
   *  agent's. */
  onRecipient?(other: string | null): void
  state: Pick<AgentState, 'identity' | 'setIdentity' | 'wantNextIncarnation' | 'wantsNextIncarnation' | 'removal' | 'setRemoval'>
  clock: Clock
  randomBytes(count: number): Uint8Array
  /** CM9: the server stated with its signature that it removed this cluster, or opened a session after it had. */
  onRemoved?(isRemoved: boolean): void
  /** Part of its life after which a session is renewed; late where bytes are dear. */
  renewAfter?: number
}

export function createSessionKeeper({
  client,
  keys,
  state,
  clock,
  randomBytes,
  onRemoved = () => {},
  renewAfter = 0.5,
  rotateRecipient,
  onSealedAnew,
  onRecipient,
}: SessionDeps): SessionKeeper {
  let held: { token: string; renewAtMs: number } | null = null
  let opening: Promise<string> | null = null

  const open = async (signal: AbortSignal, given: string | null = null): Promise<string> => {
    const identity = state.identity()
    if (identity === null) throw new AppError('cluster_unknown', { doing: 'open a session', detail: 'this agent has not joined' })
    const own = identity.incarnation
    const forgetful = state.wantsNextIncarnation()
    const pin: SessionAsk['pin'] = (pins) => state.setIdentity({ ...(state.identity() ?? identity), ...pins })
    const challenge = Buffer.from(randomBytes(16)).toString('base64url')
    const ask = (incarnation: number | null, nonce: string | null, announce = false) =>
      openSession(client, keys, { ...(state.identity() ?? identity), incarnation }, { nonce, challenge, pin, announce, signal })
    const { answer: first, ahead } = await ask(forgetful ? null : own, given).then(
      (answer) => ({ answer, ahead: false }),
      async (error: unknown) => {
        if (!isTooFarAhead(error)) throw removed({ ...identity, challenge }, error)
        return { answer: await ask(null, null), ahead: true }
      },
    )
    if (first.recipient?.rotate && isOwn(first)) rotateRecipient?.()
    const answer = first.recipient === undefined || isOwn(first) ? first : await ask(first.incarnation, null, true)
    if (answer !== first && isOwn(answer)) onSealedAnew?.()
    if (answer.recipient !== undefined) onRecipient?.(isOwn(answer) ? null : answer.recipient.fingerprint)
    const good = answer.incarnation === own ? !forgetful : mayFollow(own, answer.incarnation, ahead)
    if (!good) throw implausible(own, answer.incarnation)
    if (answer.incarnation !== own) state.setIdentity({ ...(state.identity() ?? identity), incarnation: answer.incarnation })
    if (state.removal() !== null) {
      state.setRemoval(null)
      onRemoved(false)
    }
    held = { token: answer.token, renewAtMs: clock.monotonicMs() + answer.expiresInMs * renewAfter }
    return answer.token
  }
  const isOwn = ({ recipient }: SessionAnswer): boolean => recipient?.fingerprint === fingerprint(keys.recipient.publicKey)
  /** CM9: a bare refusal is anybody's word. */
  const removed = (identity: Identity & { challenge: string }, error: unknown): unknown => {
    if (!(error instanceof AppError) || error.code !== 'cluster_unknown') return error
    if (!isRemovalOf(error.data.extra?.['removal'], identity)) return error
    if (state.removal() === null) {
      state.setRemoval({ clusterId: identity.clusterId, atMs: clock.nowMs() })
      onRemoved(true)
    }
    return new AppError('cluster_removed', { doing: 'open a session', detail: error.data.detail ?? '' })
  }
  /** CM9: the server explains an unknown agent only in answer to a session request. */
  const explain = async (error: AppError, signal: AbortSignal): Promise<void> => {
    held = null
    const reason: unknown = await openOnce(signal, null).catch((failure: unknown) => failure)
    throw reason instanceof AppError && reason.code === 'cluster_removed' ? reason : error
  }
  const openOnce = (signal: AbortSignal, nonce: string | null): Promise<string> => {
    opening ??= open(signal, nonce).finally(() => {
      opening = null
    })
    return opening
  }
  const token = (signal: AbortSignal, nonce: string | null = null): Promise<string> =>
    held !== null && clock.monotonicMs() < held.renewAtMs ? Promise.resolve(held.token) : openOnce(signal, nonce)

  return {
    async takeNextIncarnation(signal) {
      while (opening !== null) await opening.catch(() => {})
      state.wantNextIncarnation()
      await openOnce(signal, null)
    },
    async renewKeys(signal) {
      const newest = () => state.identity()?.serverKeys.join()
      const before = newest()
      held = null
      await openOnce(signal, null)
      return newest() !== before
    },
    async call(call) {
      const used = await token(call.signal)
      try {
        return await client.call({ ...call, token: used })
      } catch (error) {
        // Superseded by this agent itself: another call takes the next incarnation while this one runs, and the server
        // may answer here before it answers there.
        if (error instanceof AppError && error.code === 'superseded') await opening?.catch(() => {})
        const replaced = error instanceof AppError && error.code === 'superseded' && held !== null && held.token !== used
        if (error instanceof AppError && error.code === 'cluster_unknown') await explain(error, call.signal)
        if (!replaced && !(error instanceof AppError && error.code === 'session_required')) throw error
        if (held?.token === used) held = null
        // A refusal brings a nonce with it: one request fewer.
        return client.call({ ...call, token: await token(call.signal, replaced ? null : nonceIn(error)) })
      }
    },
  }
}

/** SE5, SE6: an incarnation is kept for good, so one answer moves it by little, and back only where the server must
 *  have refused it as too far ahead. */
export function mayFollow(own: number, granted: number, ahead = false): boolean {
  if (granted < own) return ahead && granted <= own - INCARNATION_LEAD_MAX
  return granted <= own + INCARNATION_LEAD_MAX
}

export const implausible = (own: number, granted: number): AppError =>
  new AppError('unavailable', { doing: 'open a session', detail: `incarnation ${granted} cannot follow ${own}` })

const isTooFarAhead = (error: unknown): boolean => error instanceof AppError && error.data.extra?.['reason'] === INCARNATION_AHEAD

export interface SessionAsk {
  /** From a refusal. Null means that it is asked for. */
  nonce: string | null
  /** SE8: null means that no statement of removal is of use. */
  challenge: string | null
  /** SL10: the server seals to another recipient key than that of this agent. */
  announce?: boolean
  /** Called with new keys of the server that follow from the pinned ones, if one of those signed the answer. */
  pin(pins: Required<Pick<Identity, 'serverKeys' | 'keyLinks'>>): void
  signal: AbortSignal
}

/** `incarnation` null: requests the next one, because the revs that were given out before are unknown. */
export async function openSession(
  client: ServerClient,
  keys: AgentKeys,
  { agentId, clusterId, serverKeys, keyLinks: known = [], incarnation }: Omit<Identity, 'incarnation'> & { incarnation: number | null },
  { nonce: given, challenge, pin, announce = false, signal }: SessionAsk,
): Promise<SessionAnswer> {
  const call = {
    doing: 'open a session',
    method: 'POST',
    path: ROUTES.session,
    answerBytesMax: JOIN_BODY_BYTES_MAX,
    timeoutMs: CALL_TIMEOUT_MS,
    signal,
  } as const
  const who = { agentId, incarnation, ...(challenge === null ? {} : { challenge }) }
  const asked = given ?? (await client.call({ ...call, json: who }).then(() => null, nonceOf))
  if (asked === null) throw new AppError('unavailable', { doing: call.doing, detail: 'the server did not request a proof' })
  const attempt = (nonce: string) => {
    const signature = signBytes(keys.signing.privateKey, sessionProofBytes(agentId, incarnation, nonce))
    const key = keys.recipient.publicKey
    const recipient = { key, signature: signBytes(keys.signing.privateKey, recipientBytes(agentId, nonce, key)) }
    return client.call({ ...call, json: { ...who, nonce, signature, ...(announce ? { recipient } : {}) } })
  }
  // A nonce from a refusal may have aged; the answer then brings a fresh one.
  let nonce = asked
  const body = await attempt(nonce).catch((error: unknown) => {
    if (given === null) throw error
    nonce = nonceOf(error)
    return attempt(nonce)
  })
  const answer = parseAnswer(body, sessionAnswerSchema, call.doing)
  const links = firstLinks([...known, ...(answer.keyLinks ?? [])])
  const trusted = withoutRevoked(keysAfter(serverKeys, answer.keyLinks ?? []), links, answer.keyRevocation)
  const signed = sessionAnswerBytes(answer, nonce)
  if (!trusted.some((key) => verifyBytes(key, signed, answer.signature)))
    throw new AppError('server_key_mismatch', {
      doing: call.doing,
      detail: 'the answer is not signed by a key of the server that it joined',
    })
  const stated = answer.recipient
  if (stated !== undefined && !trusted.some((key) => verifyBytes(key, recipientStatementBytes(agentId, nonce, stated), stated.signature)))
    throw new AppError('server_key_mismatch', { doing: call.doing, detail: 'the recipient key is not stated by the server that it joined' })
  if (answer.clusterId !== clusterId)
    throw new AppError('cluster_unknown', { detail: `the server identifies the agent as ${answer.clusterId}` })
  if (trusted.join() !== serverKeys.join()) pin({ serverKeys: trusted, keyLinks: links })
  return answer
}

/** RP7: pinned keys and those that follow from them; the newest are kept, as many as a server remembers. */
export function keysAfter(pinned: readonly string[], links: readonly KeyLink[]): string[] {
  return followLinks(pinned, links).slice(-(KEY_LINKS_MAX + 1))
}

/**
 * RP9: for each key the link that arrived first, as many as a server remembers. A later link may come from a thief of
 * that key.
 */
const firstLinks = (links: readonly KeyLink[]): KeyLink[] =>
  links.filter(({ by }, index) => links.findIndex((other) => other.by === by) === index).slice(-KEY_LINKS_MAX)

function nonceIn(error: unknown): string | null {
  const nonce = error instanceof AppError && error.code === 'session_required' ? nonceSchema.safeParse(error.data.extra?.['nonce']) : null
  return nonce?.success ? nonce.data : null
}

function nonceOf(error: unknown): string {
  const nonce = nonceIn(error)
  if (nonce === null) throw error
  return nonce
}

export function parseAnswer<T>(answer: ServerAnswer, schema: z.ZodType<T>, doing: string): T {
  const json = parseJson(answer.body)
  if (json === null) throw new AppError('server_unreachable', { doing, ...anotherAnswered })
  const parsed = schema.safeParse(json)
  if (parsed.success) return parsed.data
  throw new AppError('unavailable', { doing, detail: 'the answer does not match the protocol' })
}
