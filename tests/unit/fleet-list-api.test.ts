// Lists over the whole fleet from address to answer: parameters, and what goes on a list.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createTestAdmin, type TestAdmin } from '../support/admin-app.ts'
import { joinCluster } from '../support/store-fixtures.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
  for (const [digit, env] of [
    ['a', 'prod'],
    ['b', 'dev'],
    ['c', 'prod'],
  ] as const) {
    const id = await joinCluster(admin.store, digit, { env })
    const state = (health: string, sinceMs: number) => ({ sync: 'Synced', health, reason: 'Why', message: `Über ${digit}`, sinceMs })
    const rows = ['x', 'y'].map((name, index) => ({
      kind: 'object' as const,
      key: `default/web//ConfigMap/web/${name}`,
      rev: index + 1,
      doc: state(digit === 'b' ? 'Degraded' : 'Healthy', index),
    }))
    await admin.store.upsertStatus(id, rows, { complete: false, nowMs: 1 })
  }
})
afterEach(() => admin.store.close())

interface List {
  items: Array<{ cluster: string; name: string }>
  continue: string | null
}
const list = async (query: string): Promise<List> => {
  const { status, body } = await admin.call('GET', `/api/v1/objects?${query}`)
  expect([query, status]).toEqual([query, 200])
  return body as List
}
const keys = ({ items }: List) => items.map(({ cluster, name }) => `${cluster.slice(-1)}${name}`).join(' ')

test.each([
  ['', 'ax ay bx by cx cy'],
  ['labelSelector=env%3Dprod', 'ax ay cx cy'],
  ['labelSelector=env in (dev,x),!gone', 'bx by'],
  ['labelSelector=env notin (dev)&sort=name', 'ax cx ay cy'],
  ['health=Degraded,Missing', 'bx by'],
  ['health=Degraded&health=Healthy&cluster=cluster-a', 'ax ay'],
  ['sort=health', 'bx by ax ay cx cy'],
  ['sort=newest&cluster=cluster-c', 'cy cx'],
  ['sort=oldest&cluster=cluster-c', 'cx cy'],
  ['search=ÜBER%20CLUSTER-b', 'bx by'],
  ['search=%20', 'ax ay bx by cx cy'],
  ['kind=configmap&name=y', 'ay by cy'],
  ['group=&name=x&namespace=web', 'ax bx cx'],
  ['drift=open', ''],
])('QY1 objects?%s', async (query, expected) => expect(keys(await list(query))).toBe(expected))

test('QY2 what goes on a list is for its filters and its sort; the size of pages may change', async () => {
  const first = await list('sort=name&limit=2')
  expect(keys(first)).toBe('ax bx')
  expect(keys(await list(`sort=name&limit=3&continue=${first.continue}`))).toBe('cx ay by')
  for (const other of ['sort=cluster', 'sort=name&health=Healthy', 'sort=name&search=x', 'sort=name&cluster=cluster-a'])
    expect(await admin.call('GET', `/api/v1/objects?${other}&continue=${first.continue}`)).toMatchObject({
      status: 400,
      body: { code: 'bad_request', problems: [{ path: 'continue' }] },
    })
  expect(await admin.call('GET', `/api/v1/placements?sort=name&continue=${first.continue}`)).toMatchObject({ status: 400 })
  for (const wrong of ['x', 'e30', Buffer.from('["0000",[{}]]').toString('base64url')])
    expect(await admin.call('GET', `/api/v1/objects?continue=${wrong}`)).toMatchObject({
      status: 400,
      body: { problems: [{ path: 'continue' }] },
    })
})

test.each(['oldest', 'newest', 'health', 'name'])('QY1 a row whose clock is far ahead is in a list with sort=%s', async (sort) => {
  const id = await joinCluster(admin.store, 'd')
  const doc = { sync: 'Synced', health: 'Healthy', reason: '', message: '', sinceMs: Number.MAX_SAFE_INTEGER }
  await admin.store.upsertStatus(id, [{ kind: 'object', key: 'default/web//ConfigMap/web/x', rev: 1, doc }], { complete: false, nowMs: 1 })
  expect((await list(`sort=${sort}`)).items.map(({ cluster }) => cluster)).toContain('cluster-d')
  const pages: string[] = []
  for (let next: string | null = ''; next !== null; ) {
    const page: List = await list(`sort=${sort}&limit=2&continue=${next}`)
    pages.push(...page.items.map(({ cluster, name }) => `${cluster.slice(-1)}${name}`))
    next = page.continue
  }
  expect(pages.sort().join(' ')).toBe('ax ay bx by cx cy dx')
})

test.each([
  ['newest', ['x', 1, 2]],
  ['newest', [1.5, null, null]],
  ['oldest', [1e300, 1, 2]],
  ['oldest', []],
  ['health', ['cluster-a', 'x']],
  ['cluster', [3]],
])('QY2 a token made by hand for sort=%s is refused: %j', async (sort, at) => {
  const { continue: given } = await list(`sort=${sort}&limit=1`)
  const [mark] = JSON.parse(Buffer.from(given ?? '', 'base64url').toString())
  const made = Buffer.from(JSON.stringify([mark, at])).toString('base64url')
  const wrong = { status: 400, body: { code: 'bad_request', problems: [{ path: 'continue' }] } }
  expect(await admin.call('GET', `/api/v1/objects?sort=${sort}&continue=${made}`)).toMatchObject(wrong)
})

test.each(['counts?by=label&key=a%00', 'counts?by=label&continue=YQA', 'services?continue=YQAvYg'])(
  'QY6 what a database cannot hold is refused before it is asked: %s',
  async (path) => expect(await admin.call('GET', `/api/v1/${path}`)).toMatchObject({ status: 400, body: { code: 'bad_request' } }),
)

test('QY2 rows that come and go meanwhile put nothing off its page', async () => {
  const first = await list('limit=3')
  expect(keys(first)).toBe('ax ay bx')
  await admin.store.deleteCluster('cluster-a')
  const id = await joinCluster(admin.store, '0')
  const doc = { sync: 'Synced', health: 'Healthy', reason: '', message: '', sinceMs: 1 }
  await admin.store.upsertStatus(id, [{ kind: 'object', key: 'default/web//ConfigMap/web/x', rev: 1, doc }], { complete: false, nowMs: 1 })
  expect(keys(await list(`limit=10&continue=${first.continue}`))).toBe('by cx cy')
})

test.each([
  ['objects?helth=Degraded', 'helth', 'unknown parameter; did you mean "health"?'],
  ['objects?health=Degradd', 'health[0]', 'did you mean "Degraded"?'],
  ['objects?sort=newst', 'sort', 'did you mean "newest"?'],
  ['objects?limit=501', 'limit', 'expected at most 500'],
  ['objects?labelSelector=a%3D%3D%3Db', 'labelSelector', 'key in (a,b)'],
  ['objects?search=1+2+3+4+5+6+7+8+9', 'search', 'at most 8 words'],
  ['objects?drift=closed', 'drift', 'expected "open"'],
  ['placements?revision=xyz', 'revision', 'expected at least 4 hex digits'],
  ['placements?sort=newest', 'sort', 'expected "cluster" or "name" or "health"'],
  ['clusters?liveness=Of', 'liveness[0]', 'expected "Online"'],
  ['clusters?sort=seen&cluster=x', 'cluster', 'unknown parameter'],
])('QY6 %s', async (address, path, message) => {
  const { status, body } = await admin.call('GET', `/api/v1/${address}`)
  expect(status).toBe(400)
  const { problems } = body as { problems: Array<{ path: string; message: string }> }
  expect(problems).toEqual([{ path, message: expect.stringContaining(message) }])
})

test('QY6 all that is wrong is told at once', async () => {
  const { body } = await admin.call('GET', '/api/v1/objects?limit=0&sort=x&nam=y')
  expect((body as { problems: Array<{ path: string }> }).problems.map(({ path }) => path).sort()).toEqual(['limit', 'nam', 'sort'])
})

test('QY1 clusters by labels, liveness, version, name and last contact', async () => {
  const names = async (query: string) =>
    ((await admin.call('GET', `/api/v1/clusters?${query}`)).body as { items: Array<{ metadata: { name: string } }> }).items
      .map(({ metadata }) => metadata.name.slice(-1))
      .join('')
  const idOf = async (name: string) => (await admin.store.clusterByName(name))?.clusterId
  const [a, b] = [await idOf('cluster-a'), await idOf('cluster-b')]
  if (a === undefined || b === undefined) throw new Error('no clusters')
  admin.clock.nowMs = 10_000_000
  await admin.store.markSeen(new Map([[a, 1]]))
  await admin.store.markSeen(new Map([[b, 9_990_000]]))
  for (const [id, agentVersion] of [
    [a, '0.4.2'],
    [b, '0.5.0'],
  ] as const) {
    const doc = { agentVersion, kubernetesVersion: 'v1.34.2', clusterUid: 'u', problems: [] }
    await admin.store.upsertStatus(id, [{ kind: 'cluster', key: 'cluster', rev: 9, doc }], { complete: false, nowMs: 1 })
  }
  expect(await names('')).toBe('abc')
  expect(await names('liveness=Online')).toBe('b')
  expect(await names('liveness=Offline,NeverSeen')).toBe('ac')
  expect(await names('sort=seen')).toBe('bac')
  expect(await names('version=0.4')).toBe('a')
  expect(await names('version=1.34&labelSelector=env%3Dprod')).toBe('a')
  expect(await names('search=er-C')).toBe('c')
  const first = (await admin.call('GET', '/api/v1/clusters?sort=seen&limit=2')).body as { continue: string }
  expect(await names(`sort=seen&limit=2&continue=${first.continue}`)).toBe('c')
})
