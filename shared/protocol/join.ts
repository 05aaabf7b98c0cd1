// POST join: a new agent shows a join token and proves that it holds the key it brings. The same token and key again give the same answer and
// use nothing up, so a lost answer is repeated safely and a captured request is worth nothing without the private key.
import { z } from 'zod'
import { agentIdSchema, clusterIdSchema, nameSchema } from '../model/ids.ts'
import { keyLinksSchema } from './key-links.ts'
import { publicKeySchema, signatureSchema } from './signatures.ts'

export const joinRequestSchema = z.object({
  /** The secret part of the join token (see `parseJoinToken`). */
  token: z.string().min(20).max(200),
  /** What the cluster shall be called. */
  cluster: nameSchema,
  /** Ed25519; from now on identity is this key. */
  publicKey: publicKeySchema,
  /** X25519; what is sealed to the site will be sealed to it. */
  recipient: publicKeySchema,
  /** UID of the kube-system namespace (RP6). */
  clusterUid: z.string().max(64),
  agentVersion: z.string().max(64),
  protocol: z.object({ min: z.number().int().positive(), max: z.number().int().positive() }),
  /** Ed25519 over `joinProofBytes`. */
  proof: signatureSchema,
})
export type JoinRequest = z.infer<typeof joinRequestSchema>

export const joinAnswerSchema = z.object({
  clusterId: clusterIdSchema,
  agentId: agentIdSchema,
  /** Grows when the agent's disk is lost; the newer of two agents with one key wins. */
  incarnation: z.number().int().positive(),
  /** The server's signing keys, the one that signs first. Its fingerprint is in the join token, or `keyLinks` lead from that one to it. The agent pins them once
   *  it has checked `signature`. */
  serverKeys: z.array(publicKeySchema).min(1).max(8),
  /** Oldest first; absent while the first key is in use (RP7). */
  keyLinks: keyLinksSchema.optional(),
  protocol: z.object({ min: z.number().int().positive(), max: z.number().int().positive() }),
  /** Removed registrations of the cluster with this kube-system UID, the newest first: the agent takes over what they marked (CM8). Absent: none is known. */
  former: z.object({ clusters: z.array(clusterIdSchema).min(1).max(16), signature: signatureSchema }).optional(),
  /** Ed25519 over `joinAnswerBytes` by the first of `serverKeys`: without it whoever passes the answer on could add a key of his own. */
  signature: signatureSchema,
})
export type JoinAnswer = z.infer<typeof joinAnswerSchema>

/** What the join proof signs. */
export const joinProofBytes = (tokenHash: string, publicKey: string, recipient: string, cluster: string): Uint8Array =>
  new TextEncoder().encode(['skerry-join-v1', tokenHash, publicKey, recipient, cluster].join('\n'))

/** What the server signs of its answer, for the agent that holds `publicKey` and for no other. */
export const joinAnswerBytes = (
  { clusterId, agentId, incarnation, serverKeys }: Pick<JoinAnswer, 'clusterId' | 'agentId' | 'incarnation' | 'serverKeys'>,
  publicKey: string,
): Uint8Array => new TextEncoder().encode(['skerry-join-answer-v1', clusterId, agentId, incarnation, publicKey, ...serverKeys].join('\n'))

/** Printed form: `skj.<secret>.<fingerprint of the server's key>`; only the secret goes to the server. */
export const joinTokenText = (secret: string, fingerprint: string): string => `skj.${secret}.${fingerprint}`
export function parseJoinToken(text: string): { secret: string; fingerprint: string } | null {
  const match = /^skj\.([A-Za-z0-9_-]{20,200})\.([0-9a-f]{32})$/.exec(text.trim())
  return match?.[1] !== undefined && match[2] !== undefined ? { secret: match[1], fingerprint: match[2] } : null
}
