// A page that was true once, told again by somebody on the way (no TLS is asked for): what it says was signed, and is
// not what the server says now.
import { expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { inSync, position, pull, refetch } from '../support/replica-kit.ts'
import { CLUSTER, openTestReplica, revision, WEB } from '../support/sync-kit.ts'

test('CU2a a whole page from before what is held is refused, however well signed', async () => {
  const { shards, replica } = await inSync()
  const recorded = [await pull(shards, null), await refetch(shards, replica)]
  shards.writeRevisions([revision(CLUSTER, WEB, 3, { a: '2', newer: '1' })])
  replica.applyPage(await pull(shards, position(replica)))
  for (const page of recorded) expect(replica.applyPage(page).kind).toBe('refused')
  expect(replica.position()).toEqual(shards.head(CLUSTER))
  expect(replica.applyPage(await pull(shards, null)).kind).toBe('applied') // the server's word of today, also when nothing differs
})

test('CU2a nor is it taken when the replica was lost since', async () => {
  const { shards, replica, path } = await inSync()
  const recorded = await pull(shards, null)
  shards.writeRevisions([revision(CLUSTER, WEB, 3, { a: '2', newer: '1' })])
  replica.applyPage(await pull(shards, position(replica)))
  replica.close()
  for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true })
  const again = openTestReplica(path)
  expect(again.applyPage(recorded).kind).toBe('refused')
  expect(again.applyPage(await pull(shards, null)).kind).toBe('applied')
})
