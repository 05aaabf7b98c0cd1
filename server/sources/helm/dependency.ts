// Charts that other charts depend on: of a Repository of the same project, so that its credential and its policy are the project's own, and never of any URL that a chart names.
import { placeOf, type RepositoryPlace, repositorySpecSchema } from '../../../shared/model/resources.ts'
import { AppError } from '../../../shared/protocol/error.ts'
import type { StoredResource } from '../../store/records.ts'
import type { Store } from '../../store/store.ts'
import type { Sources } from '../sources.ts'

interface Dependency {
  /** As a Chart.lock has it. */
  repository: string
  name: string
}

/** Null: it is in no such place. A registry's Repository may be of the chart itself, or of the path above it. */
export function holdsDependency({ kind, spec }: RepositoryPlace, { repository, name }: Dependency): boolean {
  const wanted = plainUrl(repository)
  if (kind === 'helm') return plainUrl(spec.url) === wanted
  return kind === 'oci' && [wanted, `${wanted}/${name}`].includes(plainUrl(spec.url))
}

/** Letters of scheme and host count the same, and slashes at the end nothing. */
function plainUrl(text: string): string {
  const [, scheme = '', host = '', path = ''] = /^([a-z]+:\/\/)([^/]*)(.*)$/i.exec(text) ?? []
  return `${scheme.toLowerCase()}${host.toLowerCase()}${path}`.replace(/\/+$/, '')
}

/** Files of the chart by path from its folder. */
type Charts = (repository: string, name: string, version: string) => Promise<ReadonlyMap<string, Uint8Array>>

const PAGE_SIZE = 500

export function createChartSupply(deps: { store: Pick<Store, 'listResources'>; sources: Sources }): (project: string) => Charts {
  return (project) => async (repository, name, version) => {
    const found = await findRepository(deps.store, project, { repository, name })
    const what = `the chart ${name} ${version} of ${repository}`
    if (found === null) throw new AppError('source_refused', { detail: `${what}: no Repository of the project ${project} has that URL` })
    const source = deps.sources.open(found)
    if (source.chart === undefined) throw new AppError('source_refused', { detail: `${what}: that Repository has no charts` })
    const { tree, root } = await source.chart(repository, name, version)
    return new Map([...(await tree.files(root, () => true))].map(([path, { bytes }]) => [path, bytes]))
  }
}

async function findRepository(
  store: Pick<Store, 'listResources'>,
  project: string,
  dependency: Dependency,
): Promise<{ uid: string; project: string; place: RepositoryPlace } | null> {
  for (let after: string | undefined; ; ) {
    const page = await store.listResources('Repository', { project, limit: PAGE_SIZE, ...(after === undefined ? {} : { after }) })
    for (const { uid, spec } of page.items as readonly StoredResource[]) {
      const place = placeOf(repositorySpecSchema.parse(JSON.parse(spec)))
      if (holdsDependency(place, dependency)) return { uid, project, place }
    }
    if (page.next === null) return null
    after = page.next
  }
}
