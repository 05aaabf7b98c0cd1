// `skerry count` and the route behind it: what is typed, what columns are printed, what is refused.
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { countsViewSchema } from '../../shared/model/counts.ts'
import { serviceRowSchema } from '../../shared/model/desired.ts'
import { syncOptionsSchema } from '../../shared/model/resources.ts'
import { createTestAdmin, type TestAdmin } from '../support/admin-app.ts'
import { runTestCli } from '../support/cli-run.ts'
import { joinCluster } from '../support/store-fixtures.ts'

let admin: TestAdmin
beforeEach(async () => {
  admin = await createTestAdmin()
})
afterEach(() => admin.store.close())
const cli = (argv: string) => runTestCli(admin, argv.split(' ').filter(Boolean))

const point = { commit: 'c', digest: 'one', atMs: 1 }
const words = (health: string) => ({ sync: 'Synced', health, reason: '', message: '', sinceMs: 1 })

/** Of two clusters one is well; the agents are of two versions. */
async function smallFleet(): Promise<void> {
  const doc = serviceRowSchema.parse({ commit: 'c', digest: 'one', count: 1, sync: syncOptionsSchema.parse({}) })
  for (const [digit, health] of [
    ['a', 'Healthy'],
    ['b', 'Degraded'],
  ] as const) {
    const id = await joinCluster(admin.store, digit, { env: digit === 'a' ? 'prod' : 'dev', tier: '1' })
    await admin.store.publish([{ clusterId: id, project: 'default', service: 'web', doc, setSha: null, placedBy: '{}' }])
    const status = { ...words(health), received: point, applied: point, objectCount: 1, healthyCount: 1 }
    const key = 'default/web/apps/Deployment/web/web'
    const facts = { agentVersion: `0.${digit}`, kubernetesVersion: 'v1.32.0', clusterUid: 'u', problems: [] }
    const drift = { paths: ['/spec'], manager: 'kubectl', action: 'reported', detectedMs: 1, count: 1 }
    await admin.store.upsertStatus(
      id,
      [
        { kind: 'service', key: 'default/web', rev: 1, doc: status },
        { kind: 'object', key, rev: 2, doc: { ...words(health), images: ['web:1'] } },
        { kind: 'cluster', key: 'cluster', rev: 3, doc: facts },
        { kind: 'drift', key, rev: 4, doc: drift },
      ],
      { complete: false, nowMs: 1 },
    )
  }
}

/** Cells, as awk sees them. */
const cells = (text: string): string[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => line.trim().split(/ +/).join(' '))

const tables: Array<[string, string[]]> = [
  ['count --by state', ['STATE PLACEMENTS', 'Synced/Degraded 1', 'Synced/Healthy 1']],
  ['count --by sync --of objects', ['SYNC OBJECTS', 'Synced 2', 'OutOfSync 0', 'Unknown 0']],
  ['count --by service', ['SERVICE PLACEMENTS SYNCED HEALTHY DEGRADED', 'default/web 2 2 1 1']],
  ['count --by service=default', ['SERVICE PLACEMENTS SYNCED HEALTHY DEGRADED', 'default/web 2 2 1 1']],
  ['count --by label=env', ['LABEL CLUSTERS PLACEMENTS SYNCED HEALTHY', 'env=dev 1 1 1 0', 'env=prod 1 1 1 1']],
  ['count --by image', ['IMAGE OBJECTS', 'web:1 2']],
  ['count --by version=agent', ['VERSION CLUSTERS', 'agent/0.a 1', 'agent/0.b 1']],
  ['count --by version --top 1', ['VERSION CLUSTERS', 'kubernetes/v1.32.0 2']],
  ['count --by liveness', ['LIVENESS CLUSTERS', 'Online 0', 'Offline 0', 'NeverSeen 2', 'Revoked 0']],
  ['count --by drift-age', ['AGE OBJECTS REPORTED CONTESTED FAILED', '<1h 2 2 0 0', '<1d 0 0 0 0', '<7d 0 0 0 0', 'older 0 0 0 0']],
  ['count --by health --no-headers', ['Healthy 1', 'Progressing 0', 'Degraded 1', 'Suspended 0', 'Missing 0', 'Unknown 0']],
  ['count --by label -o name', ['env=dev', 'env=prod', 'tier=1']],
]
test.each(tables)('RU4 CL11 CL1 %s', async (argv, lines) => {
  await smallFleet()
  const { code, out } = await cli(argv)
  expect([code, cells(out)]).toEqual([0, lines])
})

test('CL11 with --top, what the others have together is said on stderr', async () => {
  await smallFleet()
  const { out, err } = await cli('count --by label --top 1')
  expect([cells(out)[1], err]).toEqual(['tier=1 2 2 2 1', 'and 2 placements of 2 more\n'])
})

test('CL11 CL2 -o json is the document of the API', async () => {
  await smallFleet()
  const { out } = await cli('count --by service -o json')
  const { body } = await admin.call('GET', '/api/v1/counts?by=service')
  expect(JSON.parse(out)).toEqual(countsViewSchema.parse(body))
  expect(countsViewSchema.parse(body).items).toEqual([
    { key: 'default/web', count: 2, parts: { 'Synced/Healthy': 1, 'Synced/Degraded': 1 } },
  ])
})

test.each([
  ['count --by helth', 'did you mean "health"?'],
  ['count --by lable=env', 'did you mean "label"?'],
  ['count --by health=Healthy', '"="'],
  ['count --by image --of clusters', 'counts by image are of objects'],
  ['count --by image --of pods', 'placements, objects, clusters'],
  ['count', '--by'],
])('CL11 CL8 %s is told what would be right', async (argv, told) => {
  const { code, err } = await cli(argv)
  expect(code).toBe(2)
  expect(err).toContain(told)
})

test.each([
  ['by=helth', 'drift-age'],
  ['by=image&of=clusters', 'of objects'],
  ['by=image&limit=501', 'limit'],
])('RU4 AP3 GET /api/v1/counts?%s is refused', async (query, told) => {
  const { status, body } = await admin.call('GET', `/api/v1/counts?${query}`)
  expect(status).toBe(400)
  expect(JSON.stringify(body)).toContain(told)
})

test('CL11 nothing to count is said on stderr', async () => {
  const { code, out, err } = await cli('count --by image')
  expect([code, out, err]).toEqual([0, '', 'nothing to count by image\n'])
})
