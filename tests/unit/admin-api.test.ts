// The admin API from request to answer, without a socket.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import { ADMIN_BODY_BYTES_MAX, APPLY_RESOURCES_MAX, LIST_LIMIT_MAX } from '../../shared/model/views.ts'
import { parseJoinToken } from '../../shared/protocol/join.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { naming } from '../support/naming.ts'
import { joinCluster, publishOne } from '../support/store-fixtures.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
})
afterEach(() => admin.store.close())

const PROBLEM = 'application/problem+json'
const apply = (...resources: unknown[]) => admin.call('POST', '/api/v1/apply', { resources })

test('AP1 every route below /api answers 401 without a credential, with a wrong one and with another scheme', async () => {
  const protectedRoutes = admin.app.routes.filter(({ path }) => path.startsWith('/api/'))
  expect(protectedRoutes.length).toBeGreaterThan(25)
  for (const { method, path } of protectedRoutes) {
    const url = `http://localhost${path.replace(/:\w+/g, 'x')}`
    for (const authorization of [undefined, `Bearer sk_${'A'.repeat(43)}`, `Basic ${admin.token}`, 'Bearer', `Bearer ${admin.token}x`]) {
      const response = await admin.app.fetch(new Request(url, { method, headers: authorization === undefined ? {} : { authorization } }))
      expect([method, path, response.status]).toEqual([method, path, 401])
      expect(response.headers.get('content-type')).toBe(PROBLEM)
      expect(await response.json()).toMatchObject({ code: 'unauthorized', status: 401 })
    }
  }
  expect(admin.asked).toEqual([])
})

test('AP1 only the probes are open', async () => {
  expect(admin.app.routes.filter(({ path }) => !path.startsWith('/api/')).map(({ path }) => path)).toEqual(['/healthz', '/readyz'])
  expect((await admin.app.fetch(new Request('http://localhost/healthz'))).status).toBe(200)
})

test.each(['x', 'hub', 'hub:8080', 'skerry.example', '[::1]:8080'])(
  'AP1 a server that is called %s has the same paths, and no others',
  async (host) => {
    const ask = async (path: string, headers: Record<string, string> = {}) =>
      (await admin.app.fetch(new Request(`http://${host}${path}`, { headers }))).status
    expect(await ask('/healthz')).toBe(200)
    expect(await ask('/api/v1/clusters')).toBe(401)
    expect(await ask('/api/v1/clusters', { authorization: `Bearer ${admin.token}` })).toBe(200)
    expect(await ask('/zz/api/v1/clusters')).toBe(404)
  },
)

test('AP3 an unknown route is a problem, below /api only for those who may ask', async () => {
  expect(await admin.call('GET', '/api/v1/nothing')).toMatchObject({ status: 404, body: { code: 'not_found' } })
  expect(await admin.call('GET', '/nothing')).toMatchObject({ status: 404, body: { code: 'not_found' } })
  expect((await admin.app.fetch(new Request('http://localhost/api/v1/nothing'))).status).toBe(401)
})

test.each(['POST /healthz', 'PUT /readyz', 'POST /x', 'POST /', 'POST /api/v1/apply'])(
  'AR4 the body of %s is not read when the path or the caller is not known',
  async (route) => {
    const [method = '', path = ''] = route.split(' ')
    let pulled = 0
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => {
      controller.enqueue(Buffer.alloc(1_024))
      if (++pulled === 3) controller.close()
    }
    const body = new ReadableStream({ pull }, { highWaterMark: 0 })
    expect((await admin.app.fetch(new Request(`http://localhost${path}`, { method, body }))).status).toBe(
      path.startsWith('/api') ? 401 : 404,
    )
    expect(pulled).toBe(0)
  },
)

test('AP3 webhooks get their requests untouched, and null is a 404', async () => {
  const seen: string[] = []
  const handler = async (request: Request) => {
    seen.push(await request.text())
    return request.url.endsWith('none') ? null : new Response('own')
  }
  const own = await createTestAdmin({ webhookHandler: handler })
  expect(await own.call('POST', '/webhooks/v1/default/site', '{not json')).toMatchObject({ status: 200, body: 'own' })
  expect(await own.call('POST', '/webhooks/v1/default/apps', 'raw')).toMatchObject({ status: 200, body: 'own' })
  expect(await own.call('POST', '/webhooks/v1/none', '')).toMatchObject({ status: 404, body: { code: 'not_found' } })
  expect(seen.slice(0, 2)).toEqual(['{not json', 'raw'])
  await own.store.close()
})

test('AP5 put takes If-Match, answers 201 then 200, and refuses an older version', async () => {
  const path = '/api/v1/projects/default/repositories/apps'
  const created = await admin.call('PUT', path, repositoryDoc('apps'))
  expect(created).toMatchObject({ status: 201, body: { kind: 'Repository', status: { ready: false, reason: 'NotFetched' } } })
  const etag = created.headers.get('etag') ?? ''
  expect(etag).toMatch(/^"\d+"$/)
  const changed = await admin.call('PUT', path, repositoryDoc('apps', { labels: { a: 'b' } }), { 'if-match': etag })
  expect(changed.status).toBe(200)
  expect(changed.headers.get('etag')).not.toBe(etag)
  expect(await admin.call('PUT', path, repositoryDoc('apps'), { 'if-match': etag })).toMatchObject({
    status: 412,
    body: { code: 'conflict' },
  })
  expect(await admin.call('PUT', path, repositoryDoc('apps'), { 'if-match': 'banana' })).toMatchObject({ status: 400 })
  expect(await admin.call('PUT', path, repositoryDoc('other'))).toMatchObject({ status: 400 })
  expect(
    await admin.call('PUT', '/api/v1/clusters/ghost', { apiVersion: 'skerry.dev/v1', kind: 'Cluster', metadata: { name: 'ghost' } }),
  ).toMatchObject({ status: 404 })
})

test('AP5 a repository that a service names cannot be deleted', async () => {
  await apply(repositoryDoc('apps'), serviceDoc('web'), serviceDoc('api'))
  const path = '/api/v1/projects/default/repositories/apps'
  expect(await admin.call('DELETE', path)).toMatchObject({
    status: 409,
    body: { code: 'in_use', detail: naming('repository apps', 'project default', 'api, web') },
  })
  await admin.store.deleteResource({ kind: 'Service', project: 'default', name: 'web' })
  await admin.store.deleteResource({ kind: 'Service', project: 'default', name: 'api' })
  expect(await admin.call('DELETE', path)).toMatchObject({ status: 200, body: { outcome: 'deleted' } })
  expect(await admin.call('DELETE', path)).toMatchObject({ status: 404 })
})

test('AP5 deleting a service is asked of the fleet, with who; the answer tells what follows', async () => {
  const path = '/api/v1/projects/default/services/web'
  admin.outcome.deleteService = { kind: 'removing', clusters: ['a', 'b'] }
  expect(await admin.call('DELETE', path)).toMatchObject({ status: 202, body: { outcome: 'removing', clusters: ['a', 'b'] } })
  admin.outcome.deleteService = { kind: 'not_found' }
  expect(await admin.call('DELETE', path)).toMatchObject({ status: 404 })
  expect(admin.asked).toEqual(['delete default/web by admin', 'delete default/web by admin'])
})

test('AP6 lists page by an opaque cursor and narrow by project and labels', async () => {
  await apply(
    repositoryDoc('apps'),
    ...['a', 'b', 'c'].map((name) => serviceDoc(name, { labels: { tier: name === 'b' ? 'x' : 'y' } })),
    serviceDoc('z', { project: 'other' }),
  )
  const names = (body: unknown) => (body as { items: { metadata: { name: string } }[] }).items.map((item) => item.metadata.name)
  const first = await admin.call('GET', '/api/v1/services?limit=2')
  expect(names(first.body)).toEqual(['a', 'b'])
  const cursor = (first.body as { continue: string }).continue
  const second = await admin.call('GET', `/api/v1/services?limit=2&continue=${cursor}`)
  expect(names(second.body)).toEqual(['c', 'z'])
  expect(second.body).toMatchObject({ continue: null })
  expect(names((await admin.call('GET', '/api/v1/services?project=default&labelSelector=tier!%3Dx')).body)).toEqual(['a', 'c'])
  expect(await admin.call('GET', '/api/v1/services?labelSelector=a%3D%3D%3Db')).toMatchObject({
    status: 400,
    body: { problems: [{ path: 'labelSelector' }] },
  })
})

test.each([
  ['limit', LIST_LIMIT_MAX, 200],
  ['limit', LIST_LIMIT_MAX + 1, 400],
  ['limit', 0, 400],
] as const)('AP6 %s=%i answers %i', async (name, value, status) => {
  const result = await admin.call('GET', `/api/v1/services?${name}=${value}&secret=hunter2`)
  expect(result.status).toBe(status)
  if (status === 400) expect(result.body).toMatchObject({ code: 'bad_request', problems: [{ path: 'query.limit' }] })
  expect(JSON.stringify(result.body)).not.toContain('hunter2')
})

test('AP6 a body at the limit is read, one byte more is refused, announced or not', async () => {
  const padded = (bytes: number) => {
    const empty = JSON.stringify({ resources: [], pad: '' })
    return JSON.stringify({ resources: [], pad: 'x'.repeat(bytes - empty.length) })
  }
  expect((await admin.call('POST', '/api/v1/apply', padded(ADMIN_BODY_BYTES_MAX))).body).toMatchObject({ code: 'bad_request' })
  expect(await admin.call('POST', '/api/v1/apply', padded(ADMIN_BODY_BYTES_MAX + 1))).toMatchObject({
    status: 413,
    body: { code: 'too_large' },
  })
  const chunk = new Uint8Array(1024 * 1024)
  let sent = 0
  const body = new ReadableStream({ pull: (controller) => (sent++ < 6 ? controller.enqueue(chunk) : controller.close()) })
  const request = new Request('http://localhost/api/v1/apply', {
    method: 'POST',
    body,
    headers: { authorization: `Bearer ${admin.token}` },
  })
  expect((await admin.app.fetch(request)).status).toBe(413)
})

test('AP6 as many resources at once as allowed, and one more', async () => {
  const many = Array.from({ length: APPLY_RESOURCES_MAX }, (_, i) => repositoryDoc(`r${i}`))
  expect(await admin.call('POST', '/api/v1/apply', { resources: many, dryRun: true })).toMatchObject({ status: 200 })
  expect(await admin.call('POST', '/api/v1/apply', { resources: [...many, repositoryDoc('r')], dryRun: true })).toMatchObject({
    status: 400,
  })
})

test('AP3 a body that is no JSON is a problem', async () => {
  expect(await admin.call('POST', '/api/v1/apply', '{"resources": [', { 'content-type': 'application/json' })).toMatchObject({
    status: 400,
    body: { code: 'bad_request' },
  })
  expect(await admin.call('POST', '/api/v1/apply')).toMatchObject({ status: 400, body: { code: 'bad_request' } })
})

test('AP7 a join token is shown once, is good for the agent to read, and only its hash is kept', async () => {
  const created = await admin.call('POST', '/api/v1/join-tokens', { uses: 3, expires: '2h', labels: { env: 'prod' } })
  expect(created).toMatchObject({
    status: 201,
    body: { state: 'usable', uses: 3, usesLeft: 3, expiresMs: 1_000_000 + 7_200_000, createdBy: 'admin' },
  })
  const { token, id } = created.body as { token: string; id: string }
  const parsed = parseJoinToken(token)
  expect(parsed?.fingerprint).toMatch(/^[0-9a-f]{32}$/)
  const listed = await admin.call('GET', '/api/v1/join-tokens')
  expect(JSON.stringify(listed.body)).not.toContain(parsed?.secret ?? 'none')
  expect(JSON.stringify(listed.body)).not.toContain('tokenHash')
  admin.clock.nowMs += 7_200_000
  expect((await admin.call('GET', '/api/v1/join-tokens')).body).toMatchObject({ items: [{ id, state: 'expired' }] })
  expect((await admin.call('DELETE', `/api/v1/join-tokens/${id}`)).status).toBe(204)
  expect((await admin.call('DELETE', `/api/v1/join-tokens/${id}`)).status).toBe(404)
  expect((await admin.call('POST', '/api/v1/join-tokens')).status).toBe(201)
  expect(await admin.call('POST', '/api/v1/join-tokens', { uses: 0 })).toMatchObject({
    status: 422,
    body: { problems: [{ path: 'uses' }] },
  })
})

test('AP8 clusters, placements, objects and events show what is known', async () => {
  const a = await joinCluster(admin.store, 'a', { env: 'prod' })
  await apply(repositoryDoc('apps'), serviceDoc('web'))
  await admin.store.markSeen(new Map([[a, 1_000_000]]))
  const sync = syncOptionsSchema.parse({})
  const point = { commit: 'c0ffee00', digest: 'd1', atMs: 5 }
  await publishOne(admin.store, {
    clusterId: a,
    project: 'default',
    service: 'web',
    doc: { commit: 'c0ffee00', digest: 'd1', count: 1, sync, protect: false },
    setSha: 'x',
    placedBy: '',
  })
  const state = { sync: 'Synced', health: 'Healthy', reason: 'Applied', message: '', sinceMs: 9 }
  await admin.store.upsertStatus(
    a,
    [
      { kind: 'service', key: 'default/web', rev: 1, doc: { ...state, received: point, applied: point, objectCount: 1, healthyCount: 1 } },
      {
        kind: 'object',
        key: 'default/web/apps/Deployment/web/web',
        rev: 2,
        doc: { ...state, health: 'Progressing', reason: 'RollingOut', message: '1 of 2' },
      },
      { kind: 'event', key: '1', rev: 3, doc: { atMs: 3, type: 'Normal', reason: 'Applied', message: 'm', service: 'default/web' } },
    ],
    { complete: false, nowMs: 1 },
  )
  expect((await admin.call('GET', '/api/v1/clusters/cluster-a')).body).toMatchObject({
    metadata: { labels: { env: 'prod' } },
    status: { liveness: { word: 'Online' }, services: { total: 1, synced: 1, healthy: 1, offline: 0 } },
  })
  expect((await admin.call('GET', '/api/v1/projects/default/services/web/clusters')).body).toMatchObject({
    items: [{ cluster: 'cluster-a', sync: 'Synced', health: 'Healthy', next: '' }],
  })
  expect((await admin.call('GET', '/api/v1/clusters/cluster-a/services')).body).toMatchObject({ items: [{ service: 'web' }] })
  expect((await admin.call('GET', '/api/v1/objects?cluster=cluster-a')).body).toMatchObject({
    items: [{ kind: 'Deployment', name: 'web', health: 'Progressing', next: naming('`kubectl describe deployment.apps web -n web`') }],
    continue: null,
  })
  expect((await admin.call('GET', '/api/v1/objects?cluster=other')).body).toMatchObject({ items: [] })
  const events = (await admin.call('GET', '/api/v1/events?service=web')).body as { items: { id: number }[] }
  expect(events.items).toHaveLength(1)
  expect((await admin.call('GET', `/api/v1/events?after=${events.items[0]?.id}`)).body).toMatchObject({ items: [] })
})

test('AP9 confirmations are read, said yes to with a name, and gone', async () => {
  const question = {
    kind: 'remove_service',
    subject: 's',
    project: 'p',
    service: 'web',
    cluster: null,
    token: 't',
    names: ['a'],
    why: 'w',
    createdMs: 1,
  } as const
  const { id } = await admin.store.openConfirmation({ ...question, names: [...question.names] })
  expect((await admin.call('GET', '/api/v1/confirmations')).body).toMatchObject({ items: [{ id, names: ['a'] }] })
  expect((await admin.call('GET', `/api/v1/confirmations/${id}`)).body).not.toHaveProperty('token')
  expect(await admin.call('POST', `/api/v1/confirmations/${id}/confirm`)).toMatchObject({ status: 200, body: { confirmedBy: 'admin' } })
  expect(await admin.call('POST', '/api/v1/confirmations/nope99/confirm')).toMatchObject({ status: 404 })
  expect(admin.asked).toEqual([`confirm ${id} by admin`])
})

test.each([
  ['text', 'text/plain', '{"names":["a"]}', 415, 'unsupported_media'],
  ['a form', 'application/x-www-form-urlencoded', 'names=a', 415, 'unsupported_media'],
  ['JSON that ends early', 'application/json', '{"names":', 400, 'bad_request'],
  ['a list', 'application/json; charset=utf-8', '[]', 422, 'invalid_resource'],
  ['an unknown field', 'application/json', '{"names":["a"],"dryRum":true}', 422, 'invalid_resource'],
  ['nothing', '', undefined, 422, 'invalid_resource'],
])('AP27 a body that is %s is refused by the schema of the route', async (_, type, sent, status, code) => {
  const answer = await admin.call('POST', '/api/v1/projects/default/delete-services', sent, { 'content-type': type })
  expect(answer).toMatchObject({ status, body: { code } })
  if (sent?.includes('dryRum') === true) expect(answer.body).toMatchObject({ problems: [{ path: 'dryRum', message: naming('"dryRun"') }] })
})

test('AP29 a method that a path does not have is 405 with Allow, for callers with a credential', async () => {
  const cases = [
    ['PATCH', '/api/v1/services', 'GET'],
    ['POST', '/api/v1/projects/default/services/web', 'DELETE, GET, PUT'],
    ['TRACE', '/api/v1/whoami', 'GET'],
    ['OPTIONS', '/api/v1/whoami', 'GET'],
  ] as const
  for (const [method, path, allow] of cases) {
    const answer = await admin.call(method, path)
    expect([answer.status, answer.headers.get('allow')]).toEqual([405, allow])
    expect((await admin.call(method, path, undefined, { authorization: '' })).status).toBe(401)
  }
  expect((await admin.call('HEAD', '/api/v1/whoami')).status).toBe(200)
})

test('AP10 the OpenAPI document is 3.1, describes every route, and needs the token', async () => {
  const { status, body } = await admin.call('GET', '/api/v1/openapi.json')
  expect(status).toBe(200)
  const document = body as {
    openapi: string
    paths: Record<string, Record<string, { summary?: string; requestBody?: { required?: boolean } }>>
  }
  expect(document.openapi).toMatch(/^3\.1\./)
  const isRequired = (path: string) => document.paths[path]?.['post']?.requestBody?.required
  expect([isRequired('/api/v1/join-tokens'), isRequired('/api/v1/tokens')]).toEqual([false, true])
  const described = Object.entries(document.paths).flatMap(([path, verbs]) =>
    Object.keys(verbs).map((verb) => `${verb.toUpperCase()} ${path}`),
  )
  const served = admin.app.routes
    .filter(({ path }) => path.startsWith('/api/') && !path.includes('openapi'))
    .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`)
  expect(described.filter((one) => !one.includes(' /auth/')).sort()).toEqual(served.sort())
  // Sign-in runs before the framework: its routes are named in its source.
  const source = await Bun.file(new URL('../../server/http/sign-in-routes.ts', import.meta.url)).text()
  const signIn = [...source.matchAll(/\[`(GET|POST) \$\{SIGN_IN\}(\/\w+)`\]/g)].map(([, verb, path]) => `${verb} /auth${path}`)
  expect(described.filter((one) => one.includes(' /auth/')).sort()).toEqual([...signIn, 'POST /auth/link'].sort())
  for (const verbs of Object.values(document.paths)) for (const operation of Object.values(verbs)) expect(operation.summary).toBeString()
  expect(wrongPlaces(document)).toEqual([])
  const put = document.paths['/api/v1/projects/{project}/services/{name}']?.['put']
  expect(JSON.stringify(put?.requestBody)).toContain('maxPrunePercent')
  // Schemas are converted once a process: nothing that was done with the document above may show in the next one.
  expect((await (await createTestAdmin()).call('GET', '/api/v1/openapi.json')).body).toEqual(document)
})

/** Structure of OpenAPI 3.1, as far as a client generator stumbles over it. */
function wrongPlaces(document: Record<string, unknown>): string[] {
  type Media = { schema?: Record<string, unknown> }
  type Reply = { description?: unknown; content?: Record<string, Media> }
  type Call = {
    operationId?: string
    parameters?: Array<{ in: string; name: string; required?: boolean; schema?: unknown }>
    requestBody?: { content?: Record<string, Media> }
    responses?: Record<string, Reply>
  }
  const wrong: string[] = []
  const ids = new Set<string>()
  const resolve = (ref: string) =>
    ref
      .split('/')
      .slice(1)
      .reduce<unknown>((at, key) => (at as Record<string, unknown> | undefined)?.[key], document)
  for (const [path, calls] of Object.entries(document['paths'] as Record<string, Record<string, Call>>)) {
    for (const [method, { operationId = '', parameters = [], requestBody, responses = {} }] of Object.entries(calls)) {
      const say = (what: string) => void wrong.push(`${method} ${path}: ${what}`)
      if (operationId === '' || ids.has(operationId)) say('operationId')
      ids.add(operationId)
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1])
      const declared = parameters.filter((one) => one.in === 'path' && one.required === true).map((one) => one.name)
      if (JSON.stringify(inPath.sort()) !== JSON.stringify(declared.sort())) say(`path parameters ${declared}`)
      for (const one of parameters)
        if (one.schema === undefined || !['path', 'query', 'header'].includes(one.in)) say(`parameter ${one.name}`)
      if (requestBody !== undefined && requestBody.content?.['application/json']?.schema === undefined) say('request body')
      const codes = Object.keys(responses)
      if (!codes.some((code) => /^[23]/.test(code)) || !(codes.includes('401') || path.startsWith('/auth/'))) say(`responses ${codes}`)
      for (const [code, { description, content }] of Object.entries(responses)) {
        if (typeof description !== 'string' || !/^[2345]\d\d$/.test(code)) say(`response ${code}`)
        const media = code.startsWith('2') ? Object.values(content ?? {})[0] : content?.[PROBLEM]
        if (!/^(204|3\d\d|431)$/.test(code) && media?.schema === undefined) say(`schema of ${code}`)
        if (!/^(204|3\d\d|431)$/.test(code) && media?.schema === undefined) say(`schema of ${code}`)
        const ref = media?.schema?.['$ref']
        if (typeof ref === 'string' && resolve(ref) === undefined) say(`${ref} of ${code}`)
      }
    }
  }
  return wrong
}

test('AP6 objects page by cluster and key: each once, in one order, narrowed by what was asked', async () => {
  const state = { sync: 'Synced', health: 'Healthy', reason: '', message: '', sinceMs: 1 }
  for (const digit of ['b', 'a', 'c']) {
    const id = await joinCluster(admin.store, digit)
    const keys = [
      'default/web//ConfigMap/web/x',
      'default/web/apps/Deployment/web/x',
      'default/api//Secret/web/x',
      'other/web//Secret/web/x',
    ]
    const rows = keys.map((key, index) => ({ kind: 'object' as const, key, rev: index + 1, doc: state }))
    await admin.store.upsertStatus(id, rows, { complete: false, nowMs: 1 })
  }
  const walk = async (query: string) => {
    const seen: string[] = []
    for (let next: string | null = ''; next !== null; ) {
      const { status, body } = await admin.call('GET', `/api/v1/objects?${query}${next === '' ? '' : `&continue=${next}`}`)
      expect(status).toBe(200)
      const page = body as { items: Array<Record<string, string>>; continue: string | null }
      seen.push(...page.items.map((item) => [item['cluster'], item['project'], item['service'], item['kind']].join('/')))
      next = page.continue
    }
    return seen
  }
  const all = await walk('limit=500')
  expect(all).toHaveLength(12)
  expect(all).toEqual([...all].sort())
  for (const limit of [1, 4, 5, 12]) expect(await walk(`limit=${limit}`)).toEqual(all)
  expect(await walk('limit=1&cluster=cluster-b')).toEqual(all.filter((text) => text.startsWith('cluster-b/')))
  expect(await walk('limit=2&service=web&project=default')).toEqual(all.filter((text) => text.includes('/default/web/')))
})

test('AP1 a stranger’s body is not read', async () => {
  let read = 0
  const body = new ReadableStream(
    { pull: (controller) => (read++ < 3 ? controller.enqueue(new Uint8Array(1024)) : controller.close()) },
    { highWaterMark: 0 },
  )
  const request = new Request('http://localhost/api/v1/apply', { method: 'POST', body })
  expect((await admin.app.fetch(request)).status).toBe(401)
  expect(read).toBe(0)
})

test('AP3 keys of every object’s prototype are fields like others', async () => {
  const text = (labels: string) =>
    `{"resources":[{"apiVersion":"skerry.dev/v1","kind":"Repository","metadata":{"name":"apps","labels":${labels}},"spec":{"git":{"url":"https://git.example/a.git"},"__proto__":{"x":1}}}]}`
  expect((await admin.call('POST', '/api/v1/apply', text('{}'))).status).toBe(422)
  const named = text('{"constructor":"a","toString":"b"}').replace(',"__proto__":{"x":1}', '')
  expect((await admin.call('POST', '/api/v1/apply', named)).status).toBe(200)
  expect((await admin.call('GET', '/api/v1/repositories?labelSelector=constructor%3Da,!valueOf')).body).toMatchObject({ items: [{}] })
  expect((await admin.call('GET', '/api/v1/repositories?labelSelector=valueOf')).body).toMatchObject({ items: [] })
})

test('AP3 readiness says when the server is not', async () => {
  const stopping = await createTestAdmin({ ready: () => false })
  expect(await stopping.call('GET', '/readyz')).toMatchObject({ status: 503, body: { code: 'unavailable' } })
  expect(await stopping.call('GET', '/healthz')).toMatchObject({ status: 200 })
  await stopping.store.close()
})

test('LP1 readiness names the loops that failed, and the server serves on', async () => {
  const failing = await createTestAdmin({ failingLoops: () => ['ingest', 'store-retention'] })
  const { status, body } = await failing.call('GET', '/readyz')
  expect(status).toBe(200)
  expect(['ok', 'ingest', 'store-retention'].map((word) => String(body).includes(word))).toEqual([true, true, true])
  await failing.store.close()
})

test('AP5 WH3 the webhook of a repository: its address and the mark of its secret; a new secret is answered once', async () => {
  await apply(repositoryDoc('apps'))
  expect((await admin.call('GET', '/api/v1/projects/default/repositories/apps/webhook')).body).toEqual({
    url: 'https://skerry.example/webhooks/v1/default/apps',
    secret: 'hmac:0123456789abcdef',
  })
  const made = await admin.call('POST', '/api/v1/projects/default/repositories/apps/webhook')
  expect(made).toMatchObject({ status: 200, body: { secret: 'hook-secret' } })
  expect((await admin.call('GET', '/api/v1/projects/default/repositories/none/webhook')).status).toBe(404)
})
