// SQLite keeps no statistics of the fleet store, so a statement must be led by an index whatever the sizes: those that
// are run all the time are asked how they would be.
import { expect, setDefaultTimeout, test } from 'bun:test'
import { Kysely, type LogEvent } from 'kysely'
import { createReferenceStore } from '../../server/store/content/content-references.ts'
import { connectSqlite } from '../../server/store/engines/connections.ts'
import { sqliteDialect } from '../../server/store/engines/sqlite-dialect.ts'
import { createHistoryStore } from '../../server/store/status/status-history.ts'
import { createEventStore } from '../../server/store/status/store-events.ts'
import { createStatusStore } from '../../server/store/status/store-status.ts'
import type { Store } from '../../server/store/store.ts'
import { createAgentStore } from '../../server/store/store-agents.ts'
import { createStoreDb } from '../../server/store/store-db.ts'
import { createDesiredStore } from '../../server/store/store-desired.ts'
import { createResourceStore } from '../../server/store/store-resources.ts'
import type { Tables } from '../../server/store/tables.ts'
import { createRevisionStore } from '../../server/store/upkeep/revision-log.ts'
import { createUpkeepStore } from '../../server/store/upkeep/store-upkeep.ts'
import { keepBounds, RETENTION, UPKEEP_TASKS } from '../../server/store/upkeep/upkeep.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { joinCluster } from '../support/store-fixtures.ts'
import { SQLITE } from '../support/stores.ts'

setDefaultTimeout(30_000)

/** Tables that have a row for each object, placement or change of the fleet. */
const LARGE = [
  'status_rows',
  'names',
  'states',
  'desired',
  'events',
  'changes',
  'status_history',
  'clusters',
  'agents',
  'resources',
  'rollups',
]

/** Walks that are meant: from one end of a table, in the order of its key, up to a LIMIT; or once an hour. */
const MEANT: ReadonlyArray<readonly [table: string, part: string]> = [
  ['events', 'from "events" order by "id" desc limit ?'],
  ['changes', 'order by "id" limit ?'],
  ['rollups', 'where "n" = ? limit ?'],
]

/** Of a few clusters that are asked for, the resources of all. */
const ALL_RESOURCES = /^SEARCH resources .*\(kind=\? AND project=\?\)$/

test('UK6 statements that are run all the time are led by an index', async () => {
  const { at } = await SQLITE.place()
  await (await connectSqlite(at)).close()
  const statements = new Set<string>()
  const log = ({ query }: LogEvent) => void statements.add(query.sql)
  const connect = (readonly: boolean) => new Kysely<Tables>({ dialect: sqliteDialect(at, { readonly }), log })
  const [writer, reader] = [connect(false), connect(true)]
  const db = createStoreDb({ engine: 'sqlite', writer, reader, close: async () => {} }, systemClock)
  const random = seededRandom(1)
  const store = {
    ...createResourceStore(db, () => 'u'),
    ...createDesiredStore(db),
    ...createAgentStore(db),
    ...createEventStore(db),
    ...createStatusStore(db, { clock: systemClock, random }),
    ...createReferenceStore(db),
    ...createRevisionStore(db),
    ...createHistoryStore(db),
    ...createUpkeepStore(db, async () => {}),
  } as Store
  await useAll(store)
  await reader.destroy()
  await writer.destroy()

  const raw = openSqlite(at, { readonly: true })
  expect(raw.query("select name from sqlite_schema where name like 'sqlite_stat%'").all()).toEqual([])
  const scans: string[] = []
  const noted: string[] = []
  for (const statement of statements) {
    if (!/^\s*(select|with|insert|update|delete)\b/i.test(statement)) continue
    const plan = raw.prepare<{ detail: string }, never[]>(`explain query plan ${statement}`)
    const isWalk = (detail: string) =>
      LARGE.some((table) => new RegExp(`^SCAN (${table})\\b`).test(detail)) || (statement.includes(' in (') && ALL_RESOURCES.test(detail))
    const steps = plan.all().map(({ detail }) => detail)
    plan.finalize()
    // HI1: of the variants of one digest, and not of all digests.
    if (statement.startsWith('update "revision_variants"')) noted.push(steps.join('; '))
    const walks = steps.filter(isWalk).map((detail) => ({ detail }))
    for (const { detail } of walks) {
      const table = detail.split(' ')[1] ?? ''
      if (!MEANT.some(([of, part]) => of === table && statement.includes(part)))
        scans.push(`${detail}\n    ${statement.replace(/\s+/g, ' ').slice(0, 300)}`)
    }
  }
  raw.close()
  expect(statements.size).toBeGreaterThan(50)
  expect(scans.join('\n')).toBe('')
  expect(noted).toEqual([expect.stringContaining('number=? AND digest=?')])
})

async function useAll(store: Store): Promise<void> {
  const web = { project: 'default', service: 'web' }
  const [a, b] = [await joinCluster(store, 'a', { env: 'prod' }), await joinCluster(store, 'b')]
  const key = { kind: 'Service', project: 'default', name: 'web' } as const
  await store.applyResource(key, { labels: { a: 'b' }, spec: '{}', nowMs: 1 })
  await store.setRenderState(web, { commit: 'c', generation: 1, digest: 'd', objectCount: 1, renderedMs: 1, error: null })
  const doc = { commit: 'c', digest: 'd', count: 1, sync: syncOptionsSchema.parse({}), protect: false }
  const row = (clusterId: typeof a) => ({ ...web, clusterId, doc, setSha: 'sha', placedBy: '' })
  await store.publish([row(a), row(b)])
  await store.publish([
    { ...row(a), placedBy: 'x' },
    { ...row(b), setSha: 'other' },
  ])
  const words = { sync: 'Synced', health: 'Healthy', reason: '', message: '', sinceMs: 1 }
  const rows = (rev: number, health: string) => [
    { kind: 'cluster' as const, key: 'cluster', rev, doc: { agentVersion: '1', kubernetesVersion: '1', clusterUid: 'u', problems: [] } },
    { kind: 'service' as const, key: 'default/web', rev: rev + 1, doc: { ...words, health, objectCount: 1, healthyCount: 1 } },
    { kind: 'object' as const, key: 'default/web//ConfigMap/web/a', rev: rev + 2, doc: { ...words, health, images: ['a:1'] } },
    {
      kind: 'drift' as const,
      key: 'default/web//ConfigMap/web/a',
      rev: rev + 3,
      doc: { paths: [], manager: '', action: 'healed', detectedMs: 1, count: 1 },
    },
    { kind: 'event' as const, key: '1', rev: rev + 4, doc: { atMs: 1, type: 'Normal', reason: 'r', message: 'm' } },
  ]
  await store.upsertStatus(a, rows(1, 'Healthy'), { complete: false, nowMs: 1 })
  await store.upsertStatus(a, rows(11, 'Degraded'), { complete: true, nowMs: 60_000 })
  await store.upsertStatus(b, rows(1, 'Healthy'), { complete: { after: null, upTo: 'object/z' }, nowMs: 1 })
  await store.upsertStatus(b, rows(11, 'Degraded').slice(0, 2), { complete: { after: 'object/z', upTo: null }, nowMs: 60_000 })
  for (const query of [
    { clusterId: a },
    { key: 'default/web' },
    { keyPrefix: 'default/' },
    { clusterId: a, keyPrefix: 'default/web/' },
    {},
  ])
    await store.listStatus({ kind: 'service', ...query })
  await store.statusHistory(a, web, { limit: 5, before: 9 })
  await store.clusterHistory(a, { limit: 5, before: 9 })
  await store.listEvents({ cluster: 'cluster-a', sinceMs: 1, untilMs: 9, limit: 5 })
  await store.listObjectEvents({ cluster: 'cluster-a', object: 'ConfigMap/web/a', before: 9, limit: 5 })
  await store.revisions(web, { limit: 5, before: 9 })
  await store.referencedContent(['sha', 'none'])
  for (const query of [{}, { after: 1 }, { cluster: 'cluster-a' }, { project: 'default', service: 'web', after: 1 }, { trace: 'a' }])
    await store.listEvents({ limit: 5, ...query })
  await store.desiredInCluster(a)
  await store.desiredOfService(web)
  await store.desiredOf(web, [a, b])
  await store.desiredWith(web, 'd')
  await store.placementTotals(web)
  await store.newestVariants(web, ['d', 'e'])
  await store.addVariants(web, [{ digest: 'e', objectCount: 1 }])
  await store.findClusters({ ids: Array.from({ length: 40 }, () => a) }) // of a few, it would do so anyway
  await store.findClusters({ names: Array.from({ length: 40 }, () => 'cluster-a') })
  await store.clustersOfProject('default', [a])
  await store.markSeen(new Map([[a, 90_000]]), new Map([[a, 30]]))
  await store.clusterByName('cluster-a')
  await store.renderState(web)
  await store.deleteStatusOfService(b, web)
  const [tombstone] = await store.tombstones({ limit: 5 })
  await store.tombstones({ limit: 5, after: tombstone ?? { ...web, clusterId: b, ordinal: 1, hasStatus: true } })
  await store.dropTombstones([tombstone ?? { ...web, clusterId: b, ordinal: 1, hasStatus: true }])
  const keep = { ...keepBounds(RETENTION, 1e12), eventsMax: 0, historySinceMs: 1e12, revisionsMax: 0, changesMax: 1 }
  for (const task of UPKEEP_TASKS) await store.upkeep.slice(task, keep, null)
  await store.deleteCluster('cluster-a')
}
