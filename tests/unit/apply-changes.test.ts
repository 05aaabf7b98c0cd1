// What an apply changes where a service stays: overrides of relabelled clusters, and namespaces.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { changedNamespace, changedOverrides } from '../../server/http/apply-changes.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { joinCluster } from '../support/store-fixtures.ts'

const eu = { selector: { matchLabels: { region: 'eu' } }, config: { replicas: 3 } }
const us = { selector: { matchLabels: { region: 'us' } }, config: { replicas: 1 } }
const all = { selector: {}, config: { colour: 'blue' } }

test.each<[Record<string, string>, Record<string, string>, string[]]>([
  [{ region: 'eu' }, { region: 'eu', ring: '1' }, []],
  [{ region: 'eu' }, {}, ['override_lost overrides[0] (region=eu)']],
  [{ region: 'eu' }, { region: 'us' }, ['override_lost overrides[0] (region=eu)', 'override_gained overrides[1] (region=us)']],
])('TG19 from %j to %j: %j', (before, after, expected) =>
  expect(changedOverrides({ overrides: [eu, us, all] }, before, after).map(({ what, detail }) => `${what} ${detail}`)).toEqual(expected),
)

test('TG19 a namespace that is left out is one, too', () =>
  expect([changedNamespace({}, {}), changedNamespace({ namespace: 'a' }, {}).map(({ detail }) => detail)]).toEqual([
    [],
    ['from a to none'],
  ]))

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
})
afterEach(() => admin.store.close())

test('TG19 apply and its dry run tell of a lost override and of a namespace move', async () => {
  const clusterId = await joinCluster(admin.store, 'a', { env: 'prod', region: 'eu' })
  const web = serviceDoc('web')
  const service = (namespace: string) => ({ ...web, spec: { ...web.spec, namespace, overrides: [eu] } })
  await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps'), service('web')] })
  const doc = serviceRowSchema.parse({ commit: 'c', digest: 'd', count: 0, sync: {} })
  const row = { clusterId, project: 'default', service: 'web', doc, setSha: null, placedBy: '' }
  await admin.store.publish([row])
  const cluster = { apiVersion: 'skerry.dev/v1', kind: 'Cluster', metadata: { name: 'cluster-a', labels: { env: 'prod' } }, spec: {} }
  const run = (document: unknown, ...flags: string[]) =>
    runTestCli(admin, ['apply', '-f', '-', ...flags], { stdin: JSON.stringify(document) })
  expect((await run(cluster, '--dry-run')).out).toBe(
    'cluster/cluster-a configured (dry run)\n  default/web would lose overrides[0] (region=eu)\n',
  )
  expect((await run(cluster)).out).toBe('cluster/cluster-a configured\n  default/web loses overrides[0] (region=eu)\n')
  expect((await run(service('shop'), '--dry-run')).out).toContain(
    '\n  would move from web to shop in 1 cluster: cluster-a; its objects are',
  )
  expect((await run(service('shop'))).out).toContain('\n  moves from web to shop in 1 cluster: cluster-a; its objects are')
  expect((await run(service('shop'))).out).toBe('service/web unchanged\n')
})
