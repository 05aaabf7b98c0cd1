// POST session: a key becomes a short token. Any request without a valid session is answered 401 `session_required` with a `nonce`; signing it
// works after any time offline and with any clock, because only the server's clock is asked.
import { z } from 'zod'
import { agentIdSchema, clusterIdSchema } from '../model/ids.ts'
import { signatureSchema } from './join.ts'

export const nonceSchema = z
  .string()
  .min(16)
  .max(128)
  .regex(/^[A-Za-z0-9_.-]+$/)

export const sessionRequestSchema = z.object({
  agentId: agentIdSchema,
  /** Null: the agent's disk was lost and it asks for the next incarnation. */
  incarnation: z.number().int().positive().nullable(),
  /** Absent at the first try; the 401 brings one. */
  nonce: nonceSchema.optional(),
  /** Ed25519 over `sessionProofBytes`; absent with the nonce. */
  signature: signatureSchema.optional(),
})
export type SessionRequest = z.infer<typeof sessionRequestSchema>

export const sessionAnswerSchema = z.object({
  /** Opaque, 43 characters, sent as `authorization: Bearer`. */
  token: z
    .string()
    .max(200)
    .regex(/^[A-Za-z0-9_.-]+$/),
  clusterId: clusterIdSchema,
  incarnation: z.number().int().positive(),
  /** The agent asks anew when half of it has passed. */
  expiresInMs: z.number().int().positive(),
  /** For display of skew only. */
  serverTimeMs: z.number().int(),
})
export type SessionAnswer = z.infer<typeof sessionAnswerSchema>

export const sessionProofBytes = (agentId: string, incarnation: number | null, nonce: string): Uint8Array =>
  new TextEncoder().encode(['skerry-session-v1', agentId, incarnation ?? 'new', nonce].join('\n'))
