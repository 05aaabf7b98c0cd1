// Finds kinds that exist although discovery does not show them: an API server that has just started, or an aggregated
// API that has not registered yet, omits whole groups without reporting them as Stale. The objects of such a kind
// cannot be listed, so code that concludes from their absence asks here first.
import type { K8sObject, ObjectRef } from '../../../shared/kube/object.ts'
import type { ApiFailure, ApiResource, Extent, GetResult, WatchScope } from '../../cluster/cluster.ts'
import { objectPart } from '../../messages/object-messages.ts'
import type { ServedKinds } from '../snapshot/watch/served-kinds.ts'

export interface GapsDeps {
  kinds: Pick<ServedKinds, 'findAny' | 'refresh' | 'servesPlural' | 'answers'>
  get(resource: ApiResource, ref: ObjectRef): Promise<GetResult>
  list(
    resource: ApiResource,
    options: WatchScope & Extent,
    onObject: (object: K8sObject, isThere: boolean) => void,
  ): Promise<ApiFailure | null>
  signal: AbortSignal
}

/** Groups whose servers store nothing. */
const METRICS_GROUPS: ReadonlySet<string> = new Set(['metrics.k8s.io', 'custom.metrics.k8s.io', 'external.metrics.k8s.io'])
export const storesObjects = (group: string): boolean => !METRICS_GROUPS.has(group)

const DEFINITION = { group: 'apiextensions.k8s.io', kind: 'CustomResourceDefinition' }
const API_SERVICE = { group: 'apiregistration.k8s.io', kind: 'APIService' }
/** On APIServices that the API server makes for its own groups and for those of CRDs. */
const AUTOMANAGED_LABEL = 'kube-aggregator.kubernetes.io/automanaged'

const gap = (what: string): ApiFailure => ({
  kind: 'server_error',
  status: 503,
  reason: 'NoDiscovery',
  message: objectPart('kind_undiscovered', { what }),
})

/**
 * Null means that discovery shows every kind that can have objects. Else the failure to tell so, or the first gap.
 * Discovery must have been asked just before. `namespacedOnly`: CRDs of cluster-scoped kinds do not count.
 */
export async function findGap(deps: GapsDeps, { namespacedOnly = false } = {}): Promise<ApiFailure | null> {
  return (await gapOfDefinitions(deps, namespacedOnly)) ?? gapOfApiServices(deps)
}

async function gapOfDefinitions(deps: GapsDeps, namespacedOnly: boolean): Promise<ApiFailure | null> {
  const { kinds, get } = deps
  const resource = resourceOf(kinds, DEFINITION)
  if (resource === null) return gap(objectPart('kind_of_definitions'))
  const isMissing = (name: string) => {
    const dot = name.indexOf('.')
    return !kinds.servesPlural(name.slice(dot + 1), name.slice(0, dot))
  }
  const missing = await namesOf(deps, resource, ({ name = '' }) => isMissing(name))
  if (missing.kind === 'failed') return missing.failure
  // It may have become Established since discovery was asked.
  if (missing.names.length > 0) await kinds.refresh()
  for (const name of missing.names.filter(isMissing)) {
    const answer = await get(resource, { ...DEFINITION, namespace: '', name })
    if (answer.kind === 'failed') return answer.failure
    if (answer.kind === 'found' && canHaveObjects(answer.object, namespacedOnly)) return gap(`CustomResourceDefinition ${name}`)
  }
  return null
}

async function gapOfApiServices(deps: GapsDeps): Promise<ApiFailure | null> {
  const { kinds } = deps
  const resource = resourceOf(kinds, API_SERVICE)
  // An API server without aggregation.
  if (resource === null) return null
  const isMissing = (name: string) => {
    const dot = name.indexOf('.')
    const group = name.slice(dot + 1)
    return storesObjects(group) && !kinds.answers(group, name.slice(0, dot))
  }
  const missing = await namesOf(deps, resource, ({ name = '', labels }) => labels?.[AUTOMANAGED_LABEL] === undefined && isMissing(name))
  if (missing.kind === 'failed') return missing.failure
  if (missing.names.length > 0) await kinds.refresh()
  const [name] = missing.names.filter(isMissing)
  return name === undefined ? null : gap(`APIService ${name}`)
}

function resourceOf(kinds: GapsDeps['kinds'], { group, kind }: typeof DEFINITION): ApiResource | null {
  const lookup = kinds.findAny(group, 'v1', kind)
  return lookup.kind === 'served' ? lookup.resource : null
}

type Names = { kind: 'names'; names: string[] } | { kind: 'failed'; failure: ApiFailure }

async function namesOf(
  { list, signal }: GapsDeps,
  resource: ApiResource,
  counts: (metadata: K8sObject['metadata']) => boolean,
): Promise<Names> {
  const names = new Set<string>()
  const failure = await list(resource, { metadataOnly: true, signal }, ({ metadata }, isThere) => {
    const { name = '' } = metadata
    if (isThere && counts(metadata)) names.add(name)
    else names.delete(name)
  })
  return failure === null ? { kind: 'names', names: [...names].sort() } : { kind: 'failed', failure }
}

interface Definition {
  spec?: { scope?: unknown; versions?: ReadonlyArray<{ served?: unknown } | null> | null }
  status?: { conditions?: ReadonlyArray<{ type?: unknown; status?: unknown } | null> | null }
}

/** No API would ever list objects of a CRD that is not Established, or serves no version. */
function canHaveObjects(crd: K8sObject, namespacedOnly: boolean): boolean {
  const { spec, status } = crd as Definition
  const isEstablished = (status?.conditions ?? []).some((condition) => condition?.type === 'Established' && condition.status === 'True')
  const isServed = (spec?.versions ?? []).some((version) => version?.served === true)
  return isEstablished && isServed && !(namespacedOnly && spec?.scope === 'Cluster')
}
