// Who wrote what is live: kept with each commit that a repository had, and shown wherever the commit is.
import { describe, expect, setDefaultTimeout, test } from 'bun:test'
import { COMMITS_KEPT } from '../../server/store/store-commits.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import { joinCluster, publishOne } from '../support/store-fixtures.ts'
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

  test('SO55 the newest verified commit of a ref is kept until its repository is deleted', async () => {
    const store = await openIn(kind)
    const key = { kind: 'Repository', project: 'p', name: 'apps' } as const
    await store.applyResource(key, { labels: {}, spec: '{}', nowMs: 1 })
    const uid = (await store.getResource(key))?.uid ?? ''
    const raise = async (ref: string, commit: string, atMs: number, parents: string[] = []) => {
      const raised = await store.raiseWatermark({ uid, ref }, { commit, atMs, parents }, 10_000)
      return raised.kind === 'older' ? raised.newest.commit : raised.isFirst ? 'first' : 'raised'
    }
    expect(await raise('main', 'a', 5_000)).toBe('first')
    expect(await raise('main', 'b', 5_000)).toBe('raised')
    expect(await raise('main', 'c', 4_999)).toBe('b')
    expect(await raise('main', 'd', 1, ['b'])).toBe('raised')
    expect(await raise('main', 'b', 5_000)).toBe('d') // a child counts as signed after its parent
    expect(await raise('main', 'e', 99_000)).toBe('raised')
    expect(await raise('main', 'f', 10_000)).toBe('raised') // no date is in the future of this server
    expect(await raise('other', 'a', 1)).toBe('first')
    await store.deleteResource(key)
    expect(await raise('main', 'a', 1)).toBe('first')
    await store.close()
  })

  test('HI5 a commit that was live for a moment has a row, also where sync and health never changed', async () => {
    const store = await openIn(kind)
    const id = await joinCluster(store, 'a')
    const doc = { commit: 'c1', digest: 'd1', count: 1, sync: syncOptionsSchema.parse({}), protect: false }
    await publishOne(store, { clusterId: id, project: 'p', service: 'web', doc, setSha: null, placedBy: '' })
    const state = { sync: 'Synced', health: 'Healthy', reason: '', message: '', sinceMs: 1, objectCount: 1, healthyCount: 1 }
    for (const [n, commit] of ['c1', 'c2', 'c2', 'c3'].entries()) {
      const row = { kind: 'service' as const, key: 'p/web', rev: n + 1, doc: { ...state, applied: { commit, digest: commit, atMs: n } } }
      await store.upsertStatus(id, [row], { complete: false, nowMs: 1_000 + n })
    }
    const rows = await store.statusHistory(id, { project: 'p', service: 'web' }, { limit: 10 })
    expect(rows.map(({ commit, atMs }) => [commit, atMs])).toEqual([
      ['c3', 1_003],
      ['c2', 1_001],
      ['c1', 1_000],
    ])
    await store.close()
  })
})
