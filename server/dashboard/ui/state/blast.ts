// The reach of an action, by exact number and name: the services in clusters that the caller may read.

import type { Scope } from './actions.ts'
import { call, type Page } from './api.ts'
import type { PlacementView } from './reads.ts'

export interface Blast {
  /** Services, where one cluster is meant; clusters, where one service is; both otherwise. */
  names: string[]
  services: number
  clusters: number
  /** Services in clusters. */
  placements: number
  /** Clusters of which nothing is known now: they follow when they are back. */
  offline: number
  /** There are more than were read: numbers and names are those of the first. */
  isCut: boolean
}

const PAGE = 500
/** 10,000 rows: every cluster of a fleet with one service. */
const PAGES_MAX = 20
export const BLAST_MAX = PAGE * PAGES_MAX

export async function readBlast({ service, cluster }: Scope): Promise<Blast> {
  const query = { cluster, project: service?.project, service: service?.name, sort: 'cluster', limit: PAGE }
  const rows: PlacementView[] = []
  let next: string | null = null
  for (let page = 0; page < PAGES_MAX; page++) {
    const read: Page<PlacementView> = await call('GET /placements', { query: { ...query, continue: next } })
    rows.push(...read.items)
    next = read.continue
    if (next === null) break
  }
  const scope: Scope = { ...(service === undefined ? {} : { service }), ...(cluster === undefined ? {} : { cluster }) }
  return { ...blastOf(rows, scope), isCut: next !== null }
}

export function blastOf(
  rows: readonly Pick<PlacementView, 'project' | 'service' | 'cluster' | 'liveness'>[],
  { service, cluster }: Scope,
): Omit<Blast, 'isCut'> {
  const services = new Set(rows.map((row) => `${row.project}/${row.service}`))
  const clusters = new Set(rows.map((row) => row.cluster))
  const names =
    service === undefined && cluster === undefined
      ? rows.map((row) => `${row.cluster}: ${row.project}/${row.service}`)
      : cluster === undefined
        ? [...clusters]
        : [...services]
  return {
    names: names.sort(),
    services: services.size,
    clusters: clusters.size,
    placements: rows.length,
    offline: new Set(rows.filter(({ liveness }) => liveness.word !== 'Online').map((row) => row.cluster)).size,
  }
}
