// Credentials of agents: one key for each cluster, made by its agent when it joined. They are revoked by `spec.revoked` of the Cluster.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { agentIdSchema } from '../../shared/model/ids.ts'
import { FLEET } from '../../shared/model/resources.ts'
import { agentCredentialSchema } from '../../shared/model/sign-in.ts'
import { listOf } from '../../shared/model/views.ts'
import { fingerprint } from '../../shared/runtime/keys.ts'
import { answers, fails } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { notFound } from './problem.ts'
import { continueQuery, decodeContinue, encodeContinue, limitQuery } from './query.ts'

const agentsQuery = z.object({ limit: limitQuery, continue: continueQuery })

export function agentCredentialRoutes({ store, clock, actions }: Pick<AdminDeps, 'store' | 'clock' | 'actions'>) {
  return new Elysia({ tags: ['access'] })
    .get(
      '/agents',
      async ({ query: { limit, continue: token } }) => {
        const after = decodeContinue(token) ?? ''
        const agents = (await store.listAgents())
          .filter(({ clusterName }) => clusterName > after)
          .sort((a, b) => (a.clusterName < b.clusterName ? -1 : 1))
        const shown = agents.slice(0, limit)
        const clusters = await store.findClusters({ ids: shown.map(({ clusterId }) => clusterId) })
        const seenMs = new Map(clusters.map(({ clusterId, lastSeenMs }) => [clusterId, lastSeenMs]))
        const items = shown.map(({ agentId, clusterId, clusterName, publicKey, recipient, rotateMs, incarnation, revoked, joinedMs }) => ({
          ...{ id: agentId, cluster: clusterName, fingerprint: fingerprint(publicKey), incarnation, joinedMs },
          ...{ recipient: fingerprint(recipient), rotating: rotateMs !== undefined },
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
    .post(
      '/agents/:id/rotate-recipient',
      async ({ params: { id }, set }) => {
        const agent = await store.agent(id)
        if (agent === null || !(await store.askForRecipient(agent.clusterId, clock.nowMs())))
          throw notFound(`agent ${id}`, 'skerry token list --agents')
        actions.onChanged([{ kind: 'Cluster', project: FLEET, name: agent.clusterName }])
        set.status = 204
      },
      {
        params: z.object({ id: agentIdSchema }),
        detail: {
          summary: 'Ask an agent for another recipient key; its rows are sealed to the new one when it has made it',
          responses: answers({ 204: null }),
          ...fails(404),
        },
      },
    )
}
