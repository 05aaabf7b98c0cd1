// Commits that are taken back and done again: what Git then sends are differences in both directions, which must not
// lead to each other.
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, renameSync } from 'node:fs'
import { join } from 'node:path'
import { createGitKit, type GitKit, textsOf } from '../support/git-source-kit.ts'

setDefaultTimeout(60_000)
const TIMES = 12
let kit: GitKit

beforeAll(async () => {
  kit = await createGitKit('library over http')
})
afterAll(() => kit.close())

const lines = (last: string): string => [...Array(200).keys()].map((line) => `line ${line} of a file\n`).join('') + last

test('SO54 a commit that is taken back and done again any number of times is read each time, also after a restart', async () => {
  const others = Object.fromEntries([...Array(60).keys()].map((at) => [`app/file-${at}.yaml`, `a: ${at}\n`]))
  await kit.server.commit({ ...others, 'app/large.txt': lines('off\n') }, 'first')
  const dir = kit.newDir()
  const source = kit.open({ client: 'library', dir })
  for (let at = 0; at < TIMES; at++) {
    const text = lines(at % 2 === 0 ? 'on\n' : 'off\n')
    const commit = await kit.server.commit({ 'app/large.txt': text, 'app/extra.yaml': at % 2 === 0 ? 'b: 1\n' : null }, `time ${at}`)
    expect(await source.fetch()).toBe(commit)
    expect((await textsOf(source, commit, 'app'))['app/large.txt']).toBe(text)
    const again = kit.open({ client: 'library', dir })
    expect((await textsOf(again, commit, 'app'))['app/large.txt']).toBe(text)
  }
})

test('SO54 what a server kept that did not make packs whole is not read: it counts as not there, and is fetched afresh', async () => {
  const dir = kit.newDir()
  const commit = await kit.open({ client: 'library', dir }).fetch()
  renameSync(join(dir, 'skerry-complete'), join(dir, 'skerry-whole'))
  const again = kit.open({ client: 'library', dir })
  expect(await again.has(commit)).toBe(false)
  expect(await again.fetch()).toBe(commit)
  expect([await again.has(commit), existsSync(join(dir, 'skerry-whole'))]).toEqual([true, false])
})
