// What the simulation found in replicas: a power cut takes the end of the log back while a restore takes the server back; a byte that no open connection reads flips.
import { expect, test } from 'bun:test'
import { copyFileSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { wholePage } from '../support/page-kit.ts'
import { CLUSTER, openTestReplica, openTestShards, revision, WEB } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

test('RP2 a replica that a power cut took back finds out a server that was restored, though both agree', async () => {
  const dir = tempDir()
  const path = join(dir, 'replica.sqlite')
  const server = openTestShards(join(dir, 'shards')).shards
  const pull = async (replica: ReturnType<typeof openTestReplica>) =>
    wholePage(server, CLUSTER, await server.pull(CLUSTER, replica.position(), { zstd: false }))
  server.writeRevision(revision(CLUSTER, WEB, 1, { a: '1' }))
  const replica = openTestReplica(path)
  replica.applyPage(await pull(replica))
  const older = join(dir, 'older.sqlite')
  replica.close()
  copyFileSync(path, older)

  // What the restored server will say again, and what it said before that.
  server.writeRevision(revision(CLUSTER, WEB, 2, { a: '2' }))
  const again = openTestReplica(path)
  const restored = await pull(again)
  server.writeRevision(revision(CLUSTER, WEB, 3, { a: '3', b: '1' }))
  expect(again.applyPage(await pull(again)).kind).toBe('applied')
  again.close()
  for (const end of ['-wal', '-shm']) rmSync(path + end, { force: true })
  copyFileSync(older, path)

  const back = openTestReplica(path)
  expect(back.applyPage(restored)).toMatchObject({ kind: 'refused', why: expect.stringContaining('set back') })
  expect(back.proof()?.hello.ordinal).toBe(3) // which the refetch shows the server
  back.close()
  server.close()
})

test('RP1 a byte of the schema that flips under an open replica is found by the recheck whenever the next start would stumble over it', async () => {
  const dir = tempDir()
  const server = openTestShards(join(dir, 'shards')).shards
  server.writeRevision(revision(CLUSTER, WEB, 1, { a: '1' }))
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
