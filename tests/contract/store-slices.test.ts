import { expect, setDefaultTimeout, test } from 'bun:test'
import type { StatusWrite } from '../../server/fleet/records.ts'
import { readSlices, SLICE_ROWS } from '../../server/store/read-slices.ts'
import { agentIdSchema } from '../../shared/runtime/ids.ts'
import { joinInput, makeToken } from '../support/store-fixtures.ts'
import { openIn, STORES } from '../support/stores.ts'
import { clusterNumber } from '../support/sync-kit.ts'

/** Two cores, and a database of its own for each test. */
setDefaultTimeout(30_000)

test.each([0, 1, SLICE_ROWS - 1, SLICE_ROWS, SLICE_ROWS + 1, 3 * SLICE_ROWS])(
  '%d rows are read in slices, each row once and in order',
  async (count) => {
    const rows = Array.from({ length: count }, (_, n) => n)
    let others = 0
    const tick = () => {
      others += 1
      turn = setImmediate(tick)
    }
    let turn = setImmediate(tick)
    const read = async (after: number | null) => rows.filter((row) => after === null || row > after).slice(0, SLICE_ROWS)
    expect(await readSlices(read, (row) => row)).toEqual(rows)
    clearImmediate(turn)
    expect(others).toBeGreaterThanOrEqual(Math.floor(count / SLICE_ROWS))
  },
)

test.each(STORES)(
  'a fleet of more clusters than a slice is read whole: agents, clusters, desired rows, statuses, on $name',
  async (kind) => {
    const store = await openIn(kind)
    const count = 2 * SLICE_ROWS + 1
    const tokenHash = await makeToken(store, 't', count)
    const ids = Array.from({ length: count }, (_, n) => clusterNumber(n + 1))
    for (const [n, clusterId] of ids.entries()) {
      const agentId = agentIdSchema.parse(`a-${n.toString(16).padStart(16, '0')}`)
      await store.join({ ...joinInput('1'), tokenHash, clusterId, agentId, clusterName: `cluster-${n}`, publicKey: `key-${n}` })
    }
    const names = ids.map((_, n) => `cluster-${n}`).sort()
    expect((await store.listAgents()).map(({ clusterName }) => clusterName)).toEqual(names)
    expect((await store.listClusters()).map(({ name }) => name)).toEqual(names)

    const published = await store.publish(
      ids.map((clusterId) => ({ clusterId, project: 'p', service: 's', doc: null, setSha: 'x', placedBy: '' })),
    )
    expect(published.some(({ changed }) => changed)).toBe(false) // nothing is nowhere yet
    const doc = { commit: 'c', digest: 'd', count: 0, sync: {}, protect: false } as never
    const rows = ids.map((clusterId) => ({ clusterId, project: 'p', service: 's', doc, setSha: null, placedBy: '' }))
    expect((await store.publish(rows)).every(({ changed, ordinal }) => changed && ordinal === 1)).toBe(true)
    expect((await store.desiredOfService({ project: 'p', service: 's' })).map(({ clusterId }) => clusterId)).toEqual(ids)

    const write = (key: string): StatusWrite => ({ kind: 'object', key, rev: 1, doc: { key } })
    await Promise.all(
      ids.map((clusterId) => store.upsertStatus(clusterId, [write('p/s/a'), write('p/s/b')], { complete: false, nowMs: 1 })),
    )
    const listed = await store.listStatus({ kind: 'object', keyPrefix: 'p/s/' })
    expect(listed.map(({ key, clusterId }) => `${key} ${clusterId}`)).toEqual(
      ['p/s/a', 'p/s/b'].flatMap((key) => ids.map((id) => `${key} ${id}`)),
    )
    expect((await store.listStatus({ kind: 'object', key: 'p/s/b' })).map(({ clusterId }) => clusterId)).toEqual(ids)

    await store.markSeen(new Map(ids.map((id, n) => [id, 20_000 + n])))
    const seen = (await store.listClusters()).map(({ lastSeenMs }) => lastSeenMs ?? 0)
    expect([Math.min(...seen) >= 20_000, Math.max(...seen)]).toEqual([true, 20_000 + count - 1])
    await store.close()
  },
)
