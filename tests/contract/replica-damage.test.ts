// RP1: a replica file that is not what it should be serves nothing, and is replaced.
import { expect, test } from 'bun:test'
import { copyFileSync, existsSync, readFileSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type CheckedReplica, createCrdtReplica } from '../../agent/replica/crdt-replica.ts'
import { openCrdtDb } from '../../shared/adapters/crdt-db.ts'
import { asidePath } from '../../shared/adapters/native-guard.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { inSync, position, pull, serverRows } from '../support/replica-kit.ts'
import { CLUSTER, DB, NEIGHBOUR, openTestReplica, openTestShards, revision, SERVER_KEY, WEB } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const ROW_A = 'object/shop/web//ConfigMap/default/a'

test('PL7 RP1 a file with a row of another cluster does not verify', async () => {
  const { replica, path } = await inSync()
  replica.close()
  const rogue = openCrdtDb(path)
  rogue.db.query('INSERT INTO desired VALUES (?, ?, ?)').run(NEIGHBOUR, 'service/x/y', '{}')
  rogue.close()
  expect(openTestReplica(path).verified()).toBe(false)
})

const DAMAGE: Array<[string, (path: string) => void]> = [
  ['a rogue edit', (path) => withCrdt(path, (db) => db.run("UPDATE desired SET doc = 'rogue'"))],
  ['a rogue delete', (path) => withCrdt(path, (db) => db.run('DELETE FROM desired'))],
  ['a rogue insert', (path) => withCrdt(path, (db) => db.query('INSERT INTO desired VALUES (?, ?, ?)').run(CLUSTER, 'service/x/y', '{}'))],
  ['a lost position', (path) => withCrdt(path, (db) => db.run('DELETE FROM replica_position'))],
  [
    'an epoch that no server ever reaches',
    (path) => withCrdt(path, (db) => db.run('UPDATE replica_position SET epoch = 4503599627370496')),
  ],
  ['a position of another cluster', (path) => withCrdt(path, (db) => db.query('UPDATE replica_position SET cluster = ?').run(NEIGHBOUR))],
  ['bytes of another kind', (path) => writeFileSync(path, 'not a database')],
  ['an empty file', (path) => writeFileSync(path, '')],
  ['half a file', (path) => truncateSync(path, 16_384)],
  ['a file of zeros', (path) => writeFileSync(path, Buffer.alloc(readFileSync(path).length))],
  ['zeros from the second page on', (path) => writeFileSync(path, Buffer.from(readFileSync(path)).fill(0, 4_096))],
  ['the file of another cluster', (path) => withCrdt(path, (db) => db.query('UPDATE desired SET cluster = ?').run(NEIGHBOUR))],
  ['flipped bytes', (path) => flipBytes(path)],
]
function withCrdt(path: string, work: (db: ReturnType<typeof openCrdtDb>['db']) => unknown): void {
  const crdt = openCrdtDb(path)
  work(crdt.db)
  crdt.close()
}
function flipBytes(path: string): void {
  const bytes = readFileSync(path)
  const at = bytes.indexOf('"ConfigMap"')
  bytes.write('"ConfigMop"', at)
  writeFileSync(path, bytes)
}

test.each(DAMAGE)('RP1 %s while the agent was down is found at opening and healed by a bootstrap', async (_, damage) => {
  const { shards, replica, path } = await inSync()
  replica.close()
  damage(path)
  const again = openTestReplica(path)
  expect([again.verified(), again.position(), again.services()]).toEqual([false, null, []])
  expect(again.read(WEB).kind).toBe('incomplete')
  expect(again.applyPage(await pull(shards, null)).kind).toBe('applied')
  expect(again.verified()).toBe(true)
  expect(again.dump()).toEqual(await serverRows(shards))
  again.close()
  expect(openTestReplica(path).verified()).toBe(true)
})

test('RP1 a rogue edit under the running agent is seen at the next reading, before anything is enforced from it', async () => {
  const { shards, replica, path } = await inSync()
  expect(replica.read(WEB).kind).toBe('complete')
  withCrdt(path, (db) => db.query('UPDATE desired SET doc = ? WHERE id = ?').run('rogue', ROW_A))
  expect(replica.read(WEB).kind).toBe('incomplete')
  expect(replica.verified()).toBe(false)
  shards.writeRevisions([revision(CLUSTER, WEB, 3, { a: '2' })])
  expect(replica.applyPage(await pull(shards, null)).kind).toBe('applied')
  expect(replica.verified()).toBe(true)
  expect(replica.dump()).toEqual(await serverRows(shards))
})

test('RP1 that a whole replica is whole no more is told once, whoever found it', async () => {
  const { shards, replica, path } = await inSync()
  replica.close()
  let told = 0
  const options = { path, clusterId: CLUSTER, serverKeys: () => [SERVER_KEY.publicKey], log: silentLogger, onDamage: () => told++ }
  const running = createCrdtReplica(options)
  expect([running.verified(), told]).toEqual([true, 0])
  withCrdt(path, (db) => db.run("UPDATE desired SET doc = 'rogue'"))
  expect([running.services(), running.recheck(), running.read(WEB).kind, told]).toEqual([[], false, 'incomplete', 1])
  running.applyPage(await pull(shards, null))
  expect([running.verified(), told]).toEqual([true, 1])
  running.close()
  withCrdt(path, (db) => db.run("UPDATE desired SET doc = 'rogue'"))
  expect([createCrdtReplica(options).verified(), told]).toEqual([false, 1]) // who opens it asks
})

test('RP1 a service that went while the replica was damaged is among those that changed', async () => {
  const { shards, replica, path } = await inSync()
  withCrdt(path, (db) => db.run("UPDATE desired SET doc = 'rogue'"))
  expect(replica.verified()).toBe(false)
  shards.writeRevisions([revision(CLUSTER, DB, 3, null)])
  expect(replica.applyPage(await pull(shards, null))).toMatchObject({ kind: 'applied', changedServices: [DB, WEB] })
})

test('RP1 a recheck finds what changed without a trace', async () => {
  const { replica, path } = await inSync()
  expect(replica.recheck()).toBe(true)
  const plain = openSqlite(path)
  plain.run('UPDATE replica_position SET count = count + 1')
  plain.close()
  expect(replica.recheck()).toBe(false)
})

test('CU10 a replica that native code must not open is set aside, and fetched again', async () => {
  const { shards, replica, path } = await inSync()
  replica.close()
  const opened: string[] = []
  const guard = {
    refusals: () => new Map([[path, 'native code ended a process with SIGSEGV']]),
    opening: <T>(file: string, open: () => T) => {
      opened.push(file)
      return open()
    },
  }
  const options = { path, clusterId: CLUSTER, serverKeys: () => [SERVER_KEY.publicKey], log: silentLogger, guard }
  const again = createCrdtReplica(options)
  expect([again.verified(), existsSync(path), existsSync(asidePath(path)), opened]).toEqual([false, false, true, []])
  expect(again.applyPage(await pull(shards, null)).kind).toBe('applied')
  expect([again.dump(), new Set(opened)]).toEqual([await serverRows(shards), new Set([`${path}.new`, path])])
  again.close()
})

test('PL8 what a killed bootstrap left behind is in nobody’s way', async () => {
  const { shards, replica, path } = await inSync()
  replica.close()
  for (const suffix of ['.new', '.new-wal', '.new-shm']) writeFileSync(path + suffix, 'half')
  const again = openTestReplica(path)
  expect(again.verified()).toBe(true)
  expect(again.applyPage(await pull(shards, null)).kind).toBe('applied')
  expect(again.dump()).toEqual(await serverRows(shards))
})

test('PL8 the log of the old file is never played into the new one, whoever else has it open', async () => {
  const { shards, replica, path } = await inSync()
  const reader = openSqlite(path, { readonly: true }) // a backup, a curious person: it keeps the log from being folded in and removed
  reader.query('SELECT count(*) FROM desired').get()
  shards.writeRevisions([revision(CLUSTER, WEB, 3, Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`o${n}`, 'x'.repeat(500)])))])
  replica.applyPage(await pull(shards, position(replica)))
  shards.writeRevisions([revision(CLUSTER, WEB, 4, { a: 'small' })])
  replica.applyPage(await pull(shards, null))
  expect(replica.recheck()).toBe(true)
  reader.close()
  replica.close()
  const again = openTestReplica(path)
  expect(again.verified()).toBe(true)
  expect(again.dump()).toEqual(await serverRows(shards))
})

const ASKS: Array<[string, (replica: CheckedReplica, page: Uint8Array) => unknown]> = [
  ['its services', (replica) => replica.services()],
  ['a service', (replica) => replica.read(WEB)],
  ['to merge a page', (replica, page) => replica.applyPage(page)],
  ['its buckets', (replica) => replica.bucketSums()],
]
test.each(ASKS)(
  'RP1 a file that breaks under the running agent stops serving and is healed, when it is asked for %s first',
  async (_, ask) => {
    const { shards, replica, path } = await inSync()
    // More than SQLite keeps in memory, and all of it in the file itself.
    const objects = Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`o${n}`, 'x'.repeat(2_000)]))
    shards.writeRevisions([revision(CLUSTER, WEB, 3, objects)])
    replica.applyPage(await pull(shards, null))
    shards.writeRevisions([revision(CLUSTER, WEB, 4, { ...objects, o1: '2' })])
    const page = await pull(shards, position(replica))
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.fill(0xa5, 4_096 * 30), { flag: 'r+' })
    ask(replica, page)
    expect(replica.recheck()).toBe(false)
    expect([replica.verified(), replica.services(), replica.read(WEB).kind]).toEqual([false, [], 'incomplete'])
    expect(replica.applyPage(page)).toEqual({ kind: 'discarded' })
    expect(replica.applyPage(await pull(shards, null)).kind).toBe('applied')
    expect(replica.dump()).toEqual(await serverRows(shards))
    replica.close()
  },
  20_000,
)

/** Every page of the file, some places of each, one bit of each place. */
function* bitFlips(whole: Buffer): Iterable<{ at: number; bytes: Buffer }> {
  for (let page = 0; page < whole.length; page += 4_096) {
    for (const offset of [0, 24, 100, 1_031, 2_500, 4_090]) {
      const bytes = Buffer.from(whole)
      const at = page + offset
      bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8))
      yield { at, bytes }
    }
  }
}

async function filledReplica() {
  const kit = await inSync()
  const { shards, replica } = kit
  const objects = (value: string) => Object.fromEntries(Array.from({ length: 40 }, (_, n) => [`o${n}`, value.repeat(300) + n]))
  shards.writeRevisions([revision(CLUSTER, WEB, 3, objects('v'))])
  replica.applyPage(await pull(shards, position(replica)))
  const from = position(replica)
  const rows = replica.dump()
  shards.writeRevisions([revision(CLUSTER, WEB, 4, objects('w'))])
  return { ...kit, rows, delta: await pull(shards, from), everything: await pull(shards, null), after: await serverRows(shards) }
}

test('RP1 a flipped bit at any page of a resting file is found, or harms nothing, and is healed', async () => {
  const { replica, path, rows, delta, everything, after } = await filledReplica()
  replica.close()
  let found = 0
  for (const { at, bytes } of bitFlips(readFileSync(path))) {
    for (const suffix of ['-wal', '-shm']) rmSync(path + suffix, { force: true })
    writeFileSync(path, bytes)
    const flipped = openTestReplica(path)
    if (flipped.verified()) {
      expect([at, flipped.dump()]).toEqual([at, rows])
      expect([at, flipped.services(), flipped.read(WEB).kind]).toEqual([at, [DB, WEB], 'complete'])
      if (flipped.applyPage(delta).kind === 'applied') expect([at, flipped.dump()]).toEqual([at, after])
    } else {
      found++
      expect([at, flipped.services(), flipped.position()]).toEqual([at, [], null])
    }
    expect([at, flipped.applyPage(everything).kind]).toEqual([at, 'applied'])
    expect([at, flipped.dump()]).toEqual([at, after])
    flipped.close()
  }
  expect(found).toBeGreaterThan(30)
}, 60_000)

test('RP1 a flipped bit at any page of the file under a running agent harms nothing that it says, and is healed', async () => {
  const { replica, path, rows, delta, everything, after } = await filledReplica()
  replica.close()
  const whole = readFileSync(path)
  let found = 0
  for (const { at, bytes } of bitFlips(whole)) {
    for (const suffix of ['-wal', '-shm']) rmSync(path + suffix, { force: true })
    writeFileSync(path, whole)
    const running = openTestReplica(path)
    expect(running.verified()).toBe(true)
    writeFileSync(path, bytes, { flag: 'r+' })
    const read = running.read(WEB)
    if (read.kind === 'complete')
      expect([...read.revision.objects.values()]).toEqual(rows.filter(([id]) => id.startsWith('object/shop/web/')).map(([, doc]) => doc))
    if (running.recheck()) expect([at, running.dump()]).toEqual([at, rows])
    else found++
    if (running.applyPage(delta).kind === 'applied') expect([at, running.dump()]).toEqual([at, after])
    expect([at, running.applyPage(everything).kind]).toEqual([at, 'applied'])
    expect([at, running.recheck(), running.dump()]).toEqual([at, true, after])
    running.close()
  }
  expect(found).toBeGreaterThan(30)
}, 60_000)

test('RP1 CU4 a lost log takes rows and cursor back together, or is found', async () => {
  const { shards, replica, path, dir } = await inSync()
  for (let n = 3; n < 12; n++) {
    shards.writeRevisions([revision(CLUSTER, WEB, n, { a: 'x'.repeat(n * 1_000) })])
    replica.applyPage(await pull(shards, position(replica)))
    const lost = join(dir, `lost-${n}.db`)
    copyFileSync(path, lost) // a power loss: the log was never written
    const after = openTestReplica(lost)
    if (after.verified()) expect(after.applyPage(await pull(shards, position(after))).kind).toBe('applied')
    else expect(after.applyPage(await pull(shards, null)).kind).toBe('applied')
    expect(after.dump()).toEqual(await serverRows(shards))
    after.close()
  }
})

test('RP1 CU2a an older copy of the own file is a delta behind, and does not bring an older epoch back', async () => {
  const dir = tempDir()
  let epoch = 1
  const { shards } = openTestShards(join(dir, 'shards'), { shardCount: 1, epochOf: () => epoch })
  const path = join(dir, 'replica.db')
  const replica = openTestReplica(path)
  shards.writeRevisions([revision(CLUSTER, WEB, 1, { a: '1' })])
  replica.applyPage(await pull(shards, null))
  replica.close()
  copyFileSync(path, `${path}.copy`)
  const later = openTestReplica(path)
  shards.writeRevisions([revision(CLUSTER, WEB, 2, { a: '2' })])
  const old = await pull(shards, position(later))
  epoch = 2
  later.applyPage(await pull(shards, position(later)))
  expect(later.epoch()).toBe(2)
  later.close()
  renameSync(`${path}.copy`, path)
  const again = openTestReplica(path)
  expect([again.verified(), again.epoch()]).toEqual([true, 2])
  expect(again.applyPage(old)).toMatchObject({ kind: 'refused', why: 'epoch 1 is older than 2' })
  expect(again.applyPage(await pull(shards, position(again))).kind).toBe('applied')
  expect(again.dump()).toEqual(await serverRows(shards))
})

test('RP1 a file that was removed or replaced under the running agent is found by the recheck, and made again', async () => {
  const replaced = (path: string) => {
    copyFileSync(path, `${path}.copy`)
    renameSync(`${path}.copy`, path)
  }
  for (const harm of [(path: string) => rmSync(path), replaced]) {
    const { shards, replica, path } = await inSync()
    harm(path)
    expect(replica.recheck()).toBe(false)
    expect(replica.applyPage(await pull(shards, null)).kind).toBe('applied')
    expect(replica.recheck()).toBe(true)
    replica.close()
    expect(openTestReplica(path).verified()).toBe(true)
  }
})
