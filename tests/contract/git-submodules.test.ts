// Submodules: refused by name unless they are asked for, and then read from their own repositories, with credentials
// for the same host only.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createGitServer, type GitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { createGitKit, failureOf, filesOf, type GitKit, gitIn, idOf, textsOf } from '../support/git-source-kit.ts'
import { naming } from '../support/naming.ts'

setDefaultTimeout(60_000)
let kit: GitKit
let library: GitServer
let work = ''
let libraryCommit = ''

beforeAll(async () => {
  kit = await createGitKit('library over http')
  library = await createGitServer({ dir: join(kit.root, 'library') })
  work = join(kit.root, 'remote', 'work')
  libraryCommit = await library.commit({ 'base/x.yaml': 'x: 1\n', 'top.yaml': 'top: 1\n' }, 'first')
})
afterAll(async () => {
  await library.stop()
  await kit.close()
})

/** A commit with a submodule at lib/, as git would have written it. */
async function withSubmodule(url: string, commit: string, more: Record<string, string> = {}): Promise<string> {
  writeFileSync(join(work, '.gitmodules'), `[submodule "lib"]\n\tpath = lib\n\turl = ${url}\n`)
  for (const [path, text] of Object.entries(more)) {
    mkdirSync(join(work, path, '..'), { recursive: true })
    writeFileSync(join(work, path), text)
  }
  gitIn(work, 'add', '-A', '--ignore-errors', '.gitmodules', ...Object.keys(more))
  gitIn(work, 'update-index', '--add', '--cacheinfo', `160000,${commit},lib`)
  gitIn(work, 'commit', '-qm', 'submodule')
  gitIn(work, 'push', '-qf', 'origin', 'HEAD:main')
  return gitIn(work, 'rev-parse', 'HEAD')
}

test.each(['library', 'cli'] as const)('SO34 files of a submodule are read when they are asked for, by client %s', async (client) => {
  await kit.server.commit({ 'a.yaml': 'a: 1\n' }, 'first')
  const commit = await withSubmodule(library.url, libraryCommit, { 'a.yaml': `a: ${client}\n` })
  const plain = kit.open({ client })
  expect(await plain.fetch()).toBe(commit)
  expect(await failureOf(filesOf(plain, commit, '.'))).toEqual(['source_refused', naming('lib', 'submodule', 'spec.git.submodules: true')])
  expect(Object.keys(Object.fromEntries(await filesOf(plain, commit, '.', (path) => path !== 'lib/')))).toEqual(['.gitmodules', 'a.yaml'])
  const source = kit.open({ client, submodules: true })
  expect(await source.fetch()).toBe(commit)
  const texts = await textsOf(source, commit)
  expect(texts['a.yaml']).toBe(`a: ${client}\n`)
  expect([texts['lib/base/x.yaml'], texts['lib/top.yaml']]).toEqual(['x: 1\n', 'top: 1\n'])
  expect(Object.keys(await textsOf(source, commit, 'lib/base'))).toEqual(['lib/base/x.yaml'])
  const { tree } = await source.open(commit, { path: '.' })
  expect((await tree.list('.'))?.map(({ name, kind }) => `${name} ${kind}`)).toEqual(['.gitmodules file', 'a.yaml file', 'lib folder'])
  expect((await tree.file('lib/top.yaml'))?.bytes).toEqual(new TextEncoder().encode('top: 1\n'))
  library.setDown(false)
  const before = await idOf(source, commit, '.')
  const newer = await library.commit({ 'top.yaml': 'top: 2\n' }, 'second')
  const after = await withSubmodule(library.url, newer)
  await source.fetch()
  if (client === 'library') library.setDown(true) // it came along, since it had been read
  expect((await textsOf(source, after))['lib/top.yaml']).toBe('top: 2\n')
  expect(await idOf(source, after, '.')).not.toBe(before)
  library.setDown(false)
})

test('SO34 a relative URL is of the same server; one that is no address of a repository, or no address at all, is refused', async () => {
  const same = await createGitServer({ dir: join(kit.root, 'remote', 'nested') })
  const inside = await same.commit({ 'n.yaml': 'n: 1\n' }, 'first')
  await same.stop()
  const commit = await withSubmodule('../nested/fleet.git', inside)
  const source = kit.open({ submodules: true })
  await source.fetch()
  expect((await textsOf(source, commit))['lib/n.yaml']).toBe('n: 1\n')
  for (const url of [
    'file:///etc',
    'ext::sh -c id',
    '/srv/other.git',
    '../../../../x.git',
    'https://me:secret@example.com/a.git',
    '--upload-pack=x',
  ]) {
    const bad = await withSubmodule(url, inside)
    const [code, message] = await failureOf(filesOf(await fetched(), bad, '.'))
    expect([url, code, message]).toEqual([url, 'source_refused', naming('lib', 'submodule', 'URL')])
  }
  const refused = await withSubmodule('http://169.254.169.254/a.git', inside)
  expect((await failureOf(filesOf(await fetched(), refused, '.')))[0]).toBe('source_address_refused')
  const gone = await withSubmodule(library.url, 'e'.repeat(40))
  expect((await failureOf(filesOf(await fetched(), gone, '.')))[0]).toBe('git_ref_not_found')

  async function fetched() {
    const source = kit.open({ submodules: true })
    await source.fetch()
    return source
  }
})

test('SO35 a submodule of another host or port gets no credentials', async () => {
  const seen: string[] = []
  const door = (target: string) =>
    Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request) => {
        const { pathname, search, port } = new URL(request.url)
        seen.push(`${port} ${request.headers.get('authorization') === null ? 'without' : 'with'}`)
        const headers = new Headers(request.headers)
        headers.delete('authorization')
        return fetch(`${new URL(target).origin}${pathname}${search}`, {
          method: request.method,
          headers,
          body: request.method === 'GET' ? null : request.body,
          decompress: false,
        })
      },
    })
  const [own, other] = [door(kit.url), door(library.url)]
  try {
    const commit = await withSubmodule(`http://127.0.0.1:${other.port}/fleet.git`, libraryCommit)
    const source = kit.open({ url: `http://127.0.0.1:${own.port}/fleet.git`, submodules: true, secrets: async () => ({ token: 't' }) })
    await source.fetch()
    expect((await textsOf(source, commit))['lib/base/x.yaml']).toBe('x: 1\n')
    expect([...new Set(seen)].sort()).toEqual([`${own.port} with`, `${other.port} without`].sort())
  } finally {
    await own.stop(true)
    await other.stop(true)
  }
})

test.each([false, true])(
  'SO35 a submodule on the same host gets credentials with submoduleCredentials only (%s)',
  async (submoduleCredentials) => {
    const inner = await createGitServer({ dir: join(kit.root, 'remote', `inner-${submoduleCredentials}`) })
    const inside = await inner.commit({ 'n.yaml': 'n: 1\n' }, 'first')
    await inner.stop()
    const seen = new Set<string>()
    const door = Bun.serve({
      hostname: '127.0.0.1',
      port: 0,
      fetch: (request) => {
        const { pathname, search } = new URL(request.url)
        const headers = new Headers(request.headers)
        const isInner = pathname.includes('inner')
        seen.add(`${isInner ? 'submodule' : 'repository'} ${headers.get('authorization') === null ? 'without' : 'with'}`)
        headers.delete('authorization')
        const body = request.method === 'GET' ? null : request.body
        return fetch(`${new URL(kit.url).origin}${pathname}${search}`, { method: request.method, headers, body, decompress: false })
      },
    })
    try {
      const commit = await withSubmodule(`../inner-${submoduleCredentials}/fleet.git`, inside)
      const url = `http://127.0.0.1:${door.port}/fleet.git`
      const source = kit.open({ url, submodules: true, submoduleCredentials, secrets: async () => ({ token: 't' }) })
      await source.fetch()
      expect((await textsOf(source, commit))['lib/n.yaml']).toBe('n: 1\n')
      expect([...seen].sort()).toEqual(['repository with', `submodule ${submoduleCredentials ? 'with' : 'without'}`])
    } finally {
      await door.stop(true)
    }
  },
)

test('SO34 submodules are read three deep, and no deeper', async () => {
  const chain: GitServer[] = []
  let [url, commit] = [library.url, libraryCommit]
  for (let n = 0; n < 3; n++) {
    const server = await createGitServer({ dir: join(kit.root, `chain-${n}`) })
    chain.push(server)
    await server.commit({ [`level-${n}.yaml`]: 'x: 1\n' }, 'first')
    const at = join(kit.root, `chain-${n}`, 'work')
    writeFileSync(join(at, '.gitmodules'), `[submodule "lib"]\n\tpath = lib\n\turl = ${url}\n`)
    gitIn(at, 'add', '.gitmodules')
    gitIn(at, 'update-index', '--add', '--cacheinfo', `160000,${commit},lib`)
    gitIn(at, 'commit', '-qm', 'nested')
    gitIn(at, 'push', '-q', 'origin', 'HEAD:main')
    ;[url, commit] = [server.url, gitIn(at, 'rev-parse', 'HEAD')]
  }
  try {
    const top = await withSubmodule(url, commit)
    const source = kit.open({ submodules: true })
    await source.fetch()
    const isShallow = (path: string) => !path.startsWith('lib/lib/lib/lib')
    expect(Object.fromEntries(await filesOf(source, top, '.', isShallow))).toHaveProperty(['lib/lib/lib/level-0.yaml'])
    expect(await failureOf(filesOf(source, top, '.'))).toEqual(['source_refused', naming('submodule', '3 deep')])
  } finally {
    await Promise.all(chain.map((server) => server.stop()))
  }
})
