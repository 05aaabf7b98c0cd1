// A power cut takes the end of a replica's log back, a restore takes the server back: what the server said last is remembered beside the file.
import { expect, test } from 'bun:test'
import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
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
