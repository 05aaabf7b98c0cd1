// A service as a caller sees it who may read it in some clusters only. Pure. What the service is in these clusters
// stays the same; names, label values and errors of other clusters are left out.
import { type LabelSelector, type Labels, matchesSelector } from '../../shared/model/labels.ts'
import type { ServiceSpec } from '../../shared/model/resources.ts'
import { nameList } from './placements-summary.ts'
import type { FailingClusters, RenderState, StoredError } from './records.ts'
import { isTarget } from './targeting.ts'
import { failingIn } from './unrendered.ts'

export interface SeenCluster {
  name: string
  labels: Labels
}

const EVERY_CLUSTER: LabelSelector = {}

/** AZ11: targets and overrides as far as they concern these clusters. */
export function specIn({ overrides, ...spec }: ServiceSpec, clusters: readonly SeenCluster[]): ServiceSpec {
  const seen = clusters.map(({ labels }) => labels)
  const here = overrides?.flatMap(({ selector, ...change }) => {
    const narrowed = selectorIn(selector, seen)
    return narrowed === null ? [] : [{ selector: narrowed, ...change }]
  })
  const selector = selectorIn(spec.targets.selector, seen)
  const exclude = spec.targets.exclude.flatMap((one) => selectorIn(one, seen) ?? [])
  return {
    ...spec,
    ...(here === undefined || here.length === 0 ? {} : { overrides: here }),
    // A service that is leaving the last of these clusters selects none of them.
    targets: selector === null ? { selector: EVERY_CLUSTER, exclude: [EVERY_CLUSTER] } : { selector, exclude },
  }
}

/** A selector that selects the same of these clusters, without values that none of them has. Null means that it selects
 *  none. */
export function selectorIn(selector: LabelSelector, seen: readonly Labels[]): LabelSelector | null {
  if (!seen.some((labels) => matchesSelector(labels, selector))) return null
  const { matchLabels, matchExpressions } = selector
  const isValue = (key: string) => (value: string) => seen.some((labels) => Object.hasOwn(labels, key) && labels[key] === value)
  const rules = matchExpressions?.flatMap((rule) => {
    if (rule.operator !== 'In' && rule.operator !== 'NotIn') return [rule]
    const values = rule.values.filter(isValue(rule.key))
    return values.length === 0 ? [] : [{ ...rule, values }]
  })
  return {
    ...(matchLabels === undefined ? {} : { matchLabels }),
    ...(rules === undefined || rules.length === 0 ? {} : { matchExpressions: rules }),
  }
}

/** AZ11. `holds`: whether a cluster has a revision of the service. */
export function renderStateIn(
  state: RenderState,
  targets: ServiceSpec['targets'],
  clusters: readonly SeenCluster[],
  holds: (cluster: string) => boolean,
): RenderState {
  const { error, release, ...rest } = state
  return {
    ...rest,
    error: error === null ? null : renderErrorIn(error, targets, clusters, holds),
    // How many variants there are tells of the other clusters.
    ...(release === undefined ? {} : { release: { ...release, variants: 1 } }),
  }
}

function renderErrorIn(
  error: StoredError,
  targets: ServiceSpec['targets'],
  clusters: readonly SeenCluster[],
  holds: (cluster: string) => boolean,
): StoredError | null {
  const { failing = [] } = error
  const found = failingIn(error, () => targets)
  const groups = new Map<string, FailingClusters>()
  const names: string[] = []
  for (const cluster of clusters) {
    const { name } = cluster
    const words = found.keeping(name) ?? (holds(name) ? undefined : found.without(cluster))
    if (words === undefined) continue
    const { code, message, remedy, problem } = words
    const key = JSON.stringify([code, message, problem])
    const group: FailingClusters = groups.get(key) ?? {
      ...{ code, message, without: [], keeping: [], moreWithout: 0 },
      ...(remedy === undefined ? {} : { remedy }),
      ...(problem === undefined ? {} : { problem }),
    }
    groups.set(key, group)
    group[holds(name) ? 'keeping' : 'without'].push(name)
    names.push(name)
  }
  const here = [...groups.values()]
  const [first] = here
  // An error from before any cluster was looked at names none.
  if (failing.length === 0) return { ...error, message: error.message.replace(CLUSTERS_NAMED, '') }
  if (first === undefined) return null
  const others = new Set(here.map(({ message }) => message)).size > 1 ? ', among others' : ''
  const meant = clusters.filter(({ name, labels }) => holds(name) || isTarget(labels, targets)).length
  const isWhole = here.length === 1 && first.message === error.message
  return {
    code: here.every(({ code }) => code === first.code) ? first.code : 'render_failed',
    message: isWhole ? error.message : `in ${names.length} of ${meant} clusters (${nameList(names)}): ${first.message}${others}`,
    // The other problems of the error may be those of other clusters.
    problems: here.flatMap(({ problem }) => problem ?? []),
    sinceMs: error.sinceMs,
    failing: here,
    ...(first.remedy === undefined ? {} : { remedy: first.remedy }),
    ...(error.at === undefined ? {} : { at: error.at }),
  }
}
const CLUSTERS_NAMED = /^in \d+ of \d+ clusters \([^)]*\): /
