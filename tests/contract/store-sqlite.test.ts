// The contract on SQLite, and what only a file can show: migrations, a newer file, a kill.
import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Kysely, sql } from 'kysely'
import { connectSqlite } from '../../server/store/engines/connections.ts'
import { sqliteDialect } from '../../server/store/engines/sqlite-dialect.ts'
import { openSqliteStore } from '../../server/store/kysely-store.ts'
import { MIGRATIONS, migrate } from '../../server/store/schema/migrations.ts'
import type { Tables } from '../../server/store/tables.ts'
import { openSqlite } from '../../shared/adapters/sqlite.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { agentIdSchema, clusterIdSchema } from '../../shared/runtime/ids.ts'
import { seededRandom } from '../../shared/runtime/random.ts'
import { API_TOKEN } from '../support/store-fixtures.ts'
import { storeContract } from './store.contract.ts'

const folder = mkdtempSync(join(tmpdir(), 'skerry-store-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
let files = 0
const newPath = () => join(folder, `fleet-${files++}.db`)
const open = (path: string) => openSqliteStore(path, { clock: systemClock, random: seededRandom(1) })

storeContract('SQLite', () => open(newPath()))

const openTables = (path: string) => new Kysely<Tables>({ dialect: sqliteDialect(path) })

describe('migrations', () => {
  const extra = {
    version: (MIGRATIONS.at(-1)?.version ?? 0) + 1,
    up: async ({ trx }: Parameters<(typeof MIGRATIONS)[number]['up']>[0]) => {
      await trx.schema.alterTable('api_tokens').addColumn('note', 'text').execute()
    },
  }

  test('ST2 an older file is brought forward and keeps what it holds; a second run does nothing', async () => {
    const path = newPath()
    const store = await open(path)
    await store.createApiToken({ ...API_TOKEN, id: 't', tokenHash: 'h' })
    await store.close()
    const db = openTables(path)
    await migrate(db, 'sqlite', [...MIGRATIONS, extra])
    await migrate(db, 'sqlite', [...MIGRATIONS, extra])
    expect(await db.selectFrom('api_tokens').selectAll().execute()).toMatchObject([
      { id: 't', token_hash: 'h', name: 'n', created_ms: 1, note: null },
    ])
    await db.destroy()
  })

  test('ST2 a new store, in a file or in memory, has what all migrations make, and shares nothing with another one', async () => {
    const migrated = openTables(newPath())
    await migrate(migrated, 'sqlite', MIGRATIONS)
    const schemaOf = async (db: Kysely<Tables>) =>
      (await sql`select type, name, tbl_name, sql from sqlite_master order by type, name`.execute(db)).rows
    const expected = await schemaOf(migrated)
    await migrated.destroy()
    for (const path of [newPath(), ':memory:']) {
      const [one, other] = [await connectSqlite(path), await connectSqlite(path === ':memory:' ? path : newPath())]
      expect(await schemaOf(one.writer)).toEqual(expected)
      await one.writer.insertInto('meta').values({ key: 'note', value: 'written' }).execute()
      expect(await other.writer.selectFrom('meta').select('key').where('key', '=', 'note').execute()).toEqual([])
      await Promise.all([one.close(), other.close()])
    }
  })

  test('ST3 a file of a newer version is refused and left as it is', async () => {
    const path = newPath()
    const db = openTables(path)
    await migrate(db, 'sqlite', [...MIGRATIONS, extra])
    await db.destroy()
    await expect(open(path)).rejects.toMatchObject({ code: 'store_newer' })
    const raw = openSqlite(path)
    expect(raw.query("select value from meta where key = 'schema'").get()).toEqual({ value: String(extra.version) })
    raw.close()
  })

  test('ST2 a migration that fails half-way leaves the schema before it', async () => {
    const path = newPath()
    const db = openTables(path)
    const broken = {
      version: extra.version,
      up: async (ddl: Parameters<(typeof MIGRATIONS)[number]['up']>[0]) => {
        await extra.up(ddl)
        throw new Error('cut')
      },
    }
    await expect(migrate(db, 'sqlite', [...MIGRATIONS, broken])).rejects.toThrow('cut')
    await migrate(db, 'sqlite', [...MIGRATIONS, extra])
    await db.destroy()
  })
})

test('JN6 a join that is not granted is answered while somebody else has the lock for writing', async () => {
  const path = newPath()
  const store = await open(path)
  const other = openSqlite(path)
  other.run('BEGIN IMMEDIATE')
  const join = { tokenHash: 'f'.repeat(64), clusterName: 'site', publicKey: 'k', recipient: 'r', clusterUid: '', nowMs: 1 }
  const ids = { clusterId: clusterIdSchema.parse('c-0000000000000001'), agentId: agentIdSchema.parse('a-0000000000000001') }
  expect(await store.join({ ...join, ...ids })).toEqual({ kind: 'token_unknown' })
  other.run('ROLLBACK')
  other.close()
  await store.close()
})

test('ST9 what a method answered survives kill -9', async () => {
  const path = newPath()
  const script = `
    import { openSqliteStore } from ${JSON.stringify(join(import.meta.dir, '../../server/store/kysely-store.ts'))}
    const store = await openSqliteStore(${JSON.stringify(path)}, { random: () => 0.5, clock: { nowMs: () => 1, sleep: async () => {} } })
    for (let i = 0; ; i++) {
      await store.applyResource({ kind: 'Service', project: 'p', name: 's' + i }, { labels: {}, spec: '{}', nowMs: i })
      process.stdout.write(i + '\\n')
    }`
  const child = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe', stderr: 'inherit' })
  let output = ''
  for await (const chunk of child.stdout) {
    output += new TextDecoder().decode(chunk)
    if (output.split('\n').length > 20) break
  }
  child.kill('SIGKILL')
  await child.exited
  const answered = output.split('\n').slice(0, -1) // the last piece may be cut
  const store = await open(path)
  const held = await store.listResources('Service', { limit: 10_000 })
  const names = new Set(held.items.map((item) => item.name))
  expect(answered.filter((line) => !names.has(`s${line}`))).toEqual([])
  await store.close()
})
