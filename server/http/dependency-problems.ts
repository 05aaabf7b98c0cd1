// Cycles of `dependsOn` in one request, checked as if all of it were written: the store checks again at each write.
import { z } from 'zod'
import { cycleText, cycleThrough, dependencyKey, dependencyKeys } from '../../shared/model/dependencies.ts'
import { type Applicable, DEFAULT_PROJECT, projectOf, serviceSpecSchema } from '../../shared/model/resources.ts'
import type { Problem } from '../../shared/runtime/error.ts'
import { nameSchema, parseServiceKey, serviceKey } from '../../shared/runtime/ids.ts'
import type { DependencyCycle } from '../fleet/records.ts'
import type { Store } from '../store/store.ts'

/** TG15, at the path of the entry that closes the circle. */
export const cycleProblem = ({ cycle, entry }: DependencyCycle, isShown: (key: string) => boolean): Problem => ({
  path: `spec.dependsOn[${entry}]`,
  message: `dependency cycle: ${cycleText(cycle.map((key) => (isShown(key) ? key : 'a service that you may not read')))}; remove one of these dependencies`,
})

const namedService = z.looseObject({
  kind: z.literal('Service'),
  metadata: z.looseObject({ name: nameSchema, project: nameSchema.default(DEFAULT_PROJECT) }),
})

const keyOfService = (resource: Applicable): string => serviceKey({ project: projectOf(resource), service: resource.metadata.name })

/**
 * By index of the resource; one of each cycle. `wrong`: documents that would be written if they were valid. Their
 * present versions make no cycle, and their later content is unknown.
 */
export async function dependencyProblems(
  store: Pick<Store, 'getResource'>,
  resources: readonly Applicable[],
  isShown: (key: string) => boolean,
  wrong: readonly unknown[] = [],
): Promise<Map<number, Problem>> {
  const graph = await readGraph(store, resources, wrong)
  const problems = new Map<number, Problem>()
  const told = new Set<string>()
  for (const [index, resource] of resources.entries()) {
    if (resource.kind !== 'Service' || resource.spec.dependsOn === undefined) continue
    const key = keyOfService(resource)
    const cycle = cycleThrough(key, (from) => graph.get(from) ?? [])
    if (cycle === null) continue
    const members = [...new Set(cycle)].sort().join(' ')
    if (told.has(members)) continue
    told.add(members)
    const entry = resource.spec.dependsOn.findIndex((dependency) => dependencyKey(projectOf(resource), dependency) === cycle[1])
    problems.set(index, cycleProblem({ cycle, entry }, isShown))
  }
  return problems
}

/** The dependencies of each service that the written ones reach. */
async function readGraph(
  store: Pick<Store, 'getResource'>,
  resources: readonly Applicable[],
  wrong: readonly unknown[],
): Promise<Map<string, string[]>> {
  const graph = new Map<string, string[]>()
  for (const document of wrong) {
    const named = namedService.safeParse(document).data
    if (named !== undefined) graph.set(serviceKey({ project: named.metadata.project, service: named.metadata.name }), [])
  }
  for (const resource of resources)
    if (resource.kind === 'Service') graph.set(keyOfService(resource), dependencyKeys(projectOf(resource), resource.spec.dependsOn))
  const open = [...graph.values()].flat()
  for (let key = open.pop(); key !== undefined; key = open.pop()) {
    if (graph.has(key)) continue
    const { project, service } = parseServiceKey(key)
    const held = await store.getResource({ kind: 'Service', project, name: service })
    const dependencies = held === null ? [] : dependencyKeys(project, serviceSpecSchema.parse(JSON.parse(held.spec)).dependsOn)
    graph.set(key, dependencies)
    open.push(...dependencies)
  }
  return graph
}

/**
 * Services that others depend on come first: then no step between has a cycle that neither the start nor the end has.
 * Otherwise the given order stays.
 */
export function dependenciesFirst<T>(items: readonly T[], resourceOf: (item: T) => Applicable): T[] {
  const byKey = new Map(
    items.flatMap((item) => (resourceOf(item).kind === 'Service' ? [[keyOfService(resourceOf(item)), item] as const] : [])),
  )
  const sorted: T[] = []
  const seen = new Set<T>()
  const visit = (item: T): void => {
    if (seen.has(item)) return
    seen.add(item)
    const resource = resourceOf(item)
    if (resource.kind === 'Service') {
      for (const key of dependencyKeys(projectOf(resource), resource.spec.dependsOn)) {
        const dependency = byKey.get(key)
        if (dependency !== undefined) visit(dependency)
      }
    }
    sorted.push(item)
  }
  for (const item of items) visit(item)
  return sorted
}
