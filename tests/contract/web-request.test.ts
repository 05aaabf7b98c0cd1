// Deadlines of one request, against hosts that are silent, slow and endless.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { resolverWithin } from '../../server/sources/address/resolve.ts'
import { askWeb } from '../../server/sources/web-request.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { naming } from '../support/naming.ts'
import { loopbackGuard } from '../support/source-guard.ts'

const piece = new TextEncoder().encode('piece ')
const never = new Promise<void>(() => {})
/** Pieces with a pause before each. */
function pieces(count: number, pauseMs: number, after: () => Promise<void>): Response {
  let sent = 0
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (sent++ < count) {
        await Bun.sleep(pauseMs)
        controller.enqueue(piece)
      } else {
        await after()
        controller.close()
      }
    },
  })
  return new Response(body)
}
const ANSWERS: Record<string, () => Response | Promise<Response>> = {
  '/silent': async () => {
    await never
    return new Response()
  },
  '/stops': () => pieces(2, 1, () => never),
  '/endless': () => pieces(1_000, 20, () => never),
  '/slow': () => pieces(10, 40, async () => {}),
}
let server: Bun.Server<undefined>
beforeAll(() => {
  server = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: (request) => ANSWERS[new URL(request.url).pathname]?.() ?? new Response() })
})
afterAll(() => server.stop(true))

async function ask(path: string, deadlines: { wholeMs: number; silentMs: number }, host = '127.0.0.1') {
  let part = ''
  const url = `http://${host}:${server.port}${path}`
  const guard = loopbackGuard({ resolve: resolverWithin(50, () => never.then(() => [])) })
  const onPart = async (bytes: Uint8Array) => {
    part = new TextDecoder().decode(bytes)
  }
  const said = await askWeb({ fetcher: guard.fetcher, url, what: 'the layer', bytesMax: 1_000_000, onPart }, deadlines).then(
    ({ bytes }) => `${bytes.byteLength} bytes`,
    (error: unknown) => (error instanceof AppError ? `${error.code}: ${error.data.detail}` : `no AppError: ${error}`),
  )
  return { said: said.replace(`:${server.port}`, ''), part }
}

test('SO47 a host that says nothing is given up sooner than a whole answer may take, and what came is kept', async () => {
  const deadlines = { wholeMs: 60_000, silentMs: 150 }
  expect(await ask('/silent', deadlines)).toEqual({ said: naming('source_unreachable', 'layer', '127.0.0.1', '0.15 s'), part: '' })
  expect(await ask('/stops', deadlines)).toEqual({
    said: naming('source_unreachable', 'layer', '127.0.0.1', '0.15 s'),
    part: 'piece piece ',
  })
  expect((await ask('/slow', deadlines)).said).toBe('60 bytes') // longer than the silence that there may be, and never silent
})

test('SO47 an answer that goes on without end is given up', async () => {
  const { said, part } = await ask('/endless', { wholeMs: 200, silentMs: 60_000 })
  expect([said, part.startsWith('piece ')]).toEqual([naming('source_unreachable', 'layer', '127.0.0.1', '0.2 s'), true])
})

test('SO47 a name that nobody answers about is told as that', async () => {
  expect((await ask('/', { wholeMs: 60_000, silentMs: 60_000 }, 'charts.example')).said).toEqual(
    naming('source_unreachable', 'layer', 'charts.example', 'name server'),
  )
})
