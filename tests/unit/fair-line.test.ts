// Places that callers share: a caller with many slow requests does not hold up one with a few, and cannot fill the
// line.
import { expect, test } from 'bun:test'
import { actAs, callerNow } from '../../server/store/audit/caller.ts'
import { FairLine } from '../../server/store/fair-line.ts'
import { AppError } from '../../shared/runtime/error.ts'

const settled = () => new Promise<void>((resolve) => setImmediate(resolve))

function setUp({ places = 1, waitingMax = 6 } = {}) {
  const time = { nowMs: 0 }
  const line = new FairLine({
    ...{ places, waitingMax, clock: { monotonicMs: () => time.nowMs } },
    full: () => new AppError('too_many_requests'),
    gone: () => new AppError('unavailable'),
  })
  const begun: string[] = []
  const ends = new Map<string, () => void>()
  const ask = (who: string, name: string, signal?: AbortSignal) =>
    actAs({ kind: 'token', id: name, name: who, verified: true }, {}, () =>
      line.run(async () => {
        begun.push(`${callerNow()?.actor.name} ${name}`)
        await new Promise<void>((resolve) => ends.set(name, resolve))
        return name
      }, signal),
    ).catch((error: unknown) => (error instanceof AppError ? error.code : error))
  const end = async (name: string, afterMs = 10) => {
    time.nowMs += afterMs
    ends.get(name)?.()
    await settled()
  }
  return { line, ask, begun, end }
}

test('QY4 a caller with one request is next, however many another caller has waiting', async () => {
  const { ask, begun, end } = setUp()
  const all = ['1', '2', '3', '4'].map((name) => ask('greedy', name))
  all.push(ask('modest', 'a'))
  await end('1')
  await end('a')
  await end('2')
  expect(begun).toEqual(['greedy 1', 'modest a', 'greedy 2', 'greedy 3'])
  await end('3')
  await end('4')
  expect(await Promise.all(all)).toEqual(['1', '2', '3', '4', 'a'])
})

test('QY4 a caller cannot fill the line: its last request is refused for that of another caller', async () => {
  const { ask, end } = setUp({ waitingMax: 3 })
  const greedy = ['1', '2', '3', '4', '5'].map((name) => ask('greedy', name))
  expect(await greedy[4]).toBe('too_many_requests')
  const modest = ask('modest', 'a')
  expect(await greedy[3]).toBe('too_many_requests')
  for (const name of ['1', 'a', '2', '3']) await end(name)
  expect([await modest, await greedy[2]]).toEqual(['a', '3'])
})

test('QY4 a caller does not take the last of several places while others are active', async () => {
  const { ask, begun, end } = setUp({ places: 2 })
  const all = [ask('modest', 'a'), ask('greedy', '1'), ask('greedy', '2')]
  await end('a')
  expect(begun).toEqual(['modest a', 'greedy 1'])
  all.push(ask('modest', 'b'))
  for (const name of ['1', 'b', '2']) await end(name)
  expect(await Promise.all(all)).toEqual(['a', '1', '2', 'b'])
})

test('QY4 a caller that goes away leaves the line, and a running request keeps its place', async () => {
  const { line, ask, begun, end } = setUp()
  const [running, waiting] = [new AbortController(), new AbortController()]
  const all = [ask('a', '1', running.signal), ask('b', '2', waiting.signal), ask('c', '3')]
  waiting.abort()
  running.abort()
  expect(await Promise.all(all.slice(0, 2))).toEqual(['unavailable', 'unavailable'])
  expect(begun).toEqual(['a 1'])
  await end('1')
  expect(begun).toEqual(['a 1', 'c 3'])
  const late = ask('d', '4')
  line.end(() => new AppError('unavailable'))
  await end('3')
  expect([await late, await all[2]]).toEqual(['unavailable', '3'])
})
