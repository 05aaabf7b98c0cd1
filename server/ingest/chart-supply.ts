// Charts that other charts depend on: of a Repository of the same project, so that its credential and its policy are
// the project's own, and never of any URL that a chart names.
import { placeOf, type RepositoryPlace, repositorySpecSchema } from '../../shared/model/resources.ts'
import { editDistance } from '../../shared/runtime/edit-distance.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { refuseSource } from '../fleet/project-rules.ts'
import type { StoredResource } from '../fleet/records.ts'
import type { SourceKey } from '../sources/sources.ts'
import type { Store } from '../store/store.ts'
import { readProject } from './projects.ts'

interface Dependency {
  /** As a Chart.lock has it. */
  repository: string
  name: string
}

/** Null if it is in no such place. The Repository of a registry may name the chart itself, or the path above it. */
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

const PAGE_SIZE = 500

/** The Repository of that project from which a chart comes that another one depends on. Throws `source_refused` when
 *  there is none. */
export type FindChart = (project: string, repository: string, name: string, version: string) => Promise<SourceKey>

export function createFindChart(store: Pick<Store, 'listResources' | 'getResource'>): FindChart {
  return async (project, repository, name, version) => {
    const { found, urls } = await findRepository(store, project, { repository, name })
    if (found !== null) {
      const boundary = await readProject(store, project)
      // Repositories may have been written before their Project was.
      const refusal = boundary === null ? null : refuseSource(boundary, found.place.spec.url)
      if (refusal !== null) throw new AppError('project_refused', { detail: `the chart ${name} ${version}: ${refusal}` })
      return found
    }
    const detail = `the chart ${name} ${version} of ${repository}: no Repository of project ${project} has that URL${nearest(urls, repository)}`
    throw new AppError('source_refused', { detail })
  }
}

interface Found {
  found: SourceKey | null
  /** Other charts' addresses, by the names of their Repositories. */
  urls: ReadonlyMap<string, string>
}

async function findRepository(store: Pick<Store, 'listResources'>, project: string, dependency: Dependency): Promise<Found> {
  const urls = new Map<string, string>()
  for (let after: string | undefined; ; ) {
    const page = await store.listResources('Repository', { project, limit: PAGE_SIZE, ...(after === undefined ? {} : { after }) })
    for (const { uid, name, spec } of page.items as readonly StoredResource[]) {
      const place = placeOf(repositorySpecSchema.parse(JSON.parse(spec)))
      if (holdsDependency(place, dependency)) return { found: { uid, project, place }, urls }
      if (place.kind !== 'git') urls.set(name, place.spec.url)
    }
    if (page.next === null) return { found: null, urls }
    after = page.next
  }
}

/** Longer ones differ within that already, and comparing takes the square of it. */
const COMPARED_LENGTH = 120
const SLIP_LENGTH = 3

/** A slip in it, or another place on the same host; what is farther away is no help. */
export function nearest(urls: ReadonlyMap<string, string>, wanted: string): string {
  const text = (url: string) => plainUrl(url).slice(0, COMPARED_LENGTH)
  const host = (url: string) => /^[a-z]+:\/\/([^/]*)/.exec(plainUrl(url))?.[1] ?? ''
  const found = [...urls]
    .map(([name, url]) => ({ name, url, sameHost: host(url) === host(wanted) }))
    .filter(({ url, sameHost }) => sameHost || Math.abs(text(url).length - text(wanted).length) <= SLIP_LENGTH)
    .map((one) => ({ ...one, distance: editDistance(text(one.url), text(wanted)) }))
    .filter(({ distance, sameHost }) => sameHost || distance <= SLIP_LENGTH)
    .sort((a, b) => a.distance - b.distance || (a.name < b.name ? -1 : 1))
  const [first] = found
  return first === undefined ? '' : `; the most similar is ${first.url}, of the Repository ${first.name}`
}
