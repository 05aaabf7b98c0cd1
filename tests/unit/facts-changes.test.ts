import { expect, test } from 'bun:test'
import { FactsChanges } from '../../server/ingest/facts-changes.ts'
import { type ClusterId, clusterIdSchema } from '../../shared/runtime/ids.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const id = (n: number): ClusterId => clusterIdSchema.parse(`c-${n.toString(16).padStart(16, '0')}`)

function setup(passMs = 0, fails = 0, onPass: (() => Promise<void>) | null = null) {
  const clock = createVirtualClock()
  const asked: number[] = []
  const passes: number[] = []
  let left = fails
  const stop = new AbortController()
  const changes = new FactsChanges({
    clock,
    log: silentLogger,
    stopping: stop.signal,
    pass: async (clusters) => {
      asked.push(clusters.size)
      if (left-- > 0) throw new Error('the store is busy')
      passes.push(1)
      if (onPass === null) await clock.sleep(passMs)
      else await onPass()
    },
  })
  return { clock, asked, passes, changes, stop }
}

test('FA5 what comes together is looked at once', async () => {
  const { clock, asked, passes, changes } = setup()
  for (let n = 0; n < 1_000; n++) changes.changed(id(n))
  await clock.advance(60_000)
  expect([asked, passes]).toEqual([[1_000], [1]])
  changes.changed(id(1))
  await clock.advance(60_000)
  expect(asked).toEqual([1_000, 1])
})

test('FA5 passes that take long come seldom: a stream of reports takes a fifth of the time', async () => {
  const { clock, passes, changes } = setup(20_000)
  for (let second = 0; second < 1_000; second++) {
    changes.changed(id(second))
    await clock.advance(1_000)
  }
  expect(passes.length).toBeGreaterThanOrEqual(9)
  expect(passes.length).toBeLessThanOrEqual(11)
})

test('FA5 what failed is tried again with what came meanwhile; nothing after the end', async () => {
  const { clock, asked, passes, changes, stop } = setup(0, 1)
  changes.changed(id(1))
  await clock.advance(5_000)
  changes.changed(id(2))
  await clock.advance(20_000)
  expect([asked, passes]).toEqual([[1, 2], [1]])
  changes.changed(id(3))
  stop.abort()
  await clock.advance(20_000)
  expect(passes).toEqual([1])
})

test('FA5 what is said in the very turn in which the last look ends is not left lying', async () => {
  for (let turns = 0; turns < 20; turns++) {
    const { clock, asked, changes } = setup(0, 0, async () => {
      if (asked.length > 1) return
      void (async () => {
        for (let turn = 0; turn < turns; turn++) await Promise.resolve()
        changes.changed(id(2))
      })()
    })
    changes.changed(id(1))
    await clock.advance(60_000)
    expect([turns, ...asked]).toEqual([turns, 1, 1])
  }
})
