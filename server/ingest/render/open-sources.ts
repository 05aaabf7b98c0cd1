// The sources of a service at the revisions that were read last, ready to be looked into, or why there is nothing to
// look into.

import { type WrittenBy, writtenByOf } from '../../../shared/model/commits.ts'
import {
  API_VERSION,
  type NamedSource,
  placeOf,
  repositorySpecSchema,
  type ServiceSpec,
  sourcesOf,
} from '../../../shared/model/resources.ts'
import { nearest } from '../../../shared/runtime/edit-distance.ts'
import { AppError, type Problem } from '../../../shared/runtime/error.ts'
import type { ServiceId } from '../../../shared/runtime/ids.ts'
import { type NamedProject, resourceProblems } from '../../fleet/project-rules.ts'
import type { StoredResource } from '../../fleet/records.ts'
import type { SourcePick } from '../../sources/source.ts'
import type { SourceKey } from '../../sources/sources.ts'
import type { Store } from '../../store/store.ts'
import type { ContentSource, ContentSources, ServiceSource } from '../content-port.ts'
import { readProject } from '../projects.ts'
import type { ClusterOutcomes } from './render-clusters.ts'
import { type Release, type Rendering, renderErrorOf } from './rendering.ts'

export interface OpenSourcesDeps {
  store: Pick<Store, 'getResource' | 'repositoryState' | 'listResources'>
  sources: ContentSources
  /** Other content in place of that of Repositories, by name. Such a Repository need not exist. */
  instead?: ReadonlyMap<string, { key: SourceKey; revision: string }> | undefined
}

export type Opening =
  | {
      kind: 'opened'
      sources: ServiceSource[]
      /** Null if the project has no boundary. */
      project: NamedProject | null
      release: Omit<Release, 'tools'>
      /** The author of the revision of the first source. Null means that the source does not say. */
      /** Author and subject of the revision of the first source. */
      writtenBy(): Promise<WrittenBy>
      /** Content was replaced by a fresh folder in the midst of reading: the repository's next revision is on its way.
       */
      isGone(outcomes: ClusterOutcomes): Promise<boolean>
    }
  | Exclude<Rendering, { kind: 'good' }>

/** The limit of repositories that are compared for a suggestion. */
const NAMES_LOOKED_MAX = 1_000
/** As agents take it; of a chart it is the version and the beginning of its digest. */
const COMMIT_LENGTH_MAX = 64

export const pickOf = ({ path, chart, version }: Pick<NamedSource, 'path' | 'chart' | 'version'>): SourcePick =>
  chart === undefined ? { path: path ?? '.' } : { chart, version }

/** All sources of a service at `at`, or at the last content of their repositories. `no_content`: one of them was never
 *  fetched; `failed`: a repository is not there, or a source cannot be opened. */
export async function openSources(
  { store, sources, instead = new Map() }: OpenSourcesDeps,
  { project, service }: ServiceId,
  spec: ServiceSpec,
  at: Readonly<Record<string, string>> | undefined,
): Promise<Opening> {
  const wanted = sourcesOf(spec)
  const found = new Map<string, StoredResource>()
  for (const name of new Set(wanted.map(({ repository }) => repository))) {
    const repository = await store.getResource({ kind: 'Repository', project, name })
    if (repository !== null) found.set(name, repository)
  }
  const missing = [...new Set(wanted.map(({ repository }) => repository))].filter((name) => !found.has(name) && !instead.has(name)).sort()
  if (missing.length > 0) {
    const known = (await store.listResources('Repository', { limit: NAMES_LOOKED_MAX, project })).items.map(({ name }) => name)
    const near = missing.length === 1 ? nearest(missing[0] ?? '', known) : null
    const message = `repository ${missing.join(', ')} does not exist in project ${project}${near === null ? '' : `; did you mean ${near}?`}`
    return { kind: 'failed', commit: null, error: { code: 'repository_missing', message, problems: [] } }
  }
  const boundary = await readProject(store, project)
  const refused = boundary === null ? [] : refusedBy(boundary, service, spec, found)
  if (refused.length > 0) {
    const message = refused.map(({ path, message }) => `${path}: ${message}`).join('; ')
    return { kind: 'failed', commit: null, error: { code: 'project_refused', message, problems: refused } }
  }
  const revisions: Record<string, string> = {}
  const handles = new Map<string, { key: SourceKey; source: ContentSource }>()
  for (const [name, { key, revision }] of instead) {
    revisions[name] = revision
    handles.set(name, { key, source: sources.open(key) })
  }
  for (const [name, { uid, spec: text }] of found) {
    if (handles.has(name)) continue
    const revision = at?.[name] ?? (await store.repositoryState(project, name)).commit
    if (revision === null) return { kind: 'no_content' }
    const key = { uid, project, place: placeOf(repositorySpecSchema.parse(JSON.parse(text))) }
    const source = sources.open(key)
    if (!(await source.has(revision))) return { kind: 'no_content' }
    revisions[name] = revision
    handles.set(name, { key, source })
  }
  const hasAll = async () => {
    for (const [name, { source }] of handles) if (!(await source.has(revisions[name] ?? ''))) return false
    return true
  }
  const writtenBy = async (): Promise<WrittenBy> => {
    const name = wanted[0]?.repository ?? ''
    const note = await handles
      .get(name)
      ?.source.noteOf?.(revisions[name] ?? '')
      .catch(() => null)
    return writtenByOf(note ?? undefined)
  }
  const opened: ServiceSource[] = []
  try {
    for (const one of wanted) {
      const handle = handles.get(one.repository)
      if (handle === undefined) continue
      const { name, render, filesOnly = false } = one
      const at = { key: handle.key, revision: revisions[one.repository] ?? '', pick: pickOf(one) }
      opened.push({
        name,
        label: name ?? one.repository,
        ...at,
        opened: await handle.source.open(at.revision, at.pick),
        render,
        filesOnly,
      })
    }
  } catch (error) {
    if (!(error instanceof AppError)) throw error
    if (error.code === 'git_failed' && !(await hasAll())) return { kind: 'no_content' }
    const commit = revisions[wanted[0]?.repository ?? ''] ?? null
    return { kind: 'failed', commit, written: await writtenBy(), error: renderErrorOf(error) }
  }
  return {
    kind: 'opened',
    sources: opened,
    project: boundary,
    release: { commit: (opened[0]?.opened.version ?? '').slice(0, COMMIT_LENGTH_MAX), revisions },
    writtenBy,
    isGone: async ({ clusters }) =>
      [...clusters.values()].some(({ result }) => result instanceof AppError && result.code === 'git_failed') && !(await hasAll()),
  }
}

/** PJ8: what a Project of today refuses of a service and of its repositories, which may have been written before. */
function refusedBy(
  project: NamedProject,
  service: string,
  spec: ServiceSpec,
  repositories: ReadonlyMap<string, StoredResource>,
): Problem[] {
  const head = (name: string) => ({ apiVersion: API_VERSION, metadata: { name, project: project.name, labels: {} } }) as const
  const own = resourceProblems(project, { ...head(service), kind: 'Service', spec })
  const ofRepositories = [...repositories].flatMap(([name, { spec: text }]) => {
    const problems = resourceProblems(project, { ...head(name), kind: 'Repository', spec: repositorySpecSchema.parse(JSON.parse(text)) })
    return problems.map((problem) => ({ ...problem, path: `repository ${name}: ${problem.path}` }))
  })
  return [...own, ...ofRepositories]
}
