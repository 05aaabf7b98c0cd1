// Projects as they are stored: read where a service of theirs is written, rendered or placed.
import { type ProjectSpec, projectSpecSchema } from '../../shared/model/projects.ts'
import { configSpecSchema } from '../../shared/model/render.ts'
import { FLEET, repositorySpecSchema, serviceSpecSchema } from '../../shared/model/resources.ts'
import type { ViolationView } from '../../shared/model/views.ts'
import { type NamedProject, resourceProblems } from '../fleet/project-rules.ts'
import type { ResourceKind, StoredResource } from '../fleet/records.ts'
import { RecentMap } from '../store/recent-map.ts'
import type { Store } from '../store/store.ts'

type ProjectStore = Pick<Store, 'getResource' | 'listResources'>

const PARSED_MAX = 1_000
const LIST_LIMIT = 500
const parsed = new RecentMap<ProjectSpec>(PARSED_MAX)

/** The same object for the same text, as long as it was asked for lately. */
export function parseProjectSpec(text: string): ProjectSpec {
  const spec = parsed.get(text) ?? projectSpecSchema.parse(JSON.parse(text))
  parsed.set(text, spec)
  return spec
}

/** Null if the project has no boundary. */
export async function readProject({ getResource }: Pick<Store, 'getResource'>, name: string): Promise<NamedProject | null> {
  const held = await getResource({ kind: 'Project', project: FLEET, name })
  return held === null ? null : { name, spec: parseProjectSpec(held.spec) }
}

/** Without a project: of all of them. */
export async function* resourcesOf(
  { listResources }: Pick<Store, 'listResources'>,
  kind: ResourceKind,
  project?: string,
): AsyncGenerator<StoredResource> {
  let after: string | undefined
  do {
    const page = await listResources(kind, {
      limit: LIST_LIMIT,
      ...(project === undefined ? {} : { project }),
      ...(after === undefined ? {} : { after }),
    })
    yield* page.items
    after = page.next ?? undefined
  } while (after !== undefined)
}

/** Those that are being deleted are counted, too. */
export async function countServices(store: Pick<Store, 'listResources'>, project: string): Promise<number> {
  let services = 0
  for await (const _ of resourcesOf(store, 'Service', project)) services += 1
  return services
}

const VIOLATIONS_MAX = 200

/** PJ8: what is stored of a project and its boundary does not allow, in the order of kinds and names; the first of
 *  them. */
export async function projectViolations(store: ProjectStore, project: NamedProject): Promise<ViolationView[]> {
  const violations: ViolationView[] = []
  for (const kind of ['Config', 'Repository', 'Service'] as const)
    for await (const { name, spec } of resourcesOf(store, kind, project.name)) {
      for (const problem of problemsOf(project, kind, spec)) violations.push({ resource: `${kind.toLowerCase()}/${name}`, ...problem })
      if (violations.length >= VIOLATIONS_MAX) return violations.slice(0, VIOLATIONS_MAX)
    }
  return violations
}

function problemsOf(project: NamedProject, kind: 'Config' | 'Repository' | 'Service', text: string) {
  const spec: unknown = JSON.parse(text)
  const head = { apiVersion: 'skerry.dev/v1', metadata: { name: '', project: project.name, labels: {} } } as const
  switch (kind) {
    case 'Config':
      return resourceProblems(project, { ...head, kind, spec: { data: {}, secrets: {}, hosts: hostsIn(spec) } })
    case 'Repository':
      return resourceProblems(project, { ...head, kind, spec: repositorySpecSchema.parse(spec) })
    case 'Service':
      return resourceProblems(project, { ...head, kind, spec: serviceSpecSchema.parse(spec) })
  }
}

/** A stored Config has sealed secrets, so its schema differs. */
const hostsIn = (spec: unknown): string[] => configSpecSchema.shape.hosts.safeParse((spec as { hosts?: unknown }).hosts).data ?? []
