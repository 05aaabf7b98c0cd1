// POST /api/v1/apply from request to answer, without a socket: all or nothing, and everything that is wrong at once.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { naming } from '../support/naming.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
})
afterEach(() => admin.store.close())

const PROBLEM = 'application/problem+json'
const apply = (...resources: unknown[]) => admin.call('POST', '/api/v1/apply', { resources })

test('AP4 apply creates repositories before services, tells what it did, and sets off the work once', async () => {
  expect(await apply(serviceDoc('web'), repositoryDoc('apps'))).toMatchObject({
    status: 200,
    body: {
      results: [
        { kind: 'Repository', project: 'default', name: 'apps', action: 'created' },
        { kind: 'Service', project: 'default', name: 'web', action: 'created' },
      ],
    },
  })
  expect(admin.asked).toEqual(['changed Repository default/apps, changed Service default/web'])
  const again = await apply(serviceDoc('web'), repositoryDoc('apps', { labels: { a: 'b' } }))
  expect(again.body).toMatchObject({ results: [{ action: 'configured' }, { action: 'unchanged' }] })
  expect(admin.asked).toHaveLength(2)
})

test('AP4 one wrong resource and nothing is written; all problems are told at once, with the nearest right name and no value', async () => {
  const bad = { ...serviceDoc('web'), spec: { ...serviceDoc('web').spec, sync: { maxPrunePercnt: 7, drift: 'hunter2' } } }
  const result = await apply(
    repositoryDoc('apps'),
    bad,
    { ...repositoryDoc('b'), kind: 'Repositry' },
    { apiVersion: 'skerry.dev/v1', kind: 'Service' },
  )
  expect(result.status).toBe(422)
  expect(result.headers.get('content-type')).toBe(PROBLEM)
  expect(result.body).toMatchObject({
    code: 'invalid_resource',
    problems: [
      { path: 'resources[1].spec.sync.drift', message: naming('"correct"', '"report"', '"pause"') },
      { path: 'resources[1].spec.sync.maxPrunePercnt', message: naming('"maxPrunePercent"') },
      {
        path: 'resources[2].kind',
        message: naming('Repository', 'Service', '"Repository"'),
      },
      { path: 'resources[3].metadata', message: naming('required', 'object') },
      { path: 'resources[3].spec', message: naming('required', 'object') },
    ],
  })
  expect(JSON.stringify(result.body)).not.toContain('hunter2')
  expect(admin.asked).toEqual([])
  expect((await admin.store.listResources('Repository', { limit: 10 })).items).toEqual([])
})

test('AP4 twice the same name, a cluster that never joined and a service that is going are refused', async () => {
  await apply(repositoryDoc('apps'), serviceDoc('going'))
  await admin.store.markDeleting({ kind: 'Service', project: 'default', name: 'going' }, 1, 'ann')
  const cluster = { apiVersion: 'skerry.dev/v1', kind: 'Cluster', metadata: { name: 'ghost' } }
  const result = await apply(serviceDoc('web'), serviceDoc('web'), cluster, serviceDoc('going'))
  expect(result.status).toBe(422)
  const { problems } = result.body as { problems: { path: string; message: string }[] }
  expect(problems.map(({ path }) => path)).toEqual([1, 2, 3].map((index) => `resources[${index}].metadata.name`))
  expect(problems.map(({ message }) => message)).toEqual([
    naming('service web', 'project default', 'resources[0]'),
    naming('cluster ghost'),
    naming('service going', 'project default', 'deleted'),
  ])
})

test('AP4 a dry run says the same and writes nothing', async () => {
  const result = await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps')], dryRun: true })
  expect(result.body).toMatchObject({ dryRun: true, results: [{ action: 'created' }] })
  expect(admin.asked).toEqual([])
  expect(await admin.call('GET', '/api/v1/projects/default/repositories/apps')).toMatchObject({ status: 404 })
})

test('AP4 what get shows can be applied again as it is', async () => {
  await apply(repositoryDoc('apps'), serviceDoc('web'))
  const shown = await admin.call('GET', '/api/v1/projects/default/services/web')
  expect((await apply(shown.body)).body).toMatchObject({ results: [{ action: 'unchanged' }] })
})

test('AP4 a service whose deletion waits is taken back by applying it; one that goes is not', async () => {
  await apply(repositoryDoc('apps'), serviceDoc('web'))
  await admin.store.markDeleting({ kind: 'Service', project: 'default', name: 'web' }, 1, 'ann')
  const question = {
    kind: 'remove_service',
    subject: 'remove_service/default/web',
    project: 'default',
    service: 'web',
    cluster: null,
  } as const
  const { id } = await admin.store.openConfirmation({ ...question, token: 't', names: ['a'], why: 'w', createdMs: 1 })
  expect((await admin.call('POST', '/api/v1/apply', { resources: [serviceDoc('web')], dryRun: true })).body).toMatchObject({
    results: [{ action: 'configured' }],
  })
  expect(await admin.store.confirmation(id)).not.toBeNull()
  expect((await apply(serviceDoc('web'))).body).toMatchObject({ results: [{ action: 'configured' }] })
  expect(admin.asked.slice(-2)).toEqual(['take back default/web by admin', 'changed Service default/web'])
  expect(await admin.store.confirmation(id)).toBeNull()
  await admin.store.markDeleting({ kind: 'Service', project: 'default', name: 'web' }, 1, 'ann')
  await admin.store.confirm(
    (await admin.store.openConfirmation({ ...question, token: 't', names: ['a'], why: 'w', createdMs: 1 })).id,
    'x',
    2,
  )
  expect((await apply(serviceDoc('web'))).status).toBe(422)
})
