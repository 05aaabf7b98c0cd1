// Repositories and Git servers that are meant to do harm.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { generateKeyPairSync } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createSources } from '../../server/sources/sources.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { createGitKit, failureOf, type GitKit, gitDeps } from '../support/git-source-kit.ts'
import { naming } from '../support/naming.ts'
import { residentGrowth } from '../support/resident-growth.ts'
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
  const grown = residentGrowth()
  expect(await failureOf(source.fetch())).toEqual(['git_failed', naming('128 MiB')])
  expect(grown()).toBeLessThan(400 * 1024 * 1024)
  expect(await source.has(first)).toBe(true)
  await kit.server.commit({ 'bomb.bin': null }, 'gone')
})

test.each(['library', 'cli'] as const)('SO41 folders that hold each other again and again end at a limit, by client %s', async (client) => {
  const make = (lines: string) => {
    const done = Bun.spawnSync(['git', '-C', join(kit.root, 'remote', 'work'), 'mktree', '--missing'], { stdin: Buffer.from(lines) })
    return done.stdout.toString().trim()
  }
  const blob = kit.git('rev-parse', 'HEAD:a.yaml')
  let tree = make(Array.from({ length: 10 }, (_, at) => `120000 blob ${blob}\tlink${at}\n`).join(''))
  for (let level = 0; level < 12; level++) tree = make(Array.from({ length: 10 }, (_, at) => `040000 tree ${tree}\td${at}\n`).join(''))
  const flat = make(Array.from({ length: 2_000 }, (_, file) => `100644 blob ${blob}\tf${file}\n`).join(''))
  const wide = make(Array.from({ length: 2_000 }, (_, at) => `040000 tree ${flat}\td${at}\n`).join(''))
  const root = make(
    `040000 tree ${tree}\tdeep\n040000 tree ${wide}\twide\n160000 commit ${'1'.repeat(40)}\tmodule\n100644 blob ${blob}\t.gitmodules\n`,
  )
  kit.git('push', '--quiet', '--force', 'origin', `${kit.git('commit-tree', '-m', 'bomb', root)}:refs/heads/bomb-${client}`)
  const source = kit.open({ client, ref: `bomb-${client}`, submodules: true })
  const { tree: opened } = await source.open(await source.fetch(), { path: '.' })
  const startMs = performance.now()
  for (const path of ['deep', '.'])
    expect(await failureOf(opened.id(path))).toEqual(['source_refused', expect.stringMatching(/\b(50000|1000000) /)])
  for (const path of ['deep', 'wide'])
    expect(await failureOf(opened.files(path, (file) => file.endsWith('/')))).toEqual([
      'source_refused',
      expect.stringContaining('more than '),
    ])
  expect(performance.now() - startMs).toBeLessThan(20_000)
})

test('SO33 what a git that was killed left behind keeps no later fetch from its work', async () => {
  const dir = kit.newDir()
  await kit.open({ dir }).fetch()
  const left = [
    'shallow.lock',
    'config.lock',
    'HEAD.lock',
    'packed-refs.lock',
    'refs/skerry/head.lock',
    'refs/skerry/incoming.lock',
    'objects/pack/tmp_pack_x',
  ]
  for (const name of left) writeFileSync(join(dir, name), '')
  const commit = await kit.server.commit({ 'later.yaml': 'a: 2\n' }, 'later')
  const source = kit.open({ dir })
  expect(await source.fetch()).toBe(commit)
  expect(left.filter((name) => existsSync(join(dir, name)))).toEqual([])
})

test('SO28 an answer without end in the place of a token is not read to its end', async () => {
  let sent = 0
  const api = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    fetch: () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            sent += 64 * 1024
            controller.enqueue(new Uint8Array(64 * 1024).fill(32))
            if (sent > 64 * 1024 * 1024) controller.close()
          },
        }),
        { status: 201 },
      ),
  })
  try {
    const { privateKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
      publicKeyEncoding: { type: 'spki', format: 'pem' },
    })
    const document = JSON.stringify({ appId: 1, installationId: 2, privateKey, apiUrl: `http://127.0.0.1:${api.port}` })
    const asked = kit.open({ client: 'library', secrets: async () => ({ githubApp: document }) }).fetch()
    expect(await failureOf(asked)).toEqual(['git_unreachable', naming('GitHub')])
    expect(sent).toBeLessThan(32 * 1024 * 1024)
  } finally {
    await api.stop(true)
  }
})

test('SO10 a process that ended in the midst of taking a fresh folder leaves its last content', async () => {
  const dir = kit.newDir()
  const commit = await kit.open({ dir }).fetch()
  renameSync(dir, `${dir}.old`)
  mkdirSync(`${dir}.new`)
  expect(await kit.open({ dir }).has(commit)).toBe(true)
})

test('SO29 keys that a killed process left as files are gone at the next start, whether anybody speaks or not', () => {
  const root = kit.newDir()
  const left = [join(root, 'uid-1.private-x'), join(root, 'uid-1.modules', 'm.private-y')]
  for (const folder of left) {
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, 'key'), 'secret')
  }
  createSources({
    root,
    addresses: loopbackGuard(),
    credentials: async () => ({}),
    clock: systemClock,
    stopping: new AbortController().signal,
    raiseWatermark: async () => null,
  })
  expect(left.filter((folder) => existsSync(folder))).toEqual([])
})
