import { afterEach, describe, expect, test } from 'bun:test'
import { cursorText } from '../../shared/crdt/position.ts'
import { checkpointBytes, type HeadProof } from '../../shared/protocol/frames.ts'
import { keyLinkBytes } from '../../shared/protocol/key-links.ts'
import { signBytes } from '../../shared/runtime/keys.ts'
import { type Backup, restorableFleet } from '../support/restore-kit.ts'
import { DB, OTHER_KEY, WEB } from '../support/sync-kit.ts'

type Fleet = Awaited<ReturnType<typeof restorableFleet>>
let fleet: Fleet | null = null
afterEach(async () => {
  await fleet?.stop()
  fleet = null
})

const MINUTE = 60_000
const idOf = (name: string) => {
  const id = fleet?.agent(name).clusterId
  if (id === undefined || id === null) throw new Error(`${name} has not joined`)
  return id
}

/** Backed up at a state, then on: an update, a new service, one that is gone. */
async function setBack(what: Backup): Promise<Fleet> {
  fleet = await restorableFleet(['ship-1', 'ship-2'])
  for (const name of ['ship-1', 'ship-2']) await fleet.server.publish(idOf(name), WEB, { a: 'old', b: 'old' })
  await fleet.server.publish(idOf('ship-1'), DB, { data: 'v1' })
  await fleet.clock.advance(10_000)
  await fleet.backUp()
  await fleet.server.publish(idOf('ship-1'), WEB, { a: 'new', c: 'new' })
  await fleet.server.publish(idOf('ship-1'), { project: 'shop', service: 'late' }, { x: '1' })
  await fleet.server.publish(idOf('ship-1'), WEB, { a: 'newer', c: 'newer' })
  await fleet.clock.advance(10_000)
  expect((await fleet.rows('ship-1')).held.get('shop/web')).toContain('newer')
  await fleet.restore(what)
  return fleet
}

describe.each(['store', 'store and shards', 'store without shards'] as const)('RP2 a restore of the %s', (what) => {
  test('no page before a person said yes; the plan says what would change; nothing is dropped; then all converge', async () => {
    const { server, clock, rows } = await setBack(what)
    await clock.advance(2 * MINUTE)
    expect(server.restoreGate.pending()).toBe(true)
    expect((await rows('ship-1')).held.get('shop/web')).toContain('newer') // enforced as before

    // Publishing goes on, and waits as well.
    await server.publish(idOf('ship-2'), DB, { data: 'v2' })
    await clock.advance(5 * MINUTE)
    expect([...(await rows('ship-2')).held.keys()]).toEqual(['shop/web'])

    const plan = await server.restore.plan()
    expect(plan.pending).toBe(true)
    const [one, two] = plan.clusters
    expect(one?.services.map(({ service, what }) => `${service}: ${what}`)).toEqual(['late: unclaimed', 'web: change'])
    expect([one?.behind === null, one?.same]).toEqual([false, 1])
    expect(two?.services.map(({ service, what }) => `${service}: ${what}`)).toEqual(['db: place'])

    await server.restore.confirm(plan.token ?? '', 'ann')
    expect(server.restoreGate.pending()).toBe(false)
    await clock.advance(5 * MINUTE)
    for (const name of ['ship-1', 'ship-2']) {
      const { held, wanted } = await rows(name)
      expect([...held.keys()].sort()).toEqual(wanted.sort())
    }
    const { held } = await rows('ship-1')
    expect(held.get('shop/web')).toContain('old')
    const desired = await server.store.desiredInCluster(idOf('ship-1'))
    expect(desired.find(({ service }) => service === 'web')?.doc?.restored).toBe(true)
    const reasons = (await server.store.listEvents({ limit: 50 })).map(({ reason }) => reason)
    expect(reasons.filter((reason) => reason.startsWith('Restore'))).toEqual(['RestorePending', 'RestoreConfirmed'])
  })

  test('the agent of a cluster that was away all the while is served after the yes, and asks nobody again', async () => {
    fleet = await restorableFleet(['ship-1', 'ship-2'])
    for (const name of ['ship-1', 'ship-2']) await fleet.server.publish(idOf(name), WEB, { a: 'old' })
    await fleet.clock.advance(10_000)
    await fleet.backUp()
    for (const name of ['ship-1', 'ship-2']) await fleet.server.publish(idOf(name), WEB, { a: 'new', b: 'new' })
    await fleet.clock.advance(10_000)
    fleet.online.delete('ship-2')
    await fleet.restore(what)
    await fleet.clock.advance(2 * MINUTE)
    const plan = await fleet.server.restore.plan()
    expect(plan.clusters.map(({ behind, cluster }) => [cluster, behind !== null])).toContainEqual(['ship-1', true])
    await fleet.server.restore.confirm(plan.token ?? '', 'ann')
    // The store overtakes what ship-2 holds before it is back.
    for (let n = 0; n < 5; n++) await fleet.server.publish(idOf('ship-2'), DB, { data: String(n) })
    fleet.online.add('ship-2')
    await fleet.clock.advance(10 * MINUTE)
    expect(fleet.server.restoreGate.pending()).toBe(false)
    const { held, wanted } = await fleet.rows('ship-2')
    expect([...held.keys()].sort()).toEqual(wanted.sort())
    expect(held.get('shop/web')).toContain('old')
  })

  test('a second restore of the same backup is found out again, and settled again', async () => {
    const { server, clock, rows, restore } = await setBack(what)
    await clock.advance(2 * MINUTE)
    await server.restore.confirm((await server.restore.plan()).token ?? '', 'ann')
    await server.publish(idOf('ship-1'), WEB, { a: 'after' })
    await clock.advance(5 * MINUTE)
    expect((await rows('ship-1')).held.get('shop/web')).toContain('after')
    await restore(what)
    await clock.advance(2 * MINUTE)
    expect(server.restoreGate.pending()).toBe(true)
    await server.restore.confirm((await server.restore.plan()).token ?? '', 'ann')
    await clock.advance(5 * MINUTE)
    expect((await rows('ship-1')).held.get('shop/web')).toContain('old')
  })
})

test.each(['store and shards', 'store without shards'] as const)(
  'RP2 a restore of the %s is found out although the store has overtaken what an agent holds',
  async (what) => {
    fleet = await restorableFleet(['ship-1'])
    await fleet.server.publish(idOf('ship-1'), WEB, { a: 'old' })
    await fleet.clock.advance(10_000)
    await fleet.backUp()
    await fleet.server.publish(idOf('ship-1'), WEB, { a: 'lost' })
    await fleet.clock.advance(10_000)
    fleet.online.delete('ship-1')
    await fleet.clock.advance(1_000)
    await fleet.restore(what)
    for (let n = 0; n < 5; n++) await fleet.server.publish(idOf('ship-1'), DB, { data: String(n) })
    await fleet.restartCleanly()
    fleet.online.add('ship-1')
    await fleet.clock.advance(5 * MINUTE)
    expect(fleet.server.restoreGate.pending()).toBe(true)
    expect((await fleet.rows('ship-1')).held.get('shop/web')).toContain('lost')
  },
)

test('RP2 RP7 a backup from before a rotation of the server’s key is found out too: agents show how the lost key followed', async () => {
  fleet = await restorableFleet(['ship-1'])
  const { server, clock, rows } = fleet
  await server.publish(idOf('ship-1'), WEB, { a: 'old' })
  await clock.advance(10_000)
  await fleet.backUp()
  for (let n = 1; n <= 2; n++) {
    server.keys.rotate(n)
    await server.publish(idOf('ship-1'), WEB, { a: `lost-${n}` })
    await clock.advance(70_000)
  }
  expect((await rows('ship-1')).held.get('shop/web')).toContain('lost-2')
  await fleet.restore('store and shards')
  expect(server.keys.links).toEqual([])
  await clock.advance(5 * MINUTE)
  expect(server.restoreGate.pending()).toBe(true)
  expect((await rows('ship-1')).held.get('shop/web')).toContain('lost-2')
  await server.restore.confirm((await server.restore.plan()).token ?? '', 'ann')
  await clock.advance(5 * MINUTE)
  expect((await rows('ship-1')).held.get('shop/web')).toContain('old')
})

test('RP2 pending survives a restart; a token of another plan is refused, and nothing happens', async () => {
  const { server, clock } = await setBack('store')
  await clock.advance(2 * MINUTE)
  const { token } = await server.restore.plan()
  await server.kill()
  await server.open()
  expect(server.restoreGate.pending()).toBe(true)
  await server.publish(idOf('ship-2'), DB, { data: 'v2' })
  await expect(server.restore.confirm(token ?? '', 'ann')).rejects.toMatchObject({ code: 'conflict' })
  expect(server.restoreGate.pending()).toBe(true)
  await server.restore.confirm((await server.restore.plan()).token ?? '', 'ann')
  await expect(server.restore.confirm(token ?? '', 'ann')).rejects.toMatchObject({ code: 'conflict' })
})

test('RP2 a shard that lost its end in a crash proves nothing: the agent that pulled it is served', async () => {
  fleet = await restorableFleet(['ship-1'])
  const { server, clock, rows } = fleet
  await server.publish(idOf('ship-1'), WEB, { a: 'one' })
  await clock.advance(10_000)
  await fleet.loseShardTail(async () => {
    await server.publish(idOf('ship-1'), WEB, { a: 'two' })
    await server.publish(idOf('ship-1'), DB, { data: '2' })
    await server.publish(idOf('ship-1'), WEB, { a: 'three' })
    await clock.advance(10_000)
    expect((await rows('ship-1')).held.get('shop/web')).toContain('three')
  })
  await server.publish(idOf('ship-1'), DB, { data: '3' })
  await clock.advance(5 * MINUTE)
  expect(server.restoreGate.pending()).toBe(false)
  expect((await rows('ship-1')).held.get('shop/db')).toContain('3')
})

test('RP2 a yes that breaks off before the restore is settled leaves it pending, and the next one goes on', async () => {
  const { server, clock, rows } = await setBack('store')
  await clock.advance(2 * MINUTE)
  const { token } = await server.restore.plan()
  const settle = server.store.settleRestore
  server.store.settleRestore = () => Promise.reject(new Error('killed'))
  await expect(server.restore.confirm(token ?? '', 'ann')).rejects.toThrow('killed')
  server.store.settleRestore = settle
  await server.kill()
  await server.open()
  await clock.advance(2 * MINUTE)
  expect(server.restoreGate.pending()).toBe(true)
  expect((await rows('ship-1')).held.get('shop/web')).toContain('newer')
  await server.restore.confirm((await server.restore.plan()).token ?? '', 'ann')
  await clock.advance(5 * MINUTE)
  expect((await rows('ship-1')).held.get('shop/web')).toContain('old')
})

/** What ship-2 could show: more than the store has of it. */
async function proofBeyond({ server }: Fleet): Promise<HeadProof> {
  const clusterId = idOf('ship-2')
  const facts = await server.store.restoreFacts(clusterId)
  const to = server.shards.head(clusterId)
  const hello = { t: 'hello' as const, epoch: facts?.epoch ?? 0, schema: 1, ordinal: 99, from: null, to, siteId: '0'.repeat(32) }
  const covered = { count: 2, rows: '0'.repeat(64) }
  return { hello, checkpoint: { t: 'checkpoint', ...covered, signature: server.keys.sign(checkpointBytes(clusterId, hello, covered)) } }
}

test.each(['before', 'during', 'after'] as const)(
  'RP2 what an agent shows %s the moment at which a restore is settled is settled with it',
  async (when) => {
    const { server, clock } = await setBack('store')
    await clock.advance(2 * MINUTE)
    const proof = await proofBeyond({ server } as Fleet)
    const offer = () => server.restoreGate.offer(idOf('ship-2'), proof)
    const settle = server.store.settleRestore
    server.store.settleRestore = async (nowMs) => {
      if (when === 'before') await offer()
      const settling = settle(nowMs)
      if (when === 'during') void offer()
      await settling
      if (when === 'after') await offer()
    }
    await server.restore.confirm((await server.restore.plan()).token ?? '', 'ann')
    await clock.advance(MINUTE)
    expect([server.restoreGate.pending(), await server.store.restoreProofs()]).toEqual([false, []])
    await fleet?.restartCleanly()
    expect(server.restoreGate.pending()).toBe(false)
  },
)

test('RP2 a proof that the store could not take is written with the next, and can be settled', async () => {
  fleet = await restorableFleet(['ship-2'])
  const { server } = fleet
  const { recordRestoreProofs } = server.store
  server.store.recordRestoreProofs = () => Promise.reject(new Error('no space'))
  await expect(server.restoreGate.offer(idOf('ship-2'), await proofBeyond(fleet))).rejects.toThrow('no space')
  expect(server.restoreGate.pending()).toBe(true)
  server.store.recordRestoreProofs = recordRestoreProofs
  const plan = await server.restore.plan()
  expect(plan.pending).toBe(true)
  await server.restore.confirm(plan.token ?? '', 'ann')
  expect(server.restoreGate.pending()).toBe(false)
})

test('RP2 a yes that breaks off after the store forgot the matter can be said again', async () => {
  const { server, clock } = await setBack('store')
  await clock.advance(2 * MINUTE)
  const settle = server.store.settleRestore
  server.store.settleRestore = async (nowMs) => {
    await settle(nowMs)
    throw new Error('killed')
  }
  await expect(server.restore.confirm((await server.restore.plan()).token ?? '', 'ann')).rejects.toThrow('killed')
  server.store.settleRestore = settle
  await server.restore.confirm((await server.restore.plan()).token ?? '', 'ann')
  expect(server.restoreGate.pending()).toBe(false)
})

test('SE7 RP2 an agent of a cluster that joined after the backup knocks, and is listed with what to do', async () => {
  fleet = await restorableFleet(['ship-1'])
  await fleet.server.publish(idOf('ship-1'), WEB, { a: 'old' })
  await fleet.backUp()
  const late = fleet.addAgent('ship-9')
  await fleet.clock.advance(10_000)
  expect(late.clusterId).not.toBeNull()
  await fleet.restore('store')
  await fleet.clock.advance(2 * MINUTE)
  const { unknownAgents } = await fleet.server.restore.plan()
  expect(unknownAgents.map(({ agentId }) => agentId)).toEqual([late.state?.identity()?.agentId ?? '?'])
})

test('RP2 a proof that is forged, foreign, stale or of what the server still knows changes nothing', async () => {
  fleet = await restorableFleet(['ship-1', 'ship-2'])
  const { server } = fleet
  for (const name of ['ship-1', 'ship-2']) await server.publish(idOf(name), WEB, { a: 'one' })
  const clusterId = idOf('ship-1')
  const facts = await server.store.restoreFacts(clusterId)
  const to = server.shards.head(clusterId)
  const signed = (sign: (bytes: Uint8Array) => string, changes: Partial<HeadProof['hello']> = {}, of: string = clusterId): HeadProof => {
    const hello = {
      t: 'hello' as const,
      epoch: facts?.epoch ?? 0,
      schema: 1,
      ordinal: facts?.ordinal ?? 0,
      from: null,
      to,
      siteId: '0'.repeat(32),
      ...changes,
    }
    const covered = { count: 2, rows: '0'.repeat(64) }
    return { hello, checkpoint: { t: 'checkpoint', ...covered, signature: sign(checkpointBytes(of, hello, covered)) } }
  }
  const own = (bytes: Uint8Array) => server.keys.sign(bytes)
  const newer = { ordinal: (facts?.ordinal ?? 0) + 1 }
  const offer = async (proof: HeadProof) => {
    await server.restoreGate.offer(clusterId, proof)
    return server.restoreGate.pending()
  }
  expect(cursorText(to)).not.toBe('')
  expect(await offer(signed((bytes) => signBytes(OTHER_KEY.privateKey, bytes), newer))).toBe(false)
  expect(await offer(signed(own, newer, idOf('ship-2')))).toBe(false)
  expect(await offer({ ...signed(own), hello: { ...signed(own).hello, ...newer } })).toBe(false)
  expect(await offer(signed(own))).toBe(false)
  expect(await offer(signed(own, { ordinal: 0, to: { ...to, dv: 0, hash: '0'.repeat(32) } }))).toBe(false)
  server.keys.rotate(1) // what an earlier key signed counts
  expect(await server.store.restoreProofs()).toEqual([])
  const earlier = signed(own, newer)
  server.keys.rotate(2)
  const stranger = (bytes: Uint8Array) => signBytes(OTHER_KEY.privateKey, bytes)
  const forged = {
    key: OTHER_KEY.publicKey,
    by: server.keys.publicKeys[0],
    signature: stranger(keyLinkBytes(OTHER_KEY.publicKey, server.keys.publicKeys[0])),
  }
  await server.restoreGate.offer(clusterId, signed(stranger, newer), [forged])
  expect(server.restoreGate.pending()).toBe(false)
  expect(await offer(earlier)).toBe(true)
})
