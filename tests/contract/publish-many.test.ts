import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { catchUpAll } from '../../server/desired/catch-up.ts'
import { type Publication, publishRevisions } from '../../server/desired/publisher.ts'
import { replayShards } from '../../server/desired/replay.ts'
import { examineShard } from '../../server/desired/shard-report.ts'
import { createFileContentStore } from '../../server/store/content/file-content-store.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { agentIdSchema, type ClusterId, type ServiceId } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { type Random, seededRandom } from '../../shared/runtime/random.ts'
import { joinInput, makeToken } from '../support/store-fixtures.ts'
import { openIn, STORES, type StoreKind } from '../support/stores.ts'
import { clusterNumber, DB, objectRows, openTestShards, serviceDoc, WEB } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'

/** Two cores, and a database of its own for each test. */
setDefaultTimeout(30_000)

async function start(kind: StoreKind, clusters: number) {
  const dir = tempDir()
  const store = await openIn(kind)
  const content = createFileContentStore(join(dir, 'content'), systemClock)
  const opened = openTestShards(join(dir, 'shards'))
  const tokenHash = await makeToken(store, 't', clusters)
  const ids: ClusterId[] = []
  for (let n = 1; n <= clusters; n++) {
    const clusterId = clusterNumber(n)
    const agentId = agentIdSchema.parse(`a-${n.toString(16).padStart(16, '0')}`)
    await store.join({ ...joinInput('1'), tokenHash, clusterId, agentId, clusterName: `cluster-${n}`, publicKey: `key-${n}` })
    ids.push(clusterId)
  }
  return { dir, store, content, opened, shards: opened.shards, ids }
}

function publication(
  clusterId: ClusterId,
  service: ServiceId,
  objects: ReadonlyMap<string, string> | null,
  commit = 'c0ffee',
): Publication {
  const rows = objects ?? new Map<string, string>()
  const doc = objects === null ? null : serviceRowSchema.parse(JSON.parse(serviceDoc(rows, commit)))
  return { clusterId, ...service, placedBy: '{}', doc, objects: rows }
}

describe.each(STORES)('on $name', (kind) => {
  test('CU6 RV4 one commit to many clusters gives each one version of its own, wakes each once, and lets others have their turn', async () => {
    const { store, content, shards, ids, opened } = await start(kind, 300)
    let turns = 0
    const pace = () => {
      turns += 1
      return undefined
    }
    const first = objectRows(WEB, { a: '1', b: '1' })
    expect(
      await publishRevisions(
        { store, content, shards, pace },
        ids.map((id) => publication(id, WEB, first)),
      ),
    ).toEqual(ids.map(() => true))
    const woken: ClusterId[] = []
    const before = ids.map((id) => shards.head(id))
    const waits = ids.map((id, index) => {
      const at = before[index]
      if (at === undefined) throw new Error('a head for each')
      return shards.waitForChange(id, at, 60_000, new AbortController().signal).then(() => woken.push(id))
    })
    turns = 0
    const second = objectRows(WEB, { a: '2', b: '1' })
    const answers = await publishRevisions(
      { store, content, shards, pace },
      ids.map((id) => publication(id, WEB, second)),
    )
    await Promise.all(waits)
    expect([answers.every(Boolean), woken.toSorted(), turns > 6]).toEqual([true, ids.toSorted(), true])
    const heads = ids.map((id) => shards.head(id))
    expect([new Set(heads.map(({ hash }) => hash)).size, new Set(heads.map(({ dv, dbId }) => `${dbId} ${dv}`)).size]).toEqual([1, 300])
    expect([0, 1].map((index) => examineShard(opened.pathOf(index)).damage)).toEqual([null, null])
    expect(
      (
        await publishRevisions(
          { store, content, shards, pace },
          ids.map((id) => publication(id, WEB, second)),
        )
      ).some(Boolean),
    ).toBe(false)
    expect(ids.map((id) => shards.head(id))).toEqual(heads)
    shards.close()
    await store.close()
  })

  const pick = <T>(random: Random, from: readonly T[]): T => from[Math.floor(random() * from.length)] as T

  test.each([1, 2, 3])('CU2 CU6 CU7 a difference taken from the store leaves the rows that reading them leaves (seed %d)', async (seed) => {
    const { dir, store, content, opened, shards, ids } = await start(kind, 6)
    const random = seededRandom(seed)
    let failing = 0
    const unsteady: typeof shards = Object.assign(Object.create(shards), {
      shardOf: shards.shardOf.bind(shards),
      ordinal: shards.ordinal.bind(shards),
      writeRevisions: (revisions: Parameters<typeof shards.writeRevisions>[0]) => {
        if (failing-- > 0) throw new Error('disk is full')
        return shards.writeRevisions(revisions)
      },
    })
    for (let step = 0; step < 60; step++) {
      failing = random() < 0.15 ? 1 : 0
      const sets = [1, 2].map(() =>
        objectRows(
          WEB,
          Object.fromEntries(['a', 'b', 'c', 'd'].flatMap((name) => (random() < 0.6 ? [[name, pick(random, ['1', '2'])]] : []))),
        ),
      )
      const batch = ids.flatMap((id) =>
        [WEB, DB].flatMap((service) => {
          if (random() < 0.4) return []
          const set = service === WEB ? pick(random, sets) : objectRows(DB, { d: pick(random, ['1', '2', '3']) })
          return [publication(id, service, random() < 0.15 ? null : set, pick(random, ['c0ffee', 'beef']))]
        }),
      )
      await publishRevisions({ store, content, shards: unsteady }, batch)
    }
    failing = 0
    await catchUpAll({ store, content, shards: unsteady })
    const { shards: anew } = openTestShards(join(dir, 'anew'))
    await replayShards({ store, content, shards: anew, log: silentLogger })
    expect(ids.map((id) => shards.head(id).hash)).toEqual(ids.map((id) => anew.head(id).hash))
    const ordinals = await store.clusterOrdinals()
    expect(ids.map((id) => shards.ordinal(id))).toEqual(ids.map((id) => ordinals.get(id) ?? 0))
    expect([0, 1].map((index) => examineShard(opened.pathOf(index)).damage)).toEqual([null, null])
    for (const each of [shards, anew]) each.close()
    await store.close()
  })

  test('CU2 RV4 rows that somebody changed behind the server’s back are read again, not counted on', async () => {
    const { store, content, opened, shards, ids } = await start(kind, 1)
    const [id] = ids
    if (id === undefined) throw new Error('one cluster')
    const publish = (objects: Record<string, string>) =>
      publishRevisions({ store, content, shards }, [publication(id, WEB, objectRows(WEB, objects))])
    await publish({ a: '1', b: '1' })
    const [row] = objectRows(WEB, { b: '2' })
    const rogue = openSqlite(opened.pathOf(shards.shardOf(id)))
    const triggers = rogue.query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").all()
    for (const { name } of triggers) rogue.run(`DROP TRIGGER "${name}"`)
    rogue.query('UPDATE desired SET doc = ? WHERE id = ?').run(row?.[1] ?? '', row?.[0] ?? '')
    for (const { sql } of triggers) rogue.run(sql)
    rogue.close()
    // The row is what the revision wants already: written blindly, its hash would be counted though nothing was
    // written.
    await publish({ a: '1', b: '2' })
    expect(examineShard(opened.pathOf(shards.shardOf(id))).damage).toContain('differ from its log')
    expect(await publish({ a: '3', b: '2' })).toEqual([true])
    await store.close()
  })
})
