// RP4: what an agent does when its disk is full, on a real file system of a few megabytes. Mounting one takes root;
// without it these tests are skipped, aloud.
import { afterEach, expect, test } from 'bun:test'
import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { agentProblem } from '../../agent/messages/site-messages.ts'
import { createCrdtReplica } from '../../agent/replica/crdt-replica.ts'
import { createDiskReserve, RESERVE_BYTES, START_BYTES } from '../../agent/state/disk-reserve.ts'
import { openAgentState } from '../../agent/state/sqlite-agent-state.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { pull, serverRows } from '../support/replica-kit.ts'
import { canMountSmallDisk, mountSmallDisk, type SmallDisk } from '../support/small-disk.ts'
import { CLUSTER, openTestShards, revision, SERVER_KEY, WEB } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

if (!canMountSmallDisk) process.stderr.write('agent-disk-full.test.ts: SKIPPED, because mounting a small file system takes root\n')
const onDisk = canMountSmallDisk ? test : test.skip
let disk: SmallDisk
afterEach(() => disk?.remove())

const event = (n: number) => ({
  kind: 'event' as const,
  key: `e${n}`,
  doc: { type: 'Normal', reason: 'Synced', message: 'x'.repeat(2_000) + n, service: null, atMs: n },
})

/** A state that knows a cluster, with some old events, and a reserve. */
function filledState(megabytes: number) {
  disk = mountSmallDisk(megabytes)
  const changes: Array<string | null> = []
  const reserve = createDiskReserve(disk.path, () => changes.push(reserve.problem()))
  const state = openAgentState(join(disk.path, 'agent.sqlite'), reserve)
  state.setIdentity({ clusterId: CLUSTER, agentId: 'a-1', incarnation: 1, serverKeys: [], minProtocol: 1, maxProtocol: 1 } as never)
  for (let n = 0; n < 40; n++) state.report([event(n)])
  return { reserve, state, changes, reservePath: join(disk.path, 'reserve') }
}

onDisk('RP4 the reserve takes real blocks, is made where there is space for it twice, and only once', () => {
  disk = mountSmallDisk(12)
  const reserve = createDiskReserve(disk.path)
  reserve.restock()
  const path = join(disk.path, 'reserve')
  const { size, blocks, mtimeMs } = statSync(path)
  expect([size, blocks * 512 >= RESERVE_BYTES]).toEqual([RESERVE_BYTES, true])
  reserve.restock()
  expect(statSync(path).mtimeMs).toBe(mtimeMs)
  disk.remove()
  disk = mountSmallDisk(6)
  createDiskReserve(disk.path).restock()
  expect(statSync(join(disk.path, 'reserve')).size).toBe(START_BYTES)
})

onDisk(
  'RP4 on a full disk the reserve is given back, the oldest events go, and the state is written even when the rest is taken, too',
  () => {
    const { reserve, state, changes, reservePath } = filledState(16)
    reserve.restock()
    disk.fill()
    let n = 40
    for (; reserve.problem() === null && n < 3_000; n++) state.report([event(n)])
    expect([changes.length, reserve.problem()]).toEqual([1, agentProblem('disk_full', { folder: disk?.path ?? '' }).message])
    expect(state.outbox(1)[0]?.key).not.toBe('e0')

    disk.fill()
    for (const end = n + 600; n < end; n++) {
      state.report([event(n), { kind: 'service', key: 'web/shop', doc: { n } }])
    }
    const keys = state.outbox(5_000).map(({ key }) => key)
    expect([keys.includes('e0'), keys.includes('web/shop')]).toEqual([false, true])
    expect(state.lastReported('service', 'web/shop')).toEqual({ n: n - 1 })

    reserve.restock()
    expect(reserve.problem()).not.toBeNull()
    disk.free()
    reserve.restock()
    expect([statSync(reservePath).size, reserve.problem(), changes.length]).toEqual([RESERVE_BYTES, null, 2])
    state.close()
    const again = openAgentState(join(disk.path, 'agent.sqlite'))
    expect(again.lastReported('service', 'web/shop')).toEqual({ n: n - 1 })
    again.close()
  },
)

onDisk('RP4 an agent opens its state on a full disk, each time that it is started', () => {
  const { reserve, state, reservePath } = filledState(16)
  reserve.restock()
  state.report([{ kind: 'service', key: 'web/shop', doc: { n: 1 } }])
  state.close()
  for (let start = 0; start < 6; start++) {
    disk.fill()
    const again = openAgentState(join(disk.path, 'agent.sqlite'), reserve)
    expect(reserve.problem()).not.toBeNull()
    expect(again.lastReported('service', 'web/shop')).toEqual({ n: 1 })
    reserve.restock()
    disk.fill() // by whoever fills it
    again.close()
    reserve.restock()
    expect(statSync(reservePath).size).toBeGreaterThanOrEqual(START_BYTES / 4)
  }
})

onDisk('RP4 an agent that starts on a full disk enforces what its replica holds, each time', async () => {
  disk = mountSmallDisk(16)
  const reserve = createDiskReserve(disk.path)
  reserve.restock()
  const { shards } = openTestShards(join(tempDir(), 'shards'), { shardCount: 1 })
  shards.writeRevisions([revision(CLUSTER, WEB, 1, { a: '1' })])
  const open = () =>
    createCrdtReplica({
      path: join(disk.path, 'replica.sqlite'),
      clusterId: CLUSTER,
      serverKeys: () => [SERVER_KEY.publicKey],
      log: silentLogger,
      onDiskFull: (doing) => reserve.giveBack(doing),
    })
  const replica = open()
  replica.applyPage(await pull(shards, null))
  replica.close()
  for (let start = 0; start < 6; start++) {
    disk.fill()
    const again = open()
    expect([again.verified(), again.read(WEB).kind, reserve.problem() === null]).toEqual([true, 'complete', false])
    again.close()
    reserve.restock()
  }
})

onDisk('RP4 a page that finds no space changes nothing, gives the reserve back, and is taken when there is space', async () => {
  disk = mountSmallDisk(16)
  const reserve = createDiskReserve(disk.path)
  reserve.restock()
  const { shards } = openTestShards(join(tempDir(), 'shards'), { shardCount: 1 })
  const replica = createCrdtReplica({
    path: join(disk.path, 'replica.sqlite'),
    clusterId: CLUSTER,
    serverKeys: () => [SERVER_KEY.publicKey],
    log: silentLogger,
    onDiskFull: (doing) => reserve.giveBack(doing),
  })
  const objects = (letter: string, count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, n) => [`o${n}`, letter.repeat(60_000) + n]))
  shards.writeRevisions([revision(CLUSTER, WEB, 1, objects('a', 4))])
  expect(replica.applyPage(await pull(shards, null)).kind).toBe('applied')
  const before = await serverRows(shards)
  const from = replica.position()
  disk.fill()
  shards.writeRevisions([revision(CLUSTER, WEB, 2, objects('b', 120))])
  for (const page of [await pull(shards, from), await pull(shards, null)]) {
    expect(() => replica.applyPage(page)).toThrow(/full|space/)
    expect(reserve.problem()).not.toBeNull()
    expect([replica.dump(), replica.position(), replica.verified()]).toEqual([before, from, true])
    expect(existsSync(join(disk.path, 'replica.sqlite.new'))).toBe(false)
  }
  disk.free()
  expect(replica.applyPage(await pull(shards, from)).kind).toBe('applied')
  expect(replica.dump()).toEqual(await serverRows(shards))
  replica.close()
})
