// SC3: the variables of each cluster that come from a ConfigMap there: of the Cluster, then of the Service. A cluster
// whose agent has not reported all that is named is not rendered for, so that it keeps its revision. Pure.
import { canonicalJson } from '../../../shared/kube/canonical.ts'
import { allowsNamespace } from '../../../shared/model/bounds.ts'
import type { Labels } from '../../../shared/model/labels.ts'
import { readSite, type SiteConfig, type SiteStatus, siteMapId, wantedKey } from '../../../shared/model/site-config.ts'
import { AppError } from '../../../shared/runtime/error.ts'
import type { ClusterId } from '../../../shared/runtime/ids.ts'
import type { NamedProject } from '../../fleet/project-rules.ts'
import type { ConfigLayer } from '../../render/config-merge.ts'
import { renderBounds } from '../../render/render-bounds.ts'

const REMEDY =
  'Create the ConfigMap in the cluster, or correct siteConfig. An agent of an earlier version reports no values: upgrade it. The cluster keeps its revision.'
const REMEDY_OF_PROJECT =
  'Name a ConfigMap in a namespace that a destination of the project allows in this cluster. The cluster keeps its revision.'

/** SC1: a service learns of ConfigMaps in namespaces of its project only. A project that is null has no boundary. */
export function mayReadSite(project: NamedProject | null, labels: Labels, { namespace }: Pick<SiteConfig, 'namespace'>): boolean {
  if (project === null) return true
  const { bounds } = renderBounds(project, labels)
  return bounds !== null && allowsNamespace(bounds, namespace)
}

interface SiteCluster {
  clusterId: ClusterId
  name: string
  labels: Labels
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
  project: NamedProject | null,
  clusters: readonly SiteCluster[],
  reported: ReadonlyMap<ClusterId, SiteStatus>,
): SiteLayers {
  const layers = new Map<ClusterId, SiteVariables>()
  const lacking = new Map<ClusterId, AppError>()
  const names = new Set<string>()
  for (const { clusterId, name, labels, siteConfig: ofCluster } of clusters) {
    const wanted = [ofCluster, ofService].filter((one) => one !== undefined)
    if (wanted.length === 0) continue
    for (const key of wanted.flatMap(({ keys }) => keys.map(wantedKey))) names.add(key.name)
    // Another service may have the agent report that ConfigMap.
    if (ofService !== undefined && project !== null && !mayReadSite(project, labels, ofService)) {
      const why = `project ${project.name} does not allow namespace ${ofService.namespace} there, which siteConfig names`
      lacking.set(clusterId, new AppError('values_missing', { detail: `cluster ${name}: ${why}`, remedy: REMEDY_OF_PROJECT }))
      continue
    }
    const found: ConfigLayer[] = []
    for (const one of wanted) {
      const read = readSite(one, reported.get(clusterId))
      if (read.kind === 'lacking')
        lacking.set(clusterId, new AppError('values_missing', { detail: `cluster ${name}: ${read.why}`, remedy: REMEDY }))
      else found.push({ values: read.values, from: `site ConfigMap ${siteMapId(one)}` })
    }
    if (!lacking.has(clusterId)) layers.set(clusterId, { layers: found, text: canonicalJson(found.map(({ values }) => values)) })
  }
  return { of: (clusterId) => layers.get(clusterId), lacking, names }
}
