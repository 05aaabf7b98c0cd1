// Checks the fields of resources against their Project. Rendered objects are checked for each cluster. Pure.
import {
  allowsNamespace,
  type Bounds,
  boundsIn,
  defaultAccount,
  listText,
  refuseAccount,
  refuseNamespaceMarks,
} from '../../shared/model/bounds.ts'
import type { Labels } from '../../shared/model/labels.ts'
import { accountRuleOf, type ProjectSpec } from '../../shared/model/projects.ts'
import type { RenderSpec } from '../../shared/model/render.ts'
import {
  type ConfigResource,
  placeTexts,
  type RepositoryResource,
  type ServiceResource,
  type ServiceSpec,
  sourcesOf,
} from '../../shared/model/resources.ts'
import { coversHost, coversSource } from '../../shared/model/source-patterns.ts'
import type { Problem } from '../../shared/runtime/error.ts'
import { isTarget, type TargetCluster } from './targeting.ts'

/** With the name of the project, for messages. */
export interface NamedProject {
  name: string
  spec: ProjectSpec
}

/** PJ2: null means that it is allowed. */
export function refuseSource({ name, spec: { sources } }: NamedProject, url: string): string | null {
  if (sources.some((pattern) => coversSource(pattern, url))) return null
  return `refused by project ${name}, rule sources: ${url} is not allowed (allowed: ${listText(sources)})`
}

/** Rules that hold in every cluster: with the namespaces of all destinations. */
const widest = (spec: ProjectSpec): Bounds => ({
  namespaces: [...new Set(spec.destinations.flatMap(({ namespaces }) => namespaces))].sort(),
  ...{ kinds: spec.kinds, clusterScopedKinds: spec.clusterScopedKinds, serviceAccounts: accountRuleOf(spec) },
})

/** PJ2, PJ4 to PJ7: what is wrong with a resource, whatever it renders to. */
export function resourceProblems(project: NamedProject, resource: RepositoryResource | ServiceResource | ConfigResource): Problem[] {
  if (resource.kind === 'Repository') {
    const { spec } = resource
    const kind = spec.git !== undefined ? 'git' : spec.helm !== undefined ? 'helm' : 'oci'
    const message = refuseSource(project, placeTexts(spec).url)
    const problems = message === null ? [] : [{ path: `spec.${kind}.url`, message }]
    if (spec.git?.submodules !== true || project.spec.sources.includes('*')) return problems
    // Their addresses are in the content, which the worker reads that fetches them.
    return [...problems, { path: 'spec.git.submodules', message: `refused by project ${project.name}, rule sources: submodules need "*"` }]
  }
  return resource.kind === 'Config' ? hostProblems(project, resource.spec.hosts ?? []) : serviceProblems(project, resource.spec)
}

/** Facts that the author of a valid Project should know. */
export const projectWarnings = ({ serviceAccounts }: ProjectSpec): { warnings?: string[] } =>
  serviceAccounts === undefined
    ? {
        warnings: [
          'spec.serviceAccounts is not set: services without sync.serviceAccount act with the rights of the agent; set a default or required, or agent if that is intended',
        ],
      }
    : {}

/** Its secrets are sent to these hosts, which a repository of the project could not name. */
const hostProblems = ({ name, spec: { sources } }: NamedProject, hosts: readonly string[]): Problem[] =>
  hosts.flatMap((host, index) => {
    if (sources.some((pattern) => coversHost(pattern, host))) return []
    const message = `refused by project ${name}, rule sources: host ${host} is not allowed (allowed: ${listText(sources)})`
    return [{ path: `spec.hosts[${index}]`, message }]
  })

function serviceProblems(project: NamedProject, spec: ServiceSpec): Problem[] {
  const { renderers } = project.spec
  const bounds = widest(project.spec)
  const problems: Problem[] = []
  const refuse = (path: string, rule: string, why: string) =>
    problems.push({ path, message: `refused by project ${project.name}, rule ${rule}: ${why}` })
  const { namespace, sync } = spec
  const { namespaces = [] } = bounds
  if (namespace !== undefined && !allowsNamespace(bounds, namespace))
    refuse('spec.namespace', 'destinations', `namespace ${namespace} is not allowed (allowed: ${listText(namespaces)})`)
  const { siteConfig } = spec
  if (siteConfig !== undefined && !allowsNamespace(bounds, siteConfig.namespace))
    refuse(
      'spec.siteConfig.namespace',
      'destinations',
      `namespace ${siteConfig.namespace} is not allowed (allowed: ${listText(namespaces)})`,
    )
  const account = refuseAccount(bounds, sync.serviceAccount ?? defaultAccount(bounds), namespace)
  if (account !== null) refuse('spec.sync.serviceAccount', account.rule, account.why)
  const marks = refuseNamespaceMarks(bounds, sync)
  if (marks !== null)
    refuse(sync.namespaceLabels === undefined ? 'spec.sync.namespaceAnnotations' : 'spec.sync.namespaceLabels', marks.rule, marks.why)
  if (renderers === undefined) return problems
  const given: Array<[string, RenderSpec | undefined]> = [
    ['spec.render', spec.render],
    ...(spec.sources === undefined
      ? []
      : sourcesOf(spec).map(({ render }, index): [string, RenderSpec | undefined] => [`spec.sources[${index}].render`, render])),
  ]
  for (const [path, render] of given) {
    const type = render?.type ?? 'auto'
    if (type !== 'auto' && !renderers.includes(type))
      refuse(`${path}.type`, 'renderers', `${type} is not allowed (allowed: ${listText(renderers)})`)
  }
  return problems
}

/** PJ3: whether services of the project go to a cluster with these labels. */
export const isDestination = ({ spec }: NamedProject, labels: Labels): boolean => boundsIn(spec, labels) !== null

/** Clusters that a service targets and its project leaves out. */
export const leftOut = (project: NamedProject, targets: ServiceSpec['targets'], clusters: readonly TargetCluster[]): TargetCluster[] =>
  clusters.filter(({ labels }) => isTarget(labels, targets) && !isDestination(project, labels))
