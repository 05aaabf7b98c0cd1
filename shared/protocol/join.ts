// POST join: a new agent proves that it has a join token and that it holds the key it brings. The same token and key
// again give the same answer and use nothing up, so a lost answer is repeated safely. A captured request is worth
// nothing: the token is not in it, and its proofs are for the key that it brings.
import { createHmac } from 'node:crypto'
import { z } from 'zod'
import { sha256Hex } from '../kube/canonical.ts'
import { agentIdSchema, clusterIdSchema, nameSchema } from '../runtime/ids.ts'
import { publicKeySchema, signatureSchema } from '../runtime/signatures.ts'
import { keyLinksSchema } from './key-links.ts'

export const joinRequestSchema = z.object({
  /** Version 1: the secret part of the join token (see `parseJoinToken`). An agent of version 2 never sends it. */
  token: z.string().min(20).max(200).optional(),
  /** Version 2: which token it has (`joinTokenId`), and the proof of it (`joinTokenProof`). */
  tokenId: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .optional(),
  tokenProof: z
    .string()
    .regex(/^[0-9a-f]{64}$/)
    .optional(),
  /** The name that the cluster gets. */
  cluster: nameSchema,
  /** Ed25519; from now on identity is this key. */
  publicKey: publicKeySchema,
  /** X25519; what is sealed to the site will be sealed to it. */
  recipient: publicKeySchema,
  /** UID of the kube-system namespace (RP6). */
  clusterUid: z.string().max(64),
  agentVersion: z.string().max(64),
  protocol: z.object({ min: z.number().int().positive(), max: z.number().int().positive() }),
  /** Ed25519 by `publicKey`, over `joinProofBytes` in version 1, over `joinBytes` in version 2. */
  proof: signatureSchema,
})
export type JoinRequest = z.infer<typeof joinRequestSchema>

export const joinAnswerSchema = z.object({
  clusterId: clusterIdSchema,
  agentId: agentIdSchema,
  /** Grows when the agent's disk is lost; the newer of two agents with one key wins. */
  incarnation: z.number().int().positive(),
  /** The server's signing keys, the one that signs first. Its fingerprint is in the join token, or `keyLinks` lead from
   *  that one to it. The agent pins them once it has checked `signature`. */
  serverKeys: z.array(publicKeySchema).min(1).max(8),
  /** Oldest first; absent while the first key is in use (RP7). */
  keyLinks: keyLinksSchema.optional(),
  protocol: z.object({ min: z.number().int().positive(), max: z.number().int().positive() }),
  /** Removed registrations of the cluster with this kube-system UID, the newest first: the agent takes over what they
   *  marked (CM8). Absent means none is known. */
  former: z.object({ clusters: z.array(clusterIdSchema).min(1).max(16), signature: signatureSchema }).optional(),
  /** Ed25519 over `joinAnswerBytes` by the first of `serverKeys`: without it a proxy could add a key of its own. */
  signature: signatureSchema,
})
export type JoinAnswer = z.infer<typeof joinAnswerSchema>

/** The stored hash of a join token; also the key of the proof that an agent has it. */
export const joinTokenHash = (secret: string): string => sha256Hex(secret)

/** Names a token and gives nothing of it away. */
export const joinTokenId = (tokenHash: string): string => sha256Hex(`skerry-join-token-id\n${tokenHash}`).slice(0, 32)

/** JN7: HMAC-SHA-256 under the token's hash, in hex. */
export const joinTokenProof = (tokenHash: string, bytes: Uint8Array): string =>
  createHmac('sha256', Buffer.from(tokenHash, 'hex')).update(bytes).digest('hex')

/** The bytes that the token proves and the key signs in version 2: every stored part of the request. */
export const joinBytes = (
  tokenId: string,
  { cluster, publicKey, recipient, clusterUid }: Pick<JoinRequest, 'cluster' | 'publicKey' | 'recipient' | 'clusterUid'>,
): Uint8Array => new TextEncoder().encode(['skerry-join-v2', tokenId, publicKey, recipient, cluster, clusterUid].join('\n'))

/** The bytes that the join proof signs in version 1. */
export const joinProofBytes = (tokenHash: string, publicKey: string, recipient: string, cluster: string): Uint8Array =>
  new TextEncoder().encode(['skerry-join-v1', tokenHash, publicKey, recipient, cluster].join('\n'))

/** The bytes of the answer that the server signs, for the agent that holds `publicKey` and for no other. */
export const joinAnswerBytes = (
  { clusterId, agentId, incarnation, serverKeys }: Pick<JoinAnswer, 'clusterId' | 'agentId' | 'incarnation' | 'serverKeys'>,
  publicKey: string,
): Uint8Array => new TextEncoder().encode(['skerry-join-answer-v1', clusterId, agentId, incarnation, publicKey, ...serverKeys].join('\n'))

/** Printed form: `skj.<secret>.<fingerprint of the server's key>`. */
export const joinTokenText = (secret: string, fingerprint: string): string => `skj.${secret}.${fingerprint}`
export function parseJoinToken(text: string): { secret: string; fingerprint: string } | null {
  const match = /^skj\.([A-Za-z0-9_-]{20,200})\.([0-9a-f]{32})$/.exec(text.trim())
  return match?.[1] !== undefined && match[2] !== undefined ? { secret: match[1], fingerprint: match[2] } : null
}
