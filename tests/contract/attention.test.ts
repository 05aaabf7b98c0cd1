// Things that need a person, in one list, and the lists beside it that a page reads in parts: services by their worst
// words, older events, commits with what they changed, and refused confirmations.
import { afterEach, beforeEach, describe, expect, setDefaultTimeout, test } from 'bun:test'
import { leaveSubject, pruneSubject } from '../../server/fleet/plan-service.ts'
import type { Store } from '../../server/store/store.ts'
import type { AttentionView } from '../../shared/model/attention.ts'
import type { CommitView } from '../../shared/model/commits.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { repositorySpecSchema, serviceSpecSchema, syncOptionsSchema } from '../../shared/model/resources.ts'
import type { ConfirmationView, EventView, ServiceList } from '../../shared/model/views.ts'
import type { ClusterId } from '../../shared/runtime/ids.ts'
import { createTestAdmin, type TestAdmin } from '../support/admin-app.ts'
import { configMap, confirmationId, createIngestKit, SHOP } from '../support/ingest-kit.ts'
import { naming } from '../support/naming.ts'
import { joinCluster } from '../support/store-fixtures.ts'
import { openIn, STORES } from '../support/stores.ts'

setDefaultTimeout(60_000)

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
})
afterEach(() => admin.store.close())

const get = async <T>(path: string): Promise<T> => {
  const { status, body } = await admin.call('GET', `/api/v1${path}`)
  expect([path, status]).toEqual([path, 200])
  return body as T
}

async function repository(store: Store, name = 'apps'): Promise<void> {
  const spec = repositorySpecSchema.parse({ git: { url: 'https://git.example/apps.git' } })
  await store.applyResource({ kind: 'Repository', project: 'p', name }, { labels: {}, spec: JSON.stringify(spec), nowMs: 1 })
  await store.setRepositoryState('p', name, { commit: 'c2', fetchedMs: 1, tag: null, error: null })
}
async function service(store: Store, name: string, repositoryName = 'apps', digest: string | null = 'd1'): Promise<void> {
  const spec = serviceSpecSchema.parse({ source: { repository: repositoryName, path: name }, targets: { selector: {} } })
  await store.applyResource({ kind: 'Service', project: 'p', name }, { labels: {}, spec: JSON.stringify(spec), nowMs: 1 })
  await store.setRenderState(
    { project: 'p', service: name },
    { commit: 'c2', generation: 1, digest, objectCount: 1, renderedMs: 1, error: null },
  )
}
const row = serviceRowSchema.parse({ commit: 'c2', digest: 'd1', count: 1, sync: syncOptionsSchema.parse({}) })
const place = (store: Store, clusterId: ClusterId, name: string) =>
  store.publish([{ clusterId, project: 'p', service: name, doc: row, setSha: null, placedBy: '{}' }])
let rev = 0
const report = (store: Store, clusterId: ClusterId, key: string, kind: 'service' | 'drift', doc: object) =>
  store.upsertStatus(clusterId, [{ kind, key, rev: ++rev, doc }], { complete: false, nowMs: 1 })
const point = { commit: 'c2', digest: 'd1', atMs: 1 }
const said = (sync: string, health: string, reason = '') => ({
  ...{ sync, health, reason, message: '', sinceMs: 5, received: point, applied: point, objectCount: 1, healthyCount: 1 },
})

test('AP40 one list names confirmations, failed renders, repositories, contested drift and pending syncs, in this order', async () => {
  const { store } = admin
  const [a, b] = [await joinCluster(store, 'a'), await joinCluster(store, 'b')]
  await repository(store)
  await repository(store, 'legacy')
  for (const name of ['fights', 'manual', 'broken']) await service(store, name)
  for (const clusterId of [a, b]) {
    await place(store, clusterId, 'manual')
    await report(store, clusterId, 'p/manual', 'service', said('OutOfSync', 'Healthy', 'ManualSync'))
  }
  const drift = { action: 'contested', manager: 'hpa', paths: ['.spec.replicas'], detectedMs: 3, count: 9 }
  await report(store, a, 'p/fights/apps/Deployment/shop/web', 'drift', drift)
  await report(store, a, 'p/fights/apps/Deployment/shop/api', 'drift', { ...drift, action: 'healed' })
  const error = { code: 'invalid_manifest', message: 'it does not parse', problems: [{ path: 'a.yaml:3:1', message: 'bad' }], sinceMs: 4 }
  await store.setRenderState(
    { project: 'p', service: 'broken' },
    { commit: 'c2', generation: 1, digest: 'd1', objectCount: 1, renderedMs: 1, error },
  )
  await store.setRepositoryState('p', 'legacy', { commit: null, fetchedMs: null, tag: null, error: { ...error, code: 'git_unreachable' } })
  const asked = {
    kind: 'prune',
    project: 'p',
    service: 'manual',
    token: 'd1',
    why: 'most',
    createdMs: 2,
  } as const
  await store.openConfirmation({
    ...asked,
    names: ['ConfigMap shop/x'],
    subject: pruneSubject(a, { project: 'p', service: 'manual' }),
    cluster: 'a',
  })
  const { items, counts, total, continue: next } = await get<AttentionView>('/attention')
  expect(items.map((one) => [one.kind, 'service' in one ? one.service : '', one.sinceMs])).toEqual([
    ['confirmation', '', 2],
    ['render', 'broken', 4],
    ['repository', '', 4],
    ['contested', 'fights', 3],
    ['sync', 'manual', 5],
  ])
  expect(items.at(-2)).toMatchObject({ objects: 1, clusters: { count: 1 } })
  expect(items.at(-1)).toMatchObject({ clusters: { count: 2 } })
  expect([counts, total, next]).toEqual([{ restore: 0, confirmation: 1, render: 1, repository: 1, contested: 1, sync: 1 }, 5, null])
  const first = await get<AttentionView>('/attention?limit=3')
  const second = await get<AttentionView>(`/attention?limit=3&continue=${first.continue}`)
  expect([...first.items, ...second.items].map(({ id }) => id)).toEqual(items.map(({ id }) => id))
})

test('AP41 services are found, filtered and sorted over all pages by the worst words over their clusters', async () => {
  const { store } = admin
  const a = await joinCluster(store, 'a')
  await repository(store)
  await repository(store, 'other')
  const words = { bad: ['Synced', 'Degraded'], slow: ['OutOfSync', 'Progressing'], well: ['Synced', 'Healthy'] } as const
  for (const [name, [sync, health]] of Object.entries(words)) {
    await service(store, name, name === 'slow' ? 'other' : 'apps')
    await place(store, a, name)
    await report(store, a, `p/${name}`, 'service', said(sync, health))
  }
  await service(store, 'broken')
  const error = { code: 'invalid_manifest', message: 'no', problems: [], sinceMs: 4 }
  await store.setRenderState(
    { project: 'p', service: 'broken' },
    { commit: 'c2', generation: 1, digest: 'd1', objectCount: 1, renderedMs: 1, error },
  )
  const names = async (query: string) => (await get<ServiceList>(`/services?${query}`)).items.map(({ metadata }) => metadata.name)
  expect(await names('sort=health')).toEqual(['broken', 'bad', 'slow', 'well'])
  expect(await names('sort=name')).toEqual(['bad', 'broken', 'slow', 'well'])
  expect(await names('sort=health&health=Degraded,Progressing')).toEqual(['bad', 'slow'])
  expect(await names('sync=OutOfSync')).toEqual(['broken', 'slow'])
  expect(await names('failing=true')).toEqual(['broken'])
  expect(await names('search=P%2FB')).toEqual(['bad', 'broken'])
  expect(await names('repository=other')).toEqual(['slow'])
  let token: string | null = ''
  const walked: string[] = []
  while (token !== null) {
    const page: ServiceList = await get<ServiceList>(`/services?sort=health&limit=1&continue=${token}`)
    expect(page.total).toBe(4)
    walked.push(...page.items.map(({ metadata }) => metadata.name))
    token = page.continue
  }
  expect(walked).toEqual(['broken', 'bad', 'slow', 'well'])
  expect((await admin.call('GET', '/api/v1/services?sort=health&health=Bad')).status).toBe(400)
})

test('AP42 events are read back to the first one, and found by words and type among more than one request looks through', async () => {
  const { store } = admin
  const event = (n: number) => ({
    ...({ atMs: n, type: n === 7 ? 'Warning' : 'Normal', reason: 'Applied', message: `number-${n}.` } as const),
    ...{ cluster: 'oslo', project: 'p', service: 'web', object: null },
  })
  await store.appendEvents(Array.from({ length: 12_345 }, (_, n) => event(n)))
  const walk = async (query: string) => {
    const found: number[] = []
    for (let before: string | null = String(Number.MAX_SAFE_INTEGER); before !== null; ) {
      const page: { items: EventView[]; continue: string | null } = await get(`/events?limit=500&before=${before}&${query}`)
      found.unshift(...page.items.map(({ atMs }) => atMs))
      before = page.continue
    }
    return found
  }
  expect(await walk('')).toEqual(Array.from({ length: 12_345 }, (_, n) => n))
  expect(await walk('search=number-7.')).toEqual([7])
  expect(await walk('type=Warning')).toEqual([7])
  expect(await walk('search=nowhere')).toEqual([])
  const newest = await get<{ items: EventView[]; continue: string | null }>('/events?limit=2')
  expect([newest.items.map(({ atMs }) => atMs), newest.continue]).toEqual([[12_343, 12_344], null])
})

describe.each(STORES)('confirmations on $name', (kind) => {
  test('ST24 a refused confirmation waits no longer, keeps its refusal, and can still be given', async () => {
    const store = await openIn(kind)
    const ids = [await joinCluster(store, 'a'), await joinCluster(store, 'b')]
    const base = {
      kind: 'prune',
      ...SHOP,
      token: 'd1',
      why: 'most',
      createdMs: 2,
      names: ['ConfigMap shop/x', 'ConfigMap shop/y'],
    } as const
    const ask = (n: number, names: readonly string[] = base.names, token = 'd1') =>
      store.openConfirmation({ ...base, token, names: [...names], cluster: `c${n}`, subject: pruneSubject(ids[n] as ClusterId, SHOP) })
    const { id } = await ask(0)
    const refused = await store.refuse(id, { by: 'ada', why: 'still used', nowMs: 9 })
    expect(refused?.refused).toEqual({ atMs: 9, by: 'ada', why: 'still used' })
    expect([await store.listConfirmations(), (await store.listConfirmations({ refused: true })).map((one) => one.id)]).toEqual([[], [id]])
    expect(await store.pendingConfirmations()).toEqual([])
    expect([(await ask(0)).id, (await ask(0, ['ConfigMap shop/x'])).id]).toEqual([id, id])
    const other = await ask(1)
    expect([other.id === id, other.refused]).toEqual([false, undefined])
    const next = await ask(0, base.names, 'd2')
    expect([next.id === id, next.refused]).toEqual([false, undefined])
    await store.refuse(next.id, { by: 'ada', why: 'still used', nowMs: 9 })
    expect(await store.confirm(next.id, 'bob', 10)).toMatchObject({ confirmedBy: 'bob' })
    expect((await store.confirmation(next.id))?.refused).toBeUndefined()
    expect(await store.refuse(next.id, { by: 'ada', why: 'too late', nowMs: 11 })).toBeNull()
    const audit = await store.audit.list({ limit: 10 })
    expect(audit.items.map(({ verb }) => verb)).toEqual(expect.arrayContaining(['refuse', 'confirm']))
    await store.close()
  })

  test('HI12 a revision counts the clusters that were given it, whatever they have now', async () => {
    const store = await openIn(kind)
    await repository(store)
    await service(store, 'web')
    const ids = [await joinCluster(store, 'a'), await joinCluster(store, 'b')]
    for (const id of ids) await place(store, id, 'web')
    await place(store, ids[0] as ClusterId, 'web')
    await store.setRenderState(
      { project: 'p', service: 'web' },
      { commit: 'c3', generation: 1, digest: 'd2', objectCount: 1, renderedMs: 2, error: null },
    )
    const doc = { ...row, commit: 'c3', digest: 'd2' }
    await store.publish([{ clusterId: ids[0] as ClusterId, project: 'p', service: 'web', doc, setSha: null, placedBy: '{}' }])
    const found = await store.revisionsFrom('p', ['web'], ['c2', 'c3'])
    expect(found.map(({ number, given, commits }) => [number, given, commits])).toEqual([
      [1, 2, ['c2']],
      [2, 1, ['c3']],
    ])
    await store.close()
  })
})

test('AP43 refusing takes the right to confirm and a reason; the answer for one id is never "not found"', async () => {
  const { store } = admin
  const a = await joinCluster(store, 'a')
  await repository(store)
  await service(store, 'web')
  const asked = {
    kind: 'prune',
    project: 'p',
    service: 'web',
    token: 'd1',
    why: 'most',
    createdMs: 2,
  } as const
  const { id } = await store.openConfirmation({
    ...asked,
    names: ['ConfigMap shop/x'],
    subject: pruneSubject(a, { project: 'p', service: 'web' }),
    cluster: 'a',
  })
  expect((await admin.call('POST', `/api/v1/confirmations/${id}/refuse`, {})).status).toBe(422)
  const { token } = (await admin.call('POST', '/api/v1/tokens', { name: 'looker', role: 'viewer', expires: '1h' })).body as {
    token: string
  }
  const viewer = { authorization: `Bearer ${token}` }
  expect((await admin.call('POST', `/api/v1/confirmations/${id}/refuse`, { reason: 'no' }, viewer)).status).toBe(403)
  const { status, body } = await admin.call('POST', `/api/v1/confirmations/${id}/refuse`, { reason: 'still used' })
  expect([status, (body as ConfirmationView).refused?.why]).toEqual([200, 'still used'])
  expect(admin.asked).toContain(`refuse ${id} (still used) by admin`)
  const one = async (of: string) => (await get<{ items: ConfirmationView[] }>(`/confirmations?id=${of}`)).items
  expect((await one(id)).map(({ refused, removals }) => [refused?.why, removals])).toEqual([['still used', []]])
  expect(await one('none')).toEqual([])
  expect((await get<{ items: unknown[] }>('/confirmations?state=refused')).items).toHaveLength(1)
  expect((await get<AttentionView>('/attention')).total).toBe(0)
})

test('AP44 commits of a repository say what each changed and broke, also those that changed nothing', async () => {
  const { store } = admin
  const a = await joinCluster(store, 'a')
  await repository(store)
  for (const name of ['web', 'api']) await service(store, name)
  await place(store, a, 'web')
  const seen = (commit: string, seenMs: number) =>
    store.noteCommit({ project: 'p', repository: 'apps', commit, author: 'Ana', subject: `s ${commit}`, authoredMs: 1, seenMs })
  for (const [index, commit] of ['c1', 'c2', 'c3'].entries()) await seen(commit, index)
  await store.setRepositoryState('p', 'apps', { commit: 'c3', fetchedMs: 1, tag: null, error: null })
  const error = { code: 'invalid_manifest', message: 'no', problems: [], sinceMs: 4, at: { commit: 'c3', author: null } }
  await store.setRenderState(
    { project: 'p', service: 'api' },
    { commit: 'c2', generation: 1, digest: 'd1', objectCount: 1, renderedMs: 1, error },
  )
  const { items } = await get<{ items: CommitView[] }>('/projects/p/repositories/apps/commits')
  expect(items.map(({ commit, current, changed, failed }) => [commit, current, changed, failed.map((one) => one.service)])).toEqual([
    ['c3', true, [], ['api']],
    [
      'c2',
      false,
      [
        { service: 'api', revision: 1, objects: 1, clusters: null },
        { service: 'web', revision: 1, objects: 1, clusters: 1 },
      ],
      [],
    ],
    ['c1', false, [], []],
  ])
  const first = await get<{ items: CommitView[]; continue: string }>('/projects/p/repositories/apps/commits?limit=2')
  const rest = await get<{ items: CommitView[] }>(`/projects/p/repositories/apps/commits?limit=2&continue=${first.continue}`)
  expect([...first.items, ...rest.items].map(({ commit }) => commit)).toEqual(['c3', 'c2', 'c1'])
})

test('ST24 refusing the deletion of a service takes it back; refused pruning is a state of its own', async () => {
  const kit = await createIngestKit()
  const clusters = await Promise.all(['1', '2', '3', '4', '5', '6'].map((digit) => kit.join(digit)))
  await kit.git.commit({ 'shop/a.yaml': configMap('a', '1') }, 'first')
  await kit.repository()
  await kit.service({ protect: true })
  await kit.actions.deleteService(SHOP, 'ada')
  const id = await confirmationId(kit.store)
  expect((await kit.store.listConfirmations()).map(({ kind }) => kind)).toEqual(['remove_service'])
  await kit.actions.refuse(id, { by: 'bob', why: 'wrong service' })
  expect(await kit.store.listConfirmations()).toEqual([])
  expect((await kit.store.getResource({ kind: 'Service', project: 'default', name: 'shop' }))?.deletingMs).toBeNull()
  expect((await kit.row(clusters[0] as ClusterId))?.removal).toBeUndefined()
  const digest = (await kit.row(clusters[0] as ClusterId))?.digest ?? ''
  await kit.report(clusters[0] as ClusterId, { refusal: { digest, names: ['ConfigMap shop/x'], count: 1, ownedCount: 3, why: 'most' } })
  await kit.actions.refuse(await confirmationId(kit.store), { by: 'bob', why: 'still used' })
  expect(await kit.events()).toContainEqual(naming('ConfirmationRefused: ', 'prune', 'bob', 'still used'))
  expect((await kit.row(clusters[0] as ClusterId))?.pruneConfirmed).toBeUndefined()
  await kit.close()
})

test('AP45 waves and hooks among the objects of a service are read from its revision', async () => {
  const kit = await createIngestKit()
  const cluster = await kit.join('1')
  const marked = (name: string, mark: string) => configMap(name, '1').replace('metadata:\n', `metadata:\n  annotations: {${mark}}\n`)
  await kit.git.commit(
    {
      'shop/a.yaml': configMap('a', '1'),
      'shop/b.yaml': marked('b', 'skerry.dev/wave: "5"'),
      'shop/c.yaml': marked('c', 'skerry.dev/hook: pre-sync'),
    },
    'first',
  )
  await kit.repository()
  await kit.service()
  const order = await kit.actions.objectOrder(SHOP, cluster)
  expect(order?.map(({ name, wave, phases }) => [name, wave, phases]).sort()).toEqual([
    ['b', 5, undefined],
    ['c', 0, ['pre-sync']],
  ])
  expect(await kit.actions.objectOrder({ ...SHOP, service: 'other' }, cluster)).toBeNull()
  await kit.close()
})

test('a subject of leaving clusters is refused for the whole fleet', async () => {
  const { store } = admin
  const subject = leaveSubject(SHOP)
  const { id } = await store.openConfirmation({
    ...{ kind: 'leave_targets', subject, ...SHOP, cluster: null, token: 't', names: ['a', 'b'], why: 'half', createdMs: 1 },
  })
  await store.refuse(id, { by: 'ada', why: 'no', nowMs: 2 })
  expect((await store.openConfirmationsFor([subject])).get(subject)?.refused?.by).toBe('ada')
})
