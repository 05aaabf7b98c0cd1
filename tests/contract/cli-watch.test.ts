// The command line as it follows a listening server: what is printed, also when the server goes away meanwhile.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { SILENCE_MS } from '../../client/client.ts'
import { createClient } from '../../server/cli/client.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { type CliResult, runTestCli } from '../support/cli-run.ts'

let admin: TestAdmin
let server: ReturnType<typeof Bun.serve>
/** Of streams. */
let asked: Array<string | null>
const serve = (port = 0) =>
  Bun.serve({
    hostname: '127.0.0.1',
    port,
    idleTimeout: 30,
    fetch: (request) => {
      if (request.url.includes('/changes')) asked.push(request.headers.get('last-event-id'))
      return admin.app.fetch(request)
    },
  })
beforeEach(async () => {
  admin = await createTestAdmin()
  asked = []
  server = serve()
  await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps'), serviceDoc('web'), serviceDoc('api')] })
})
afterEach(async () => {
  await server.stop(true)
  await admin.store.close()
})

/** Runs until told to stop; `printed` resolves when stdout, or stderr, says so. */
function run(argv: string) {
  const stop = new AbortController()
  const heard: Array<{ text: string; resolve: () => void }> = []
  let seen: CliResult = { code: 0, out: '', err: '' }
  const result = runTestCli(admin, argv.split(' '), {
    env: { SKERRY_SERVER: server.url.href },
    fetch,
    signal: stop.signal,
    sleep: (ms, signal) => systemClock.sleep(ms < SILENCE_MS ? Math.min(ms, 200) : ms, signal),
    onPrinted: (now) => {
      seen = now
      for (const { text, resolve } of heard) if (`${now.out}\n${now.err}`.includes(text)) resolve()
    },
  })
  const printed = (text: string) =>
    new Promise<void>((resolve) => {
      if (`${seen.out}\n${seen.err}`.includes(text)) resolve()
      else heard.push({ text, resolve })
    })
  return { printed, result, stop: () => stop.abort() }
}
const touch = (name: string, labels: Record<string, string>) =>
  admin.call('POST', '/api/v1/apply', { resources: [serviceDoc(name, { labels })] })
const event = (message: string) =>
  admin.store.appendEvents([{ atMs: 1, type: 'Normal', reason: 'R', message, cluster: null, project: null, service: null, object: null }])
const messages = (out: string) => out.trim().split('\n').map((line) => JSON.parse(line).message) // biome-ignore format: one line

test('CL12 get -w prints the list, then each item that is another than before, and says what is gone', async () => {
  const { printed, result, stop } = run('get services -w -o wide')
  await printed('web')
  await touch('api', { a: '1' })
  await printed('a=1')
  await touch('new', { b: '2' })
  await printed('b=2')
  await admin.store.deleteResource({ kind: 'Service', project: 'default', name: 'web' })
  await printed('service/default/web is gone')
  stop()
  const { code, out } = await result
  const rows = out.trimEnd().split('\n').map((line) => line.split(/\s+/)[0]) // biome-ignore format: one line
  expect({ code, rows }).toEqual({ code: 0, rows: ['NAME', 'api', 'web', 'api', 'new'] })
})

test('CL12 get NAME -w shows that one only; of a kind that there is nothing of yet it waits', async () => {
  const one = run('get svc/web -w -o json')
  await one.printed('"web"')
  await touch('api', { a: '1' })
  await touch('web', { c: '3' })
  await one.printed('"c":"3"')
  one.stop()
  const names = (await one.result).out.trim().split('\n').map((line) => JSON.parse(line).metadata.name) // biome-ignore format: one line
  expect(names).toEqual(['web', 'web'])
  expect((await run('get svc/none -w').result).code).toBe(1)
  const tokens = run('get join-tokens -w -o name')
  await Bun.sleep(300)
  const made = { id: 'jt-1', tokenHash: 'h', usesLeft: 1, uses: 1, labels: {}, createdMs: 1, expiresMs: 9e12, createdBy: 'a' }
  await admin.store.createJoinToken(made)
  await tokens.printed('join-token/jt-1')
  tokens.stop()
  expect((await tokens.result).code).toBe(0)
})

test('SO52 CL12 looks at repositories are no change to who follows them', async () => {
  let lastReadMs = 1_000
  await admin.store.close()
  admin = await createTestAdmin({ readTimesOf: () => ({ lastReadMs, nextReadMs: lastReadMs + 60_000 }) })
  await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps'), repositoryDoc('more')] })
  const { printed, result, stop } = run('get repositories -w -o json')
  await printed('"more"')
  lastReadMs = 2_000
  const [before, other] = [await admin.store.repositoryState('default', 'apps'), { commit: 'c', fetchedMs: 1, tag: null, error: null }]
  for (const state of [other, before]) await admin.store.setRepositoryState('default', 'apps', state) // both read again, and as they were
  await admin.store.setRepositoryState('default', 'more', other)
  await printed('"commit":"c"')
  stop()
  const shown = (await result).out.trim().split('\n').map((line) => JSON.parse(line)) // biome-ignore format: one line
  expect(shown.map(({ metadata, status }) => [metadata.name, status.lastReadMs])).toEqual([
    ['apps', 1_000],
    ['more', 1_000],
    ['more', 2_000],
  ])
})

test('CL6 CL12 a server that goes away and comes back: nothing is missed and nothing is told twice', async () => {
  await event('before')
  const following = run('events -f -o json')
  const watching = run('get services -w -o wide')
  await following.printed('before')
  await watching.printed('web')
  await event('one')
  await following.printed('one')
  const port = server.port ?? 0
  const position = await admin.store.changes.position()
  await server.stop(true)
  await event('two')
  await touch('web', { while: 'away' })
  await Bun.sleep(500)
  server = serve(port)
  await following.printed('two')
  await watching.printed('while=away')
  await event('three')
  await following.printed('three')
  following.stop()
  watching.stop()
  expect(messages((await following.result).out)).toEqual(['before', 'one', 'two', 'three'])
  expect(asked.slice(0, 2)).toEqual([null, null])
  expect(asked).toContain(String(position)) // of the one that was told of the event
  expect((await watching.result).out.trimEnd().split('\n')).toHaveLength(4)
}, 20_000)

test('CL12 a first connection that fails, and an unknown token, are told at once', async () => {
  const result = await runTestCli(admin, ['events', '-f'], { env: { SKERRY_SERVER: server.url.href, SKERRY_TOKEN: 'sk_none' }, fetch })
  expect(result).toMatchObject({ code: 1, out: '' })
  expect(result.err).toContain('SKERRY_TOKEN')
  const gone = await runTestCli(admin, ['get', 'services', '-w'], { env: { SKERRY_SERVER: 'http://127.0.0.1:1' }, fetch })
  expect(gone).toMatchObject({ code: 1, out: '' })
})

test('CL12 a stream on which nothing comes any more, not even that nothing happens, is given up', async () => {
  const silent = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 60,
    fetch: () => {
      const stream = new ReadableStream({
        start: (controller) => controller.enqueue('id: 5\nevent: ready\ndata: {"position":5}\n\n'),
        pull: () => new Promise(() => {}),
      })
      return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  const clock = { ...systemClock, sleep: (_: number, signal?: AbortSignal) => systemClock.sleep(100, signal) }
  const client = createClient({ fetch, clock }, { server: silent.url.href, token: 't' })
  const ending = new AbortController()
  const lost: number[] = []
  const onLost = (tries: number) => {
    lost.push(tries)
    if (lost.length === 2) ending.abort()
  }
  const events = await Array.fromAsync(client.follow({ signal: ending.signal, onLost }))
  expect([new Set(events.map(({ event }) => event)), lost]).toEqual([new Set(['ready']), [1, 1]])
  await silent.stop(true)
})
