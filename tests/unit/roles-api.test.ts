// Roles and bindings over the admin API: what they allow, who may give them, and who may ask.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { naming } from '../support/naming.ts'
import { joinCluster } from '../support/store-fixtures.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
})
afterEach(() => admin.store.close())

const API = '/api/v1'
const meta = { apiVersion: 'skerry.dev/v1' }
const role = (name: string, rules: unknown[]) => ({ ...meta, kind: 'Role', metadata: { name }, spec: { rules } })
const binding = (name: string, spec: object, project?: string) => ({
  ...{ ...meta, kind: 'RoleBinding' },
  metadata: { name, ...(project === undefined ? {} : { project }) },
  spec,
})
const apply = (resources: unknown[], headers = {}) => admin.call('POST', `${API}/apply`, { resources }, headers)
/** Headers of a new token that only bindings of its name give rights to, or that has a role of its own. */
const token = async (name: string, of = 'none', by = {}) => {
  const { status, body } = await admin.call('POST', `${API}/tokens`, { name, role: of }, by)
  return { status, headers: { authorization: `Bearer ${(body as { token: string }).token}` } }
}
/** A caller with these bindings. */
const bound = async (name: string, ...specs: object[]) => {
  for (const [index, spec] of specs.entries()) {
    const { status, body } = await apply([binding(`${name}-${index}`, { subjects: [{ token: name }], ...spec })])
    expect([status, body]).toEqual([200, expect.anything()])
  }
  return (await token(name)).headers
}
const seed = () =>
  apply([
    ...['shop', 'pay'].flatMap((project) => [
      repositoryDoc('apps', { project }),
      serviceDoc('web', { project }),
      serviceDoc('api', { project }),
    ]),
  ])
const names = (answer: { body: unknown }) =>
  (answer.body as { items: Array<{ metadata: { project?: string; name: string } }> }).items.map(
    ({ metadata }) => `${metadata.project ?? ''}/${metadata.name}`,
  )

test('AZ2 AZ8 a caller without a role or binding has no right, and a binding gives its role in its projects only, at once', async () => {
  await seed()
  const { headers } = await token('ci')
  expect((await admin.call('GET', `${API}/services`, undefined, headers)).status).toBe(403)
  await apply([binding('ci', { role: 'deployer', subjects: [{ token: 'ci' }], projects: ['shop'] })])
  expect(names(await admin.call('GET', `${API}/services`, undefined, headers))).toEqual(['shop/api', 'shop/web'])
  const put = (project: string) => admin.call('PUT', `${API}/projects/${project}/services/new`, serviceDoc('new', { project }), headers)
  expect([(await put('shop')).status, (await put('pay')).status]).toEqual([201, 404])
  await admin.call('DELETE', `${API}/role-bindings/ci`)
  expect((await put('shop')).status).toBe(404)
})

test('AZ8 a binding that was deleted gives no right, also where the store could not be read after the deletion', async () => {
  await seed()
  const headers = await bound('eve', { role: 'viewer', projects: ['shop'] })
  const list = () => admin.call('GET', `${API}/services`, undefined, headers)
  expect((await list()).status).toBe(200)
  const { listResources, deleteResource } = admin.store
  admin.store.deleteResource = async (...given) => {
    await deleteResource(...given)
    throw new Error('the connection was lost before the answer')
  }
  admin.store.listResources = async (kind, query) => {
    if (kind === 'RoleBinding') throw new Error('the store is away')
    return listResources(kind, query)
  }
  expect((await admin.call('DELETE', `${API}/role-bindings/eve-0`)).status).toBe(500)
  expect((await list()).status).toBe(500)
  Object.assign(admin.store, { listResources, deleteResource })
  expect((await list()).status).toBe(403)
})

test('AZ2 a token that is limited to projects has no right outside of them, and is no way in of a fleet admin', async () => {
  await seed()
  const { status, body } = await admin.call('POST', `${API}/tokens`, { name: 'root-shop', role: 'admin', projects: ['shop'] })
  expect([status, (body as { projects: string[] }).projects]).toEqual([201, ['shop']])
  const headers = { authorization: `Bearer ${(body as { token: string }).token}` }
  expect(names(await admin.call('GET', `${API}/services`, undefined, headers))).toEqual(['shop/api', 'shop/web'])
  expect((await admin.call('GET', `${API}/tokens`, undefined, headers)).status).toBe(403)
  expect(await admin.store.countAdminTokens(admin.clock.nowMs)).toBe(1)
  const { body: exchanged } = await admin.call('POST', `${API}/token/exchange`, undefined, headers)
  const next = { authorization: `Bearer ${(exchanged as { token: string }).token}` }
  expect((await admin.call('GET', `${API}/whoami`, undefined, next)).body).toMatchObject({ projects: ['shop'] })
})

test('AZ3 what a caller may not read does not exist for it; what it may read and not write is refused with the right', async () => {
  await seed()
  const headers = await bound('eve', { role: 'viewer', projects: ['shop'] })
  const call = (method: string, project: string, name: string, body?: unknown) =>
    admin.call(method, `${API}/projects/${project}/services/${name}`, body, headers)
  const hidden = await call('GET', 'pay', 'web')
  const absent = await call('GET', 'pay', 'nothing')
  expect([hidden.status, hidden.body]).toEqual([404, JSON.parse(JSON.stringify(absent.body).replaceAll('nothing', 'web'))])
  expect((await call('DELETE', 'pay', 'web')).status).toBe(404)
  const refused = await call('DELETE', 'shop', 'web')
  expect(refused).toMatchObject({ status: 403, body: { detail: naming('delete', 'Service web', 'project shop') } })
})

test('AZ2 a binding may be limited to services by the beginning of their names', async () => {
  await seed()
  const headers = await bound('api-team', { role: 'deployer', projects: ['shop', 'pay'], services: ['ap*'] })
  expect(names(await admin.call('GET', `${API}/services`, undefined, headers))).toEqual(['pay/api', 'shop/api'])
  expect((await admin.call('GET', `${API}/repositories`, undefined, headers)).status).toBe(403)
  expect((await admin.call('DELETE', `${API}/projects/shop/services/web`, undefined, headers)).status).toBe(404)
})

test('AZ4 apply is refused as a whole for each object that the caller may not write', async () => {
  const headers = await bound('ci', { role: 'deployer', projects: ['shop'] })
  const answer = await apply(
    [serviceDoc('web', { project: 'shop' }), serviceDoc('web', { project: 'pay' }), repositoryDoc('apps', { project: 'shop' })],
    headers,
  )
  expect(answer).toMatchObject({ status: 403, body: { problems: [{ path: 'resources[1]' }, { path: 'resources[2]' }] } })
})

test('AZ5 a join token with labels takes the right to label clusters', async () => {
  const joins = role('joins', [{ verbs: ['join-token:create'], kinds: ['JoinToken'] }])
  const labels = role('labels', [{ verbs: ['cluster:label'], kinds: ['Cluster'] }])
  expect((await apply([joins, labels])).status).toBe(200)
  const create = async (headers: object, body: object) => (await admin.call('POST', `${API}/join-tokens`, body, { ...headers })).status
  const joiner = await bound('joiner', { role: 'joins', projects: ['*'] })
  expect([await create(joiner, {}), await create(joiner, { labels: { env: 'prod' } })]).toEqual([201, 403])
  const both = await bound('both', { role: 'joins', projects: ['*'] }, { role: 'labels', projects: ['*'] })
  expect(await create(both, { labels: { env: 'prod' } })).toBe(201)
})

test('AZ5 secrets and their use are rights of their own', async () => {
  await apply([role('writer', [{ verbs: ['read', 'write'], kinds: ['Config', 'Service', 'Repository'] }])])
  const headers = await bound('writer', { role: 'writer', projects: ['shop'] })
  const config = (spec: object) => ({ ...meta, kind: 'Config', metadata: { name: 'keys', project: 'shop' }, spec })
  expect((await apply([config({ data: { a: 1 } })], headers)).status).toBe(200)
  expect(await apply([config({ secrets: { key: 'value' } })], headers)).toMatchObject({
    status: 403,
    body: { problems: [{ path: 'resources[0].spec.secrets', message: expect.stringContaining('secret:write Config keys') }] },
  })
  // Only the mark of a value is no new value.
  expect((await apply([config({ secrets: { key: 'hmac:value' } })], headers)).status).toBe(403)
  const service = serviceDoc('web', { project: 'shop' })
  const using = { ...service, spec: { ...service.spec, configFrom: [{ name: 'keys' }] } }
  expect(JSON.stringify((await apply([using], headers)).body)).toContain('config:use Config keys')
  const waiting = { ...service, spec: { ...service.spec, dependsOn: [{ name: 'ledger', project: 'pay' }] } }
  expect(JSON.stringify((await apply([waiting], headers)).body)).toEqual(naming('read', 'Service ledger', 'project pay'))
})

test('AZ6 nobody gives a right that they do not hold in all of the place', async () => {
  const lead = await bound('lead', { role: 'project-admin', projects: ['shop'] })
  const give = (of: string, project: string) =>
    admin.call(
      'PUT',
      `${API}/projects/${project}/role-bindings/new`,
      binding('new', { role: of, subjects: [{ user: 'a@b.c' }] }, project),
      lead,
    )
  expect((await give('deployer', 'shop')).status).toBe(201)
  expect((await give('project-admin', 'shop')).status).toBe(200)
  expect((await give('deployer', 'pay')).status).toBe(404)
  expect(await give('fleet-admin', 'shop')).toMatchObject({ status: 403, body: { problems: [{ path: 'spec.role' }] } })
  const whole = binding('x', { role: 'viewer', subjects: [{ user: 'a@b.c' }], projects: ['*'] })
  expect((await apply([whole], lead)).status).toBe(403)

  await apply([
    role('granter', [
      { verbs: ['write', 'read'], kinds: ['Role', 'RoleBinding'] },
      { verbs: ['token:create'], kinds: ['ApiToken'] },
    ]),
  ])
  const granter = await bound('granter', { role: 'granter', projects: ['*'] })
  const tooMuch = role('more', [
    { verbs: ['read'], kinds: ['Role'] },
    { verbs: ['secret:write'], kinds: ['Config'] },
  ])
  expect(await apply([tooMuch], granter)).toMatchObject({ status: 403, body: { problems: [{ path: 'resources[0].spec.rules[1]' }] } })
  expect(await apply([tooMuch, binding('x', { role: 'more', subjects: [{ token: 'granter' }], projects: ['*'] })], granter)).toMatchObject({
    status: 403,
  })
  expect((await apply([role('same', [{ verbs: ['read'], kinds: ['Role'] }])], granter)).status).toBe(200)
  // A token of a name has what bindings give to that name.
  expect([
    (await token('lead', 'none', granter)).status,
    (await token('x', 'viewer', granter)).status,
    (await token('y', 'none', granter)).status,
  ]).toEqual([403, 403, 201])
})

test('AZ7 a role that a binding names stays, a built-in role cannot be written, and a binding names a role that exists', async () => {
  await apply([
    role('reader', [{ verbs: ['read'], kinds: ['*'] }]),
    binding('r', { role: 'reader', subjects: [{ token: 'r' }], projects: ['*'] }),
  ])
  expect((await admin.call('DELETE', `${API}/roles/reader`)).status).toBe(409)
  expect((await apply([role('viewer', [{ verbs: ['*'], kinds: ['*'] }])])).status).toBe(422)
  expect((await apply([binding('q', { role: 'none-such', subjects: [{ token: 'r' }], projects: ['*'] })])).status).toBe(422)
  expect((await apply([binding('q', { role: 'viewer', subjects: [{ token: 'r' }] })])).status).toBe(422)
  expect(names(await admin.call('GET', `${API}/roles`))).toEqual([
    '/viewer',
    '/operator',
    '/deployer',
    '/project-admin',
    '/fleet-admin',
    '/reader',
  ])
})

test('AZ9 the last way in of a fleet admin stays', async () => {
  const [first] = await admin.store.listApiTokens()
  const revoke = () => admin.call('DELETE', `${API}/tokens/${first?.id}`)
  expect((await revoke()).status).toBe(409)
  await apply([binding('root', { role: 'fleet-admin', subjects: [{ user: 'root@example.com' }], projects: ['*'] })])
  expect((await revoke()).status).toBe(204)
})

test('AZ10 can-i names the binding that allows or what is missing; asking for others takes the right to read bindings', async () => {
  const headers = await bound('ci', { role: 'deployer', projects: ['shop'] })
  const ask = (query: string, by = {}) => admin.call('GET', `${API}/auth/can-i?${query}`, undefined, by)
  const write = 'verb=write&kind=Service&name=web&project='
  expect((await ask(`${write}shop`, headers)).body).toMatchObject({ allowed: true, by: { role: 'deployer', binding: { name: 'ci-0' } } })
  expect((await ask(`${write}pay`, headers)).body).toMatchObject({
    allowed: false,
    by: null,
    detail: naming('write', 'Service web', 'project pay'),
  })
  await apply([binding('g', { role: 'viewer', subjects: [{ group: 'corp:devs' }], projects: ['pay'] })])
  const others = `verb=read&kind=Service&name=web&project=pay&asUser=a@b.c&asGroup=corp:devs`
  expect((await ask(others)).body).toMatchObject({ allowed: true, by: { binding: { name: 'g' } } })
  expect((await ask(others, headers)).status).toBe(403)
  const who = await admin.call('GET', `${API}/auth/who-can?verb=read&kind=Service&name=web&project=pay`)
  expect((who.body as { items: Array<{ subject: string }> }).items.map(({ subject }) => subject)).toEqual([
    'group:corp:devs',
    'token:admin',
  ])
  expect((await admin.call('GET', `${API}/whoami`, undefined, headers)).body).toMatchObject({
    name: 'ci',
    kind: 'token',
    roles: [{ role: 'deployer', binding: { project: '', name: 'ci-0' }, projects: ['shop'] }],
  })
})

test('AZ6 a project admin gets no right on clusters by a binding of the own project that names clusters', async () => {
  await seed()
  await joinCluster(admin.store, 'a')
  const headers = await bound('boss', { role: 'project-admin', projects: ['shop'] })
  const everyCluster = { matchExpressions: [{ key: 'no-such-label', operator: 'DoesNotExist' }] }
  const spec = { role: 'operator', subjects: [{ token: 'boss' }], clusters: everyCluster }
  expect((await apply([binding('mine', spec, 'shop')], headers)).status).toBe(200)
  expect((await admin.call('GET', `${API}/clusters`, undefined, headers)).status).toBe(403)
  const suspended = await admin.call('POST', `${API}/suspend`, { clusters: ['cluster-a'], reason: 'r' }, headers)
  expect(suspended.status).toBe(404)
})

test('AZ4 AZ10 can-i for somebody else names no binding and no project that the caller may not read', async () => {
  const headers = await bound('boss', { role: 'project-admin', projects: ['shop'] })
  await apply([binding('secret-ops', { role: 'operator', subjects: [{ token: 'ops' }], projects: ['shop', 'secret-project'] })])
  await apply([binding('night', { role: 'viewer', subjects: [{ token: 'guard' }] }, 'shop')])
  const ask = (name: string, kind = 'Service') =>
    admin.call('GET', `${API}/auth/can-i?verb=read&kind=${kind}&name=web&project=shop&asToken=${name}`, undefined, headers)
  const hidden = await ask('ops')
  expect(hidden.body).toMatchObject({ allowed: true, by: null })
  expect(JSON.stringify(hidden.body)).not.toContain('secret')
  expect((await ask('guard')).body).toMatchObject({ allowed: true, by: { binding: { project: 'shop', name: 'night' } } })
  // Rights of others outside of projects are no business of a project.
  expect((await ask('ops', 'Server')).status).toBe(403)
})
