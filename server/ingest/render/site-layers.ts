// SC3: the variables of each cluster that come from a ConfigMap there: of the Cluster, then of the Service. A cluster
// whose agent has not reported all that is named is not rendered for, so that it keeps its revision. Pure.
import { canonicalJson } from '../../../shared/kube/canonical.ts'
import type { ClusterId } from '../../../shared/model/ids.ts'
import { readSite, type SiteConfig, type SiteStatus, siteMapId, wantedKey } from '../../../shared/model/site-config.ts'
import { AppError } from '../../../shared/protocol/error.ts'
import type { ConfigLayer } from '../../render/config-merge.ts'

const REMEDY =
  'Create the ConfigMap in the cluster, or correct siteConfig. An agent of an earlier version reports no values: upgrade it. The cluster keeps its revision.'

interface SiteCluster {
  clusterId: ClusterId
  name: string
  siteConfig?: SiteConfig | undefined
}

export interface SiteLayers {
  /** The variables of a cluster; undefined means none. */
  of(clusterId: ClusterId): SiteVariables | undefined
  /** Clusters that cannot be rendered for, with the reason. */
  lacking: ReadonlyMap<ClusterId, AppError>
  /** Names of variables that a site may set. */
  names: ReadonlySet<string>
}

export interface SiteVariables {
  layers: readonly ConfigLayer[]
  /** Equal for equal variables. */
  text: string
}

export function siteLayers(
  { siteConfig: ofService }: { siteConfig?: SiteConfig | undefined },
  clusters: readonly SiteCluster[],
  reported: ReadonlyMap<ClusterId, SiteStatus>,
): SiteLayers {
  const layers = new Map<ClusterId, SiteVariables>()
  const lacking = new Map<ClusterId, AppError>()
  const names = new Set<string>()
  for (const { clusterId, name, siteConfig: ofCluster } of clusters) {
    const wanted = [ofCluster, ofService].filter((one) => one !== undefined)
    if (wanted.length === 0) continue
    const found: ConfigLayer[] = []
    for (const one of wanted) {
      for (const key of one.keys.map(wantedKey)) names.add(key.name)
      const read = readSite(one, reported.get(clusterId))
      if (read.kind === 'lacking')
        lacking.set(clusterId, new AppError('values_missing', { detail: `cluster ${name}: ${read.why}`, remedy: REMEDY }))
      else found.push({ values: read.values, from: `site ConfigMap ${siteMapId(one)}` })
    }
    if (!lacking.has(clusterId)) layers.set(clusterId, { layers: found, text: canonicalJson(found.map(({ values }) => values)) })
  }
  return { of: (clusterId) => layers.get(clusterId), lacking, names }
}
