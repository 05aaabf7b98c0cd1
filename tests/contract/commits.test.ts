// Who wrote what is live: kept with each commit that a repository had, and shown wherever the commit is.
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { COMMITS_KEPT } from '../../server/store/store-commits.ts'
import { openIn, STORES } from '../support/stores.ts'

setDefaultTimeout(60_000)

describe.each(STORES)('$name', (kind) => {
  test('HI4 commits are known by project; the newest of each repository are kept', async () => {
    const store = await openIn(kind)
    const seen = (commit: string, seenMs: number, project = 'p') =>
      store.noteCommit({ project, repository: 'apps', commit, author: 'Ana', subject: `s ${commit}`, authoredMs: 1, seenMs })
    await seen('c1', 1)
    await seen('c1', 2)
    await seen('c2', 3)
    await store.noteCommit({
      project: 'p',
      repository: 'apps',
      commit: 'c3',
      author: null,
      subject: 'nul \u0000',
      authoredMs: null,
      seenMs: 4,
    })
    expect([...(await store.commitsOf('p', ['c1', 'c3', 'no']))].map(([id, { author }]) => [id, author])).toEqual([
      ['c1', 'Ana'],
      ['c3', null],
    ])
    expect((await store.commitsOf('other', ['c1'])).size).toBe(0)
    expect(COMMITS_KEPT).toBe(2_000)
    await store.close()
  })
})
