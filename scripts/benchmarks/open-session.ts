// The session of an agent whose keys are at hand, for simulated agents.
import { ROUTES } from '../../shared/protocol/routes.ts'
import { sessionAnswerSchema, sessionProofBytes } from '../../shared/protocol/session.ts'
import { signBytes } from '../../shared/runtime/keys.ts'

export interface SessionOf {
  agentId: string
  incarnation: number
  privateKey: string
}

/** The session token. */
export async function openSession(serverUrl: string, { agentId, incarnation, privateKey }: SessionOf): Promise<string> {
  const post = (body: object) =>
    fetch(serverUrl + ROUTES.session, { method: 'POST', body: JSON.stringify({ agentId, incarnation, ...body }) })
  const { nonce } = (await (await post({})).json()) as { nonce: string }
  const response = await post({ nonce, signature: signBytes(privateKey, sessionProofBytes(agentId, incarnation, nonce)) })
  if (!response.ok) throw new Error(`session: HTTP ${response.status} ${await response.text()}`)
  return sessionAnswerSchema.parse(await response.json()).token
}
