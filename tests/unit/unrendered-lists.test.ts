// What people see of a service that could not be rendered from the start: it is listed for each of its targets, and
// counted.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { FailingClusters } from '../../server/fleet/records.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'
import { joinCluster } from '../support/store-fixtures.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
  for (const [digit, env] of ['a prod', 'b dev', 'c prod'].map((text) => text.split(' ')))
    await joinCluster(admin.store, digit ?? '', { env: env ?? '' })
  await admin.call('POST', '/api/v1/apply', { resources: [repositoryDoc('apps'), serviceDoc('web')] })
})
afterEach(() => admin.store.close())

const fail = (clusters: Pick<FailingClusters, 'without' | 'moreWithout'>) =>
  admin.store.setRenderState(
    { project: 'default', service: 'web' },
    {
      ...{ commit: null, generation: 1, digest: null, objectCount: 0, renderedMs: null },
      error: {
        ...{ code: 'render_failed', message: 'no chart', problems: [], sinceMs: 5 },
        failing: [{ code: 'render_failed', message: 'no chart', keeping: [], ...clusters }],
      },
    },
  )
const cli = async (argv: string) =>
  (await runTestCli(admin, argv.split(' '))).out
    .trimEnd()
    .split('\n')
    .map((line) => line.split(/ {2,}/).slice(0, 6).join(' '))

const named = { without: ['cluster-a', 'cluster-c'], moreWithout: 0 }
const cut = { without: ['cluster-a'], moreWithout: 1 }

test.each([
  [
    'get placements --no-headers',
    named,
    ['cluster-a default web NeverSeen OutOfSync Missing', 'cluster-c default web NeverSeen OutOfSync Missing'],
  ],
  [
    'get placements --no-headers',
    cut,
    ['cluster-a default web NeverSeen OutOfSync Missing', 'cluster-c default web NeverSeen OutOfSync Missing'],
  ],
  [
    'get placements --no-headers --service web -l env=prod',
    cut,
    ['cluster-a web NeverSeen OutOfSync Missing 0/0', 'cluster-c web NeverSeen OutOfSync Missing 0/0'],
  ],
  [
    'get placements --no-headers --status-selector health=Missing --sort-by health',
    cut,
    ['cluster-a default web NeverSeen OutOfSync Missing', 'cluster-c default web NeverSeen OutOfSync Missing'],
  ],
  [
    'get placements --no-headers --service web --sort-by name',
    named,
    ['cluster-a web NeverSeen OutOfSync Missing 0/0', 'cluster-c web NeverSeen OutOfSync Missing 0/0'],
  ],
  ['get placements --no-headers --cluster cluster-c', cut, ['cluster-c default web NeverSeen OutOfSync Missing']],
  ['get placements --no-headers --cluster cluster-c', named, ['cluster-c default web NeverSeen OutOfSync Missing']],
  ['get placements --no-headers --cluster cluster-b', cut, ['']],
  ['get placements --no-headers --status-selector health=Healthy', named, ['']],
  ['count --by state --no-headers', cut, ['OutOfSync/Missing 2']],
  ['count --by service --no-headers', named, ['default/web 2 0 0 0']],
  ['count --by label=env --no-headers', cut, ['env=dev 1 0 0 0', 'env=prod 2 2 0 0']],
  ['count --by label --no-headers --top 1', named, ['env=prod 2 2 0 0']],
])('QY7 RU2 %s with %o', async (argv, clusters, rows) => {
  await fail(clusters)
  expect(await cli(argv)).toEqual(rows)
})

test('QY7 the same words everywhere; what is deleted is not rendered any more', async () => {
  await fail(cut)
  const get = async (path: string) => ((await admin.call('GET', `/api/v1/${path}`)).body as { items: object[] }).items
  const all = await get('placements')
  expect(all[1]).toMatchObject({
    ...{ cluster: 'cluster-c', reason: 'RenderFailed', sinceMs: 5, desired: null },
    message: naming('no chart', 'nothing is published'),
  })
  expect(await get('projects/default/services/web/clusters')).toEqual(all)
  expect(await get('clusters/cluster-c/services')).toEqual(all.slice(1))
  const [a, b, c] = (await get('clusters')) as unknown[]
  expect([a, c] as unknown).toEqual([
    (await admin.call('GET', '/api/v1/clusters/cluster-a')).body,
    (await admin.call('GET', '/api/v1/clusters/cluster-c')).body,
  ])
  expect(c as object).toMatchObject({ status: { reason: 'ClusterNeverSeen', services: { total: 1, synced: 0, offline: 1 } } })
  expect(b as object).toMatchObject({ status: { services: { total: 0 } } })
  expect((await get('services'))[0]).toMatchObject({ status: { clusters: { total: 2, synced: 0, offline: 2 } } })
  const { status } = (await admin.call('GET', '/api/v1/projects/default/services/web')).body as { status: object }
  expect((await get('services'))[0]).toMatchObject({ status })
  await admin.store.markDeleting({ kind: 'Service', project: 'default', name: 'web' }, 1, 'ann')
  expect([await get('placements'), await get('clusters/cluster-c/services'), await get('counts?by=service')]).toEqual([[], [], []])
})
