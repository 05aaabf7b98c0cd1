// Checks written resources against their Project, including a Project in the same request.
import { canonicalJson } from '../../shared/kube/canonical.ts'
import type { Labels } from '../../shared/model/labels.ts'
import { type Applicable, FLEET, type ServiceSpec } from '../../shared/model/resources.ts'
import type { ViolationView } from '../../shared/model/views.ts'
import type { Problem } from '../../shared/runtime/error.ts'
import { isDestination, type NamedProject, resourceProblems } from '../fleet/project-rules.ts'
import type { ClusterRecord } from '../fleet/records.ts'
import { isTarget } from '../fleet/targeting.ts'
import { parseServiceSpec } from '../ingest/known-specs.ts'
import { projectViolations, readProject, resourcesOf } from '../ingest/projects.ts'
import type { AdminDeps } from './deps.ts'

type Bound = Extract<Applicable, { kind: 'Repository' | 'Service' | 'Config' }>
const isBound = (resource: Applicable): resource is Bound => ['Repository', 'Service', 'Config'].includes(resource.kind)

/**
 * By index of the resource, with paths in the resource. PJ2 to PJ7. `mayName`: projects that the caller may read, for
 * labels of clusters that reach the quota of a project.
 */
export async function projectProblems(
  { store }: Pick<AdminDeps, 'store'>,
  resources: readonly Applicable[],
  mayName: (project: string) => boolean = () => true,
): Promise<Array<[number, Problem]>> {
  const coming = new Map(resources.flatMap((one) => (one.kind === 'Project' ? [[one.metadata.name, one.spec] as const] : [])))
  const projects = new Map<string, NamedProject | null>()
  const projectOf = async (name: string): Promise<NamedProject | null> => {
    const given = coming.get(name)
    if (given !== undefined) return { name, spec: given }
    const known = projects.get(name)
    if (known !== undefined) return known
    const read = await readProject(store, name)
    projects.set(name, read)
    return read
  }
  const problems: Array<[number, Problem]> = []
  for (const [index, resource] of resources.entries()) {
    if (!isBound(resource)) continue
    const project = await projectOf(resource.metadata.project)
    if (project === null) continue
    for (const problem of resourceProblems(project, resource)) problems.push([index, problem])
  }
  const relabelled = await relabelledClusters(store, resources)
  const names = new Set(resources.filter(isBound).map(({ metadata }) => metadata.project))
  if (relabelled.size > 0) for await (const { name } of resourcesOf(store, 'Project', FLEET)) names.add(name)
  for (const name of names) {
    const project = await projectOf(name)
    if (project?.spec.quotas !== undefined) problems.push(...(await quotaProblems(store, project, resources, relabelled, mayName)))
  }
  return problems
}

interface Relabelled extends ClusterRecord {
  index: number
  after: Labels
}

/** By name. */
async function relabelledClusters(store: AdminDeps['store'], resources: readonly Applicable[]): Promise<Map<string, Relabelled>> {
  const coming = new Map(
    resources.flatMap(({ kind, metadata }, index) =>
      kind === 'Cluster' ? [[metadata.name, { index, after: metadata.labels }] as const] : [],
    ),
  )
  const found = coming.size === 0 ? [] : await store.findClusters({ names: [...coming.keys()] })
  return new Map(
    found.flatMap((cluster) => {
      const given = coming.get(cluster.name)
      const isSame = given === undefined || canonicalJson(given.after) === canonicalJson(cluster.labels)
      return isSame ? [] : [[cluster.name, { ...cluster, ...given }] as const]
    }),
  )
}

/** PJ7: what the project would have after this request. A service that was there before and takes no more than it did
 *  is no problem. */
async function quotaProblems(
  store: AdminDeps['store'],
  project: NamedProject,
  resources: readonly Applicable[],
  relabelled: ReadonlyMap<string, Relabelled>,
  mayName: (project: string) => boolean,
): Promise<Array<[number, Problem]>> {
  const { services: most, placements } = project.spec.quotas ?? {}
  const specs = new Map<string, ServiceSpec>()
  for await (const { name, spec } of resourcesOf(store, 'Service', project.name)) specs.set(name, parseServiceSpec(spec))
  const clusters = placements === undefined ? [] : await store.listClusters()
  const asTheyWillBe = clusters.map(({ name, labels }) => ({ labels: relabelled.get(name)?.after ?? labels }))
  const destinations = asTheyWillBe.filter(({ labels }) => isDestination(project, labels))
  const placesOf = (spec: ServiceSpec): number => destinations.filter(({ labels }) => isTarget(labels, spec.targets)).length
  let placed = placements === undefined ? 0 : [...specs.values()].reduce((sum, spec) => sum + placesOf(spec), 0)
  const problems: Array<[number, Problem]> = []
  for (const [index, resource] of resources.entries()) {
    if (resource.kind !== 'Service' || resource.metadata.project !== project.name) continue
    const { name } = resource.metadata
    const before = specs.get(name)
    specs.set(name, resource.spec)
    const added = placements === undefined ? 0 : placesOf(resource.spec) - (before === undefined ? 0 : placesOf(before))
    placed += added
    const refuse = (path: string, rule: string, why: string) =>
      problems.push([index, { path, message: `refused by project ${project.name}, rule quotas.${rule}: ${why}` }])
    if (most !== undefined && before === undefined && specs.size > most)
      refuse('metadata.name', 'services', `the project would have ${specs.size} services (allowed: ${most})`)
    if (placements !== undefined && added > 0 && placed > placements)
      refuse('spec.targets', 'placements', `the project would have ${placed} placements (allowed: ${placements})`)
  }
  if (placements === undefined || placed <= placements) return problems
  const takes = (labels: Labels, spec: ServiceSpec) => isDestination(project, labels) && isTarget(labels, spec.targets)
  const message = mayName(project.name)
    ? `refused by project ${project.name}, rule quotas.placements: the project would have ${placed} placements (allowed: ${placements})`
    : 'refused by the rule quotas.placements of a project: it would have more placements than it may'
  for (const { index, labels, after } of relabelled.values()) {
    const added = [...specs.values()].reduce((sum, spec) => sum + Number(takes(after, spec)) - Number(takes(labels, spec)), 0)
    if (added > 0) problems.push([index, { path: 'metadata.labels', message }])
  }
  return problems
}

/** PJ8: what is stored and the Projects of a request do not allow, without what the request itself replaces. */
export async function violationsOf({ store }: Pick<AdminDeps, 'store'>, resources: readonly Applicable[]): Promise<ViolationView[]> {
  const violations: ViolationView[] = []
  for (const resource of resources) {
    if (resource.kind !== 'Project') continue
    const { name } = resource.metadata
    const replaced = new Set(
      resources
        .filter(isBound)
        .flatMap(({ kind, metadata }) => (metadata.project === name ? [`${kind.toLowerCase()}/${metadata.name}`] : [])),
    )
    const found = await projectViolations(store, { name, spec: resource.spec })
    violations.push(...found.filter((one) => !replaced.has(one.resource)).map((one) => ({ ...one, resource: `${name}/${one.resource}` })))
  }
  return violations
}

/** A PUT of one resource. */
export const problemsOfOne = async (
  deps: Pick<AdminDeps, 'store'>,
  resource: Applicable,
  mayName: (project: string) => boolean,
): Promise<Problem[]> => (await projectProblems(deps, [resource], mayName)).map(([, problem]) => problem)
