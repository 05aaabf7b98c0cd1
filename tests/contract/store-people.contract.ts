// What every fleet store must do about questions to people and their tokens: part of the store's contract.
import { expect, test } from 'bun:test'
import type { SessionRecord } from '../../server/fleet/records.ts'
import type { TokenRole } from '../../shared/model/access.ts'
import { clusterId, joinCluster, type StoreHarness } from '../support/store-fixtures.ts'

export function peopleContract({ store }: StoreHarness): void {
  const question = {
    kind: 'remove_service' as const,
    subject: 'remove_service/default/web',
    project: 'default',
    service: 'web',
    cluster: null,
    token: 'digest-1',
    names: ['a', 'b'],
    why: '2 of 2 clusters',
    createdMs: 10,
  }

  test('HT6 SI16 a request begins once until it is forgotten or over, and a credential is used once', async () => {
    const request = { id: 'r', digest: 'd', untilMs: 100, nowMs: 1 }
    expect(await store().beginRequest(request)).toBeNull()
    expect(await store().beginRequest(request)).toEqual({ digest: 'd', answer: null })
    await store().endRequest('r', 'answer')
    expect(await store().beginRequest({ ...request, digest: 'e' })).toEqual({ digest: 'd', answer: 'answer' })
    expect(await store().beginRequest({ ...request, nowMs: 100, untilMs: 200 })).toBeNull()
    await store().forgetRequest('r')
    expect(await store().beginRequest({ ...request, nowMs: 101, untilMs: 200 })).toBeNull()
    const times = { untilMs: 100, nowMs: 1 }
    expect([await store().useOnce('j', times), await store().useOnce('j', times)]).toEqual([true, false])
    expect(await store().useOnce('j', { untilMs: 200, nowMs: 100 })).toBe(true)
  })

  test('ST7 a question keeps its id and its answer while it asks the same', async () => {
    const opened = await store().openConfirmation(question)
    expect(opened).toMatchObject({ ...question, confirmedMs: null, confirmedBy: null })
    expect(opened.id).toMatch(/^[0-9a-z]{6}$/)
    expect(await store().listConfirmations()).toEqual([opened])
    expect(await store().confirm(opened.id, 'ada', 20)).toMatchObject({ confirmedMs: 20, confirmedBy: 'ada' })
    expect(await store().confirm(opened.id, 'bob', 30)).toMatchObject({ confirmedMs: 20, confirmedBy: 'ada' })
    expect(await store().listConfirmations()).toEqual([])
    const again = await store().openConfirmation({ ...question, createdMs: 40 })
    expect(again).toMatchObject({ id: opened.id, createdMs: 10, confirmedBy: 'ada' })
    expect(await store().confirmationFor(question.subject)).toEqual(again)
  })

  test('ST7 another question of the same subject gets a new id and no answer: an old id cannot confirm new names', async () => {
    const first = await store().openConfirmation(question)
    await store().confirm(first.id, 'ada', 20)
    const second = await store().openConfirmation({ ...question, token: 'digest-2', names: ['a', 'b', 'c'], createdMs: 30 })
    expect(second.id).not.toBe(first.id)
    expect(second).toMatchObject({ names: ['a', 'b', 'c'], createdMs: 30, confirmedMs: null })
    expect(await store().confirm(first.id, 'ada', 40)).toBeNull()
    expect(await store().confirmation(first.id)).toBeNull()
    expect(await store().listConfirmations()).toEqual([second])
  })

  test('ST7 a yes covers fewer of the same names, and not one more', async () => {
    const first = await store().openConfirmation(question)
    expect(await store().openConfirmation({ ...question, names: ['b'] })).toMatchObject({ id: first.id, names: ['b'] })
    await store().confirm(first.id, 'ada', 20)
    expect(await store().openConfirmation({ ...question, names: [] })).toMatchObject({ id: first.id, names: ['b'], confirmedMs: 20 })
    const more = await store().openConfirmation({ ...question, names: ['b', 'c'] })
    expect(more.id).not.toBe(first.id)
    expect(more.confirmedMs).toBeNull()
  })

  const ofCluster = (digit: string, names = ['a', 'b'], createdMs = 10) => {
    const [subject, cluster] = [`prune/${clusterId(digit)}/default/web`, `cluster-${digit}`]
    return store().openConfirmation({ ...question, kind: 'prune', subject, cluster, names, createdMs })
  }
  const subjectOf = (digit: string) => `prune/${clusterId(digit)}/default/web`

  test('ST23 clusters that ask the same of one revision are one question, with its names once', async () => {
    const { id } = await ofCluster('a')
    expect((await ofCluster('a', ['a', 'b'], 11)).id).toBe(id)
    expect(await store().listConfirmations()).toMatchObject([{ id, subject: subjectOf('a'), cluster: 'cluster-a', names: ['a', 'b'] }])
    for (const digit of ['b', 'c']) expect((await ofCluster(digit, ['a', 'b'], 20)).id).toBe(id)
    const other = await ofCluster('d', ['z'], 30)
    expect((await store().listConfirmations()).map(({ id, cluster, clusters, createdMs }) => [id, cluster, clusters, createdMs])).toEqual([
      [id, null, { count: 3, first: ['cluster-a', 'cluster-b', 'cluster-c'], upTo: 3 }, 10],
      [other.id, 'cluster-d', undefined, 30],
    ])
    expect((await store().listConfirmations({ limit: 1 })).map((item) => item.id)).toEqual([id])
    expect((await store().listConfirmations({ after: { id, createdMs: 10 } })).map((item) => item.id)).toEqual([other.id])
    const ofService = await store().confirmationsOfService({ project: 'default', service: 'web' })
    expect(ofService.map(({ subject }) => subject).sort()).toEqual(['a', 'b', 'c', 'd'].map(subjectOf))
    expect(new Set(ofService.map(({ names }) => names)).size).toBe(2)
    const found = await store().openConfirmationsFor([subjectOf('b'), subjectOf('d'), 'none'])
    expect([...found].map(([subject, one]) => [subject, one.id, one.cluster]).sort()).toEqual([
      [subjectOf('b'), id, 'cluster-b'],
      [subjectOf('d'), other.id, 'cluster-d'],
    ])
  })

  test('ST23 a yes is for the clusters that were shown; a later one asks under another id', async () => {
    const { id } = await ofCluster('a')
    await ofCluster('b')
    await ofCluster('c') // after two were shown
    expect(await store().confirm(id, 'ada', 50, 2)).toMatchObject({ confirmedBy: 'ada', clusters: { count: 2, upTo: 3 } })
    const [open] = await store().listConfirmations()
    expect(open).toMatchObject({ cluster: 'cluster-c', confirmedMs: null })
    expect(open?.id).not.toBe(id)
    expect((await ofCluster('d')).id).toBe(open?.id ?? '')
    expect(await ofCluster('a', ['a'])).toMatchObject({ id, confirmedMs: 50 }) // names only left
    expect((await store().confirmationFor(subjectOf('b')))?.confirmedBy).toBe('ada')
    for (const digit of ['a', 'b']) await store().closeConfirmation(subjectOf(digit))
    expect(await store().confirmation(id)).toBeNull()
    expect(await store().confirm(id, 'ada', 60)).toBeNull()
    for (const digit of ['c', 'd']) await store().closeConfirmation(subjectOf(digit))
    await ofCluster('e')
    expect(await store().confirm((await ofCluster('e')).id, 'ada', 70, 0)).toBeNull() // none of those that were shown
    expect(await store().listConfirmations()).toMatchObject([{ cluster: 'cluster-e' }])
  })

  test('ST23 ST6 a cluster that asks something else, is answered or is deleted leaves the others', async () => {
    const [a, b] = [await joinCluster(store(), 'a'), await joinCluster(store(), 'b')]
    const { id } = await ofCluster('a')
    await ofCluster('b')
    await ofCluster('c')
    expect((await ofCluster('c', ['a'], 20)).id).not.toBe(id)
    expect(await store().listConfirmations()).toMatchObject([
      { id, clusters: { count: 2, first: ['cluster-a', 'cluster-b'] } },
      { cluster: 'cluster-c' },
    ])
    await store().deleteCluster('cluster-a')
    expect(await store().confirmation(id)).toMatchObject({ cluster: 'cluster-b', subject: subjectOf('b') })
    await store().deleteCluster('cluster-b')
    expect([await store().confirmation(id), a === b]).toEqual([null, false])
  })

  test('ST7 oldest first; closing forgets', async () => {
    const late = await store().openConfirmation({ ...question, subject: 'prune/x', createdMs: 50 })
    const early = await store().openConfirmation({ ...question, subject: 'prune/y', createdMs: 5 })
    expect((await store().listConfirmations()).map((item) => item.id)).toEqual([early.id, late.id])
    await store().closeConfirmation('prune/y')
    await store().closeConfirmation('prune/y')
    expect((await store().listConfirmations()).map((item) => item.id)).toEqual([late.id])
    expect(await store().confirmationFor('prune/y')).toBeNull()
    const many = Array.from({ length: 1_200 }, (_, n) => `prune/${n}`)
    expect(await store().confirmationsFor([...many, 'prune/y', 'prune/x'])).toEqual(new Map([['prune/x', late]]))
    expect(await store().confirmationsFor([])).toEqual(new Map())
  })

  const apiToken = (id: string, more: { expiresMs?: number; replaces?: string; role?: TokenRole; createdBy?: string } = {}) =>
    store().createApiToken({
      id,
      tokenHash: `hash-${id}`,
      name: 'admin',
      role: 'admin',
      createdMs: 1,
      createdBy: null,
      expiresMs: null,
      replaces: null,
      ...more,
    })
  const isHeld = async (id: string) => (await store().apiTokenByHash(`hash-${id}`)) !== null

  test('AP1 API tokens are found by hash only', async () => {
    expect(await store().countAdminTokens(1)).toBe(0)
    await apiToken('t1')
    expect(await store().countAdminTokens(1)).toBe(1)
    expect(await store().apiTokenByHash('hash-t1')).toEqual({
      ...{ id: 't1', name: 'admin', role: 'admin', createdMs: 1, createdBy: null, expiresMs: null, replaces: null },
      ...{ lastUsedMs: null, lastUsedFrom: null, projects: null },
    })
    expect(await store().apiTokenByHash('h2')).toBeNull()
  })

  test('AP2 an expired API token does not count, and goes when another one is made', async () => {
    await apiToken('t1', { expiresMs: 100 })
    expect([await store().countAdminTokens(99), await store().countAdminTokens(100)]).toEqual([1, 0])
    await store().createApiToken({
      id: 't2',
      tokenHash: 'hash-t2',
      name: 'admin',
      role: 'admin',
      createdMs: 100,
      createdBy: null,
      expiresMs: null,
      replaces: null,
    })
    expect([await isHeld('t1'), await isHeld('t2')]).toEqual([false, true])
  })

  test('AP16 tokens are listed oldest first with their last use, and a revoked one is gone; only admins count for AP2', async () => {
    await apiToken('ci', { role: 'viewer', createdBy: 'admin' })
    await apiToken('boss')
    expect(await store().countAdminTokens(1)).toBe(1)
    await store().noteApiTokenUse('ci', 70, '192.0.2.1')
    const listed = (await store().listApiTokens()).map(({ id, role, createdBy, lastUsedMs, lastUsedFrom }) => ({
      id,
      role,
      createdBy,
      lastUsedMs,
      lastUsedFrom,
    }))
    expect(listed).toEqual([
      { id: 'boss', role: 'admin', createdBy: null, lastUsedMs: null, lastUsedFrom: null },
      { id: 'ci', role: 'viewer', createdBy: 'admin', lastUsedMs: 70, lastUsedFrom: '192.0.2.1' },
    ])
    expect([await store().deleteApiToken('ci'), await store().deleteApiToken('ci'), await isHeld('ci')]).toEqual([true, false, false])
  })

  test('AP12 the first use of a token ends the token that it replaces, and the others that would replace it', async () => {
    await apiToken('first')
    await apiToken('lost', { replaces: 'first' })
    await apiToken('new', { replaces: 'first' })
    await apiToken('other')
    await store().retireReplaced('new')
    await store().retireReplaced('new')
    expect(await Promise.all(['first', 'lost', 'new', 'other'].map(isHeld))).toEqual([false, false, true, true])
    expect((await store().apiTokenByHash('hash-new'))?.replaces).toBeNull()
  })

  test('SI7 a session is found by its access token and by its last two refresh tokens, and is gone when it is deleted', async () => {
    const session: SessionRecord = {
      ...{ id: 's-1', kind: 'cli' as const, provider: 'dex', subject: 'sub', name: 'bob', email: null, groups: ['web'] },
      ...{ accessHash: 'a1', accessExpiresMs: 10, refreshHash: 'r1', earlierRefreshHash: null, rotatedMs: 1 },
      ...{ createdMs: 1, expiresMs: 100, checkedMs: 1, lastUsedMs: 1, lastUsedFrom: null, sealed: null },
    }
    await store().createSession(session)
    await store().changeSession('s-1', { accessHash: 'a2', refreshHash: 'r2', earlierRefreshHash: 'r1', groups: ['ops'], sealed: 'x' })
    const changed = { ...session, accessHash: 'a2', refreshHash: 'r2', earlierRefreshHash: 'r1', groups: ['ops'], sealed: 'x' }
    expect(await store().sessionByAccess('a1')).toBeNull()
    expect(await store().sessionByAccess('a2')).toEqual(changed)
    expect([await store().sessionByRefresh('r1'), await store().sessionByRefresh('r2')]).toEqual([changed, changed])
    expect(await store().deleteExpiredSessions(99)).toBe(0)
    expect(await store().listSessions()).toHaveLength(1)
    expect(await store().deleteSession('s-1', { verb: 'revoke' })).toBe(true)
    expect(await store().deleteSession('s-1', { verb: 'revoke' })).toBe(false)
    await store().createSession(session)
    expect(await store().deleteExpiredSessions(100)).toBe(1)
    expect(await store().listSessions()).toEqual([])
  })
}
