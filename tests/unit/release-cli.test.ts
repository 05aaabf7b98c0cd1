// What people see of a release: variants, tools, warnings, clusters that fail, the question about a new tool, and what
// a cluster serves.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { releaseSubject } from '../../server/fleet/plan-service.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'
import { joinCluster } from '../support/store-fixtures.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
  await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps'), serviceDoc('web')] })
})
afterEach(() => admin.store.close())
const cli = async (argv: string) => (await runTestCli(admin, argv.split(' ').filter(Boolean))).out
const web = { project: 'default', service: 'web' }

test('RL1 RL2 RL4 a service shows its variants, tools, warnings and the clusters that fail', async () => {
  await admin.store.setRepositoryState('default', 'apps', { commit: 'c0ffee0011', fetchedMs: 1, tag: null, error: null })
  const error = {
    code: 'render_failed',
    message: 'in 1 of 3 clusters (site-1): no region',
    problems: [{ path: 'a.yaml:1:1', message: 'no region' }],
    sinceMs: 1,
  }
  await admin.store.setRenderState(web, {
    ...{ commit: 'c0ffee0011', generation: 1, digest: 'd', objectCount: 4, renderedMs: 1, error },
    release: {
      variants: 3,
      revisions: {},
      tools: { helm: '4.3.1' },
      warnings: [{ path: 'templates/a.yaml', message: 'lookup finds nothing here' }],
    },
  })
  const out = await cli('describe service web')
  expect(out).toContain('4 at most, in 3 variants\n')
  expect(out).toMatch(/Tools: +helm 4\.3\.1\n/)
  expect(out).toContain('WARNINGS of the last render (1):\n  templates/a.yaml: lookup finds nothing here\n')
  expect(out).toContain('in 1 of 3 clusters (site-1): no region')
  expect(out).toContain('Problems:\n  a.yaml:1:1: no region\n')
  expect(await cli('get services -o wide')).toMatch(/VARIANTS[\s\S]* 3 /)
  expect(JSON.parse(await cli('get service web -o json')).status).toMatchObject({ variants: 3, tools: { helm: '4.3.1' } })
})

test('RL3 the question about a new version of a tool says what it is about, and the service that it waits', async () => {
  const asked = { kind: 'release', subject: releaseSubject(web), ...web, cluster: null, token: 't', names: ['ConfigMap shop/a'] } as const
  const { id } = await admin.store.openConfirmation({ ...asked, names: [...asked.names], why: 'helm 4.1.0 → 4.2.0: …', createdMs: 1 })
  expect(await cli('confirm')).toContain('The new version of the tool changes these objects (1):\n  ConfigMap shop/a\n')
  const out = await cli('describe service web')
  expect(out).toEqual(naming('WaitingForConfirmation', 'helm 4.1.0 → 4.2.0', `skerry confirm ${id}`))
})

test('FA1 describe cluster says what it serves', async () => {
  const clusterId = await joinCluster(admin.store, 'a')
  const doc = { kubernetesVersion: 'v1.36.3', apis: { v1: ['Pod', 'Secret'], 'apps/v1': ['Deployment'] } }
  await admin.store.upsertStatus(clusterId, [{ kind: 'facts', key: 'cluster', rev: 1, doc }], { complete: false, nowMs: 1 })
  const out = await cli('describe cluster cluster-a')
  expect(out).toMatch(/Kubernetes: +v1\.36\.3\n/)
  expect(out).toMatch(/APIs: +3 kinds in 2 group versions\n/)
  expect(JSON.parse(await cli('get cluster cluster-a -o json')).status.facts).toEqual(doc)
})
