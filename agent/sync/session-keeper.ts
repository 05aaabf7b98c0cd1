// A key becomes a session by signing the server's nonce. One attempt at a time, renewed at half its life, and thrown away when the server says so.
import type { z } from 'zod'
import { AppError } from '../../shared/protocol/error.ts'
import { JOIN_BODY_BYTES_MAX, ROUTES } from '../../shared/protocol/routes.ts'
import {
  INCARNATION_AHEAD,
  INCARNATION_LEAD_MAX,
  nonceSchema,
  type SessionAnswer,
  sessionAnswerBytes,
  sessionAnswerSchema,
  sessionProofBytes,
} from '../../shared/protocol/session.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { signBytes, verifyBytes } from '../../shared/runtime/keys.ts'
import type { AgentState, Identity } from '../state/agent-state.ts'
import type { AgentKeys } from './agent-keys.ts'
import { parseJson, type ServerAnswer, type ServerCall, type ServerClient } from './server-client.ts'

export const CALL_TIMEOUT_MS = 30_000

export interface SessionKeeper {
  /** A call with a session; one that the server no longer takes is replaced once. */
  call(call: Omit<ServerCall, 'token'>): Promise<ServerAnswer>
  /** PU1: for an agent that may have given out revs it does not remember. */
  takeNextIncarnation(signal: AbortSignal): Promise<void>
}

export interface SessionDeps {
  client: ServerClient
  keys: AgentKeys
  state: Pick<AgentState, 'identity' | 'setIdentity' | 'wantNextIncarnation' | 'wantsNextIncarnation'>
  clock: Clock
}

export function createSessionKeeper({ client, keys, state, clock }: SessionDeps): SessionKeeper {
  let held: { token: string; renewAtMs: number } | null = null
  let opening: Promise<string> | null = null

  const open = async (signal: AbortSignal): Promise<string> => {
    const identity = state.identity()
    if (identity === null) throw new AppError('cluster_unknown', { doing: 'open a session', detail: 'this agent has not joined' })
    const own = identity.incarnation
    const forgetful = state.wantsNextIncarnation()
    const { answer, ahead } = await openSession(client, keys, identity, forgetful ? null : own, signal).then(
      (answer) => ({ answer, ahead: false }),
      async (error: unknown) => {
        if (!isTooFarAhead(error)) throw error
        return { answer: await openSession(client, keys, identity, null, signal), ahead: true }
      },
    )
    const good = answer.incarnation === own ? !forgetful : mayFollow(own, answer.incarnation, ahead)
    if (!good) throw implausible(own, answer.incarnation)
    if (answer.incarnation !== identity.incarnation) state.setIdentity({ ...identity, incarnation: answer.incarnation })
    held = { token: answer.token, renewAtMs: clock.nowMs() + answer.expiresInMs / 2 }
    return answer.token
  }
  const token = (signal: AbortSignal): Promise<string> => {
    if (held !== null && clock.nowMs() < held.renewAtMs) return Promise.resolve(held.token)
    opening ??= open(signal).finally(() => {
      opening = null
    })
    return opening
  }

  return {
    async takeNextIncarnation(signal) {
      await opening?.catch(() => {})
      state.wantNextIncarnation()
      await open(signal)
    },
    async call(call) {
      const used = await token(call.signal)
      try {
        return await client.call({ ...call, token: used })
      } catch (error) {
        // Superseded by ourselves: another call took the next incarnation while this one was under way.
        const replaced = error instanceof AppError && error.code === 'superseded' && held !== null && held.token !== used
        if (!replaced && !(error instanceof AppError && error.code === 'session_required')) throw error
        if (held?.token === used) held = null
        return client.call({ ...call, token: await token(call.signal) })
      }
    },
  }
}

/** SE5, SE6: an incarnation is kept for good, so one answer moves it by little, and back only where the server must have refused it as too far ahead. */
export function mayFollow(own: number, granted: number, ahead = false): boolean {
  if (granted < own) return ahead && granted <= own - INCARNATION_LEAD_MAX
  return granted <= own + INCARNATION_LEAD_MAX
}

export const implausible = (own: number, granted: number): AppError =>
  new AppError('unavailable', { doing: 'open a session', detail: `incarnation ${granted} cannot follow ${own}` })

const isTooFarAhead = (error: unknown): boolean => error instanceof AppError && error.data.extra?.['reason'] === INCARNATION_AHEAD

/** Null: asks for the next incarnation, because nothing is known of revs that were given out before. */
export async function openSession(
  client: ServerClient,
  keys: AgentKeys,
  { agentId, clusterId, serverKeys }: Pick<Identity, 'agentId' | 'clusterId' | 'serverKeys'>,
  incarnation: Identity['incarnation'] | null,
  signal: AbortSignal,
): Promise<SessionAnswer> {
  const call = {
    doing: 'open a session',
    method: 'POST',
    path: ROUTES.session,
    answerBytesMax: JOIN_BODY_BYTES_MAX,
    timeoutMs: CALL_TIMEOUT_MS,
    signal,
  } as const
  const nonce = await client.call({ ...call, json: { agentId, incarnation } }).then(
    () => null,
    (error) => nonceOf(error),
  )
  if (nonce === null) throw new AppError('unavailable', { doing: call.doing, detail: 'the server asked for no proof' })
  const signature = signBytes(keys.signing.privateKey, sessionProofBytes(agentId, incarnation, nonce))
  const answer = parseAnswer(
    await client.call({ ...call, json: { agentId, incarnation, nonce, signature } }),
    sessionAnswerSchema,
    call.doing,
  )
  const signed = sessionAnswerBytes(answer, nonce)
  if (!serverKeys.some((key) => verifyBytes(key, signed, answer.signature)))
    throw new AppError('server_key_mismatch', {
      doing: call.doing,
      detail: 'the answer is not signed by a key of the server that it joined',
    })
  if (answer.clusterId !== clusterId) throw new AppError('cluster_unknown', { detail: `the server takes it for ${answer.clusterId}` })
  return answer
}

function nonceOf(error: unknown): string {
  const nonce = error instanceof AppError && error.code === 'session_required' ? nonceSchema.safeParse(error.data.extra?.['nonce']) : null
  if (nonce?.success) return nonce.data
  throw error
}

export function parseAnswer<T>(answer: ServerAnswer, schema: z.ZodType<T>, doing: string): T {
  const parsed = schema.safeParse(parseJson(answer.body))
  if (parsed.success) return parsed.data
  throw new AppError('unavailable', { doing, detail: 'the answer has not the form of the protocol' })
}
