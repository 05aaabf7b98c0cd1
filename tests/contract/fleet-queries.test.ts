// Fleet queries on both databases: whatever is asked, pages put together are what a filter and a sort over all rows
// give.
import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { Kysely } from 'kysely'
import type { FleetShape } from '../../scripts/benchmarks/fleet-rows.ts'
import { fillPostgres, fillSqlite } from '../../scripts/benchmarks/store-fleet.ts'
import type { FailingClusters } from '../../server/fleet/records.ts'
import { isTarget } from '../../server/fleet/targeting.ts'
import { sqliteDialect } from '../../server/store/engines/sqlite-dialect.ts'
import type {
  ObjectFilter,
  ObjectQuery,
  PlacementFacts,
  PlacementFilter,
  Position,
  UnrenderedFacts,
} from '../../server/store/queries/fleet-queries.ts'
import { FleetQueryEngine } from '../../server/store/queries/fleet-query-engine.ts'
import { type Costs, SQLITE_COSTS } from '../../server/store/queries/fleet-query-plan.ts'
import type { Store } from '../../server/store/store.ts'
import type { Connections } from '../../server/store/store-db.ts'
import type { Tables } from '../../server/store/tables.ts'
import { openSqlite, type SQLQueryBindings } from '../../shared/adapters/sqlite.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { HEALTH_WORDS } from '../../shared/kube/health-object.ts'
import type { LabelSelector } from '../../shared/model/labels.ts'
import { serviceSpecSchema } from '../../shared/model/resources.ts'
import { SYNC_WORDS } from '../../shared/model/status.ts'
import { OBJECT_SORTS, PLACEMENT_SORTS } from '../../shared/model/views.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { type ServiceId, serviceKey } from '../../shared/runtime/ids.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { createTestAdmin } from '../support/admin-app.ts'
import { inLong } from '../support/extent.ts'
import { NaiveFleet } from '../support/naive-fleet.ts'
import { STORES, type StoreKind } from '../support/stores.ts'
import { tempDir } from '../support/temp-dir.ts'

setDefaultTimeout(240_000)
const NOW_MS = 1_790_000_000_000
const open: Connections[] = []
afterEach(async () => {
  for (const connections of open.splice(0)) await connections.close()
})

/** What decides between the ways an answer is found: as in production, nothing collected, hardly anything walked. */
const COSTS: Record<string, Costs> = {
  'as it comes': SQLITE_COSTS,
  'always walked': { ...SQLITE_COSTS, collectMax: -1, placementsCollect: 0 },
  'walked in small steps': { ...SQLITE_COSTS, collectMax: -1, walkMax: 300, placementsCollect: 0, placementsWalk: 50 },
  'now and then collected': { ...SQLITE_COSTS, collectMax: 150, walkMax: 2_000, placementsCollect: 40, placementsWalk: 100 },
}

/** `fail`: makes services fail before queries begin. */
async function fleet(kind: StoreKind, shape: FleetShape, fail?: (store: Store, naive: NaiveFleet) => Promise<void>) {
  const place = await kind.place()
  await (kind.name === 'SQLite' ? fillSqlite(place.at, shape) : fillPostgres(place.at, shape))
  const naive = new NaiveFleet(shape)
  if (fail !== undefined) {
    const store = await place.open()
    await fail(store, naive)
    await store.close()
  }
  const connections = await place.connect()
  open.push(connections)
  return { connections, naive }
}

/** Services that cannot be rendered: for all their targets, for some, for more than are named; and ones that have rows
 *  there. */
async function failServices(random: Random, store: Store, naive: NaiveFleet, { withHeld = true } = {}): Promise<void> {
  const projects = [...new Set(naive.placements.map(({ project }) => project))]
  for (let n = 0; n < 4; n++) {
    const { selector, exclude } = { selector: randomSelector(random), exclude: random() < 0.3 ? [randomSelector(random)] : [] }
    const id = { project: pick(random, projects), service: `${pick(random, ['a', 'm', 'z'])}-failing-${n}` }
    const spec = serviceSpecSchema.parse({ source: { repository: 'apps', path: 'x' }, targets: { selector, exclude } })
    await store.applyResource(
      { kind: 'Service', project: id.project, name: id.service },
      { labels: {}, spec: canonicalJson(spec), nowMs: 1 },
    )
    const targets = naive.clusters
      .filter(({ labels }) => isTarget(labels, { selector, exclude }))
      .map(({ name }) => name)
      .sort()
    const named = random() < 0.5 ? targets.length : Math.floor(random() * targets.length)
    await setFailing(store, id, { without: targets.slice(0, named), keeping: [], moreWithout: targets.length - named })
    for (const cluster of targets) naive.addUnrendered(cluster, id)
  }
  if (!withHeld) return
  // It has a row after all: an order to remove what it had.
  const held = pick(
    random,
    naive.placements.filter(({ digest }) => digest !== ''),
  )
  await setFailing(store, held, { without: [held.cluster], keeping: [], moreWithout: 0 })
}

const setFailing = (store: Store, id: ServiceId, clusters: Pick<FailingClusters, 'without' | 'keeping' | 'moreWithout'>) =>
  store.setRenderState(id, {
    ...{ commit: null, generation: 1, digest: null, objectCount: 0, renderedMs: null },
    error: {
      code: 'render_failed',
      message: 'no',
      problems: [],
      sinceMs: 5,
      failing: [{ code: 'render_failed', message: 'no', ...clusters }],
    },
  })
const idOf = (facts: PlacementFacts | UnrenderedFacts): ServiceId => ('desired' in facts ? facts.desired : facts.id)

type Random = () => number
const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)] as T
const some = <T>(random: Random, items: readonly T[]): T[] => items.filter(() => random() < 0.4)

function randomSelector(random: Random): LabelSelector {
  return pick<LabelSelector>(random, [
    { matchLabels: { env: 'prod' } },
    { matchExpressions: [{ key: 'env', operator: 'NotIn', values: ['prod', 'dev'] }] },
    { matchExpressions: [{ key: 'ring', operator: 'In', values: ['0', '1'] }] },
    { matchExpressions: [{ key: 'gpu', operator: 'DoesNotExist' }] },
    { matchExpressions: [{ key: 'gpu', operator: 'Exists' }] },
  ])
}

function randomObjects(random: Random, naive: NaiveFleet): ObjectFilter {
  const one = pick(random, naive.objects)
  const chance = (share: number) => random() < share
  const word = () => pick(random, [pick(random, naive.words), one.cluster.slice(0, 4), one.name, 'nothing-like-it', '0', 'e']).toLowerCase()
  const words = Array.from({ length: 1 + Math.floor(random() * 3) }, word).filter(Boolean)
  return {
    ...(chance(0.15) ? { cluster: one.cluster } : {}),
    ...(chance(0.25) ? { labels: randomSelector(random) } : {}),
    ...(chance(0.1) ? { project: one.project } : {}),
    ...(chance(0.2) ? { service: one.service } : {}),
    ...(chance(0.15) ? { kind: chance(0.5) ? one.kind : one.kind.toLowerCase() } : {}),
    ...(chance(0.1) ? { group: one.group } : {}),
    ...(chance(0.1) ? { namespace: one.namespace } : {}),
    ...(chance(0.15) ? { name: one.name } : {}),
    ...(chance(0.1) ? { sync: some(random, SYNC_WORDS) } : {}),
    ...(chance(0.25) ? { health: some(random, HEALTH_WORDS) } : {}),
    ...(chance(0.1) ? { reason: one.reason } : {}),
    ...(chance(0.1) ? { image: pick(random, ['part-0', 'web/', 'sha256:1', 'none', '<1.5', 'web>=2']) } : {}),
    ...(chance(0.1) ? { drift: 'open' as const } : {}),
    ...(chance(0.35) ? { words } : {}),
  }
}

function randomPlacements(random: Random, naive: NaiveFleet): PlacementFilter {
  const one = pick(random, naive.placements)
  const chance = (share: number) => random() < share
  return {
    ...(chance(0.15) ? { cluster: one.cluster } : {}),
    ...(chance(0.25) ? { labels: randomSelector(random) } : {}),
    ...(chance(0.2) ? { project: one.project } : {}),
    ...(chance(0.2) ? { service: one.service } : {}),
    ...(chance(0.2) ? { sync: some(random, SYNC_WORDS) } : {}),
    ...(chance(0.2) ? { health: some(random, HEALTH_WORDS) } : {}),
    ...(one.digest !== '' && chance(0.15) ? { revision: one.digest.slice(0, 6) } : {}),
    ...(chance(0.3) ? { words: [pick(random, [one.service.slice(0, 3), one.cluster.slice(0, 5), 'zzz'])] } : {}),
  }
}

/** All pages; a page may be empty and go on, but none is too long, and the list ends. */
async function walk<T>(limit: number, ask: (after: Position | undefined) => Promise<{ items: T[]; next: Position | null }>): Promise<T[]> {
  const all: T[] = []
  let after: Position | undefined
  for (let pages = 0; ; pages++) {
    const { items, next } = await ask(after)
    expect(items.length).toBeLessThanOrEqual(limit)
    all.push(...items)
    if (next === null) return all
    // As it travels in a token.
    after = JSON.parse(JSON.stringify(next)) as Position
    if (pages > 5_000) throw new Error('the list does not end')
  }
}

describe.each(STORES)('$name', (kind) => {
  const isSqlite = kind.name === 'SQLite'
  const fleets = isSqlite ? inLong(5, 2) : 1
  /** Each way to find an answer is asked the same, of the same fleet: making the fleet and filtering all of it by hand
   *  cost more than the answers. */
  const enginesOn = ({ reader, engine }: Connections) =>
    Object.entries(COSTS).map(([name, costs]) => ({ name, engine: new FleetQueryEngine(reader, engine, systemClock, costs) }))

  test('QY1 QY2 objects by any filter in any order, whichever way they are found: pages put together are filter and sort of all', async () => {
    const random = seededRandom(isSqlite ? 1 : 2)
    let found = 0
    for (let n = 0; n < fleets; n++) {
      const shape = {
        clusters: 1 + Math.floor(random() * 40),
        objects: 20 + Math.floor(random() * 60),
        nowMs: NOW_MS,
        seed: n,
        tickMs: n % 2 === 0 ? 1 : 86_400_000 * 20,
      }
      const { connections, naive } = await fleet(kind, shape)
      const engines = enginesOn(connections)
      for (let q = 0; q < 40; q++) {
        const query = { ...randomObjects(random, naive), sort: pick(random, OBJECT_SORTS) } satisfies Omit<ObjectQuery, 'limit'>
        const expected = naive.objectsOf(query)
        const limit = expected.length > 400 ? 100 + Math.floor(random() * 400) : 1 + Math.floor(random() * 60)
        for (const { name, engine } of engines) {
          const items = await walk(limit, (after) => engine.answer({ kind: 'objects', query: { ...query, limit, after } }))
          const keys = items.map(
            ({ cluster, id, ref }) => `${cluster.name} ${id.project}/${id.service}/${ref.group}/${ref.kind}/${ref.namespace}/${ref.name}`,
          )
          expect({ n, name, query, limit, keys }).toEqual({ n, name, query, limit, keys: expected })
        }
        found += expected.length
      }
      await connections.close()
      open.splice(0)
    }
    expect(found).toBeGreaterThan(1_000)
  })

  test('QY1 QY2 QY7 services in clusters by any filter in any order, whichever way they are found', async () => {
    const random = seededRandom(isSqlite ? 3 : 4)
    for (let n = 0; n < fleets; n++) {
      const shape = { clusters: 1 + Math.floor(random() * 60), objects: 20, nowMs: NOW_MS, seed: 100 + n }
      // Without failing services first: what holds for rows alone.
      const { connections, naive } = await fleet(kind, shape, n === 0 && isSqlite ? undefined : (...of) => failServices(random, ...of))
      const engines = enginesOn(connections)
      for (let q = 0; q < 30; q++) {
        const query = { ...randomPlacements(random, naive), sort: pick(random, PLACEMENT_SORTS) }
        const expected = naive.placementsOf(query)
        const limit = 1 + Math.floor(random() * 200)
        for (const { name, engine } of engines) {
          const items = await walk(limit, (after) => engine.answer({ kind: 'placements', query: { ...query, limit, after } }))
          const keys = items.map((facts) => `${facts.cluster.name} ${serviceKey(idOf(facts))}`)
          expect({ n, name, query, limit, keys }).toEqual({ n, name, query, limit, keys: expected })
        }
      }
      await connections.close()
      open.splice(0)
    }
  })
})

describe.each(STORES)('$name', (kind) => {
  test('AP8 QY1 QY7 RU2 lists show of each cluster, and of each service in it, what is shown of it alone, and counts have the same', async () => {
    const place = await kind.place()
    const shape = { clusters: 25, objects: 40, nowMs: NOW_MS, seed: 7 }
    await (kind.name === 'SQLite' ? fillSqlite(place.at, shape) : fillPostgres(place.at, shape))
    const store = await place.open()
    await failServices(seededRandom(5), store, new NaiveFleet(shape), { withHeld: false })
    const admin = await createTestAdmin({ store }, NOW_MS)
    const get = async (path: string) => (await admin.call('GET', `/api/v1/${path}`)).body as { items: Array<Record<string, unknown>> }
    const { items } = (await get('clusters?limit=500')) as unknown as {
      items: Array<{ metadata: { name: string; labels: Record<string, string> } }>
    }
    expect(items).toHaveLength(25)
    const pages = async (query: string): Promise<Array<Record<string, unknown>>> => {
      const all: Array<Record<string, unknown>> = []
      for (let next: unknown = ''; next !== null; ) {
        const page = (await get(`${query}&continue=${next}`)) as unknown as {
          items: Array<Record<string, unknown>>
          continue: string | null
        }
        all.push(...page.items)
        next = page.continue
      }
      return all
    }
    const placements = await pages('placements?limit=77')
    const words = new Set<unknown>()
    for (const item of items) {
      const { name } = item.metadata
      expect(item as unknown).toEqual(await get(`clusters/${name}`))
      expect(placements.filter(({ cluster }) => cluster === name)).toEqual((await get(`clusters/${name}/services`)).items)
      words.add((item as unknown as { status: { reason: string } }).status.reason)
    }
    expect(words.size).toBeGreaterThan(2)
    const labelsOf = new Map(items.map(({ metadata }) => [metadata.name, Object.entries(metadata.labels)]))
    const keysOf = {
      state: (one: Record<string, unknown>) => [`${one['sync']}/${one['health']}`],
      service: (one: Record<string, unknown>) => [`${one['project']}/${one['service']}`],
      label: (one: Record<string, unknown>) => (labelsOf.get(String(one['cluster'])) ?? []).map(([key, value]) => `${key}=${value}`),
    }
    expect(placements.filter(({ reason }) => reason === 'RenderFailed').length).toBeGreaterThan(10)
    for (const [by, keys] of Object.entries(keysOf)) {
      const counted = Object.groupBy(placements.flatMap(keys), (key) => key)
      const expected = Object.entries(counted)
        .map(([key, some]) => [key, some?.length ?? 0] as const)
        .sort()
      const found = (await pages(`counts?by=${by}&limit=5`)).map(({ key, count }) => [key, count] as const)
      expect([by, found.filter(([, count]) => count !== 0).sort()] as unknown).toEqual([by, expected])
      const most = [...expected].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1)).slice(0, 3)
      if (by !== 'state')
        expect((await get(`counts?by=${by}&limit=3&sort=count`)).items.map(({ key, count }) => [key, count])).toEqual(
          most.map((one) => [...one]),
        )
    }
    await store.close()
  })
})

test.each([true, false])('QY3 no statement looks at all rows of status or of services in clusters; analysed: %p', async (analysed) => {
  const path = join(tempDir(), 'fleet.sqlite')
  await fillSqlite(path, { clusters: 40, objects: 60, nowMs: NOW_MS })
  const db = openSqlite(path)
  db.run(analysed ? 'analyze' : 'delete from sqlite_stat1')
  const statements = new Map<string, readonly unknown[]>()
  const reader = new Kysely<Tables>({
    dialect: sqliteDialect(path, { readonly: true }),
    log: ({ query }) => void statements.set(query.sql, query.parameters),
  })
  const naive = new NaiveFleet({ clusters: 40, objects: 60, nowMs: NOW_MS })
  const random = seededRandom(5)
  for (const costs of Object.values(COSTS)) {
    const engine = new FleetQueryEngine(reader, 'sqlite', systemClock, costs)
    for (let q = 0; q < 100; q++) {
      await engine.answer({ kind: 'objects', query: { ...randomObjects(random, naive), sort: pick(random, OBJECT_SORTS), limit: 20 } })
      const narrowed = { ...randomPlacements(random, naive), health: ['Degraded' as const] }
      await engine.answer({ kind: 'placements', query: { ...narrowed, sort: pick(random, PLACEMENT_SORTS), limit: 20 } })
      await engine.answer({ kind: 'clusters', query: { version: '0.5', sort: pick(random, ['name', 'seen']), limit: 20, nowMs: NOW_MS } })
    }
  }
  const plans = [...statements].filter(([text]) => /status_rows|desired/.test(text))
  expect(plans.length).toBeGreaterThan(12)
  for (const [text, parameters] of plans) {
    const steps = db.query<{ detail: string }, SQLQueryBindings[]>(`explain query plan ${text}`).all(...(parameters as SQLQueryBindings[]))
    const scans = steps.map(({ detail }) => detail).filter((detail) => /^SCAN (status_rows|desired|s)\b/.test(detail))
    expect({ text, scans }).toEqual({ text, scans: [] })
  }
  await reader.destroy()
  db.close(true)
})
