// Parts of answers that stall: one cluster cannot use up the memory that all clusters share.
import { expect, test } from 'bun:test'
import { answerPart } from '../../server/http/answer-route.ts'
import { createBodyShares } from '../../server/http/body.ts'

type Deps = Parameters<typeof answerPart>[2]
const asks = { isOpen: () => true, answer: async () => true } as unknown as NonNullable<Deps['asks']>
const sessions = { authorize: (clusterId: string | null) => ({ clusterId }) } as unknown as Deps['sessions']
const context = { setIdleTimeout: () => {}, address: () => null }

test('AR2 parts of one cluster that stall leave room for those of others', async () => {
  const budgets = createBodyShares(100, 60)
  const send = (clusterId: string, body: BodyInit) => {
    const request = new Request('http://localhost/', { method: 'POST', body, headers: { authorization: clusterId } })
    return answerPart(request, { id: 'a', query: 'part=0', context }, { sessions, asks }, budgets).then(
      ({ status }) => status,
      (error: { code: string }) => error.code,
    )
  }
  const stalled = () => new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(new Uint8Array(50)) })
  void send('hostile', stalled())
  await undefined // it takes its bytes from the budget before the next part comes
  await undefined
  expect(await send('hostile', stalled())).toBe('unavailable')
  expect(await send('honest', 'x'.repeat(40))).toBe(200)
})
