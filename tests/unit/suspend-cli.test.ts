// `skerry suspend`, `resume`, and where people see what is suspended.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { SuspendAnswer } from '../../shared/model/suspension.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'
import { joinCluster } from '../support/store-fixtures.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
  await joinCluster(admin.store, 'a')
  const labels = { team: 'web' }
  const resources = [repositoryDoc('apps'), serviceDoc('web', { labels }), serviceDoc('shop', { labels }), serviceDoc('cache')]
  await admin.call('POST', '/api/v1/apply', { resources })
  admin.asked.length = 0
})
afterEach(() => admin.store.close())
const cli = (...argv: string[]) => runTestCli(admin, argv)
const answer = async (...argv: string[]) => JSON.parse((await cli(...argv, '-o', 'json')).out) as SuspendAnswer
const scopes = ({ results }: SuspendAnswer) => results.map(({ service, cluster, action }) => `${service}@${cluster} ${action}`)
const ROUTES: ReadonlyArray<[string, unknown]> = [
  ['suspend', { reason: 'r' }],
  ['suspend', { services: ['web'] }],
  ['suspend', { all: true, services: ['web'], reason: 'r' }],
  ['suspend', { services: ['web'], reason: 'r', forever: true }],
  ['resume', {}],
]

test.each<[string[], string[]]>([
  [['web'], ['web@null suspended']],
  [
    ['web', 'service/cache', '--cluster', 'cluster-a'],
    ['web@cluster-a suspended', 'cache@cluster-a suspended'],
  ],
  [
    ['-l', 'team=web'],
    ['shop@null suspended', 'web@null suspended'],
  ],
  [['--cluster', 'cluster-a'], ['null@cluster-a suspended']],
  [['--all'], ['null@null suspended']],
])('SU9 suspend %j means %j, and once more changes nothing', async (argv, expected) => {
  expect(scopes(await answer('suspend', ...argv, '--reason', 'harbour', '--dry-run'))).toEqual(expected)
  expect([(await admin.call('GET', '/api/v1/suspensions')).body, admin.asked]).toEqual([{ items: [], continue: null }, []])
  expect(scopes(await answer('suspend', ...argv, '--reason', 'harbour'))).toEqual(expected)
  expect(admin.asked).toEqual(['suspensions changed'])
  expect(scopes(await answer('suspend', ...argv, '--reason', 'other'))).toEqual(
    expected.map((text) => text.replace('suspended', 'unchanged')),
  )
  expect(scopes(await answer('resume', ...argv))).toEqual(expected.map((text) => text.replace('suspended', 'resumed')))
  expect(scopes(await answer('resume', ...argv))).toEqual(expected.map((text) => text.replace('suspended', 'unchanged')))
})

test.each<[string[], number]>([
  [['suspend', 'web'], 2],
  [['suspend', '--reason', 'r'], 2],
  [['suspend', 'web', '--all', '--reason', 'r'], 2],
  [['suspend', 'cluster/web', '--reason', 'r'], 2],
  [['suspend', '--all', '-p', 'default', '--reason', 'r'], 2],
  [['suspend', 'web', '-A', '--reason', 'r'], 2],
  [['suspend', 'nobody', '--reason', 'r'], 1],
  [['suspend', 'web', '--cluster', 'nobody', '--reason', 'r'], 1],
  [['suspend', '-l', 'team=nobody', '--reason', 'r'], 1],
  [['resume'], 2],
  [['resume', 'nobody'], 0],
])('SU6 SU9 %j ends with %d and suspends nothing', async (argv, code) => {
  const said = await cli(...argv)
  expect(said.code).toBe(code)
  expect((await admin.call('GET', '/api/v1/suspensions')).body).toEqual({ items: [], continue: null })
})

test.each(ROUTES)('SU9 POST %s with %j is refused', async (route, body) => {
  expect((await admin.call('POST', `/api/v1/${route}`, body)).status).toBeOneOf([400, 422])
})

test('SU6 SU7 applying the service again lifts nothing; resume lists what still concerns it', async () => {
  await cli('suspend', 'web', '--reason', 'harbour')
  await cli('suspend', '--all', '--reason', 'incident 42')
  await admin.call('POST', '/api/v1/apply', { resources: [serviceDoc('web', { labels: { team: 'other' } })] })
  expect((await cli('get', 'suspensions')).out.split('\n').map((line) => line.split(/ +/)[1])).toEqual(['SERVICE', '*', 'web', undefined])
  const { code, out, err } = await cli('resume', 'web')
  expect([code, out]).toEqual([0, 'default/web resumed\n'])
  expect(err).toContain('still suspended:\n  all services, by admin: incident 42\n    skerry resume --all\n')
  expect((await cli('resume', '--all')).err).toBe('')
})

test('SU8 services, clusters and their descriptions say who suspended them and why', async () => {
  const status = async (kind: string, name: string) => JSON.parse((await cli('get', kind, name, '-o', 'json')).out).status
  await cli('suspend', 'web', '--cluster', 'cluster-a', '--reason', 'harbour')
  expect((await status('service', 'web')).suspensions).toMatchObject([
    { service: 'web', cluster: 'cluster-a', by: 'admin', reason: 'harbour' },
  ])
  await cli('suspend', '--cluster', 'cluster-a', '--reason', 'switches')
  expect((await status('cluster', 'cluster-a')).suspensions).toHaveLength(2)
  const rendered = { commit: 'c0ffee', generation: 1, digest: 'd', objectCount: 1, renderedMs: 1, error: null }
  await admin.store.setRepositoryState('default', 'apps', { commit: 'c0ffee', fetchedMs: 1, tag: null, error: null })
  await admin.store.setRenderState({ project: 'default', service: 'web' }, rendered)
  await cli('suspend', 'web', '--reason', 'whole')
  expect(await status('service', 'web')).toMatchObject({
    reason: 'Suspended',
    message: naming('suspended', 'admin'),
  })
  expect((await cli('describe', 'service', 'web')).out).toMatch(
    /^Suspended: +default\/web, by admin 0s ago: whole; skerry resume web -p default$/m,
  )
  expect((await cli('describe', 'cluster', 'cluster-a')).out).toMatch(/^Suspended: +all services in cluster-a, by admin/m)
  expect((await cli('get', 'services')).out).toMatch(/^web .* Suspended$/m)
  await cli('suspend', 'cache', '--reason', 'whole')
  const error = { code: 'git_unreachable', message: 'no route', problems: [], sinceMs: 1 }
  await admin.store.setRepositoryState('default', 'apps', { commit: 'c0ffee', fetchedMs: 1, tag: null, error })
  expect((await cli('get', 'services')).out).toMatch(/^cache .* RepositoryUnreadable,Suspended$/m)
  expect((await status('service', 'cache')).message).toMatch(/^suspended by admin/)
  expect((await cli('events')).out).toEqual(naming('Suspended', 'default/web', 'admin', 'whole'))
})
