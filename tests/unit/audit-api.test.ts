// The audit log of the admin API: every route that writes leaves exactly one entry of its caller, a write that fails
// leaves none, and a refused one leaves a denial.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createFleetActions } from '../../server/actions/fleet-actions.ts'
import type { FleetActions } from '../../server/actions/port.ts'
import type { AppDeps } from '../../server/app.ts'
import type { SessionRecord } from '../../server/fleet/records.ts'
import { actAs, actAsSystem, STRANGER } from '../../server/store/audit/caller.ts'
import type { AuditRecord } from '../../shared/model/audit.ts'
import { silentLogger } from '../../shared/runtime/logger.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { agentId, joinCluster } from '../support/store-fixtures.ts'

let admin: TestAdmin
let actions: FleetActions

beforeEach(async () => {
  const lent = new Proxy(
    {},
    {
      get:
        (_, name) =>
        (...given: unknown[]) =>
          Reflect.apply(Reflect.get(actions, name), actions, given),
    },
  )
  admin = await createTestAdmin({
    actions: lent as FleetActions,
    restore: { ...NO_RESTORE, confirm: settle },
  })
  const nothing = async () => {}
  const { store } = admin
  const real = createFleetActions({
    ...{ store, clock: { ...REAL_TIME, nowMs: () => admin.clock.nowMs }, log: silentLogger },
    content: { get: async () => null },
    shards: { removeCluster: () => {} },
    ingest: {
      ...{ repositoryChanged: nothing, clustersChanged: nothing, clusterDeleted: nothing },
      ...{ healthRulesChanged: nothing, suspensionsChanged: nothing },
      dataConfirmed: nothing,
      siteConfigsChanged: async () => {},
      statusReported: () => {},
      serviceChanged: ({ project, service: name }) =>
        actAsSystem(`service/${project}/${name}`, async () => {
          const held = await store.getResource({ kind: 'Service', project, name })
          if (held !== null && held.deletingMs !== null) await store.finishDeletion(held, held.version)
        }),
    },
    onClusterDeleted: nothing,
  })
  actions = {
    ...real,
    allowSync: async (id, { digest }, by) => {
      const asked = {
        kind: 'sync' as const,
        subject: 'sync/x',
        ...id,
        cluster: null,
        token: digest,
        names: ['ship-1'],
        why: 'asked',
        createdMs: 1,
      }
      await store.confirm((await store.openConfirmation(asked)).id, by, 2)
      return { digest, commit: 'c', clusters: ['ship-1'], already: 0 }
    },
  }
  await write('PUT', '/projects/default/repositories/apps', repositoryDoc('apps'))
  await write('PUT', '/projects/default/repositories/idle', repositoryDoc('idle'))
  await write('PUT', '/projects/default/services/web', serviceDoc('web'))
  await write('PUT', '/projects/default/configs/spare', configDoc('spare'))
  await write('PUT', '/health-rules/spare', ruleDoc('spare'))
  await write('PUT', '/projects/default/health-rules/spare', ruleDoc('spare', 'default'))
  await joinCluster(store, '1')
})
afterEach(() => admin.store.close())

const settle = async () => {
  await admin.store.settleRestore(1)
  return { clusters: 0, marked: 0 }
}
/** For recipes whose paths have no parameters. */
const first = (work: () => Promise<unknown>) => async () => {
  await work()
  return {}
}
const REAL_TIME = { monotonicMs: () => 0, sleep: async () => {} }
const NO_RESTORE: AppDeps['restore'] = {
  pendingSinceMs: async () => null,
  plan: async () => ({ pending: false, sinceMs: null, token: null, clusters: [], unknownAgents: [] }),
  confirm: async () => ({ clusters: 0, marked: 0 }),
}
const HEAD = { apiVersion: 'skerry.dev/v1' }
const configDoc = (name: string, password = 'p1') => ({
  ...HEAD,
  kind: 'Config',
  metadata: { name },
  spec: { data: {}, secrets: { password } },
})
const projectDoc = (name: string) => ({ ...HEAD, kind: 'Project', metadata: { name }, spec: { sources: ['*'], destinations: [] } })
const roleDoc = (name: string) => ({
  ...{ ...HEAD, kind: 'Role', metadata: { name } },
  spec: { rules: [{ verbs: ['read'], kinds: ['Service'] }] },
})
const bindingDoc = (project: string | null) => ({
  ...{ ...HEAD, kind: 'RoleBinding', metadata: { name: 'other', ...(project === null ? {} : { project }) } },
  spec: { role: 'viewer', subjects: [{ token: 'nobody' }], ...(project === null ? { projects: ['*'] } : {}) },
})
const ruleDoc = (name: string, project?: string) => ({
  ...{ ...HEAD, kind: 'HealthRule', metadata: { name, ...(project === undefined ? {} : { project }) } },
  spec: { group: 'example.com', kind: name === 'spare' ? 'Spare' : 'Thing', healthy: { when: "object.status.phase == 'Ready'" } },
})

const notifyDoc = (kind: string, project: string | null) => ({
  ...{ ...HEAD, kind, metadata: { name: 'other', ...(project === null ? {} : { project }) } },
  spec: kind === 'NotificationSink' ? { webhook: { url: 'https://hooks.example.com/x' } } : { sinks: ['other'] },
})

const write = async (method: string, path: string, body?: unknown, headers?: Record<string, string>) => {
  const answer = await admin.call(method, `/api/v1${path}`, body, headers)
  if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
  return answer
}
const entries = async (): Promise<AuditRecord[]> => (await admin.store.audit.list({ limit: 500 })).items.toReversed()
const idOf = (body: unknown): string => (body as { id: string }).id

interface Recipe {
  path?: string
  body?: unknown
  verb: string
  kind: string
  name?: string
  fields?: string[]
  /** Makes what the route needs; answers with parameters of the path. */
  before?(): Promise<Record<string, string>>
}

const QUESTION = {
  kind: 'prune' as const,
  project: 'default',
  service: 'web',
  cluster: null,
  token: 'd',
  names: ['a'],
  why: 'w',
  createdMs: 1,
}
const RECIPES: Record<string, Recipe> = {
  'PUT /projects/:project/repositories/:name': {
    body: repositoryDoc('apps', { labels: { team: 'web' } }),
    ...{ path: '/projects/default/repositories/apps', verb: 'update', kind: 'Repository', name: 'apps', fields: ['labels.team'] },
  },
  'DELETE /projects/:project/repositories/:name': { path: '/projects/default/repositories/idle', verb: 'delete', kind: 'Repository' },
  'POST /projects/:project/repositories/:name/refresh': {
    path: '/projects/default/repositories/apps/refresh',
    verb: 'refresh',
    kind: 'Repository',
  },
  'POST /projects/:project/repositories/:name/webhook': {
    path: '/projects/default/repositories/apps/webhook',
    verb: 'webhook:create',
    kind: 'Repository',
  },
  'PUT /projects/:project/services/:name': {
    path: '/projects/default/services/new',
    body: serviceDoc('new'),
    verb: 'create',
    kind: 'Service',
  },
  'DELETE /projects/:project/services/:name': { path: '/projects/default/services/web', verb: 'delete', kind: 'Service' },
  'PUT /clusters/:name': {
    body: { ...HEAD, kind: 'Cluster', metadata: { name: 'cluster-1', labels: { env: 'prod' } }, spec: {} },
    ...{ path: '/clusters/cluster-1', verb: 'update', kind: 'Cluster', fields: ['labels.env'] },
  },
  'DELETE /clusters/:name': { path: '/clusters/cluster-1', verb: 'delete', kind: 'Cluster' },
  'PUT /projects/:project/configs/:name': {
    body: configDoc('spare', 'p2'),
    ...{ path: '/projects/default/configs/spare', verb: 'update', kind: 'Config', fields: ['spec.secrets.password'] },
  },
  'DELETE /projects/:project/configs/:name': { path: '/projects/default/configs/spare', verb: 'delete', kind: 'Config' },
  'PUT /health-rules/:name': { path: '/health-rules/other', body: ruleDoc('other'), verb: 'create', kind: 'HealthRule' },
  'DELETE /health-rules/:name': { path: '/health-rules/spare', verb: 'delete', kind: 'HealthRule' },
  'PUT /projects/:project/health-rules/:name': {
    path: '/projects/default/health-rules/other',
    ...{ body: ruleDoc('other', 'default'), verb: 'create', kind: 'HealthRule' },
  },
  'DELETE /projects/:project/health-rules/:name': { path: '/projects/default/health-rules/spare', verb: 'delete', kind: 'HealthRule' },
  'PUT /projects/:project': { path: '/projects/team', body: projectDoc('team'), verb: 'create', kind: 'Project', name: 'team' },
  'DELETE /projects/:project': {
    ...{ path: '/projects/team', verb: 'delete', kind: 'Project' },
    before: first(() => write('PUT', '/projects/team', projectDoc('team'))),
  },
  'PUT /roles/:name': { path: '/roles/other', body: roleDoc('other'), verb: 'create', kind: 'Role' },
  'DELETE /roles/:name': {
    ...{ path: '/roles/other', verb: 'delete', kind: 'Role' },
    before: first(() => write('PUT', '/roles/other', roleDoc('other'))),
  },
  'PUT /role-bindings/:name': { path: '/role-bindings/other', body: bindingDoc(null), verb: 'create', kind: 'RoleBinding' },
  'DELETE /role-bindings/:name': {
    ...{ path: '/role-bindings/other', verb: 'delete', kind: 'RoleBinding' },
    before: first(() => write('PUT', '/role-bindings/other', bindingDoc(null))),
  },
  'PUT /projects/:project/role-bindings/:name': {
    ...{ path: '/projects/default/role-bindings/other', body: bindingDoc('default'), verb: 'create', kind: 'RoleBinding' },
  },
  'DELETE /projects/:project/role-bindings/:name': {
    ...{ path: '/projects/default/role-bindings/other', verb: 'delete', kind: 'RoleBinding' },
    before: first(() => write('PUT', '/projects/default/role-bindings/other', bindingDoc('default'))),
  },
  ...Object.fromEntries(
    (['NotificationSink', 'NotificationRoute'] as const).flatMap((kind) => {
      const segment = kind === 'NotificationSink' ? 'notification-sinks' : 'notification-routes'
      return [null, 'default'].flatMap((project): Array<[string, Recipe]> => {
        const at = project === null ? '' : '/projects/default'
        const route = project === null ? '' : '/projects/:project'
        const body = notifyDoc(kind, project)
        const written = first(() => write('PUT', `${at}/${segment}/other`, body))
        return [
          [`PUT ${route}/${segment}/:name`, { path: `${at}/${segment}/other`, body, verb: 'create', kind }],
          [`DELETE ${route}/${segment}/:name`, { path: `${at}/${segment}/other`, verb: 'delete', kind, before: written }],
          ...(kind === 'NotificationRoute'
            ? []
            : [
                [
                  `POST ${route}/${segment}/:name/test`,
                  { path: `${at}/${segment}/other/test`, verb: 'notify:test', kind, before: written },
                ] satisfies [string, Recipe],
              ]),
        ]
      })
    }),
  ),
  'POST /notifications/:id/retry': {
    ...{ path: '/notifications/:id/retry', verb: 'notify:retry', kind: 'NotificationSink' },
    before: async () => {
      const doc = { type: 'commit', project: 'default', service: 'web', sha: 'c', state: 'pending', description: '' } as const
      const times = { nextMs: null, createdMs: 1, updatedMs: 1, sentMs: null, triedMs: 0 }
      const created = {
        project: 'default',
        route: '',
        sink: 'other',
        groupKey: 'k',
        state: 'dead',
        version: 1,
        sentVersion: 0,
        attempts: 1,
      } as const
      const ids = await admin.store.notifications.plan({ created: [{ ...created, ...times, error: 'x', ref: null, doc }], changed: [] })
      return { id: String(ids?.[0]) }
    },
  },
  'PUT /saved-queries/:name': { path: '/saved-queries/one', body: { sql: 'select 1' }, verb: 'create', kind: 'SavedQuery', name: 'one' },
  'DELETE /saved-queries/:name': {
    ...{ path: '/saved-queries/one', verb: 'delete', kind: 'SavedQuery', name: 'one' },
    before: first(() => write('PUT', '/saved-queries/one', { sql: 'select 1' })),
  },
  'POST /apply': { path: '/apply', body: { resources: [serviceDoc('new')] }, verb: 'create', kind: 'Service', name: 'new' },
  'POST /confirmations/:id/confirm': {
    ...{ path: '/confirmations/:id/confirm', verb: 'confirm', kind: 'Service', name: 'web' },
    before: async () => ({ id: (await admin.store.openConfirmation({ ...QUESTION, subject: 'x' })).id }),
  },
  'POST /confirmations/:id/refuse': {
    ...{ path: '/confirmations/:id/refuse', body: { reason: 'still used' }, verb: 'refuse', kind: 'Service', name: 'web' },
    before: async () => ({ id: (await admin.store.openConfirmation({ ...QUESTION, subject: 'x' })).id }),
  },
  'POST /projects/:project/services/:name/sync': {
    ...{ path: '/projects/default/services/web/sync', body: { digest: 'd'.repeat(32) }, verb: 'sync', kind: 'Service', name: 'web' },
  },
  'POST /projects/:project/delete-services': {
    ...{ path: '/projects/default/delete-services', body: { names: ['web'] }, verb: 'delete', kind: 'Service', name: 'web' },
  },
  'POST /suspend': { path: '/suspend', body: { services: ['web'], reason: 'incident 7' }, verb: 'create', kind: 'Suspension' },
  'POST /resume': {
    ...{ path: '/resume', body: { services: ['web'], reason: 'incident 7' }, verb: 'delete', kind: 'Suspension' },
    before: first(() => write('POST', '/suspend', { services: ['web'], reason: 'x' })),
  },
  'POST /join-tokens': { path: '/join-tokens', body: {}, verb: 'create', kind: 'JoinToken' },
  'DELETE /join-tokens/:id': {
    ...{ path: '/join-tokens/:id', verb: 'delete', kind: 'JoinToken' },
    before: async () => ({ id: idOf((await write('POST', '/join-tokens', {})).body) }),
  },
  'POST /tokens': { path: '/tokens', body: { name: 'ci' }, verb: 'create', kind: 'ApiToken' },
  'DELETE /tokens/:id': {
    ...{ path: '/tokens/:id', verb: 'revoke', kind: 'ApiToken' },
    before: async () => ({ id: idOf((await write('POST', '/tokens', { name: 'ci' })).body) }),
  },
  'POST /token/exchange': { path: '/token/exchange', verb: 'exchange', kind: 'ApiToken' },
  'POST /server-keys/rotate': { path: '/server-keys/rotate', verb: 'rotate', kind: 'ServerKey' },
  'POST /server-keys/revoke': {
    ...{ path: '/server-keys/revoke', verb: 'revoke', kind: 'ServerKey' },
    before: first(async () => {
      await admin.store.deleteJoinToken('for-1-0') // it would be deleted with the keys of its time
      await write('POST', '/server-keys/rotate')
    }),
  },
  'POST /server-keys/rotate-mac': { path: '/server-keys/rotate-mac', verb: 'rotate', kind: 'ServerKey' },
  'POST /server-keys/rotate-secrets': { path: '/server-keys/rotate-secrets', verb: 'rotate', kind: 'ServerKey' },
  'POST /agents/:id/rotate-recipient': { path: `/agents/${agentId('1')}/rotate-recipient`, verb: 'rotate', kind: 'Agent' },
  'POST /secrets/rotate-key': { path: '/secrets/rotate-key', verb: 'rotate', kind: 'ServerKey' },
  'POST /secrets/seal': { path: '/secrets/seal', body: {}, verb: 'seal', kind: 'ServerKey' },
  'POST /sign-in-links': { path: '/sign-in-links', verb: 'create', kind: 'SignInLink' },
  'POST /restore/confirm': { path: '/restore/confirm', body: { token: 't'.repeat(16) }, verb: 'confirm-restore', kind: 'FleetStore' },
}

/** Their entries are those of `store-sessions.ts`, below. */
const NEED_SIGN_IN = ['DELETE /sessions/:id']
/** They take a body and change nothing. */
const ONLY_READ = ['POST /projects/:project/services/:name/diff', 'POST /query']
/** A question has its own entries (tests of the asking channel). */
const ELSEWHERE = ['POST /clusters/:name/ask']

test('AU1 every route that writes has a recipe here', () => {
  const writing = admin.app.routes.filter(({ method }) => method !== 'GET' && method !== 'HEAD')
  const known = writing.map(({ method, path }) => `${method} ${path.slice('/api/v1'.length)}`).sort()
  expect(known).toEqual([...Object.keys(RECIPES), ...NEED_SIGN_IN, ...ONLY_READ, ...ELSEWHERE].sort())
})

test.each(Object.entries(RECIPES))('AU1 %s leaves one entry of its caller, with the reason and the request', async (route, recipe) => {
  const params = (await recipe.before?.()) ?? {}
  const path = Object.entries(params).reduce((at, [name, value]) => at.replace(`:${name}`, value), recipe.path ?? '')
  const last = (await entries()).at(-1)?.seq ?? 0
  const [method = ''] = route.split(' ')
  const headers = { 'x-skerry-reason': encodeURIComponent('incident 7'), 'x-request-id': 'req-7' }
  const answer = await write(method, path, recipe.body, headers)
  expect(answer.headers.get('x-request-id')).toBe('req-7')
  const written = (await entries()).filter(({ seq }) => seq > last)
  const own = written.filter(({ actor }) => actor.kind !== 'system')
  const { verb, kind, name, fields } = recipe
  expect(own).toMatchObject([
    {
      ...{ verb, kind, reason: 'incident 7', requestId: 'req-7', actor: { kind: 'token', name: 'admin', verified: true } },
      result: kind === 'ServerKey' ? 'started' : 'done',
      ...(name === undefined ? {} : { name }),
      ...(fields === undefined ? {} : { fields }),
    },
  ])
  for (const { requestId, cause } of written.filter((entry) => !own.includes(entry))) {
    expect(requestId).toBe('req-7')
    expect(cause).toBeTruthy()
  }
  expect(JSON.stringify(written)).not.toMatch(/"p[12]"|sk_/)
})

test('AU1 a write that fails leaves no entry', async () => {
  const last = (await entries()).at(-1)?.seq
  const path = '/api/v1/projects/default/repositories/apps'
  expect(await admin.call('PUT', path, repositoryDoc('apps', { labels: { a: 'b' } }), { 'if-match': '"999"' })).toMatchObject({
    status: 412,
  })
  expect(await admin.call('PUT', path, { kind: 'Repository' })).toMatchObject({ status: 422 })
  expect(await admin.call('DELETE', path)).toMatchObject({ status: 409 })
  expect(await admin.call('POST', '/api/v1/apply', { resources: [serviceDoc('new')], dryRun: true })).toMatchObject({ status: 200 })
  expect((await entries()).at(-1)?.seq).toBe(last)
})

test('AU2 a request without the right, and one without a credential, leave a denial; equal ones are counted', async () => {
  const { token } = (await write('POST', '/tokens', { name: 'reader', role: 'viewer' })).body as { token: string }
  const last = (await entries()).at(-1)?.seq ?? 0
  const path = '/projects/default/services/web'
  for (let times = 0; times < 4; times++)
    expect(await admin.call('DELETE', `/api/v1${path}`, undefined, { authorization: `Bearer ${token}` })).toMatchObject({ status: 403 })
  for (let times = 0; times < 9; times++)
    expect(await admin.call('GET', `/api/v1/services?n=${times}`, undefined, { authorization: 'Bearer nobody' })).toMatchObject({
      status: 401,
    })
  await admin.trail.flush()
  const denied = (await entries()).filter(({ seq }) => seq > last)
  expect(denied.map(({ actor, verb, result, name, count }) => [actor.kind, actor.name, verb, result, name, count])).toEqual([
    ['token', 'reader', 'delete', 'denied', 'web', undefined],
    ['stranger', 'stranger', 'GET', 'denied', '/api/v1/services', undefined],
    ['token', 'reader', 'delete', 'denied', 'web', 3],
    ['stranger', 'stranger', 'GET', 'denied', '/api/v1/services', 8],
  ])
})

const HIDDEN = '/projects/hidden/services/web'
const HIDDEN_DOC = serviceDoc('web', { project: 'hidden' })
const OWN = (name: string, spec: object) => ({ ...serviceDoc(name), spec: { ...serviceDoc(name).spec, ...spec } })
test.each([
  ['a delete of a hidden object', 'DELETE', HIDDEN, undefined, 404, ['delete Service hidden/web']],
  ['a read of a hidden object', 'GET', HIDDEN, undefined, 404, ['read Service hidden/web']],
  ['a write of a hidden object', 'PUT', HIDDEN, HIDDEN_DOC, 404, ['write Service hidden/web']],
  ['an apply to another project', 'POST', '/apply', { resources: [HIDDEN_DOC, serviceDoc('web')] }, 403, ['write Service hidden/web']],
  [
    'an apply of content that takes other rights',
    ...(['POST', '/apply'] as const),
    { resources: [OWN('a', { configFrom: [{ name: 'spare' }] }), OWN('b', { dependsOn: [{ project: 'hidden', name: 'web' }] })] },
    ...([403, ['config:use Config default/spare', 'read Service hidden/web']] as const),
  ],
  [
    'a PUT of content that takes other rights',
    ...(['PUT', '/projects/default/services/a', OWN('a', { configFrom: [{ name: 'spare' }] }), 403] as const),
    ['config:use Config default/spare'],
  ],
  ['a token with more rights', 'POST', '/tokens', { name: 'more', role: 'fleet-admin' }, 403, ['token:create ApiToken more']],
  ['a confirmation of a hidden service', 'GET', '/confirmations/:hidden', undefined, 404, ['read Service hidden/web']],
  ['the plan of its removal', 'GET', '/confirmations/:hidden/removal', undefined, 404, ['read Service hidden/web']],
  ['a hidden cluster', 'GET', '/clusters/cluster-1', undefined, 404, ['read Cluster cluster-1']],
  ['the session of another person', 'DELETE', '/sessions/s-1', undefined, 404, ['revoke Session s-1']],
] as const)('AU2 %s is a denial that names the object', async (_, method, path, body, status, denials) => {
  const kinds = ['Service', 'ApiToken']
  await write('PUT', '/projects/hidden/repositories/apps', repositoryDoc('apps', { project: 'hidden' }))
  await write('PUT', HIDDEN, HIDDEN_DOC)
  const hidden = await admin.store.openConfirmation({ ...QUESTION, project: 'hidden', subject: 'y' })
  const rules = [{ verbs: ['read', 'write', 'delete', 'token:create'], kinds }]
  await write('PUT', '/roles/writer', { ...roleDoc('writer'), spec: { rules } })
  const give = { role: 'writer', subjects: [{ token: 'writer' }], projects: ['default'] }
  await write('PUT', '/role-bindings/writer', { ...bindingDoc(null), metadata: { name: 'writer' }, spec: give })
  const makers = { ...give, role: 'makers', projects: ['*'] }
  await write('PUT', '/roles/makers', { ...roleDoc('makers'), spec: { rules: [{ verbs: ['token:create'], kinds: ['ApiToken'] }] } })
  await write('PUT', '/role-bindings/makers', { ...bindingDoc(null), metadata: { name: 'makers' }, spec: makers })
  const { token } = (await write('POST', '/tokens', { name: 'writer', role: 'none' })).body as { token: string }
  const last = (await entries()).at(-1)?.seq ?? 0
  const address = `/api/v1${path.replace(':hidden', hidden.id)}`
  const answer = await admin.call(method, address, body, { authorization: `Bearer ${token}` })
  expect([answer.status, answer.body]).toEqual([status, expect.anything()])
  const written = (await entries()).filter(({ seq }) => seq > last)
  const placeOf = ({ project, name }: AuditRecord) => (project === undefined ? name : `${project}/${name}`)
  expect(written.map((entry) => `${entry.verb} ${entry.kind} ${placeOf(entry)}`)).toEqual([...denials])
  for (const { actor, result } of written) expect([actor.name, result]).toEqual(['writer', 'denied'])
})

test('AU1 tokens and sessions that expire leave an entry of the server', async () => {
  const { id } = (await write('POST', '/tokens', { name: 'short', expires: '1h' })).body as { id: string }
  await admin.store.createSession(SESSION)
  await admin.store.deleteExpiredSessions(SESSION.expiresMs)
  admin.clock.nowMs += 3_600_000
  await write('POST', '/tokens', { name: 'ci' })
  const expired = (await entries()).filter(({ verb }) => verb === 'expire')
  expect(expired.map(({ kind, name, actor }) => [kind, name, actor.kind])).toEqual([
    ['Session', 's-1', 'system'],
    ['ApiToken', id, 'system'],
  ])
})

test('AU6 only a caller with audit:read reads the log, by page and filter', async () => {
  const { token } = (await write('POST', '/tokens', { name: 'reader', role: 'viewer' })).body as { token: string }
  for (const path of ['/audit', '/audit/state', '/audit/entries'])
    expect(await admin.call('GET', `/api/v1${path}`, undefined, { authorization: `Bearer ${token}` })).toMatchObject({ status: 403 })
  const verbs = (body: unknown) => (body as { items: AuditRecord[] }).items.map(({ verb, name }) => `${verb} ${name}`)
  expect(verbs((await write('GET', '/audit?kind=Repository&verb=create')).body)).toEqual(['create idle', 'create apps'])
  const first = await write('GET', '/audit?limit=2&kind=Repository')
  expect(verbs(first.body)).toEqual(['create idle', 'create apps'])
  expect(await admin.call('GET', '/api/v1/audit?since=soon')).toMatchObject({ status: 400 })
  expect(await admin.call('GET', '/api/v1/audit?continue=bm9uZQ')).toMatchObject({ status: 400 })
})

test('AU7 a request id that could break a log line is replaced, and a reason that cannot be read is refused', async () => {
  const call = (headers: Record<string, string>) => admin.call('GET', '/api/v1/whoami', undefined, headers)
  expect((await call({ 'x-request-id': 'a b' })).headers.get('x-request-id')).toMatch(/^req_[0-9a-f-]{36}$/)
  expect((await call({ 'x-request-id': 'req_mine' })).headers.get('x-request-id')).toMatch(/^req_[0-9a-f-]{36}$/)
  expect((await call({ 'x-request-id': 'a'.repeat(65) })).headers.get('x-request-id')).toMatch(/^req_[0-9a-f-]{36}$/)
  expect(await call({ 'x-skerry-reason': '%E0%A4%A' })).toMatchObject({ status: 400, body: { code: 'bad_request' } })
  expect(await call({ 'x-skerry-reason': 'x'.repeat(501) })).toMatchObject({ status: 400 })
})

test('AU1 a session leaves an entry of the person when it begins, and one of the caller when it is revoked', async () => {
  const { store } = admin
  await actAs(STRANGER, { from: '192.0.2.7', requestId: 'req-8' }, () => store.createSession(SESSION))
  const ada = { kind: 'user', id: 'sub-ada', name: 'ada', provider: 'dex', verified: true } as const
  await actAs({ ...ada, name: 'bob' }, { reason: 'left' }, () => store.deleteSession('s-1', { verb: 'revoke' }))
  const [began, ended] = (await entries()).slice(-2)
  expect(began).toMatchObject({ verb: 'sign-in', kind: 'Session', name: 's-1', actor: ada, from: '192.0.2.7', requestId: 'req-8' })
  expect(ended).toMatchObject({ verb: 'revoke', kind: 'Session', name: 's-1', actor: { name: 'bob' }, reason: 'left' })
})

const SESSION: SessionRecord = {
  ...{ id: 's-1', kind: 'cli', provider: 'dex', subject: 'sub-ada', name: 'ada', email: null, groups: [], accessHash: 'h' },
  ...{ accessExpiresMs: 9, refreshHash: null, earlierRefreshHash: null, rotatedMs: 1, createdMs: 1, expiresMs: 9, checkedMs: 1 },
  ...{ lastUsedMs: 1, lastUsedFrom: '192.0.2.7', sealed: null },
}
