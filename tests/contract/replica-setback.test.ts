// What the simulation found in replicas: a power cut takes the end of the log back while a restore takes the server
// back; a byte that no open connection reads flips.
import { expect, test } from 'bun:test'
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createCrdtReplica } from '../../agent/replica/crdt-replica.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { signBytes } from '../../shared/runtime/keys.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { wholePage } from '../support/page-kit.ts'
import { CLUSTER, OTHER_KEY, openTestReplica, openTestShards, revision, SERVER_KEY, WEB } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

test('RP2 RP8 a replica that a power cut took back finds out a server that was restored, though both agree', async () => {
  const dir = tempDir()
  const path = join(dir, 'replica.sqlite')
  const server = openTestShards(join(dir, 'shards')).shards
  const pull = async (replica: ReturnType<typeof openTestReplica>) =>
    wholePage(server, CLUSTER, await server.pull(CLUSTER, replica.position(), { zstd: false }))
  server.writeRevisions([revision(CLUSTER, WEB, 1, { a: '1' })])
  const replica = openTestReplica(path)
  replica.applyPage(await pull(replica))
  const older = join(dir, 'older.sqlite')
  replica.close()
  copyFileSync(path, older)

  // What the restored server will say again, and what it said before that.
  server.writeRevisions([revision(CLUSTER, WEB, 2, { a: '2' })])
  const again = openTestReplica(path)
  const restored = await pull(again)
  server.writeRevisions([revision(CLUSTER, WEB, 3, { a: '3', b: '1' })])
  expect(again.applyPage(await pull(again)).kind).toBe('applied')
  again.close()
  for (const end of ['-wal', '-shm']) rmSync(path + end, { force: true })
  copyFileSync(older, path)

  const back = openTestReplica(path)
  expect([back.isBehind(), back.verified()]).toEqual([true, true])
  expect(back.applyPage(restored)).toMatchObject({ kind: 'refused', why: expect.stringContaining('restored or reset') })
  expect(back.proof()?.hello.ordinal).toBe(3) // which the refetch shows the server
  back.close()
  server.close()
})

test('CU2a an agent that was joined anew to a server of an older key is not held to what the newer key said', async () => {
  const dir = tempDir()
  const path = join(dir, 'replica.sqlite')
  const later = openTestShards(join(dir, 'later'), { epochOf: () => 7 }).shards
  for (const ordinal of [1, 2, 3]) later.writeRevisions([revision(CLUSTER, WEB, ordinal, { a: String(ordinal) })])
  const replica = openTestReplica(path)
  replica.applyPage(wholePage(later, CLUSTER, await later.pull(CLUSTER, null, { zstd: false })))
  replica.close()
  const earlier = openTestShards(join(dir, 'earlier'), { sign: (bytes) => signBytes(OTHER_KEY.privateKey, bytes) }).shards
  earlier.writeRevisions([revision(CLUSTER, WEB, 1, { a: '1' })])
  const restored = wholePage(earlier, CLUSTER, await earlier.pull(CLUSTER, null, { zstd: false }))

  const both = { path, clusterId: CLUSTER, log: silentLogger }
  const held = createCrdtReplica({ ...both, serverKeys: () => [SERVER_KEY.publicKey, OTHER_KEY.publicKey] })
  expect(held.applyPage(restored)).toMatchObject({ kind: 'refused', why: expect.stringContaining('epoch 1') })
  held.close()
  const joinedAnew = createCrdtReplica({ ...both, serverKeys: () => [OTHER_KEY.publicKey] })
  expect(joinedAnew.proof()).toBe(null)
  expect(joinedAnew.applyPage(restored).kind).toBe('applied')
  joinedAnew.close()
  for (const server of [later, earlier]) server.close()
})

test('RP1 a byte of the schema that flips under an open replica is found by the recheck whenever the next start would stumble over it', async () => {
  const dir = tempDir()
  const server = openTestShards(join(dir, 'shards')).shards
  server.writeRevisions([revision(CLUSTER, WEB, 1, { a: '1' })])
  const page = wholePage(server, CLUSTER, await server.pull(CLUSTER, null, { zstd: false }))
  const missed: number[] = []
  let unreadable = 0
  for (let at = 100; at < 4_096; at += 190) {
    const path = join(dir, `replica-${at}.sqlite`)
    const replica = openTestReplica(path)
    replica.applyPage(page)
    const bytes = readFileSync(path)
    bytes[at] = (bytes[at] ?? 0) ^ 4
    writeFileSync(path, bytes)
    if (!isReadable(path)) {
      unreadable += 1
      if (replica.recheck()) missed.push(at)
    }
    replica.close()
  }
  server.close()
  expect(missed).toEqual([])
  expect(unreadable).toBeGreaterThan(3)
})

function isReadable(path: string): boolean {
  const db = openSqlite(path, { readonly: true })
  try {
    db.query('SELECT count(*) FROM desired').get()
    return true
  } catch {
    return false
  } finally {
    db.close()
  }
}
