// Somebody writes the fleet store or a shard file, without the keys of the server: a sealed set that is moved to
// another cluster, service or revision is not opened there, and the next reconciliation puts the right one in its
// place.
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type CheckedReplica, createCrdtReplica } from '../../agent/replica/crdt-replica.ts'
import { isProven, placedBy, proveAll, withProofs } from '../../server/access/placement-proofs.ts'
import { loadSealing } from '../../server/access/sealing.ts'
import { createPageSeal } from '../../server/desired/page-seal.ts'
import { createProvenSets } from '../../server/desired/proven-sets.ts'
import { publishRevisions } from '../../server/desired/publisher.ts'
import { createSetReader, replayShards } from '../../server/desired/replay.ts'
import type { DesiredService } from '../../server/fleet/records.ts'
import { inForceOf } from '../../server/ingest/render/in-force.ts'
import { createFileContentStore } from '../../server/store/content/file-content-store.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { canonicalJson } from '../../shared/kube/canonical.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { sealObject } from '../../shared/model/sealed-object.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import type { ClusterId, ServiceId } from '../../shared/runtime/ids.ts'
import { fingerprint, generateKey } from '../../shared/runtime/keys.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { pullPage } from '../support/page-kit.ts'
import { ACCEPT, opened, rowId, secretDoc } from '../support/sealed-world.ts'
import { joinCluster } from '../support/store-fixtures.ts'
import { SQLITE, STORES } from '../support/stores.ts'
import { DB, openTestShards, SERVER_KEY, serviceDoc, WEB } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

async function world(kind = SQLITE) {
  const dir = tempDir()
  const place = await kind.place()
  const plain = await place.open()
  const sealing = loadSealing(join(dir, 'keys'))
  sealing.begin()
  const store = withProofs(plain, sealing)
  const content = createFileContentStore(join(dir, 'content'), systemClock)
  const [mine, theirs] = [await joinCluster(store, '1'), await joinCluster(store, '2')]
  const recipient = generateKey('x25519')
  const shardFiles = (name: string) =>
    openTestShards(join(dir, name), {
      shardCount: 1,
      proven: createProvenSets({ placed: placedBy(plain, sealing, createSetReader(content)) }),
      seal: createPageSeal({ sealing, recipientOf: () => recipient.publicKey }),
    })
  let { shards } = shardFiles('shards')
  const setOf = (service: ServiceId, secrets: Record<string, string>) => {
    const keys = sealing.keysFor(service)
    if (keys === null) throw new Error('no keys')
    return new Map(
      Object.entries(secrets).map(([name, value]) => {
        const [id, doc] = [rowId(name, service), canonicalJson(JSON.parse(secretDoc(name, value)))]
        return [id, sealObject(keys, id, JSON.parse(doc), doc)] as const
      }),
    )
  }
  const publish = async (clusterId: ClusterId, secrets: Record<string, string>, more: Partial<DesiredService> = {}, service = WEB) => {
    const objects = setOf(service, secrets)
    const doc = serviceRowSchema.parse(JSON.parse(serviceDoc(objects)))
    await publishRevisions({ store, content, shards }, [{ clusterId, ...service, placedBy: '{}', doc, objects, ...more }])
  }
  const rowOf = async (clusterId: ClusterId, service = WEB): Promise<DesiredService> => {
    const [row] = await plain.desiredOf(service, [clusterId])
    if (row === undefined) throw new Error('no row')
    return row
  }
  const replicaOf = (name: string, clusterId: ClusterId): CheckedReplica =>
    createCrdtReplica({
      path: join(dir, `${name}.db`),
      clusterId,
      serverKeys: () => [SERVER_KEY.publicKey],
      recipients: {
        privateKey: (of) => (of === fingerprint(recipient.publicKey) ? recipient.privateKey : null),
        isCurrent: () => true,
        forget: () => {},
      },
      log: silentLogger,
    })
  const pull = async (replica: CheckedReplica, clusterId: ClusterId) =>
    replica.applyPage((await pullPage(shards, clusterId, replica.position(), ACCEPT)).frames)
  /** Another process of the server: it knows what is in the files and no more. */
  const restart = async (name = 'shards', between = () => {}) => {
    shards.close()
    between()
    ;({ shards } = shardFiles(name))
    await replayShards({ store, content, shards, log: silentLogger })
  }
  /** As the attacker does it. */
  const sql = (text: string, file = place.at) => {
    const db = openSqlite(file)
    // Those of cr-sqlite in shard files keep a plain connection from writing.
    const triggers = db.query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'").all()
    for (const { name } of triggers) db.run(`DROP TRIGGER "${name}"`)
    db.run(text)
    for (const trigger of triggers) db.run(trigger.sql)
    db.close()
  }
  /** The row of one cluster becomes that of the other, as its newest. */
  const move = async (from: DesiredService, to: ClusterId, columns = 'doc, set_sha, digest, rendered_from, proof') => {
    const list = columns.split(', ').map(
      (column) => `${column} = (select ${column} from desired
      where cluster_id = '${from.clusterId}' and project = '${from.project}' and service = '${from.service}')`,
    )
    sql(`update clusters set ordinal = ordinal + 1 where cluster_id = '${to}'`)
    sql(`update desired set ${list.join(', ')}, ordinal = (select ordinal from clusters where cluster_id = '${to}')
      where cluster_id = '${to}' and project = 'shop' and service = 'web'`)
  }
  const shardPath = join(dir, 'shards', 'shard-00.db')
  return { plain, store, sealing, content, mine, theirs, publish, rowOf, replicaOf, pull, restart, sql, move, shardPath }
}

const refused = { code: 'unavailable', message: expect.stringContaining('nothing proves') }

describe('SL16 a writer of the fleet store gives a cluster', () => {
  test('the set of another cluster of the service: no page is made of it, until the service is published again', async () => {
    const { mine, theirs, publish, rowOf, replicaOf, pull, restart, move } = await world()
    await publish(mine, { a: 'mine' })
    await publish(theirs, { a: 'theirs' })
    const replica = replicaOf('mine', mine)
    await pull(replica, mine)
    await move(await rowOf(theirs), mine)
    await restart()
    await expect(pull(replica, mine)).rejects.toMatchObject(refused)
    await expect(pull(replicaOf('new', mine), mine)).rejects.toMatchObject(refused)
    await restart('rebuilt')
    await expect(pull(replicaOf('newer', mine), mine)).rejects.toMatchObject(refused)
    expect(await opened(replica, 'a')).toBe(secretDoc('a', 'mine'))
    await publish(mine, { a: 'mine, newer' })
    const healed = replicaOf('healed', mine)
    await pull(healed, mine)
    expect(await opened(healed, 'a')).toBe(secretDoc('a', 'mine, newer'))
  })

  test('an earlier set of its own, as a new revision', async () => {
    const { mine, theirs, publish, rowOf, replicaOf, restart, pull, sql } = await world()
    await publish(mine, { a: 'earlier' })
    const { proof, setSha } = await rowOf(mine)
    await publish(mine, { a: 'later' })
    await publish(theirs, { a: 'theirs' })
    for (const kept of ['proof', `'${proof}'`]) {
      sql(`update clusters set ordinal = ordinal + 1 where cluster_id = '${mine}'`)
      sql(`update desired set set_sha = '${setSha}', proof = ${kept}, ordinal = ordinal + 1 where cluster_id = '${mine}'`)
      await restart()
      await expect(pull(replicaOf(`replay-${kept.length}`, mine), mine)).rejects.toMatchObject(refused)
    }
    await pull(replicaOf('theirs', theirs), theirs) // others are served
  })

  test('a set without a proof, as if an earlier version had written it', async () => {
    const { mine, theirs, publish, rowOf, replicaOf, restart, pull, move, sql, plain, sealing } = await world()
    await publish(mine, { a: 'mine' })
    await publish(theirs, { a: 'theirs' })
    await move(await rowOf(theirs), mine)
    sql('update desired set proof = null')
    await proveAll(plain, sealing)
    await restart()
    await expect(pull(replicaOf('one', mine), mine)).rejects.toMatchObject(refused)
  })

  test('the name of the inputs of another one: its set is not taken for that of these inputs', async () => {
    const { mine, theirs, publish, rowOf, sql, store, content, sealing } = await world()
    const inForce = (of: string) => inForceOf({ store, content, sealing }, WEB)(of, true)
    await publish(mine, { a: 'mine' }, { renderedFrom: 'inputs of mine' })
    await publish(theirs, { a: 'theirs' }, { renderedFrom: 'inputs of theirs' })
    expect((await inForce('inputs of theirs'))?.digest).toBe((await rowOf(theirs)).doc?.digest)
    sql(`update desired set rendered_from = 'inputs of mine, newer' where cluster_id = '${theirs}'`)
    expect(await inForce('inputs of mine, newer')).toBeNull()
  })
})

test('SL16 a writer of a shard file gives a cluster the rows of another one: their keys are not wrapped', async () => {
  const { mine, theirs, publish, replicaOf, restart, pull, sql, shardPath } = await world()
  await publish(mine, { a: 'mine' })
  await publish(theirs, { a: 'theirs' })
  const text = `update desired set doc = (select doc from desired where cluster = '${theirs}' and id = '${rowId('a')}')
    where cluster = '${mine}' and id = '${rowId('a')}'`
  await restart('shards', () => sql(text, shardPath))
  await expect(pull(replicaOf('one', mine), mine)).rejects.toMatchObject(refused)
})

describe('SL16 pages are made as before', () => {
  test('after a restart, of a rebuilt shard file, and for clusters that share a set', async () => {
    const { mine, theirs, publish, replicaOf, restart, pull } = await world()
    for (const cluster of [mine, theirs]) await publish(cluster, { a: 'shared', b: '1' })
    await publish(mine, { d: '1' }, {}, DB)
    for (const name of ['shards', 'rebuilt']) {
      await restart(name)
      for (const cluster of [mine, theirs]) {
        const replica = replicaOf(`${name}-${cluster}`, cluster)
        await pull(replica, cluster)
        expect(await opened(replica, 'a')).toBe(secretDoc('a', 'shared'))
        await publish(cluster, { a: 'shared', b: `of ${name}` })
        await pull(replica, cluster)
        expect(await opened(replica, 'b')).toBe(secretDoc('b', `of ${name}`))
      }
    }
  })

  test.each(STORES)(
    '$name: an upgraded fleet gets proofs once, and what lacks one gets it when it is published again',
    async (kind) => {
      const { mine, plain, publish, rowOf, sealing, store } = await world(kind)
      await publish(mine, { a: '1' }, { renderedFrom: 'inputs' })
      const before = await rowOf(mine)
      expect([isProven(sealing, before), isProven(sealing, { ...before, renderedFrom: 'others' })]).toEqual([true, false])
      const { ordinal: _, ...row } = before
      await plain.publish([row], () => null)
      expect((await rowOf(mine)).proof).toBeUndefined()
      const marks = async () => [
        ...(await store.desiredOfService(WEB)).map(({ unproven }) => unproven),
        ...(await store.desiredOf(WEB, [mine])).map(({ unproven }) => unproven),
        ...(await store.desiredInCluster(mine)).map(({ unproven }) => unproven),
      ]
      expect(await marks()).toEqual([true, true, true])
      await publish(mine, { a: '1' }, { renderedFrom: 'inputs', unproven: true }) // as a confirmed restore does it
      expect(await marks()).toEqual([true, true, true])
      await publish(mine, { a: '1' }, { renderedFrom: 'inputs' })
      expect([await rowOf(mine), await marks()]).toEqual([before, [undefined, undefined, undefined]])
      await publish(mine, { a: '1' }, { renderedFrom: 'other inputs' })
      expect(isProven(sealing, await rowOf(mine))).toBe(true)
      await plain.publish([row], () => null)
      const upgraded = { ...sealing, hasProofs: () => false }
      expect([await proveAll(plain, upgraded), await proveAll(plain, sealing), await rowOf(mine)]).toEqual([1, 0, before])
    },
    60_000,
  )
})
