// What is not kept for ever, on both databases: it goes in slices, and what somebody needs stays.
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { sql } from 'kysely'
import { withCauses } from '../../server/fleet/history/causes.ts'
import type { Store } from '../../server/store/store.ts'
import { HISTORY_KEPT } from '../../server/store/upkeep/store-upkeep.ts'
import { type KeepBounds, keepBounds, type UpkeepSlice, type UpkeepTask } from '../../server/store/upkeep/upkeep.ts'
import type { ServiceRow } from '../../shared/model/desired.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { openTables } from '../support/old-store.ts'
import { joinCluster, makeToken, publishOne } from '../support/store-fixtures.ts'
import { STORES, type StorePlace } from '../support/stores.ts'

setDefaultTimeout(60_000) // PostgreSQL is started in one of them

const DAY_MS = 86_400_000
const NOW_MS = 1_000 * DAY_MS
const ALL = keepBounds({ eventsKept: 0, eventsDays: 0, historyDays: 0, revisionsKept: 0, changesKept: 0 }, NOW_MS)
const web = { project: 'default', service: 'web' }
const DOC = { commit: 'c', digest: 'd', count: 1, sync: syncOptionsSchema.parse({}), protect: false }

/** How many went with each slice. */
async function run(store: Store, task: UpkeepTask, keep: Partial<KeepBounds> = {}): Promise<number[]> {
  const gone: number[] = []
  let from: string | null = null
  do {
    const { removed, next, pauses = false }: UpkeepSlice = await store.upkeep.slice(task, { ...ALL, ...keep }, from)
    expect(next === null || next !== from || removed > 0 || pauses).toBe(true) // else it would never end
    gone.push(removed)
    from = next
  } while (from !== null)
  return gone.filter((count) => count > 0)
}

describe.each(STORES)('upkeep on $name', (kind) => {
  let place: StorePlace
  let store: Store
  beforeEach(async () => {
    place = await kind.place()
    store = await place.open()
  })
  afterEach(() => store.close())

  const select = async (statement: string): Promise<unknown[]> => {
    const db = openTables(kind, place)
    try {
      return (await sql.raw<unknown>(statement).execute(db)).rows
    } finally {
      await db.destroy()
    }
  }
  const event = (message: string, atMs: number) => ({
    ...{ atMs, type: 'Normal' as const, reason: 'R', message, cluster: null, project: null, service: null, object: null },
  })
  const messages = async () => (await store.listEvents({ limit: 2_000 })).map(({ message }) => message)

  test('ST8 UK1 the newest events are kept, older ones go some at a time', async () => {
    await store.appendEvents(Array.from({ length: 1_203 }, (_, i) => event(String(i), NOW_MS)))
    expect(await run(store, 'events')).toEqual([])
    expect(await run(store, 'events', { eventsMax: 3 })).toEqual([200, 200, 200, 200, 200, 200])
    expect(await messages()).toEqual(['1200', '1201', '1202'])
    expect(await run(store, 'events', { eventsMax: 3 })).toEqual([])
  })

  test('UK1 events of before a time go, also behind one whose clock is ahead', async () => {
    await store.appendEvents([event('old', 1), event('ahead', 2 * NOW_MS), event('old too', 2), event('young', NOW_MS)])
    expect(await run(store, 'events', { eventsSinceMs: NOW_MS })).toEqual([2])
    expect(await messages()).toEqual(['ahead', 'young'])
  })

  const report = (clusterId: ClusterId, rev: number, nowMs: number, service = 'web') => {
    const health = rev % 2 === 0 ? 'Healthy' : 'Degraded'
    const doc = { sync: 'Synced', health, reason: '', message: '', sinceMs: nowMs, objectCount: 1, healthyCount: 1 }
    return store.upsertStatus(clusterId, [{ kind: 'service', key: `default/${service}`, rev, doc }], { complete: false, nowMs })
  }

  test('HI9 the causes of changes outlive their events, and a drift that no state shows becomes a row', async () => {
    const hour = 3_600_000
    const a = await joinCluster(store, '1')
    await publishOne(store, { ...web, clusterId: a, doc: DOC, setSha: null, placedBy: '' })
    const say = (rev: number, health: string, atMs: number) => {
      const words = { sync: 'Synced', health, reason: health, message: '', sinceMs: atMs, objectCount: 1, healthyCount: 1 }
      const doc = { ...words, applied: { commit: 'c1', digest: 'd', atMs } }
      return store.upsertStatus(a, [{ kind: 'service', key: 'default/web', rev, doc }], { complete: false, nowMs: atMs })
    }
    const told = (reason: string, atMs: number, message: string, cluster: string | null = 'cluster-1') => ({
      ...event(message, atMs),
      ...web,
      reason,
      cluster,
    })
    await store.noteCommit({
      project: 'default',
      repository: 'apps',
      commit: 'c1',
      author: 'Ana',
      subject: 'fix the port',
      authoredMs: 1,
      seenMs: 1,
    })
    for (const [rev, health, at] of [[1, 'Healthy', 10], [2, 'Degraded', 12], [3, 'Suspended', 14], [4, 'Healthy', 16]] as const) await say(rev, health, at * hour) // biome-ignore format: a table
    await store.appendEvents([
      told('DriftHealed', 11 * hour, 'changed by kubectl-edit; restored'),
      told('HookFailed', 12 * hour - 60_000, 'Job shop/migrate'),
      told('Suspended', 14 * hour - 1_000, 'by ana: night shift', null),
      { ...told('ClusterOnline', 16 * hour + 2_000, 'back after 2h'), project: null, service: null },
      event('newest', NOW_MS),
    ])
    const withEvents = async () => {
      const rows = await store.statusHistory(a, web, { limit: 10 })
      const events = (await store.listEvents({ limit: 100 })).filter(({ message }) => message !== 'newest')
      return withCauses(rows, null, events, () => ({ author: 'Ana', subject: 'fix the port' })).map(({ atMs, health, cause }) => [
        atMs / hour,
        health,
        cause?.kind,
        cause?.by,
        cause?.of,
      ])
    }
    const before = await withEvents()
    expect(before).toEqual([
      [16, 'Healthy', 'cluster', null, 'cluster'],
      [14, 'Suspended', 'person', 'ana', 'service'],
      [12, 'Degraded', 'hook', null, 'placement'],
      [11, 'Healthy', 'drift', 'kubectl-edit', 'placement'],
      [10, 'Healthy', 'commit', 'Ana', 'placement'],
    ])
    expect(await run(store, 'events', { eventsMax: 1 })).toEqual([4])
    expect(await messages()).toEqual(['newest'])
    expect(await withEvents()).toEqual(before)
    // A change since then has the cause that its events tell.
    await say(5, 'Degraded', 20 * hour)
    expect((await store.statusHistory(a, web, { limit: 1 }))[0]).not.toHaveProperty('kept')
  })

  test('UK1 of each service in each cluster the newest changes are kept, and the newest one whatever its age', async () => {
    const clusters: ClusterId[] = []
    for (const digit of ['1', '2', '3', '4', '5', '6', '7']) clusters.push(await joinCluster(store, digit)) // numbered in this order
    const [a, b] = clusters
    if (a === undefined || b === undefined) throw new Error('no clusters')
    const doc = { commit: 'c', digest: 'd', count: 1, sync: syncOptionsSchema.parse({}), protect: false }
    const place = (clusterId: ClusterId, service: string, of: ServiceRow | null = doc) =>
      publishOne(store, { ...web, service, clusterId, doc: of, setSha: null, placedBy: '' })
    await place(a, 'web')
    for (const cluster of clusters) await place(cluster, 'old')
    for (let i = 1; i <= HISTORY_KEPT + 7; i++) await report(a, i, i * 60_000)
    for (const cluster of clusters) await report(cluster, 1, 60_000, 'old')
    for (const cluster of clusters.slice(2)) await place(cluster, 'old', null)
    await report(b, 2, 120_000, 'old')
    expect(await run(store, 'history')).toEqual([7])
    const times = async (cluster: ClusterId, service: string) =>
      (await store.statusHistory(cluster, { ...web, service }, { limit: 500 })).map(({ atMs }) => atMs)
    expect((await times(a, 'web')).at(-1)).toBe(8 * 60_000)
    expect(await times(b, 'old')).toEqual([120_000, 60_000])
    // Of a, one of b, and where it is no more: a slice for each cluster.
    expect(await run(store, 'history', { historySinceMs: 100 * 60_000 })).toEqual([HISTORY_KEPT - 8, 1, 1, 1, 1, 1, 1])
    expect((await times(a, 'web')).at(-1)).toBe(100 * 60_000)
    expect(await times(b, 'old')).toEqual([120_000])
    expect(await times(a, 'old')).toEqual([60_000])
    expect(await Promise.all(clusters.slice(2).map((cluster) => times(cluster, 'old')))).toEqual([[], [], [], [], []])
  })

  test('UK1 revisions beyond the number go, but never what a cluster shall have, nor the newest', async () => {
    const a = await joinCluster(store, 'a')
    const doc = (digest: string) => ({ commit: 'c', digest, count: 1, sync: syncOptionsSchema.parse({}), protect: false })
    for (let i = 1; i <= 8; i++) {
      await store.setRenderState(web, { commit: 'c', generation: 1, digest: `d${i}`, objectCount: 1, renderedMs: i, error: null })
      if (i === 2) await publishOne(store, { ...web, clusterId: a, doc: doc('d2'), setSha: 'sha-2', placedBy: '' })
    }
    await publishOne(store, { ...web, service: 'bare', clusterId: a, doc: doc('empty'), setSha: null, placedBy: '' })
    for (const digest of ['empty', 'other'])
      await store.setRenderState(
        { ...web, service: 'bare' },
        { commit: 'c', generation: 1, digest, objectCount: 0, renderedMs: 1, error: null },
      )
    expect(await run(store, 'revisions')).toEqual([])
    expect(await run(store, 'revisions', { revisionsMax: 3 })).toEqual([4])
    const numbers = async (service: string) => (await store.revisions({ ...web, service }, { limit: 50 })).map(({ number }) => number)
    expect(await numbers('web')).toEqual([8, 7, 6, 2])
    expect(await run(store, 'revisions', { revisionsMax: 1 })).toEqual([2])
    expect(await numbers('web')).toEqual([8, 2])
    expect(await numbers('bare')).toEqual([2, 1])
    expect(await store.referencedContent(['sha-2'])).toEqual(new Set(['sha-2']))
  })

  test('UK1 changes beyond the number go', async () => {
    for (let i = 0; i < 5; i++)
      await store.setRepositoryState('default', 'apps', { commit: String(i), fetchedMs: i, tag: null, error: null })
    const newest = await store.changes.position()
    expect(await run(store, 'changes')).toEqual([])
    expect(await run(store, 'changes', { changesMax: 2 })).toEqual([newest - 2])
    expect((await store.changes.read(newest - 2, { limit: 10 })).kind).toBe('changes')
    expect((await store.changes.read(newest - 3, { limit: 10 })).kind).toBe('gone')
  })

  test('UK1 join tokens that expired a month ago go; who follows is told', async () => {
    await makeToken(store, 'past') // expires at 1,000
    await store.createJoinToken({
      id: 'young',
      tokenHash: 'h',
      usesLeft: 0,
      uses: 1,
      labels: {},
      createdMs: 0,
      expiresMs: NOW_MS - DAY_MS,
      createdBy: '',
    })
    const before = await store.changes.position()
    expect(await run(store, 'tokens')).toEqual([1])
    expect((await store.listJoinTokens()).map(({ id }) => id)).toEqual(['young'])
    expect(await store.changes.read(before, { limit: 5 })).toMatchObject({ items: [{ topic: 'token', name: 'JoinToken/past' }] })
    expect(await run(store, 'tokens')).toEqual([])
  })

  const objects = (names: readonly string[], rev: number, message: string | null) =>
    names.map((name, i) => ({
      kind: 'object' as const,
      key: `default/web//ConfigMap/web/${name}`,
      rev: rev + i,
      doc: message === null ? null : { sync: 'Synced', health: 'Healthy', reason: 'Healthy', message, sinceMs: 1 },
    }))
  const generation = async () => (await select("select value from counters where name = 'dictionary'"))[0]

  test('UK3 names and states go when no row has them, and never before', async () => {
    const a = await joinCluster(store, 'a')
    await store.upsertStatus(a, objects(['x', 'y'], 1, 'first'), { complete: false, nowMs: 1 })
    await store.upsertStatus(a, objects(['x'], 10, 'second'), { complete: false, nowMs: 1 })
    expect([await run(store, 'names'), await run(store, 'states')]).toEqual([[], []])
    await store.upsertStatus(a, objects(['x'], 20, 'second'), { complete: true, nowMs: 1 })
    expect(await run(store, 'names')).toEqual([1])
    expect(await run(store, 'states')).toEqual([1])
    expect(await generation()).toEqual({ value: 2 })
    expect(await select('select name from names')).toEqual([{ name: 'x' }])
    expect(await select('select message from states')).toEqual([{ message: 'second' }])
    // The same names and states again, by a process that remembered their numbers.
    await store.upsertStatus(a, objects(['y', 'z'], 30, 'first'), { complete: false, nowMs: 1 })
    const held = await store.listStatus({ kind: 'object' })
    expect(held.map(({ key, doc }) => [key.at(-1), (doc as { message: string }).message])).toEqual([['x', 'second'], ['y', 'first'], ['z', 'first']]) // biome-ignore format: a table
    await store.deleteCluster('cluster-a')
    expect(await run(store, 'names')).toEqual([3])
    expect(await select('select * from states')).toHaveLength(2)
  })

  test('UK3 many that nothing refers to go under one number, however far apart they are', async () => {
    const a = await joinCluster(store, 'a')
    const names = Array.from({ length: 6_000 }, (_, i) => `n${i}`)
    await store.upsertStatus(a, objects(names, 1, 'm'), { complete: false, nowMs: 1 })
    const kept = names.filter((_, i) => i % 1_000 > 400)
    await store.upsertStatus(a, objects(kept, 10_000, 'm'), { complete: true, nowMs: 1 })
    expect(await run(store, 'names')).toEqual([6_000 - kept.length])
    expect(await generation()).toEqual({ value: 1 })
    expect(await select('select count(*) as n from names')).toEqual([{ n: kept.length }])
  })

  test('UK3 while others write, no row ever loses its name or its state', async () => {
    // As another process would: it remembers numbers of its own. A file has one process, and on one thread two would
    // wait for each other.
    const other = kind.name === 'SQLite' ? store : await place.open()
    const [a, b] = [await joinCluster(store, 'a'), await joinCluster(store, 'b')]
    const expected = new Map<string, string>()
    const write = async (by: Store, cluster: ClusterId, seed: number) => {
      for (let round = 1; round <= 25; round++) {
        const names = [0, 1, 2].map((i) => `n${(round * 7 + i * 3 + seed) % 11}`)
        const message = `m${(round * 5 + seed) % 6}`
        await by.upsertStatus(cluster, objects(names, round * 10, message), { complete: true, nowMs: 1 })
        for (const key of [...expected.keys()]) if (key.startsWith(`${cluster} `)) expected.delete(key)
        for (const name of names) expected.set(`${cluster} ${name}`, message)
      }
    }
    let writing = true
    const collect = async () => {
      let removed = 0
      while (writing) {
        for (const task of ['names', 'states'] as const) removed += (await run(store, task)).reduce((sum, count) => sum + count, 0)
        await Bun.sleep(0)
      }
      return removed
    }
    const collected = collect()
    await Promise.all([write(store, a, 1), write(other, b, 4)])
    writing = false
    expect(await collected).toBeGreaterThan(5)
    const held = (await store.listStatus({ kind: 'object' })).map(({ clusterId, key, doc }) => {
      return [`${clusterId} ${key.split('/').at(-1)}`, (doc as { message: string }).message] as const
    })
    expect(new Map<string, string>(held)).toEqual(expected)
    const lost = 'select count(*) as n from status_rows r where not exists (select 1 from names n where n.id = r.name_id)'
    expect(await select(`${lost} or (r.state_id is not null and not exists (select 1 from states s where s.id = r.state_id))`)).toEqual([
      { n: 0 },
    ])
    if (other !== store) await other.close()
  })
})
