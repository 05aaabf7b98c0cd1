// Repositories and Git servers that are meant to do harm.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { createGitKit, failureOf, type GitKit, gitDeps } from '../support/git-source-kit.ts'
import { loopbackGuard } from '../support/source-guard.ts'

setDefaultTimeout(60_000)
let kit: GitKit
beforeAll(async () => {
  kit = await createGitKit('git over http')
  await kit.server.commit({ 'a.yaml': 'a: 1\n' }, 'first')
})
afterAll(() => kit.close())

test('SO1 an address that git would read as another host than was checked leads nowhere else', async () => {
  const inside: string[] = []
  const inner = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) => {
      inside.push(request.url)
      return new Response('', { status: 404 })
    },
  })
  // The checked host answers whatever is asked, as a Git server of somebody else can.
  const outer = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: (request) => {
      const { pathname } = new URL(request.url)
      const service = pathname.slice(pathname.lastIndexOf('/git-upload-pack'))
      const to = service === '/git-upload-pack' ? service : '/info/refs?service=git-upload-pack'
      return fetch(`${kit.url}${to}`, { method: request.method, headers: request.headers, body: request.body, decompress: false })
    },
  })
  try {
    const { fetcher, allowedAddress, proxyOf } = loopbackGuard({ resolve: async () => ['127.0.0.1'] })
    const deps = { ...gitDeps(), fetcher, allowedAddress, proxyOf }
    for (const path of ['x.git', '']) {
      const url = `http://git.example:${outer.port}\\@127.0.0.1:${inner.port}/${path}`
      await failureOf(kit.open({ url, client: 'cli' }, deps).fetch())
    }
    expect(inside).toEqual([])
  } finally {
    await inner.stop(true)
    await outer.stop(true)
  }
})

test('SO39 a repository with a file that is far larger than what comes of it is refused, and what was there stays', async () => {
  const source = kit.open({ client: 'library' })
  const first = await source.fetch()
  await kit.server.commit({ 'bomb.bin': '0'.repeat(130 * 1024 * 1024) }, 'a bomb')
  const before = process.memoryUsage.rss()
  expect(await failureOf(source.fetch())).toEqual(['git_failed', expect.stringContaining('holds a file of more than 128 MiB')])
  expect(process.memoryUsage.rss() - before).toBeLessThan(400 * 1024 * 1024)
  expect(await source.has(first)).toBe(true)
  await kit.server.commit({ 'bomb.bin': null }, 'gone')
})
