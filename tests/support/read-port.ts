// All that can be read of a fleet store through methods that it had in schema 2 as well: the fixtures in
// tests/fixtures/store were read with this by the code of that time.

import { RESOURCE_KINDS } from '../../server/fleet/records.ts'
import type { Store } from '../../server/store/store.ts'

const KINDS = ['object', 'service', 'cluster', 'drift'] as const

export async function readPort(store: Store): Promise<unknown> {
  const resources = (await Promise.all(RESOURCE_KINDS.map((kind) => store.listResources(kind, { limit: 1_000 })))).flatMap(
    ({ items }) => items,
  )
  const of = (kind: string) => resources.filter((resource) => resource.kind === kind)
  const services = of('Service').map(({ project, name }) => ({ project, service: name }))
  const clusters = await store.listClusters()
  const each = <T, R>(items: readonly T[], read: (item: T) => Promise<R>): Promise<R[]> => Promise.all(items.map(read))
  return JSON.parse(
    JSON.stringify({
      resources,
      repositories: await each(of('Repository'), ({ project, name }) => store.repositoryState(project, name)),
      renders: await each(services, (id) => store.renderState(id)),
      clusters,
      ordinals: [...(await store.clusterOrdinals())].sort(),
      agents: await store.listAgents(),
      tokens: await store.listJoinTokens(),
      shards: [...(await store.adoptedShards())].sort(),
      desired: await each(clusters, ({ clusterId }) => store.desiredInCluster(clusterId)),
      status: await each(KINDS, (kind) => store.listStatus({ kind })),
      events: await store.listEvents({ limit: 1_000 }),
      restore: await each(clusters, ({ clusterId }) => store.restoreFacts(clusterId)),
      proofs: await store.restoreProofs(),
      open: await store.listConfirmations(),
      confirmations: await each(services, (id) => store.confirmationsOfService(id)),
      apiTokens: await store.countAdminTokens(0),
    }),
  )
}
