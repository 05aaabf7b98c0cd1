// The dependencies and dependents of a service.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { dependencyKeys } from '../../shared/model/dependencies.ts'
import { type DependenciesView, dependenciesViewSchema } from '../../shared/model/dependency-views.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { type ServiceStatus, serviceStatusSchema } from '../../shared/model/status.ts'
import { type ClusterId, nameSchema, parseServiceKey, type ServiceId } from '../../shared/runtime/ids.ts'
import { dependencyView } from '../fleet/dependency-view.ts'
import { type Scope, serviceInScope, withoutClusters } from '../fleet/rights.ts'
import { readDependents } from '../store/service-dependencies.ts'
import type { Store } from '../store/store.ts'
import type { AdminDeps } from './deps.ts'
import { clustersWithService } from './sight.ts'
import { keyNotFound } from './write-resource.ts'

export function dependencyRoutes({ store, authorizer, principal }: Pick<AdminDeps, 'store' | 'authorizer' | 'principal'>) {
  return new Elysia({ tags: ['services'] }).get(
    '/projects/:project/services/:name/dependencies',
    ({ params: { project, name }, request }) =>
      readDependencies(store, { project, service: name }, authorizer.scope(principal(request), 'read', 'Service')),
    {
      params: z.object({ project: nameSchema, name: nameSchema }),
      response: dependenciesViewSchema,
      detail: { summary: 'Dependencies of a service, their state in its clusters, and its dependents' },
    },
  )
}

/** `scope`: a dependency outside of it is shown as the service itself names it, as if it did not exist. */
async function readDependencies(store: Store, id: ServiceId, scope: Scope): Promise<DependenciesView> {
  const key = { kind: 'Service', project: id.project, name: id.service } as const
  const held = await store.getResource(key)
  if (held === null) throw keyNotFound(key)
  const keys = dependencyKeys(id.project, serviceSpecSchema.parse(JSON.parse(held.spec)).dependsOn)
  const clusters = keys.length === 0 ? new Map<ClusterId, string>() : await clustersOf(store, id, scope)
  const dependsOn: DependenciesView['dependsOn'] = []
  for (const dependency of keys) {
    const of = parseServiceKey(dependency)
    const shown = serviceInScope(withoutClusters(scope), of)
    const exists = shown && (await store.getResource({ kind: 'Service', project: of.project, name: of.service })) !== null
    const reports = new Map<ClusterId, ServiceStatus>()
    for (const { clusterId, doc } of shown ? await store.listStatus({ kind: 'service', key: dependency }) : []) {
      const status = serviceStatusSchema.safeParse(doc).data
      if (status !== undefined) reports.set(clusterId, status)
    }
    dependsOn.push(dependencyView({ ...of, exists, clusters, desired: shown ? await store.desiredOfService(of) : [], reports }))
  }
  return { dependsOn, neededBy: (await readDependents(store, id)).filter((one) => serviceInScope(withoutClusters(scope), one)) }
}

async function clustersOf(store: Store, id: ServiceId, scope: Scope): Promise<Map<ClusterId, string>> {
  const names = await clustersWithService(scope, id, store)
  const placed = (await store.desiredOfService(id)).filter(({ doc }) => doc !== null && doc.removal === undefined)
  const shown = new Map<ClusterId, string>()
  for (const { clusterId } of placed) {
    const name = names.get(clusterId)
    if (name !== undefined) shown.set(clusterId, name)
  }
  return shown
}
