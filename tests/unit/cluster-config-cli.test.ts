// Variables and overrides of one cluster: what describe shows of them, and what apply warns of.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'
import { joinCluster } from '../support/store-fixtures.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
  await joinCluster(admin.store, 'a', {})
})
afterEach(() => admin.store.close())

const applied = (spec: Record<string, unknown>, argv = 'apply -f -', more: unknown[] = []) => {
  const documents = [{ apiVersion: 'skerry.dev/v1', kind: 'Cluster', metadata: { name: 'cluster-a' }, spec }, ...more]
  return runTestCli(admin, argv.split(' '), { stdin: documents.map((document) => JSON.stringify(document)).join('\n---\n') })
}
const described = async () => (await runTestCli(admin, ['describe', 'cluster', 'cluster-a'])).out

test('CL1 describe shows the variables and overrides of a cluster, bounded', async () => {
  expect(await described()).not.toMatch(/Config|Override/)
  const overrides = [
    { service: 'web', config: { color: 'red' }, patches: [{ patch: { apiVersion: 'v1', kind: 'X', metadata: { name: 'x' } } }] },
    { service: 'db', project: 'data', helm: { values: { a: 1, b: 2, c: 3, d: 4, e: 5, f: 6 } } },
  ]
  expect(await applied({ config: { region: 'eu', sizes: { disk: 3 } }, overrides })).toMatchObject({ code: 0 })
  const out = (await described()).replaceAll(/ +/g, ' ')
  expect(out).toContain('Config: 2 variables of its own, which override those of all services\n region: "eu"\n sizes: {"disk":3}\n')
  expect(out).toContain('Override: service web: config color="red"; 1 patch\n')
  expect(out).toContain('Override: service data/db: helm values a, b, c, d, e and 1 more\n')
  const many = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`v${i}`, 'x'.repeat(i === 0 ? 300 : 1)]))
  await applied({ config: many })
  const bounded = (await described()).replaceAll(/ +/g, ' ')
  expect(bounded).toContain('10 more; -o yaml shows all')
  expect(bounded).toContain('… (302 characters; -o yaml shows all)')
})

test('CL18 apply warns of an override for a service that does not exist, with the nearest name, and applies it', async () => {
  await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps'), serviceDoc('web')] })
  const slip = {
    overrides: [
      { service: 'web', config: {} },
      { service: 'webb', config: {} },
    ],
  }
  const warning = naming('warning: cluster/cluster-a: spec.overrides[1] ', 'Service webb of project default', '"web"?')
  expect(await applied(slip, 'apply --dry-run -f -')).toMatchObject({ code: 0, err: warning })
  expect(await applied(slip)).toMatchObject({ code: 0, out: 'cluster/cluster-a configured\n', err: warning })
  const both = await applied({ overrides: [{ service: 'shop', config: {} }] }, 'apply --dry-run -f -', [serviceDoc('shop')])
  expect(both).toMatchObject({ code: 0, err: '' })
  const elsewhere = await applied({ overrides: [{ service: 'web', project: 'team', config: {} }] })
  expect(elsewhere.err).toEqual(naming('warning: cluster/cluster-a: spec.overrides[0] ', 'Service web of project team'))
})

test('CL18 apply warns of a dependency on a service that does not exist, with the nearest name', async () => {
  await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps'), serviceDoc('cache')] })
  const web = serviceDoc('web')
  const dependsOn = [{ name: 'cache' }, { name: 'cach' }, { name: 'cache', project: 'team' }, { name: 'coming' }, { name: 'weeb' }]
  const stdin = [{ ...web, spec: { ...web.spec, dependsOn } }, serviceDoc('coming')].map((one) => JSON.stringify(one)).join('\n---\n')
  const { code, err } = await runTestCli(admin, ['apply', '-f', '-'], { stdin })
  expect([code, err.trimEnd().split('\n')]).toEqual([
    0,
    [
      naming('warning: service/web: spec.dependsOn[1] ', 'Service cach of project default', '"cache"'),
      expect.stringMatching(/: spec\.dependsOn\[2\] .*Service cache of project team\b[^"?]*$/),
      expect.stringMatching(/: spec\.dependsOn\[4\] .*Service weeb of project default\b[^"?]*$/),
    ],
  ])
})

test('CL18 apply warns of Repositories and Configs that a service names and nobody has, with the nearest name', async () => {
  await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps')] })
  const service = (spec: Record<string, unknown>) => ({ ...serviceDoc('web'), spec: { targets: { selector: {} }, ...spec } })
  const run = (documents: unknown[]) =>
    runTestCli(admin, ['apply', '--dry-run', '-f', '-'], { stdin: documents.map((one) => JSON.stringify(one)).join('\n---\n') })
  const config = { apiVersion: 'skerry.dev/v1', kind: 'Config', metadata: { name: 'vars' }, spec: { data: { a: '1' } } }
  const slips = {
    sources: [
      { repository: 'apps', path: 'web' },
      { repository: 'aps', path: 'web', render: { helm: { valuesFrom: [{ name: 'var', key: 'a' }, { name: 'none', key: 'a', optional: true }] } } },
    ],
    configFrom: [{ name: 'vars' }, { name: 'late', optional: true }, { name: 'lost' }],
  } // biome-ignore format: one line each
  const { code, err } = await run([service(slips), config])
  expect([code, err.split('\n')]).toEqual([
    0,
    [
      naming('warning: service/web: spec.sources[1] ', 'Repository aps of project default', '"apps"?'),
      expect.stringMatching(/: spec\.configFrom\[2\] .*Config lost of project default\b[^"?]*$/),
      naming('warning: service/web: spec: helm.valuesFrom[0] ', 'Config var of project default', '"vars"?'),
      '',
    ],
  ])
  expect((await run([service({ source: { repository: 'ap', path: 'web' } })])).err).toEqual(
    naming('service/web: spec.source ', 'Repository ap'),
  )
  const coming = await run([
    service({ source: { repository: 'later', path: 'web' } }),
    { ...repositoryDoc('apps'), metadata: { name: 'later' } },
  ])
  expect(coming).toMatchObject({ code: 0, err: '' })
})
