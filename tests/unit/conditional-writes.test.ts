// Writes for one version only, writes that create only, and dry runs.
import { expect, test } from 'bun:test'
import { z } from 'zod'
import { EXAMPLES } from '../../server/http/examples.ts'
import { SCHEMAS } from '../../server/http/resource-handlers.ts'
import { explainIssues } from '../../shared/model/explain.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { naming } from '../support/naming.ts'
import { joinCluster } from '../support/store-fixtures.ts'

const REPOSITORY = '/api/v1/projects/default/repositories/apps'
const SERVICE = '/api/v1/projects/default/services/web'
const codeOf = ({ status, body }: { status: number; body: unknown }) => `${status} ${(body as { code?: string }).code ?? 'ok'}`

async function withRepository(): Promise<{ admin: TestAdmin; etag: string }> {
  const admin = await createTestAdmin()
  const made = await admin.call('PUT', REPOSITORY, repositoryDoc('apps'), { 'if-none-match': '*' })
  expect(made.status).toBe(201)
  return { admin, etag: made.headers.get('etag') ?? '' }
}

test('AP25 If-None-Match: * creates and never overwrites; If-Match changes one version and never creates', async () => {
  const { admin, etag } = await withRepository()
  const again = await admin.call('PUT', REPOSITORY, repositoryDoc('apps'), { 'if-none-match': '*' })
  expect(again).toMatchObject({ status: 412, body: { code: 'conflict', expectedVersion: null, version: Number(etag.slice(1, -1)) } })
  const elsewhere = REPOSITORY.replace('apps', 'other')
  const absent = await admin.call('PUT', elsewhere, repositoryDoc('other'), { 'if-match': '"7"' })
  expect(absent).toMatchObject({ status: 412, body: { code: 'conflict', expectedVersion: 7, version: null } })
  expect((await admin.call('PUT', REPOSITORY, repositoryDoc('apps', { labels: { a: 'b' } }), { 'if-match': etag })).status).toBe(200)
})

test.each([
  ['PUT', { 'if-match': 'W/"1"' }],
  ['PUT', { 'if-match': '*' }],
  ['PUT', { 'if-none-match': '"1"' }],
  ['PUT', { 'if-match': '"1"', 'if-none-match': '*' }],
  ['DELETE', { 'if-none-match': '*' }],
])('AP25 %s refuses preconditions of another form: %p', async (method, headers: Record<string, string>) => {
  const { admin } = await withRepository()
  expect(codeOf(await admin.call(method, REPOSITORY, method === 'PUT' ? repositoryDoc('apps') : undefined, headers))).toBe(
    '400 bad_request',
  )
})

test('AP25 a deletion takes If-Match', async () => {
  const { admin, etag } = await withRepository()
  expect(await admin.call('DELETE', REPOSITORY, undefined, { 'if-match': '"999"' })).toMatchObject({
    status: 412,
    body: { expectedVersion: 999, version: Number(etag.slice(1, -1)) },
  })
  expect(codeOf(await admin.call('DELETE', REPOSITORY, undefined, { 'if-match': etag }))).toBe('200 ok')
  expect(codeOf(await admin.call('DELETE', REPOSITORY, undefined, { 'if-match': etag }))).toBe('404 not_found')
})

test('AP25 a Cluster that changes between the check and the write is neither deleted nor relabelled back', async () => {
  const admin = await createTestAdmin()
  await joinCluster(admin.store, 'a', { env: 'test' })
  const path = '/api/v1/clusters/cluster-a'
  const doc = (env: string) => ({
    apiVersion: 'skerry.dev/v1',
    kind: 'Cluster',
    metadata: { name: 'cluster-a', labels: { env } },
    spec: {},
  })
  const { getResource } = admin.store
  /** Another person relabels it right after the handler has read it. */
  const whileRelabelled = async (env: string, act: () => Promise<{ status: number; body: unknown }>) => {
    admin.store.getResource = async (key) => {
      const held = await getResource(key)
      admin.store.getResource = getResource
      expect((await admin.call('PUT', path, doc(env))).status).toBe(200)
      return held
    }
    return codeOf(await act())
  }
  const etag = (await admin.call('GET', path)).headers.get('etag') ?? ''
  expect(await whileRelabelled('prod', () => admin.call('DELETE', path, undefined, { 'if-match': etag }))).toBe('412 conflict')
  expect(await whileRelabelled('lab', () => admin.call('PUT', path, doc('prod')))).toBe('409 conflict')
  expect((await admin.call('GET', path)).body).toMatchObject({ metadata: { labels: { env: 'lab' } } })
})

test('AP26 a dry run of a PUT checks as the write does, answers what would be, and changes nothing', async () => {
  const admin = await createTestAdmin()
  const dry = (doc: object, headers = {}) => admin.call('PUT', `${REPOSITORY}?dryRun=true`, doc, headers)
  expect(await dry(repositoryDoc('apps'))).toMatchObject({ status: 201, body: { metadata: { name: 'apps', version: 0, uid: '' } } })
  const wrong = { ...repositoryDoc('apps'), spec: { git: { url: 'https://git.example/apps.git', reff: 'main' } } }
  expect(await dry(wrong)).toMatchObject({
    status: 422,
    body: { code: 'invalid_resource', problems: [{ path: 'spec.git.reff', message: naming('"ref"?') }] },
  })
  expect((await admin.call('GET', REPOSITORY)).status).toBe(404)
  const made = await admin.call('PUT', REPOSITORY, repositoryDoc('apps'))
  const etag = made.headers.get('etag') ?? ''
  admin.asked.length = 0
  const changed = await dry(repositoryDoc('apps', { labels: { a: 'b' } }), { 'if-match': etag })
  expect(changed).toMatchObject({ status: 200, body: { metadata: { labels: { a: 'b' } } } })
  expect(changed.headers.get('etag')).toBe(etag)
  expect(codeOf(await dry(repositoryDoc('apps'), { 'if-match': '"999"' }))).toBe('412 conflict')
  expect((await admin.call('GET', REPOSITORY)).headers.get('etag')).toBe(etag)
  expect(admin.asked).toEqual([])
})

test('AP26 a dry run of a deletion refuses what the deletion would, and deletes nothing', async () => {
  const { admin } = await withRepository()
  await admin.call('PUT', SERVICE, serviceDoc('web'))
  admin.asked.length = 0
  expect(codeOf(await admin.call('DELETE', `${REPOSITORY}?dryRun=true`))).toBe('409 in_use')
  expect(await admin.call('DELETE', `${SERVICE}?dryRun=true`)).toMatchObject({ status: 200, body: { outcome: 'deleted', clusters: [] } })
  expect((await admin.call('GET', SERVICE)).status).toBe(200)
  expect(admin.asked).toEqual([])
  expect(codeOf(await admin.call('DELETE', `${SERVICE}?dryRun=perhaps`))).toBe('400 bad_request')
})

test('AP25 AP26 the OpenAPI document declares preconditions, dry runs, the resume of a stream, and a valid example of each kind', async () => {
  const { call } = await createTestAdmin()
  const { paths } = (await call('GET', '/api/v1/openapi.json')).body as {
    paths: Record<
      string,
      Record<string, { parameters?: Array<{ name: string }>; requestBody?: { content: Record<string, { example?: unknown }> } }>
    >
  }
  const parametersOf = (path: string, method: string) => paths[path]?.[method]?.parameters?.map(({ name }) => name)
  const path = '/api/v1/projects/{project}/repositories/{name}'
  expect(parametersOf(path, 'put')).toEqual(['project', 'name', 'dryRun', 'If-Match', 'If-None-Match', 'Idempotency-Key'])
  expect(parametersOf(path, 'delete')).toEqual(['project', 'name', 'dryRun', 'If-Match', 'Idempotency-Key'])
  expect(parametersOf('/api/v1/changes', 'get')).toContain('Last-Event-ID')
  for (const [kind, schema] of Object.entries(SCHEMAS)) {
    const example = EXAMPLES[kind as keyof typeof SCHEMAS]
    expect(explainIssues(schema, example, schema.safeParse(example).error ?? new z.ZodError([]))).toEqual([])
  }
  expect(paths[path]?.['put']?.requestBody?.content['application/json']?.example).toEqual(EXAMPLES.Repository)
})
