// Fleet stores of earlier schemas, with data: what was there is there, on both databases.
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { copyFileSync, rmSync, statfsSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sql } from 'kysely'
import { countDifferences, wordDifferences } from '../../server/store/counts/rollup-recount.ts'
import { connectSqlite } from '../../server/store/engines/connections.ts'
import { MIGRATIONS, migrate } from '../../server/store/schema/migrations.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { joinTokenHash, joinTokenId } from '../../shared/protocol/join.ts'
import { FIXTURES, makeOldStore, openTables, readAnswers } from '../support/old-store.ts'
import { readPort } from '../support/read-port.ts'
import { canMountSmallDisk, mountSmallDisk } from '../support/small-disk.ts'
import { POSTGRES, SQLITE, STORES, type StoreKind, type StorePlace } from '../support/stores.ts'

setDefaultTimeout(60_000) // PostgreSQL is started in one of them

const NEWEST = MIGRATIONS.at(-1)?.version ?? 0

async function readAll(place: StorePlace): Promise<unknown> {
  const store = await place.open()
  try {
    return await readPort(store)
  } finally {
    await store.close()
  }
}

async function select(kind: StoreKind, place: StorePlace, statement: string): Promise<unknown[]> {
  const db = openTables(kind, place)
  try {
    return (await sql.raw<unknown>(statement).execute(db)).rows
  } finally {
    await db.destroy()
  }
}

describe.each(STORES)('migrations on $name', (kind) => {
  test.each([1, 2, 3])('ST2 whatever a store of schema %d held is read as it was', async (version) => {
    const place = await makeOldStore(kind, version)
    expect(await readAll(place)).toEqual(readAnswers(`port-${version}`))
    expect(await readAll(place)).toEqual(readAnswers(`port-${version}`)) // opening it again changes nothing
    expect(await select(kind, place, "select value from meta where key = 'schema'")).toEqual([{ value: String(NEWEST) }])
  })

  test('ST2 an API token of schema 5 does not expire', async () => {
    const place = await makeOldStore(kind, 5, { rows: false })
    await select(kind, place, "insert into api_tokens (id, token_hash, name, created_ms) values ('t', 'h', 'admin', 1)")
    const store = await place.open()
    expect(await store.apiTokenByHash('h')).toMatchObject({
      id: 't',
      name: 'admin',
      role: 'admin',
      expiresMs: null,
      replaces: null,
      lastUsedMs: null,
    })
    expect(await store.countAdminTokens(Number.MAX_SAFE_INTEGER)).toBe(1)
    await store.close()
  })

  test('ST2 JN7 a join token of schema 6 is found by its id', async () => {
    const place = await makeOldStore(kind, 6, { rows: false })
    const hash = joinTokenHash('a-secret-of-twenty-letters')
    await select(
      kind,
      place,
      `insert into join_tokens (id, token_hash, uses_left, uses, labels, created_ms, expires_ms, created_by) values ('t', '${hash}', 1, 1, '{}', 1, 2, 'a')`,
    )
    const store = await place.open()
    expect(await store.joinTokenHash(joinTokenId(hash), 'a new key')).toBe(hash)
    await store.close()
  })

  test('ST2 UK7 of a store of schema 7, tombstones may have status rows left, and a deletion under way is by nobody known', async () => {
    const place = await makeOldStore(kind, 7, { rows: false })
    const columns = 'cluster_id, project, service, ordinal, placed_by'
    await select(kind, place, `insert into desired (${columns}) values ('c-aaaaaaaaaaaaaaaa', 'p', 'gone', 1, '')`)
    await select(kind, place, `insert into desired (${columns}, set_sha) values ('c-aaaaaaaaaaaaaaaa', 'p', 'rules', 2, '', 'sha')`)
    await select(
      kind,
      place,
      `insert into resources (kind, project, name, uid, generation, version, labels, spec, created_ms, updated_ms, deleting_ms)
        values ('Service', 'p', 'gone', 'u', 1, 1, '{}', '{}', 1, 1, 5)`,
    )
    const store = await place.open()
    expect(await store.tombstones({ limit: 9 })).toMatchObject([{ service: 'gone', hasStatus: true }])
    const service = await store.getResource({ kind: 'Service', project: 'p', name: 'gone' })
    expect([service?.deletingMs, service?.deletingBy]).toEqual([5, undefined])
    await store.close()
  })

  test('ST2 ST23 questions of schema 7 that clusters ask alike are one, and what was confirmed stays confirmed', async () => {
    const place = await makeOldStore(kind, 7, { rows: false })
    const ask = (id: string, cluster: string, names: string, confirmedMs: number | null) =>
      select(
        kind,
        place,
        `insert into confirmations (id, kind, subject, project, service, cluster, token, names, why, created_ms, confirmed_ms, confirmed_by)
          values ('${id}', 'prune', 'prune/c-${cluster}/p/web', 'p', 'web', '${cluster}', 't', '${names}', 'w', 1, ${confirmedMs}, 'ada')`,
      )
    await ask('id1', 'one', '["a"]', null)
    await ask('id2', 'two', '["a"]', null)
    await ask('id3', 'three', '["a"]', 5)
    await ask('id4', 'four', '["b"]', null)
    const store = await place.open()
    expect((await store.listConfirmations()).map(({ id, cluster, clusters }) => [id, cluster, clusters?.count])).toEqual([
      ['id1', null, 2],
      ['id4', 'four', undefined],
    ])
    expect(
      (await store.confirmationsOfService({ project: 'p', service: 'web' }))
        .map(({ subject, confirmedMs }) => [subject, confirmedMs])
        .sort(),
    ).toEqual(
      [['prune/c-four/p/web', null], ['prune/c-one/p/web', null], ['prune/c-three/p/web', 5], ['prune/c-two/p/web', null]], // biome-ignore format: a table
    )
    await store.close()
  })

  test.each([1, 2, 3])('ST2 an empty store of schema %d is an empty store', async (version) => {
    const place = await makeOldStore(kind, version, { rows: false })
    const held = (await readAll(place)) as Record<string, unknown[]>
    expect(held['resources']).toEqual([])
    expect(held['status']).toEqual([[], [], [], []])
    expect(await select(kind, place, 'select name, value from counters where value <> 0')).toEqual([])
  })

  test('ST2 names, states and counts are exactly those of the rows', async () => {
    const place = await makeOldStore(kind, 2)
    await readAll(place)
    const wrong = (table: string, column: string) =>
      select(kind, place, `select id from ${table} where refs <> (select count(*) from status_rows where ${column} = ${table}.id)`)
    expect(await wrong('names', 'name_id')).toEqual([])
    expect(await wrong('states', 'state_id')).toEqual([])
    expect(
      await select(kind, place, 'select name, row_count from clusters order by no'),
    ).toEqual([{ name: 'ship-1', row_count: 19 }, { name: 'ship-2', row_count: 3 }, { name: 'shore', row_count: 0 }, { name: 'zz-last', row_count: 2 }]) // biome-ignore format: a table
    expect(await select(kind, place, "select key, refs from names where key like '%alike'")).toEqual([
      { key: 'default/web/apps/Deployment/web/alike', refs: 2 },
    ])
    const shared = await select(
      kind,
      place,
      "select refs from states where health = 'Healthy' and reason = 'Healthy' and message = '' and images is null",
    )
    expect(shared).toEqual([{ refs: 8 }])
    expect(
      await select(
        kind,
        place,
        'select cluster_id, service, digest, sync, health from desired where digest is not null or sync is not null order by 1, 2',
      ),
    ).toEqual([
      { cluster_id: 'c-aaaaaaaaaaaaaaaa', service: 'api', digest: 'd0', sync: 'OutOfSync', health: 'Progressing' },
      { cluster_id: 'c-aaaaaaaaaaaaaaaa', service: 'old', digest: null, sync: 'OutOfSync', health: 'Unknown' },
      { cluster_id: 'c-aaaaaaaaaaaaaaaa', service: 'web', digest: 'd1', sync: 'Synced', health: 'Healthy' },
      { cluster_id: 'c-bbbbbbbbbbbbbbbb', service: 'web', digest: 'd1', sync: 'Synced', health: 'Degraded' },
    ])
    expect(
      await select(kind, place, 'select service, number, commit_id, digest, object_count, set_sha from revisions order by service'),
    ).toEqual([
      { service: 'api', number: 1, commit_id: 'bad', digest: 'd0', object_count: 1, set_sha: 'sha-d0' },
      { service: 'web', number: 1, commit_id: 'c0ffee', digest: 'd1', object_count: 2, set_sha: 'sha-d1' },
    ])
  })

  test('ST3 a newer store is refused with the schema that is needed, and nothing of it changes', async () => {
    const place = await makeOldStore(kind, NEWEST, { rows: false })
    const db = openTables(kind, place)
    await db
      .updateTable('meta')
      .set({ value: String(NEWEST + 4) })
      .where('key', '=', 'schema')
      .execute()
    await db.destroy()
    const before = await select(kind, place, 'select * from counters order by name')
    await expect(place.open()).rejects.toMatchObject({ code: 'store_newer' })
    await expect(place.open()).rejects.toThrow(new RegExp(`schema ${NEWEST + 4}.*\\b${NEWEST}\\b.*[Nn]othing was changed`))
    expect(await select(kind, place, "select value from meta where key = 'schema'")).toEqual([{ value: String(NEWEST + 4) }])
    expect(await select(kind, place, 'select * from counters order by name')).toEqual(before)
  })

  test.each(['status rows', 'indices', 'services in clusters'])(
    'ST2 kill -9 in its midst (%s): the schema before it, and the next start does it',
    async (what) => {
      const place = await makeOldStore(kind, 2)
      const child = Bun.spawn([process.execPath, join(import.meta.dir, '../support/migrate-until-killed.ts'), place.at, what], {
        stderr: 'inherit',
      })
      await child.exited
      expect(child.signalCode).toBe('SIGKILL')
      expect(await select(kind, place, "select value from meta where key = 'schema'")).toEqual([{ value: '2' }])
      expect(await select(kind, place, 'select count(*) as n from statuses')).toEqual([{ n: 24 }])
      expect(await readAll(place)).toEqual(readAnswers('port-2'))
    },
  )

  test('ST2 RU3 counts are those of the rows', async () => {
    const place = await makeOldStore(kind, 2)
    const { reader, close } = await place.connect()
    const different = [...(await Array.fromAsync(countDifferences(reader))), ...(await Array.fromAsync(wordDifferences(reader)))]
    expect(different).toEqual([])
    expect(await reader.selectFrom('rollups').select('n').where('dimension', '=', 'cluster').execute()).toEqual([{ n: 4 }])
    await close()
  })

  test('ST2 a migration that fails at its end leaves the schema before it, with its data, and can be done again', async () => {
    const place = await makeOldStore(kind, 2)
    const db = openTables(kind, place)
    const engine = kind.name === 'SQLite' ? 'sqlite' : 'postgres'
    const cut = MIGRATIONS.map((migration) => ({
      ...migration,
      up: async (ddl: Parameters<typeof migration.up>[0]) => {
        await migration.up(ddl)
        throw new Error('cut')
      },
    }))
    await expect(migrate(db, engine, cut)).rejects.toThrow('cut')
    expect((await sql<{ n: number }>`select count(*) as n from statuses`.execute(db)).rows).toEqual([{ n: 24 }])
    await db.destroy()
    expect(await select(kind, place, "select value from meta where key = 'schema'")).toEqual([{ value: '2' }])
    expect(await readAll(place)).toEqual(readAnswers('port-2'))
  })
})

test('ST2 a store of schema 3 keeps its renders, revisions and rows; what releases need is added, empty', async () => {
  const place = await SQLITE.place()
  const db = openTables(SQLITE, place)
  await migrate(db, 'sqlite', MIGRATIONS.slice(0, 3))
  await sql`insert into render_states (project, service, commit_id, generation, digest, object_count, rendered_ms, error)
    values ('default', 'web', 'c1', 1, 'd1', 2, 10, null)`.execute(db)
  await sql`insert into revisions (project, service, number, commit_id, generation, digest, object_count, set_sha, rendered_ms)
    values ('default', 'web', 1, 'c1', 1, 'd1', 2, 'sha', 10)`.execute(db)
  await db.destroy()
  const store = await place.open()
  const web = { project: 'default', service: 'web' }
  const state = { commit: 'c1', generation: 1, digest: 'd1', objectCount: 2, renderedMs: 10, error: null }
  expect(await store.renderState(web)).toEqual(state)
  expect(await store.variant(web, 'd1')).toEqual({ commit: 'c1', objectCount: 2, setSha: 'sha' })
  const release = { variants: 2, revisions: { apps: 'c2' }, tools: { helm: '4.3.1' }, warnings: [{ path: 'a', message: 'lookup' }] }
  await store.setRenderState(web, { ...state, digest: 'd2', release }, [
    { digest: 'a', objectCount: 1 },
    { digest: 'b', objectCount: 2 },
  ])
  expect(await store.renderState(web)).toEqual({ ...state, digest: 'd2', release })
  expect((await store.revisions(web, { limit: 9 })).map(({ number, variants }) => [number, variants])).toEqual([
    [2, 2],
    [1, 1],
  ])
  await store.close()
})

test('ST2 a file that a server of schema 2 left behind is opened', async () => {
  const place = await SQLITE.place()
  copyFileSync(join(FIXTURES, 'schema-2.sqlite'), place.at)
  expect(await readAll(place)).toEqual(readAnswers('schema-2'))
})

const onSmallDisk = canMountSmallDisk ? test : test.skip
onSmallDisk('ST2 ST11 a file whose disk has no room for its migration stays as it is and is still good', async () => {
  const disk = mountSmallDisk(8)
  try {
    const at = join(disk.path, 'fleet.sqlite')
    copyFileSync(join(FIXTURES, 'schema-2.sqlite'), at)
    const { bavail, bsize } = statfsSync(disk.path)
    writeFileSync(join(disk.path, 'ballast'), new Uint8Array(bavail * bsize - 120_000)) // less than the file has
    await expect(connectSqlite(at)).rejects.toThrow(/\b1 MiB\b.*Nothing was changed/)
    await expect(connectSqlite(at)).rejects.toMatchObject({ code: 'disk_full' })
    rmSync(join(disk.path, 'ballast'))
    const raw = openSqlite(at)
    expect(raw.query("select value from meta where key = 'schema'").get()).toEqual({ value: '2' })
    raw.close()
    const { close } = await connectSqlite(at)
    await close()
  } finally {
    disk.remove()
  }
})

test('UK4 a file that is mostly free inside gives that back at the next start', async () => {
  const { at } = await SQLITE.place()
  await (await connectSqlite(at)).close()
  const raw = openSqlite(at, { synchronous: 'OFF' })
  raw.run('create table much (bytes blob)')
  for (let i = 0; i < 66; i++) raw.run('insert into much values (zeroblob(1048576))')
  raw.run('drop table much')
  raw.close()
  expect(statSync(at).size).toBeGreaterThan(64 * 1_048_576)
  await (await connectSqlite(at)).close()
  expect(statSync(at).size).toBeLessThan(1_048_576)
})

test.skipIf(!canMountSmallDisk)(
  'UK4 a file that cannot be written anew, because there is no place for the copy, is served as it is',
  async () => {
    const { at } = await SQLITE.place()
    await (await connectSqlite(at)).close()
    const raw = openSqlite(at, { synchronous: 'OFF' })
    raw.run('create table much (bytes blob)')
    for (let i = 0; i < 120; i++) raw.run('insert into much values (zeroblob(1048576))')
    raw.run('drop table much')
    raw.run('create table kept (bytes blob)') // more than a connection keeps in memory
    for (let i = 0; i < 48; i++) raw.run('insert into kept values (zeroblob(1048576))')
    raw.close()
    const disk = mountSmallDisk(1) // where SQLite has its own files
    try {
      const script = `const { connectSqlite } = await import(${JSON.stringify(join(import.meta.dir, '../../server/store/engines/connections.ts'))})
      const told = []
      const { close } = await connectSqlite(process.env.STORE, ({ what }) => told.push(what))
      await close()
      process.stdout.write(told.join(', '))`
      const env = { ...process.env, STORE: at, SQLITE_TMPDIR: disk.path }
      const child = Bun.spawnSync([process.execPath, '-e', script], { env })
      expect([child.stdout.toString(), child.exitCode]).toEqual(['giving back free space', 0])
    } finally {
      disk.remove()
    }
    expect(statSync(at).size).toBeGreaterThan(64 * 1_048_576)
  },
)

test('UK6 PostgreSQL knows after a migration how many rows there are, and looks after what is written all the time by itself', async () => {
  const place = await makeOldStore(POSTGRES, 2)
  await readAll(place)
  expect(await select(POSTGRES, place, "select reltuples::bigint as n from pg_class where relname = 'status_rows'")).toEqual([{ n: 24 }])
  const tuned = await select(
    POSTGRES,
    place,
    "select relname from pg_class where reloptions is not null and relkind = 'r' order by relname",
  )
  const tables = ['changes', 'clusters', 'counters', 'desired', 'events', 'names', 'rollups', 'states', 'status_rows']
  expect(tuned).toEqual(tables.map((relname) => ({ relname })))
})
