// What the fleet store keeps of a restore (RP2).
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { seededRandom } from '../../shared/runtime/random.ts'
import { clusterId, joinCluster } from '../support/store-fixtures.ts'
import { openIn, STORES, type StoreKind } from '../support/stores.ts'

/** Two cores, and a database of its own for each test. */
setDefaultTimeout(30_000)

async function storeOfTwo(kind: StoreKind) {
  const store = await openIn(kind, { random: seededRandom(3) })
  const [a, b] = [await joinCluster(store, 'a'), await joinCluster(store, 'b')]
  const facts = async () => [await store.restoreFacts(a), await store.restoreFacts(b)]
  const row = { project: 'p', service: 's', doc: null, setSha: null, placedBy: '{}' }
  const doc = { commit: 'c', digest: 'd', count: 0, protect: false } as never
  const publish = (digest: string) => store.publish([{ ...row, clusterId: a, doc: { ...(doc as object), digest } as never }])
  return { store, a, b, facts, publish }
}

describe.each(STORES)('on $name', (kind) => {
  test('RP2 a proof keeps its first time and the greatest numbers that were shown, whatever comes later', async () => {
    const { store, a } = await storeOfTwo(kind)
    expect(await store.restoreProofs()).toEqual([])
    await store.recordRestoreProofs([{ clusterId: a, epoch: 3, ordinal: 9, atMs: 100 }])
    await store.recordRestoreProofs([{ clusterId: a, epoch: 5, ordinal: 4, atMs: 200 }])
    await store.recordRestoreProofs([{ clusterId: a, epoch: 1, ordinal: 1, atMs: 50 }])
    expect(await store.restoreProofs()).toEqual([{ clusterId: a, epoch: 5, ordinal: 9, atMs: 100 }])
    await store.recordRestoreProofs([])
    await store.close()
  })

  test('RP2 settling raises every epoch past all that were shown, given out, or counted by the clock; and again the next time', async () => {
    const { store, a, facts } = await storeOfTwo(kind)
    await store.recordRestoreProofs([{ clusterId: a, epoch: 70, ordinal: 9, atMs: 100 }])
    await store.settleRestore(5_000)
    const [first] = await facts()
    expect(first?.epoch).toBeGreaterThan(70)
    expect((await facts()).map((one) => [one?.epoch, one?.settledEpoch])).toEqual([
      [first?.epoch, first?.epoch],
      [first?.epoch, first?.epoch],
    ])
    expect(await store.restoreProofs()).toEqual([])
    await store.settleRestore(1_700_000_000_000)
    const [second] = await facts()
    expect(second?.epoch).toBeGreaterThan(1_700_000_000)
    await store.settleRestore(0)
    expect((await facts())[0]?.epoch).toBeGreaterThan(second?.epoch ?? 0)
    await store.close()
  })

  test('RP2 what no page of before can go beyond: the ordinal at which a shard file was adopted, or found after an unclean stop', async () => {
    const { store, a, facts, publish } = await storeOfTwo(kind)
    await publish('1')
    expect((await facts())[0]).toMatchObject({ ordinal: 1, adoptedOrdinal: 0 })
    await store.adoptShards([{ index: 0, dbId: 'one', clusterIds: [a] }])
    await publish('2')
    expect((await facts())[0]).toMatchObject({ ordinal: 2, adoptedOrdinal: 1 })
    await store.distrustLogs()
    expect((await facts())[0]).toMatchObject({ ordinal: 2, adoptedOrdinal: 2 })
    expect(await store.restoreFacts(clusterId('f'))).toBeNull()
    await store.close()
  })
})
