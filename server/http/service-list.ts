// The list of services by what their own rows do not say: the worst words over their clusters, which are read from the
// counts. An answer costs a look at each service that the caller may read, and none at its clusters.
import { z } from 'zod'
import { HEALTH_WORDS } from '../../shared/kube/health-object.ts'
import { type PlacementWords, readWords } from '../../shared/model/placement-words.ts'
import { sourcesOf } from '../../shared/model/resources.ts'
import { HEALTH_WORST, SYNC_WORDS, SYNC_WORST } from '../../shared/model/status.ts'
import { SERVICE_SORTS } from '../../shared/model/views.ts'
import type { Clock } from '../../shared/runtime/clock.ts'
import { nameSchema, type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { createPace } from '../../shared/runtime/pace.ts'
import { isFine, severity } from '../fleet/placements-summary.ts'
import type { StoredResource } from '../fleet/records.ts'
import { isLimited, type Scope } from '../fleet/rights.ts'
import { parseServiceSpec } from '../ingest/known-specs.ts'
import type { Position } from '../store/queries/fleet-queries.ts'
import type { Store } from '../store/store.ts'
import { readToken, searchQuery, writeToken } from './fleet-query.ts'
import type { FleetViews } from './fleet-views.ts'
import { listQuery, selectorOf } from './query.ts'
import { createServiceSight } from './service-sight.ts'

const wordList = <const W extends readonly [string, ...string[]]>(words: W) =>
  z.preprocess(
    (value) => (typeof value === 'string' ? value.split(',') : value),
    z.array(z.enum(words)).min(1).optional().describe('Worst word over the clusters; several are joined by commas'),
  )

export const serviceListQuery = listQuery.extend({
  search: searchQuery.describe('Words that are all part of `project/name`'),
  repository: nameSchema.optional().describe('Only services that read this repository'),
  sync: wordList(SYNC_WORDS),
  health: wordList(HEALTH_WORDS),
  failing: z.enum(['true', 'false']).optional().describe('Only services whose last render failed, or only the others'),
  sort: z
    .enum(SERVICE_SORTS)
    .optional()
    .describe('`health`: failed renders, pending confirmations, then the worst words; `clusters`: the most first'),
})
export type ServiceListQuery = z.infer<typeof serviceListQuery>

/** Whether the plain list of resources answers it. */
export const isPlain = ({ search, repository, sync, health, failing, sort }: ServiceListQuery): boolean =>
  [search, repository, sync, health, failing, sort].every((one) => one === undefined)

export interface ServiceListDeps {
  store: Pick<Store, 'listResources' | 'listClusters' | 'getResource' | 'desiredOf' | 'renderErrors' | 'waitingServices' | 'rollups'>
  views: Pick<FleetViews, 'listed'>
  clock: Clock
}

interface Found {
  resource: StoredResource
  key: string
  words: PlacementWords
  isFailing: boolean
  /** A confirmation waits for a person. */
  isWaiting: boolean
  clusters: number
}

interface ServicePage {
  items: StoredResource[]
  total: number
  continue: string | null
}

const SCAN_ROWS = 500

export async function listServices(deps: ServiceListDeps, scope: Scope, query: ServiceListQuery): Promise<ServicePage> {
  const { limit, continue: token, sort = 'name', ...filter } = query
  const mark = { services: filter }
  const after = readToken(mark, sort, token)
  const found = (await readServices(deps, scope, query)).filter((one) => fits(one, query))
  const ordered = found.map((one) => ({ ...one, at: positionOf(one, sort) })).sort((a, b) => compare(a.at, b.at))
  const rest = after === undefined ? ordered : ordered.filter(({ at }) => compare(at, after) > 0)
  const page = rest.slice(0, limit)
  const last = rest.length > page.length ? page.at(-1) : undefined
  return { items: page.map(({ resource }) => resource), total: found.length, continue: writeToken(mark, last?.at ?? null) }
}

function fits({ words, isFailing }: Found, { sync, health, failing }: ServiceListQuery): boolean {
  return (
    (sync === undefined || sync.includes(words.sync)) &&
    (health === undefined || health.includes(words.health)) &&
    (failing === undefined || (failing === 'true') === isFailing)
  )
}

function positionOf({ key, words, isFailing, isWaiting, clusters }: Found, sort: NonNullable<ServiceListQuery['sort']>): Position {
  if (sort === 'name') return [key]
  if (sort === 'clusters') return [-clusters, key]
  return [isFailing ? -2 : isWaiting ? -1 : isFine(words) ? FINE : severity(words), key]
}
/** Behind everything that is not. */
const FINE = HEALTH_WORST.length * SYNC_WORST.length

const compare = ([a = '', b = '']: Position, [c = '', d = '']: Position): number =>
  a === c ? (b === d ? 0 : (b ?? '') < (d ?? '') ? -1 : 1) : (a ?? '') < (c ?? '') ? -1 : 1

async function readServices(deps: ServiceListDeps, scope: Scope, query: ServiceListQuery): Promise<Found[]> {
  const { store, views, clock } = deps
  const { project, search = [], repository } = query
  const selector = selectorOf(query.labelSelector)
  const pace = createPace(clock)
  const sight = createServiceSight(store, scope)
  const failing = new Set((await store.renderErrors()).map(({ id }) => serviceKey(id)))
  const waiting = new Set((await store.waitingServices()).map(serviceKey))
  const keep = ({ project: of, name, spec }: StoredResource): boolean =>
    search.every((word) => `${of}/${name}`.includes(word)) &&
    (repository === undefined || sourcesOf(parseServiceSpec(spec)).some((source) => source.repository === repository))
  const found: Found[] = []
  for (let after: string | undefined; ; ) {
    const where = {
      ...{ limit: SCAN_ROWS, scope, keep },
      ...(project === undefined ? {} : { project }),
      ...(selector === undefined ? {} : { selector }),
      ...(after === undefined ? {} : { after }),
    }
    const page = await store.listResources('Service', where)
    const counts = await store.rollups.ofKeys(
      'service',
      page.items.map((one) => serviceKey(idOf(one))),
    )
    for (const resource of page.items) {
      await pace()
      const id = idOf(resource)
      const key = serviceKey(id)
      if (isLimited(scope, id)) {
        // AZ4: the counts are of clusters that the caller may not know.
        if (!(await sight.shows(id, resource))) continue
        const [view] = await views.listed([resource], scope)
        if (view?.kind !== 'Service') continue
        const { sync, health, reason, clusters } = view.status
        found.push({
          resource,
          key,
          words: { sync, health },
          isFailing: reason === 'RenderFailed',
          isWaiting: waiting.has(key),
          clusters: clusters.total,
        })
      } else
        found.push({
          resource,
          key,
          isFailing: failing.has(key),
          isWaiting: waiting.has(key),
          ...worstOf(counts.get(key) ?? {}, failing.has(key)),
        })
    }
    if (page.next === null) return found
    after = page.next
  }
}

const idOf = ({ project, name }: StoredResource): ServiceId => ({ project, service: name })

/** A service that is placed nowhere has nothing bad. */
function worstOf(counts: Readonly<Record<string, number>>, isFailing: boolean): Pick<Found, 'words' | 'clusters'> {
  const words = Object.keys(counts).map(readWords)
  return {
    words: {
      sync: isFailing ? 'OutOfSync' : (SYNC_WORST.find((word) => words.some(({ sync }) => sync === word)) ?? 'Synced'),
      health: HEALTH_WORST.find((word) => words.some(({ health }) => health === word)) ?? 'Healthy',
    },
    clusters: Object.values(counts).reduce((sum, n) => sum + n, 0),
  }
}
