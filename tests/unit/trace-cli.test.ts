// `skerry trace`: from an object of a cluster to service, revision, commit and source, and what is said of one that is
// not there.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { Asks } from '../../server/ask/asks.ts'
import type { OriginView } from '../../shared/model/render-views.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { joinCluster, publishOne } from '../support/store-fixtures.ts'

let admin: TestAdmin
/** A site whose objects carry the marks of Skerry. */
const asks = {
  admit: () => {},
  gathered: async () => {},
  ask: () => {
    const annotations = {
      'skerry.dev/commit': 'c0ffee001',
      'skerry.dev/revision': 'd1',
      'skerry.dev/tracking': 'c-1/default/web:x',
      other: 'x',
    }
    const object = { metadata: { labels: { 'skerry.dev/service': 'default.web' }, annotations } }
    const lines = [{ t: 'object', object, masked: [] }, { t: 'end' }].map((line) => `${JSON.stringify(line)}\n`).join('')
    const parts: Array<Uint8Array | null> = [new TextEncoder().encode(lines), null]
    return { read: async () => parts.shift() ?? null, cancel: () => {} }
  },
} as unknown as Asks
/** Answers of the render: where the file of an object is. */
let origin: OriginView | null
let originsAsked: unknown[]
beforeEach(async () => {
  originsAsked = []
  origin = {
    ...{ project: 'default', service: 'web', cluster: 'cluster-a', object: 'apps/Deployment/shop/web' },
    ...{ version: 'c0ffee001', repository: 'apps', file: 'web/app.yaml', line: 12, note: null },
  }
  const renders = {
    render: async () => null,
    variants: async () => null,
    objects: async () => ({ kind: 'rendered' as const, objects: new Map<string, string>() }),
    origin: async (...of: unknown[]) => {
      originsAsked.push(of)
      return origin
    },
  }
  admin = await createTestAdmin({ asks, renders })
  await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps'), serviceDoc('web')] })
  admin.clock.nowMs = 10_000_000
  for (const digit of ['a', 'b']) await placed(digit)
})
afterEach(() => admin.store.close())
const cli = (argv: string) => runTestCli(admin, argv.split(' '))

const web = { project: 'default', service: 'web' }
const APPLIED = { commit: 'c0ffee001', digest: 'd1', atMs: 9_400_000, trace: 'a'.repeat(32) }

async function placed(digit: string): Promise<void> {
  const id = await joinCluster(admin.store, digit)
  const doc = { commit: 'c0ffee001', digest: 'd1', count: 2, sync: syncOptionsSchema.parse({}), protect: false }
  await publishOne(admin.store, { clusterId: id, ...web, doc, setSha: null, placedBy: '' })
  const state = { sync: 'Synced', health: 'Degraded', reason: 'CrashLoop', message: 'restarts', sinceMs: 9_500_000 }
  const well = { ...state, health: 'Healthy', reason: '', message: '' }
  const object = (key: string, rev: number, of: object = well) => ({ kind: 'object' as const, key: `default/web/${key}`, rev, doc: of })
  const rows = [
    { kind: 'service' as const, key: 'default/web', rev: 1, doc: { ...state, applied: APPLIED, objectCount: 2, healthyCount: 1 } },
    object('apps/Deployment/shop/web', 2, state),
    object('rbac.authorization.k8s.io/ClusterRole//web', 3),
    object('example.com/Widget/shop/web', 4),
    object('cert-manager.io/Certificate/shop/tls', 5),
    object('extra.example/Certificate/shop/tls', 6),
    ...(digit === 'b' ? [object('/ConfigMap/shop/only', 7)] : []),
  ]
  await admin.store.upsertStatus(id, rows as never, { complete: false, nowMs: 1 })
}

const render = (commit: string, digest: string, renderedMs: number) =>
  admin.store.setRenderState(web, {
    ...{ commit, digest, renderedMs, generation: 1, objectCount: 2, error: null },
    release: { variants: 1, revisions: {}, tools: {}, warnings: [] },
  })

test('CL39 traces an object to service, revision, commit, repository and path, with its state', async () => {
  await render('c0ffee001', 'd1', 9_000_000)
  await render('c0ffee002', 'd2', 9_900_000)
  const { code, out } = await cli('trace deploy/shop/web --cluster cluster-a -o json')
  expect(code).toBe(0)
  expect(JSON.parse(out)).toMatchObject({
    object: { cluster: 'cluster-a', group: 'apps', kind: 'Deployment', namespace: 'shop', name: 'web' },
    ...{ sync: 'Synced', health: 'Degraded', reason: 'CrashLoop', message: 'restarts', sinceMs: 9_500_000 },
    ...{ project: 'default', service: 'web' },
    ...{ commit: 'c0ffee001', digest: 'd1', appliedMs: 9_400_000, trace: APPLIED.trace, author: null },
    revision: { number: 1, renderedMs: 9_000_000, generation: 1 },
    desired: { commit: 'c0ffee001', digest: 'd1' },
    sources: [{ repository: 'apps', url: 'https://git.example/apps.git', path: 'web', chart: null, revision: 'c0ffee001' }],
    ...{ file: { repository: 'apps', path: 'web/app.yaml', line: 12, version: 'c0ffee001' }, fileNote: null },
  })
  expect(originsAsked).toEqual([[web, 'cluster-a', 'apps/Deployment/shop/web', 1]])
  const shown = (await cli('trace deploy/shop/web --cluster cluster-a')).out
  expect(shown.split('\n').map((line) => line.split(':')[0])).toEqual([
    ...[
      'Object',
      'State',
      'Since',
      'Reason',
      'Message',
      'Next',
      'Service',
      'Revision',
      'Commit',
      'Applied',
      'Correlation id',
      'Repository',
      'Path',
      'File',
      '',
    ],
  ])
  expect(shown).toMatch(/^File: +web\/app\.yaml:12$/m)
  expect((await cli('trace deploy/shop/web --cluster cluster-a -o name')).out).toBe('service/web\n')
  expect((await cli('trace deploy/shop/web --cluster cluster-a -o jsonpath={.commit}')).out).toBe('c0ffee001')
  expect((await cli('trace deploy/shop/web --cluster cluster-a -o yaml')).out).toContain('commit: c0ffee001\n')
})

test('CL39 the file names its version when that is not the applied one, and a file that is not known has a reason', async () => {
  await render('c0ffee001', 'd1', 9_000_000)
  if (origin !== null) origin = { ...origin, version: 'c0ffee002', line: null }
  expect((await cli('trace deploy/shop/web --cluster cluster-a')).out).toMatch(/^File: +web\/app\.yaml \(at c0ffee002\)$/m)
  if (origin !== null) origin = { ...origin, file: null, note: 'a program makes this object' }
  expect((await cli('trace deploy/shop/web --cluster cluster-a')).out).toMatch(/^File: +not known: a program makes this object$/m)
})

test('CL39 without the right to render, everything but the file is told', async () => {
  await render('c0ffee001', 'd1', 9_000_000)
  const { body } = await admin.call('POST', '/api/v1/tokens', { name: 'eve', role: 'viewer', expires: '1h' })
  const viewer = { ...admin, token: (body as { token: string }).token }
  const { code, out } = await runTestCli(viewer, 'trace deploy/shop/web --cluster cluster-a -o json'.split(' '))
  expect(code).toBe(0)
  expect(JSON.parse(out)).toMatchObject({ commit: 'c0ffee001', file: null, fileNote: expect.stringContaining('may not render') })
  expect(originsAsked).toEqual([])
})

test.each([
  ['Deployment/shop/web', 'Deployment'],
  ['deployments/shop/web', 'Deployment'],
  ['DEPLOY.apps/shop/web', 'Deployment'],
  ['clusterroles/web', 'ClusterRole'],
  ['widgets/shop/web', 'Widget'],
  ['certificates.cert-manager.io/shop/tls', 'Certificate'],
])('CL39 %s names an object of kind %s', async (object, kind) => {
  const { out } = await cli(`trace ${object} --cluster cluster-a -o json`)
  expect(JSON.parse(out)).toMatchObject({ object: { kind } })
})

test('CL39 an object that is not there is told with the clusters that have it', async () => {
  const elsewhere = await cli('trace cm/shop/only --cluster cluster-a')
  expect(elsewhere).toMatchObject({ code: 1, out: '' })
  expect(elsewhere.err).toContain('ConfigMap shop/only in cluster cluster-a; clusters with this object: cluster-b\n')
  const nowhere = await cli('trace cm/none/only --cluster cluster-a')
  expect([nowhere.code, nowhere.err.includes('no cluster has this object')]).toEqual([1, true])
  expect((await cli('trace cm/only --cluster cluster-b')).code).toBe(1)
  expect((await cli('trace po/shop/web-1 --cluster cluster-a')).err).toContain('Trace the workload')
  expect(await cli('trace cm/shop/only --cluster none')).toMatchObject({ code: 1, err: expect.stringContaining('none') })
})

test('CL39 several objects of the same name are told apart by group, project or service', async () => {
  const { code, err } = await cli('trace certificate/shop/tls --cluster cluster-a')
  expect(code).toBe(1)
  expect(err).toContain('Certificate.cert-manager.io shop/tls of service default/web')
  expect(err).toContain('Certificate.extra.example shop/tls')
})

test('CL39 without the service, its history or its repository the rest is told', async () => {
  await admin.call('DELETE', '/api/v1/projects/default/services/web')
  const { code, out } = await cli('trace deploy/shop/web --cluster cluster-a -o json')
  expect(code).toBe(0)
  expect(JSON.parse(out)).toMatchObject({ commit: 'c0ffee001', digest: 'd1', revision: null })
})

test.each(['trace', 'trace web --cluster a', 'trace deploy//web --cluster a', 'trace a/b/c/d --cluster a', 'trace deploy/shop/web'])(
  'CL39 `%s` is a wrong argument',
  async (argv) => expect((await cli(argv)).code).toBe(2),
)

test('CL41 describe object shows the whole provenance: source, revision, cause of its state, changes and events', async () => {
  await render('c0ffee001', 'd1', 9_000_000)
  const note = { author: 'Ana', subject: 'fix the port', authoredMs: 5 }
  await admin.store.noteCommit({ project: 'default', repository: 'apps', commit: 'c0ffee001', ...note, seenMs: 6 })
  const event = { atMs: 9_600_000, type: 'Warning', reason: 'Drifted', message: 'changed by kubectl-edit', cluster: 'cluster-a' } as const
  await admin.store.appendEvents([
    { ...event, ...web, object: 'apps/Deployment/shop/web' },
    { ...event, ...web, object: 'apps/Deployment/shop/other', reason: 'Applied', message: 'of another object' },
  ])
  const offline = await cli('describe object deploy/shop/web --cluster cluster-a')
  expect([offline.code, offline.out]).toEqual([0, expect.stringContaining('not read: ')])
  await admin.store.markSeen(new Map([[(await admin.store.clusterByName('cluster-a'))?.clusterId as never, 9_999_000]]))
  const { code, out } = await cli('describe object deploy/shop/web --cluster cluster-a')
  expect(code).toBe(0)
  for (const part of ['default/web', 'c0ffee001', 'Ana', 'fix the port', 'https://git.example/apps.git', 'changed by kubectl-edit'])
    expect(out).toContain(part)
  for (const mark of [
    'skerry.dev/service=default.web',
    'skerry.dev/commit=c0ffee001',
    'skerry.dev/revision=d1',
    'skerry.dev/tracking=c-1/',
  ])
    expect(out).toContain(mark)
  expect(out).not.toContain('other=x')
  expect(out).not.toContain('of another object')
  const { events, changes } = JSON.parse((await cli('describe object/deploy/shop/web --cluster cluster-a -o json')).out)
  expect([events.length, changes.length > 0]).toEqual([1, true])
  expect((await cli('describe object deploy/shop/web')).code).toBe(2)
  expect((await cli('describe service web --cluster cluster-a')).code).toBe(2)
})

test('WY7 why of an object has the causes of that object', async () => {
  await admin.store.markSeen(new Map([[(await admin.store.clusterByName('cluster-a'))?.clusterId as never, 9_999_000]]))
  const bad = await cli('why deployment/shop/web --cluster cluster-a -o json')
  expect(bad.code).toBe(1)
  expect(JSON.parse(bad.out).causes[0]).toMatchObject({ object: 'Deployment shop/web' })
  expect(await cli('why clusterrole/web --cluster cluster-a')).toMatchObject({ code: 0 })
  expect((await cli('why deployment/shop/web')).code).toBe(2)
})
