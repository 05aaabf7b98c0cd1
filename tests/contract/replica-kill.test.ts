import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Position } from '../../shared/crdt/position.ts'
import { pullPage } from '../support/page-kit.ts'
import { CLUSTER, DB, openTestReplica, openTestShards, revision, SERVER_KEY, WEB } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const KILLS = 20
/** Times that the server begins anew, each with a bootstrap under another epoch. */
const ROUNDS = 12

/** Until so many lines were written. */
async function lines(stream: ReadableStream<Uint8Array>, count: number): Promise<void> {
  const reader = stream.getReader()
  for (let left = count; left > 0; ) {
    const { value, done } = await reader.read()
    if (done) throw new Error(`ended ${left} lines early`)
    left -= value.filter((byte) => byte === NEWLINE).length
  }
}
const NEWLINE = 10

test('CU4 PL8 twenty kills in the middle of merges and bootstraps leave a replica at a position that once was a head', async () => {
  const dir = tempDir()
  let epoch = 1
  const { shards } = openTestShards(join(dir, 'shards'), { shardCount: 1, epochOf: () => epoch })
  mkdirSync(join(dir, 'pages'))
  const dumps = new Map<string, string>()
  const keep = async (cursor: Position | null, n: number) => {
    for (epoch = 1; epoch <= ROUNDS; epoch++) {
      const { frames } = await pullPage(shards, CLUSTER, cursor)
      writeFileSync(join(dir, 'pages', [epoch, n].map((each) => String(each).padStart(3, '0')).join('-')), frames)
    }
    const { rows, hello } = await pullPage(shards, CLUSTER, null)
    const dump = rows.map(({ id, doc }) => [id, doc ?? '']).sort(([a = ''], [b = '']) => (a < b ? -1 : 1))
    dumps.set(hello.to.hash, JSON.stringify(dump))
  }
  // Large enough that most kills hit a transaction or the making of a new file.
  for (let n = 0; n < 12; n++) {
    const objects = Object.fromEntries(Array.from({ length: 400 }, (_, i) => [`o${i}`, `${(n + i) % 5} ${'x'.repeat(500)}`]))
    const before = n === 0 ? null : shards.head(CLUSTER)
    shards.writeRevisions([revision(CLUSTER, n % 2 ? WEB : DB, n + 1, objects)])
    await keep(before, n)
  }

  const replicaPath = join(dir, 'replica.db')
  const seen = new Set<number>()
  for (let kill = 0; kill < KILLS; kill++) {
    const child = Bun.spawn({
      cmd: [
        process.execPath,
        join(import.meta.dir, '../support/merge-until-killed.ts'),
        replicaPath,
        CLUSTER,
        SERVER_KEY.publicKey,
        join(dir, 'pages'),
      ],
      stdout: 'pipe',
      stderr: 'inherit',
    })
    await lines(child.stdout, 1 + kill) // by pages and not by time: a busy machine would be killed at its first page each time
    await Bun.sleep(kill % 5)
    child.kill('SIGKILL')
    await child.exited
    const replica = openTestReplica(replicaPath)
    const position = replica.position()
    if (position !== null) {
      expect(replica.verified()).toBe(true)
      expect(JSON.stringify(replica.dump())).toBe(dumps.get(position.hash) ?? 'a head of the server')
      seen.add(position.dv)
    }
    replica.close()
  }
  expect(seen.size).toBeGreaterThan(3) // it was killed at different places
  shards.close()
}, 60_000)
