// Credentials of agents: one key for each cluster, made by its agent when it joined. They are revoked by `spec.revoked`
// of the Cluster.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { FLEET } from '../../shared/model/resources.ts'
import { agentCredentialSchema } from '../../shared/model/sign-in.ts'
import { listOf } from '../../shared/model/views.ts'
import { agentIdSchema } from '../../shared/runtime/ids.ts'
import { fingerprint } from '../../shared/runtime/keys.ts'
import { answers, fails } from './declared.ts'
import type { AdminDeps } from './deps.ts'
import { notFound } from './problem.ts'
import { pageOf, pageQuery } from './query.ts'

export function agentCredentialRoutes({ store, clock, actions }: Pick<AdminDeps, 'store' | 'clock' | 'actions'>) {
  return new Elysia({ tags: ['access'] })
    .get(
      '/agents',
      async ({ query }) => {
        const { items: shown, ...page } = pageOf(await store.listAgents(), query, ({ clusterName }) => clusterName)
        const clusters = await store.findClusters({ ids: shown.map(({ clusterId }) => clusterId) })
        const seenMs = new Map(clusters.map(({ clusterId, lastSeenMs }) => [clusterId, lastSeenMs]))
        const items = shown.map(({ agentId, clusterId, clusterName, publicKey, recipient, rotateMs, incarnation, revoked, joinedMs }) => ({
          ...{ id: agentId, cluster: clusterName, fingerprint: fingerprint(publicKey), incarnation, joinedMs },
          ...{ recipient: fingerprint(recipient), rotating: rotateMs !== undefined },
          lastUsedMs: seenMs.get(clusterId) ?? null,
          state: revoked ? 'revoked' : 'valid',
        }))
        return { items, ...page }
      },
      {
        query: pageQuery,
        detail: { summary: 'List the credentials of agents', responses: answers({ 200: listOf(agentCredentialSchema) }) },
      },
    )
    .post(
      '/agents/:id/rotate-recipient',
      async ({ params: { id }, set }) => {
        const agent = await store.agent(id)
        if (agent === null || !(await store.askForRecipient(agent.clusterId, clock.nowMs())))
          throw notFound(`agent ${id}`, 'skerry token list --agents')
        actions.onChanged([{ kind: 'Cluster', project: FLEET, name: agent.clusterName, agentOnly: true }])
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
