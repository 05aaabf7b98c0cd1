// The caller on whose behalf the server acts: set where a request is authenticated, read where the store commits, and
// carried between by the runtime instead of by arguments. A request ends with its answer. Later work is the server's
// own, with the request as its cause.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { AuditActor } from '../../../shared/model/audit.ts'
import type { Deed } from './audit-log.ts'

export interface Caller {
  actor: AuditActor
  /** Null means that the caller gave no reason. */
  reason: string | null
  /** Address of the caller; null means not known. */
  from: string | null
  requestId: string | null
  /** Event that makes the server act. */
  cause: string | null
  ended: boolean
  /** Entries that were committed on its behalf. */
  entries: number
  /** Refused acts of the request, in their order; empty means that nothing was refused. */
  denials: Deed[]
}

export const SYSTEM: AuditActor = { kind: 'system', id: 'server', name: 'server', verified: true }
export const STRANGER: AuditActor = { kind: 'stranger', id: 'stranger', name: 'stranger', verified: false }

const callers = new AsyncLocalStorage<Caller>()

/** Undefined means that no request and no loop is known. */
export const callerNow = (): Caller | undefined => callers.getStore()

/** Names the caller where callers share something. Tokens and sessions of one name count together. */
export function sharerNow(): string {
  const { kind, provider = '', name } = callers.getStore()?.actor ?? SYSTEM
  return JSON.stringify([kind, provider, name])
}

const newCaller = (actor: AuditActor, known: Partial<Caller> = {}): Caller => ({
  actor,
  reason: null,
  from: null,
  requestId: null,
  cause: null,
  ended: false,
  entries: 0,
  denials: [],
  ...known,
})

/** Until the answer of `act`, entries are the caller's. `identifyCaller` names it once it is known. */
export async function actForRequest<T>(
  request: { requestId: string; from: string | null },
  act: (caller: Caller) => Promise<T>,
): Promise<T> {
  const caller = newCaller(STRANGER, request)
  try {
    return await callers.run(caller, () => act(caller))
  } finally {
    caller.ended = true
  }
}

export function identifyCaller(actor: AuditActor): void {
  const caller = callers.getStore()
  if (caller !== undefined) caller.actor = actor
}

/** Says what a refused request would have done. The entries are written before the refusal is answered. */
export function noteDenial(...deeds: readonly Deed[]): void {
  callers.getStore()?.denials.push(...deeds)
}

/** A reason that came in the body counts where the header has none. */
export function noteReason(reason: string | undefined): void {
  const caller = callers.getStore()
  if (caller !== undefined && reason !== undefined && reason !== '') caller.reason ??= reason
}

/** The server acts by itself. Within a request the entries keep its id, so that a consequence can be followed to its
 *  request. */
export const actAsSystem = <T>(cause: string, act: () => T): T =>
  callers.run(newCaller(SYSTEM, { cause, requestId: callers.getStore()?.requestId ?? null }), act)

/** For commands on the machine of the server, and for agents. */
export const actAs = <T>(actor: AuditActor, known: Partial<Pick<Caller, 'reason' | 'from' | 'requestId' | 'cause'>>, act: () => T): T =>
  callers.run(newCaller(actor, known), act)
