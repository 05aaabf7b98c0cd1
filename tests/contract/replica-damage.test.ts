// RP1: a replica file that is not what it should be serves nothing, and is replaced.
import { expect, test } from 'bun:test'
import { readFileSync, truncateSync, writeFileSync } from 'node:fs'
import type { CheckedReplica } from '../../agent/replica/crdt-replica.ts'
import { openCrdtDb } from '../../shared/adapters/crdt-db.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { inSync, position, pull, serverRows } from '../support/replica-kit.ts'
import { CLUSTER, NEIGHBOUR, openTestReplica, revision, WEB } from '../support/sync-kit.ts'

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
  ['a position of another cluster', (path) => withCrdt(path, (db) => db.query('UPDATE replica_position SET cluster = ?').run(NEIGHBOUR))],
  ['bytes of another kind', (path) => writeFileSync(path, 'not a database')],
  ['an empty file', (path) => writeFileSync(path, '')],
  ['half a file', (path) => truncateSync(path, 16_384)],
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
  shards.writeRevision(revision(CLUSTER, WEB, 3, { a: '2' }))
  expect(replica.applyPage(await pull(shards, null)).kind).toBe('applied')
  expect(replica.verified()).toBe(true)
  expect(replica.dump()).toEqual(await serverRows(shards))
})

test('RP1 a recheck finds what changed without a trace', async () => {
  const { replica, path } = await inSync()
  expect(replica.recheck()).toBe(true)
  const plain = openSqlite(path)
  plain.run('UPDATE replica_position SET count = count + 1')
  plain.close()
  expect(replica.recheck()).toBe(false)
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
  shards.writeRevision(revision(CLUSTER, WEB, 3, Object.fromEntries(Array.from({ length: 300 }, (_, n) => [`o${n}`, 'x'.repeat(500)]))))
  replica.applyPage(await pull(shards, position(replica)))
  shards.writeRevision(revision(CLUSTER, WEB, 4, { a: 'small' }))
  replica.applyPage(await pull(shards, null))
  expect(replica.recheck()).toBe(true)
  reader.close()
  replica.close()
  const again = openTestReplica(path)
  expect(again.verified()).toBe(true)
  expect(again.dump()).toEqual(await serverRows(shards))
})

test('RP1 a file that breaks under the running agent stops serving and is healed, whatever is asked of it first', async () => {
  const asks: Array<(replica: CheckedReplica, page: Uint8Array) => unknown> = [
    (replica) => replica.services(),
    (replica) => replica.read(WEB),
    (replica, page) => replica.applyPage(page),
  ]
  for (const ask of asks) {
    const { shards, replica, path } = await inSync()
    // More than SQLite keeps in memory, and all of it in the file itself.
    const objects = Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`o${n}`, 'x'.repeat(2_000)]))
    shards.writeRevision(revision(CLUSTER, WEB, 3, objects))
    replica.applyPage(await pull(shards, null))
    shards.writeRevision(revision(CLUSTER, WEB, 4, { ...objects, o1: '2' }))
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
  }
})
