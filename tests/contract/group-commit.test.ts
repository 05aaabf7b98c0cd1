import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { createGroupCommit, GROUP_MAX, GROUP_ROWS_MAX } from '../../server/store/status/group-commit.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { openDb, STORES, type StoreKind } from '../support/stores.ts'

/** Two cores, and a database of its own for each test. */
setDefaultTimeout(30_000)

async function start(kind: StoreKind) {
  const store = await openDb(kind)
  const db = store.connections.writer
  let transactions = 0
  const together = createGroupCommit<{ key: string; fails: boolean; rows: number }, string>({
    rowsOf: ({ rows }) => rows,
    commit: (items) => {
      transactions += 1
      return store.write(async ({ sql: trx }) => {
        for (const { key, fails } of items) {
          await trx.insertInto('meta').values({ key, value: '' }).execute()
          if (fails) throw new Error(`${key} fails`)
        }
        return items.map(({ key }) => key)
      })
    },
  })
  const write = (key: string, fails = false, rows = 1) => together({ key, fails, rows })
  const keys = async () =>
    (await db.selectFrom('meta').select('key').where('key', 'like', 'w%').orderBy('key').execute()).map(({ key }) => key)
  return { db: store, write, keys, transactions: () => transactions }
}

describe.each(STORES)('on $name', (kind) => {
  test('PU2 pushes that come together are one commit, and each gets its own answer', async () => {
    const { db, write, keys, transactions } = await start(kind)
    const names = Array.from({ length: GROUP_MAX + 2 }, (_, n) => `w${String(n).padStart(3, '0')}`)
    expect(await Promise.all(names.map((name) => write(name)))).toEqual(names)
    expect([await keys(), transactions()]).toEqual([names, 2])
    await db.destroy()
  })

  test('PU2 what has many rows is committed with few others, or alone: one commit is one block of everybody', async () => {
    const { db, write, keys, transactions } = await start(kind)
    const pushes = [GROUP_ROWS_MAX - 1, 2, GROUP_ROWS_MAX - 2, 10 * GROUP_ROWS_MAX, 1].map((rows, n) => write(`w${n}`, false, rows))
    expect(await Promise.all(pushes)).toEqual(['w0', 'w1', 'w2', 'w3', 'w4'])
    expect([await keys(), transactions()]).toEqual([['w0', 'w1', 'w2', 'w3', 'w4'], 4])
    await db.destroy()
  })

  test('PU2 a push that cannot be written fails alone, and nothing of it stays', async () => {
    const { db, write, keys } = await start(kind)
    const outcomes = await Promise.allSettled([write('w1'), write('w2', true), write('w3')])
    expect(outcomes.map((outcome) => (outcome.status === 'fulfilled' ? outcome.value : String(outcome.reason)))).toEqual([
      'w1',
      'Error: w2 fails',
      'w3',
    ])
    expect(await keys()).toEqual(['w1', 'w3'])
    expect(await write('w4')).toBe('w4')
    await db.destroy()
  })
})

test('PU2 ST14 when it is the store that fails, all who came together hear of it after one try', async () => {
  let tries = 0
  const together = createGroupCommit<number, number>({
    rowsOf: () => 1,
    commit: async () => {
      tries += 1
      throw new AppError('store_unreachable', { detail: 'it is down' })
    },
  })
  const outcomes = await Promise.allSettled(Array.from({ length: GROUP_MAX }, (_, item) => together(item)))
  expect(new Set(outcomes.map(({ status }) => status))).toEqual(new Set(['rejected']))
  expect(tries).toBe(1)
})
