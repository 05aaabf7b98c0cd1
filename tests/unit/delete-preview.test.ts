// What delete says before it asks: what really goes, and for what is still in use, who uses it.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { StatusWrite } from '../../server/fleet/records.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import { createTestAdmin, repositoryDoc, serviceDoc, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { naming } from '../support/naming.ts'
import { joinCluster, publishOne } from '../support/store-fixtures.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
})
afterEach(() => admin.store.close())

const cli = (argv: string) => runTestCli(admin, argv.split(' '))
const apply = (...resources: unknown[]) => admin.call('POST', '/api/v1/apply', { resources })

/** A service whose objects are `own` of its own and `others` of another service. */
async function dup(digit: string, own: number, others: number): Promise<void> {
  const id = await joinCluster(admin.store, digit, { env: 'prod' })
  const doc = { commit: 'c0ffee', digest: 'd1', count: own + others, sync: syncOptionsSchema.parse({}), protect: false }
  await publishOne(admin.store, { clusterId: id, project: 'default', service: 'dup', doc, setSha: 'x', placedBy: '' })
  const state = { health: 'Unknown', message: 'it belongs to default/web', sinceMs: 1 }
  const object = (name: string, sync: string, reason: string): StatusWrite => ({
    kind: 'object',
    key: `default/dup//ConfigMap/web/${name}`,
    rev: 2,
    doc: { ...state, sync, reason },
  })
  await admin.store.markSeen(new Map([[id, admin.clock.nowMs]]))
  const rows: StatusWrite[] = [
    {
      kind: 'service',
      key: 'default/dup',
      rev: 1,
      doc: { ...state, sync: 'OutOfSync', reason: 'OwnedByOther', objectCount: own + others, healthyCount: 0 },
    },
    ...Array.from({ length: own }, (_, i) => object(`own-${i}`, 'Synced', 'Healthy')),
    ...Array.from({ length: others }, (_, i) => object(`theirs-${i}`, 'OutOfSync', 'OwnedByOther')),
  ]
  await admin.store.upsertStatus(id, rows, { complete: false, nowMs: admin.clock.nowMs })
}

test('CL5 of a service, objects that belong to others are not counted among what is deleted', async () => {
  await apply(repositoryDoc('apps'), serviceDoc('dup'))
  await dup('a', 0, 4)
  expect((await cli('delete svc dup')).err).toStartWith(
    `Service dup of project default will be removed from 1 cluster; 0 objects will be deleted.
default/dup in cluster-a:
  4 objects stay (belongs to another owner):
    ConfigMap web/theirs-0
`,
  )
  await dup('b', 3, 1)
  expect((await cli('delete svc dup')).err).toStartWith(
    `Service dup of project default will be removed from 2 clusters; 3 objects will be deleted.
default/dup in cluster-a:
  4 objects stay (belongs to another owner):
    ConfigMap web/theirs-0
    ConfigMap web/theirs-1
    ConfigMap web/theirs-2
    ConfigMap web/theirs-3
default/dup in cluster-b:
  3 objects will be deleted:
    ConfigMap web/own-0
    ConfigMap web/own-1
    ConfigMap web/own-2
  1 object stays (belongs to another owner):
    ConfigMap web/theirs-0
`,
  )
})

test('CL5 a repository and a config that are in use: who uses them, and nothing is said to be lost or asked', async () => {
  const web = serviceDoc('web')
  await apply(
    repositoryDoc('apps'),
    { apiVersion: 'skerry.dev/v1', kind: 'Config', metadata: { name: 'priv' }, spec: { secrets: { password: 'x' } } },
    { ...web, spec: { ...web.spec, configFrom: [{ name: 'priv' }] } },
    serviceDoc('api'),
  )
  for (const yes of ['', ' --yes']) {
    expect(await cli(`delete repository apps${yes}`)).toEqual({
      code: 1,
      out: '',
      err: naming('error: delete repository/apps: ', 'nothing was changed', 'service/api, service/web', 'hint: '),
    })
    const config = await cli(`delete config priv${yes}`)
    expect(config).toMatchObject({ code: 1, out: '' })
    expect(config.err).toEqual(naming('error: delete config/priv: ', 'nothing was changed', 'service/web', 'hint: '))
  }
  await apply(web)
  expect((await cli('delete config priv')).err).toContain('LOST: password')
})
