import { expect, test } from 'bun:test'
import { zstdCompressSync } from 'node:zlib'
import { createServerClient } from '../../agent/sync/server-client.ts'
import { AppError, problemBody } from '../../shared/protocol/error.ts'
import { systemClock } from '../../shared/runtime/clock.ts'

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
