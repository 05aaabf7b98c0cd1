// `GET …/why` over the routes: facts that agents reported become causes, and the rights of the caller bound them.
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Asks } from '../../server/ask/asks.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import type { WhyView } from '../../shared/model/why.ts'
import { systemClock } from '../../shared/runtime/clock.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { naming } from '../support/naming.ts'
import { joinCluster, publishOne } from '../support/store-fixtures.ts'

const API = '/api/v1'
let admin: TestAdmin
let prod: Record<string, string>
/** The wait for an answer of a cluster. */
let pause = Promise.withResolvers<void>()
const asked: object[] = []
let answer: () => Promise<string | null> = async () => null
const asks = {
  admit: () => {},
  gathered: async () => {},
  ask: (one: object) => {
    asked.push(one)
    return { read: async () => answer().then((text) => (text === null ? null : new TextEncoder().encode(text))), cancel: () => {} }
  },
} as unknown as Asks

beforeAll(async () => {
  admin = await createTestAdmin(() => ({
    asks,
    clock: { ...systemClock, nowMs: () => admin?.clock.nowMs ?? 1_000_000, sleep: () => pause.promise },
  }))
  const web = serviceDoc('web', { project: 'shop' })
  const applied = await admin.call('POST', `${API}/apply`, {
    resources: [
      repositoryDoc('apps', { project: 'shop' }),
      serviceDoc('db', { project: 'shop' }),
      { ...web, spec: { ...web.spec, dependsOn: [{ name: 'db' }] } },
      {
        ...{ apiVersion: 'skerry.dev/v1', kind: 'RoleBinding', metadata: { name: 'prod' } },
        spec: { subjects: [{ token: 'prod' }], role: 'viewer', projects: ['*'], clusters: { matchLabels: { env: 'prod' } } },
      },
    ],
  })
  expect([applied.status, applied.body]).toEqual([200, expect.anything()])
  const doc = { commit: 'c0ffee00', digest: 'd1', count: 1, sync: syncOptionsSchema.parse({}), protect: false }
  for (const [name, env] of [
    ['a', 'prod'],
    ['b', 'test'],
  ] as const) {
    // biome-ignore format: a table
    const clusterId = await joinCluster(admin.store, name, { env })
    for (const service of ['db', 'web'])
      await publishOne(admin.store, { clusterId, project: 'shop', service, doc, setSha: null, placedBy: '' })
    const bad = { sync: 'Synced', health: 'Degraded', reason: 'DeadlineExceeded', sinceMs: 9 }
    const message = 'Pod shop/db-0: container app OOMKilled, exited with code 137'
    const blocked = { sync: 'OutOfSync', health: 'Missing', reason: 'BlockedBy', message: 'waiting for shop/db', sinceMs: 9 }
    const event = { atMs: 3, type: 'Normal', reason: 'DriftHealed', message: 'changed by kubectl-edit; restored', service: 'shop/db' }
    const revision = { commit: 'c0ffee00', digest: 'd1', atMs: 2 }
    const counts = { objectCount: 1, healthyCount: 0, received: revision, applied: revision }
    await admin.store.upsertStatus(
      clusterId,
      [
        { kind: 'service', key: 'shop/db', rev: 1, doc: { ...bad, message, ...counts } },
        { kind: 'object', key: 'shop/db/apps/StatefulSet/shop/db', rev: 2, doc: { ...bad, message } },
        { kind: 'service', key: 'shop/web', rev: 3, doc: { ...blocked, ...counts } },
        {
          kind: 'object',
          key: 'shop/web/apps/Deployment/shop/web',
          rev: 5,
          doc: { ...bad, message: 'Pod shop/web-1: container app OOMKilled' },
        },
        { kind: 'event', key: '4', rev: 4, doc: event },
      ],
      { complete: false, nowMs: 10 },
    )
    await admin.store.markSeen(new Map([[clusterId, admin.clock.nowMs]]))
  }
  const { body } = await admin.call('POST', `${API}/tokens`, { name: 'prod', role: 'none' })
  prod = { authorization: `Bearer ${(body as { token: string }).token}` }
})
afterAll(() => admin.store.close())

const why = async (path: string, who?: Record<string, string>) => {
  const { status, body } = await admin.call('GET', `${API}/projects/shop/services/${path}`, undefined, who)
  return { status, body: body as WhyView }
}

test('WY1 the cause of an object in two clusters is one cause, with what changed before', async () => {
  const { status, body } = await why('db/why')
  expect(status).toBe(200)
  expect(body.causes[0]).toMatchObject({
    cause: 'OutOfMemory',
    object: 'StatefulSet shop/db',
    clusters: { count: 2, first: ['cluster-a', 'cluster-b'] },
  })
  expect(body.changes.map(({ text }) => text)).toContain('DriftHealed in cluster-a: changed by kubectl-edit; restored')
})

test('WY4 a service that waits for another has the cause and the next step of that one', async () => {
  const { body } = await why('web/why?cluster=cluster-a')
  const [of] = (await why('db/why?cluster=cluster-a')).body.causes
  expect(body.causes[0]).toMatchObject({ cause: 'DependencyNotHealthy', next: of?.next })
})

test('WY6 a caller with rights in some clusters sees causes of these only', async () => {
  const { status, body } = await why('db/why', prod)
  expect([status, body.causes[0]?.clusters]).toEqual([200, { count: 1, first: ['cluster-a'] }])
  expect(JSON.stringify(body)).not.toContain('cluster-b')
  expect((await why('db/why?cluster=cluster-b', prod)).status).toBe(404)
})

test('WY8 dependencies of dependencies are looked at once each, and 50 at most', async () => {
  const names = (layer: string) => Array.from({ length: 30 }, (_, index) => `${layer}${index}`)
  const on = (layer: string) => names(layer).map((name) => ({ name }))
  const services: Array<[string, object[]]> = [
    ['root', on('a')],
    ...names('a').map((name): [string, object[]] => [name, on('b')]),
    ...names('b').map((name): [string, object[]] => [name, []]),
  ]
  const docs = services.map(([name, dependsOn]) => {
    const doc = serviceDoc(name, { project: 'deep' })
    return { ...doc, spec: { ...doc.spec, dependsOn } }
  })
  expect((await admin.call('POST', `${API}/apply`, { resources: [repositoryDoc('apps', { project: 'deep' }), ...docs] })).status).toBe(200)
  const cluster = await admin.store.clusterByName('cluster-a')
  if (cluster === null) throw new Error('the cluster is missing')
  const { clusterId } = cluster
  const doc = { commit: 'c0ffee00', digest: 'd1', count: 1, sync: syncOptionsSchema.parse({}), protect: false }
  for (const [service] of services) await publishOne(admin.store, { clusterId, project: 'deep', service, doc, setSha: null, placedBy: '' })
  const revision = { commit: 'c0ffee00', digest: 'd1', atMs: 2 }
  const state = { sync: 'OutOfSync', health: 'Missing', reason: 'BlockedBy', message: 'waits', sinceMs: 9 }
  const blocked = { ...state, objectCount: 1, healthyCount: 0, received: revision, applied: revision }
  const rows = services.map(([service], index) => ({ kind: 'service' as const, key: `deep/${service}`, rev: 100 + index, doc: blocked }))
  await admin.store.upsertStatus(clusterId, rows, { complete: false, nowMs: 10 })
  let asked = 0
  const { answer } = admin.store.queries
  admin.store.queries.answer = (question, signal) => {
    if (question.kind === 'placements') asked += 1
    return answer.call(admin.store.queries, question, signal) as never
  }
  const { status, body } = await admin.call('GET', `${API}/projects/deep/services/root/why`)
  admin.store.queries.answer = answer
  expect([status, asked]).toEqual([200, 51])
  expect((body as WhyView).unknown).toEqual([naming('50 dependencies')])
})

test('WY9 in one cluster the answer says whether other clusters and other services have the same', async () => {
  const fleet = ({ causes }: WhyView) => causes[0]?.evidence.filter(({ from }) => from === 'fleet').map(({ text }) => text)
  const { body } = await why('db/why?cluster=cluster-a')
  expect(fleet(body)).toEqual([naming('1 of 1', 'cluster-b', 'revision'), naming('1 other service', 'cluster-a', 'shop/web')])
  expect(body.changes.map(({ text }) => text)).toContain('DriftHealed in cluster-b: changed by kubectl-edit; restored')
  const limited = (await why('db/why?cluster=cluster-a', prod)).body
  expect(fleet(limited)).toEqual([naming('1 other service', 'cluster-a', 'shop/web')])
  expect(JSON.stringify(limited)).not.toContain('cluster-b')
})

test('WY10 with log=true the last lines of the container that the cause names are evidence', async () => {
  asked.length = 0
  const lines = [{ t: 'log', pod: 'db-0', container: 'app', text: 'starting\nUser "x" cannot list resource "pods"\n' }, { t: 'end' }]
  const parts: Array<string | null> = [lines.map((line) => `${JSON.stringify(line)}\n`).join(''), null]
  answer = async () => parts.shift() ?? null
  const { body } = await why('db/why?cluster=cluster-a&log=true')
  expect(body.causes[0]?.cause).toBe('OutOfMemory')
  expect(body.causes[0]?.evidence.at(-1)).toMatchObject({ from: 'log', text: 'starting\nUser "x" cannot list resource "pods"' })
  const question = { kind: 'logs', ref: { kind: 'Pod', namespace: 'shop', name: 'db-0' }, container: 'app', tailLines: 20 }
  expect(asked).toMatchObject([{ question, within: { project: 'shop', service: 'db' }, cluster: { name: 'cluster-a' } }])
  const [entry] = (await admin.store.audit.list({ verb: 'logs:read', limit: 1 })).items
  expect(entry).toMatchObject({ cluster: 'cluster-a', detail: 'logs Pod shop/db-0' })
})

test('WY10 an explanation waits for the log for a moment only, and needs the right to read it', async () => {
  answer = () => new Promise(() => {})
  const late = why('db/why?cluster=cluster-a&log=true')
  await new Promise((resolve) => setImmediate(resolve))
  pause.resolve()
  expect((await late).body.unknown).toEqual([naming('2 s')])
  pause = Promise.withResolvers()
  asked.length = 0
  const { status, body } = await why('db/why?cluster=cluster-a&log=true', prod)
  expect([status, body.unknown, asked]).toEqual([200, [expect.stringContaining('logs:read')], []])
})
