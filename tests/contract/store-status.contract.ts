// Status rows by rev, complete inventories, and events exactly once.
import { expect, test } from 'bun:test'
import type { StatusWrite } from '../../server/fleet/records.ts'
import { clusterId, joinCluster, type StoreHarness } from '../support/store-fixtures.ts'

const object = (name: string, rev: number, doc: unknown = { name, rev }): StatusWrite => ({
  kind: 'object',
  key: `p/s//Pod/n/${name}`,
  rev,
  doc,
})
const event = (rev: number, extra: Record<string, unknown> = {}): StatusWrite => ({
  kind: 'event',
  key: String(rev),
  rev,
  doc: { atMs: rev, type: 'Normal', reason: 'Applied', message: `event ${rev}`, service: 'p/s', ...extra },
})
const delta = { complete: false, nowMs: 100 }
const complete = { complete: true, nowMs: 100 }

export function statusContract({ store }: StoreHarness): void {
  const names = async (kind: 'object' | 'service' | 'drift' = 'object') =>
    (await store().listStatus({ clusterId: clusterId('a'), kind })).map((entry) => `${entry.key.split('/').at(-1)}@${entry.rev}`)

  test('PU2 only a greater rev changes anything: duplicates, replays and reordering are no-ops', async () => {
    const a = await joinCluster(store(), 'a')
    const rows = [object('x', 5), object('y', 6)]
    expect(await store().upsertStatus(a, rows, delta)).toEqual({ ack: 6, had: 0, changed: rows })
    expect(await store().upsertStatus(a, rows, { ...delta, nowMs: 999 })).toEqual({ ack: 6, had: 6, changed: [] })
    expect(await store().upsertStatus(a, [object('x', 4), object('z', 7)], delta)).toEqual({ ack: 7, had: 6, changed: [object('z', 7)] })
    expect(await names()).toEqual(['x@5', 'y@6', 'z@7'])
    expect((await store().listStatus({ clusterId: a, kind: 'object' }))[0]).toEqual({
      clusterId: a,
      kind: 'object',
      key: 'p/s//Pod/n/x',
      rev: 5,
      doc: { name: 'x', rev: 5 },
      receivedMs: 100,
    })
  })

  test('PU2 a late copy of an older write does not bring back what was removed', async () => {
    const a = await joinCluster(store(), 'a')
    await store().upsertStatus(a, [object('x', 1)], delta)
    expect((await store().upsertStatus(a, [object('x', 2, null)], delta)).changed).toEqual([object('x', 2, null)])
    expect(await names()).toEqual([])
    expect(await store().upsertStatus(a, [object('x', 1)], delta)).toEqual({ ack: 2, had: 2, changed: [] })
    expect(await names()).toEqual([])
    await store().upsertStatus(a, [object('x', 3)], delta)
    expect(await names()).toEqual(['x@3'])
  })

  test('PU2 a key twice in one push ends at its greatest rev', async () => {
    const a = await joinCluster(store(), 'a')
    await store().upsertStatus(a, [object('x', 3), object('x', 2), object('x', 4, null), object('y', 1)], delta)
    expect(await names()).toEqual(['y@1'])
  })

  test('PU4 a complete inventory removes what it does not name, of any kind but events', async () => {
    const a = await joinCluster(store(), 'a')
    const b = await joinCluster(store(), 'b')
    await store().upsertStatus(b, [object('x', 1)], delta)
    await store().upsertStatus(a, [object('x', 1), object('y', 2), { kind: 'service', key: 'p/s', rev: 3, doc: {} }, event(4)], delta)
    const result = await store().upsertStatus(a, [object('x', 5)], complete)
    expect(result.ack).toBe(5)
    expect(result.changed).toEqual([object('x', 5), object('y', 5, null), { kind: 'service', key: 'p/s', rev: 5, doc: null }])
    expect(await names()).toEqual(['x@5'])
    expect(await names('service')).toEqual([])
    expect(await store().listStatus({ clusterId: b, kind: 'object' })).toHaveLength(1)
    expect(await store().listEvents({ limit: 10 })).toHaveLength(1)
  })

  test('PU4 an inventory that names a row with its old rev keeps it; a newer row is not touched by an older inventory', async () => {
    const a = await joinCluster(store(), 'a')
    await store().upsertStatus(a, [object('x', 1), object('new', 9)], delta)
    await store().upsertStatus(a, [object('x', 1), object('y', 5)], complete)
    expect(await names()).toEqual(['new@9', 'x@1', 'y@5'])
  })

  test('PU4 after it, a late copy from before it brings nothing back, and neither does the inventory itself', async () => {
    const a = await joinCluster(store(), 'a')
    await store().upsertStatus(a, [object('x', 1), object('y', 2)], delta)
    await store().upsertStatus(a, [object('y', 3)], complete)
    expect(await store().upsertStatus(a, [object('x', 1)], delta)).toEqual({ ack: 3, had: 3, changed: [] })
    await store().upsertStatus(a, [object('z', 4)], delta)
    expect(await store().upsertStatus(a, [object('y', 3)], complete)).toEqual({ ack: 4, had: 4, changed: [] })
    expect(await names()).toEqual(['y@3', 'z@4'])
  })

  const range = (after: string | null, upTo: string | null) => ({ complete: { after, upTo }, nowMs: 100 })
  const of = (name: string) => `object/p/s//Pod/n/${name}`

  test('PU4 a range removes only what lies in it: after its beginning, up to its end, of any kind', async () => {
    const a = await joinCluster(store(), 'a')
    const drift: StatusWrite = { kind: 'drift', key: 'p/s//Pod/n/z', rev: 5, doc: {} }
    await store().upsertStatus(a, [object('a', 1), object('b', 2), object('c', 3), object('d', 4), drift, event(6)], delta)
    const { changed } = await store().upsertStatus(a, [object('c', 7)], range(of('a'), of('c')))
    expect(changed).toEqual([object('c', 7), object('b', 7, null)])
    expect([await names(), await names('drift')]).toEqual([['a@1', 'c@7', 'd@4'], ['z@5']])
    expect((await store().upsertStatus(a, [object('c', 8)], range(null, of('c')))).changed).toHaveLength(3)
    expect([await names(), await names('drift')]).toEqual([['c@8', 'd@4'], []])
    await store().upsertStatus(a, [object('d', 9)], range(of('c'), null))
    expect(await names()).toEqual(['c@8', 'd@9'])
  })

  test('PU4 a range is of code units: what a database orders otherwise stays where it belongs', async () => {
    const a = await joinCluster(store(), 'a')
    await store().upsertStatus(a, [object('\u{1f600}', 1), object('\uffee', 2)], delta) // the pair begins with d83d, below ffee
    await store().upsertStatus(a, [object('x', 3)], range(null, of('\ufb00')))
    expect(await names()).toEqual(['x@3', '\uffee@2'])
  })

  test('PU4 an empty range drops only what is of an earlier incarnation, and newer rows stay', async () => {
    const a = await joinCluster(store(), 'a')
    await store().upsertStatus(a, [object('x', 5), object('y', 11)], delta)
    await store().upsertStatus(a, [], range(null, null))
    expect(await names()).toEqual(['x@5', 'y@11'])
    await store().upsertStatus(a, [], { ...range(null, null), olderThan: 10 })
    expect(await names()).toEqual(['y@11'])
  })

  test('PU4 what a range removed does not come back with a late copy, and is forgotten when the ranges make a whole', async () => {
    const a = await joinCluster(store(), 'a')
    await store().upsertStatus(a, [object('a', 1), object('b', 2), object('c', 3)], delta)
    await store().upsertStatus(a, [object('a', 9)], range(null, of('b')))
    expect((await store().upsertStatus(a, [object('b', 4)], delta)).changed).toEqual([])
    await store().upsertStatus(a, [object('c', 8)], range(of('b'), of('c')))
    await store().upsertStatus(a, [object('a', 9)], range(null, of('b'))) // a replay begins anew: the next continues it
    await store().upsertStatus(a, [object('c', 8)], range(of('b'), null))
    expect(await names()).toEqual(['a@9', 'c@8'])
    // Known by the floor now: 8, the least of them; what is newer counts.
    expect((await store().upsertStatus(a, [object('b', 8)], delta)).changed).toEqual([])
    expect((await store().upsertStatus(a, [object('late', 7)], delta)).changed).toEqual([])
    expect((await store().upsertStatus(a, [object('b', 10)], delta)).changed).toHaveLength(1)
  })

  test('PU4 ranges with a gap are no whole: nothing that is unknown counts as removed', async () => {
    const a = await joinCluster(store(), 'a')
    await store().upsertStatus(a, [object('a', 9)], range(null, of('b')))
    await store().upsertStatus(a, [object('z', 10)], range(of('c'), null))
    expect((await store().upsertStatus(a, [object('x', 5)], delta)).changed).toHaveLength(1)
  })

  test('PU5 an event that an agent counted while nobody heard it says how often', async () => {
    const a = await joinCluster(store(), 'a')
    await store().upsertStatus(a, [event(1, { count: 5_000 }), event(2, { count: 1 })], delta)
    expect((await store().listEvents({ limit: 9 })).map(({ message }) => message)).toEqual(['event 1 (5000 times)', 'event 2'])
  })

  test('PU2 events enter the stream exactly once, in the order of their revs', async () => {
    const a = await joinCluster(store(), 'a')
    await store().upsertStatus(a, [event(3), event(2), object('x', 4)], delta)
    await store().upsertStatus(a, [event(2), event(3), event(5, { object: 'Pod n/x', type: 'Warning' })], delta)
    const events = await store().listEvents({ limit: 10 })
    expect(events.map((item) => item.message)).toEqual(['event 2', 'event 3', 'event 5'])
    expect(events[2]).toEqual({
      id: events[2]?.id ?? 0,
      atMs: 5,
      type: 'Warning',
      reason: 'Applied',
      message: 'event 5',
      cluster: 'cluster-a',
      project: 'p',
      service: 's',
      object: 'Pod n/x',
    })
  })

  test('PU2 a cluster that is gone takes nothing', async () => {
    expect(await store().upsertStatus(clusterId('f'), [object('x', 1), event(2)], delta)).toEqual({ ack: 0, had: 0, changed: [] })
    expect(await store().listEvents({ limit: 10 })).toEqual([])
  })

  test('PU2 two thousand rows in one push, then the same as a complete inventory', async () => {
    const a = await joinCluster(store(), 'a')
    const rows = Array.from({ length: 2_000 }, (_, i) => object(`o${i}`, i + 1))
    expect((await store().upsertStatus(a, rows, delta)).changed).toHaveLength(2_000)
    const half = rows.filter((_, i) => i % 2 === 0).map((row) => ({ ...row, rev: row.rev + 5_000 }))
    expect((await store().upsertStatus(a, half, complete)).changed).toHaveLength(2_000)
    expect(await names()).toHaveLength(1_000)
  })

  test('ST4 statuses are found by exact key and by prefix, never by the beginning of another name', async () => {
    const a = await joinCluster(store(), 'a')
    const rows = ['p/web', 'p/web2', 'P/web', 'q/web'].map((key, i): StatusWrite => ({ kind: 'service', key, rev: i + 1, doc: {} }))
    await store().upsertStatus(a, rows, delta)
    const keys = async (query: { key?: string; keyPrefix?: string }) =>
      (await store().listStatus({ kind: 'service', ...query })).map((entry) => entry.key)
    expect(await keys({ key: 'p/web' })).toEqual(['p/web'])
    expect(await keys({ keyPrefix: 'p/' })).toEqual(['p/web', 'p/web2'])
    expect(await keys({ keyPrefix: 'p/web/' })).toEqual([])
  })

  test.each([
    ['of few rows', 0],
    ['of more rows than are read at once', 600],
  ])('ST6 what is forgotten of a service is its rows, its objects and its drift in that cluster, %s', async (_, others) => {
    const a = await joinCluster(store(), 'a')
    const b = await joinCluster(store(), 'b')
    const objects = Array.from(
      { length: others },
      (_, n): StatusWrite => ({ kind: 'object', key: `q/s//Pod/n/x${n}`, rev: n + 1, doc: {} }),
    )
    await store().upsertStatus(a, objects, delta)
    const key = 'p/s/apps/Deployment/n/x'
    const rows: StatusWrite[] = [
      { kind: 'service', key: 'p/s', rev: others + 1, doc: {} },
      { kind: 'object', key, rev: others + 2, doc: {} },
      { kind: 'drift', key, rev: others + 3, doc: {} },
      { kind: 'service', key: 'p/s2', rev: others + 4, doc: {} },
      { kind: 'object', key: 'p/s2//Pod/n/x', rev: others + 5, doc: {} },
    ]
    await store().upsertStatus(a, rows, delta)
    await store().upsertStatus(b, rows, delta)
    await store().deleteStatusOfService(a, { project: 'p', service: 's' })
    const left = await store().listStatus({ clusterId: a, kind: 'object' })
    expect(left.filter(({ key: of }) => !of.startsWith('q/')).map((entry) => entry.key)).toEqual(['p/s2//Pod/n/x'])
    expect(left).toHaveLength(others + 1)
    expect((await store().listStatus({ clusterId: a, kind: 'service' })).map((entry) => entry.key)).toEqual(['p/s2'])
    expect(await store().listStatus({ clusterId: a, kind: 'drift' })).toEqual([])
    expect(await store().listStatus({ clusterId: b, kind: 'object' })).toHaveLength(2)
  })

  test('ST21 forgetting thousands of rows gives others the store in between, and forgets all of them', async () => {
    const [a, b] = [await joinCluster(store(), 'a'), await joinCluster(store(), 'b')]
    const objects = Array.from({ length: 3_000 }, (_, i): StatusWrite => ({ kind: 'object', key: `p/s//Pod/n/x${i}`, rev: i + 1, doc: {} }))
    await store().upsertStatus(a, [...objects, { kind: 'object', key: 'p/s2//Pod/n/x', rev: 5_000, doc: {} }], delta)
    const ended: string[] = []
    const forgetting = store().deleteStatusOfService(a, { project: 'p', service: 's' })
    await Promise.all([
      forgetting.then(() => ended.push('forgotten')),
      Promise.resolve() // the first step of the forgetting waits already
        .then(() => Promise.resolve())
        .then(() => store().upsertStatus(b, [{ kind: 'service', key: 'p/s', rev: 1, doc: {} }], delta))
        .then(() => ended.push('reported')),
    ])
    expect(ended).toEqual(['reported', 'forgotten'])
    expect((await store().listStatus({ clusterId: a, kind: 'object' })).map(({ key }) => key)).toEqual(['p/s2//Pod/n/x'])
  })

  test('ST8 the stream is read by id: the newest at first, then strictly after', async () => {
    const base = { type: 'Normal' as const, reason: 'R', object: null }
    const places = [['a', 'p', 's'], ['b', 'p', 's'], [null, 'p', 't'], ['a', null, null], ['a', 'q', 's']] as const // biome-ignore format: a table
    await store().appendEvents([])
    await store().appendEvents(
      places.map(([cluster, project, service], i) => ({ ...base, atMs: i, message: `m${i}`, cluster, project, service })),
    )
    const read = async (query: Omit<Parameters<ReturnType<StoreHarness['store']>['listEvents']>[0], 'limit'>, limit = 10) =>
      (await store().listEvents({ ...query, limit })).map((item) => item.message)
    const ids = (await store().listEvents({ limit: 10 })).map((item) => item.id)
    expect(await read({}, 2)).toEqual(['m3', 'm4'])
    expect(await read({ after: ids[1] ?? 0 }, 2)).toEqual(['m2', 'm3'])
    expect(await read({ after: ids[4] ?? 0 })).toEqual([])
    expect(await read({ cluster: 'a' })).toEqual(['m0', 'm3', 'm4'])
    expect(await read({ project: 'p', service: 's' })).toEqual(['m0', 'm1'])
  })

  test('AU6 events about one object are found by its name, however many events of others came after it', async () => {
    const base = { atMs: 1, type: 'Normal' as const, reason: 'R', project: null, service: null }
    const events = (object: string | null, ...messages: string[]) => messages.map((message) => ({ ...base, cluster: 'a', object, message }))
    await store().appendEvents(events('apps/Deployment/web/podinfo', 'first', 'second'))
    await store().appendEvents([{ ...base, cluster: 'b', object: 'apps/Deployment/web/podinfo', message: 'elsewhere' }])
    for (let part = 0; part < 3; part++)
      await store().appendEvents(events(null, ...Array.from({ length: 4_000 }, (_, index) => `other ${part} ${index}`)))
    await store().appendEvents([...events('x/Deployment/web/podinfo', 'third'), ...events('/Namespace//web', 'namespace')])
    const find = async (object: string, limit = 9, before?: number) => {
      const query = { cluster: 'a', object, limit, ...(before === undefined ? {} : { before }) }
      const { items, next } = await store().listObjectEvents(query)
      return { found: items.map(({ message }) => message), next }
    }
    expect(await find('Deployment/web/podinfo')).toEqual({ found: ['third', 'second', 'first'], next: null })
    expect((await find('apps/Deployment/web/podinfo')).found).toEqual(['second', 'first'])
    expect((await find('Namespace//web')).found).toEqual(['namespace'])
    expect((await find('eployment/web/podinfo')).found).toEqual([])
    const { found, next } = await find('Deployment/web/podinfo', 2)
    expect([found, (await find('Deployment/web/podinfo', 2, next ?? 0)).found]).toEqual([['third', 'second'], ['first']])
  })
}
