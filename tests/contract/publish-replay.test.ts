import { expect, test } from 'bun:test'
import { renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { keepCaughtUp } from '../../server/desired/catch-up.ts'
import { raiseEpochs } from '../../server/desired/epochs.ts'
import { publishRevisions } from '../../server/desired/publisher.ts'
import { replayShards } from '../../server/desired/replay.ts'
import { discardStale } from '../../server/desired/stale-shards.ts'
import { createFileContentStore } from '../../server/store/content/file-content-store.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { ROW_DOC_BYTES_MAX } from '../../shared/protocol/routes.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { type ClusterId, clusterIdSchema, type ServiceId } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { IDENTITY, pullPage } from '../support/page-kit.ts'
import { joinCluster } from '../support/store-fixtures.ts'
import { openIn, SQLITE } from '../support/stores.ts'
import { CLUSTER, DB, objectRows, openTestShards, serviceDoc, WEB } from '../support/sync-kit.ts'
import { tempDir } from '../support/temp-dir.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

async function start() {
  const dir = tempDir()
  const store = await openIn(SQLITE)
  const clusterId = await joinCluster(store, '1')
  const content = createFileContentStore(join(dir, 'content'), systemClock)
  const { shards } = openTestShards(join(dir, 'shards'))
  const row = (service: ServiceId, objects: Record<string, string> | null) => {
    const rows = objectRows(service, objects ?? {})
    return {
      rows,
      row: { clusterId, ...service, placedBy: '{}', doc: objects === null ? null : serviceRowSchema.parse(JSON.parse(serviceDoc(rows))) },
    }
  }
  const publish = async (
    service: ServiceId,
    objects: Record<string, string> | null,
    into = shards,
    through: Pick<typeof store, 'publish' | 'desiredInCluster'> = store,
  ) => {
    const { row: desired, rows } = row(service, objects)
    const [changed] = await publishRevisions({ store: through, content, shards: into }, [{ ...desired, objects: rows }])
    return { changed }
  }
  return { dir, store, clusterId, content, shards, publish }
}

test('RV4 publishing the same revision again writes neither store nor shard', async () => {
  const { publish, shards, clusterId, store } = await start()
  expect(await publish(WEB, { a: '1' })).toEqual({ changed: true })
  const [head, ordinals] = [shards.head(clusterId), await store.clusterOrdinals()]
  expect(await publish(WEB, { a: '1' })).toEqual({ changed: false })
  expect([shards.head(clusterId), await store.clusterOrdinals()]).toEqual([head, ordinals])
})

test('CU7 publications that run together reach the shard in the order of their ordinals', async () => {
  const { publish, shards, clusterId, store } = await start()
  const ordinals: number[] = []
  const spied: typeof shards = Object.assign(Object.create(shards), {
    shardOf: shards.shardOf.bind(shards),
    writeRevisions: (revisions: Parameters<typeof shards.writeRevisions>[0]) => {
      ordinals.push(...revisions.map(({ ordinal }) => ordinal))
      return shards.writeRevisions(revisions)
    },
  })
  // Later answers overtake earlier ones.
  const slow = {
    desiredInCluster: store.desiredInCluster,
    publish: async (desired: Parameters<typeof store.publish>[0]) => {
      const published = await store.publish(desired)
      await Bun.sleep(2 * (21 - (published[0]?.ordinal ?? 0)))
      return published
    },
  }
  await Promise.all(Array.from({ length: 20 }, (_, n) => publish({ project: 'shop', service: `s${n}` }, { a: '1' }, spied, slow)))
  expect(ordinals).toEqual(Array.from({ length: 20 }, (_, n) => n + 1))
  expect(shards.ordinal(clusterId)).toBe((await store.clusterOrdinals()).get(clusterId) ?? 0)
})

test('CU5 CU7 a shard that lacks revisions, or all of them, gets them from the fleet store', async () => {
  const { publish, shards, clusterId, store, content, dir } = await start()
  await publish(WEB, { a: '1' })
  await publish(DB, { d: '1' })
  // A crash between store and shard: the store has it, the shard does not.
  const deaf: typeof shards = Object.assign(Object.create(shards), { shardOf: () => 0, writeRevisions: () => [{ changed: true }] })
  await publish(WEB, { a: '2', b: '2' }, deaf)
  await publish(DB, null, deaf)
  const replay = (into: typeof shards) => replayShards({ store, content, shards: into, log: silentLogger })
  expect(await replay(shards)).toBe(2)
  expect(await replay(shards)).toBe(0)
  const { shards: anew } = openTestShards(join(dir, 'anew'))
  await replay(anew)
  expect(anew.head(clusterId).hash).toBe(shards.head(clusterId).hash)
  expect(anew.ordinal(clusterId)).toBe(shards.ordinal(clusterId))
})

test('CU5 CU7 a server that is killed between store and shard has the revision after its next start, and no agent refetches', async () => {
  const dir = tempDir()
  const first = (await openBoth(dir)).shards.shards
  const { dbId } = first.head(CLUSTER)
  first.close()
  const child = Bun.spawn([process.execPath, join(import.meta.dir, '../support/publish-until-killed.ts'), dir], {
    stderr: 'inherit',
    stdout: 'pipe',
  })
  const clusterId = clusterIdSchema.parse((await new Response(child.stdout).text()).trim())
  await child.exited
  expect(child.signalCode).toBe('SIGKILL')

  const { store, shards: opened, content } = await openBoth(dir)
  const { shards } = opened
  const ordinal = (await store.clusterOrdinals()).get(clusterId) ?? 0
  const cursor = shards.head(clusterId)
  expect([shards.ordinal(clusterId), ordinal, cursor.dbId]).toEqual([1, 2, dbId])
  expect(await replayShards({ store, content, shards, log: silentLogger })).toBe(1)
  expect(shards.ordinal(clusterId)).toBe(2)
  expect((await shards.pull(clusterId, cursor, IDENTITY)).kind).toBe('page')
  shards.close()
  await store.close()
})

test('CU7 what a shard could not take (a full disk) reaches it with the next publication, in order', async () => {
  const { publish, shards, clusterId, store } = await start()
  await publish(WEB, { a: '1' })
  let full = true
  const failing: typeof shards = Object.assign(Object.create(shards), {
    ordinal: shards.ordinal.bind(shards),
    shardOf: shards.shardOf.bind(shards),
    writeRevisions: (revisions: Parameters<typeof shards.writeRevisions>[0]) => {
      if (full) throw new Error('disk is full')
      return shards.writeRevisions(revisions)
    },
  })
  expect([await publish(WEB, { a: '2' }, failing), await publish(DB, { d: '1' }, failing)]).toEqual([{ changed: true }, { changed: true }])
  expect(failing.behind.of(clusterId)).toMatchObject({ error: 'disk is full' })
  full = false
  await publish(DB, { d: '2' }, failing)
  expect([failing.behind.size, shards.ordinal(clusterId)]).toEqual([0, (await store.clusterOrdinals()).get(clusterId) ?? 0])
  const { text } = await pullPage(shards, clusterId, null)
  expect([text.includes('"value":"2"'), text.includes('ConfigMap/default/d')]).toEqual([true, true])
})

test('CU7 a commit of the fleet store whose answer was lost reaches the shard with the next publication', async () => {
  const { publish, shards, clusterId, store } = await start()
  const lost = {
    desiredInCluster: store.desiredInCluster,
    publish: async (rows: Parameters<typeof store.publish>[0]): Promise<never> => {
      await store.publish(rows)
      throw new Error('connection lost')
    },
  }
  await expect(publish(WEB, { a: '1' }, shards, lost)).rejects.toThrow('connection lost')
  expect(await publish(WEB, { a: '1' })).toEqual({ changed: false })
  expect((await pullPage(shards, clusterId, null)).text).toContain('"value":"1"')
})

/** The three stores of a server, over files that outlive a process. */
async function openBoth(dir: string) {
  return {
    store: await openSqliteStore(join(dir, 'fleet.sqlite'), { clock: systemClock, random: seededRandom(1) }),
    shards: openTestShards(join(dir, 'shards'), { shardCount: 1 }),
    content: createFileContentStore(join(dir, 'content'), systemClock),
  }
}

/** What a server does at its start. */
async function startOver({ store, shards, content }: Awaited<ReturnType<typeof openBoth>>) {
  await discardStale({ store, opened: shards, log: silentLogger })
  const raised = await raiseEpochs({ store, opened: shards, log: silentLogger })
  await replayShards({ store, content, shards: shards.shards, log: silentLogger })
  return raised
}

test('CU7 a shard file that takes nothing keeps no other from what is published', async () => {
  const { store, content, shards } = await start()
  const clusters = await Promise.all(Array.from({ length: 8 }, (_, n) => joinCluster(store, String(n + 2))))
  const broken = shards.shardOf(clusters[0] ?? CLUSTER)
  let isBroken = true
  const into: typeof shards = Object.assign(Object.create(shards), {
    shardOf: shards.shardOf.bind(shards),
    ordinal: shards.ordinal.bind(shards),
    writeRevisions: (revisions: Parameters<typeof shards.writeRevisions>[0]) => {
      if (isBroken && revisions.some(({ clusterId }) => shards.shardOf(clusterId) === broken)) throw new Error('damaged')
      return shards.writeRevisions(revisions)
    },
  })
  const publishTo = (ids: readonly ClusterId[], value: string) => {
    const objects = objectRows(WEB, { a: value })
    const doc = serviceRowSchema.parse(JSON.parse(serviceDoc(objects)))
    return publishRevisions(
      { store, content, shards: into },
      ids.map((clusterId) => ({ clusterId, ...WEB, placedBy: '{}', doc, objects })),
    )
  }
  const publishAll = (value: string) => publishTo(clusters, value)
  const behind = async () => {
    const ordinals = await store.clusterOrdinals()
    return clusters.filter((clusterId) => shards.ordinal(clusterId) < (ordinals.get(clusterId) ?? 0))
  }
  const ofBroken = clusters.filter((clusterId) => shards.shardOf(clusterId) === broken)
  expect(ofBroken.length).toBeLessThan(clusters.length)
  for (const value of ['1', '2']) {
    expect(await publishAll(value)).toEqual(clusters.map(() => true))
    expect([await behind(), [...(await store.clusterOrdinals()).values()].filter((ordinal) => ordinal === Number(value)).length]).toEqual([
      ofBroken,
      8,
    ])
  }
  expect(shards.behind.list().toSorted()).toEqual(ofBroken.toSorted())
  const [first] = clusters.filter((clusterId) => !ofBroken.includes(clusterId))
  if (first === undefined) throw new Error('a cluster of another file')
  expect(await publishTo([first], '3')).toEqual([true])
  isBroken = false
  await publishAll('2')
  expect([await behind(), shards.behind.size]).toEqual([[], 0])
})

test('CU7 a cluster that alone cannot be written keeps no neighbour of its file behind, and catches up by itself', async () => {
  const { store, content, shards } = await start()
  const clusters = await Promise.all(Array.from({ length: 6 }, (_, n) => joinCluster(store, String(n + 2))))
  const [bad] = clusters
  let attempts = 0
  let isBad = true
  const into: typeof shards = Object.assign(Object.create(shards), {
    shardOf: () => 0, // all of them are written in one transaction
    ordinal: shards.ordinal.bind(shards),
    writeRevisions: (revisions: Parameters<typeof shards.writeRevisions>[0]) => {
      const isTouched = revisions.some(({ clusterId }) => clusterId === bad)
      if (isTouched) attempts += 1
      if (isTouched && isBad) throw new Error('cannot be written')
      return revisions.flatMap((revision) => shards.writeRevisions([revision]))
    },
  })
  const objects = objectRows(WEB, { a: '1' })
  const doc = serviceRowSchema.parse(JSON.parse(serviceDoc(objects)))
  const deps = { store, content, shards: into }
  await publishRevisions(
    deps,
    clusters.map((clusterId) => ({ clusterId, ...WEB, placedBy: '{}', doc, objects })),
  )
  expect(shards.behind.list()).toEqual(clusters.slice(0, 1))
  expect(clusters.map((clusterId) => shards.ordinal(clusterId))).toEqual([0, 1, 1, 1, 1, 1])
  const clock = createVirtualClock()
  const stopping = new AbortController()
  const running = keepCaughtUp({ ...deps, clock, random: () => 1, log: silentLogger }, stopping.signal)
  attempts = 0
  for (const [attempt, waitMs] of [1_000, 2_000, 4_000].entries()) {
    while (clock.asked.length <= attempt) await Bun.sleep(1)
    expect([attempts, clock.asked[attempt]]).toEqual([attempt, waitMs])
    if (attempt === 2) isBad = false
    await clock.advance(waitMs)
  }
  while (shards.behind.size > 0) await Bun.sleep(1)
  expect([attempts, clusters.map((clusterId) => shards.ordinal(clusterId))]).toEqual([3, [1, 1, 1, 1, 1, 1]])
  stopping.abort()
  await running
})

test('CU8 a fleet store that was restored from a backup: the shard file is made anew, epochs are raised, and it holds what the store says', async () => {
  const dir = tempDir()
  const parts = await openBoth(dir)
  const { store, content, shards } = parts
  const clusterId = await joinCluster(store, '1')
  const neighbour = await joinCluster(store, '2')
  await startOver(parts)
  const placed = { placedBy: '{}', ...WEB }
  const publish = (cluster: typeof clusterId, value: string) => {
    const objects = objectRows(WEB, { a: value })
    const doc = serviceRowSchema.parse(JSON.parse(serviceDoc(objects)))
    return publishRevisions({ store, content, shards: shards.shards }, [{ ...placed, clusterId: cluster, doc, objects }])
  }
  await publish(clusterId, '1')
  await publish(neighbour, '1')
  const good = shards.shards.head(clusterId)
  const backup = join(dir, 'backup.sqlite')
  const live = openSqlite(join(dir, 'fleet.sqlite'))
  live.run(`VACUUM INTO '${backup}'`)
  live.close()
  await publish(clusterId, '2')
  shards.shards.close()
  await store.close()
  for (const suffix of ['-wal', '-shm']) rmSync(join(dir, `fleet.sqlite${suffix}`), { force: true })
  renameSync(backup, join(dir, 'fleet.sqlite'))

  const restored = await openBoth(dir)
  expect((await startOver(restored)).sort()).toEqual([clusterId, neighbour].sort())
  const head = restored.shards.shards.head(clusterId)
  expect([head.hash, head.dbId === good.dbId]).toEqual([good.hash, false])
  expect(restored.shards.shards.ordinal(clusterId)).toBe(1)
  expect((await restored.shards.shards.pull(neighbour, null, IDENTITY)).kind).toBe('page')
  expect(await startOver(restored)).toEqual([])
  restored.shards.shards.close()
  await restored.store.close()
})

test('CU8 a cluster that the store lost in a crash before its shard did is removed from the shard at the start', async () => {
  const { store, clusterId, content, dir, shards: unused } = await start()
  unused.close()
  const opened = openTestShards(join(dir, 'again'), { shardCount: 1 })
  const rows = objectRows(WEB, { a: '1' })
  const doc = serviceRowSchema.parse(JSON.parse(serviceDoc(rows)))
  await publishRevisions({ store, content, shards: opened.shards }, [{ ...WEB, clusterId, placedBy: '{}', doc, objects: rows }])
  await store.deleteCluster('cluster-1')
  await startOver({ store, content, shards: opened })
  expect([opened.held(), opened.shards.ordinal(clusterId), opened.shards.head(clusterId).dv]).toEqual([[], 0, 0])
})

test('CU8 a shard file that stayed behind while the fleet store lived elsewhere is made anew, though no ordinal tells', async () => {
  const dir = tempDir()
  const parts = await openBoth(dir)
  const { store, content } = parts
  const clusterId = await joinCluster(store, '1')
  await startOver(parts)
  const publish = (shards: typeof parts.shards, value: string) => {
    const objects = objectRows(WEB, { a: value })
    const doc = serviceRowSchema.parse(JSON.parse(serviceDoc(objects)))
    return publishRevisions({ store, content, shards: shards.shards }, [{ ...WEB, placedBy: '{}', clusterId, doc, objects }])
  }
  await publish(parts.shards, '1')
  parts.shards.shards.close()
  const elsewhere = openTestShards(join(dir, 'elsewhere'), { shardCount: 1 })
  await startOver({ store, content, shards: elsewhere })
  await publish(elsewhere, '2')
  const wanted = elsewhere.shards.head(clusterId).hash
  // As if the store had been set back in between: the file's own ordinal is none that it would replay from.
  const lie = openSqlite(join(dir, 'shards', 'shard-00.db'))
  lie.run('UPDATE cluster_ordinal SET ordinal = 2')
  lie.close()
  const back = openTestShards(join(dir, 'shards'), { shardCount: 1 })
  expect(await startOver({ store, content, shards: back })).toEqual([clusterId])
  expect(back.shards.head(clusterId).hash).toBe(wanted)
  expect(await startOver({ store, content, shards: back })).toEqual([])
  for (const { shards } of [elsewhere, back]) shards.close()
  await store.close()
})

test('CU8 RP2 what a restored store must know is told once for all clusters, before the files are gone', async () => {
  const dir = tempDir()
  const { store, content, shards: opened } = await openBoth(dir)
  const [one, two] = [await joinCluster(store, '1'), await joinCluster(store, '2')]
  for (const clusterId of [one, two]) {
    const objects = objectRows(WEB, { a: '1' })
    const doc = serviceRowSchema.parse(JSON.parse(serviceDoc(objects)))
    await publishRevisions({ store, content, shards: opened.shards }, [{ ...WEB, placedBy: '{}', clusterId, doc, objects }])
  }
  const told: unknown[] = []
  const setBack = { ...store, clusterOrdinals: async () => new Map([[one, 0]]) } // before both got something, and before the second joined
  const onAhead = async (ahead: ReadonlyMap<string, number>) => void told.push([...ahead], opened.held().length)
  await discardStale({ store: setBack, opened, log: silentLogger, onAhead })
  expect([told, opened.held()]).toEqual([[[[one, 1]], 2], []])
  opened.shards.close()
  await store.close()
})

test('CU5 a replay without its content fails aloud instead of serving less than there is', async () => {
  const { publish, store, dir } = await start()
  await publish(WEB, { a: '1' })
  const { shards: anew } = openTestShards(join(dir, 'anew'))
  const empty = createFileContentStore(join(dir, 'empty'), systemClock)
  await expect(replayShards({ store, content: empty, shards: anew, log: silentLogger })).rejects.toThrow('content store lacks')
})

test('PL5 a row past the limits is refused before anything is written, and the next publication goes on', async () => {
  const { publish, store } = await start()
  await expect(publish(WEB, { a: 'x'.repeat(ROW_DOC_BYTES_MAX) })).rejects.toThrow('longer than')
  expect([...(await store.clusterOrdinals()).values()]).toEqual([0])
  expect(await publish(WEB, { a: '1' })).toEqual({ changed: true })
})
