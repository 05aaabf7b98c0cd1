// The writer of a shard remembers its last write, which saves the reader a transaction. The page must be the same with
// and without that.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { RecentLinesCache } from '../../server/desired/recent-lines.ts'
import { UNBOUNDED } from '../../server/desired/row-lines.ts'
import { createShardFile } from '../../server/desired/shard-file.ts'
import { openShardReader } from '../../server/desired/shard-reader.ts'
import { sha256Hex } from '../../shared/kube/canonical.ts'
import { CLUSTER, DB, NEIGHBOUR, newId, revision, WEB } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

test('PL2 a page after the remembered head is the page that the file itself gives, for every kind of change', () => {
  const path = join(tempDir(), 'shard.db')
  const file = createShardFile({ path, newDbId: newId }, 'created')
  const reader = openShardReader(path)
  const objects: Array<Record<string, string> | null> = [
    { a: '1', b: '1' },
    { a: '2', b: '1', c: '1' },
    { a: '2' },
    { a: '3', b: '2' },
    null,
    { a: '4' },
  ]
  for (const [index, set] of objects.entries()) {
    const cursor = file.head(CLUSTER)
    file.write([revision(CLUSTER, WEB, index + 1, set), revision(NEIGHBOUR, DB, index + 1, { n: String(index) })])
    const led = file.led(CLUSTER, cursor)
    expect(led).not.toBeNull()
    if (led === null) continue
    const known = reader.read(CLUSTER, { kind: 'pull', cursor, led }, UNBOUNDED)
    if (known.kind !== 'rows') throw new Error(known.kind)
    const { recent, ...lines } = known.lines
    expect(recent?.sha256).toBe(sha256Hex(lines.bytes))
    expect<unknown>({ ...known, lines }).toEqual(reader.read(CLUSTER, { kind: 'pull', cursor }, UNBOUNDED))
  }
  reader.close()
  file.close()
})

test('PL2 a page over several services of one transaction is the page that the file itself gives, whether its lines are still held or not', () => {
  for (const recent of [new RecentLinesCache(), new RecentLinesCache(0)]) {
    const path = join(tempDir(), 'shard.db')
    const file = createShardFile({ path, newDbId: newId, recent }, 'created')
    const reader = openShardReader(path)
    file.write([revision(CLUSTER, WEB, 1, { a: '1' }), revision(CLUSTER, DB, 2, { n: '1' })])
    const cursor = file.head(CLUSTER)
    file.write([revision(CLUSTER, WEB, 3, { b: '2' }), revision(NEIGHBOUR, WEB, 1, { b: '2' }), revision(CLUSTER, DB, 4, { n: '2' })])
    const led = file.led(CLUSTER, cursor)
    if (led === null) throw new Error('the cursor before the transaction is remembered')
    const known = reader.read(CLUSTER, { kind: 'pull', cursor, led }, UNBOUNDED)
    if (known.kind !== 'rows') throw new Error(known.kind)
    const { recent: _, ...lines } = known.lines
    expect<unknown>({ ...known, lines }).toEqual(reader.read(CLUSTER, { kind: 'pull', cursor }, UNBOUNDED))
    reader.close()
    file.close()
  }
})

test('PL1 only the cursor that was the head before the last write is remembered', () => {
  const file = createShardFile({ path: join(tempDir(), 'shard.db'), newDbId: newId }, 'created')
  const first = file.head(CLUSTER)
  file.write([revision(CLUSTER, WEB, 1, { a: '1' })])
  const second = file.head(CLUSTER)
  file.write([revision(CLUSTER, WEB, 2, { a: '2' })])
  const third = file.head(CLUSTER)
  expect(
    [first, second, third, { ...second, hash: first.hash }, { ...second, dbId: newId() }].map(
      (cursor) => file.led(CLUSTER, cursor) !== null,
    ),
  ).toEqual([false, true, false, false, false])
  file.close()
})
