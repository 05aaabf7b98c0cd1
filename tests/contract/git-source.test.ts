// Contract of Source, kept by GitSource against git's own server program.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGitServer, type GitServer } from '../../scripts/local-cluster/git-http-server.ts'
import { createGitSource, type GitSourceOptions } from '../../server/sources/git-source.ts'
import type { Source } from '../../server/sources/source.ts'
import { AppError } from '../../shared/protocol/error.ts'

const everything = () => true
let root = ''
let server: GitServer
let requests: string[] = []
let folders = 0

beforeAll(async () => {
  root = mkdtempSync(join(tmpdir(), 'skerry-git-'))
  server = await createGitServer({ dir: join(root, 'remote') })
})
afterAll(async () => {
  await server.stop()
  rmSync(root, { recursive: true })
})
beforeEach(() => {
  requests = []
})

const source = (options: Partial<GitSourceOptions> = {}) =>
  createGitSource({
    url: server.url,
    ref: 'main',
    dir: join(root, `clone-${folders++}`),
    fetcher: (url, init) => {
      requests.push(`${init.method} ${new URL(url).pathname}`)
      return fetch(url, init)
    },
    ...options,
  })
const filesOf = async (repository: Source, commit: string, path: string, wanted: (path: string) => boolean) =>
  (await repository.open(commit, { path: '.' })).tree.files(path, wanted)
const idOf = async (repository: Source, commit: string, path: string) => (await repository.open(commit, { path: '.' })).tree.id(path)
const git = (...args: string[]) =>
  Bun.spawnSync(['git', '-C', join(root, 'remote', 'work'), ...args])
    .stdout.toString()
    .trim()
const failure = async (act: Promise<unknown>): Promise<[string, string]> => {
  const error = await act.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  return error instanceof AppError ? [error.code, error.message] : ['', String(error)]
}

describe('reading', () => {
  test('IN1 head, tree ids and files of a commit', async () => {
    const first = await server.commit(
      { 'web/a.yaml': 'a: 1\n', 'web/deep/b.yaml': 'b: 1\n', 'db/c.yaml': 'c: 1\n', 'README.md': 'x' },
      'first',
    )
    const repository = source()
    expect(await repository.head()).toBe(first)
    expect(await repository.fetch()).toBe(first)
    expect(await repository.has(first)).toBe(true)
    expect(await repository.has('0'.repeat(40))).toBe(false)
    const files = await filesOf(repository, first, './web/', everything)
    expect([...files].map(([path, file]) => [path, new TextDecoder().decode(file.bytes)])).toEqual([
      ['web/a.yaml', 'a: 1\n'],
      ['web/deep/b.yaml', 'b: 1\n'],
    ])
    expect([...(await filesOf(repository, first, '.', (path) => !path.startsWith('web/'))).keys()]).toEqual(['README.md', 'db/c.yaml'])
    expect(await idOf(repository, first, 'nowhere')).toBeNull()
    expect((await filesOf(repository, first, 'nowhere', everything)).size).toBe(0)

    const second = await server.commit({ 'web/a.yaml': 'a: 2\n' }, 'second')
    expect(await repository.fetch()).toBe(second)
    expect(await idOf(repository, second, 'db')).toBe(await idOf(repository, first, 'db'))
    expect(await idOf(repository, second, 'web')).not.toBe(await idOf(repository, first, 'web'))
  })

  test('IN2 looking at an unchanged branch costs two requests, a change two; content is read without the network', async () => {
    const repository = source()
    await repository.fetch()
    const commit = await server.commit({ 'db/c.yaml': 'c: 2\n' }, 'another')
    requests = []
    expect(await repository.head()).toBe(commit)
    expect(requests).toHaveLength(2)
    requests = []
    expect(await repository.fetch()).toBe(commit)
    expect(requests).toHaveLength(2)
    requests = []
    server.setDown(true)
    expect((await filesOf(repository, commit, 'web', everything)).size).toBe(2)
    server.setDown(false)
    expect(requests).toEqual([])
  })

  test('IN1 tags, annotated tags, full ref names and commit ids are refs', async () => {
    const tagged = await server.commit({ 'web/a.yaml': 'a: 3\n' }, 'third')
    git('tag', 'light')
    git('tag', '-a', 'heavy', '-m', 'x')
    git('push', '--tags')
    const later = await server.commit({ 'web/a.yaml': 'a: 4\n' }, 'fourth')
    for (const ref of ['light', 'heavy', 'refs/tags/heavy', tagged]) {
      const repository = source({ ref })
      expect([ref, await repository.head()]).toEqual([ref, tagged])
      expect([ref, await repository.fetch()]).toEqual([ref, tagged])
      expect((await filesOf(repository, tagged, 'web', everything)).size).toBe(2)
    }
    expect(await source({ ref: 'refs/heads/main' }).fetch()).toBe(later)
  })

  test('IN3 a rewritten branch is followed', async () => {
    const repository = source()
    await repository.fetch()
    git('commit', '--amend', '--no-verify', '-qm', 'rewritten')
    git('push', '-qf', 'origin', 'HEAD:main')
    const rewritten = git('rev-parse', 'HEAD')
    expect(await repository.fetch()).toBe(rewritten)
    expect((await filesOf(repository, rewritten, 'web', everything)).size).toBe(2)
  })

  test('IN4 packs do not pile up', async () => {
    const dir = join(root, `clone-${folders++}`)
    const repository = source({ dir, packsMax: 3 })
    let commit = ''
    for (let n = 0; n < 7; n++) {
      commit = await server.commit({ 'web/a.yaml': `n: ${n}\n` }, `n ${n}`)
      expect(await repository.fetch()).toBe(commit)
    }
    expect(readdirSync(join(dir, 'objects', 'pack')).filter((name) => name.endsWith('.pack')).length).toBeLessThanOrEqual(3)
    expect((await filesOf(repository, commit, 'web', everything)).size).toBe(2)
  })
})

test('IN4 a folder that cannot be read any more is fetched afresh', async () => {
  const dir = join(root, `clone-${folders++}`)
  await source({ dir }).fetch()
  const packs = join(dir, 'objects', 'pack')
  for (const name of readdirSync(packs)) writeFileSync(join(packs, name), 'torn')
  const repository = source({ dir })
  const commit = await server.commit({ 'web/a.yaml': 'torn: 1\n' }, 'after the crash')
  expect(await repository.fetch()).toBe(commit)
  expect((await filesOf(repository, commit, 'web', everything)).size).toBe(2)
})

describe('refusals', () => {
  test('IN5 an unreachable server and a missing ref are told apart and name host and ref', async () => {
    expect(await failure(source({ ref: 'nope' }).head())).toEqual(['git_ref_not_found', `${server.url} has no branch or tag nope`])
    expect(await failure(source({ ref: 'nope' }).fetch())).toEqual(['git_ref_not_found', `${server.url} has no branch or tag nope`])
    expect((await failure(source({ ref: 'f'.repeat(40) }).fetch()))[0]).toBe('git_ref_not_found')
    const { host } = new URL(server.url)
    server.setDown(true)
    expect(await failure(source().head())).toEqual(['git_unreachable', `the Git server ${host} cannot be reached`])
    server.setDown(false)
    const silent = source({
      timeoutMs: 50,
      fetcher: (_, init) => new Promise((_, reject) => init.signal?.addEventListener('abort', () => reject(init.signal?.reason))),
    })
    expect(await failure(silent.head())).toEqual(['git_unreachable', `the Git server ${host} did not answer within 0.05 s`])
    expect((await failure(source({ url: `${server.url}x` }).head()))[0]).toBe('git_failed')
  })

  test.each([
    ['a page', '<html>inside-secret</html>', 200],
    ['a refusal of a page', '<html>inside-secret</html>', 403],
    ['a packet that is none', '001e# service=git-upload-pack\n0000inside-secret', 200],
    ['a packet of another service', '0020# service=inside-secret\n0000', 200],
  ])('IN14 %s in place of a Git server: people are not shown what answered', async (_, text, status) => {
    const type = 'application/x-git-upload-pack-advertisement'
    const foreign = source({ fetcher: async () => new Response(text, { status, headers: { 'content-type': type } }) })
    for (const act of [foreign.head(), foreign.fetch()]) {
      const [code, message] = await failure(act)
      expect([code.startsWith('git_'), message]).toEqual([true, expect.not.stringContaining('inside-secret')])
    }
  })

  test('IN6 links and submodules are refused by name', async () => {
    Bun.spawnSync(['ln', '-s', '/etc/passwd', join(root, 'remote', 'work', 'web', 'link.yaml')])
    const commit = await server.commit({ 'web/z.yaml': 'z: 1\n' }, 'a link')
    const repository = source()
    await repository.fetch()
    expect(await failure(filesOf(repository, commit, 'web', everything))).toEqual([
      'source_refused',
      'web/link.yaml is a link: only files of the repository itself are read; put a copy there',
    ])
    expect((await failure(filesOf(repository, commit, 'README.md', everything)))[1]).toBe('README.md is a file, not a folder')
  })
})
