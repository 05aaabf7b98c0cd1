// Reports of a cluster about its ConfigMaps, as far as a caller may know them (AZ4). Keys that only services name which
// the caller may not read are left out, because they are names and values of others.

import { type SiteConfig, type SiteMap, type SiteStatus, siteMapId, siteStatusSchema, wantedKey } from '../../shared/model/site-config.ts'
import type { ServiceId } from '../../shared/runtime/ids.ts'
import type { ClusterRecord } from '../fleet/records.ts'
import { isEverywhere, type Scope } from '../fleet/rights.ts'
import { parseServiceSpec } from '../ingest/known-specs.ts'
import type { Store } from '../store/store.ts'

/** `services`: in the cluster, that the caller may read. Absent scope: all. Null: it reports none. */
export async function seenSite(
  store: Pick<Store, 'listStatus' | 'getResource'>,
  cluster: ClusterRecord,
  services: readonly ServiceId[],
  seen: Scope | undefined,
): Promise<SiteStatus | null> {
  const [row] = await store.listStatus({ clusterId: cluster.clusterId, kind: 'site' })
  const site = siteStatusSchema.safeParse(row?.doc).data ?? null
  if (site === null || seen === undefined || isEverywhere(seen)) return site
  const wanted: SiteConfig[] = cluster.siteConfig === undefined ? [] : [cluster.siteConfig]
  for (const { project, service } of services) {
    const held = await store.getResource({ kind: 'Service', project, name: service })
    const { siteConfig } = held === null ? {} : parseServiceSpec(held.spec)
    if (siteConfig !== undefined) wanted.push(siteConfig)
  }
  return siteIn(site, wanted)
}

function siteIn({ maps }: SiteStatus, wanted: readonly SiteConfig[]): SiteStatus {
  const named = new Map<string, Set<string>>()
  for (const one of wanted)
    named.set(siteMapId(one), new Set([...(named.get(siteMapId(one)) ?? []), ...one.keys.map((key) => wantedKey(key).key)]))
  return {
    maps: Object.fromEntries(
      Object.entries(maps).flatMap(([id, map]): Array<[string, SiteMap]> => {
        const keys = named.get(id)
        if (keys === undefined) return []
        const only = (values: Readonly<Record<string, string>>) =>
          Object.fromEntries(Object.entries(values).filter(([key]) => keys.has(key)))
        const absent = map.absent.filter((key) => keys.has(key))
        return [[id, { ...map, values: only(map.values), absent, refused: only(map.refused) }]]
      }),
    ),
  }
}
