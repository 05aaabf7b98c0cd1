import { afterAll, describe, expect, test } from 'bun:test'
import type { KubeAccess } from '../../agent/cluster/kube-credentials.ts'
import { createKubeHttp, LISTS_MAX, REQUESTS_IN_FLIGHT_MAX, WATCHES_MAX } from '../../agent/cluster/kube-http.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { createVirtualClock, turnOfTheLoop, type VirtualClock } from '../support/virtual-clock.ts'

let inFlight = 0
let most = 0
let headers = new Headers()
const release: Array<() => void> = []
const server = Bun.serve({
  port: 0,
  hostname: '127.0.0.1',
  idleTimeout: 0,
  async fetch(request) {
    headers = request.headers
    const { pathname } = new URL(request.url)
    if (pathname === '/moved') return new Response(null, { status: 302, headers: { location: '/answered' } })
    if (pathname === '/watch') {
      const first = new TextEncoder().encode('\n')
      return new Response(new ReadableStream({ start: (controller) => controller.enqueue(first), pull: () => new Promise(() => {}) }))
    }
    if (pathname === '/slow') {
      inFlight += 1
      most = Math.max(most, inFlight)
      await new Promise<void>((resolve) => release.push(resolve))
      inFlight -= 1
    }
    return Response.json({ pathname })
  },
})
afterAll(() => server.stop(true))

const access: KubeAccess = { tls: { insecure: false }, authorization: 'Bearer t' }
const connect = (clock: VirtualClock, read: () => Promise<KubeAccess> = async () => access) =>
  createKubeHttp(
    { source: 'test', server: `http://127.0.0.1:${server.port}`, read },
    { clock, log: silentLogger, userAgent: 'skerry-agent/1.2.3' },
  )
const get = (path: string) => ({ method: 'GET' as const, path, plural: 'pods' })

describe('requests', () => {
  test('KA27 no more than 32 at once, and all of them in the end', async () => {
    const http = connect(createVirtualClock())
    const answers = Array.from({ length: 80 }, () => http.request(get('/slow')))
    while (release.length < REQUESTS_IN_FLIGHT_MAX) await turnOfTheLoop()
    await turnOfTheLoop()
    expect(release).toHaveLength(REQUESTS_IN_FLIGHT_MAX)
    for (let done = 0; done < 80; done += 1) {
      while (release[done] === undefined) await turnOfTheLoop()
      release[done]?.()
    }
    expect((await Promise.all(answers)).every(({ kind }) => kind === 'answer')).toBe(true)
    expect(most).toBe(REQUESTS_IN_FLIGHT_MAX)
  })

  test('KA27 the watch after the last is refused aloud, and one that ends makes room', async () => {
    const http = connect(createVirtualClock())
    const abort = new AbortController()
    const open = () => http.stream({ ...get('/watch'), signal: abort.signal })
    const streams = await Promise.all(Array.from({ length: WATCHES_MAX }, open))
    expect(streams.every(({ kind }) => kind === 'stream')).toBe(true)
    expect(await open()).toMatchObject({ kind: 'failed', failure: { kind: 'throttled', reason: 'TooManyWatches' } })
    const list = () => http.stream({ ...get('/watch'), signal: abort.signal, isList: true })
    const lists = await Promise.all(Array.from({ length: LISTS_MAX }, list))
    expect(lists.every(({ kind }) => kind === 'stream')).toBe(true)
    expect(await list()).toMatchObject({ kind: 'failed', failure: { kind: 'throttled', reason: 'TooManyWatches' } })
    for (const each of lists) if (each.kind === 'stream') each.release()
    const [first] = streams
    if (first?.kind === 'stream') first.release()
    expect((await open()).kind).toBe('stream')
    abort.abort()
  })

  test('KA6 an answer that does not come within 65 s is unreachable', async () => {
    const clock = createVirtualClock()
    const answer = connect(clock).request(get('/slow'))
    await clock.advance(64_999)
    await clock.advance(1)
    expect(await answer).toMatchObject({ kind: 'failed', failure: { kind: 'unreachable', message: expect.stringContaining('65 s') } })
    for (const done of release) done()
  })

  test('KA12 a redirect is not followed: credentials are for one server', async () => {
    expect(await connect(createVirtualClock()).request(get('/moved'))).toMatchObject({ kind: 'failed', failure: { status: 302 } })
  })

  test('KA9 credentials are read at most once a minute, by all waiting requests together', async () => {
    const clock = createVirtualClock()
    let reads = 0
    const http = connect(clock, async () => {
      reads += 1
      return { ...access, authorization: `Bearer ${reads}`, impersonateUser: 'deployer' }
    })
    await Promise.all([http.request(get('/a')), http.request(get('/b')), http.request(get('/c'))])
    await clock.advance(59_999)
    await http.request(get('/d'))
    expect(reads).toBe(1)
    await clock.advance(1)
    await http.request(get('/e'))
    expect(Object.fromEntries(['authorization', 'user-agent', 'impersonate-user'].map((name) => [name, headers.get(name)]))).toEqual({
      authorization: 'Bearer 2',
      'user-agent': 'skerry-agent/1.2.3',
      'impersonate-user': 'deployer',
    })
  })

  test('KA9 without any credentials yet, a request says which file is missing', async () => {
    const http = connect(createVirtualClock(), async () => {
      throw new AppError('kube_config', { detail: 'cannot read /x/token' })
    })
    expect(await http.request(get('/a'))).toMatchObject({
      failure: { kind: 'unauthorized', reason: 'kube_config', message: 'cannot read /x/token' },
    })
  })
})
