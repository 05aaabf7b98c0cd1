// The API as a tenant attacks it: every route that reads, every document that a route takes, and what one caller may
// use up. New routes and kinds are attacked without a change here.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createCallers } from '../../server/access/callers.ts'
import type { UserSessions } from '../../server/access/oidc/user-sessions.ts'
import { tokenPrincipal } from '../../server/access/principal.ts'
import type { AppDeps } from '../../server/app.ts'
import { JSON_DEPTH_MAX } from '../../server/http/body.ts'
import { EXAMPLES } from '../../server/http/examples.ts'
import { LABELS_MAX, SELECTOR_PARTS_MAX } from '../../server/http/resource-checks.ts'
import { SCHEMAS } from '../../server/http/resource-handlers.ts'
import { actForRequest } from '../../server/store/audit/caller.ts'
import { explainIssues } from '../../shared/model/explain.ts'
import { applicableSchema, syncOptionsSchema } from '../../shared/model/resources.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { joinCluster, publishOne } from '../support/store-fixtures.ts'

const API = '/api/v1'
const meta = { apiVersion: 'skerry.dev/v1' }
let admin: TestAdmin
const as: Record<string, Record<string, string>> = {}
let confirmation = ''

/** Everything of another tenant has this word in its name. */
const HIDDEN = /hidden/i
const hiddenDoc = (kind: string, spec: object) => ({
  ...meta,
  kind,
  metadata: { name: `hidden-${kind.toLowerCase()}`, project: 'hidden' },
  spec,
})

beforeAll(async () => {
  admin = await createTestAdmin()
  const { store } = admin
  const [a, b] = [await joinCluster(store, 'a', { env: 'prod' }), await joinCluster(store, 'b', { env: 'hidden-env' })]
  const bind = (name: string, spec: object) => ({
    ...meta,
    kind: 'RoleBinding',
    metadata: { name },
    spec: { subjects: [{ token: name }], ...spec },
  })
  const hiddenService = serviceDoc('hidden-web', { project: 'hidden' }, 'hidden-repository')
  const resources = [
    ...[repositoryDoc('apps', { project: 'shop' }), serviceDoc('web', { project: 'shop' })],
    ...[hiddenDoc('Repository', { git: { url: 'https://git.hidden.example/x.git' } }), hiddenService],
    hiddenDoc('Config', { data: { host: 'db.hidden.example' }, secrets: { password: 'hidden' } }),
    hiddenDoc('HealthRule', { group: 'hidden.example', kind: 'Thing', healthy: { when: 'true' } }),
    hiddenDoc('NotificationSink', { webhook: { url: 'https://hooks.hidden.example/x' } }),
    hiddenDoc('NotificationRoute', { sinks: ['hidden-notificationsink'] }),
    hiddenDoc('RoleBinding', { role: 'viewer', subjects: [{ user: 'boss@hidden.example' }] }),
    { ...meta, kind: 'Project', metadata: { name: 'hidden' }, spec: { sources: ['*'], destinations: [{ namespaces: ['*'] }] } },
    { ...meta, kind: 'Role', metadata: { name: 'hidden-role' }, spec: { rules: [{ verbs: ['read'], kinds: ['Config'] }] } },
    ...(['viewer', 'operator', 'deployer', 'project-admin'] as const).map((role) => bind(role, { role, projects: ['shop'] })),
    bind('prefix', { role: 'project-admin', projects: ['hid'] }),
    bind('keeper', { role: 'hidden-role', projects: ['shop'] }),
  ]
  const seeded = await admin.call('POST', `${API}/apply`, { resources })
  expect([seeded.status, seeded.body]).toEqual([200, expect.anything()])
  const doc = { commit: 'c0ffee00', digest: 'd1', count: 1, sync: syncOptionsSchema.parse({}), protect: false }
  const message = 'already managed by service hidden/hidden-web'
  const state = { sync: 'OutOfSync', health: 'Degraded', reason: 'OwnedByOther', message, sinceMs: 9 }
  let rev = 0
  for (const clusterId of [a, b])
    for (const [project, service] of [
      ['shop', 'web'],
      ['hidden', 'hidden-web'],
    ] as const) {
      await publishOne(store, { clusterId, project, service, doc, setSha: null, placedBy: '' })
      await store.upsertStatus(
        clusterId,
        [
          { kind: 'service', key: `${project}/${service}`, rev: ++rev, doc: { ...state, objectCount: 1, healthyCount: 0 } },
          { kind: 'object', key: `${project}/${service}/apps/Deployment/x/${service}`, rev: ++rev, doc: state },
          {
            kind: 'event',
            key: String(rev),
            rev: ++rev,
            doc: { atMs: 3, type: 'Normal', reason: 'OwnedByOther', message, service: `${project}/${service}` },
          },
        ],
        { complete: false, nowMs: 1 },
      )
    }
  const asked = { kind: 'prune', subject: 'x', project: 'hidden', service: 'hidden-web', cluster: null, token: 't', why: 'hidden' } as const
  confirmation = (await store.openConfirmation({ ...asked, names: ['hidden'], createdMs: 1 })).id
  await admin.call('POST', `${API}/suspend`, { project: 'hidden', services: ['hidden-web'], reason: 'hidden' })
  for (const name of ['viewer', 'operator', 'deployer', 'project-admin', 'prefix', 'keeper', 'nobody']) {
    const { body } = await admin.call('POST', `${API}/tokens`, { name, role: 'none' })
    as[name] = { authorization: `Bearer ${(body as { token: string }).token}` }
  }
})
afterAll(() => admin.store.close())

const NAMES = [
  'web',
  'hidden-web',
  'hidden',
  'cluster-b',
  'apps',
  ...['repository', 'config', 'healthrule', 'notificationsink', 'rolebinding'].map((kind) => `hidden-${kind}`),
]
const QUERIES = ['', '?limit=500&after=0', '?search=hidden', '?project=hidden', '?cluster=cluster-b', '?by=service', '?sort=name&limit=1']

test.each(['viewer', 'operator', 'deployer', 'project-admin', 'prefix', 'keeper', 'nobody'])(
  'AZ3 AZ4 no route that reads names anything of another project to the caller %s',
  async (who) => {
    let answered = 0
    for (const { method, path } of admin.app.routes) {
      if (method !== 'GET' || !path.startsWith(`${API}/`) || path.includes('openapi')) continue
      if (/profile/.test(path)) continue // it takes seconds, and the right on the server
      // Denials in the project `hid` are in its audit log, with the names that were asked for.
      const places = ['shop', 'hidden', 'hid'].flatMap((project) =>
        (project === 'hid' ? ['web'] : NAMES).map((name) => ({ project, name })),
      )
      const addresses = new Set(
        places.map(({ project, name }) => path.replace(':project', project).replace(':name', name).replace(':id', confirmation)),
      )
      for (const address of addresses)
        for (const query of path.includes(':') ? [''] : QUERIES) {
          const { status, body } = await admin.call('GET', `${address}${query}`, undefined, as[who])
          expect([address, query, status < 500]).toEqual([address, query, true])
          if (status >= 300) continue
          answered += 1
          // A position in a list is of use to nobody without the right on what is there.
          const text = JSON.stringify(body).replaceAll(/"(?:continue|next)":"[^"]*"/g, '')
          expect([address, query, HIDDEN.exec(text.replaceAll('hidden-role', ''))]).toEqual([address, query, null])
        }
    }
    expect(answered).toBeGreaterThan(who === 'nobody' ? 1 : 4)
  },
)

test('AZ3 no route that writes changes anything of another project', async () => {
  const before = (await admin.store.audit.list({ limit: 500 })).items.filter(({ result }) => result === 'done').length
  const bodies = [undefined, {}, { names: ['hidden-web'], dryRun: false }, { project: 'hidden', services: ['hidden-web'], reason: 'r' }]
  for (const who of ['project-admin', 'prefix'])
    for (const { method, path } of admin.app.routes) {
      if (['GET', 'HEAD'].includes(method) || !path.startsWith(`${API}/`) || path.endsWith('/token/exchange')) continue
      for (const name of NAMES) {
        const address = path.replace(':project', 'hidden').replace(':name', name).replace(':id', confirmation)
        for (const body of bodies) {
          const { status } = await admin.call(method, address, body, as[who])
          expect([method, address, status < 500 && status !== 201 && status !== 204]).toEqual([method, address, true])
        }
      }
    }
  const after = (await admin.store.audit.list({ limit: 500 })).items.filter(({ result }) => result === 'done')
  expect(after.slice(0, after.length - before).map(({ verb, kind, project, name }) => [verb, kind, project, name])).toEqual([])
})

const WRONG = [null, '', 'x', 0, -1, true, [], [null], {}, { '': 0 }, JSON.parse('{"__proto__":{"a":1}}')]

/** The document with each of its members replaced by each wrong value, and left out. */
function* spoilt(document: unknown, replace: (value: unknown) => unknown = (value) => value): Generator<unknown> {
  for (const wrong of WRONG) yield replace(wrong)
  if (typeof document !== 'object' || document === null) return
  for (const [key, held] of Object.entries(document)) {
    if (!Array.isArray(document)) yield replace(Object.fromEntries(Object.entries(document).filter(([other]) => other !== key)))
    yield* spoilt(held, (value) =>
      replace(Array.isArray(document) ? document.with(Number(key), value) : { ...(document as object), [key]: value }),
    )
  }
}

test.each(Object.keys(SCHEMAS) as Array<keyof typeof SCHEMAS>)('AP4 a spoilt %s is refused with its places, or taken', (kind) => {
  let refused = 0
  for (const document of spoilt(EXAMPLES[kind]))
    for (const schema of [SCHEMAS[kind], applicableSchema]) {
      const { error } = schema.safeParse(document)
      if (error === undefined) continue
      refused += 1
      expect(explainIssues(schema, document, error).length).toBeGreaterThan(0)
    }
  expect(refused).toBeGreaterThan(100)
})

test('AP3 a spoilt document is no error of the server', async () => {
  for (const [kind, path] of [
    ['NotificationSink', '/projects/shop/notification-sinks/x'],
    ['NotificationRoute', '/projects/shop/notification-routes/x'],
    ['Service', '/projects/shop/services/x'],
    ['Cluster', '/clusters/cluster-a'],
  ] as const)
    for (const body of [{}, { kind }, { kind, metadata: null }, { kind, spec: 'x' }])
      expect([kind, body, (await admin.call('PUT', `${API}${path}`, body)).status]).toEqual([kind, body, 422])
})

const nested = (levels: number, open = '{"a":', close = '}') => `${open.repeat(levels)}1${close.repeat(levels)}`
test.each([
  ['mappings', nested(JSON_DEPTH_MAX - 5), 200],
  ['too many mappings', nested(JSON_DEPTH_MAX), 400],
  ['very many mappings', nested(100_000), 400],
  ['very many lists', nested(200_000, '[', ']'), 400],
  ['brackets in a text', `"${'[{'.repeat(100_000)}\\"${'['.repeat(500)}"`, 200],
])('AP32 a body that is nested too deeply is refused: %s', async (_, data, status) => {
  const config = `{"apiVersion":"skerry.dev/v1","kind":"Config","metadata":{"name":"deep","project":"shop"},"spec":{"data":{"a":${data}}}}`
  const answer = await admin.call('POST', `${API}/apply`, `{"resources":[${config}],"dryRun":true}`)
  expect([answer.status, (answer.body as { code?: string }).code]).toEqual([status, status === 200 ? undefined : 'bad_request'])
})

const many = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 'v']))
const selecting = (count: number) => ({
  matchExpressions: [{ key: 'a', operator: 'In', values: Array.from({ length: count - 2 }, (_, index) => `v${index}`) }],
  matchLabels: { b: 'c' },
})
test.each([
  ['labels', LABELS_MAX, (count: number) => serviceDoc('web', { project: 'shop', labels: many(count) }), 'metadata.labels'],
  [
    'selectors',
    SELECTOR_PARTS_MAX,
    (count: number) => {
      const doc = serviceDoc('web', { project: 'shop' })
      return { ...doc, spec: { ...doc.spec, targets: { selector: {}, exclude: [selecting(count)] } } }
    },
    'spec',
  ],
] as const)('AP32 %s of one resource are bounded', async (_, max, make, path) => {
  const put = (count: number) => admin.call('PUT', `${API}/projects/shop/services/web?dryRun=true`, make(count))
  expect((await put(max)).status).toBe(200)
  expect(await put(max + 1)).toMatchObject({ status: 422, body: { problems: [{ path }] } })
})

test('SI6 AU2 a request of another site is refused on behalf of the person whose cookie it has', async () => {
  const ada = { ...tokenPrincipal('s-1', 'ada', 'viewer'), kind: 'user', provider: 'corp', subject: 'sub' } as const
  const sessions: Pick<UserSessions, 'authenticate' | 'ended'> = {
    authenticate: async (kind, secret) => (kind === 'cookie' && secret === 'secret' ? ada : null),
    ended: () => new AbortController().signal,
  }
  const tokens = { authenticate: async () => null, ended: () => new AbortController().signal, hasExpired: () => false }
  const callers = createCallers({ tokens, sessions, url: () => 'https://skerry.example' })
  const ask = (method: string, headers: Record<string, string>) =>
    actForRequest({ requestId: 'r', from: null }, async (caller) => {
      const request = new Request('https://skerry.example/api/v1/apply', {
        method,
        headers: { cookie: '__Host-skerry=secret', ...headers },
      })
      const outcome = await callers.authenticate(request).then(
        (found) => found?.name ?? 'stranger',
        (error: { code: string }) => error.code,
      )
      return [outcome, caller.actor.name]
    })
  expect(await ask('POST', { 'sec-fetch-site': 'cross-site' })).toEqual(['cross_site', 'ada'])
  expect(await ask('POST', { origin: 'https://evil.example' })).toEqual(['cross_site', 'ada'])
  expect(await ask('POST', { origin: 'https://skerry.example' })).toEqual(['ada', 'ada'])
  expect(await ask('GET', { 'sec-fetch-site': 'cross-site' })).toEqual(['ada', 'ada'])
})

test('AK2 a log that is followed ends when the right of its reader ends', async () => {
  const log = new TransformStream<Uint8Array, Uint8Array>()
  const [source, sink] = [log.readable.getReader(), log.writable.getWriter()]
  const stream = { read: async () => (await source.read()).value ?? null, cancel: () => void source.cancel() }
  const asks = { admit: () => {}, gathered: async () => {}, ask: () => stream } as unknown as NonNullable<AppDeps['asks']>
  const site = await createTestAdmin({ asks, clock: { ...systemClock, sleep: () => new Promise(() => {}) } })
  const clusterId = await joinCluster(site.store, 'a')
  await site.store.markSeen(new Map([[clusterId, systemClock.nowMs()]]))
  const spec = { role: 'operator', subjects: [{ token: 'ops' }], projects: ['*'] }
  await site.call('PUT', `${API}/role-bindings/ops`, { ...meta, kind: 'RoleBinding', metadata: { name: 'ops' }, spec })
  const { body } = await site.call('POST', `${API}/tokens`, { name: 'ops', role: 'none' })
  const question = { kind: 'logs', ref: { group: '', kind: 'Pod', namespace: 'web', name: 'p' }, follow: true }
  const headers = { authorization: `Bearer ${(body as { token: string }).token}`, 'content-type': 'application/json' }
  const address = `http://localhost${API}/clusters/cluster-a/ask`
  const answer = await site.app.fetch(new Request(address, { method: 'POST', headers, body: JSON.stringify({ question }) }))
  const reader = answer.body?.getReader()
  const write = (text: string) => void sink.write(new TextEncoder().encode(`${text}\n`)).catch(() => {})
  const next = async () => new TextDecoder().decode((await reader?.read())?.value)
  write('before')
  expect(await next()).toBe('before\n')
  expect((await site.call('DELETE', `${API}/role-bindings/ops`)).status).toBe(200)
  write('after')
  expect(await next()).toContain('"code":"forbidden"')
  expect((await reader?.read())?.done).toBe(true)
  await site.store.close()
})
