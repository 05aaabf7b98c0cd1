// `skerry query`: rows as a table, JSON and CSV, the views, and errors that name the place.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { joinCluster } from '../support/store-fixtures.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
  await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps'), serviceDoc('web'), serviceDoc('shop')] })
  for (const digit of ['a', 'b', 'c']) await joinCluster(admin.store, digit)
})
afterEach(() => admin.store.close())
const cli = (...argv: string[]) => runTestCli(admin, argv)

test('SQ7 rows are printed as a table, as JSON and as CSV', async () => {
  const sql = "select name, repository, null as nothing from services where name <> 'x' order by name"
  expect((await cli('query', sql)).out).toBe('NAME   REPOSITORY   NOTHING\nshop   apps         -\nweb    apps         -\n')
  expect(JSON.parse((await cli('query', sql, '-o', 'json')).out)).toEqual({
    columns: ['name', 'repository', 'nothing'],
    items: [
      { name: 'shop', repository: 'apps', nothing: null },
      { name: 'web', repository: 'apps', nothing: null },
    ],
    truncated: false,
  })
  expect((await cli('query', sql, '-o', 'csv')).out).toBe('name,repository,nothing\r\nshop,apps,\r\nweb,apps,\r\n')
})

test('SQ7 says when rows are cut, and when there are none', async () => {
  const cut = await cli('query', 'select name from clusters order by name', '--limit', '2', '--no-headers')
  expect([cut.code, cut.out]).toEqual([0, 'cluster-a\ncluster-b\n'])
  expect(cut.err).toContain('only the first 2 rows')
  expect(await cli('query', 'select name from clusters where name is null')).toEqual({ code: 0, out: '', err: 'no rows\n' })
})

test('SQ7 lists the views; a wrong query is an error with the nearest name', async () => {
  const views = await cli('query', '--views', '--no-headers')
  expect(views.out).toMatch(/^clusters +name +text /)
  const wrong = await cli('query', 'select nam from clusters')
  expect([wrong.code, wrong.out]).toEqual([1, ''])
  expect(wrong.err).toContain('did you mean name?')
  expect((await cli('query')).code).toBe(2)
  expect((await cli('query', 'select 1', '--views')).code).toBe(2)
})

test('SQ3 a caller without a credential may not ask', async () => {
  const { status } = await admin.call('POST', '/api/v1/query', { sql: 'select 1' }, { authorization: 'Bearer no-such-token' })
  expect(status).toBe(401)
})

test('SQ9 a query is saved, listed, run and deleted; a wrong one is refused', async () => {
  const sql = 'select name from services order by name'
  expect(await cli('query', '--save', 'names', '--about', 'all services', sql)).toEqual({
    code: 0,
    out: 'saved-query/names saved\n',
    err: '',
  })
  expect((await cli('query', '--saved', 'names')).out).toBe('NAME\nshop\nweb\n')
  expect((await cli('get', 'saved-queries', '--no-headers')).out).toMatch(/^names +\S+ +0s +all services\n$/)
  expect(JSON.parse((await cli('get', 'saved-query', 'names', '-o', 'json')).out)).toMatchObject({
    name: 'names',
    sql,
    about: 'all services',
  })
  const wrong = await cli('query', '--save', 'wrong', 'select nam from services')
  expect([wrong.code, wrong.err.includes('did you mean name?')]).toEqual([1, true])
  expect((await admin.call('PUT', '/api/v1/saved-queries/wrong', { sql: 'drop table services' })).body).toMatchObject({ code: 'bad_query' })
  expect((await admin.call('PUT', '/api/v1/saved-queries/wrong', { sql: 'select 1', about: 'a\nb' })).status).toBe(422)
  for (const words of [
    ['--save', 'x'],
    ['--saved', 'names', sql],
    ['--about', 'x', sql],
    ['--saved', 'names', '--save', 'x', sql],
  ])
    expect((await cli('query', ...words)).code).toBe(2)
  expect((await cli('query', '--saved', 'none')).code).toBe(1)
  const deleted = await cli('delete', 'saved-query', 'names', '--yes')
  expect([deleted.code, deleted.out]).toEqual([0, 'saved-query/names deleted\n'])
  expect((await admin.call('DELETE', '/api/v1/saved-queries/names')).status).toBe(404)
})

test('SQ9 a viewer reads and runs a saved query; to save one needs a right in the whole fleet', async () => {
  const tokenOf = async (spec: object) => {
    const { body } = await admin.call('POST', '/api/v1/tokens', { expires: '1h', ...spec })
    return { authorization: `Bearer ${(body as { token: string }).token}` }
  }
  const viewer = await tokenOf({ name: 'eve', role: 'viewer' })
  const operator = await tokenOf({ name: 'oli', role: 'operator' })
  const confined = await tokenOf({ name: 'pat', role: 'operator', projects: ['default'] })
  const save = (headers: Record<string, string>) => admin.call('PUT', '/api/v1/saved-queries/one', { sql: 'select 1 as one' }, headers)
  expect((await save(viewer)).status).toBe(403)
  expect((await save(confined)).status).toBe(403)
  expect((await save(operator)).status).toBe(201)
  expect((await save(operator)).status).toBe(200)
  for (const headers of [viewer, confined])
    expect((await admin.call('GET', '/api/v1/saved-queries', undefined, headers)).body).toMatchObject({
      items: [{ name: 'one', savedBy: 'oli' }],
    })
  expect((await admin.call('DELETE', '/api/v1/saved-queries/one', undefined, viewer)).status).toBe(403)
})
