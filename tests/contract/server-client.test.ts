import { expect, test } from 'bun:test'
import { zstdCompressSync } from 'node:zlib'
import { createServerClient } from '../../agent/link/server-client.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { AppError, problemBody } from '../../shared/runtime/error.ts'
import { createVirtualClock } from '../support/virtual-clock.ts'

const problem = (error: AppError) => Response.json(problemBody(error), { status: problemBody(error).status })
const client = (answer: () => Response | Promise<Response>) => createServerClient('http://x/', async () => answer(), systemClock)
const call = (answer: () => Response | Promise<Response>, answerBytesMax = 1_000) =>
  client(answer).call({ doing: 'pull', method: 'GET', path: '/p', answerBytesMax, timeoutMs: 1_000, signal: new AbortController().signal })

test.each([
  ['an answer at its limit', () => new Response('x'.repeat(1_000)), null],
  ['an answer one byte past', () => new Response('x'.repeat(1_001)), 'bad_page'],
  ['an inflated answer at its limit', () => new Response(zstdCompressSync(Buffer.alloc(1_000, 'x'))), null],
  ['an inflated answer past', () => new Response(zstdCompressSync(Buffer.alloc(1_001, 'x'))), 'bad_page'],
  ['a bomb', () => new Response(zstdCompressSync(Buffer.alloc(50_000_000))), 'bad_page'],
  ['zstd that is cut', () => new Response(zstdCompressSync(Buffer.alloc(900, 'xyz')).subarray(0, 15)), 'bad_page'],
  ['a problem', () => problem(new AppError('revoked')), 'revoked'],
  ['a problem of tomorrow', () => Response.json({ type: '', title: '', status: 403, code: 'tomorrow' }, { status: 403 }), 'bad_request'],
  ['an error page', () => new Response('<html>', { status: 502 }), 'unavailable'],
  ['an endless error page', () => new Response('x'.repeat(100_000), { status: 500 }), 'bad_page'],
  ['no answer', () => Promise.reject(new Error('ECONNREFUSED')), 'server_unreachable'],
] as const)('PL5 the client meets %s', async (_, answer, code) => {
  const outcome = await call(answer).then(
    () => null,
    (error) => (error instanceof AppError ? error.code : error),
  )
  expect(outcome).toBe(code)
})

test.each([
  ['3', 3_000],
  ['0', 0],
  ['9999999', 3_600_000],
  ['soon', undefined],
  ['-1', undefined],
] as const)('PL10 Retry-After: %s is kept to, within an hour', async (header, expected) => {
  const error = await call(() => new Response('', { status: 503, headers: { 'retry-after': header } })).catch((e) => e)
  expect((error as AppError).retryAfterMs).toBe(expected as never)
})

test('a request has as few headers as it can', async () => {
  const seen: unknown[] = []
  const spy = createServerClient(
    'http://x',
    async (_, init) => {
      seen.push(init.headers)
      return new Response('')
    },
    systemClock,
  )
  await spy.call({
    doing: 'pull',
    method: 'GET',
    path: '/',
    token: 't',
    answerBytesMax: 1,
    timeoutMs: 1_000,
    signal: new AbortController().signal,
  })
  expect(seen).toEqual([{ accept: '', 'user-agent': '', connection: '', 'accept-encoding': 'zstd', authorization: 'Bearer t' }])
})

test('PL11 after 426 the highest version that both know is spoken, at once and from then on', async () => {
  const seen: Array<string | null> = []
  const speaker = (server: { min: number; max: number }) =>
    createServerClient(
      'http://x',
      async (_, init) => {
        const version = new Headers(init.headers as Record<string, string>).get('skerry-protocol')
        seen.push(version)
        const spoken = Number(version ?? 1)
        if (spoken >= server.min && spoken <= server.max) return Response.json({ tomorrow: [1, 2] })
        return problem(new AppError('protocol_unsupported', { extra: { ...server } }))
      },
      systemClock,
      { versions: { min: 1, max: 3 } },
    )
  const ask = (each: ReturnType<typeof speaker>) =>
    each.call({ doing: 'pull', method: 'GET', path: '/p', answerBytesMax: 1_000, timeoutMs: 1_000, signal: new AbortController().signal })
  const older = speaker({ min: 1, max: 2 })
  await ask(older)
  await ask(older)
  expect(seen.splice(0)).toEqual(['3', '2', '2'])
  await ask(speaker({ min: 1, max: 1 }))
  expect(seen.splice(0)).toEqual(['3', null])
  const apart = await ask(speaker({ min: 4, max: 9 })).catch((error) => error)
  expect([(apart as AppError).code, seen.splice(0)]).toEqual(['protocol_unsupported', ['3']])
})

test.each([
  ['a slow answer is waited for as long as it moves', 20_000, 25, 'answer'],
  ['an answer that stands still is given up', 31_000, 2, 'no answer in time'],
  ['a byte now and then is no answer', 20_000, 60, 'no answer in time'],
] as const)('PL10 %s', async (_, everyMs, chunks, expected) => {
  const clock = createVirtualClock()
  const body = (signal: AbortSignal) =>
    new ReadableStream<Uint8Array>({
      async start(controller) {
        signal.addEventListener('abort', () => controller.error(new Error('aborted')))
        for (let n = 0; n < chunks && !signal.aborted; n++) {
          await clock.sleep(everyMs, signal)
          if (!signal.aborted) controller.enqueue(new Uint8Array(1))
        }
        if (!signal.aborted) controller.close()
      },
    })
  const slow = createServerClient('http://x', async (_, { signal }) => new Response(body(signal as AbortSignal)), clock)
  const asked = slow.call({
    doing: 'pull',
    method: 'GET',
    path: '/p',
    answerBytesMax: 1_000,
    timeoutMs: 1_000,
    signal: new AbortController().signal,
  })
  const outcome = asked.then(
    () => 'answer',
    (error: AppError) => error.data.detail,
  )
  await clock.advance(3_600_000)
  expect(await outcome).toBe(expected)
})
