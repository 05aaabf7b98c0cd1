// Parses aggregated discovery (apidiscovery.k8s.io/v2): the served kinds with their plurals, and groups that did not
// answer.
import { z } from 'zod'
import type { ApiResource, Discovery } from './cluster.ts'

/** Kubernetes 1.27 to 1.29 serve v2beta1, of the same form. A server without either answers an APIGroupList, which is
 *  refused. */
export const DISCOVERY_ACCEPT = ['v2', 'v2beta1']
  .map((version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`)
  .join(',')

const discoveryList = z.looseObject({
  kind: z.literal('APIGroupDiscoveryList'),
  items: z
    .array(
      z.looseObject({
        metadata: z.looseObject({ name: z.string().optional() }).optional(),
        versions: z
          .array(
            z.looseObject({
              version: z.string(),
              freshness: z.string().optional(),
              resources: z
                .array(
                  z.looseObject({
                    resource: z.string(),
                    responseKind: z.looseObject({ kind: z.string().optional() }).nullish(),
                    scope: z.string().optional(),
                    verbs: z.array(z.string()).nullish(),
                    subresources: z.array(z.looseObject({ subresource: z.string() })).nullish(),
                  }),
                )
                .nullish(),
            }),
          )
          .nullish(),
      }),
    )
    .nullish(),
})

/** KA10, KA11: `documents` are the answers of /api and /apis. Versions keep the order of the server, preferred first.
 *  Null when an answer is not aggregated discovery. */
export function parseDiscovery(documents: readonly unknown[]): Discovery | null {
  const resources: ApiResource[] = []
  const staleGroups = new Set<string>()
  const versions: string[] = []
  for (const document of documents) {
    const parsed = discoveryList.safeParse(document)
    if (!parsed.success) return null
    for (const group of parsed.data.items ?? []) {
      const name = group.metadata?.name ?? ''
      for (const version of group.versions ?? []) {
        if (version.freshness === 'Stale') staleGroups.add(name)
        versions.push(`${name}/${version.version}`)
        for (const entry of version.resources ?? []) {
          const kind = entry.responseKind?.kind
          if (!kind) continue
          const { resource: plural, scope, verbs, subresources } = entry
          resources.push({
            group: name,
            version: version.version,
            kind,
            plural,
            namespaced: scope === 'Namespaced',
            verbs: verbs ?? [],
            hasStatus: subresources?.some(({ subresource }) => subresource === 'status') ?? false,
          })
        }
      }
    }
  }
  return { resources, staleGroups: [...staleGroups].sort(), versions }
}

/** `/api/v1` or `/apis/GROUP/VERSION`, then namespace and plural. Names are encoded, because names of RBAC have
 *  colons. */
export function collectionPath(resource: ApiResource, namespace: string): string {
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`
  const scope = resource.namespaced && namespace !== '' ? `/namespaces/${encodeURIComponent(namespace)}` : ''
  return `${root}${scope}/${resource.plural}`
}

export const objectPath = (resource: ApiResource, namespace: string, name: string): string =>
  `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`
