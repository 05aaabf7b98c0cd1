// The users of a Config: it stays while they name it, and they are reconciled again when it changes.
import { notificationSinkSpecSchema } from '../../shared/model/notifications.ts'
import type { RenderSpec } from '../../shared/model/render.ts'
import {
  DEFAULT_PROJECT,
  FLEET,
  placeOf,
  repositorySpecSchema,
  type ServiceSpec,
  serviceSpecSchema,
  sourcesOf,
} from '../../shared/model/resources.ts'
import { sourcesIn } from '../access/config-secrets.ts'
import type { ResourceKey } from '../fleet/records.ts'
import type { Store } from '../store/store.ts'

const LIST_LIMIT = 500

/** Project of the Configs that the sinks of a project name: those of the fleet use the default project. */
export const configProject = (project: string): string => (project === FLEET ? DEFAULT_PROJECT : project)

const USING = ['Repository', 'NotificationSink', 'Service', 'Config'] as const

/** Repositories, then sinks, services and Configs, by name. `among`: only these kinds are read. */
export async function configUsers(
  store: Pick<Store, 'listResources'>,
  project: string,
  config: string,
  among: ReadonlyArray<(typeof USING)[number]> = USING,
): Promise<ResourceKey[]> {
  const users: ResourceKey[] = []
  const places = among.map((kind) => ({ kind, project }))
  if (project === DEFAULT_PROJECT) places.push({ kind: 'NotificationSink', project: FLEET })
  for (const { kind, project: of } of places) {
    let after: string | undefined
    do {
      const page = await store.listResources(kind, { project: of, limit: LIST_LIMIT, ...(after === undefined ? {} : { after }) })
      for (const { name, spec } of page.items) if (names(kind, spec, config)) users.push({ kind, project: of, name })
      after = page.next ?? undefined
    } while (after !== undefined)
  }
  return users
}

function names(kind: (typeof USING)[number], spec: string, config: string): boolean {
  if (!spec.includes(JSON.stringify(config))) return false // most are not even parsed
  if (kind === 'NotificationSink') return notificationSinkSpecSchema.parse(JSON.parse(spec)).auth?.secretRef === config
  if (kind === 'Config') return sourcesIn(spec).sources.some(({ vault }) => vault?.secretRef === config)
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
