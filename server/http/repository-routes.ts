// The commits of a repository, newest first: what each changed in which service, and what it broke.
import { Elysia } from 'elysia'
import { z } from 'zod'
import { type CommitView, commitViewSchema, writtenByOf } from '../../shared/model/commits.ts'
import { sourcesOf } from '../../shared/model/resources.ts'
import { listOf } from '../../shared/model/views.ts'
import { nameSchema, type ServiceId } from '../../shared/runtime/ids.ts'
import { isLimited, type Scope, serviceInScope } from '../fleet/rights.ts'
import { parseServiceSpec } from '../ingest/known-specs.ts'
import type { Store } from '../store/store.ts'
import type { AdminDeps } from './deps.ts'
import { readToken, writeToken } from './fleet-query.ts'
import { continueQuery, limitQuery } from './query.ts'
import { keyNotFound } from './write-resource.ts'

const params = z.object({ project: nameSchema, name: nameSchema })
const query = z.object({ limit: limitQuery, continue: continueQuery })

export function repositoryRoutes({ store, authorizer, principal }: Pick<AdminDeps, 'store' | 'authorizer' | 'principal'>) {
  return new Elysia({ tags: ['repositories'] }).get(
    '/projects/:project/repositories/:name/commits',
    async ({ params: { project, name }, query: { limit, continue: token }, request }) => {
      const key = { kind: 'Repository', project, name } as const
      if ((await store.getResource(key)) === null) throw keyNotFound(key)
      const mark = { commits: [project, name] }
      const [seenMs, commit] = readToken(mark, 'newest', token) ?? []
      const before = seenMs === undefined ? undefined : { seenMs: Number(seenMs), commit: String(commit) }
      const seen = await store.commitsOfRepository(project, name, { before, limit: limit + 1 })
      const page = seen.slice(0, limit)
      const last = seen.length > limit ? page.at(-1) : undefined
      const readers = await readersOf(store, { project, name }, authorizer.scope(principal(request), 'read', 'Service'))
      const facts = await factsOf(store, { project, name, readers }, page)
      const views = page.map(({ authoredMs, ...one }): CommitView => {
        return { commit: one.commit, ...writtenByOf({ ...one, authoredMs }), authoredMs, seenMs: one.seenMs, ...facts(one.commit) }
      })
      return { items: views, continue: writeToken(mark, last === undefined ? null : [last.seenMs, last.commit]) }
    },
    {
      params,
      query,
      response: listOf(commitViewSchema),
      detail: { summary: 'Commits of a repository, newest first, with the services that each changed or broke' },
    },
  )
}

const PAGE = 500

/** Services that read the repository, as far as the caller may read them everywhere. */
async function readersOf(store: Store, { project, name }: { project: string; name: string }, scope: Scope): Promise<ServiceId[]> {
  const found: ServiceId[] = []
  for (let after: string | undefined; ; ) {
    const page = await store.listResources('Service', { project, limit: PAGE, ...(after === undefined ? {} : { after }) })
    for (const item of page.items) {
      const id = { project, service: item.name }
      if (!serviceInScope(scope, id) || isLimited(scope, id)) continue
      if (sourcesOf(parseServiceSpec(item.spec)).some(({ repository }) => repository === name)) found.push(id)
    }
    if (page.next === null) return found
    after = page.next
  }
}

interface Read {
  project: string
  name: string
  readers: readonly ServiceId[]
}
type Facts = Pick<CommitView, 'current' | 'changed' | 'failed'>

async function factsOf(
  store: Store,
  { project, name, readers }: Read,
  page: readonly { commit: string }[],
): Promise<(commit: string) => Facts> {
  const { commit: current } = await store.repositoryState(project, name)
  const services = readers.map(({ service }) => service)
  const commits = page.map(({ commit }) => commit)
  const revisions = commits.length === 0 ? [] : await store.revisionsFrom(project, services, commits)
  const isReader = new Set(services)
  const errors = (await store.renderErrors()).filter(({ id }) => id.project === project && isReader.has(id.service))
  return (commit) => ({
    current: commit === current,
    changed: newestOfEach(revisions.filter((one) => one.commits.includes(commit))).map(({ service, number, objectCount, given }) => {
      return { service, revision: number, objects: objectCount, clusters: given === 0 ? null : given }
    }),
    failed: errors
      .filter(({ error }) => error.at?.commit === commit)
      .map(({ id, error: { message, problems } }) => ({ service: id.service, message, problems })),
  })
}

/** A change of the spec renders the same commit again: the clusters of all its revisions are those of the commit. */
function newestOfEach<T extends { service: string; number: number; given: number }>(revisions: readonly T[]): T[] {
  const byService = new Map<string, T>()
  for (const one of revisions.toSorted((a, b) => a.number - b.number)) {
    const before = byService.get(one.service)
    byService.set(one.service, { ...one, given: Math.max(one.given, before?.given ?? 0) })
  }
  return [...byService.values()].sort((a, b) => (a.service < b.service ? -1 : 1))
}
