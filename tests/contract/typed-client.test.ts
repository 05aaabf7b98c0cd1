// The typed client of `client/`, against the real API over real connections.
import { afterEach, beforeEach, expect, spyOn, test } from 'bun:test'
import { join } from 'node:path'
import { createSkerryClient, pathOf, queryText, type SkerryClient, SkerryProblem } from '../../client/client.ts'
import { readEventStream } from '../../client/events.ts'
import type { Route } from '../../client/routes.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { tempDir } from '../support/temp-dir.ts'

let admin: TestAdmin
let server: ReturnType<typeof Bun.serve>
let client: SkerryClient
/** Cuts the answers of event streams that are under way. */
let cut = new AbortController()
const waits: number[] = []

beforeEach(async () => {
  admin = await createTestAdmin()
  server = Bun.serve({ hostname: '127.0.0.1', port: 0, idleTimeout: 30, fetch: admin.app.fetch })
  waits.length = 0
  client = createSkerryClient({
    url: server.url.href.slice(0, -1),
    authorization: () => `Bearer ${admin.token}`,
    fetch: (url, init) => fetch(url, { ...init, signal: AbortSignal.any([cut.signal, ...(init.signal ? [init.signal] : [])]) }),
    sleep: async (ms, signal) => {
      if (ms < 20_000) return void waits.push(ms)
      await new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }))
    },
  })
})
afterEach(async () => {
  await server.stop(true)
  await admin.store.close()
})

const failureOf = (asked: Promise<unknown>): Promise<unknown> =>
  asked.then(
    () => null,
    (error: unknown) => error,
  )

const create = (name: string) =>
  client.ask('PUT /projects/:project/repositories/:name', { params: { project: 'default', name }, body: repositoryDoc(name) })

test('AP31 the types know each route of the OpenAPI document, and no other', async () => {
  const known = (await Bun.file(new URL('../../client/routes.ts', import.meta.url)).text()).matchAll(
    /'(?:(GET|PUT|POST|DELETE) )?(\/[^']*)'/g,
  )
  const typed = [...known].flatMap(([, method, path = '']) =>
    (method === undefined ? ['GET', 'PUT', 'DELETE'] : [method]).map((one) => `${one} ${path}`),
  )
  const { body } = await admin.call('GET', '/api/v1/openapi.json')
  const served = Object.entries((body as { paths: Record<string, object> }).paths).flatMap(([path, methods]) =>
    path.startsWith('/api/v1/')
      ? Object.keys(methods).map((one) => `${one.toUpperCase()} ${path.slice('/api/v1'.length).replace(/\{(\w+)\}/g, ':$1')}`)
      : [],
  )
  const missing = served.filter((one) => !typed.includes(one))
  const extra = typed.filter((one) => !served.includes(one) && !one.endsWith(' /changes'))
  expect({ missing, extra }).toEqual({ missing: [], extra: [] })
})

test('AP31 a write has its version, is made for that version only, and is made once for each key', async () => {
  const made = await create('apps')
  expect(made.value.metadata.name).toBe('apps')
  const options = { params: { project: 'default', name: 'apps' }, body: repositoryDoc('apps', { labels: { a: 'b' } }) }
  const changed = await client.ask('PUT /projects/:project/repositories/:name', {
    ...options,
    ifMatch: made.etag ?? '',
    idempotencyKey: 'k1',
  })
  const again = await client.ask('PUT /projects/:project/repositories/:name', {
    ...options,
    ifMatch: made.etag ?? '',
    idempotencyKey: 'k1',
  })
  expect([changed.replayed, again.replayed, again.etag]).toEqual([false, true, changed.etag])
  const stale = await failureOf(client.call('PUT /projects/:project/repositories/:name', { ...options, ifMatch: made.etag ?? '' }))
  expect(stale).toBeInstanceOf(SkerryProblem)
  expect(stale).toMatchObject({ status: 412, code: 'conflict' })
  const exists = await failureOf(client.call('PUT /projects/:project/repositories/:name', { ...options, ifNoneMatch: '*' }))
  expect(exists).toMatchObject({ status: 412 })
})

test('AP31 a refusal has its code, its remedy and the places of the wrong fields', async () => {
  const params = { project: 'default', name: 'apps' }
  const wrong = await failureOf(
    client.call('PUT /projects/:project/repositories/:name', { params, body: { ...repositoryDoc('apps'), spec: {} } }),
  )
  expect(wrong).toMatchObject({ status: 422 })
  expect((wrong as SkerryProblem).problems.length).toBeGreaterThan(0)
  expect((wrong as SkerryProblem).remedy).not.toBe('')
  const closed = createSkerryClient({ url: 'http://127.0.0.1:9' })
  expect(await failureOf(closed.call('GET /version'))).toMatchObject({ status: 0, code: 'unreachable' })
})

test('AP31 items reads all pages', async () => {
  for (const name of ['a', 'b', 'c', 'd', 'e']) await create(name)
  const names: string[] = []
  for await (const { metadata } of client.items('GET /repositories', { query: { limit: 2 } })) names.push(metadata.name)
  expect(names.toSorted()).toEqual(['a', 'b', 'c', 'd', 'e'])
})

test('AP31 a name is one segment of the path, whatever is in it', async () => {
  expect(pathOf('/clusters/:name/ask', { name: '../x?a=b#c' })).toBe('/clusters/..%2Fx%3Fa%3Db%23c/ask')
  expect(() => pathOf('/clusters/:name', {})).toThrow('name')
  expect(queryText({ limit: 5, search: '', after: null, q: 'a b&c' })).toBe('?limit=5&q=a+b%26c')
})

test('AP31 follow resumes after a lost connection, without a gap', async () => {
  const ending = new AbortController()
  const lost: number[] = []
  const events = client.follow({ topics: ['resource'], signal: ending.signal, onLost: (tries) => void lost.push(tries) })
  expect((await events.next()).value?.event).toBe('ready')
  await create('first')
  expect(JSON.parse((await events.next()).value?.data ?? '')).toMatchObject({ name: 'Repository/first' })
  const next = events.next()
  await create('second')
  expect(JSON.parse((await next).value?.data ?? '')).toMatchObject({ name: 'Repository/second' })
  const pending = events.next()
  cut.abort()
  cut = new AbortController()
  await create('third')
  const resumed = [(await pending).value, (await events.next()).value]
  expect(resumed.map((event) => event?.event)).toEqual(['ready', 'resource'])
  expect(JSON.parse(resumed[1]?.data ?? '')).toMatchObject({ name: 'Repository/third' })
  expect(lost).toEqual([1])
  expect(waits.length).toBe(1)
  ending.abort()
  await events.return(undefined)
})

test('AP31 follow ends with an error that no retry solves', async () => {
  const stranger = createSkerryClient({ url: server.url.href.slice(0, -1), authorization: () => 'Bearer sky_wrong' })
  const events = stranger.follow({ signal: new AbortController().signal })
  expect(await failureOf(events.next())).toMatchObject({ status: 401 })
})

test('AP31 an event that is too large ends the stream', async () => {
  async function* endless() {
    for (;;) yield new TextEncoder().encode(`data: ${'x'.repeat(1_000_000)}`)
  }
  expect(await failureOf(readEventStream(endless()).next())).toBeInstanceOf(Error)
})

test('AP31 the example of the reference runs', async () => {
  const page = await Bun.file(new URL('../../docs/reference/api.md', import.meta.url)).text()
  const example = /```ts\n([\s\S]*?)```/.exec(page)?.[1] ?? ''
  const place = new URL('../../client/client.ts', import.meta.url).pathname
  const given = `const [server, token] = ${JSON.stringify([server.url.href.slice(0, -1), admin.token])}\n`
  const file = join(tempDir(), 'example.ts')
  await Bun.write(file, `${given}${example.replace('@skerry/client', place)}`)
  await create('apps')
  const params = { project: 'default', name: 'web' }
  const made = await client.ask('PUT /projects/:project/services/:name', { params, body: serviceDoc('web') })
  const said: unknown[] = []
  const spies = [spyOn(console, 'log'), spyOn(console, 'error')].map((spy) => spy.mockImplementation((...text) => void said.push(...text)))
  await import(file).finally(() => void spies.map((spy) => spy.mockRestore()))
  expect(said).toEqual(['web'])
  expect((await client.ask('GET /projects/:project/services/:name', { params })).etag).toBe(made.etag)
})

// Types only: what the compiler must refuse. Never called.
export const refusedByTypes = (typed: SkerryClient): unknown[] => [
  // @ts-expect-error no such route
  typed.call('GET /nothing'),
  // @ts-expect-error the name of the cluster is missing
  typed.call('GET /clusters/:name', { params: {} }),
  typed.call('GET /clusters/:name' satisfies Route, { params: { name: 'c1' } }),
]
