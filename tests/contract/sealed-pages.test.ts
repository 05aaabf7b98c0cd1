// Sealed rows from shard file to replica: keys in the head of each page, kept beside the rows, opened on demand.
import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { type CheckedReplica, createCrdtReplica } from '../../agent/replica/crdt-replica.ts'
import { loadSealing } from '../../server/access/sealing.ts'
import { createPageSeal } from '../../server/desired/page-seal.ts'
import type { ServiceRevision } from '../../server/desired/shards.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { sealObject } from '../../shared/kube/sealed-object.ts'
import { objectRowPrefix } from '../../shared/model/desired.ts'
import type { ClusterId } from '../../shared/model/ids.ts'
import { fingerprint, generateKey } from '../../shared/runtime/keys.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { IDENTITY, pullPage, refetchPage, wholePage } from '../support/page-kit.ts'
import { CLUSTER, NEIGHBOUR, openTestShards, SERVER_KEY, serviceDoc, WEB } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

const rowId = (name: string) => `${objectRowPrefix(WEB)}/Secret/default/${name}`
const secretDoc = (name: string, value: string) =>
  canonicalJson({ apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: 'default' }, stringData: { value } })
const ACCEPT = { zstd: false, seal: true }

function world() {
  const dir = tempDir()
  const sealing = loadSealing(join(dir, 'keys'))
  sealing.begin()
  const recipients = new Map<ClusterId, ReturnType<typeof generateKey>>([
    [CLUSTER, generateKey('x25519')],
    [NEIGHBOUR, generateKey('x25519')],
  ])
  const former: Array<ReturnType<typeof generateKey>> = []
  const seal = createPageSeal({ sealing, recipientOf: (cluster) => recipients.get(cluster)?.publicKey ?? null })
  const { shards } = openTestShards(join(dir, 'shards'), { shardCount: 1, seal })
  const keys = sealing.keysFor(WEB)
  if (keys === null) throw new Error('no keys')
  let ordinal = 0
  const write = (cluster: ClusterId, secrets: Record<string, string>) => {
    const objects = new Map(
      Object.entries(secrets).map(([name, value]) => {
        const doc = secretDoc(name, value)
        return [rowId(name), sealObject(keys, rowId(name), JSON.parse(doc), doc)]
      }),
    )
    const revision: ServiceRevision = { clusterId: cluster, ...WEB, ordinal: ++ordinal, serviceDoc: serviceDoc(objects), objects }
    shards.writeRevisions([revision])
  }
  const replicaOf = (name: string, cluster: ClusterId = CLUSTER, holder: ClusterId = cluster) =>
    createCrdtReplica({
      path: join(dir, `${name}.db`),
      clusterId: cluster,
      serverKeys: () => [SERVER_KEY.publicKey],
      recipients: {
        privateKey: (of) => [recipients.get(holder), ...former].find((key) => key && fingerprint(key.publicKey) === of)?.privateKey ?? null,
        isCurrent: (of) => fingerprint(recipients.get(holder)?.publicKey ?? '') === of,
        forget: (isNeeded) => void former.splice(0, 9, ...former.filter(({ publicKey }) => isNeeded(fingerprint(publicKey)))),
      },
      log: silentLogger,
    })
  const pull = async (replica: CheckedReplica, cluster: ClusterId = CLUSTER) =>
    (await pullPage(shards, cluster, replica.position(), ACCEPT)).frames
  return { dir, shards, write, replicaOf, pull, recipients, former }
}

async function opened(replica: CheckedReplica, name: string): Promise<string | null> {
  await replica.unlock(WEB)
  const row = replica.dump().find(([id]) => id === rowId(name))
  return row === undefined ? null : replica.open(...row)
}

test('SL4 a key comes with its row, follows it through deltas and refetches, and goes with it', async () => {
  const { dir, shards, write, replicaOf, pull } = world()
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
  expect(db.query('SELECT id FROM row_key').all()).toEqual([{ id: rowId('b') }])
  db.close()
})

test('SL4 a replica that lost a key, or the recipient key, fetches everything again', async () => {
  const { dir, shards, write, replicaOf, pull } = world()
  write(CLUSTER, { a: '1' })
  const replica = replicaOf('one')
  replica.applyPage(await pull(replica))
  replica.close()
  const db = openSqlite(join(dir, 'one.db'))
  db.run('DELETE FROM row_key')
  db.close()
  const again = replicaOf('one')
  expect([again.verified(), again.bucketSums().length]).toEqual([false, 0])
  again.applyPage((await refetchPage(shards, CLUSTER, again.bucketSums(), ACCEPT)).frames)
  expect(await opened(again, 'a')).toBe(secretDoc('a', '1'))
  again.close()
  expect(replicaOf('one', CLUSTER, NEIGHBOUR).verified()).toBe(false)
})

test('SL10 rows that were sealed to a former recipient key stay open until all are fetched anew, sealed to the next', async () => {
  const { shards, write, replicaOf, pull, recipients, former } = world()
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
  const { shards, write, replicaOf, pull } = world()
  write(CLUSTER, { a: '1' })
  write(NEIGHBOUR, { a: '1' })
  const [one, two] = [await pullPage(shards, CLUSTER, null, ACCEPT), await pullPage(shards, NEIGHBOUR, null, ACCEPT)]
  expect(one.rows).toEqual(two.rows)
  expect(one.hello.seal?.enc).not.toBe(two.hello.seal?.enc)
  const thief = replicaOf('thief', CLUSTER, NEIGHBOUR)
  expect(thief.applyPage(await pull(thief))).toMatchObject({ kind: 'refused' }) // signed for this cluster, but sealed to another key
})

test('SL5 an agent that does not say that it opens sealed rows is refused, and gets no clear text', async () => {
  const { shards, write } = world()
  write(CLUSTER, { a: '1' })
  await expect(shards.pull(CLUSTER, null, IDENTITY)).rejects.toMatchObject({ code: 'protocol_unsupported' })
  await expect(shards.refetch(CLUSTER, new Uint8Array(), IDENTITY)).rejects.toMatchObject({ code: 'protocol_unsupported' })
})

test('SL4 a page whose keys are missing, too many or others is refused', async () => {
  const { shards, write, replicaOf } = world()
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
