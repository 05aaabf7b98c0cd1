// What a Git source remembers between two reads: never a failure of the other side.
import { expect, test } from 'bun:test'
import { GitSource } from '../../server/sources/git/git-source.ts'
import type { GitBackend, GitEntry } from '../../server/sources/git/objects.ts'
import { AppError } from '../../shared/runtime/error.ts'
import { failureOf } from '../support/git-source-kit.ts'

const [COMMIT, TREE, MODULES, MODULE] = ['a', 'b', 'c', 'd'].map((letter) => letter.repeat(40)) as [string, string, string, string]
const entry = (name: string, kind: GitEntry['kind'], oid: string): [string, GitEntry] => [name, { name, kind, oid }]

test('SO21 .gitmodules that could not be read once is asked for again by the next read, without a fetch between them', async () => {
  let isDown = true
  const backend: GitBackend = {
    refs: async () => [],
    fetch: async () => null,
    keep: async () => {},
    has: async () => true,
    isSound: async () => true,
    isDamaged: async () => false,
    release: () => {},
    translate: (_, error) => (error instanceof Error ? error : new Error(String(error))),
    objects: () => ({
      text: async () => ({ type: 'commit', text: new TextEncoder().encode(`tree ${TREE}\n`) }),
      folders: async (oids) => oids.map(() => new Map([entry('.gitmodules', 'file', MODULES), entry('sub', 'submodule', MODULE)])),
      bring: async () => {},
      blobs: async () => {
        if (isDown) throw new AppError('git_unreachable', { detail: 'down' })
        return new Map([[MODULES, new TextEncoder().encode('[submodule "x"]\n\tpath = sub\n\turl = https://x/y\n')]])
      },
    }),
  }
  const module = { id: async () => 'of the submodule', list: async () => [], file: async () => null, files: async () => new Map() }
  const submodules = { open: async () => module, newCommit: () => {} }
  const options = { url: 'https://x/z', ref: 'main', dir: '/nowhere/git', backend, larger: null, submodules }
  const source = new GitSource({ ...options, nowMs: () => 0, raiseWatermark: async () => null })
  const look = async () => (await source.open(COMMIT, { path: '.' })).tree.id('sub')
  expect(await failureOf(look())).toEqual(['git_unreachable', 'down'])
  isDown = false
  expect(await look()).toBe('of the submodule')
})
