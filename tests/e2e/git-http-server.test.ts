// The Git server that demo and tests deploy from, asked by git itself.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createGitServer, type GitServer } from '../../scripts/local-cluster/git-http-server.ts'

let dir: string
let server: GitServer
let pushes = 0

beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'git-server-'))
  server = await createGitServer({ dir: join(dir, 'server'), onPush: () => pushes++ })
})

afterAll(async () => {
  await server?.stop()
  rmSync(dir, { recursive: true, force: true })
})

async function git(...args: string[]): Promise<{ code: number; output: string }> {
  const identity = ['-c', 'user.name=somebody', '-c', 'user.email=somebody@skerry.example', '-c', 'commit.gpgsign=false']
  const child = Bun.spawn(['git', ...identity, ...args], { stdin: 'ignore', stdout: 'pipe', stderr: 'ignore' })
  return { output: (await Bun.readableStreamToText(child.stdout)).trim(), code: await child.exited }
}

test('a commit is there for whoever clones, removed files are gone, and its id is the head', async () => {
  await server.commit({ 'a/one.yaml': 'one\n', 'two.yaml': 'two\n' }, 'first')
  const id = await server.commit({ 'two.yaml': null }, 'second')
  const clone = join(dir, 'clone')
  expect((await git('clone', '--quiet', server.url, clone)).code).toBe(0)
  expect((await git('-C', clone, 'rev-parse', 'HEAD')).output).toBe(id)
  expect((await git('-C', clone, 'ls-files')).output).toBe('a/one.yaml')
})

test('somebody else’s push is taken, told of, and stays under the next commit', async () => {
  const clone = join(dir, 'clone')
  await Bun.write(join(clone, 'three.yaml'), 'three\n')
  await git('-C', clone, 'add', '--all')
  await git('-C', clone, 'commit', '--quiet', '-m', 'third')
  expect((await git('-C', clone, 'push', '--quiet')).code).toBe(0)
  expect(pushes).toBe(1)
  await server.commit({ 'four.yaml': 'four\n' }, 'fourth')
  await git('-C', clone, 'pull', '--quiet')
  expect((await git('-C', clone, 'ls-files')).output.split('\n')).toEqual(['a/one.yaml', 'four.yaml', 'three.yaml'])
})

test('while it is down connections are refused; afterwards it is back at the same address', async () => {
  server.setDown(true)
  await expect(fetch(server.url)).rejects.toThrow()
  server.setDown(false)
  expect((await git('ls-remote', server.url, 'main')).output).toContain('refs/heads/main')
})
