// Renders that people and tools ask for.
import { expect, test } from 'bun:test'
import { createRenderTurns } from '../../server/http/render-turns.ts'
import type { AppError } from '../../shared/runtime/error.ts'
import { createTestAdmin } from '../support/admin-app.ts'

function turns() {
  let nowMs = 0
  const { run } = createRenderTurns({ monotonicMs: () => nowMs })
  const pass = (ms: number) => {
    nowMs += ms
  }
  const ask = (caller: string, tookMs = 0) =>
    run(caller, async () => pass(tookMs)).then(
      () => null,
      (error: AppError) => error.data.retryAfterMs,
    )
  const many = async (caller: string, count: number) => {
    for (let n = 0; n < count; n++) if ((await ask(caller)) !== null) return n
    return count
  }
  return { run, ask, many, wait: pass }
}

test('AP13 a caller has 60 renders at once and one more each second; another caller has its own', async () => {
  const { ask, many, wait } = turns()
  expect(await many('a', 100)).toBe(60)
  expect([await ask('a'), await ask('b')]).toEqual([1_000, null])
  wait(2_000)
  expect(await many('a', 100)).toBe(2)
})

test('AP13 a render that takes long costs its time, and none that ended is forgotten', async () => {
  const { ask } = turns()
  expect([await ask('a', 30_000), await ask('a', 40_000), await ask('a', 70_000), await ask('a')]).toEqual([null, null, null, 10_000])
})

test('AP13 four renders of a caller are under way at most, and one that fails is over', async () => {
  const { run, ask } = turns()
  const open = Promise.withResolvers<never>()
  const running = Array.from({ length: 4 }, () => run('a', () => open.promise).catch(() => {}))
  expect([await ask('a'), await ask('b')]).toEqual([1_000, null])
  open.reject(new Error('no'))
  await Promise.all(running)
  expect(await ask('a')).toBeNull()
})

test('AP13 both routes share the limit of a token', async () => {
  const { call } = await createTestAdmin()
  const ask = (what: string) => call('GET', `/api/v1/projects/default/services/shop/${what}`)
  for (let n = 0; n < 30; n++) expect([(await ask('render')).status, (await ask('variants')).status]).toEqual([404, 404])
  const { status, headers } = await ask('variants')
  expect([status, headers.get('retry-after')]).toEqual([429, '1'])
})
