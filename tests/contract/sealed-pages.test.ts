// Sealed rows from shard file to replica: keys in the head of each page, kept beside the rows, opened on demand.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { desiredQuery } from '../../server/http/desired-query.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { generateKey } from '../../shared/runtime/keys.ts'
import { withSopsMember } from '../../shared/sops/object.ts'
import { IDENTITY, pullPage, refetchPage, wholePage } from '../support/page-kit.ts'
import { ACCEPT, opened, rowId, sealedWorld, secretDoc } from '../support/sealed-world.ts'
import { CLUSTER, NEIGHBOUR, serviceDoc, WEB } from '../support/sync-kit.ts'

test('SL4 a key comes with its row, follows it through deltas and refetches, and goes with it', async () => {
  const { dir, shards, write, replicaOf, pull } = sealedWorld()
  write(CLUSTER, { a: '1', b: '1' })
  const replica = replicaOf('one')
  expect(replica.applyPage(await pull(replica)).kind).toBe('applied')
  expect(await opened(replica, 'a')).toBe(secretDoc('a', '1'))
  write(CLUSTER, { a: '2', b: '1' })
  const delta = await pullPage(shards, CLUSTER, replica.position(), ACCEPT)
  expect(delta.rows.map(({ id }) => id)).toContain(rowId('a'))
  expect(delta.rows.map(({ id }) => id)).not.toContain(rowId('b'))
  expect(replica.applyPage(delta.frames).kind).toBe('applied')
  expect([await opened(replica, 'a'), await opened(replica, 'b')]).toEqual([secretDoc('a', '2'), secretDoc('b', '1')])
  const kept = await refetchPage(shards, CLUSTER, replica.bucketSums(), ACCEPT)
  expect([replica.applyPage(kept.frames).kind, await opened(replica, 'b')]).toEqual(['applied', secretDoc('b', '1')])
  write(CLUSTER, { b: '1' })
  replica.applyPage(await pull(replica))
  replica.close()
  const db = openSqlite(join(dir, 'one.db'), { readonly: true })
  expect(db.query('SELECT id FROM page_key').all()).toEqual([{ id: rowId('b') }])
  db.close()
})

test('SL4 a replica that lost a key, or the recipient key, fetches everything again', async () => {
  const { dir, shards, write, replicaOf, pull } = sealedWorld()
  write(CLUSTER, { a: '1' })
  const replica = replicaOf('one')
  replica.applyPage(await pull(replica))
  replica.close()
  const db = openSqlite(join(dir, 'one.db'))
  db.run('DELETE FROM page_key')
  db.close()
  const again = replicaOf('one')
  expect([again.verified(), again.bucketSums().length]).toEqual([false, 0])
  again.applyPage((await refetchPage(shards, CLUSTER, again.bucketSums(), ACCEPT)).frames)
  expect(await opened(again, 'a')).toBe(secretDoc('a', '1'))
  again.close()
  expect(replicaOf('one', CLUSTER, NEIGHBOUR).verified()).toBe(false)
})

test('SL10 rows that were sealed to a former recipient key stay open until all are fetched anew, sealed to the next', async () => {
  const { shards, write, replicaOf, pull, recipients, former } = sealedWorld()
  write(CLUSTER, { a: '1', b: '1' })
  const replica = replicaOf('one')
  replica.applyPage(await pull(replica))
  const before = recipients.get(CLUSTER)
  if (before !== undefined) former.push(before)
  recipients.set(CLUSTER, generateKey('x25519'))
  expect([replica.recheck(), await opened(replica, 'a'), replica.bucketSums().length]).toEqual([true, secretDoc('a', '1'), 0])
  replica.applyPage((await refetchPage(shards, CLUSTER, replica.bucketSums(), ACCEPT)).frames)
  expect([former.length, await opened(replica, 'a'), await opened(replica, 'b')]).toEqual([0, secretDoc('a', '1'), secretDoc('b', '1')])
  expect(replica.bucketSums().length).toBeGreaterThan(0)
})

test('SL3 rows of clusters that share them are the same bytes, and their keys open in one cluster only', async () => {
  const { shards, write, replicaOf, pull } = sealedWorld()
  write(CLUSTER, { a: '1' })
  write(NEIGHBOUR, { a: '1' })
  const [one, two] = [await pullPage(shards, CLUSTER, null, ACCEPT), await pullPage(shards, NEIGHBOUR, null, ACCEPT)]
  expect(one.rows).toEqual(two.rows)
  expect(one.hello.seal?.enc).not.toBe(two.hello.seal?.enc)
  const thief = replicaOf('thief', CLUSTER, NEIGHBOUR)
  expect(thief.applyPage(await pull(thief))).toMatchObject({ kind: 'refused' }) // signed for this cluster, but sealed to another key
})

test('PJ14 an agent that does not say that it keeps to bounds gets no page with a bounded service', async () => {
  const { shards } = sealedWorld()
  const configMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'a' }, data: { b: '"bounds":{' } }
  const objects = new Map([[rowId('a'), canonicalJson(configMap)]])
  const bounded = canonicalJson({ ...JSON.parse(serviceDoc(objects)), bounds: { namespaces: ['web-*'] } })
  const write = (ordinal: number, doc: string) => shards.writeRevisions([{ clusterId: CLUSTER, ...WEB, ordinal, serviceDoc: doc, objects }])
  write(1, serviceDoc(objects))
  const whole = await shards.pull(CLUSTER, null, IDENTITY)
  expect(whole.kind).toBe('page')
  write(2, bounded)
  const from = whole.kind === 'page' ? whole.to : null
  for (const asked of [() => shards.pull(CLUSTER, from, IDENTITY), () => shards.refetch(CLUSTER, new Uint8Array(), IDENTITY)])
    await expect(asked()).rejects.toMatchObject({ code: 'protocol_unsupported', data: { remedy: expect.stringContaining('Upgrade') } })
  expect((await shards.pull(CLUSTER, from, { ...IDENTITY, projects: true })).kind).toBe('page')
  for (const [query, projects] of [
    ['wait=0', false],
    ['wait=0&projects=1', true],
    ['wait=0&seal=1', true],
  ] as const)
    expect(desiredQuery(query)).toMatchObject({ features: { projects } })
})

test('SL5 an agent that does not say that it opens sealed rows is refused, and gets no clear text', async () => {
  const { shards, write } = sealedWorld()
  write(CLUSTER, { a: '1' })
  await expect(shards.pull(CLUSTER, null, IDENTITY)).rejects.toMatchObject({ code: 'protocol_unsupported' })
  await expect(shards.refetch(CLUSTER, new Uint8Array(), IDENTITY)).rejects.toMatchObject({ code: 'protocol_unsupported' })
})

test.each([false, true])(
  'SP6 an agent that does not say that it opens SOPS documents gets no page with them (sealed: %p)',
  async (isSealed) => {
    const { shards, writeRows, seal } = sealedWorld()
    const plain = withSopsMember(JSON.parse(secretDoc('a', '1')), { v: 1, entries: {} })
    const doc = isSealed ? seal(rowId('a'), plain) : canonicalJson(plain)
    writeRows(CLUSTER, WEB, new Map([[rowId('a'), doc]]))
    const old = { ...ACCEPT, sops: false }
    for (const asked of [() => shards.pull(CLUSTER, null, old), () => shards.refetch(CLUSTER, new Uint8Array(), old)])
      await expect(asked()).rejects.toMatchObject({ code: 'protocol_unsupported', data: { detail: expect.stringContaining('SOPS') } })
    expect((await shards.pull(CLUSTER, null, ACCEPT)).kind).toBe('page')
    expect([desiredQuery('wait=0&sops=1'), desiredQuery('wait=0')]).toMatchObject([
      { features: { sops: true } },
      { features: { sops: false } },
    ])
  },
)

test('SL4 a page whose keys are missing, too many or others is refused', async () => {
  const { shards, write, replicaOf } = sealedWorld()
  write(CLUSTER, { a: '1', b: '1' })
  const page = wholePage(shards, CLUSTER, await shards.pull(CLUSTER, null, ACCEPT)).toString()
  const lines = page.split('\n')
  const bent = (at: number, text: string | null) => {
    const copy: string[] = text === null ? lines.toSpliced(at, 1) : lines.toSpliced(at, 1, text)
    return replicaOf('bent').applyPage(Buffer.from(copy.join('\n'))).kind
  }
  const keys = lines[1] ?? ''
  expect(bent(1, keys.slice(0, 64))).toBe('refused')
  expect(bent(1, `${keys.slice(64)}${keys.slice(0, 64)}`)).toBe('refused')
  expect(bent(1, '')).toBe('refused')
  expect(bent(1, null)).toBe('refused')
  const hello = JSON.parse(lines[0] ?? '')
  expect(bent(0, JSON.stringify({ ...hello, seal: undefined }))).toBe('refused')
  expect(bent(0, JSON.stringify({ ...hello, seal: { ...hello.seal, to: '0'.repeat(32) } }))).toBe('refused')
  expect(bent(1, keys)).toBe('applied')
})
