// Projects by the API and the command line: written, shown, enforced when resources of theirs are written, narrowed,
// and deleted.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createTestAdmin, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'
import { joinCluster } from '../support/store-fixtures.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
})
afterEach(() => admin.store.close())

const head = { apiVersion: 'skerry.dev/v1' }
const WEB = { sources: ['https://git.example.com/web/*'], destinations: [{ namespaces: ['web-*'] }] }
const project = (spec: object = WEB, name = 'web') => ({ ...head, kind: 'Project', metadata: { name }, spec })
const repository = (url: string, name = 'apps') => ({
  ...head,
  kind: 'Repository',
  metadata: { name, project: 'web' },
  spec: { git: { url } },
})
const GOOD = repository('https://git.example.com/web/apps.git')
const service = (spec: object = {}, name = 'shop') => ({
  ...{ ...head, kind: 'Service', metadata: { name, project: 'web' } },
  spec: { source: { repository: 'apps', path: 'shop' }, namespace: 'web-1', targets: { selector: {} }, ...spec },
})
const apply = (...resources: unknown[]) => admin.call('POST', '/api/v1/apply', { resources })
const problemsOf = async (...resources: unknown[]) => {
  const { status, body } = await apply(...resources)
  expect(status).toBe(422)
  return (body as { problems: Array<{ path: string; message: string }> }).problems
}

test('PJ1 a Project is written, listed, shown with its rules, and deleted once it has no services', async () => {
  expect((await apply(project(), GOOD, service())).status).toBe(200)
  expect((await admin.call('GET', '/api/v1/projects/web')).body).toMatchObject({ status: { services: 1, violations: [] }, spec: WEB })
  expect((await admin.call('GET', '/api/v1/projects')).body).toMatchObject({ items: [{ metadata: { name: 'web' } }] })
  expect((await runTestCli(admin, ['get', 'projects'])).out).toContain('web-*')
  expect((await runTestCli(admin, ['describe', 'project', 'web'])).out).toContain('every cluster: web-*')
  const refused = await admin.call('DELETE', '/api/v1/projects/web')
  expect([refused.status, refused.body]).toEqual([409, expect.objectContaining({ code: 'in_use' })])
  await admin.store.deleteResource({ kind: 'Service', project: 'web', name: 'shop' })
  expect((await admin.call('DELETE', '/api/v1/projects/web')).status).toBe(200)
  expect((await admin.call('GET', '/api/v1/projects/web')).status).toBe(404)
})

test('PJ1 a project without a Project resource has no boundary', async () => {
  expect((await apply(repository('https://evil.com/x'), service({ namespace: 'kube-system' }))).status).toBe(200)
})

test.each<[what: string, resource: unknown, path: string, rule: string]>([
  ['an address elsewhere', repository('https://evil.com/web/apps'), 'spec.git.url', 'sources'],
  ['an address with encoded dots', repository('https://git.example.com/web/%2e%2e/x'), 'spec.git.url', 'sources'],
  ['a port', repository('https://git.example.com:8443/web/x'), 'spec.git.url', 'sources'],
  ['another namespace', service({ namespace: 'kube-system' }), 'spec.namespace', 'destinations'],
  [
    "somebody else's ServiceAccount",
    service({ sync: { serviceAccount: 'kube-system/admin' } }),
    'spec.sync.serviceAccount',
    'serviceAccounts',
  ],
  ['labels of the namespace', service({ sync: { namespaceLabels: { a: 'b' } } }), 'spec.sync.namespaceLabels', 'clusterScopedKinds'],
  [
    'hosts of a Config',
    { ...head, kind: 'Config', metadata: { name: 'c', project: 'web' }, spec: { hosts: ['evil.com'] } },
    'spec.hosts[0]',
    'sources',
  ],
])('PJ2 to PJ6 %s is refused by the rule, the value and what is allowed', async (_, resource, path, rule) => {
  expect((await apply(project(), GOOD)).status).toBe(200)
  const [problem] = await problemsOf(resource)
  expect(problem).toMatchObject({ path: `resources[0].${path}` })
  expect(problem?.message).toEqual(naming('project web', `rule ${rule}:`))
  expect(problem?.message).toContain('(allowed: ')
  const { kind, metadata } = resource as { kind: string; metadata: { name: string } }
  const plural = { Repository: 'repositories', Service: 'services', Config: 'configs' }[kind]
  expect((await admin.call('PUT', `/api/v1/projects/web/${plural}/${metadata.name}`, resource)).status).toBe(422)
})

test('PJ2 a Project that comes with the request counts at once', async () => {
  const [problem] = await problemsOf(repository('https://evil.com/x'), project())
  expect(problem?.message).toContain('rule sources')
})

test('PJ5 a Project without serviceAccounts is written with a warning, unless it says that the agent is meant', async () => {
  const warning = { resource: 'project/web', message: expect.stringContaining('rights of the agent') }
  expect((await apply(project())).body).toMatchObject({ warnings: [warning] })
  expect((await admin.call('GET', '/api/v1/projects/web')).body).toMatchObject({ status: { warnings: [warning.message] } })
  expect((await runTestCli(admin, ['describe', 'project', 'web'])).out).toMatch(/Warning: +spec.serviceAccounts is not set/)
  const file = JSON.stringify(project())
  expect((await runTestCli(admin, ['apply', '-f', '-'], { stdin: file })).err).toContain('warning: project/web: spec.serviceAccounts')
  for (const serviceAccounts of ['agent', 'required', { default: 'deployer' }]) {
    expect((await apply(project({ ...WEB, serviceAccounts }))).body).not.toHaveProperty('warnings')
    expect((await admin.call('GET', '/api/v1/projects/web')).body).not.toHaveProperty('status.warnings')
  }
  await apply(project({ ...WEB, serviceAccounts: 'agent' }))
  expect((await apply(GOOD, service())).status).toBe(200)
})

test('PJ5 serviceAccounts and renderers are looked at when a service is written', async () => {
  expect((await apply(project({ ...WEB, serviceAccounts: 'required', renderers: ['raw'] }), GOOD)).status).toBe(200)
  expect((await problemsOf(service({ render: { type: 'helm' } }))).map(({ path }) => path)).toEqual([
    'resources[0].spec.sync.serviceAccount',
    'resources[0].spec.render.type',
  ])
  expect((await apply(service({ sync: { serviceAccount: 'deployer' } }))).status).toBe(200)
})

test('PJ11 a service says which of its clusters its project leaves out', async () => {
  for (const digit of ['1', '2']) await joinCluster(admin.store, digit, { env: digit })
  expect(
    (await apply(project({ ...WEB, destinations: [{ clusters: { matchLabels: { env: '1' } }, namespaces: ['web-*'] }] }), GOOD, service()))
      .status,
  ).toBe(200)
  expect((await admin.call('GET', '/api/v1/projects/web/services/shop')).body).toMatchObject({
    status: { leftOut: 1 },
  })
  expect((await runTestCli(admin, ['describe', 'service', 'shop', '-p', 'web'])).out).toEqual(naming('destination of project web'))
})

test('PJ7 quotas count services of one request together, and spare those that are there', async () => {
  expect((await apply(project({ ...WEB, quotas: { services: 2 } }), GOOD, service({}, 'a'))).status).toBe(200)
  expect((await problemsOf(service({}, 'b'), service({}, 'c'))).map(({ path }) => path)).toEqual(['resources[1].metadata.name'])
  expect((await apply(service({}, 'a'), service({}, 'b'))).status).toBe(200)
})

test('PJ7 labels of a cluster that take a project over its quota of placements are refused, without its name to strangers', async () => {
  for (const digit of ['1', '2', '3']) await joinCluster(admin.store, digit, { env: digit === '1' ? 'on' : 'off' })
  const targets = { selector: { matchLabels: { env: 'on' } } }
  const bounded = (placements: number) => project({ ...WEB, quotas: { placements } })
  expect((await apply(bounded(2), GOOD, service({ targets }, 'a'))).status).toBe(200)
  const cluster = (digit: string, env = 'on') => ({
    ...head,
    kind: 'Cluster',
    metadata: { name: `cluster-${digit}`, labels: { env } },
    spec: {},
  })
  expect(await problemsOf(cluster('2'), cluster('3'))).toMatchObject([
    { path: 'resources[0].metadata.labels', message: expect.stringContaining('project web, rule quotas.placements') },
    { path: 'resources[1].metadata.labels' },
  ])
  expect((await apply(cluster('2'))).status).toBe(200)
  const put = (body: object, token?: string) =>
    admin.call('PUT', '/api/v1/clusters/cluster-3', body, token === undefined ? {} : { authorization: `Bearer ${token}` })
  expect(await put(cluster('3'))).toMatchObject({ status: 422, body: { problems: [{ path: 'metadata.labels' }] } })
  // One leaves and another one comes.
  expect((await apply(cluster('1', 'off'), cluster('3'))).status).toBe(200)
  const rules = [{ verbs: ['read', 'write', 'cluster:label'], kinds: ['Cluster'] }]
  await apply({ ...head, kind: 'Role', metadata: { name: 'labeler' }, spec: { rules } })
  const binding = { role: 'labeler', subjects: [{ token: 'labeler' }], projects: ['*'] }
  await apply({ ...head, kind: 'RoleBinding', metadata: { name: 'labeler' }, spec: binding })
  const made = await admin.call('POST', '/api/v1/tokens', { name: 'labeler', role: 'none' })
  await apply(cluster('3', 'off'), bounded(1))
  const refused = await put(cluster('3'), (made.body as { token: string }).token)
  expect(refused).toMatchObject({ status: 422, body: { problems: [{ path: 'metadata.labels' }] } })
  expect(JSON.stringify(refused.body)).not.toContain('web')
  // An existing project above its quota keeps what it has, and other labels of a cluster are not its concern.
  await apply(bounded(0))
  expect((await apply({ ...cluster('2'), metadata: { name: 'cluster-2', labels: { env: 'on', rack: '7' } } })).status).toBe(200)
})

test('PJ8 narrowing a Project lists what it does not allow any more, and changes none of that', async () => {
  expect((await apply(project(), GOOD, service())).status).toBe(200)
  const narrow = project({ sources: ['https://git.example.com/other/*'], destinations: [{ namespaces: ['other'] }] })
  const { status, body } = await apply(narrow)
  expect([status, body]).toEqual([
    200,
    expect.objectContaining({
      violations: [
        expect.objectContaining({ resource: 'web/repository/apps', path: 'spec.git.url' }),
        expect.objectContaining({ resource: 'web/service/shop', path: 'spec.namespace' }),
      ],
    }),
  ])
  expect((await admin.call('GET', '/api/v1/projects/web')).body).toMatchObject({
    status: { violations: [{ resource: 'repository/apps' }, {}] },
  })
  expect(admin.asked.at(-1)).toContain('changed Project /web')
  expect((await admin.call('GET', '/api/v1/projects/web/services/shop')).status).toBe(200)
})
