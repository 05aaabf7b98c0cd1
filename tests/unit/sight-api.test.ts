// AZ4: no list, count, search, event, change or hint names what the caller may not read. Everything of the other
// project says `hidden`.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { joinCluster, publishOne } from '../support/store-fixtures.ts'

const API = '/api/v1'
const meta = { apiVersion: 'skerry.dev/v1' }
let admin: TestAdmin
const as: Record<string, Record<string, string>> = {}
const confirmations: Record<string, string> = {}
let idOfB = ''

beforeAll(async () => {
  admin = await createTestAdmin()
  const a = await joinCluster(admin.store, 'a', { env: 'prod' })
  const b = await joinCluster(admin.store, 'b', { env: 'hidden-env', site: 'b' })
  idOfB = b
  const doc = { commit: 'c0ffee00', digest: 'd1', count: 1, sync: syncOptionsSchema.parse({}), protect: false }
  const hidden = serviceDoc('hidden-web', { project: 'hidden' })
  const elsewhere = serviceDoc('elsewhere', { project: 'shop' })
  const bind = (name: string, spec: object) => ({
    ...{ ...meta, kind: 'RoleBinding' },
    metadata: { name },
    spec: { subjects: [{ token: name }], ...spec },
  })
  const seeded = await admin.call('POST', `${API}/apply`, {
    resources: [
      ...[repositoryDoc('apps', { project: 'shop' }), serviceDoc('web', { project: 'shop' })],
      // Meant for cluster-b alone, and an override of it that names that cluster.
      { ...elsewhere, spec: { ...elsewhere.spec, targets: { selector: { matchLabels: { site: 'b' } } } } },
      ...[
        repositoryDoc('hidden-apps', { project: 'hidden' }),
        { ...hidden, spec: { ...hidden.spec, dependsOn: [{ name: 'web', project: 'shop' }] } },
      ],
      { ...meta, kind: 'Config', metadata: { name: 'hidden-config', project: 'hidden' }, spec: { data: { a: 1 } } },
      bind('shop', { role: 'viewer', projects: ['shop'] }),
      bind('prefix', { role: 'project-admin', projects: ['sho'] }),
      {
        ...meta,
        kind: 'Role',
        metadata: { name: 'labeler' },
        spec: { rules: [{ verbs: ['read', 'write', 'cluster:label'], kinds: ['Cluster'] }] },
      },
      bind('labeler', { role: 'labeler', projects: ['*'] }),
      { ...meta, kind: 'Role', metadata: { name: 'clusters' }, spec: { rules: [{ verbs: ['read'], kinds: ['Cluster'] }] } },
      bind('shipper', { role: 'clusters', projects: ['*'] }),
      { ...bind('shipper', { role: 'viewer', projects: ['shop'] }), metadata: { name: 'shipper-shop' } },
      bind('owner', { role: 'project-admin', projects: ['shop'] }),
      bind('prod', { role: 'operator', projects: ['*'], clusters: { matchLabels: { env: 'prod' } } }),
    ],
  })
  expect([seeded.status, seeded.body]).toEqual([200, expect.anything()])
  const places = [
    { clusterId: a, project: 'shop', service: 'web' },
    { clusterId: a, project: 'hidden', service: 'hidden-web' },
    { clusterId: b, project: 'hidden', service: 'hidden-web' },
    { clusterId: b, project: 'shop', service: 'web' },
  ]
  const state = { sync: 'OutOfSync', health: 'Degraded', reason: 'Applied', sinceMs: 9 }
  let rev = 0
  for (const { clusterId, project, service } of places) {
    await publishOne(admin.store, { clusterId, project, service, doc, setSha: null, placedBy: '' })
    // A tenant can make an agent say who else manages an object.
    const message = project === 'hidden' ? 'hidden message' : 'shown: already managed by the service hidden/hidden-web; rename the object'
    const event = { atMs: 3, type: 'Normal', reason: 'Applied', message, service: `${project}/${service}` }
    const object = { ...state, message }
    await admin.store.upsertStatus(
      clusterId,
      [
        { kind: 'service', key: `${project}/${service}`, rev: ++rev, doc: { ...object, objectCount: 1, healthyCount: 1 } },
        { kind: 'object', key: `${project}/${service}/apps/Deployment/x/${service}`, rev: ++rev, doc: object },
        { kind: 'event', key: String(rev), rev: ++rev, doc: event },
      ],
      { complete: false, nowMs: 1 },
    )
  }
  for (const { project, service } of places.slice(0, 2)) {
    const asked = {
      kind: 'remove_service',
      subject: project,
      project,
      service,
      cluster: null,
      token: 't',
      names: [service],
      why: 'w',
      createdMs: 1,
    } as const
    confirmations[project] = (await admin.store.openConfirmation({ ...asked, names: [...asked.names] })).id
  }
  await admin.call('POST', `${API}/suspend`, { project: 'hidden', services: ['hidden-web'], reason: 'r' })
  await admin.call('POST', `${API}/suspend`, { clusters: ['cluster-b'], reason: 'storm' })
  for (const name of ['shop', 'prefix', 'prod', 'labeler', 'owner', 'shipper']) {
    const { body } = await admin.call('POST', `${API}/tokens`, { name, role: 'none' })
    as[name] = { authorization: `Bearer ${(body as { token: string }).token}` }
  }
})
afterAll(() => admin.store.close())

const get = async (who: string, path: string) => {
  const { status, body } = await admin.call('GET', `${API}${path}`, undefined, as[who])
  return { status, text: JSON.stringify(body), body: body as { items: Array<Record<string, unknown>> } }
}
const LISTS = [
  ...['/services', '/repositories', '/projects', '/objects', '/objects?sort=name', '/objects?sort=health', '/objects?sort=newest'],
  ...['/objects?search=hidden', '/objects?cluster=cluster-b', '/placements', '/placements?sort=name', '/placements?sort=health'],
  ...['/placements?search=hidden', '/placements?health=Degraded', '/clusters/cluster-a/services', '/events', '/events?after=0'],
  ...['/confirmations', '/suspensions', '/changes?after=0&limit=500', '/counts?by=service', '/counts?by=service&of=objects'],
  ...['/projects/shop/services/web', '/projects/shop/services/web/clusters', '/projects/shop/services/web/dependencies'],
  ...['/projects/shop/services/web/why', '/projects/shop/services/web/history?cluster=cluster-b', '/clusters/cluster-b/history'],
]

test('AZ4 lists, counts, search, events and changes name nothing of another project', async () => {
  for (const path of LISTS) {
    const { status, text } = await get('shop', path)
    // cluster-b has the shown service, too; its labels are not the caller's.
    expect([path, status, /hidden/.exec(text.replaceAll(/"continue":"[^"]*"/g, ''))]).toEqual([path, 200, null])
  }
  expect((await get('shop', '/objects')).body.items).toHaveLength(2)
  expect((await get('shop', '/placements')).body.items).toHaveLength(2)
  expect((await get('shop', '/events')).body.items).toHaveLength(2)
  expect((await get('shop', '/confirmations')).body.items).toHaveLength(1)
})

test('AZ4 a message names no service that the caller may not read, a search does not find the name, and SQL does not compare it', async () => {
  const messages = async (who: string, path: string) => [...new Set((await get(who, path)).body.items.map(({ message }) => message))]
  const hidden = ['shown: already managed by a service that you may not read; rename the object']
  for (const path of ['/objects', '/events']) expect([path, await messages('shop', path)]).toEqual([path, hidden])
  expect(await messages('prod', '/objects')).toContain('shown: already managed by the service hidden/hidden-web; rename the object')
  expect((await get('shop', '/objects?search=already managed')).body.items).toHaveLength(2)
  for (const words of ['hidden', 'service hid', 'hidden-web'])
    expect([words, (await get('shop', `/objects?search=${words}`)).body.items]).toEqual([words, []])
  const found = async (view: string, who?: string) => {
    const sql = `select message from ${view} where message like '%hidden-web%'`
    return ((await admin.call('POST', `${API}/query`, { sql }, who === undefined ? undefined : as[who])).body as { rows: unknown[] }).rows
      .length
  }
  for (const view of ['objects', 'placements', 'events'])
    expect([view, await found(view, 'shop'), (await found(view)) > 0]).toEqual([view, 0, true])
})

test('AZ4 what people wrote is answered as they wrote it, whatever it says', async () => {
  const spec = { data: { note: 'see service hidden/hidden-web' } }
  const doc = { ...meta, kind: 'Config', metadata: { name: 'note', project: 'shop' }, spec }
  const path = '/projects/shop/configs/note'
  expect((await admin.call('PUT', `${API}${path}`, doc, as['owner'])).status).toBe(201)
  expect((await get('shop', path)).body).toMatchObject({ spec })
  await admin.call('DELETE', `${API}${path}`)
})

test('AZ4 counts hold only what the caller may read; those of the whole fleet are refused', async () => {
  expect((await get('shop', '/counts?by=service')).body.items).toMatchObject([{ key: 'shop/web', count: 2 }])
  expect((await get('shop', '/counts?by=health&of=objects')).body.items).toContainEqual(
    expect.objectContaining({ key: 'Degraded', count: 2 }),
  )
  for (const by of ['label', 'image', 'version', 'liveness', 'drift-age']) expect((await get('shop', `/counts?by=${by}`)).status).toBe(403)
})

test('AZ4 a project whose name begins the same is another project', async () => {
  for (const path of LISTS) {
    const { status, text } = await get('prefix', path)
    expect([path, status === 200 || status === 404, /hidden|"web"/.exec(status === 404 ? '' : text)]).toEqual([path, true, null])
  }
})

test('AZ3 single objects of another project do not exist', async () => {
  const { hidden = '', shop = '' } = confirmations
  for (const path of [
    ...[
      '/projects/hidden/services/hidden-web',
      '/projects/hidden/services/hidden-web/clusters',
      '/projects/hidden/repositories/hidden-apps',
    ],
    ...['/projects/hidden/configs/hidden-config', `/confirmations/${hidden}`, `/confirmations/${hidden}/removal`, '/clusters/cluster-b'],
  ])
    expect([path, (await get('shop', path)).status]).toEqual([path, 404])
  expect((await get('shop', `/confirmations/${shop}`)).status).toBe(200)
  const confirm = (id: string) => admin.call('POST', `${API}/confirmations/${id}/confirm`, undefined, as['shop'])
  expect([(await confirm(hidden)).status, (await confirm(shop)).status]).toEqual([403, 403])
  expect(admin.asked.filter((text) => text.startsWith('confirm'))).toEqual([])
})

test('AZ3 a cluster without the service does not exist for a caller who may read the service alone', async () => {
  for (const part of ['history', 'why'])
    for (const cluster of ['cluster-a', 'cluster-z'])
      expect([part, cluster, (await get('shop', `/projects/shop/services/elsewhere/${part}?cluster=${cluster}`)).status]).toEqual([
        ...[part, cluster, 404],
      ])
  expect((await get('shop', '/projects/shop/services/elsewhere/why?cluster=cluster-b')).status).toBe(200)
  const suspend = async (cluster: string) => {
    const order = { project: 'shop', services: ['elsewhere'], clusters: [cluster], reason: 'r', dryRun: true }
    const { status, body } = await admin.call('POST', `${API}/suspend`, order, as['owner'])
    return [status, (body as { detail?: string }).detail]
  }
  const missing = (cluster: string) => [404, `cluster ${cluster} does not exist`]
  expect([await suspend('cluster-a'), await suspend('cluster-z')]).toEqual([missing('cluster-a'), missing('cluster-z')])
  expect((await suspend('cluster-b'))[0]).toBe(200)
})

test('AZ2 a binding for clusters reads and acts only there', async () => {
  const clusters = async (path: string) => [...new Set((await get('prod', path)).body.items.map(({ cluster }) => cluster))]
  expect(await clusters('/placements')).toEqual(['cluster-a'])
  expect(await clusters('/objects')).toEqual(['cluster-a'])
  expect((await get('prod', '/clusters')).text).not.toContain('cluster-b')
  expect([(await get('prod', '/clusters/cluster-a')).status, (await get('prod', '/clusters/cluster-b')).status]).toEqual([200, 404])
  const suspend = async (order: object) =>
    (await admin.call('POST', `${API}/suspend`, { ...order, reason: 'r', dryRun: true }, as['prod'])).status
  expect(await suspend({ project: 'shop', services: ['web'], clusters: ['cluster-a'] })).toBe(200)
  expect(await suspend({ clusters: ['cluster-a'] })).toBe(200)
  expect(await suspend({ project: 'shop', services: ['web'], clusters: ['cluster-b'] })).toBeGreaterThanOrEqual(403)
  expect(await suspend({ project: 'shop', services: ['web'] })).toBe(403)
  expect(await suspend({ all: true })).toBe(403)
  expect(await suspend({ clusters: ['cluster-b'] })).toBe(404)
})

test('AZ4 a binding for clusters names no other cluster of a service', async () => {
  const dependencies = await get('prod', '/projects/hidden/services/hidden-web/dependencies')
  expect(dependencies.body).toMatchObject({ dependsOn: [{ absent: { count: 1, names: ['cluster-a'] } }] })
  const removal = await get('prod', '/projects/shop/services/web/removal')
  expect(removal.body.items).toMatchObject([{ clusters: { count: 1, first: ['cluster-a'] } }])
})

test('AZ4 a binding for clusters shows a service by these clusters, and changes of these clusters only', async () => {
  for (const path of ['/services', '/projects/shop/services/web', '/projects/hidden/services/hidden-web']) {
    const { status, text } = await get('prod', path)
    expect([path, status, /cluster-b|2 clusters/.exec(text)]).toEqual([path, 200, null])
  }
  const { status } = (await get('prod', '/projects/shop/services/web')).body as unknown as { status: object }
  expect(status).toMatchObject({ sync: 'OutOfSync', health: 'Degraded', clusters: { total: 1, offline: 1 } })
  const changes = await get('prod', '/changes?after=0&limit=500')
  expect([changes.text.includes(idOfB), changes.text.includes('cluster-b')]).toEqual([false, false])
  const own = new Set(changes.body.items.flatMap(({ topic, keys }) => (keys === null ? [] : [topic])))
  expect([...own].toSorted()).toEqual(['confirmation', 'desired', 'status'])
  expect(changes.body.items.map(({ topic }) => topic)).toContain('cluster')
})

test('AZ11 a service that is in none of the clusters of a binding does not exist for its caller', async () => {
  const path = '/projects/shop/services/elsewhere'
  for (const part of ['', '/clusters', '/revisions', '/why', '/removal', '/sync', '/dependencies', '/history?cluster=cluster-a'])
    expect([part, (await get('prod', `${path}${part}`)).status, (await get('shop', `${path}${part}`)).status === 404]).toEqual([
      ...[part, 404],
      part === '/sync' || part.startsWith('/history'), // the test has no plans, and this caller may not read cluster-a
    ])
  const sync = await admin.call('POST', `${API}${path}/sync`, { digest: 'a'.repeat(64), clusters: ['cluster-a'] }, as['prod'])
  expect(sync.status).toBe(404)
  const order = { project: 'shop', services: ['elsewhere'], clusters: ['cluster-a'], reason: 'r', dryRun: true }
  expect((await admin.call('POST', `${API}/suspend`, order, as['prod'])).status).toBe(404)
  for (const list of ['/services', '/services?limit=1', '/changes?after=0&limit=500', '/events', '/placements', '/objects'])
    expect([list, (await get('prod', list)).text.includes('elsewhere')]).toEqual([list, false])
  expect((await get('prod', '/services')).body.items).toHaveLength(2)
  const pages = []
  for (let next: unknown = ''; next !== null; ) {
    const { body } = await get('prod', `/services?limit=1&continue=${next}`)
    pages.push(...body.items)
    next = (body as unknown as { continue: string | null }).continue
  }
  expect(pages).toHaveLength(2)
  const sql = 'select name, error, error_message from services order by name'
  const rows = async (who?: string) =>
    ((await admin.call('POST', `${API}/query`, { sql }, who === undefined ? undefined : as[who])).body as { rows: unknown[][] }).rows
  expect([(await rows('prod')).length, (await rows()).length]).toEqual([2, 3])
})

test('AZ11 a render error names no cluster outside of a binding for clusters, and targets neither', async () => {
  const message = 'in 2 of 2 clusters (cluster-a, cluster-b): at cluster-a, among others'
  const group = { code: 'render_failed', without: [], moreWithout: 0 }
  const error = {
    ...{ code: 'render_failed', message, sinceMs: 1, problems: [{ path: 'x', message: 'at cluster-b' }] },
    failing: [
      { ...group, message: 'at cluster-a', keeping: ['cluster-a'] },
      { ...group, message: 'at cluster-b', keeping: ['cluster-b'] },
    ],
  }
  const state = { commit: 'c0ffee00', generation: 1, digest: 'd1', objectCount: 1, renderedMs: 1, error }
  await admin.store.setRenderState({ project: 'shop', service: 'web' }, state)
  const web = '/projects/shop/services/web'
  for (const path of [
    web,
    `${web}/why`,
    `${web}/clusters`,
    '/services',
    '/placements',
    '/clusters',
    '/clusters/cluster-a',
    '/notifications',
  ])
    expect([path, (await get('prod', path)).text.includes('cluster-b')]).toEqual([path, false])
  expect((await get('prod', web)).text).toContain('at cluster-a')
  const sql = { sql: 'select error_message from services where error_message is not null' }
  expect((await admin.call('POST', `${API}/query`, sql, as['prod'])).body).toMatchObject({ rows: [] })
  expect((await admin.call('POST', `${API}/query`, sql)).body).toMatchObject({ rows: [[message]] })
  await admin.store.setRenderState({ project: 'shop', service: 'web' }, { ...state, error: null })
})

test('AZ11 a service that was deleted has no name in the changes of a binding for clusters', async () => {
  const { body } = await get('shop', '/changes')
  const from = (body as unknown as { newest: number }).newest
  await admin.store.deleteResource({ kind: 'Service', project: 'shop', name: 'elsewhere' })
  const names = async (who: string) => (await get(who, `/changes?after=${from}`)).body.items.map(({ project, name }) => [project, name])
  expect([await names('shop'), await names('prod')]).toEqual([[['shop', 'Service/elsewhere']], [[null, 'Service/*']]])
})

test('AZ4 a binding for clusters lists what waits for a person in these clusters', async () => {
  const asked = { kind: 'prune', project: 'shop', service: 'web', token: 't', why: 'w', createdMs: 2 } as const
  const opened = []
  for (const letter of ['a', 'b'])
    opened.push(await admin.store.openConfirmation({ ...asked, subject: `prune/${letter}`, cluster: `cluster-${letter}`, names: [letter] }))
  const listed = (await get('prod', '/confirmations')).body.items
  expect(listed.map(({ cluster }) => cluster)).toEqual(['cluster-a'])
  expect((await get('prod', '/confirmations?limit=1')).body.items).toHaveLength(1)
  for (const { subject } of opened) await admin.store.closeConfirmation(subject)
})

test('AZ4 a binding for clusters lists events of services in these clusters', async () => {
  for (const path of ['/events', '/events?after=0']) {
    const { items } = (await get('prod', path)).body
    expect([...new Set(items.map(({ cluster, service }) => `${cluster} ${service}`))].toSorted()).toEqual([
      'cluster-a hidden-web',
      'cluster-a web',
    ])
  }
  expect((await get('prod', '/events?cluster=cluster-b')).body.items).toEqual([])
})

test('AZ4 SC2 values of a site are shown with the services that name their keys', async () => {
  const [site, hiddenSite] = [{ keys: ['color', 'size'] }, { keys: ['hidden-key'] }].map((one) => ({
    namespace: 'infra',
    name: 'site',
    ...one,
  }))
  const of = async (project: string, name: string, siteConfig: object) => {
    const key = { kind: 'Service', project, name } as const
    const held = await admin.store.getResource(key)
    const spec = JSON.stringify({ ...JSON.parse(held?.spec ?? '{}'), siteConfig })
    await admin.store.applyResource(key, { labels: {}, spec, nowMs: 5 })
  }
  await of('shop', 'web', site ?? {})
  await of('hidden', 'hidden-web', hiddenSite ?? {})
  const map = { values: { color: 'green', 'hidden-key': 'hidden' }, absent: ['size'], refused: {}, problem: null }
  const maps = { 'infra/site': map, 'hidden/other': { ...map, values: { a: 'hidden' } } }
  const clusterA = (await admin.store.clusterByName('cluster-a'))?.clusterId
  if (clusterA === undefined) throw new Error('no cluster')
  await admin.store.upsertStatus(clusterA, [{ kind: 'site', key: 'cluster', rev: 90, doc: { maps } }], { complete: false, nowMs: 6 })
  const shown = async (who?: string) => {
    const { body } = await admin.call('GET', `${API}/clusters/cluster-a`, undefined, who === undefined ? undefined : as[who])
    return (body as unknown as { status: { site: unknown } }).status.site
  }
  expect([await shown(), await shown('labeler')]).toEqual([{ maps }, { maps: {} }])
  expect(await shown('shipper')).toEqual({ maps: { 'infra/site': { ...map, values: { color: 'green' } } } })
})

test('AZ4 the answer to a write names no service that the caller may not read', async () => {
  const cluster = { ...meta, kind: 'Cluster', metadata: { name: 'cluster-a', labels: { env: 'none' } }, spec: {} }
  const told = await admin.call('POST', `${API}/apply`, { resources: [cluster], dryRun: true }, as['labeler'])
  expect(told).toMatchObject({ status: 200, body: { moves: [{ name: 'cluster-a', leaves: { first: [] }, comes: { first: [] } }] } })
  expect(/hidden|"web"|shown/.exec(JSON.stringify(told.body))).toBeNull()
  expect((told.body as { moves: Array<{ leaves: { count: number } }> }).moves[0]?.leaves.count).toBeGreaterThan(0)
  const all = await admin.call('POST', `${API}/apply`, { resources: [cluster], dryRun: true })
  expect(JSON.stringify(all.body)).toContain('hidden-web')
})

test('AZ3 a render or a comparison is for clusters that the caller may read, or that have the service', async () => {
  const detail = async (path: string, body?: object) => {
    const { status, body: answer } = await admin.call(body === undefined ? 'GET' : 'POST', `${API}${path}`, body, as['owner'])
    return [status, (answer as { detail: string }).detail]
  }
  const service = '/projects/shop/services/web'
  for (const cluster of ['cluster-b', 'cluster-z']) {
    const missing = [404, `cluster ${cluster} does not exist`]
    expect(await detail(`${service}/render?cluster=${cluster}`)).toEqual(missing)
    expect(await detail(`${service}/diff`, { cluster })).toEqual(missing)
  }
  const [, allowed] = await detail(`${service}/render?cluster=cluster-a`)
  expect(allowed).not.toContain('cluster-a')
})
