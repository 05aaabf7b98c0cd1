import { expect, test } from 'bun:test'
import { createLogSync } from '../../shared/adapters/log-sync.ts'

/** A disk whose syncs end when the test says so. */
function setUp() {
  const pending: Array<(error: Error | null) => void> = []
  let [begun, closed] = [0, 0]
  const log = createLogSync('fleet.sqlite', {
    sync: (done) => {
      begun += 1
      pending.push(done)
    },
    syncNow: () => {},
    close: () => {
      closed += 1
    },
  })
  const ends: string[] = []
  const wait = (name: string) =>
    void log.settled().then(
      () => ends.push(name),
      (error: { code?: string }) => ends.push(`${name}: ${error.code}`),
    )
  const turns = async () => {
    for (let turn = 0; turn < 20; turn++) await Promise.resolve()
  }
  const end = async (error: Error | null = null) => {
    pending.shift()?.(error)
    await turns()
  }
  return { log, wait, end, ends, begun: () => begun, closed: () => closed }
}

test('ST21 who waits for the disk hears of it after a sync that began after the call', async () => {
  const { wait, end, ends, begun } = setUp()
  for (const name of ['a', 'b', 'c']) wait(name)
  expect([begun(), ends]).toEqual([1, []])
  await end()
  expect([begun(), ends]).toEqual([2, ['a']])
  wait('d') // a sync is under way again
  await end()
  expect([begun(), ends]).toEqual([3, ['a', 'b', 'c']])
  await end()
  expect([begun(), ends]).toEqual([3, ['a', 'b', 'c', 'd']])
})

test('ST21 a disk that refused once is believed no more', async () => {
  const { log, wait, end, ends, begun } = setUp()
  wait('a')
  wait('b')
  await end(new Error('EIO: i/o error'))
  wait('c')
  await end()
  expect(ends.toSorted()).toEqual(['a: data_unusable', 'b: data_unusable', 'c: data_unusable'])
  expect(begun()).toBe(1)
  expect(() => log.settle()).toThrow('EIO')
})

test('the log is closed when nobody waits for it any more', async () => {
  const { log, wait, end, closed } = setUp()
  wait('a')
  wait('b')
  log.close()
  await end()
  expect(closed()).toBe(0)
  await end()
  expect(closed()).toBe(1)
})
