// POST session: a key becomes a short token. Any request without a valid session is answered 401 `session_required`
// with a `nonce`; signing it works after any time offline and with any clock, because only the server's clock is asked.
import { z } from 'zod'
import { agentIdSchema, clusterIdSchema } from '../runtime/ids.ts'
import { publicKeySchema, signatureSchema } from '../runtime/signatures.ts'
import { keyLinksSchema, keyRevocationSchema } from './key-links.ts'
import { INCARNATION_MAX } from './status.ts'

/** How far a restored server may lag behind what an agent holds, and how far one answer may raise it. */
export const INCARNATION_LEAD_MAX = 100
/** `reason` of the refusal of an incarnation that is further ahead: the agent asks for the next one. */
export const INCARNATION_AHEAD = 'incarnation_ahead'

export const nonceSchema = z
  .string()
  .min(16)
  .max(128)
  .regex(/^[A-Za-z0-9_.-]+$/)

/** 128 random bits, base64url without padding. */
export const challengeSchema = z.string().regex(/^[A-Za-z0-9_-]{22}$/)

export const sessionRequestSchema = z.object({
  agentId: agentIdSchema,
  /** Null if the agent's disk was lost and it asks for the next incarnation. */
  incarnation: z.number().int().positive().nullable(),
  /** Absent at the first try; the 401 brings one. */
  nonce: nonceSchema.optional(),
  /** Ed25519 over `sessionProofBytes`; absent with the nonce. */
  signature: signatureSchema.optional(),
  /** Drawn for each session request; a statement of removal is signed over it (SE8). Absent means an older agent. */
  challenge: challengeSchema.optional(),
  /** SL10: the recipient key of the agent, because the server stated another one. `signature`: Ed25519 over
   *  `recipientBytes`. */
  recipient: z.object({ key: publicKeySchema, signature: signatureSchema }).optional(),
})
export type SessionRequest = z.infer<typeof sessionRequestSchema>

export const sessionAnswerSchema = z.object({
  /** Opaque, 43 characters, sent as `authorization: Bearer`. */
  token: z
    .string()
    .max(200)
    .regex(/^[A-Za-z0-9_.-]+$/),
  clusterId: clusterIdSchema,
  incarnation: z.number().int().positive().max(INCARNATION_MAX),
  /** The agent requests another one when half of it has passed. */
  expiresInMs: z.number().int().positive(),
  /** For display of skew only. */
  serverTimeMs: z.number().int(),
  /** Oldest first; absent while the server's first key is in use. The agent pins what follows from its keys before it
   *  checks `signature` (RP7). */
  keyLinks: keyLinksSchema.optional(),
  /** Absent means that no key is revoked. The agent drops what it takes back before it checks `signature` (RP9). */
  keyRevocation: keyRevocationSchema.optional(),
  /** SL10: the recipient key to which this server seals rows. Absent means an earlier server. */
  recipient: z
    .object({
      fingerprint: z.string().regex(/^[0-9a-f]{32}$/),
      /** A person asked for another key in place of this one. */
      rotate: z.boolean(),
      /** Ed25519 over `recipientStatementBytes`, by the key that signs the answer. */
      signature: signatureSchema,
    })
    .optional(),
  /** Ed25519 over `sessionAnswerBytes` by a key that the agent pinned: what it says of the incarnation is kept for
   *  good. */
  signature: signatureSchema,
})
export type SessionAnswer = z.infer<typeof sessionAnswerSchema>

export const sessionProofBytes = (agentId: string, incarnation: number | null, nonce: string): Uint8Array =>
  new TextEncoder().encode(['skerry-session-v1', agentId, incarnation ?? 'new', nonce].join('\n'))

/** The bytes of the answer that the server signs; the nonce binds it to one session. */
export const sessionAnswerBytes = (
  { token, clusterId, incarnation }: Pick<SessionAnswer, 'token' | 'clusterId' | 'incarnation'>,
  nonce: string,
): Uint8Array => new TextEncoder().encode(['skerry-session-answer-v1', token, clusterId, incarnation, nonce].join('\n'))

/** Bytes that an agent signs for its recipient key; the nonce limits them to one session. */
export const recipientBytes = (agentId: string, nonce: string, key: string): Uint8Array =>
  new TextEncoder().encode(['skerry-recipient-v1', agentId, nonce, key].join('\n'))

export const recipientStatementBytes = (
  agentId: string,
  nonce: string,
  { fingerprint, rotate }: Pick<NonNullable<SessionAnswer['recipient']>, 'fingerprint' | 'rotate'>,
): Uint8Array =>
  new TextEncoder().encode(['skerry-recipient-statement-v1', agentId, nonce, fingerprint, rotate ? 'rotate' : 'keep'].join('\n'))
