// Queries that people of the fleet saved for each other, and examples.
import type { SavedQueryView } from '../../../../shared/model/saved-queries.ts'
import { more } from '../words/later.ts'
import { call } from './api.ts'
import { useResource } from './resource.ts'

const { examples } = more.query

export const EXAMPLES: readonly { name: string; sql: string }[] = [
  {
    name: examples.degraded,
    sql: "SELECT cluster, project, service, reason, since_ms, message\nFROM placements\nWHERE health = 'Degraded'\nORDER BY since_ms",
  },
  {
    name: examples.images,
    sql: 'SELECT image, count(*) AS objects, count(DISTINCT cluster) AS clusters\nFROM images\nGROUP BY image\nORDER BY objects DESC',
  },
  {
    name: examples.drift,
    sql: 'SELECT manager, action, count(*) AS objects, max(detected_ms) AS newest_ms\nFROM drifts\nGROUP BY manager, action\nORDER BY objects DESC',
  },
  {
    name: examples.behind,
    sql: 'SELECT cluster, project, service, desired_commit, applied_commit\nFROM placements\nWHERE applied_commit IS NULL OR applied_commit <> desired_commit\nORDER BY cluster',
  },
  {
    name: examples.versions,
    sql: 'SELECT kubernetes_version, count(*) AS clusters, sum(node_count) AS nodes\nFROM clusters\nGROUP BY kubernetes_version\nORDER BY kubernetes_version',
  },
  {
    name: examples.commits,
    sql: 'SELECT project, repository, substr("commit", 1, 7) AS sha, author, subject, seen_ms\nFROM commits\nORDER BY seen_ms DESC\nLIMIT 100',
  },
]

/** The queries of everybody, by name. */
export const useSavedQueries = () =>
  useResource(
    'saved queries',
    (signal) => call('GET /saved-queries', { signal }),
    ({ topic, name }) => topic === 'resource' && (name?.startsWith('SavedQuery/') ?? true),
  )

export const saveQuery = ({ name, ...query }: Pick<SavedQueryView, 'name' | 'sql' | 'about'>, reason: string): Promise<SavedQueryView> =>
  call('PUT /saved-queries/:name', { params: { name }, body: query, reason })
export const deleteQuery = (name: string, reason: string): Promise<null> =>
  call('DELETE /saved-queries/:name', { params: { name }, reason })
