// "Did you mean" of get, describe and delete: which name is suggested, by how many requests, and to whom none is.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { joinCluster } from '../support/store-fixtures.ts'

let admin: TestAdmin
let urls: string[] = []
beforeEach(async () => {
  admin = await createTestAdmin()
  urls = []
  await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps'), serviceDoc('checkout')] })
  await joinCluster(admin.store, 'a')
})
afterEach(() => admin.store.close())
const cli = (argv: string, hides = '') =>
  runTestCli(admin, argv.split(' '), {
    fetch: (url, init) => {
      urls.push(url)
      // As the server answers those who may read nothing of the kind.
      if (hides !== '' && url.includes(hides)) return Promise.resolve(Response.json({ items: [], continue: null }))
      return admin.app.fetch(new Request(url, init))
    },
  })

test.each([
  ['get svc/chekout', 'checkout'],
  ['get service checkot -o json', 'checkout'],
  ['describe service chekcout', 'checkout'],
  ['delete service checkou --yes', 'checkout'],
  ['describe cluster cluster-q', 'cluster-a'],
  ['delete cluster/custer-a --yes', 'cluster-a'],
  ['get repository app', 'apps'],
])('CL40 `%s` suggests %s', async (argv, near) => {
  const { code, out, err } = await cli(argv)
  expect([code, out]).toEqual([1, ''])
  expect(err).toContain(`; did you mean "${near}"?\n`)
  expect(err.split('\n')[1]).toStartWith('hint: ')
  expect(urls).toHaveLength(2)
})

test('CL40 suggests nothing that is far away, hidden from the caller, or in another project', async () => {
  for (const result of [
    await cli('get service payments'),
    await cli('get service chekout', '/services?'),
    await cli('get service chekout -p other'),
    await cli('describe config app'),
  ]) {
    expect(result.code).toBe(1)
    expect(result.err).not.toContain('did you mean')
  }
})

test('CL40 a list that fails leaves the error as it is', async () => {
  const fetch = (url: string, init: RequestInit) =>
    url.includes('/services?') ? Promise.reject(new Error('gone')) : Promise.resolve(admin.app.fetch(new Request(url, init)))
  const { code, err } = await runTestCli(admin, ['get', 'service', 'chekout'], { fetch })
  expect([code, err.includes('did you mean'), err.includes('chekout')]).toEqual([1, false, true])
})
