// Who names a Config: it stays while they do, and they are looked at again when it changes.
import type { RenderSpec } from '../../shared/model/render.ts'
import { placeOf, repositorySpecSchema, type ServiceSpec, serviceSpecSchema, sourcesOf } from '../../shared/model/resources.ts'
import type { ResourceKey } from '../fleet/records.ts'
import type { Store } from '../store/store.ts'

const LIST_LIMIT = 500

/** Repositories, then services, by name. */
export async function configUsers(store: Pick<Store, 'listResources'>, project: string, config: string): Promise<ResourceKey[]> {
  const users: ResourceKey[] = []
  for (const kind of ['Repository', 'Service'] as const) {
    let after: string | undefined
    do {
      const page = await store.listResources(kind, { project, limit: LIST_LIMIT, ...(after === undefined ? {} : { after }) })
      for (const { name, spec } of page.items) if (names(kind, spec, config)) users.push({ kind, project, name })
      after = page.next ?? undefined
    } while (after !== undefined)
  }
  return users
}

function names(kind: 'Repository' | 'Service', spec: string, config: string): boolean {
  if (!spec.includes(JSON.stringify(config))) return false // most are not even parsed
  if (kind === 'Repository') return placeOf(repositorySpecSchema.parse(JSON.parse(spec))).spec.auth?.secretRef === config
  return configsOf(serviceSpecSchema.parse(JSON.parse(spec))).has(config)
}

/** By name. */
export function configsOf(spec: ServiceSpec): Set<string> {
  const ofRender = (render: RenderSpec | undefined) => [
    ...(render?.helm?.valuesFrom ?? []),
    ...(render?.kustomize?.remoteBaseSecretRefs ?? []).map((name) => ({ name })),
  ]
  const named = [spec.configFrom ?? [], ofRender(spec.render), ...sourcesOf(spec).map(({ render }) => ofRender(render))]
  return new Set(named.flatMap((refs) => refs.map(({ name }) => name)))
}
