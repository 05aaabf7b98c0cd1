// Services of which agents report that a person is needed: drift that comes back after each correction, and revisions
// that wait for a sync. One walk over the index of states, whatever else there is in the fleet.
import { sql } from 'kysely'
import { serviceInScope } from '../../fleet/rights.ts'
import type { ReadDb } from '../store-db.ts'
import type { FleetDictionary } from './fleet-dictionary.ts'
import { limiting } from './fleet-filter.ts'
import { ATTENTION_MAX, type AttentionQuery, type FleetPage, type WaitingService } from './fleet-queries.ts'

/** By the kind of the status row: the reason in its state. */
const REASONS = { drift: 'contested', service: 'ManualSync' } as const
const KINDS = { drift: 'contested', service: 'sync' } as const
const CLUSTERS_NAMED = 3

/** Rows of one name: a service, or an object that drifted. */
interface Row {
  name_id: number
  cluster_no: number
  since: number | string | null
}

export async function readAttention(
  db: ReadDb,
  dictionary: FleetDictionary,
  { scope }: AttentionQuery,
): Promise<FleetPage<WaitingService>> {
  const wanted = new Set<string>(Object.values(REASONS))
  const states = [...dictionary.states.values()].filter(({ reason }) => wanted.has(reason)).map(({ id }) => id)
  if (states.length === 0) return { items: [], next: null }
  const rows: Row[] = await db
    .selectFrom('status_rows')
    .select(['name_id', 'cluster_no', sql<number | string | null>`since_ms`.as('since')])
    .where('state_id', 'in', states)
    .execute()
  const limited = limiting(scope)
  const found = new Map<string, WaitingService & { numbers: Set<number> }>()
  for (const { name_id, cluster_no, since } of rows) {
    const [name, cluster] = [dictionary.namesById.get(name_id), dictionary.clustersByNo.get(cluster_no)]
    if (name === undefined || cluster === undefined || (name.kind !== 'drift' && name.kind !== 'service')) continue
    const { project, service } = name
    if (limited !== null && !serviceInScope(limited, { project, service }, cluster.labels)) continue
    const kind = KINDS[name.kind]
    const key = `${kind} ${project}/${service}`
    const one = found.get(key) ?? {
      kind,
      project,
      service,
      objects: 0,
      clusters: { count: 0, first: [] },
      sinceMs: null,
      numbers: new Set(),
    }
    one.objects += 1
    one.numbers.add(cluster_no)
    const sinceMs = since === null ? null : Number(since)
    if (sinceMs !== null && (one.sinceMs === null || sinceMs < one.sinceMs)) one.sinceMs = sinceMs
    found.set(key, one)
  }
  const oldest = [...found.values()].sort((a, b) => (a.sinceMs ?? 0) - (b.sinceMs ?? 0)).slice(0, ATTENTION_MAX)
  const items = oldest.map(({ numbers, ...one }): WaitingService => {
    return { ...one, clusters: { count: numbers.size, first: firstNames(numbers, dictionary) } }
  })
  return { items, next: null }
}

function firstNames(numbers: ReadonlySet<number>, { clustersByNo }: FleetDictionary): string[] {
  return [...numbers]
    .flatMap((no) => clustersByNo.get(no) ?? [])
    .sort((a, b) => a.rank - b.rank)
    .slice(0, CLUSTERS_NAMED)
    .map(({ name }) => name)
}
