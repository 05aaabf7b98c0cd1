// `dependsOn` between services as a graph of their keys: the server refuses circles in it, the agent waits along it.
// Pure.
import type { Dependency } from './resources.ts'

/** The keys of the dependencies, sorted, each once. A name without a project belongs to the service's own project. */
export const dependencyKeys = (project: string, dependsOn: readonly Dependency[] = []): string[] =>
  [...new Set(dependsOn.map((dependency) => dependencyKey(project, dependency)))].sort()

export const dependencyKey = (project: string, dependency: Dependency): string => `${dependency.project ?? project}/${dependency.name}`

/** The shortest way from `key` back to it, both ends named. Null means that there is none. */
export function cycleThrough(key: string, dependenciesOf: (key: string) => readonly string[]): string[] | null {
  const cameFrom = new Map<string, string>()
  let layer = [key]
  while (layer.length > 0) {
    const next: string[] = []
    for (const from of layer) {
      for (const to of dependenciesOf(from)) {
        if (to === key) return [...pathTo(from, cameFrom), key]
        if (cameFrom.has(to)) continue
        cameFrom.set(to, from)
        next.push(to)
      }
    }
    layer = next
  }
  return null
}

function pathTo(key: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const path = [key]
  for (let from = cameFrom.get(key); from !== undefined; from = cameFrom.get(from)) path.unshift(from)
  return path
}

/** `a → b → a`; with the projects where they are not all one. */
export function cycleText(cycle: readonly string[]): string {
  const projects = new Set(cycle.map((key) => key.slice(0, key.indexOf('/'))))
  return (projects.size > 1 ? cycle : cycle.map((key) => key.slice(key.indexOf('/') + 1))).join(' → ')
}
