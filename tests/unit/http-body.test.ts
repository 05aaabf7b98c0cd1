// What a request may cost before anybody knows whether it is any good.
import { expect, test } from 'bun:test'
import { createAgentTurns } from '../../server/http/agent-turns.ts'
import { createBodyBudget, createBodyShares, readBody } from '../../server/http/body.ts'

/** A body that comes chunk by chunk, when it is told to. */
function slowBody() {
  let push: (chunk: string | null | Error) => void = () => {}
  let cancelled = false
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      push = (chunk) => {
        if (chunk === null) controller.close()
        else if (chunk instanceof Error) controller.error(chunk)
        else controller.enqueue(Buffer.from(chunk))
      }
    },
    cancel() {
      cancelled = true
    },
  })
  const request = new Request('http://localhost/', { method: 'POST', body })
  return { request, push: (chunk: string | null | Error) => push(chunk), cancelled: () => cancelled }
}
const codeOf = (reading: Promise<Uint8Array>) =>
  reading.then(
    (bytes) => Buffer.from(bytes).toString(),
    (error: { code: string }) => error.code,
  )

test('AR2 bodies that still come in share a budget; past it one is refused and left unread, and what ended gives its bytes back', async () => {
  const budget = createBodyBudget(10)
  const [first, second, third] = [slowBody(), slowBody(), slowBody()]
  const reading = codeOf(readBody(first.request, 100, { budget }))
  first.push('12345678')
  second.push('123')
  expect(await codeOf(readBody(second.request, 100, { budget }))).toBe('unavailable')
  expect(second.cancelled()).toBe(true)
  first.push(null)
  expect(await reading).toBe('12345678')
  third.push('1234567890')
  third.push(null)
  expect(await codeOf(readBody(third.request, 100, { budget }))).toBe('1234567890')
  expect(budget.take(11)).toBe(false)
  expect(budget.take(10)).toBe(true)
})

test('AR2 one caller has a share of the budget, and the rest is left for others', () => {
  const shares = createBodyShares(10, 6)
  const [greedy, modest] = [shares('greedy'), shares('modest')]
  expect([greedy.take(6), greedy.take(1), shares('greedy').take(1)]).toEqual([true, false, false])
  expect([modest.take(4), modest.take(1)]).toEqual([true, false])
  greedy.give(6)
  expect([shares('greedy').take(6), modest.take(1)]).toEqual([true, false])
})

test('AR2 a body past its own limit or cut by its sender gives its bytes back, too', async () => {
  const budget = createBodyBudget(10)
  const [large, cut] = [slowBody(), slowBody()]
  large.push('123456')
  expect(await codeOf(readBody(large.request, 5, { budget }))).toBe('too_large')
  const reading = codeOf(readBody(cut.request, 100, { budget }))
  cut.push('123')
  cut.push(new Error('reset'))
  expect(await reading).toBe('bad_request')
  expect(budget.take(10)).toBe(true)
})

test('AR1 of the requests of one agent that come at once only the last goes on; other agents are not concerned', async () => {
  const turns = createAgentTurns('pull')
  const replaced: string[] = []
  const begin = (agent: string, name: string) => turns.begin(agent, () => void replaced.push(name))
  const mine = [begin('a', '1'), begin('a', '2'), begin('a', '3')]
  const other = begin('b', '4')
  expect(replaced).toEqual(['1', '2'])
  const outcomes = await Promise.allSettled([...mine, other].map((turn) => turn.go()))
  expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected', 'fulfilled', 'fulfilled'])
  expect(mine.map((turn) => turn.current())).toEqual([false, false, true])
  mine[0]?.end() // an older one that ends later takes nothing from the newer one
  begin('a', '5')
  expect(replaced).toEqual(['1', '2', '3'])
})

test('AR1 a push that a newer one replaced is no longer read', async () => {
  const turns = createAgentTurns('push')
  const { request, push, cancelled } = slowBody()
  const ended = new AbortController()
  turns.begin('a', () => ended.abort())
  const reading = codeOf(readBody(request, 100, { signal: ended.signal }))
  push('123')
  turns.begin('a', () => {})
  expect(await reading).toBe('bad_request')
  expect(cancelled()).toBe(true)
})

/** A body with its length, as the listener hands it over. */
const announced = (text: string, length = text.length) =>
  new Request('http://localhost/', { method: 'POST', body: text, headers: { 'content-length': String(length) } })

test('AR2 an announced small body takes its length and its connection from the budget until it is read', async () => {
  const budget = createBodyBudget(100)
  const reading = codeOf(readBody(announced('12345'), 50, { budget, overheadBytes: 60 }))
  expect([budget.take(36), budget.take(35)]).toEqual([false, true])
  expect(await reading).toBe('12345')
  expect([budget.take(66), budget.take(65)]).toEqual([false, true])
  expect(await codeOf(readBody(announced('12345'), 50, { budget }))).toBe('unavailable')
})

test('AR2 an announced small body that does not come is given up when its time is over, and gives its bytes back', async () => {
  const budget = createBodyBudget(20)
  const late = new AbortController()
  const { request, push } = slowBody()
  const stalled = new Request(request, { headers: { 'content-length': '8' } })
  push('1234')
  const reading = codeOf(readBody(stalled, 50, { budget, signal: late.signal }))
  expect(budget.take(13)).toBe(false)
  late.abort()
  expect(await reading).toBe('bad_request')
  expect(budget.take(20)).toBe(true)
  expect(await codeOf(readBody(announced('1'), 50, { signal: late.signal }))).toBe('bad_request')
})

test('AR2 a body that is larger than it announced is refused above the limit', async () => {
  expect(await codeOf(readBody(announced('123456', 3), 5))).toBe('too_large')
  expect(await codeOf(readBody(announced('12345', 3), 5))).toBe('12345')
})
