import { expect, test } from 'bun:test'
import { createWriteGroups, GROUP_MS_MAX, GROUP_WORKS_MAX } from '../../server/store/write-groups.ts'

/** A transaction is the list of what was written in it; what is committed is added to `committed`. */
function setUp({ commits = async () => {} }: { commits?: () => Promise<void> } = {}) {
  const committed: string[][] = []
  let nowMs = 0
  const write = createWriteGroups<string[]>({
    begin: async (works) => {
      const rows: string[] = []
      const result = await works(rows)
      await commits()
      committed.push(rows)
      return result
    },
    savepoint: async (rows, statement) => {
      if (statement === 'savepoint work') rows.push('<')
      else if (statement === 'rollback to savepoint work') rows.length = rows.lastIndexOf('<') + 1
      else rows.splice(rows.lastIndexOf('<'), 1)
    },
    clock: { nowMs: () => nowMs },
  })
  const add = (row: string, spentMs = 0, options = {}) =>
    write(async (rows) => {
      rows.push(row)
      await Promise.resolve()
      nowMs += spentMs
      if (row.startsWith('bad')) throw new Error(row)
      return row
    }, options)
  return { committed, add, write }
}

test('ST21 writes that come while one is done are committed with it', async () => {
  const { committed, add } = setUp()
  expect(await Promise.all(['a', 'b', 'c'].map((row) => add(row)))).toEqual(['a', 'b', 'c'])
  expect(await add('d')).toBe('d')
  expect(committed).toEqual([['a', 'b', 'c'], ['d']])
})

test.each([
  ['first', ['bad', 'a', 'b'], [['a', 'b']]],
  ['later', ['a', 'bad', 'b'], [['a', 'b']]],
  ['last', ['a', 'b', 'bad'], [['a', 'b']]],
])('ST21 one that fails is undone alone: the %s of a group', async (_, rows, expected) => {
  const { committed, add } = setUp()
  const settled = await Promise.allSettled(rows.map((row) => add(row)))
  expect(settled.map(({ status }) => status === 'fulfilled')).toEqual(rows.map((row) => row !== 'bad'))
  expect(committed).toEqual(expected)
})

test('ST21 nobody hears of a write before it is committed, and a commit that fails fails all of them', async () => {
  const disk = Promise.withResolvers<void>()
  const told: string[] = []
  const { committed, add } = setUp({ commits: () => disk.promise })
  const writes = ['a', 'b'].map((row) => add(row).finally(() => void told.push(row)))
  const settled = Promise.allSettled(writes)
  for (let turn = 0; turn < 100; turn++) await Promise.resolve()
  expect(told).toEqual([])
  disk.reject(new Error('disk full'))
  expect((await settled).map(({ status }) => status)).toEqual(['rejected', 'rejected'])
  expect(committed).toEqual([])
})

test('ST21 a group ends at its bounds', async () => {
  const many = setUp()
  await Promise.all(Array.from({ length: GROUP_WORKS_MAX + 1 }, (_, n) => many.add(String(n))))
  expect(many.committed.map(({ length }) => length)).toEqual([GROUP_WORKS_MAX, 1])
  const slow = setUp()
  await Promise.all(['a', 'b', 'c'].map((row) => slow.add(row, GROUP_MS_MAX / 2)))
  expect(slow.committed).toEqual([['a', 'b'], ['c']])
})

test('ST21 what is to be alone has a transaction of its own', async () => {
  const { committed, add } = setUp()
  await Promise.all([add('a'), add('b'), add('c', 0, { alone: true }), add('d'), add('e')])
  expect(committed).toEqual([['a', 'b'], ['c'], ['d', 'e']])
})
