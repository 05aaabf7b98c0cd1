// Queries that this browser remembers, and the ones that everybody has.
import { signal } from '@preact/signals'
import { more } from '../words/later.ts'

const { examples } = more.query

export interface SavedQuery {
  name: string
  sql: string
}

export const EXAMPLES: readonly SavedQuery[] = [
  {
    name: examples.degraded,
    sql: "SELECT cluster, project, service, reason, message, since_ms\nFROM placements\nWHERE health = 'Degraded'\nORDER BY since_ms",
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

const KEY = 'skerry-queries'
const SAVED_MAX = 50

function read(): SavedQuery[] {
  try {
    const held: unknown = JSON.parse(localStorage.getItem(KEY) ?? '[]')
    return Array.isArray(held) ? held.filter((one): one is SavedQuery => typeof one?.name === 'string' && typeof one?.sql === 'string') : []
  } catch {
    return []
  }
}

export const savedQueries = signal<readonly SavedQuery[]>(read())

function keep(queries: readonly SavedQuery[]): void {
  savedQueries.value = queries.slice(-SAVED_MAX)
  localStorage.setItem(KEY, JSON.stringify(savedQueries.value))
}

export const saveQuery = (query: SavedQuery): void => keep([...savedQueries.value.filter(({ name }) => name !== query.name), query])
export const forgetQuery = (name: string): void => keep(savedQueries.value.filter((one) => one.name !== name))
