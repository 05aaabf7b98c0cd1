// What a store's methods can rely on, whatever database is under them.
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { sql as raw } from 'kysely'
import { createStoreDb } from '../../server/store/store-db.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { openDb, openIn, POSTGRES, POSTGRES_EN_US, SQLITE, STORES } from '../support/stores.ts'

/** Two cores, and a database of its own for each test. */
setDefaultTimeout(30_000)

const put = (value: string) => ({ key: 'note', value })

describe.each(STORES)('on $name', (kind) => {
  test('ST16 who uses the store beside the transaction that it is in is refused, at any depth; others are not', async () => {
    const db = await openDb(kind)
    const beside = 'outside its open transaction'
    const deep = async () => {
      await Promise.resolve()
      return db.read.selectFrom('meta').selectAll().execute()
    }
    await expect(db.write(deep)).rejects.toThrow(beside)
    await expect(db.write(() => db.write(async () => 1))).rejects.toThrow(beside)
    const entered = Promise.withResolvers<void>()
    const leave = Promise.withResolvers<void>()
    const writing = db.write(async (tx) => {
      await tx.sql.insertInto('meta').values(put('written')).execute()
      entered.resolve()
      await leave.promise
    })
    await entered.promise
    const note = () => db.read.selectFrom('meta').select('value').where('key', '=', 'note').execute()
    expect(await note()).toEqual([]) // somebody else reads meanwhile, and nothing half done
    leave.resolve()
    await writing
    expect(await note()).toEqual([{ value: 'written' }])
    await db.destroy()
  })

  test('ST16 what was started inside of a transaction is free once it has ended', async () => {
    const db = await openDb(kind)
    const ended = Promise.withResolvers<void>()
    let later: Promise<unknown> | undefined
    await db.write(async () => {
      later = ended.promise.then(() => db.read.selectFrom('meta').selectAll().execute())
    })
    ended.resolve()
    expect(await later).toEqual(expect.arrayContaining([expect.objectContaining({ key: 'schema' })]))
    await db.destroy()
  })

  test('ST16 of two that look first and then write nobody overlooks the other, on PostgreSQL also of two processes', async () => {
    const place = await kind.place()
    const open = async () => createStoreDb(await place.connect(), systemClock)
    const stores = kind === SQLITE ? [await open()] : [await open(), await open()]
    const count = (db: (typeof stores)[number]) =>
      db.write(async ({ sql }) => {
        const held = await sql.selectFrom('counters').select('value').where('name', '=', 'event_id').executeTakeFirstOrThrow()
        await Bun.sleep(1)
        await sql
          .updateTable('counters')
          .set({ value: held.value + 1 })
          .where('name', '=', 'event_id')
          .execute()
      })
    await Promise.all(
      Array.from({ length: 20 }, (_, n) => stores[n % stores.length]).flatMap((db) => (db === undefined ? [] : [count(db)])),
    )
    const [db] = stores
    expect(await db?.read.selectFrom('counters').select('value').where('name', '=', 'event_id').execute()).toEqual([{ value: 20 }])
    for (const store of stores) await store.destroy()
  })

  test('ST16 work that fails leaves nothing behind, and the next one is not disturbed', async () => {
    const db = await openDb(kind)
    const failing = db.write(async ({ sql }) => {
      await sql.insertInto('meta').values(put('lost')).execute()
      throw new Error('cut')
    })
    await expect(failing).rejects.toThrow('cut')
    const refused = db.write(async ({ sql }) => {
      await sql.insertInto('meta').values(put('twice')).execute()
      await sql.insertInto('meta').values(put('twice')).execute()
    })
    await expect(refused).rejects.toThrow(/unique/i)
    await db.write(({ sql }) => sql.insertInto('meta').values(put('kept')).execute())
    expect(await db.read.selectFrom('meta').select('value').where('key', '=', 'note').execute()).toEqual([{ value: 'kept' }])
    await db.destroy()
  })

  test('ST3 a database of a newer schema is refused and left as it is', async () => {
    const place = await kind.place()
    const { writer, close } = await place.connect()
    const schema = () => writer.selectFrom('meta').select('value').where('key', '=', 'schema').executeTakeFirst()
    await writer.updateTable('meta').set({ value: '99' }).where('key', '=', 'schema').execute()
    await expect(place.open()).rejects.toMatchObject({ code: 'store_newer', message: expect.stringContaining('schema 99') })
    expect(await schema()).toEqual({ value: '99' })
    await close()
  })

  test('ST16 what reads cannot write', async () => {
    const db = await openDb(kind)
    await expect(db.connections.reader.insertInto('meta').values(put('no')).execute()).rejects.toThrow(/read-?only|unreachable|reached/i)
    await db.destroy()
  })

  test('ST15 integers are exact up to 2^53, and what is beyond is an error', async () => {
    const db = await openDb(kind)
    const set = (value: number) =>
      db.write(({ sql }) => sql.updateTable('counters').set({ value }).where('name', '=', 'event_id').execute())
    const read = () => db.read.selectFrom('counters').select('value').where('name', '=', 'event_id').executeTakeFirstOrThrow()
    await set(Number.MAX_SAFE_INTEGER)
    expect((await read()).value).toBe(Number.MAX_SAFE_INTEGER)
    const { counts, sum } = await db.read
      .selectFrom('counters')
      .select((eb) => [eb.fn.countAll<number>().as('counts'), eb.fn.sum<number>('value').as('sum')])
      .where('name', '=', 'event_id')
      .executeTakeFirstOrThrow()
    expect([counts, sum]).toEqual([1, Number.MAX_SAFE_INTEGER])
    await db.destroy()
  })
})

test('ST15 PostgreSQL could hold more than 2^53, so reading more is an error', async () => {
  const db = await openDb(POSTGRES)
  await db.write(({ sql }) =>
    sql.updateTable('counters').set({ value: raw<number>`9007199254740993` }).where('name', '=', 'event_id').execute(),
  )
  await expect(db.read.selectFrom('counters').selectAll().execute()).rejects.toThrow('beyond 2^53')
  await db.destroy()
})

test('ST15 no column of text is in the order of its database', async () => {
  const db = await openDb(POSTGRES_EN_US)
  const { rows } = await raw<{ where: string; order: string | null }>`
    select table_name || '.' || column_name as "where", collation_name as "order" from information_schema.columns
     where table_schema = current_schema() and data_type = 'text'`.execute(db.connections.reader)
  expect(rows.length).toBeGreaterThan(30)
  expect(rows.filter(({ order }) => order !== 'C')).toEqual([])
  await db.destroy()
})

describe.each([SQLITE, POSTGRES, POSTGRES_EN_US])('on $name', (kind) => {
  test('ST15 ST4 text is ordered by its bytes, in lists, pages and comparisons', async () => {
    const store = await openIn(kind)
    const names = ['B', 'Z', '_', 'a', 'a-b', 'a0', 'aB', 'ab', 'b', 'z', 'ß', 'ä', '\uffff', '\u{10000}']
    for (const name of names.toReversed())
      await store.applyResource({ kind: 'Service', project: 'p', name }, { labels: {}, spec: '{}', nowMs: 1 })
    const listed: string[] = []
    let after: string | undefined
    do {
      const page = await store.listResources('Service', { limit: 3, ...(after === undefined ? {} : { after }) })
      listed.push(...page.items.map(({ name }) => name))
      after = page.next ?? undefined
    } while (after !== undefined)
    expect(listed).toEqual(names)
    await store.close()
  })
})
