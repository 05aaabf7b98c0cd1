// The server's statement that it removed a cluster. It comes with the refusal of a session (`cluster_unknown`, member
// `removal`) and ends enforcement, so it counts only with a signature by a key that the agent pinned: an answer of a
// proxy, another server or a restored one never does. It names agent and registration, which are drawn at each join,
// and the challenge of its request. So it proves nothing about a later registration or a later request, when a restored
// server may know the cluster again. A session that the server opens revokes it. An agent that sends no challenge gets
// version 1, without one; other agents do not accept that.
import { z } from 'zod'
import { clusterIdSchema } from '../runtime/ids.ts'
import { verifyBytes } from '../runtime/keys.ts'
import { signatureSchema } from '../runtime/signatures.ts'
import { followLinks, keyLinksSchema } from './key-links.ts'

export const removalSchema = z.object({
  clusterId: clusterIdSchema,
  /** Oldest first; absent while the server's first key is in use (RP7). */
  keyLinks: keyLinksSchema.optional(),
  /** Ed25519 over `removalBytes`. */
  signature: signatureSchema,
})
export type RemovalStatement = z.infer<typeof removalSchema>

/** `challenge` null: version 1. */
export const removalBytes = (agentId: string, clusterId: string, challenge: string | null): Uint8Array =>
  new TextEncoder().encode(
    (challenge === null ? ['skerry-removal-v1', agentId, clusterId] : ['skerry-removal-v2', agentId, clusterId, challenge]).join('\n'),
  )

/** CM9: true only for a statement about this very registration and request, signed by a pinned key or one that follows
 *  from it. */
export function isRemovalOf(
  given: unknown,
  own: { agentId: string; clusterId: string; serverKeys: readonly string[]; challenge: string | null },
): boolean {
  const read = removalSchema.safeParse(given)
  if (!read.success || read.data.clusterId !== own.clusterId) return false
  const bytes = removalBytes(own.agentId, own.clusterId, own.challenge)
  return followLinks(own.serverKeys, read.data.keyLinks ?? []).some((key) => verifyBytes(key, bytes, read.data.signature))
}

/** CM8: former registrations that a join answer names, signed by themselves: an answer without them stays as it was. */
export const formerClustersBytes = (clusterId: string, former: readonly string[]): Uint8Array =>
  new TextEncoder().encode(['skerry-former-clusters-v1', clusterId, ...former].join('\n'))
