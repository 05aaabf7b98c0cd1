// Credentials of agents: one key for each cluster, made by its agent when it joined. They are revoked by `spec.revoked` of the Cluster.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { agentCredentialSchema } from '../../shared/model/sign-in.ts'
import { listOf } from '../../shared/model/views.ts'
import { fingerprint } from '../../shared/runtime/keys.ts'
import { answers } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { continueQuery, decodeContinue, encodeContinue, limitQuery } from './query.ts'

const agentsQuery = z.object({ limit: limitQuery, continue: continueQuery })

export function agentCredentialRoutes({ store }: Pick<AdminDeps, 'store'>) {
  return new Elysia({ tags: ['access'] }).get(
    '/agents',
    async ({ query: { limit, continue: token } }) => {
      const after = decodeContinue(token) ?? ''
      const agents = (await store.listAgents())
        .filter(({ clusterName }) => clusterName > after)
        .sort((a, b) => (a.clusterName < b.clusterName ? -1 : 1))
      const shown = agents.slice(0, limit)
      const clusters = await store.findClusters({ ids: shown.map(({ clusterId }) => clusterId) })
      const seenMs = new Map(clusters.map(({ clusterId, lastSeenMs }) => [clusterId, lastSeenMs]))
      const items = shown.map(({ agentId, clusterId, clusterName, publicKey, incarnation, revoked, joinedMs }) => ({
        ...{ id: agentId, cluster: clusterName, fingerprint: fingerprint(publicKey), incarnation, joinedMs },
        lastUsedMs: seenMs.get(clusterId) ?? null,
        state: revoked ? 'revoked' : 'valid',
      }))
      return { items, continue: encodeContinue(agents.length > limit ? (shown.at(-1)?.clusterName ?? null) : null) }
    },
    {
      query: agentsQuery,
      detail: { summary: 'List the credentials of agents', responses: answers({ 200: listOf(agentCredentialSchema) }) },
    },
  )
}
