// Lists that are read page by page while agents report, clusters come and go, and numbers are given anew.
import { afterEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { sql } from 'kysely'
import type { StatusWrite } from '../../server/fleet/records.ts'
import type { ObjectFilter, Position } from '../../server/store/queries/fleet-queries.ts'
import { FleetQueryEngine } from '../../server/store/queries/fleet-query-engine.ts'
import { SQLITE_COSTS } from '../../server/store/queries/fleet-query-plan.ts'
import type { Store } from '../../server/store/store.ts'
import type { Connections } from '../../server/store/store-db.ts'
import { HEALTH_WORDS } from '../../shared/kube/health-object.ts'
import { OBJECT_SORTS } from '../../shared/model/views.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { joinInput, makeToken } from '../support/store-fixtures.ts'
import { STORES } from '../support/stores.ts'

setDefaultTimeout(60_000)
let store: Store | null = null
let connections: Connections | null = null
afterEach(async () => {
  await store?.close()
  await connections?.close()
  store = connections = null
})

const hex = (number: number): string => number.toString(16).padStart(16, '0')
type Random = () => number
const pick = <T>(random: Random, items: readonly T[]): T => items[Math.floor(random() * items.length)] as T

/** A cluster by its number: names are in another order than numbers. */
async function join(into: Store, number: number): Promise<ClusterId> {
  const tokenHash = await makeToken(into, `t${number}`, 1, { env: number % 2 === 0 ? 'prod' : 'dev' })
  const ids = { clusterId: `c-${hex(number)}` as ClusterId, agentId: `a-${hex(number)}` as never }
  const names = {
    clusterName: `cluster-${(number * 37) % 101}-${number}`,
    publicKey: `key-${number}`,
    recipient: `r-${number}`,
    clusterUid: `uid-${number}`,
  }
  const joined = await into.join(joinInput('0', { tokenHash, ...names, ...ids }))
  if (joined.kind !== 'joined') throw new Error(joined.kind)
  return joined.agent.clusterId
}

const NAMES = Array.from({ length: 12 }, (_, n) => `shop/web/apps/Deployment/web/part-${(n * 5) % 12}`)
const row = (random: Random, key: string, rev: number): StatusWrite => ({
  kind: 'object',
  key,
  rev,
  doc: {
    sync: 'Synced',
    health: pick(random, HEALTH_WORDS),
    reason: pick(random, ['Why', 'Because']),
    message: `m${Math.floor(random() * 4)}`,
    sinceMs: 100 + Math.floor(random() * 6),
  },
})

describe.each(STORES)('$name', (kind) => {
  const lists = kind.name === 'SQLite' ? 20 : 6
  test.each([
    ['as it comes', SQLITE_COSTS],
    ['walked in small steps', { ...SQLITE_COSTS, collectMax: -1, walkMax: 40 }],
  ])('QY2 what stays as it is comes exactly once, whatever else is written between two pages, %s', async (_, costs) => {
    const random = seededRandom(11)
    const place = await kind.place()
    const opened = await place.open()
    store = opened
    connections = await place.connect()
    const engine = new FleetQueryEngine(connections.reader, connections.engine, systemClock, costs)
    let rev = 1
    // Even clusters stay as they are; odd ones are written, deleted and joined again all the time.
    const clusters: ClusterId[] = []
    for (let number = 0; number < 14; number++) {
      const id = await join(opened, number)
      clusters.push(id)
      await opened.upsertStatus(
        id,
        NAMES.map((key) => row(random, key, rev++)),
        { complete: false, nowMs: 1 },
      )
    }
    let others = 14
    let written = 0
    const disturb = async () => {
      written++
      const id = pick(
        random,
        clusters.filter((_, n) => n % 2 === 1),
      )
      const known = (await opened.listClusters()).find(({ clusterId }) => clusterId === id)
      if (known !== undefined && random() < 0.1) {
        await opened.deleteCluster(known.name)
        clusters.push(await join(opened, others), await join(opened, others + 1))
        others += 2
      } else if (known !== undefined) {
        const rows = NAMES.filter(() => random() < 0.5).map((key) =>
          random() < 0.2 ? { kind: 'object' as const, key, rev: rev++, doc: null } : row(random, key, rev++),
        )
        await opened.upsertStatus(id, [...rows, row(random, `shop/new-${written % 5}//ConfigMap/x/a${written % 7}`, rev++)], {
          complete: false,
          nowMs: 1,
        })
      }
    }
    const stays = (name: string) => Number(name.split('-').at(-1)) % 2 === 0 && Number(name.split('-').at(-1)) < 14
    for (let n = 0; n < lists; n++) {
      const sort = pick(random, OBJECT_SORTS)
      const filter: ObjectFilter = pick<ObjectFilter>(random, [
        {},
        { health: ['Healthy', 'Degraded'] },
        { words: ['why'] },
        { kind: 'deployment' },
        { words: ['part', 'm1'] },
      ])
      const limit = 1 + Math.floor(random() * 20)
      const read = async (between: () => Promise<void>) => {
        const found: string[] = []
        for (let after: Position | null | undefined; after !== null; ) {
          const page: { items: Array<{ cluster: { name: string }; ref: { kind: string; name: string } }>; next: Position | null } =
            await engine.answer({
              kind: 'objects',
              query: { ...filter, sort, limit, after },
            })
          for (const { cluster, ref } of page.items) if (stays(cluster.name)) found.push(`${cluster.name} ${ref.kind} ${ref.name}`)
          after = page.next
          await between()
        }
        return found
      }
      const before = await read(async () => {})
      expect({ sort, filter, limit, found: await read(disturb) }).toEqual({ sort, filter, limit, found: before })
    }
    expect(written).toBeGreaterThan(30)
  })

  test('QY1 numbers that were collected and given anew mean what they mean now', async () => {
    const random = seededRandom(1)
    const place = await kind.place()
    store = await place.open()
    connections = await place.connect()
    const engine = new FleetQueryEngine(connections.reader, connections.engine, systemClock)
    const id = await join(store, 1)
    await store.upsertStatus(id, [row(random, NAMES[0] ?? '', 1)], { complete: false, nowMs: 1 })
    const names = async () =>
      (await engine.answer({ kind: 'objects', query: { sort: 'cluster', limit: 10 } })).items.map(({ ref }) => ref.name)
    expect(await names()).toEqual(['part-0'])
    await sql`update names set name = 'other', key = 'shop/web/apps/Deployment/web/other'`.execute(connections.writer)
    await sql`update counters set value = value + 1 where name = 'dictionary'`.execute(connections.writer)
    expect(await names()).toEqual(['other'])
  })
})
